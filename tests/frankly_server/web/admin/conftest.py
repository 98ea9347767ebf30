# SPDX-License-Identifier: Apache-2.0
"""Fixture: one office, shared by all tests of a module that do not change it."""

from collections.abc import Iterator

import pytest

from tests.frankly_server.web.admin.office import Office, make_office


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = make_office(tmp_path_factory.mktemp("office"))
    yield made
    made.services.close()
