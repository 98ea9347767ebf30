# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of least variance, or most information at a variance, with proofs (DESIGN §2)."""
