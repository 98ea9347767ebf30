# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one desk for the tests of a module that do not change it, and one for a single test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frankly_server.web.management.desk import Desk, make_desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = make_desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.services.close()


@pytest.fixture
def own_desk(tmp_path: Path) -> Iterator[Desk]:
    made = make_desk(tmp_path)
    yield made
    made.services.close()
