# SPDX-License-Identifier: Apache-2.0
"""The fixed decoder V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹, exact in rationals (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem

from frankly_server import rational

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


@lru_cache(maxsize=16)
def shares(answers: int) -> Targets:
    """Return the identity: every answer's share is a target."""
    return tuple(tuple(Fraction(int(i == x)) for i in range(answers)) for x in range(answers))


def weights_of(mechanism: Table) -> Rows:
    """Return whole numbers proportional to Q, row = truth; a product's are the Kronecker product of its factors'."""
    if isinstance(mechanism, DenseMechanism):
        return mechanism.weights
    return reduce(_kronecker, (factor.weights for factor in mechanism.factors))


@lru_cache(maxsize=64)
def decoder(mechanism: Table, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder:
    """Return the decoder for `targets`, D₀ = diag(Q p₀) from the published design prior (None: uniform).

    A target is identifiable iff it lies in the span of the columns Q(y|·), decided by exact ranks. If Q has full column
    rank (in the usual orientation) V is the formula above; otherwise the formula on a maximal set of independent
    answers, which gives every identifiable target the row of the pseudo-inverse (docs/maths/estimator.md). A product of
    full rank is decoded factor by factor: V₁ ⊗ V₂ ⊗ … is a left inverse of Q₁ ⊗ Q₂ ⊗ … .

    Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
    """
    if isinstance(mechanism, ProductMechanism):
        if mechanism.answers * mechanism.reports > MAX_CELLS:
            words = "so many joint answers cannot be told apart at once: ask for fewer questions together"
            raise InvalidInput(Problem.UNSUPPORTED, words, "targets")
        found = _factored(mechanism, targets, design_prior)
        if found is not None:
            return found
    prior = design_prior if design_prior is not None else (1,) * mechanism.answers
    weights = weights_of(mechanism)
    fallback = not _reaches_all(weights, prior)
    if fallback:
        prior = (1,) * mechanism.answers
    size = rational.rank(weights)
    known = _identifiable(weights, targets, size)
    chosen = _independent_answers(weights, size)
    gram, weighted, _ = rational.normal_equations(weights, prior)
    # (QᵀΓQ)⁻¹QᵀΓ on the chosen answers: a left inverse of Q there. Weights are whole multiples of Q, hence the factor.
    inverse = rational.solve([[gram[i][j] for j in chosen] for i in chosen], [weighted[i] for i in chosen])
    wanted = [[w[j] * mechanism.denominator for j in chosen] for w, ok in zip(targets, known, strict=True) if ok]
    decoded = iter(rational.product(wanted, inverse) if wanted else ())
    return Decoder(
        mechanism, targets, tuple(next(decoded) if ok else None for ok in known), size, design_prior, fallback
    )


def estimable(mechanism: Table) -> rational.FractionRows:
    """Return the canonical basis of what can be estimated: the row space of Q in the usual orientation."""
    return rational.row_echelon(list(zip(*weights_of(mechanism), strict=True)))


def _factored(mechanism: ProductMechanism, targets: Targets, design_prior: tuple[int, ...] | None) -> Decoder | None:
    """Return the decoder by Kronecker factors, each with its margin of the design prior; None if Q is deficient."""
    parts = []
    for j, factor in enumerate(mechanism.factors):
        part = decoder(factor, shares(factor.answers), _margin(mechanism, design_prior, j))
        rows = [row for row in part.rows if row is not None]
        if len(rows) < factor.answers:
            return None
        parts.append((part, rows))
    inverse = reduce(_kronecker_fractions, (rows for _, rows in parts))
    decoded = inverse if targets == shares(mechanism.answers) else rational.product(targets, inverse)
    fallback = any(part.fallback for part, _ in parts)
    return Decoder(mechanism, targets, tuple(map(tuple, decoded)), mechanism.answers, design_prior, fallback)


def _margin(mechanism: ProductMechanism, prior: tuple[int, ...] | None, j: int) -> tuple[int, ...] | None:
    if prior is None:
        return None
    margin = [0] * mechanism.factors[j].answers
    for x, n in enumerate(prior):
        margin[mechanism.parts(x)[j]] += n
    return tuple(margin)


def _kronecker(left: Rows, right: Rows) -> Rows:
    return [[a * b for a in row for b in other] for row in left for other in right]


def _kronecker_fractions(left: list[Row], right: list[Row]) -> list[Row]:
    return [tuple(a * b for a in row for b in other) for row in left for other in right]


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
