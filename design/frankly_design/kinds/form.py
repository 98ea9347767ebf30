# SPDX-License-Identifier: Apache-2.0
"""The agreement kind (forms) and the tables of its parts."""

from collections.abc import Sequence
from typing import Any

from frankly_protocol.mechanisms import AgreementMechanism

from frankly_design.kinds.dense import DenseKind
from frankly_design.kinds.kind import Counted, Stored, Tally
from frankly_design.kinds.parts import PartTable
from frankly_design.kinds.symbols import NO_NUMBER


class FormKind(Counted):
    """A form. Only the number of its reports is counted: its parts are counted as blocks of their own."""

    mechanism: AgreementMechanism

    @property
    def digits(self) -> tuple[int, ...]:
        return ()

    def number(self, symbol: Any) -> int:
        return NO_NUMBER

    def keys(self, symbol: Any) -> list[tuple[int, ...]]:
        return []


class PartsTogether(DenseKind):
    """Parts of one form that reports show together; keys are the columns of each part's own table."""

    def __init__(self, mechanism: PartTable, alone: Sequence[PartTable]) -> None:
        super().__init__(mechanism)
        object.__setattr__(self, "_alone", tuple(alone))

    mechanism: PartTable
    _alone: tuple[PartTable, ...]

    def index(self, key: Sequence[int]) -> int:
        shown = [part.shown(column) for part, column in zip(self._alone, key, strict=True)]
        return self.mechanism.column_of(shown[0][0], [i for _, sets in shown for i in sets])

    def counts(self, n: int, stored: Stored) -> Tally:
        counts = [0] * self.reports
        for key, k in stored.items():
            counts[self.index(key)] += k
        return counts
