# SPDX-License-Identifier: Apache-2.0
"""Estimates of published surveys for analysts: request, tables, pooling, result."""

from frankly_server.analysis.analysis import Analysis
from frankly_server.analysis.publishing import Publishing
from frankly_server.analysis.result import encode

__all__ = ["Analysis", "Publishing", "encode"]
