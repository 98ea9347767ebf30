# SPDX-License-Identifier: Apache-2.0
"""Mechanism design from priors: pure mathematics, no web, database or clock (spec 1.3, 2.3).

Every privacy notion except dp is a cone (`cones`), whose extreme rays (`rays`) are the columns of
optimal mechanisms. A linear or convex programme over these columns (`programme`) finds an optimum,
and `quantise` rounds it to integers that the exact verifier accepts. `engine.design` runs all
steps.
"""

from frankly_server.design.api.engine import Design, DesignRequest, design
from frankly_server.design.notions.prior import Prior

__all__ = ["Design", "DesignRequest", "Prior", "design"]
