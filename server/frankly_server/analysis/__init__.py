# SPDX-License-Identifier: Apache-2.0
"""Estimates for analysts."""

from frankly_server.analysis.analysis import Analysis

__all__ = ["Analysis"]
