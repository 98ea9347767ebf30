# SPDX-License-Identifier: Apache-2.0
"""Measures of leakage and utility of any table, private or not (spec 1.8), for display.

`levels` computes the exact extreme ratios that define the levels of notions. `breach` computes
posterior probabilities of events of the secret, `lift` lifts and their averages, and `figures` all
measures by name. Information, errors and variances are in `design.tables.objectives`. Only
`frankly_protocol.audit` decides whether a promise holds.
"""

from frankly_design.measures.breach import Breach, breach
from frankly_design.measures.figures import MeasureOptions, measure, secret_channel
from frankly_design.measures.levels import Leakage, Ratio, Weights, leakage, nats, ratio_up

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
