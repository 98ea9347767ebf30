# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of least variance, and of most information at a given variance, with their proofs (DESIGN §2)."""
