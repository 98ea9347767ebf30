# SPDX-License-Identifier: Apache-2.0
"""Fixtures: sites with a published survey."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from frankly_protocol.clock import FixedClock
from frankly_server.services import Services
from frankly_server.settings import Settings

from tests.frankly_server.web.site import NOW, Site, make_site
from tests.migrated import opened


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A separate site with a survey for one test, on SQLite."""
    made = make_site(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}")
    yield made
    made.services.close()


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One server with keys for all tests of a module; tests publish surveys of different names."""
    with closing(opened(Settings(home=tmp_path_factory.mktemp("home")), FixedClock(NOW))) as server:
        yield server
