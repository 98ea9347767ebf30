# SPDX-License-Identifier: Apache-2.0
"""Fixtures: sites with a published survey."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frankly_server.web.site import Site, make_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A separate site with a survey for one test, on SQLite."""
    made = make_site(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}")
    yield made
    made.services.close()


@pytest.fixture
def fresh_site(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A separate site with a survey for one test, on SQLite and on PostgreSQL."""
    made = make_site(tmp_path, database_url)
    yield made
    made.services.close()
