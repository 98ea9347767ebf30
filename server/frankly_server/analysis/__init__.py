# SPDX-License-Identifier: Apache-2.0
"""Estimates of published surveys for analysts: request, tables, pooling, result."""

from frankly_analyst.formats import encode

from frankly_server.analysis.analysis import Analysis
from frankly_server.analysis.publishing import Publishing

__all__ = ["Analysis", "Publishing", "encode"]
