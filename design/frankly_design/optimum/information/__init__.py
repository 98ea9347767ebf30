# SPDX-License-Identifier: Apache-2.0
"""Column generation for information and Hamming error (docs/maths/generation.md)."""
