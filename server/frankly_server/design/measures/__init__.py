# SPDX-License-Identifier: Apache-2.0
"""Measures of leakage and utility of any table, private or not (spec 1.8), for display.

`levels` holds the exact extreme ratios of every notion, `breach` the posterior probabilities of
events of the secret, `figures` all measures by name, `lift` lifts and their averages. Information,
errors and variances are in `design.tables.objectives`. Only `frankly_protocol.audit` decides
whether a promise is kept.
"""

from frankly_server.design.measures.breach import Breach, breach
from frankly_server.design.measures.figures import MeasureOptions, measure, secret_channel
from frankly_server.design.measures.levels import Leakage, Ratio, Weights, leakage, nats, ratio_up

__all__ = [
    "Breach",
    "Leakage",
    "MeasureOptions",
    "Ratio",
    "Weights",
    "breach",
    "leakage",
    "measure",
    "nats",
    "ratio_up",
    "secret_channel",
]
