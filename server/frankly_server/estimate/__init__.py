# SPDX-License-Identifier: Apache-2.0
"""Shares from noisy counts: unbiased, with variance and margins; no web, no database, no clock (DESIGN §6).

The decoder (`decoder`) is a fixed matrix, computed exactly from the published whole numbers, so estimates are unbiased
at every number of reports, and nothing here takes longer when there are more reports.
"""

from frankly_server.estimate.decoder import Decoder
from frankly_server.estimate.estimator import Estimate, estimate
from frankly_server.estimate.joint import Joint
from frankly_server.estimate.sets import SetCounts

__all__ = ["Decoder", "Estimate", "Joint", "SetCounts", "estimate"]
