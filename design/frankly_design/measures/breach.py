# SPDX-License-Identifier: Apache-2.0
"""Privacy breaches: extreme posteriors of an event of the secret  [Lift Prop A1, App. A].

A ρ₁-to-ρ₂ breach raises the probability of an event from at most ρ₁ to above ρ₂, or lowers it from
at least ρ₂ to below ρ₁.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_design.measures.lift import LiftTable, lift_table
from frankly_design.notions.prior import Prior


@dataclass(frozen=True, slots=True)
class Breach:
    """Extreme posterior probabilities over all reports, exact.

    highest : the largest posterior of an event of probability at most ρ: the ρ₂ of an upward breach
        from ρ₁ = ρ.
    lowest : the smallest posterior of an event of probability at least ρ: the ρ₁ of a downward
        breach from ρ₂ = ρ.
    """

    highest: Fraction
    lowest: Fraction


def breach(weights: Sequence[Sequence[int]], prior: Prior, rho: Fraction) -> Breach:
    """Return the extreme posteriors of events of probability ρ in [0, 1].

    An event is a set of secrets. It may contain a fraction of a secret, as if secrets were recorded
    in finer detail. So the event with the largest posterior consists of the secrets with the
    largest lift, and a fraction of the last one. Its posterior is at most min(Λρ, 1 − Ψ(1−ρ)), the
    bound that the levels of ALIP imply  [Lift Prop A1].
    """
    table = lift_table(weights, prior)
    shares = [Fraction(mass, prior.total) for mass in prior.masses]
    return Breach(_highest(table, shares, rho), 1 - _highest(table, shares, 1 - rho))


def _highest(table: LiftTable, shares: Sequence[Fraction], rho: Fraction) -> Fraction:
    best = rho
    for column in zip(*table, strict=True):
        remaining, posterior = rho, Fraction(0)
        # Fractional knapsack: taking secrets by decreasing lift gives the largest posterior.
        for lift, share in sorted(zip(column, shares, strict=True), reverse=True):
            mass = min(remaining, share)
            remaining, posterior = remaining - mass, posterior + mass * lift
        best = max(best, posterior)
    return best
