# SPDX-License-Identifier: Apache-2.0
"""Mechanism design from priors: pure mathematics, no web, database or clock (spec 1.3, 2.3).

A privacy notion is a cone (`cones`). Its extreme rays (`rays`) are the columns of an optimal
mechanism. A linear or convex programme over them (`programme`) finds the optimum, and `quantise`
rounds it to whole numbers that the exact verifier accepts. `engine.design` runs all the steps.
"""

from frankly_server.design.api.engine import Design, DesignRequest, design
from frankly_server.design.notions.prior import Prior

__all__ = ["Design", "DesignRequest", "Prior", "design"]
