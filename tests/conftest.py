# SPDX-License-Identifier: Apache-2.0
"""Fixtures for every test: databases of both kinds, and the checkout."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from run import NEEDED_BY
from tests.postgres import PostgresServer, find_binaries

# The developer's settings must not reach the tests, nor the processes they start, which refuse
# unknown ones. FRANKLY_PG_BIN is copied to PG_BIN, which worker processes of the test run inherit.
if "FRANKLY_PG_BIN" in os.environ:
    os.environ["PG_BIN"] = os.environ["FRANKLY_PG_BIN"]
for _name in [name for name in os.environ if name.startswith("FRANKLY_")]:
    del os.environ[_name]


# Nothing here is timed: a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# A limit against hanging, not a measurement: every other test has the `timeout` of pyproject.toml.
FULL_TIMEOUT_S = 7200


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --full."""
    parser.addoption(
        "--full",
        action="store_true",
        help="add the tests marked full_only, and run those that count (fixture `full`) at full counts",
    )


def _is_in(item: pytest.Item, *folders: str) -> bool:
    top = Path(__file__).resolve().parents[1]
    return any(item.path.is_relative_to(top / folder) for folder in folders)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a database or browser; deselect those for --full only; skip none."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = item.nodeid.partition("[")[2].rstrip("]").split("-")  # a parametrised fixture
        if "postgres" in fixtures or "postgresql" in parameters:
            item.add_marker(pytest.mark.database)
        if fixtures & {"browser", "playwright", "chromium"} or _is_in(item, "tests/browser"):
            item.add_marker(pytest.mark.browser)
        for marker, package in (("database", "postgresql"), ("browser", "chromium")):
            if item.get_closest_marker(marker) and not _is_in(item, *NEEDED_BY[package]):
                raise pytest.UsageError(
                    f"{item.nodeid}: run.NEEDED_BY[{package!r}] lacks its folder"
                )
    if config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full_only") or "full" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.timeout(FULL_TIMEOUT_S))
        return
    deselected = [item for item in items if item.get_closest_marker("full_only")]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """True to run at full counts; otherwise counts are small enough for the suite's time."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top folder of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for each process of the test run, started when first requested."""
    server = PostgresServer(find_binaries(os.environ.get("PG_BIN")))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """URL of an empty PostgreSQL database for one test."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """URL of an SQLite database for one test, whose file does not exist yet."""
    return f"sqlite:///{tmp_path / 'frankly.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty database for one test, which runs once on each kind."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(name))
