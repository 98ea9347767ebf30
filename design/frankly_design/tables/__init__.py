# SPDX-License-Identifier: Apache-2.0
"""Computations on tables: exact linear algebra, rank, objectives, rounding to integer weights."""
