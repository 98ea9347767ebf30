# SPDX-License-Identifier: Apache-2.0
"""Conditional Reporting: the answer, or a typical answer of a random secret  [Funnel §VI.B]."""

from collections.abc import Callable
from fractions import Fraction
from math import lcm, log

from frankly_protocol.audit import exp_lower
from frankly_protocol.mechanisms import DenseMechanism

from frankly_design.families.family import BITS, Built, FamilyRequest, calibrate, certify
from frankly_design.families.pairs import pair_counts
from frankly_design.tables import objectives
from frankly_design.tables.quantise import rounded

# Twice 48 bits: P(y|s') is truncated far below the weights' resolution of 2^-48.
_FINE = 1 << 96


def conditional_reporting(request: FamilyRequest) -> Built:
    """Build CR_α over answers (s, x), row-major; reports are answers x.

    The secret passes through randomised response: s̃ = s with probability e^α/(e^α+c−1), any other
    secret with 1/(e^α+c−1) (Algorithm 1 prints e^α0 there). If s̃ = s the report is x; otherwise it
    is drawn from P(x|s̃). Hence P(y|s,x) = (e^α δ_xy + Σ_{s'≠s} P(y|s'))/(e^α+c−1), which is (43)
    with its missing δ_xy  [Funnel Algorithm 1, (43); erratum 9.18].

    If `alpha` is given, it is α. Otherwise α is the largest value at which every claim holds: for
    LIP, L(α) = ε (30), or ∞ if the raw x satisfies it. A largest α exists, because with
    λ = (e^α−1)/(e^α+c−1) the mechanism is λ·(x itself) + (1−λ)·(CR at α = 0), and the second part
    is independent of the secret if the prior is true.

    Because the report depends on s, it can carry more information about x than the best mechanism
    that ignores s (`information_x` is I(X;Y) of x alone). Estimates invert the table over (s, x),
    so they make no assumption about the shares of the secrets.
    """
    joint = pair_counts(request)
    secrets, make = len(joint), _family_of(joint)
    D = 1 << BITS
    if request.explicit.alpha is not None:
        E = exp_lower(request.explicit.alpha)
        secret_weight = int(D * (E - 1) / (E + secrets - 1))
    else:
        secret_weight = D - calibrate(request, lambda t: make(D - t), 0, D)
    alpha = (
        log((D + (secrets - 1) * secret_weight) / (D - secret_weight))
        if secret_weight < D
        else float("inf")
    )
    mechanism = make(secret_weight)
    return certify(
        request,
        mechanism,
        {"alpha": alpha, "information_x": _information_of_value(mechanism, joint)},
    )


def _information_of_value(mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...]) -> float:
    """Return I(X;Y) in nats of x alone, P(y|x) = Σ_s P(s|x) P(y|s,x), as in Funnel's figures."""
    values, shares = len(joint[0]), [sum(column) for column in zip(*joint, strict=True)]
    # Rows P(y|x) need equal integer sums, so each is multiplied by the common multiple / count.
    common = lcm(*shares)
    rows = [
        [
            sum(row[x] * mechanism.weights[s * values + x][y] for s, row in enumerate(joint))
            * (common // n)
            for y in range(mechanism.reports)
        ]
        for x, n in enumerate(shares)
    ]
    return objectives.information(rows, shares)


def _family_of(joint: tuple[tuple[int, ...], ...]) -> Callable[[int], DenseMechanism]:
    """Return the function from λ, in units of 2^-48, to the mechanism."""
    secrets, values, D = len(joint), len(joint[0]), 1 << BITS
    conditionals = [[Fraction(n, sum(row)) for n in row] for row in joint]
    column_sums = [sum(column) for column in zip(*conditionals, strict=True)]
    # Weights of the other secrets' typical answers at α = 0, in units of 2^-96/c. The answer x
    # itself gets 1/c and the remainder of the truncation, so that every row sums to the same
    # number.
    typical_weights = [
        [int((v - share) * _FINE) for v, share in zip(column_sums, row, strict=True)]
        for row in conditionals
    ]
    truth_weights = [secrets * _FINE - sum(row) for row in typical_weights]

    def make(secret_weight: int) -> DenseMechanism:
        rows = []
        for s in range(secrets):
            for x in range(values):
                row = [(D - secret_weight) * v for v in typical_weights[s]]
                row[x] += (D - secret_weight) * truth_weights[s] + secret_weight * secrets * _FINE
                rows.append(rounded(row))
        return DenseMechanism(BITS, tuple(rows))

    return make
