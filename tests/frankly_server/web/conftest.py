# SPDX-License-Identifier: Apache-2.0
"""Fixtures: sites for the tests of the HTTP interface."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frankly_server.web.site import Site, make_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One survey on SQLite for all tests of a module; tests use reports with different numbers."""
    home = tmp_path_factory.mktemp("site")
    created_site = make_site(home, f"sqlite:///{home / 'frankly.db'}")
    yield created_site
    created_site.services.close()


@pytest.fixture
def fresh_site(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A separate survey for one test, on SQLite and on PostgreSQL."""
    created_site = make_site(tmp_path, database_url)
    yield created_site
    created_site.services.close()
