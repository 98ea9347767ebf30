# SPDX-License-Identifier: Apache-2.0
"""Design of one mechanism: requests, and results that the exact verifier accepts, with figures."""

from frankly_design.engine.engine import DesignRequest, DesignResult, design

__all__ = ["DesignRequest", "DesignResult", "design"]
