# SPDX-License-Identifier: Apache-2.0
"""Mechanisms from priors: pure mathematics, no web, no database, no clock (DESIGN §2, §3).

A privacy notion is a cone (`cones`), its extreme rays (`vertices`) are the columns an optimal mechanism is made of,
a linear or convex programme over them (`programme`) finds the optimum, `quantise` turns it into whole numbers that the
exact verifier accepts, and `engine.design` does all of it.
"""

from frankly_server.design.engine import Design, DesignRequest, design
from frankly_server.design.prior import Prior

__all__ = ["Design", "DesignRequest", "Prior", "design"]
