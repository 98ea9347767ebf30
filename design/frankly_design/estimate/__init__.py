# SPDX-License-Identifier: Apache-2.0
"""Estimates of shares from noisy counts: unbiased, with variance and margins (spec 8.1).

This package contains only mathematics: no web, no database, no clock. The decoder (`kinds.decoder`) is a
fixed matrix, computed exactly from the published integer weights, so estimates are unbiased for any
number of reports. The computing time grows at most with the number of distinct reports.
"""

from frankly_design.estimate.estimator import Estimate, estimate
from frankly_design.kinds.decoder import Decoder
from frankly_design.kinds.joint import Joint
from frankly_design.kinds.set_counts import SetCounts

__all__ = ["Decoder", "Estimate", "Joint", "SetCounts", "estimate"]
