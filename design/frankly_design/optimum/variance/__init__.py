# SPDX-License-Identifier: Apache-2.0
"""Column generation and proofs for variances of estimates (docs/maths/variance.md)."""
