# SPDX-License-Identifier: Apache-2.0
"""Released reports of one document: its signed bytes, and counts of complete batches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import FAILED

from frankly_server.analysis.periods import ALL_TIME
from frankly_server.store import ReleasedBatch

Blocks = tuple[int, ...]
Tally = Mapping[tuple[int, ...], int]
Key = tuple[Blocks, str, str]
"""Positions of blocks, stratum as canonical JSON, period."""


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Number of reports on some blocks in a stratum and a period, and counts of joint symbols."""

    n: int
    tally: Tally


@dataclass(frozen=True, slots=True)
class Received:
    """A document, or the view of one of its arms, with its counts (cells) by key.

    release : number (1, 2, …) of the newest release in the cells; 0 if there is none. batches : the
    batches in the cells, of a document with an instructed item. failures : cells of reports that are
    known to have failed it, and that other cells count too. beside : numbers of reports in other arms,
    by stratum and period.
    """

    document: SurveyDocument
    cells: Mapping[Key, CellCounts]
    release: int
    batches: tuple[ReleasedBatch, ...] = ()
    failures: Mapping[Blocks, CellCounts] = field(default_factory=dict)
    beside: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, envelope: bytes, release: int) -> "tuple[Received, ...]":
        """Return the document in an envelope, or the view of each of its arms, without cells."""
        document = SurveyDocument.from_envelope(envelope)
        return tuple(cls(version, {}, release) for version in document.versions)

    @property
    def key(self) -> str:
        """Name of the document, or of its view, in mappings."""
        return self.document.key

    def holds(self, stratum: str) -> bool:
        """Return True if reports of this stratum are reports of this arm; always without arms."""
        arms = self.document.arms
        return arms is None or _choice(stratum, arms.id) == self.document.arm

    def with_cells(self, cells: Mapping[Key, CellCounts]) -> "Received":
        """Return a copy with further cells; a cell with an existing key is replaced."""
        return replace(self, cells={**self.cells, **cells})

    @property
    def n(self) -> int:
        """Number of released reports."""
        # Every report has a symbol for every block, so the cells of block 0 count all reports.
        return sum(
            cell.n
            for (blocks, _, period), cell in self.cells.items()
            if (blocks, period) == ((0,), ALL_TIME)
        )

    def with_batches(self, batches: Sequence[ReleasedBatch]) -> "Received":
        """Return a copy with its batches; without an instructed item nothing needs them."""
        if self.document.instructed is None:
            return self
        own = (b for b in batches if b.release <= self.release and self.holds(b.stratum))
        return replace(self, batches=tuple(own))

    def failed(self, key: Key) -> bool:
        """Return True if the reports of a cell are known to have failed the instructed item."""
        item, (_, stratum, _) = self.document.instructed, key
        return item is not None and _choice(stratum, item.id) == FAILED

    def within(self, blocks: Blocks, by: str | None, choice: str | None, period: str) -> list[Key]:
        """Return the keys of these blocks and period, in strata where `by` is answered `choice`."""
        return [
            (key_blocks, stratum, key_period)
            for key_blocks, stratum, key_period in sorted(self.cells)
            if (key_blocks, key_period) == (blocks, period)
            and (by is None or _choice(stratum, by) == choice)
        ]

    def others(self, by: str | None, choice: str | None, period: str) -> int:
        """Return the number of reports of other arms within a group of reports."""
        arms = self.document.arms
        return sum(
            n
            for (stratum, of_period), n in self.beside.items()
            if of_period == period
            and (by is None or (arms and by == arms.id) or _choice(stratum, by) == choice)
        )

    def periods(self, blocks: Blocks) -> set[str]:
        """Return the periods in which these blocks have reports, without `ALL_TIME`."""
        return {period for key_blocks, _, period in self.cells if key_blocks == blocks} - {ALL_TIME}

    def to_json(self) -> dict[str, Any]:
        """Return the document's digest and newest release, which identify its batches, of all arms."""
        return {"digest": self.document.digest, "release": self.release}


def _choice(stratum: str, by: str) -> Any:
    return json.loads(stratum).get(by) if stratum else None
