# SPDX-License-Identifier: Apache-2.0
"""Cones of privacy notions: integer rows r with r·q ≥ 0 on a report's column q ≥ 0 (spec 1.3).

Every notion except dp is a list of pairs of averages (A, B) with A·q ≤ (m/d)·B·q for the level m/d,
multiplied out to integers. Orientation: a column q contains Q(y|x) for one report y and all answers
x (Funnel writes it as a row of Q_{y|x}).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb, gcd, lcm

import numpy as np
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.audit.ratios import listed_pairs
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.notions.walk import base_vertices
from frankly_design.numeric.rays import MAX_CANDIDATES, Ray, extreme_rays

Level = tuple[int, int]
Row = list[int]

# The largest number of reports of a published table (MAX_REPORTS).
MAX_RAYS = 4096
# Up to this many candidate rays, the rays of a cone are listed; above, column generation is used
# (docs/maths/cones.md, Listing or not).
_LISTED_CANDIDATES = 20_000
# Cones of rldp, metric-ldp, or ldp with other claims have about a² rows. For more than 20 answers
# their rays are not listed.
_MAX_LISTED_ROWS = 400
# Up to this number of averages, one row per pair is no larger than an additional variable.
_FEW_AVERAGES = 3
# Up to these numbers of answers and rows, rays are listed even if the bound on their number is
# large.
_SMALL_ANSWERS, _SMALL_ROWS = 6, 60


@dataclass(frozen=True, slots=True)
class Cone:
    """Cone of the columns that every claim allows, over `answers` answers."""

    claims: tuple[Claim, ...]
    answers: int

    @classmethod
    def of(cls, claims: Sequence[Claim], answers: int) -> "Cone":
        """Return the cone of the claims that the strictest claim of LDP does not imply.

        ε-LDP implies the other notions at its level and above, but not dpv, and metric-ldp has a
        level for each pair (docs/maths/notions.md).
        """
        strictest = min(
            (claim for claim in claims if claim.notion == "ldp"),
            key=lambda claim: Fraction(*_level(claim)),
            default=None,
        )
        if strictest is None:
            return cls(tuple(claims), answers)
        ratio = Fraction(*_level(strictest))
        needed = [
            claim
            for claim in claims
            if claim is strictest
            or claim.notion in ("dpv", "metric-ldp")
            or any(
                level is not None and Fraction(*level) < ratio
                for level in (claim.level, claim.low_level)
            )
        ]
        return cls(tuple(needed), answers)

    def rows(self) -> list[Row]:
        """Return the rows in addition to q ≥ 0; about answers² of them for ldp, metric-ldp and rldp."""
        return [row for claim in self.claims for row in rows_of(claim, self.answers)]

    def lifted_rows(self) -> list[Row]:
        """Return fewer rows, over q and auxiliary variables; their projection on q is the cone.

        `rows` has a row for each pair of averages, and at a ray many of these rows are tight.
        The constant column with all auxiliary variables equal to 1 satisfies every row strictly
        (docs/maths/generation.md, claims 8 and 17).
        """
        lifted, variables = [], 0
        for claim in self.claims:
            rows, count = _lifted(claim, self.answers)
            lifted += [(row, {variables + i: n for i, n in of.items()}) for row, of in rows]
            variables += count
        return [[*row, *(of.get(i, 0) for i in range(variables))] for row, of in lifted]

    def admits_identity(self) -> bool:
        """Return True if the exact verifier accepts the identity, which sends answers unchanged."""
        if any(
            claim.notion == "ldp" or any(min(row) < 0 for row in _ROWS[claim.notion](claim))
            for claim in self.claims
        ):
            return False
        # 16 = 2^4 is the row sum of a table with 4 bits; whether the identity is private does not
        # depend on the number of bits.
        weights = tuple(
            tuple(16 if x == y else 0 for y in range(self.answers)) for x in range(self.answers)
        )
        try:
            require_private(DenseMechanism(4, weights), *self.claims)
        except DocumentRejected:
            return False
        return True

    def rays(self) -> list[Ray]:
        """Return all extreme rays as integer columns, exactly inside the cone.

        Raises InvalidInput(optimiser_limit) if there would be too many.
        """
        if not self.is_small() and self._candidates() > MAX_CANDIDATES:
            raise _too_large()
        if self._answer_ldp_only():
            return answer_rays(_level(self.claims[0]), self.answers)
        rays = extreme_rays(self.rows(), self.answers)
        if len(rays) > MAX_RAYS:
            raise _too_large()
        return rays

    def vertices(self, p: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the rays as floats with p·v = 1, shape (n, answers), without exact arithmetic.

        Rays may occur twice. Returns None if a closed form gives the rays, or if floats cannot list
        them reliably (`walk.base_vertices`); `rays` works in both cases.
        """
        rows = [] if self._answer_ldp_only() else self.rows()
        if not rows:
            return None
        scaled = np.array(
            [[n / size for n in row] for row in rows for size in (max(map(abs, row)),)]
        )
        return base_vertices(scaled, p, MAX_RAYS)

    def is_small(self) -> bool:
        """Return True if all rays can be listed in well under a second."""
        if self._candidates() <= _LISTED_CANDIDATES:
            return True
        # For few dimensions the bound on the number of rays is far too large.
        return self.answers <= _SMALL_ANSWERS and len(self.rows()) <= _SMALL_ROWS

    def _answer_ldp_only(self) -> bool:
        return len(self.claims) == 1 and self.claims[0].notion == "ldp"

    def _candidates(self) -> int:
        """Return an upper bound on the number of rays; MAX_CANDIDATES + 1 if there are too many."""
        a = self.answers
        if self._answer_ldp_only():
            rays = 2**a - 2
            return rays if rays <= MAX_RAYS else MAX_CANDIDATES + 1
        if len(self.claims) == 1 and self.claims[0].notion in ("lip", "secret-ldp"):
            return _sparse_candidates(self.claims[0], a)
        if (
            any(claim.notion in ("ldp", "rldp", "metric-ldp") for claim in self.claims)
            and a * a > _MAX_LISTED_ROWS
        ):
            return MAX_CANDIDATES + 1
        return comb(len(self.rows()) + a, a - 1)


def _sparse_candidates(claim: Claim, a: int) -> int:
    c = len(claim.joint or ())
    # A ray with k nonzero entries has k − 1 tight rows; under lip each row is the upper or the
    # lower side of a secret.
    if claim.notion == "lip":
        return sum(comb(a, k) * comb(c, k - 1) * 2 ** (k - 1) for k in range(1, min(a, c + 1) + 1))
    # Under secret-ldp, k secrets have the largest or the smallest P(y|s), with at least one of
    # each.
    return sum(comb(a, k) * comb(c, k) * (2**k - 2) for k in range(2, min(a, c) + 1))


def answer_rays(level: Level, answers: int) -> list[Ray]:
    """Return the 2^a − 2 extreme rays of the ε-LDP cone: entries q and p, at least one of each.

    Proof: docs/maths/cones.md, claim 2.
    """
    # Dividing by the common factor of p and q keeps the integers of later products short.
    common = gcd(*level)
    p, q = level[0] // common, level[1] // common
    return [
        tuple(p if mask >> x & 1 else q for x in range(answers))
        for mask in range(1, 2**answers - 1)
    ]


def rows_of(claim: Claim, answers: int) -> list[Row]:
    """Return the rows of one notion, except those that every q ≥ 0 satisfies."""
    rows = (
        _answer_rows(_level(claim), answers)
        if claim.notion == "ldp"
        else _ROWS[claim.notion](claim)
    )
    return [row for row in rows if min(row) < 0]


def _lifted(claim: Claim, answers: int) -> tuple[list[tuple[Row, dict[int, int]]], int]:
    """Return a claim's rows, with coefficients of auxiliary variables, and the number of these."""
    averages = []
    if claim.notion == "ldp":
        averages = [([int(i == x) for i in range(answers)], 1) for x in range(answers)]
    elif claim.notion == "secret-ldp":
        averages = [(list(row), sum(row)) for row in claim.joint or ()]
    if len(averages) > _FEW_AVERAGES:
        return list(_around_threshold(_level(claim), averages)), 1
    if claim.notion == "rldp":
        return list(_around_extremes(claim)), 2 * len(claim.lower_bounds or ())
    return [(row, {}) for row in rows_of(claim, answers)], 0


def _around_threshold(
    level: Level, averages: Sequence[tuple[Row, int]]
) -> Iterator[tuple[Row, dict[int, int]]]:
    """Yield 2u ≤ (E+1)·A·q ≤ 2E·u for every average A, given as counts and their sum."""
    p, q = level
    for counts, mass in averages:
        yield [(p + q) * n for n in counts], {0: -2 * q * mass}
        yield [-(p + q) * n for n in counts], {0: 2 * p * mass}


def _around_extremes(claim: Claim) -> Iterator[tuple[Row, dict[int, int]]]:
    """Yield m_s ≤ q_su ≤ M_s and U_s ≤ E·W_t, with U and W as in `_robust_rows` but of M_s and m_t.

    M_s is (3E+1)/(2E+2) times its variable 2s, m_s is (E+3)/(2E+2) times its variable 2s + 1.
    """
    p, q = _level(claim)
    unit, above, below = 2 * (p + q), 3 * p + q, p + 3 * q
    bounds = claim.lower_bounds or ()
    size = len(bounds[0])
    answers = size * len(bounds)
    averages = []
    for s, row in enumerate(bounds):
        d = lcm(*(v for _, v in row))
        lower = [n * (d // v) for n, v in row]
        averages.append((_padded(lower, s, size, answers), d - sum(lower), d))
        for x in range(s * size, (s + 1) * size):
            unit_row = [unit * int(i == x) for i in range(answers)]
            yield [-n for n in unit_row], {2 * s: above}
            yield unit_row, {2 * s + 1: -below}
    for s, t in product(range(len(bounds)), repeat=2):
        if s != t or claim.diagonal:
            (upper, free, d), (lower, rest, e) = averages[s], averages[t]
            yield (
                [unit * (p * d * n - q * e * m) for m, n in zip(upper, lower, strict=True)],
                {2 * s: -q * e * free * above, 2 * t + 1: p * d * rest * below},
            )


def _answer_rows(level: Level, answers: int) -> Iterator[Row]:
    p, q = level
    for x, x2 in product(range(answers), repeat=2):
        if x != x2:
            yield [p if i == x2 else -q if i == x else 0 for i in range(answers)]


def _pair_rows(claim: Claim) -> Iterator[Row]:
    """Yield Q(y|x) ≤ level·L[x][z]·Q(y|z) for the pairs that have a level."""
    p, q = _level(claim)
    levels = claim.levels or ()
    for x, z, n, d in listed_pairs(levels):
        yield [p * n if i == z else -q * d if i == x else 0 for i in range(len(levels))]


def _secret_rows(claim: Claim) -> Iterator[Row]:
    """Yield P(y|s) ≤ E·P(y|t) for all s ≠ t  [Funnel Def 1, eq. 5]."""
    joint = claim.joint or ()
    masses = [sum(row) for row in joint]
    for s, t in product(range(len(joint)), repeat=2):
        if s != t:
            yield _inequality(_level(claim), joint[s], masses[s], joint[t], masses[t])


def _average_rows(claim: Claim) -> Iterator[Row]:
    """Yield P(y|s) ≤ E·P(y) and P(y) ≤ E·P(y|s) for all s  [Funnel Def 2, eq. 10]."""
    yield from _around_average(claim.joint or (), claim.level, claim.level)


def _two_sided_rows(claim: Claim) -> Iterator[Row]:
    """Yield P(y|s) ≤ E·P(y) and P(y) ≤ E_low·P(y|s), each if its level is finite  [Lift Def 3]."""
    yield from _around_average(claim.joint or (), claim.low_level, claim.level)


def _side_channel_rows(claim: Claim) -> Iterator[Row]:
    """Yield rows of ε-LIP given x_J, for all attribute sets J and all x_J  [Funnel Def 3, (19)]."""
    joint, attributes = claim.joint or (), claim.attributes or ()
    values = list(product(*map(range, attributes)))
    subsets = [
        J for size in range(len(attributes) + 1) for J in combinations(range(len(attributes)), size)
    ]
    yielded: set[tuple[int, ...]] = set()
    # Different conditions often give the same row. Each row is yielded once, because the cost of
    # an enumeration grows steeply with the number of rows.
    for J in subsets:
        for condition in product(*(range(attributes[j]) for j in J)):
            matches = [all(x[j] == v for j, v in zip(J, condition, strict=True)) for x in values]
            restricted = [
                [n if match else 0 for n, match in zip(row, matches, strict=True)] for row in joint
            ]
            for row in _around_average(
                [row for row in restricted if any(row)], claim.level, claim.level
            ):
                common = gcd(*row)
                row_key = tuple(v // common for v in row) if common else tuple(row)
                if row_key not in yielded:
                    yielded.add(row_key)
                    yield list(row_key)


def _robust_rows(claim: Claim) -> Iterator[Row]:
    """Yield A·q ≤ E·B·q for vertices A of D_s, B of D_s'  [Robust Def 3, Thm 2; erratum 9.11]."""
    corners = [_corners(row) for row in claim.lower_bounds or ()]
    size = len(corners[0])
    answers = size * len(corners)
    for s, t in product(range(len(corners)), repeat=2):
        # The guarantee holds without the rows s = s' (docs/maths/errata.md, 11).
        if s == t and not claim.diagonal:
            continue
        for (above, d), (below, e) in product(corners[s], corners[t]):
            yield _inequality(
                _level(claim),
                _padded(above, s, size, answers),
                d,
                _padded(below, t, size, answers),
                e,
            )


def _violation_rows(claim: Claim) -> Iterator[Row]:
    """Yield P(s|y) ≤ α for the sensitive secret  [Thesis eq. 6.24]."""
    joint = claim.joint or ()
    p, q = _level(claim)
    totals = [sum(column) for column in zip(*joint, strict=True)]
    yield [p * n - q * v for n, v in zip(totals, joint[claim.sensitive or 0], strict=True)]


_ROWS: dict[str, Callable[[Claim], Iterator[Row]]] = {
    "secret-ldp": _secret_rows,
    "lip": _average_rows,
    "alip": _two_sided_rows,
    "srlip": _side_channel_rows,
    "rldp": _robust_rows,
    "dpv": _violation_rows,
    "metric-ldp": _pair_rows,
}


def _level(claim: Claim) -> Level:
    if claim.level is None:
        raise ValueError(f"{claim.notion} needs a level")
    return claim.level


def _inequality(
    level: Level, left: Sequence[int], left_size: int, right: Sequence[int], right_size: int
) -> Row:
    """Return (left/left_size)·q ≤ level·(right/right_size)·q as a row of integers."""
    p, q = level
    return [p * b * left_size - q * a * right_size for a, b in zip(left, right, strict=True)]


def _around_average(
    joint: Sequence[Sequence[int]], low: Level | None, high: Level | None
) -> Iterator[Row]:
    if not joint:
        return
    totals = [sum(column) for column in zip(*joint, strict=True)]
    total = sum(totals)
    for row in joint:
        mass = sum(row)
        if high is not None:
            yield _inequality(high, row, mass, totals, total)
        if low is not None:
            yield _inequality(low, totals, total, row, mass)


def _corners(bounds: Sequence[Level]) -> list[tuple[list[int], int]]:
    """Return the vertices of {R ≥ L, ΣR = 1} as integers over a common denominator."""
    d = lcm(*(v for _, v in bounds))
    # The vertices are L + (1 − ΣL)·e_u, one for each value u.
    lower = [n * (d // v) for n, v in bounds]
    free = d - sum(lower)
    return [([v + free * (u == i) for i, v in enumerate(lower)], d) for u in range(len(bounds))]


def _padded(values: Sequence[int], s: int, size: int, answers: int) -> Row:
    return [0] * (s * size) + list(values) + [0] * (answers - (s + 1) * size)


def _too_large() -> InvalidInput:
    return InvalidInput(
        Problem.OPTIMISER_LIMIT,
        "the candidate columns are too many to list: use the method auto, or the mechanism grr "
        "with the notion ldp",
        "method",
    )
