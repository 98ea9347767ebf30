# SPDX-License-Identifier: Apache-2.0
"""Figures of mechanisms of any kind: as a table where one of whole numbers can be listed, from parameters elsewhere."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from frankly_protocol.audit import Claim, ceiling, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism, SubsetMechanism, UnaryMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.mechanisms.expansion import columns

from frankly_server import rational
from frankly_server.design import objectives
from frankly_server.design.families.sets import target_variances
from frankly_server.design.measures import measure, nats, ratio_up
from frankly_server.design.measures.levels import present
from frankly_server.design.prior import Prior
from frankly_server.design.rank import estimable_rows

Rows = Sequence[Sequence[int]]


def rows_of(mechanism: Mechanism) -> Rows | None:
    """Return whole numbers in the proportions of Q(symbol|x), rows = truths with equal sums, columns as `symbols()`.

    None where there are more than 4096 reports or 256 answers.
    """
    if isinstance(mechanism, DenseMechanism):
        return mechanism.weights
    if mechanism.reports > MAX_REPORTS or mechanism.answers > MAX_ANSWERS:
        return None
    found = [column for column in columns(mechanism).values() if any(column)]
    common = math.lcm(*(chance.denominator for column in found for chance in column))
    return list(zip(*([int(chance * common) for chance in column] for column in found), strict=True))


def rank_of(mechanism: Mechanism) -> int:
    """Return the exact rank of Q: a product's is the product of its factors', a set's is 1 or the number of answers."""
    if isinstance(mechanism, DenseMechanism):
        return rational.rank(mechanism.weights)
    if isinstance(mechanism, ProductMechanism):
        return math.prod(rational.rank(factor.weights) for factor in mechanism.factors)
    if isinstance(mechanism, UnaryMechanism):
        return mechanism.answers  # keep ≠ flip: every bit tells its answer from the others
    # A set with the truth in it as often as by chance tells nothing; any other chance tells every answer.
    by_chance = mechanism.inside * mechanism.answers == mechanism.size * mechanism.denominator
    return 1 if by_chance else mechanism.answers


def words_of(mechanism: Mechanism, size: int) -> tuple[str, ...]:
    """Return in words what can be estimated, see `rank.estimable`; size : the mechanism's rank."""
    rows = None if size == mechanism.answers else rows_of(mechanism)
    if rows is not None:
        return estimable_rows(rows)
    return tuple(f"answer {x}" for x in range(mechanism.answers)) if size == mechanism.answers else ()


def variances(mechanism: Mechanism, prior: Prior, targets: objectives.Targets | None) -> list[float]:
    """Return the variance at n = 1 of the estimate of each target, of each share by default; inf if there is none.

    nan for products of more reports than are listed. Sets are decoded by how often each answer is in them, not by a
    matrix over all sets, which could do a little better at an uneven prior.
    """
    if isinstance(mechanism, SubsetMechanism | UnaryMechanism):
        return target_variances(mechanism, np.array(prior.probabilities(), dtype=np.float64), targets)
    rows = rows_of(mechanism)
    if rows is None:
        return [math.nan] * (mechanism.answers if targets is None else len(targets))
    return objectives.target_variances(rows, prior.shares, targets)


def measures(mechanism: Mechanism, prior: Prior) -> dict[str, Any]:
    """Return every measure of a listed mechanism by its name (`measures.measure`), else its levels and variances."""
    rows = rows_of(mechanism)
    if rows is not None and not isinstance(mechanism, SubsetMechanism | UnaryMechanism):
        return measure(rows, prior)
    of_shares = variances(mechanism, prior, None)
    known = {} if math.isnan(of_shares[0]) else {"variance": math.fsum(of_shares), "target_variances": of_shares}
    return (levels(mechanism, prior) if rows is None else measure(rows, prior)) | known


def levels(mechanism: Mechanism, prior: Prior) -> dict[str, Any]:
    """Return the levels of a mechanism that is too large for a table, as `measures.measure` names them."""
    found = {"answer_ldp": nats(ceiling(mechanism)), "ceiling": ratio_up(ceiling(mechanism))}
    joint = present(prior)
    if len(joint) < 2:
        return found
    try:
        sides = worst(mechanism, Claim("alip", (1, 1), joint, low_level=(1, 1))).needed
        between = worst(mechanism, Claim("secret-ldp", (1, 1), joint)).ratio
    except DocumentRejected:
        return found  # a product of more reports than can be listed
    low, high = nats(sides["low_level"]), nats(sides["level"])
    return found | {"lip": max(low, high), "alip_low": low, "alip_high": high, "secret_ldp": nats(between)}
