# SPDX-License-Identifier: Apache-2.0
"""Figures of any kind of mechanism: from the table if it is small, else from the parameters."""

import math
from typing import Any

from frankly_protocol.audit import Claim, ceiling, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import Mechanism

from frankly_design.kinds.registry import kind_of
from frankly_design.measures import measure, nats, ratio_up
from frankly_design.measures.levels import present
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Poll, no_poll
from frankly_design.tables.rank import estimable_rows


def estimable_in_words(mechanism: Mechanism, rank: int) -> tuple[str, ...]:
    """Return the estimable combinations of shares as text, see `rank.estimable_rows`.

    rank : the rank of the mechanism.

    Returns () at deficient rank if the table is too large to list.
    """
    if rank == mechanism.answers:
        return tuple(f"answer {x}" for x in range(mechanism.answers))
    rows = kind_of(mechanism).rows
    return () if rows is None else estimable_rows(rows)


def measures(mechanism: Mechanism, prior: Prior, poll: Poll = no_poll) -> dict[str, Any]:
    """Return all measures if the table can be listed, else only levels and, if known, variances.

    poll : see `figures.measure`.
    """
    kind = kind_of(mechanism)
    rows = kind.rows
    if rows is not None and not kind.is_set:
        return measure(rows, prior, poll=poll)
    of_shares = kind.variances(prior, None)
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
