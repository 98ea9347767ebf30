# SPDX-License-Identifier: Apache-2.0
"""The fixed decoder V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹, exact in rationals (DESIGN §6)."""

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

from frankly_server import rational
from frankly_server.estimate.kronecker import Kronecker

Targets = tuple[tuple[Fraction, ...], ...]
Rows = Sequence[Sequence[int]]
Row = tuple[Fraction, ...]
Table = DenseMechanism | ProductMechanism

MAX_CELLS = 1 << 20
"""Joint answers times joint reports of a product that is decoded; 3 questions of 10 choices are just below."""


@dataclass(frozen=True)
class Decoder:
    """For each target w the exact row v with E[v·(counts/n)] = w·p for every p, or None if there is none.

    mechanism : whose reports are decoded. targets : W, one row per target, one column per answer. rows : V, one row per
    target, one column per report. rank : of Q. design_prior : p₀ as it was given. fallback : the design prior left a
    possible report without mass, so the uniform prior was used for D₀ instead (any D₀ is unbiased; it only weighs the
    reports).
    """

    mechanism: Table
    targets: Targets
    rows: tuple[tuple[Fraction, ...] | None, ...]
    rank: int
    design_prior: tuple[int, ...] | None
    fallback: bool

    def apply(self, counts: Sequence[int]) -> tuple[Fraction | None, ...]:
        """Return the exact unbiased estimates from counts per report; None if not identifiable or without reports."""
        n = sum(counts)
        return tuple(
            None
            if row is None or n == 0
            else Fraction(sum(v * c for v, c in zip(row[0], counts, strict=True)), row[1] * n)
            for row in self.whole
        )

    @cached_property
    def whole(self) -> tuple[tuple[list[int], int] | None, ...]:
        """The rows as (numerators, one denominator)."""
        return tuple(None if row is None else rational.over_one_denominator(row) for row in self.rows)

    def floats(self) -> NDArray[np.float64]:
        """Return the rows that there are as floats, shape (identifiable targets, reports)."""
        rows = [[v / row[1] for v in row[0]] for row in self.whole if row is not None]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.mechanism.reports)


@lru_cache(maxsize=16)
def shares(answers: int) -> Targets:
    """Return the identity: every answer's share is a target."""
    zero, one = Fraction(0), Fraction(1)  # the same two throughout, so that comparing whole tables is quick
    return tuple(tuple(one if i == x else zero for i in range(answers)) for x in range(answers))


def weights_of(mechanism: Table) -> Rows:
    """Return whole numbers proportional to Q, row = truth; a product's are the Kronecker product of its factors'."""
    if isinstance(mechanism, DenseMechanism):
        return mechanism.weights
    return reduce(_kronecker, (factor.weights for factor in mechanism.factors))


def decoder(mechanism: Table, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder for `targets`, D₀ = diag(Q p₀) from the published design prior (None: uniform).

    A target is identifiable iff it lies in the span of the columns Q(y|·), decided by exact ranks. If Q has full column
    rank (in the usual orientation) V is the formula above; otherwise the formula on a maximal set of independent
    answers, which gives every identifiable target the row of the pseudo-inverse (docs/maths/estimator.md). A product of
    full rank is decoded factor by factor: V₁ ⊗ V₂ ⊗ … is a left inverse of Q₁ ⊗ Q₂ ⊗ … .

    Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
    """
    if isinstance(mechanism, ProductMechanism):
        parts = factor_decoders(mechanism, design_prior)
        if parts is not None:
            return _of_factors(mechanism, parts, targets, design_prior)
    return _solved(mechanism, None if targets is shares(mechanism.answers) else targets, design_prior)


def factor_decoders(mechanism: ProductMechanism, design_prior: tuple[int, ...] | None) -> tuple[Decoder, ...] | None:
    """Return the decoder of each factor's shares, with its margin of the design prior; None if some rank is deficient.

    Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
    """
    if mechanism.answers * mechanism.reports > MAX_CELLS:
        words = "so many joint answers cannot be told apart at once: ask for fewer questions together"
        raise InvalidInput(Problem.UNSUPPORTED, words, "targets")
    margins = _margins(mechanism, design_prior)
    parts = tuple(_solved(factor, None, margin) for factor, margin in zip(mechanism.factors, margins, strict=True))
    return parts if all(part.rank == part.mechanism.answers for part in parts) else None


def inverse_of(parts: Sequence[Decoder]) -> tuple[Kronecker, int]:
    """Return (V₁ ⊗ V₂ ⊗ … in whole numbers, one denominator), of the decoders of factors' shares."""
    matrices, denominator = [], 1
    for part in parts:
        rows = [row for row in part.whole if row is not None]
        scale = lcm(*(own for _, own in rows))
        matrices.append(np.array([[v * (scale // own) for v in row] for row, own in rows], dtype=object))
        denominator *= scale
    return Kronecker(matrices), denominator


def product_shares(parts: Sequence[Decoder], counts: Sequence[int]) -> tuple[Fraction, ...]:
    """Return the exact unbiased shares of a product from its factors' decoders and counts per report, not all 0."""
    inverse, denominator = inverse_of(parts)
    n = sum(counts)
    return tuple(Fraction(v, denominator * n) for v in inverse @ np.array(counts, dtype=object))


@lru_cache(maxsize=64)
def _solved(mechanism: Table, targets: Targets | None, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder by exact least squares on the whole matrix; targets : None for the shares."""
    wanted_rows = shares(mechanism.answers) if targets is None else targets
    prior = design_prior if design_prior is not None else (1,) * mechanism.answers
    weights = weights_of(mechanism)
    fallback = not _reaches_all(weights, prior)
    if fallback:
        prior = (1,) * mechanism.answers
    size = rational.rank(weights)
    known = _identifiable(weights, wanted_rows, size)
    chosen = _independent_answers(weights, size)
    gram, weighted, _ = rational.normal_equations(weights, prior)
    # (QᵀΓQ)⁻¹QᵀΓ on the chosen answers: a left inverse of Q there. Weights are whole multiples of Q, hence the factor.
    inverse = rational.solve([[gram[i][j] for j in chosen] for i in chosen], [weighted[i] for i in chosen])
    wanted = [[w[j] * mechanism.denominator for j in chosen] for w, ok in zip(wanted_rows, known, strict=True) if ok]
    decoded = iter(rational.product(wanted, inverse) if wanted else ())
    return Decoder(
        mechanism, wanted_rows, tuple(next(decoded) if ok else None for ok in known), size, design_prior, fallback
    )


def estimable(mechanism: Table) -> rational.FractionRows:
    """Return the canonical basis of what can be estimated: the row space of Q in the usual orientation."""
    return rational.row_echelon(list(zip(*weights_of(mechanism), strict=True)))


def _of_factors(
    mechanism: ProductMechanism, parts: Sequence[Decoder], targets: Targets, design_prior: tuple[int, ...] | None
) -> Decoder:
    inverse, denominator = inverse_of(parts)
    rows = []
    for target in targets:
        row, scale = rational.over_one_denominator(target)
        decoded = np.array(row, dtype=object) @ inverse
        rows.append(tuple(Fraction(v, scale * denominator) for v in decoded))
    fallback = any(part.fallback for part in parts)
    return Decoder(mechanism, targets, tuple(rows), mechanism.answers, design_prior, fallback)


def _margins(mechanism: ProductMechanism, prior: tuple[int, ...] | None) -> list[tuple[int, ...] | None]:
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
    return all(any(n and w for n, w in zip(prior, column, strict=True)) for column in zip(*weights, strict=True))


def _identifiable(weights: Rows, targets: Targets, size: int) -> list[bool]:
    if size == len(weights):
        return [True] * len(targets)
    columns = [list(column) for column in zip(*weights, strict=True)]
    return [rational.rank([*columns, rational.whole(target)]) == size for target in targets]


def _independent_answers(weights: Rows, size: int) -> list[int]:
    """Return the first maximal set of answers whose rows of weights are linearly independent."""
    if size == len(weights):
        return list(range(size))
    # The pivots of the echelon form of the transpose are the first independent rows.
    echelon = rational.row_echelon(list(zip(*weights, strict=True)))
    return [next(x for x, v in enumerate(row) if v) for row in echelon]
