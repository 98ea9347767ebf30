# SPDX-License-Identifier: Apache-2.0
"""Numbers of a table: exact linear algebra, rank, objectives, rounding to whole weights."""
