# SPDX-License-Identifier: Apache-2.0
"""Sanitisations under (ε, δ)-DP: composition, error bounds, sufficient checks  [Thesis ch. 3, 4].

E denotes e^ε and is rational, so all numbers are exact. Corrections: erratum 9.4.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from frankly_protocol.audit import Claim, require_private, worst
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

Row = Sequence[int]


def sanitised(parent: DenseMechanism, n: int) -> ProductMechanism:
    """Return the product sanitisation of n ≥ 2 rows, each by the parent  [Thesis Def 3.5]."""
    return ProductMechanism((parent,) * n)


def require_private_for_neighbours(mechanism: ProductMechanism, claim: Claim) -> None:
    """Raise unless (ε, δ)-DP holds for databases that differ in one row  [Thesis Thm 3.5, Cor 4.3].

    It holds iff every factor keeps the claim on its own. Raises DocumentRejected("privacy") for the
    first factor that does not.
    """
    for factor in mechanism.factors:
        require_private(factor, claim)


def delta_needed(mechanism: DenseMechanism, E: Fraction) -> Fraction:
    """Return the least δ for which the mechanism is (ε, δ)-DP (erratum 9.4)."""
    claim = Claim("dp", E.as_integer_ratio(), delta=(0, 1))
    return worst(mechanism, replace(claim)).ratio or Fraction(0)


def sufficient_set(row: Row, other_row: Row) -> tuple[int, ...]:
    """Return S = {y : Q(y|x) > Q(y|x')}  [Thesis Thm 4.1].

    If no subset of S breaks (ε, δ), no set of reports does.
    """
    return tuple(y for y, (w, v) in enumerate(zip(row, other_row, strict=True)) if w > v)


def ratio_classes(row: Row, other_row: Row) -> tuple[tuple[int, ...], ...]:
    """Return S in classes of equal Q(y|x)/Q(y|x'), largest first  [Thesis Thm 4.2, (4.6)].

    If a class as a whole keeps (ε, δ), so do all its subsets; for δ = 0, checking the classes is
    enough for all sets [Cor 4.1]. Ratios are compared exactly: float errors would split classes of
    equal ratio, which is why Example 4.2 counts 1092 checks although 924 are enough.
    """
    classes: dict[Fraction | None, list[int]] = {}
    for y in sufficient_set(row, other_row):
        classes.setdefault(Fraction(row[y], other_row[y]) if other_row[y] else None, []).append(y)
    finite = sorted((ratio for ratio in classes if ratio is not None), reverse=True)
    ordered: list[Fraction | None] = [*([None] if None in classes else []), *finite]
    return tuple(tuple(classes[ratio]) for ratio in ordered)


def breaks(row: Row, other_row: Row, reports: Sequence[int], E: Fraction, delta: Fraction) -> bool:
    """Return True if P(A|x) > E·P(A|x') + δ for a set A of reports  [Thesis (3.6)].

    row, other_row : whole numbers of equal sums.
    """
    mass, other_mass = sum(row[y] for y in reports), sum(other_row[y] for y in reports)
    return mass > E * other_mass + delta * sum(row)


def exponent_of(p: Fraction, m: int) -> Fraction:
    """Return e^k = 1 + 1/p − m of the exponential mechanism of the same table  [Thesis (4.16)].

    p : in (0, 1/(m−1)].
    """
    return 1 + 1 / p - m


def wrong_of(exponent: Fraction, m: int) -> Fraction:
    """Return p = 1/(e^k + m − 1), the inverse of `exponent_of`."""
    return 1 / (exponent + m - 1)


def wrong_range(E: Fraction, delta: Fraction, m: int) -> tuple[Fraction, Fraction]:
    """Return the least and the largest p that are (ε, δ)-DP  [Thesis Thm 4.6, (4.17)]."""
    return (1 - delta) / (E + m - 1), min(Fraction(1, m - 1), (E + delta) / (1 + (m - 1) * E))


def error_bound(E: Fraction, delta: Fraction, diameter: Fraction = Fraction(1)) -> Fraction:
    """Return the lower bound of the max-mean error for data of this diameter  [Thesis (3.14)]."""
    return diameter * (1 - delta) / (2 * (1 + E))


def max_mean_error(mechanism: DenseMechanism) -> Fraction:
    """Return max_x P(report ≠ x), the max-mean Hamming error  [Thesis Def 3.6]."""
    return max(1 - mechanism.probability(x, x) for x in range(mechanism.answers))
