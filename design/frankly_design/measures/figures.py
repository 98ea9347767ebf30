# SPDX-License-Identifier: Apache-2.0
"""All measures of a mechanism by their names in spec 1.8, with natural logarithms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from frankly_design.measures.breach import breach
from frankly_design.measures.levels import (
    Weights,
    leakage,
    nats,
    ratio_down,
    ratio_up,
    side_channel_level,
    violation,
)
from frankly_design.measures.lift import measure_lift
from frankly_design.notions.prior import Prior
from frankly_design.numeric import rational
from frankly_design.tables import objectives
from frankly_design.tables.limits import Poll, no_poll


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of `measure`: measures in addition to those that are always computed.

    orders : α in [1e-6, 1e6] or math.inf, for the α-lift and Sibson's and Arimoto's information.
    attributes : number of values of each attribute, for SRLIP.
    sensitive : index of the secret for the degree of privacy violation.
    breaches : probabilities ρ of events, in [0, 1].
    targets : rows of numbers, one per answer; `measure` computes the variance of the unbiased
    estimate of each row. None for all shares.
    """

    orders: tuple[float, ...] = (2,)
    attributes: tuple[int, ...] | None = None
    sensitive: int | None = None
    breaches: tuple[Fraction, ...] = ()
    targets: tuple[tuple[Fraction, ...], ...] | None = None


def measure(
    weights: Weights, prior: Prior, options: MeasureOptions | None = None, poll: Poll = no_poll
) -> dict[str, Any]:
    """Return all measures by their names in spec 1.8; math.inf where infinite, levels rounded up.

    Always:

    - `lip`, `alip_low`, `alip_high`  [Funnel Def 2; Lift Def 3];
    - `secret_ldp`  [Funnel Def 1], which over answers (s, u) is the realised ε* of Robust §8.3;
    - `answer_ldp` and `ceiling` (a ratio);
    - the measures of lift  [Lift Def 5, Def 6; `lift.measure_lift`];
    - `information_secret` I(S;Y) and `information` I(X;Y)  [Funnel (1)];
    - `normalised_information` I(X;Y)/H(X)  [Lift (13)];
    - `hamming`, the probability that the best guess of the answer is wrong;
    - `variance`, the total variance of the unbiased shares at n = 1  [for two answers, twice Thesis
      (6.6)];
    - `target_variances` and `rank`.

    On request: `srlip`  [Funnel Def 3], `dpv`  [Thesis (6.24)], `breaches`  [Lift Prop A1].

    weights : integers with equal row sums, row = truth, one row per answer of the prior.
    poll : called repeatedly; an exception that it raises ends the computation.

    Extremes exclude secrets without mass and reports of probability 0.

    Raises InvalidInput(eps_out_of_range) with field `orders` for an order outside the range.
    """
    requested = options or MeasureOptions()
    body = _levels(weights, prior, poll)
    body |= measure_lift(weights, prior, requested.orders, poll)
    body |= _worth(weights, prior, requested.targets, poll)
    if requested.attributes is not None:
        body["srlip"] = nats(side_channel_level(weights, prior, requested.attributes))
    if requested.sensitive is not None:
        body["dpv"] = ratio_up(violation(weights, prior, requested.sensitive))
    if requested.breaches:
        body["breaches"] = [_breach(weights, prior, rho) for rho in requested.breaches]
    return body


def secret_channel(weights: Weights, prior: Prior, poll: Poll = no_poll) -> list[list[int]]:
    """Return P(y|s) as integers, row = secret; `poll` is called for every secret.

    Row sums are equal, except that a secret without mass has a row of zeros.
    """
    # One denominator for all secrets makes the row sums equal.
    common = math.lcm(*(mass for mass in prior.masses if mass))
    columns = list(zip(*weights, strict=True))
    channel = []
    for row, mass in zip(prior.joint, prior.masses, strict=True):
        poll()
        factor = common // mass if mass else 0
        channel.append(
            [sum(n * w for n, w in zip(row, column, strict=True)) * factor for column in columns]
        )
    return channel


def _levels(weights: Weights, prior: Prior, poll: Poll) -> dict[str, Any]:
    ratios = leakage(weights, prior, poll)
    # LIP is symmetric: the level of the larger side holds for both sides.
    low, high = nats(ratios.inverse_lowest), nats(ratios.highest)
    return {
        "lip": max(low, high),
        "alip_low": low,
        "alip_high": high,
        "secret_ldp": nats(ratios.between_secrets),
        "answer_ldp": nats(ratios.between_answers),
        "ceiling": ratio_up(ratios.between_answers),
    }


def _worth(
    weights: Weights, prior: Prior, targets: objectives.Targets | None, poll: Poll
) -> dict[str, Any]:
    shares = prior.shares
    mutual = objectives.information(weights, shares, poll)
    rank = rational.rank(weights)
    variances = _variances(weights, shares, targets, rank)
    of_shares = variances if targets is None else objectives.target_variances(weights, shares, None)
    # A share that cannot be estimated makes the total infinite.
    variance = math.fsum(of_shares)
    return {
        "information_secret": objectives.information(
            secret_channel(weights, prior, poll), prior.masses, poll
        ),
        "information": mutual,
        "normalised_information": objectives.normalised(mutual, shares),
        "hamming": objectives.hamming(weights, shares),
        "variance": variance,
        "target_variances": variances,
        "rank": rank,
    }


def _variances(
    weights: Weights, shares: Sequence[int], targets: objectives.Targets | None, rank: int
) -> list[float]:
    """Return the variance of each target (default: each share); inf if it is not estimable."""
    # At deficient rank `target_variances` returns inf for all shares, but some may be estimable.
    if targets is not None or rank == len(weights):
        return objectives.target_variances(weights, shares, targets)
    # A single share is estimable iff it is a row of the reduced basis of the column span.
    reduced = rational.row_echelon(list(zip(*weights, strict=True)))
    basis = [row for row in reduced if sum(map(bool, row)) == 1]
    variances = objectives.target_variances(weights, shares, basis) if basis else []
    estimable = dict(zip(basis, variances, strict=True))
    units = [tuple(Fraction(x == i) for i in range(len(weights))) for x in range(len(weights))]
    return [estimable.get(unit, math.inf) for unit in units]


def _breach(weights: Weights, prior: Prior, rho: Fraction) -> dict[str, float]:
    extremes = breach(weights, prior, rho)
    return {
        "probability": float(rho),
        "highest": ratio_up(extremes.highest),
        "lowest": ratio_down(extremes.lowest),
    }
