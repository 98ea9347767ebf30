# SPDX-License-Identifier: Apache-2.0
"""Optimal mechanisms: linear and convex programmes over columns (docs/maths/solvers.md).

`solver` chooses the route. `information` and `variance` generate columns by prices where a list of
extreme rays is too long, each with a proof of its bound.
"""
