# SPDX-License-Identifier: Apache-2.0
"""What came in under one document: its signed bytes and counts, in a form that travels with every result.

Counts of a group that is too small for any number do not travel: only how many reports there were.
"""

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope

Blocks = tuple[int, ...]
Tally = Mapping[tuple[int, ...], int]
Key = tuple[Blocks, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """Reports of some blocks within one stratum: how many, and symbols together -> how many (None: held back)."""

    n: int
    tally: Tally | None


@dataclass(frozen=True, slots=True)
class Received:
    """A document, its envelope's exact bytes, and cells by (positions of blocks, stratum as canonical JSON)."""

    document: SurveyDocument
    envelope: bytes
    cells: Mapping[Key, Cell]

    @classmethod
    def of(cls, envelope: bytes, cells: Mapping[Key, Cell]) -> "Received":
        """Return the document of an envelope with its cells."""
        return cls(SurveyDocument.parse(Envelope.from_bytes(envelope, SURVEY_TYPE).payload), envelope, cells)

    @property
    def n(self) -> int:
        """How many reports came in: every report has one symbol for every block."""
        return sum(cell.n for (blocks, _), cell in self.cells.items() if blocks == (0,))

    def within(self, blocks: Blocks, by: str | None, choice: str | None) -> list[Key]:
        """Return the keys of these blocks in the strata where the public question `by` was answered `choice`."""
        return [
            (found, stratum)
            for found, stratum in sorted(self.cells)
            if found == blocks and (by is None or _choice(stratum, by) == choice)
        ]

    def to_json(self, shown: Collection[Key]) -> dict[str, Any]:
        """Return the envelope and the cells, the counts of those in `shown` only."""
        cells = [
            [list(blocks), stratum, cell.n, _listed(cell.tally) if (blocks, stratum) in shown else None]
            for (blocks, stratum), cell in sorted(self.cells.items(), key=lambda item: item[0])
        ]
        return {"envelope": base64.b64encode(self.envelope).decode(), "cells": cells}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Received":
        """Read what `to_json` wrote; KeyError, TypeError or ValueError if it is not that."""
        cells = {
            (tuple(map(int, blocks)), str(stratum)): Cell(int(n), None if tally is None else _read(tally))
            for blocks, stratum, n, tally in value["cells"]
        }
        return cls.of(base64.b64decode(value["envelope"], validate=True), cells)


def _listed(tally: Tally | None) -> list[list[int]] | None:
    return None if tally is None else [[*symbols, n] for symbols, n in sorted(tally.items())]


def _read(tally: Sequence[Sequence[int]]) -> Tally:
    return {tuple(map(int, entry[:-1])): int(entry[-1]) for entry in tally}


def _choice(stratum: str, by: str) -> Any:
    return json.loads(stratum).get(by) if stratum else None
