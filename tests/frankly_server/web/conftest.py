# SPDX-License-Identifier: Apache-2.0
"""Fixtures: sites for the tests of the HTTP interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frankly_server.web.admin.office import Office, make_office
from tests.frankly_server.web.site import Site, make_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One survey on SQLite for all tests of a module; tests use reports with different numbers."""
    home = tmp_path_factory.mktemp("site")
    created_site = make_site(home, f"sqlite:///{home / 'frankly.db'}")
    yield created_site
    created_site.services.close()


@pytest.fixture(scope="module")
def spec(site: Site) -> dict[str, Any]:
    """The OpenAPI document."""
    return dict(site.client.get("/openapi.json").get_json())


@pytest.fixture
def own_office(tmp_path: Path) -> Iterator[Office]:
    """A separate office for one test, with people of every role."""
    office = make_office(tmp_path)
    yield office
    office.services.close()
