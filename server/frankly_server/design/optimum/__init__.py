# SPDX-License-Identifier: Apache-2.0
"""Optimal mechanisms: linear and convex programmes over columns (docs/maths/solvers.md).

`solver` chooses the method. Where a list of the extreme rays would be too long, `information` and
`variance` generate columns one by one (column generation), with a proven bound.
"""
