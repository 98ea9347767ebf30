# SPDX-License-Identifier: Apache-2.0
"""Conditional Reporting: the answer if a randomised secret comes out true, else one typical of it  [Funnel §VI.B]."""

from collections.abc import Callable
from fractions import Fraction
from math import lcm, log

from frankly_protocol.audit import exp_lower
from frankly_protocol.mechanisms import DenseMechanism

from frankly_server.design import objectives
from frankly_server.design.families.base import BITS, Built, Wanted, built, calibrated
from frankly_server.design.families.pairs import counted
from frankly_server.design.quantise import rounded

_FINE = 1 << 96


def conditional_reporting(wanted: Wanted) -> Built:
    """CR_α over answers (s, x), row-major; reports are answers x  [Funnel Algorithm 1, (43); DESIGN §9.18].

    The secret goes through randomised response: s̃ = s with probability e^α/(e^α+c−1), any other with 1/(e^α+c−1)
    (Algorithm 1 prints e^α0 there). If s̃ = s the report is x, else it is drawn from P(x|s̃). Hence
    P(y|s,x) = (e^α δ_xy + Σ_{s'≠s} P(y|s'))/(e^α+c−1): (43) with the δ_xy that it lacks.

    With `alpha`: that. Else the largest α at which every promise holds; for LIP L(α) = ε (30), ∞ where the raw x keeps
    it. With λ = (e^α−1)/(e^α+c−1) the mechanism is λ·(x itself) + (1−λ)·(the same at α = 0), which tells nothing of the
    secret if the prior is true: so there is a largest λ. Like every report that uses s, it can tell more of x than the
    best mechanism that does not (`information_x` is I(X;Y) of x alone). Estimates invert this table over (s, x), so
    no share of the secret is assumed.
    """
    joint = counted(wanted)
    secrets, make = len(joint), _maker(joint)
    D = 1 << BITS
    if wanted.explicit.alpha is not None:
        E = exp_lower(wanted.explicit.alpha)
        kept = int(D * (E - 1) / (E + secrets - 1))
    else:
        kept = D - calibrated(wanted, lambda t: make(D - t), 0, D)
    alpha = log((D + (secrets - 1) * kept) / (D - kept)) if kept < D else float("inf")
    mechanism = make(kept)
    return built(wanted, mechanism, {"alpha": alpha, "information_x": _told_of_x(mechanism, joint)})


def _told_of_x(mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...]) -> float:
    """Return I(X;Y) in nats of x alone, with P(y|x) = Σ_s P(s|x) P(y|s,x), as Funnel's figures have it."""
    values, shares = len(joint[0]), [sum(column) for column in zip(*joint, strict=True)]
    common = lcm(*shares)
    rows = [
        [
            sum(row[x] * mechanism.weights[s * values + x][y] for s, row in enumerate(joint)) * (common // n)
            for y in range(mechanism.reports)
        ]
        for x, n in enumerate(shares)
    ]
    return objectives.information(rows, shares)


def _maker(joint: tuple[tuple[int, ...], ...]) -> Callable[[int], DenseMechanism]:
    """Return the mechanism as a function of λ in units of 2^-48."""
    secrets, values, D = len(joint), len(joint[0]), 1 << BITS
    given = [[Fraction(n, sum(row)) for n in row] for row in joint]
    everyone = [sum(column) for column in zip(*given, strict=True)]
    # What is reported at α = 0 beside x itself, in units of 2^-96/c; x gets 1/c and whatever rounding left over.
    others = [[int((v - own) * _FINE) for v, own in zip(everyone, row, strict=True)] for row in given]
    own = [secrets * _FINE - sum(row) for row in others]

    def make(kept: int) -> DenseMechanism:
        rows = []
        for s in range(secrets):
            for x in range(values):
                row = [(D - kept) * v for v in others[s]]
                row[x] += (D - kept) * own[s] + kept * secrets * _FINE
                rows.append(rounded(row, BITS))
        return DenseMechanism(BITS, tuple(rows))

    return make
