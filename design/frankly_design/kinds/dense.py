# SPDX-License-Identifier: Apache-2.0
"""The dense kind: a table, of which every symbol is counted and decoded."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from frankly_protocol.mechanisms import AnyMechanism, DenseMechanism

from frankly_design.kinds.decoder import Decoder, Rows, Targets, decoder, shares
from frankly_design.kinds.kind import (
    Ends,
    Factor,
    FactorKind,
    Stored,
    Tally,
    invalid_counts,
    whole_numbers,
)
from frankly_design.kinds.listed import ListedKind
from frankly_design.numeric import rational
from frankly_design.numeric.arrays import FloatArray, IntArray


def table_of(mechanism: AnyMechanism) -> DenseMechanism | None:
    """Return the mechanism if it is a table, also one of parts of a form, else None."""
    return mechanism if isinstance(mechanism, DenseMechanism) else None


class DenseKind(ListedKind, FactorKind):
    """A table."""

    mechanism: DenseMechanism

    @property
    def digits(self) -> tuple[int, ...]:
        return (self.reports,)

    def number(self, symbol: Any) -> int:
        return int(symbol)

    def parts(self, symbol: Any) -> tuple[int, ...]:
        return (int(symbol),)

    def index(self, key: Sequence[int]) -> int:
        (column,) = key
        return column

    def counts(self, n: int, stored: Stored) -> Tally:
        return [stored.get((y,), 0) for y in range(self.reports)]

    def count(self, reports: Iterable[Any]) -> Tally:
        seen = whole_numbers(reports)
        if outside := [y for y in seen if not 0 <= y < self.reports]:
            raise invalid_counts(
                f"reports are numbers from 0 to {self.reports - 1}, not {outside[0]}", "reports"
            )
        return [seen.get(y, 0) for y in range(self.reports)]

    @property
    def weights(self) -> Rows:
        return self.mechanism.weights

    @property
    def rows(self) -> Rows:
        return self.mechanism.weights

    @cached_property
    def law(self) -> FloatArray:
        denominator = self.denominator
        return np.array([[w / denominator for w in row] for row in self.mechanism.weights])

    @property
    def condition(self) -> float:
        return float(np.linalg.cond(np.array(self.mechanism.weights, dtype=np.float64)))

    def decoder(self, targets: Targets, prior: tuple[int, ...] | None) -> Decoder:
        return decoder(self.mechanism, targets, prior)

    def factor(self, prior: tuple[int, ...] | None) -> Factor:
        return TableFactor(self.mechanism, prior)

    @property
    def rank(self) -> int:
        return rational.rank(self.mechanism.weights)

    def names(self, answers: Sequence[Any]) -> list[str]:
        return [f"y{y}" for y in range(self.reports)]


class TableFactor:
    """Factor of a table; the statistic of a symbol is its indicator vector."""

    def __init__(self, mechanism: DenseMechanism, prior: tuple[int, ...] | None) -> None:
        self.mechanism, self.width = mechanism, mechanism.reports
        solved = decoder(mechanism, shares(mechanism.answers), prior)
        self.decoder = [list(row) for row in solved.rows if row is not None]
        self.identifiable = len(self.decoder) == mechanism.answers
        self._Q = np.array(mechanism.weights, dtype=np.float64) / mechanism.denominator
        self._V = np.array([[float(v) for v in row] for row in self.decoder])

    @property
    def ends(self) -> list[Ends]:
        return [(min(row), max(row)) for row in self.decoder]

    @property
    def condition(self) -> float:
        return float(np.linalg.cond(self._Q))

    def knows(self, symbol: int) -> bool:
        return 0 <= symbol < self.width

    def features(self, symbols: Sequence[int]) -> IntArray:
        return np.eye(self.width, dtype=np.int64)[:, list(symbols)]

    def values(self, symbols: Sequence[int]) -> FloatArray:
        return np.asarray(self._V[:, list(symbols)], dtype=np.float64)

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        return np.asarray(self._Q[:, list(symbols)], dtype=np.float64)

    def moments(self) -> FloatArray:
        # E[d_c d_d | x]: pairs of decoded values, weighted by the probability of the report.
        return np.asarray(
            np.einsum("xy,cy,dy->xcd", self._Q, self._V, self._V, optimize=True), dtype=np.float64
        )

    def law(self) -> FloatArray:
        return self._Q
