# SPDX-License-Identifier: Apache-2.0
"""Fixed decoder V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹ of reports, in exact fractions (spec 8.1).

Here Q has one row per report. D₀ is the diagonal of the reports' probabilities under a prior p₀.
Its inverse is rounded to 64 bits, which leaves V exactly unbiased.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from math import lcm

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.estimate.kronecker import Kronecker
from frankly_design.numeric import rational

Targets = tuple[tuple[Fraction, ...], ...]
Rows = Sequence[Sequence[int]]
Row = tuple[Fraction, ...]
Table = DenseMechanism | ProductMechanism

MAX_CELLS = 1 << 20
"""Largest number of joint answers × joint reports of a product; 3 questions of 10 choices fit."""


@dataclass(frozen=True)
class Decoder:
    """Exact unbiased decoder: for each target w the row v with E[v·(counts/n)] = w·p for every p.

    mechanism : the mechanism of the reports.
    targets : W, one row per target, one column per answer.
    rows : V, one row per target, one column per report; None for a target that is not identifiable.
    rank : rank of Q.
    design_prior : p₀ as published.
    fallback : True if some possible report has probability 0 under the design prior. D₀ is then
    computed from the uniform prior. V is still unbiased, because D₀ only weights the reports.
    """

    mechanism: Table
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
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.mechanism.reports)


@lru_cache(maxsize=16)
def shares(answers: int) -> Targets:
    """Return the identity matrix as targets: the share of every answer."""
    # Python first compares objects by identity, so comparing two such tables is fast.
    zero, one = Fraction(0), Fraction(1)
    return tuple(tuple(one if i == x else zero for i in range(answers)) for x in range(answers))


def weights_of(mechanism: Table) -> Rows:
    """Return integers proportional to Q(y|x), row = truth; for a product the Kronecker product."""
    if isinstance(mechanism, DenseMechanism):
        return mechanism.weights
    return reduce(_kronecker, (factor.weights for factor in mechanism.factors))


def decoder(mechanism: Table, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder for `targets`, with D₀ = diag(Q p₀) for the design prior (None: uniform).

    A target is identifiable iff it is in the row space of Q, which is decided by exact ranks. If Q
    has full column rank, V is computed by the formula of this module. Otherwise the formula is
    applied to a maximal set of independent answers; for identifiable targets the result equals the
    rows of the pseudo-inverse (docs/maths/estimator.md). A product of full rank is decoded factor
    by factor: V₁ ⊗ V₂ ⊗ … is a left inverse of Q₁ ⊗ Q₂ ⊗ … .

    Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
    """
    if isinstance(mechanism, ProductMechanism):
        parts = factor_decoders(mechanism, design_prior)
        if parts is not None:
            return _of_factors(mechanism, parts, targets, design_prior)
    # None stands for the shares, so that the cache need not hash the identity matrix.
    return _solved(
        mechanism, None if targets is shares(mechanism.answers) else targets, design_prior
    )


def factor_decoders(
    mechanism: ProductMechanism, design_prior: tuple[int, ...] | None
) -> tuple[Decoder, ...] | None:
    """Return the decoder of each factor's shares, with that factor's marginal of the prior.

    Returns None if some factor is rank-deficient.

    Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
    """
    if mechanism.answers * mechanism.reports > MAX_CELLS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "there are too many joint answers to estimate at once: request fewer questions together",
            "targets",
        )
    margins = _margins(mechanism, design_prior)
    parts = tuple(
        _solved(factor, None, margin)
        for factor, margin in zip(mechanism.factors, margins, strict=True)
    )
    return parts if all(part.rank == part.mechanism.answers for part in parts) else None


def inverse_of(parts: Sequence[Decoder]) -> tuple[Kronecker, int]:
    """Return (V₁ ⊗ V₂ ⊗ … in integers, common denominator) from the factors' decoders."""
    matrices, denominator = [], 1
    for part in parts:
        rows = [row for row in part.whole if row is not None]
        scale = lcm(*(row_denominator for _, row_denominator in rows))
        # dtype=object stores Python integers, because the numerators exceed 64 bits.
        integers = [[v * (scale // row_denominator) for v in row] for row, row_denominator in rows]
        matrices.append(np.array(integers, dtype=object))
        denominator *= scale
    return Kronecker(matrices), denominator


def product_shares(parts: Sequence[Decoder], counts: Sequence[int]) -> tuple[Fraction, ...]:
    """Return the exact unbiased shares of a product from its factors' decoders and joint counts."""
    inverse, denominator = inverse_of(parts)
    n = sum(counts)
    return tuple(Fraction(v, denominator * n) for v in inverse @ np.array(counts, dtype=object))


@lru_cache(maxsize=64)
def _solved(
    mechanism: Table, targets: Targets | None, design_prior: tuple[int, ...] | None
) -> Decoder:
    """Return the decoder by exact least squares on the full matrix.

    targets : None for the shares.
    """
    rows = shares(mechanism.answers) if targets is None else targets
    prior = design_prior if design_prior is not None else (1,) * mechanism.answers
    weights = weights_of(mechanism)
    fallback = not _reaches_all(weights, prior)
    if fallback:
        prior = (1,) * mechanism.answers
    size = rational.rank(weights)
    identifiable = _identifiable(weights, rows, size)
    chosen = _independent_answers(weights, size)
    gram, weighted, _ = rational.normal_equations(weights, prior)
    # (QᵀΓQ)⁻¹QᵀΓ on the selected answers is a left inverse of Q there. The weights are Q times
    # `mechanism.denominator`, which explains that factor below.
    inverse = rational.solve(
        [[gram[i][j] for j in chosen] for i in chosen], [weighted[i] for i in chosen]
    )
    scaled = [
        [w[j] * mechanism.denominator for j in chosen]
        for w, is_identifiable in zip(rows, identifiable, strict=True)
        if is_identifiable
    ]
    decoded = iter(rational.product(scaled, inverse) if scaled else ())
    decoder_rows = tuple(
        next(decoded) if is_identifiable else None for is_identifiable in identifiable
    )
    return Decoder(mechanism, rows, decoder_rows, size, design_prior, fallback)


def estimable(mechanism: Table) -> rational.FractionRows:
    """Return the reduced echelon basis of the estimable targets, which are the row space of Q."""
    # `weights_of` returns the transpose of Q, so its columns are the rows of Q.
    return rational.row_echelon(list(zip(*weights_of(mechanism), strict=True)))


def _of_factors(
    mechanism: ProductMechanism,
    parts: Sequence[Decoder],
    targets: Targets,
    design_prior: tuple[int, ...] | None,
) -> Decoder:
    # Targets are decoded one by one through the factors, so there is no dense inverse.
    inverse, denominator = inverse_of(parts)
    rows = []
    for target in targets:
        row, scale = rational.over_one_denominator(target)
        decoded = np.array(row, dtype=object) @ inverse
        rows.append(tuple(Fraction(v, scale * denominator) for v in decoded))
    fallback = any(part.fallback for part in parts)
    return Decoder(mechanism, targets, tuple(rows), mechanism.answers, design_prior, fallback)


def _margins(
    mechanism: ProductMechanism, prior: tuple[int, ...] | None
) -> list[tuple[int, ...] | None]:
    if prior is None:
        return [None] * len(mechanism.factors)
    margins = [[0] * factor.answers for factor in mechanism.factors]
    for x, n in enumerate(prior):
        for margin, part in zip(margins, mechanism.parts(x), strict=True):
            margin[part] += n
    return list(map(tuple, margins))


def _kronecker(left: Rows, right: Rows) -> Rows:
    return [[a * b for a in row for b in other] for row in left for other in right]


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
