# SPDX-License-Identifier: Apache-2.0
"""A mark for tests of rules that do not depend on the kind of database."""

import pytest

on_sqlite = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full_only)], indirect=True
)
"""Run a test on SQLite, and with --full on PostgreSQL too; other tests of its statements run on both."""
