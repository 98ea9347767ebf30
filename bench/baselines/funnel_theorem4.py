# SPDX-License-Identifier: Apache-2.0
"""Baseline: Funnel's Theorem 4 as printed; defined in `papers`, which also plots it."""

from frankly_server.design import Prior

from papers import channel
from papers.printed.theorem4 import FloatArray, factors, multiplied, side_channel_level

__all__ = ["factors", "information", "multiplied", "side_channel_level"]


def information(Q: FloatArray, prior: Prior) -> float:
    """Return I(X; Y) in nats."""
    return channel.information(Q, prior.probabilities())
