# SPDX-License-Identifier: Apache-2.0
"""Optimal mechanisms: linear and convex programmes over columns (docs/maths/solvers.md).

`solver` chooses the method. If there are too many extreme rays to list, `information` and
`variance` use column generation, with a proven bound.
"""
