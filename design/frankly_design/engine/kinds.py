# SPDX-License-Identifier: Apache-2.0
"""Figures of any kind of mechanism: from the table if it is small, else from the parameters."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from frankly_protocol.audit import Claim, ceiling, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.mechanisms.expansion import columns

from frankly_design.families.sets import target_variances
from frankly_design.measures import measure, nats, ratio_up
from frankly_design.measures.levels import present
from frankly_design.notions.prior import Prior
from frankly_design.numeric import rational
from frankly_design.tables import objectives, set_figures
from frankly_design.tables.limits import Poll, no_poll
from frankly_design.tables.rank import estimable_rows

Rows = Sequence[Sequence[int]]


def rows_of(mechanism: Mechanism) -> Rows | None:
    """Return integers proportional to Q(symbol|x), row = truth, with equal row sums.

    Columns are in the order of `symbols()`, without symbols of probability 0.

    Returns None if a product or a set mechanism has more than 4096 reports or 256 answers.
    """
    if isinstance(mechanism, DenseMechanism):
        return mechanism.weights
    if mechanism.reports > MAX_REPORTS or mechanism.answers > MAX_ANSWERS:
        return None
    # A symbol of probability 0 would be an empty column, which the measures cannot handle.
    occurring = [column for column in columns(mechanism).values() if any(column)]
    common = math.lcm(*(chance.denominator for column in occurring for chance in column))
    return list(
        zip(*([int(chance * common) for chance in column] for column in occurring), strict=True)
    )


def rank_of(mechanism: Mechanism) -> int:
    """Return the exact rank of Q; the rank of a product is the product of its factors' ranks."""
    if isinstance(mechanism, DenseMechanism):
        return rational.rank(mechanism.weights)
    if isinstance(mechanism, ProductMechanism):
        return math.prod(rational.rank(factor.weights) for factor in mechanism.factors)
    if isinstance(mechanism, UnaryMechanism):
        return mechanism.answers  # keep ≠ flip: the rows are linearly independent
    # If the reported set contains the truth as often as a random set would, all rows are equal;
    # otherwise Q has full rank.
    by_chance = mechanism.inside * mechanism.answers == mechanism.size * mechanism.denominator
    return 1 if by_chance else mechanism.answers


def estimable_of(mechanism: Mechanism, rank: int) -> tuple[str, ...]:
    """Return the estimable combinations of shares as text, see `rank.estimable_rows`.

    rank : the rank of the mechanism.

    Returns () at deficient rank if the table is too large to list.
    """
    rows = None if rank == mechanism.answers else rows_of(mechanism)
    if rows is not None:
        return estimable_rows(rows)
    return (
        tuple(f"answer {x}" for x in range(mechanism.answers)) if rank == mechanism.answers else ()
    )


def information_and_hamming(
    mechanism: Mechanism, prior: Prior, poll: Poll = no_poll
) -> tuple[float, float]:
    """Return (information in nats, Hamming error), both nan if the table is too large to list."""
    if isinstance(mechanism, SubsetMechanism | UnaryMechanism):
        return set_figures.information_and_hamming(mechanism, prior.shares)
    rows = rows_of(mechanism)
    if rows is None:
        return math.nan, math.nan
    return objectives.information(rows, prior.shares, poll), objectives.hamming(rows, prior.shares)


def variances(
    mechanism: Mechanism, prior: Prior, targets: objectives.Targets | None
) -> list[float]:
    """Return the variance at n = 1 of each target's estimate (default: each share).

    The variance is inf for targets that cannot be estimated, and nan for products with too many
    reports to list. Sets are decoded from the number of sets that contain each answer; a decoder
    that scores every set could have a slightly smaller variance for an uneven prior.
    """
    if isinstance(mechanism, SubsetMechanism | UnaryMechanism):
        return target_variances(
            mechanism, np.array(prior.probabilities(), dtype=np.float64), targets
        )
    rows = rows_of(mechanism)
    if rows is None:
        return [math.nan] * (mechanism.answers if targets is None else len(targets))
    return objectives.target_variances(rows, prior.shares, targets)


def measures(mechanism: Mechanism, prior: Prior, poll: Poll = no_poll) -> dict[str, Any]:
    """Return all measures if the table can be listed, else only levels and, if known, variances.

    poll : see `figures.measure`.
    """
    rows = rows_of(mechanism)
    if rows is not None and not isinstance(mechanism, SubsetMechanism | UnaryMechanism):
        return measure(rows, prior, poll=poll)
    of_shares = variances(mechanism, prior, None)
    figures = levels(mechanism, prior) if rows is None else measure(rows, prior, poll=poll)
    if math.isnan(of_shares[0]):
        return figures
    return figures | {"variance": math.fsum(of_shares), "target_variances": of_shares}


def levels(mechanism: Mechanism, prior: Prior) -> dict[str, Any]:
    """Return the levels of a mechanism whose table is too large to list, named as in `measure`."""
    body = {"answer_ldp": nats(ceiling(mechanism)), "ceiling": ratio_up(ceiling(mechanism))}
    joint = present(prior)
    if len(joint) < 2:
        return body
    try:
        sides = worst(mechanism, Claim("alip", (1, 1), joint, low_level=(1, 1))).needed
        between = worst(mechanism, Claim("secret-ldp", (1, 1), joint)).ratio
    except DocumentRejected:
        # The verifier refuses products with too many reports to list.
        return body
    low, high = nats(sides["low_level"]), nats(sides["level"])
    return body | {
        "lip": max(low, high),
        "alip_low": low,
        "alip_high": high,
        "secret_ldp": nats(between),
    }
