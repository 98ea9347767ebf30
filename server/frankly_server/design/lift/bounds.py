# SPDX-License-Identifier: Apache-2.0
"""What (ε_l, ε_u)-ALIP bounds, and what bounds it: Lift's propositions in their true forms (DESIGN §9.20).

m = e^−ε_l ≤ l(s, y) ≤ M = e^ε_u. Σ_s P(s) l(s, y) = 1 for every report, so a lift above 1 is paid for by lifts below
it, and both sides enter. The paper takes one side alone, which fails where it is the smaller one. Proofs:
docs/maths/lift.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

Number = Fraction | float


@dataclass(frozen=True, slots=True)
class AlipBounds:
    """What no mechanism that keeps ALIP exceeds; math.inf where only the other side is promised.

    The first six are for every report, hence for their largest; `total_variation` and `chi2_divergence` are averages.
    information : nats, of I(S;Y), and of Sibson's and Arimoto's information of every order. secret_ldp : a ratio. All
    but the information are exact.
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
    """Return what follows from Ψ ≥ 1/low and Λ ≤ high, levels (p, q) or None  [Lift Props 1, 3, 5, corrected].

    ℓ1 ≤ 2(M−1)(1−m)/(M−m), T at most half of it, χ² ≤ (M−1)(1−m); with δ = max(1/m − 1, 1 − 1/M): ℓ1-inverse ≤ δ,
    χ²-inverse ≤ δ². For a side not promised, m = 0 or M = ∞.
    """
    m = Fraction(low[1], low[0]) if low else Fraction(0)
    M: Number = Fraction(*high) if high else math.inf
    l1, chi2 = _spread(m, high)
    inverse: Number = 1 / m if m else math.inf
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


def _spread(m: Fraction, high: tuple[int, int] | None) -> tuple[Number, Number]:
    """Return the bounds of ℓ1 and χ²: attained by lifts that take the values m and M only."""
    if m == 1:
        return Fraction(0), Fraction(0)
    if high is None:
        return 2 * (1 - m), math.inf
    M = Fraction(*high)
    return 2 * (M - 1) * (1 - m) / (M - m), (M - 1) * (1 - m)


def max_lift_from(measure: str, value: float, mass: float, order: float = 2) -> float:
    """Bound Λ(y) by an average of the same report  [Lift Prop 4, its second part with the root it lacks].

    measure : l1, chi2 or alpha. value : what it is at most. mass : P(s) of the secret with the largest lift, in (0, 1].
    l1: 1 + v/P; chi2: 1 + √(v/P); alpha: v/P^(1/α).
    """
    if measure == "l1":
        return 1 + value / mass
    return 1 + math.sqrt(value / mass) if measure == "chi2" else value / math.pow(mass, 1 / order)


def min_lift_from(measure: str, value: float, mass: float, order: float = 2) -> float:
    """Bound Ψ(y) from below by an inverse average of the same report  [Lift Prop 6, its second part with roots].

    mass : P(s) of the secret with the least lift. l1: P/(P + v); chi2: √P/(√P + √v); alpha: P^(1/α)/v.
    """
    if measure == "l1":
        return mass / (mass + value)
    if measure == "chi2":
        return math.sqrt(mass) / (math.sqrt(mass) + math.sqrt(value))
    return math.pow(mass, 1 / order) / value


def breach_levels(rho_1: Fraction, rho_2: Fraction) -> tuple[Fraction, Fraction]:
    """Return the least Ψ and the largest Λ that rule out ρ₁-to-ρ₂ breaches, upward and downward  [Lift Prop A1].

    No event of the secret then goes from a probability of at most ρ₁ to one above ρ₂, nor from at least ρ₂ to one below
    ρ₁: (1−ρ₂)/(1−ρ₁) ≤ Ψ and Λ ≤ ρ₂/ρ₁. The downward one needs both sides, see docs/maths/lift.md; 0 < ρ₁ < ρ₂ < 1.
    Raises ValueError otherwise.
    """
    if not 0 < rho_1 < rho_2 < 1:
        raise ValueError("0 < ρ₁ < ρ₂ < 1")
    return (1 - rho_2) / (1 - rho_1), rho_2 / rho_1
