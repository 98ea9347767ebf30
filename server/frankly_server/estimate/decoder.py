# SPDX-License-Identifier: Apache-2.0
"""The fixed decoder V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹, exact in rationals (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from frankly_protocol.mechanisms import DenseMechanism

from frankly_server import rational

Targets = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class Decoder:
    """For each target w the exact row v with E[v·(counts/n)] = w·p for every p, or None if there is none.

    mechanism : whose reports are decoded. targets : W, one row per target, one column per answer. rows : V, one row per
    target, one column per report. rank : of Q. design_prior : p₀ as it was given. fallback : the design prior left a
    possible report without mass, so the uniform prior was used for D₀ instead (any D₀ is unbiased; it only weighs the
    reports).
    """

    mechanism: DenseMechanism
    targets: Targets
    rows: tuple[tuple[Fraction, ...] | None, ...]
    rank: int
    design_prior: tuple[int, ...] | None
    fallback: bool

    def apply(self, counts: Sequence[int]) -> tuple[Fraction | None, ...]:
        """Return the exact unbiased estimates from counts per report; None if not identifiable or without reports."""
        n = sum(counts)
        return tuple(
            None if row is None or n == 0 else sum((v * c for v, c in zip(row, counts, strict=True)), Fraction(0)) / n
            for row in self.rows
        )


def shares(answers: int) -> Targets:
    """Return the identity: every answer's share is a target."""
    return tuple(tuple(Fraction(int(i == x)) for i in range(answers)) for x in range(answers))


@lru_cache(maxsize=64)
def decoder(mechanism: DenseMechanism, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder for `targets`, D₀ = diag(Q p₀) from the published design prior (None: uniform).

    A target is identifiable iff it lies in the span of the columns Q(y|·), decided by exact ranks. If Q has full column
    rank (in the usual orientation) V is the formula above; otherwise the formula on a maximal set of independent
    answers, which gives every identifiable target the row of the pseudo-inverse (docs/maths/estimator.md).
    """
    weights = mechanism.weights
    prior = design_prior if design_prior is not None else (1,) * mechanism.answers
    fallback = not _reaches_all(weights, prior)
    if fallback:
        prior = (1,) * mechanism.answers
    size = rational.rank(weights)
    known = _identifiable(mechanism, targets, size)
    chosen = _independent_answers(weights, size)
    gram, weighted, _ = rational.normal_equations(weights, prior)
    # (QᵀΓQ)⁻¹QᵀΓ on the chosen answers: a left inverse of Q there. Weights are 2^bits·Q, hence the factor.
    inverse = rational.solve([[gram[i][j] for j in chosen] for i in chosen], [weighted[i] for i in chosen])
    wanted = [[w[j] * mechanism.denominator for j in chosen] for w, ok in zip(targets, known, strict=True) if ok]
    decoded = iter(rational.product(wanted, inverse) if wanted else ())
    return Decoder(
        mechanism, targets, tuple(next(decoded) if ok else None for ok in known), size, design_prior, fallback
    )


def _reaches_all(weights: Sequence[Sequence[int]], prior: Sequence[int]) -> bool:
    return all(any(n and w for n, w in zip(prior, column, strict=True)) for column in zip(*weights, strict=True))


def _identifiable(mechanism: DenseMechanism, targets: Targets, size: int) -> list[bool]:
    if size == mechanism.answers:
        return [True] * len(targets)
    columns = [list(column) for column in zip(*mechanism.weights, strict=True)]
    return [rational.rank([*columns, rational.whole(target)]) == size for target in targets]


def _independent_answers(weights: Sequence[Sequence[int]], size: int) -> list[int]:
    """Return the first maximal set of answers whose rows of weights are linearly independent."""
    if size == len(weights):
        return list(range(size))
    # The pivots of the echelon form of the transpose are the first independent rows.
    echelon = rational.row_echelon(list(zip(*weights, strict=True)))
    return [next(x for x, v in enumerate(row) if v) for row in echelon]
