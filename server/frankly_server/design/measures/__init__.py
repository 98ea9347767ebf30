# SPDX-License-Identifier: Apache-2.0
"""What a mechanism reveals and what it is worth (DESIGN §7): figures for people, of any table, private or not.

`levels` holds the extreme ratios behind every notion, exact; `breach` what becomes of the probability of an event of
the secret; `figures` all of them by name. Lifts and averages over them are `design.lift.measures`, informations,
errors and variances `design.objectives`, leakages over a ball `design.robust.leakage`. Whether a promise is kept is
decided by `frankly_protocol.audit` alone.
"""

from frankly_server.design.measures.breach import Breach, breach
from frankly_server.design.measures.figures import Wanted, measure, secret_channel
from frankly_server.design.measures.levels import Leakage, Ratio, Weights, leakage, nats, ratio_up

__all__ = [
    "Breach",
    "Leakage",
    "Ratio",
    "Wanted",
    "Weights",
    "breach",
    "leakage",
    "measure",
    "nats",
    "ratio_up",
    "secret_channel",
]
