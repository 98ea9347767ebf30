# SPDX-License-Identifier: Apache-2.0
"""Privacy notions: their declarations, priors, promises, cones of allowed columns, confidence balls.

Every notion except dp is a cone (`cones`) of report columns; its extreme rays (`rays`) are the
columns of optimal mechanisms. `balls` and `ball_bounds` turn counts, a Rényi order, a sample size n
and a risk β into the polytopes D_s of an rldp claim.
"""
