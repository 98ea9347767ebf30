# SPDX-License-Identifier: Apache-2.0
"""What the thesis proves of sanitisations under (ε, δ)-DP: composition, bounds, what must be checked (chapters 3, 4).

E stands for e^ε, a rational as everywhere; all figures are exact but for logarithms. Corrections: DESIGN §9.4.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from frankly_protocol.audit import Claim, require_private, worst
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

Row = Sequence[int]


def sanitised(parent: DenseMechanism, n: int) -> ProductMechanism:
    """Return the product sanitisation of databases of n rows, each through the parent  [Thesis Def 3.5]; n ≥ 2."""
    return ProductMechanism((parent,) * n)


def require_private_for_neighbours(mechanism: ProductMechanism, claim: Claim) -> None:
    """Raise unless databases that differ in one row are (ε, δ)-indistinguishable  [Thesis Thm 3.5, Cor 4.3].

    That is so iff every factor keeps the claim on its own: DocumentRejected("privacy") for the first that does not.
    """
    for factor in mechanism.factors:
        require_private(factor, claim)


def delta_needed(mechanism: DenseMechanism, E: Fraction) -> Fraction:
    """Return the least δ for which the mechanism is (ε, δ)-DP, over all sets of reports (DESIGN §9.4)."""
    claim = Claim("dp", E.as_integer_ratio(), delta=(0, 1))
    return worst(mechanism, replace(claim)).ratio or Fraction(0)


def sufficient_set(row: Row, other: Row) -> tuple[int, ...]:
    """Return S = {y : Q(y|x) > Q(y|x')}: if no subset of S breaks (ε, δ), no set of reports does  [Thesis Thm 4.1]."""
    return tuple(y for y, (w, v) in enumerate(zip(row, other, strict=True)) if w > v)


def ratio_classes(row: Row, other: Row) -> tuple[tuple[int, ...], ...]:
    """Return S in classes of equal Q(y|x)/Q(y|x'), the largest ratio first  [Thesis Thm 4.2, (4.6)].

    Whether a whole class breaks (ε, δ) tells of all its subsets; for δ = 0 the classes together tell of all sets
    [Cor 4.1]. Ratios are compared exactly: in floats equal ones come apart, which is how Example 4.2 counts 1092 checks
    where 924 are enough.
    """
    found: dict[Fraction | None, list[int]] = {}
    for y in sufficient_set(row, other):
        found.setdefault(Fraction(row[y], other[y]) if other[y] else None, []).append(y)
    finite = sorted((ratio for ratio in found if ratio is not None), reverse=True)
    ordered: list[Fraction | None] = [*([None] if None in found else []), *finite]
    return tuple(tuple(found[ratio]) for ratio in ordered)


def breaks(row: Row, other: Row, reports: Sequence[int], E: Fraction, delta: Fraction) -> bool:
    """Tell whether P(A|x) > E·P(A|x') + δ for the set A of reports  [Thesis (3.6)]; rows of equal sums."""
    ours, theirs = sum(row[y] for y in reports), sum(other[y] for y in reports)
    return ours > E * theirs + delta * sum(row)


def exponent_of(p: Fraction, m: int) -> Fraction:
    """Return e^k = 1 + 1/p − m of the discrete exponential mechanism equal to the sanitisation with p  [Thesis (4.16)].

    p : in (0, 1/(m−1)].
    """
    return 1 + 1 / p - m


def wrong_of(exponent: Fraction, m: int) -> Fraction:
    """Return p = 1/(e^k + m − 1), the inverse of `exponent_of`."""
    return 1 / (exponent + m - 1)


def exponent_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the least and the largest e^k that are (ε, δ)-DP  [Thesis Thm 4.3, (4.10), the lower end clamped at 0]."""
    return max(Fraction(0), (1 - (m - 1) * delta) / (E + delta)), (E + (m - 1) * delta) / (1 - delta)


def wrong_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the least and the largest p that are (ε, δ)-DP  [Thesis Thm 4.6, (4.17)]."""
    return (1 - delta) / (E + m - 1), min(Fraction(1, m - 1), (E + delta) / (1 + (m - 1) * E))


def error_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the least and the largest share of wrong rows, E/n = p(m−1)  [Thesis Thms 4.4 and 4.7, (4.14), (4.18)]."""
    return (1 - delta) / (1 + E / (m - 1)), min(Fraction(1), (E + delta) / (E + Fraction(1, m - 1)))


def error_bound(E: Fraction, delta: Fraction, diameter: Fraction = Fraction(1)) -> Fraction:
    """Return what no (ε, δ)-DP sanitisation's max-mean error is below, for data of this diameter  [Thesis (3.14)]."""
    return diameter * (1 - delta) / (2 * (1 + E))


def error_bound_discrete(E: Fraction, delta: Fraction, m: int, least: Fraction = Fraction(1)) -> Fraction:
    """Return the same for m values at least `least` apart: κ(m−1)(1−δ)/(m−1+E), attained for κ = 1  [Thesis (3.17)]."""
    return least * (m - 1) * (1 - delta) / (m - 1 + E)


def max_mean_error(mechanism: DenseMechanism) -> Fraction:
    """Return max_x P(report ≠ x), the max-mean Hamming error of reports that are answers  [Thesis Def 3.6]."""
    return max(1 - mechanism.probability(x, x) for x in range(mechanism.answers))
