# SPDX-License-Identifier: Apache-2.0
"""What has been released under one document: its signed bytes, and counts of whole batches."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope

from frankly_server.analysis.periods import ALL_TIME

Blocks = tuple[int, ...]
Tally = Mapping[tuple[int, ...], int]
Key = tuple[Blocks, str, str]
"""Positions of blocks, stratum as canonical JSON, period."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Reports of some blocks within a stratum and a period: how many, and symbols together -> how many."""

    n: int
    tally: Tally


@dataclass(frozen=True, slots=True)
class Received:
    """A document, cells by their keys, and the newest release (1, 2, …) whose batches they hold; 0 if there is none."""

    document: SurveyDocument
    cells: Mapping[Key, Cell]
    release: int

    @classmethod
    def of(cls, envelope: bytes, cells: Mapping[Key, Cell], release: int) -> "Received":
        """Return the document of an envelope with its cells."""
        return cls(SurveyDocument.parse(Envelope.from_bytes(envelope, SURVEY_TYPE).payload), cells, release)

    def with_cells(self, cells: Mapping[Key, Cell]) -> "Received":
        """Return the same with more cells."""
        return replace(self, cells={**self.cells, **cells})

    @property
    def n(self) -> int:
        """How many reports were released: every report has one symbol for every block."""
        return sum(cell.n for (blocks, _, period), cell in self.cells.items() if (blocks, period) == ((0,), ALL_TIME))

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

    def to_json(self) -> dict[str, Any]:
        """Return what names the batches: the document's digest and the newest release."""
        return {"digest": self.document.digest, "release": self.release}


def _choice(stratum: str, by: str) -> Any:
    return json.loads(stratum).get(by) if stratum else None
