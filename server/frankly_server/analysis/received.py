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

from frankly_server.analysis.periods import ALL_TIME, UNDATED_WORD

Blocks = tuple[int, ...]
Tally = Mapping[tuple[int, ...], int]
Key = tuple[Blocks, str, str]
"""Positions of blocks, stratum as canonical JSON, period."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Reports of some blocks within a stratum and a period: how many, and symbols together -> how many.

    tally : None where it is held back.
    """

    n: int
    tally: Tally | None


@dataclass(frozen=True, slots=True)
class Received:
    """A document, its envelope's exact bytes, and cells by their keys."""

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
        return sum(cell.n for (blocks, _, period), cell in self.cells.items() if (blocks, period) == ((0,), ALL_TIME))

    @property
    def undated(self) -> int:
        """How many of them have no day, if days were read."""
        return sum(
            cell.n for (blocks, _, period), cell in self.cells.items() if (blocks, period) == ((0,), UNDATED_WORD)
        )

    def within(self, blocks: Blocks, by: str | None, choice: str | None, period: str) -> list[Key]:
        """Return the keys of these blocks and period in the strata where the question `by` was answered `choice`."""
        return [
            (found, stratum, when)
            for found, stratum, when in sorted(self.cells)
            if (found, when) == (blocks, period) and (by is None or _choice(stratum, by) == choice)
        ]

    def periods(self, blocks: Blocks) -> set[str]:
        """Return the periods that these blocks have reports in, but for all time."""
        return {when for found, _, when in self.cells if found == blocks} - {ALL_TIME}

    def to_json(self, shown: Collection[Key]) -> dict[str, Any]:
        """Return the envelope and the cells, the counts of those in `shown` only."""
        cells = [
            [list(key[0]), *key[1:], cell.n, _listed(cell.tally) if key in shown else None]
            for key, cell in sorted(self.cells.items(), key=lambda item: item[0])
        ]
        return {"envelope": base64.b64encode(self.envelope).decode(), "cells": cells}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Received":
        """Read what `to_json` wrote; KeyError, TypeError or ValueError if it is not that."""
        cells = {
            (tuple(map(int, blocks)), str(stratum), str(period)): Cell(int(n), None if tally is None else _read(tally))
            for blocks, stratum, period, n, tally in value["cells"]
        }
        return cls.of(base64.b64decode(value["envelope"], validate=True), cells)


def _listed(tally: Tally | None) -> list[list[int]] | None:
    return None if tally is None else [[*symbols, n] for symbols, n in sorted(tally.items())]


def _read(tally: Sequence[Sequence[int]]) -> Tally:
    return {tuple(map(int, entry[:-1])): int(entry[-1]) for entry in tally}


def _choice(stratum: str, by: str) -> Any:
    return json.loads(stratum).get(by) if stratum else None
