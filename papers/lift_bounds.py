# SPDX-License-Identifier: Apache-2.0
"""Bounds that follow from (ε_l, ε_u)-ALIP: Lift's propositions in corrected form (erratum 9.20).

m = e^−ε_l ≤ l(s, y) ≤ M = e^ε_u. Because Σ_s P(s) l(s, y) = 1 for every report, lifts above 1
require lifts below 1, and both sides enter the bounds. The paper uses only one side, which fails if
that side is the smaller one. Proofs: docs/maths/lift.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class AlipBounds:
    """Bounds that hold for every mechanism with ALIP; math.inf if the required side is missing.

    l1 to alpha_inverse : bounds for every report, hence for the maximum over the reports.
    total_variation, chi2_divergence : bounds for averages over the reports.
    information : in nats; bounds I(S;Y), and Sibson's and Arimoto's information of every order.
    secret_ldp : a ratio.

    All bounds are exact fractions, except `information`.
    """

    l1: Number
    chi2: Number
    alpha: Number
    l1_inverse: Number
    chi2_inverse: Number
    alpha_inverse: Number
    total_variation: Number
    chi2_divergence: Number
    information: float
    secret_ldp: Number


def of_alip(low: tuple[int, int] | None, high: tuple[int, int] | None) -> AlipBounds:
    """Return the bounds that follow from Ψ ≥ 1/low and Λ ≤ high  [Lift Props 1, 3, 5, corrected].

    low, high : levels (p, q), or None for a side that is not promised (m = 0 or M = ∞).

    ℓ1 ≤ 2(M−1)(1−m)/(M−m), T at most half of it, χ² ≤ (M−1)(1−m). With δ = max(1/m − 1, 1 − 1/M):
    ℓ1-inverse ≤ δ and χ²-inverse ≤ δ².
    """
    m = Fraction(low[1], low[0]) if low else Fraction(0)
    M: Number = Fraction(*high) if high else math.inf
    l1, chi2 = _two_sided_bounds(m, high)
    inverse: Number = 1 / m if m else math.inf
    # |1/l − 1| is convex in 1/l, so it is largest at one of the two ends l = m and l = M.
    delta = max(inverse - 1, 1 - 1 / M)
    return AlipBounds(
        l1=l1,
        chi2=chi2,
        alpha=M,
        l1_inverse=delta,
        chi2_inverse=delta * delta,
        alpha_inverse=inverse,
        total_variation=l1 / 2,
        chi2_divergence=chi2,
        information=math.log(M),
        secret_ldp=M * inverse,
    )


def _two_sided_bounds(m: Fraction, high: tuple[int, int] | None) -> tuple[Number, Number]:
    """Return the bounds of ℓ1 and χ²; lifts that take only the values m and M attain them."""
    # m = 1 forces every lift to 1; the formula below would divide 0 by 0 at M = 1.
    if m == 1:
        return Fraction(0), Fraction(0)
    if high is None:
        return 2 * (1 - m), math.inf
    M = Fraction(*high)
    return 2 * (M - 1) * (1 - m) / (M - m), (M - 1) * (1 - m)


def max_lift_from(measure: str, value: float, mass: float, order: float = 2) -> float:
    """Return an upper bound of Λ(y) from an average of the same report.

    [Lift Prop 4; its second part with the root that the paper omits]

    measure : l1, chi2 or alpha.
    value : v, an upper bound of the average.
    mass : P(s) of the secret with the largest lift, in (0, 1].

    l1: 1 + v/P; chi2: 1 + √(v/P); alpha: v/P^(1/α).
    """
    if measure == "l1":
        return 1 + value / mass
    return 1 + math.sqrt(value / mass) if measure == "chi2" else value / math.pow(mass, 1 / order)


def min_lift_from(measure: str, value: float, mass: float, order: float = 2) -> float:
    """Return a lower bound of Ψ(y) from an inverse average of the same report.

    [Lift Prop 6; its second part with the roots that the paper omits]

    value : v, an upper bound of the average. mass : P(s) of the secret with the least lift.

    l1: P/(P + v); chi2: √P/(√P + √v); alpha: P^(1/α)/v.
    """
    if measure == "l1":
        return mass / (mass + value)
    if measure == "chi2":
        return math.sqrt(mass) / (math.sqrt(mass) + math.sqrt(value))
    return math.pow(mass, 1 / order) / value


def breach_levels(rho_1: Fraction, rho_2: Fraction) -> tuple[Fraction, Fraction]:
    """Return the least Ψ and the largest Λ that rule out ρ₁-to-ρ₂ breaches in both directions.

    Under these levels, the probability of an event of the secret never rises from at most ρ₁ to
    above ρ₂, nor falls from at least ρ₂ to below ρ₁: (1−ρ₂)/(1−ρ₁) ≤ Ψ and Λ ≤ ρ₂/ρ₁  [Lift Prop
    A1]. The downward direction needs both sides (docs/maths/lift.md).

    Raises ValueError unless 0 < ρ₁ < ρ₂ < 1.
    """
    if not 0 < rho_1 < rho_2 < 1:
        raise ValueError("0 < ρ₁ < ρ₂ < 1")
    return (1 - rho_2) / (1 - rho_1), rho_2 / rho_1
