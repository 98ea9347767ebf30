# SPDX-License-Identifier: Apache-2.0
"""Privacy breaches: what one report can make of the probability of an event of the secret  [Lift Prop A1, App. A].

A ρ₁-to-ρ₂ breach takes an event from a probability of at most ρ₁ to one above ρ₂, or from at least ρ₂ to one below ρ₁.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_server.design.lift.measures import LiftTable, lift_table
from frankly_server.design.prior import Prior


@dataclass(frozen=True, slots=True)
class Breach:
    """The extremes over all reports, exact.

    highest : the largest probability that an event of probability at most ρ can be given: the ρ₂ of an upward breach
        from ρ₁ = ρ. lowest : the least that one of probability at least ρ can be left with: the ρ₁ of a downward breach
        from ρ₂ = ρ.
    """

    highest: Fraction
    lowest: Fraction


def breach(weights: Sequence[Sequence[int]], prior: Prior, rho: Fraction) -> Breach:
    """Return what one report makes of events of probability ρ in [0, 1].

    An event is any set of secrets, or some of the people with a secret, as with secrets that are told in finer detail:
    so the largest posterior probability takes secrets of large lift first, the last of them in part. It is at most
    min(Λρ, 1 − Ψ(1−ρ)), which is what the levels of ALIP promise  [Lift Prop A1].
    """
    table = lift_table(weights, prior)
    shares = [Fraction(mass, prior.total) for mass in prior.masses]
    return Breach(_highest(table, shares, rho), 1 - _highest(table, shares, 1 - rho))


def _highest(table: LiftTable, shares: Sequence[Fraction], rho: Fraction) -> Fraction:
    best = rho
    for column in zip(*table, strict=True):
        left, told = rho, Fraction(0)
        for lift, share in sorted(zip(column, shares, strict=True), reverse=True):
            taken = min(left, share)
            left, told = left - taken, told + taken * lift
        best = max(best, told)
    return best
