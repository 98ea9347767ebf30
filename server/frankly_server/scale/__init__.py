# SPDX-License-Identifier: Apache-2.0
"""Counting outside the database: reports exported as Parquet segments, counts and estimates."""

from frankly_server.scale.counting import ExportCounts, count
from frankly_server.scale.duck import DuckDB
from frankly_server.scale.engines import Engine
from frankly_server.scale.export import export
from frankly_server.scale.manifest import ExportBroken, Manifest, Segment
from frankly_server.scale.spark import Spark

__all__ = [
    "DuckDB",
    "Engine",
    "ExportBroken",
    "ExportCounts",
    "Manifest",
    "Segment",
    "Spark",
    "count",
    "export",
]
