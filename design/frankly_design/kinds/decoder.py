# SPDX-License-Identifier: Apache-2.0
"""Fixed decoder V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹ of reports, in exact fractions (spec 8.1).

Here Q has one row per report. D₀ is the diagonal of the reports' probabilities under a prior p₀.
Its inverse is rounded to 64 bits, which leaves V exactly unbiased.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric import rational

Targets = tuple[tuple[Fraction, ...], ...]
Rows = Sequence[Sequence[int]]
Row = tuple[Fraction, ...]


class Table(Hashable, Protocol):
    """A mechanism with listed weights: Q(y|x) = weights[x][y] / denominator. Hashable."""

    @property
    def answers(self) -> int:
        """Number of rows."""

    @property
    def reports(self) -> int:
        """Number of columns."""

    @property
    def denominator(self) -> int:
        """Sum of every row."""

    @property
    def weights(self) -> Rows:
        """The rows."""


@dataclass(frozen=True)
class Decoder:
    """Exact unbiased decoder: for each target w the row v with E[v·(counts/n)] = w·p for every p.

    table : the mechanism of the reports.
    targets : W, one row per target, one column per answer.
    rows : V, one row per target, one column per report; None for a target that is not identifiable.
    rank : rank of Q.
    design_prior : p₀ as published.
    fallback : True if some possible report has probability 0 under the design prior. D₀ is then
    computed from the uniform prior. V is still unbiased, because D₀ only weights the reports.
    """

    table: Table
    targets: Targets
    rows: tuple[tuple[Fraction, ...] | None, ...]
    rank: int
    design_prior: tuple[int, ...] | None
    fallback: bool

    def apply(self, counts: Sequence[int]) -> tuple[Fraction | None, ...]:
        """Return the exact unbiased estimates from counts per report.

        An entry is None if its target is not identifiable or there are no reports.
        """
        n = sum(counts)
        return tuple(
            None
            if row is None or n == 0
            else Fraction(sum(v * c for v, c in zip(row[0], counts, strict=True)), row[1] * n)
            for row in self.whole
        )

    @cached_property
    def whole(self) -> tuple[tuple[list[int], int] | None, ...]:
        """Return the rows as (numerators, common denominator), faster to sum than Fractions."""
        return tuple(
            None if row is None else rational.over_one_denominator(row) for row in self.rows
        )

    def floats(self) -> NDArray[np.float64]:
        """Return the rows of the identifiable targets as floats, shape (targets, reports)."""
        rows = [[v / row[1] for v in row[0]] for row in self.whole if row is not None]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.table.reports)


@lru_cache(maxsize=16)
def shares(answers: int) -> Targets:
    """Return the identity matrix as targets: the share of every answer."""
    # Python first compares objects by identity, so comparing two such tables is fast.
    zero, one = Fraction(0), Fraction(1)
    return tuple(tuple(one if i == x else zero for i in range(answers)) for x in range(answers))


def decoder(table: Table, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder for `targets`, with D₀ = diag(Q p₀) for the design prior (None: uniform).

    A target is identifiable iff it is in the row space of Q, which is decided by exact ranks. If Q
    has full column rank, V is computed by the formula of this module. Otherwise the formula is
    applied to a maximal set of independent answers; for identifiable targets the result equals the
    rows of the pseudo-inverse (docs/maths/estimator.md).
    """
    # None stands for the shares, so that the cache need not hash the identity matrix.
    return _solved(table, None if targets is shares(table.answers) else targets, design_prior)


@lru_cache(maxsize=64)
def _solved(table: Table, targets: Targets | None, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder by exact least squares.

    targets : None for the shares.
    """
    rows = shares(table.answers) if targets is None else targets
    prior = design_prior if design_prior is not None else (1,) * table.answers
    weights = table.weights
    fallback = not _reaches_all(weights, prior)
    if fallback:
        prior = (1,) * table.answers
    size = rational.rank(weights)
    identifiable = _identifiable(weights, rows, size)
    chosen = _independent_answers(weights, size)
    gram, weighted, _ = rational.normal_equations(weights, prior)
    # (QᵀΓQ)⁻¹QᵀΓ on the selected answers is a left inverse of Q there. The weights are Q times
    # `table.denominator`, which explains that factor below.
    inverse = rational.solve(
        [[gram[i][j] for j in chosen] for i in chosen], [weighted[i] for i in chosen]
    )
    scaled = [
        [w[j] * table.denominator for j in chosen]
        for w, is_identifiable in zip(rows, identifiable, strict=True)
        if is_identifiable
    ]
    decoded = iter(rational.product(scaled, inverse) if scaled else ())
    decoder_rows = tuple(
        next(decoded) if is_identifiable else None for is_identifiable in identifiable
    )
    return Decoder(table, rows, decoder_rows, size, design_prior, fallback)


def estimable(table: Table) -> rational.FractionRows:
    """Return the reduced echelon basis of the estimable targets, which are the row space of Q."""
    # Weights have one row per answer, so their columns are the rows of Q.
    return rational.row_echelon(list(zip(*table.weights, strict=True)))


def _reaches_all(weights: Rows, prior: Sequence[int]) -> bool:
    return all(
        any(n and w for n, w in zip(prior, column, strict=True))
        for column in zip(*weights, strict=True)
    )


def _identifiable(weights: Rows, targets: Targets, size: int) -> list[bool]:
    if size == len(weights):
        return [True] * len(targets)  # full rank: every target is in the span
    columns = [list(column) for column in zip(*weights, strict=True)]
    return [rational.rank([*columns, rational.whole(target)]) == size for target in targets]


def _independent_answers(weights: Rows, size: int) -> list[int]:
    """Return the first maximal set of answers whose rows of weights are linearly independent."""
    if size == len(weights):
        return list(range(size))
    # The pivots of the echelon form of the transpose are the first independent rows.
    echelon = rational.row_echelon(list(zip(*weights, strict=True)))
    return [next(x for x, v in enumerate(row) if v) for row in echelon]
