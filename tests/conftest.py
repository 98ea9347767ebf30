# SPDX-License-Identifier: Apache-2.0
"""Fixtures and hooks for all tests: databases of both kinds, the checkout, and the order of tests."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings

from run import NEEDED_BY
from tests.postgres import PostgresServer, find_binaries

# The developer's settings must not reach the tests or the processes that tests start, because those
# processes refuse unknown settings. FRANKLY_PG_BIN is copied to PG_BIN, which worker processes
# inherit.
if "FRANKLY_PG_BIN" in os.environ:
    os.environ["PG_BIN"] = os.environ["FRANKLY_PG_BIN"]
for _name in [name for name in os.environ if name.startswith("FRANKLY_")]:
    del os.environ[_name]

# If the developer wants no bytecode beside the sources, it is stored in the virtual environment.
# Without bytecode, every process that a test starts would compile each library it imports, which
# takes longer than most tests. The setting is made here because worker processes, which start
# later, inherit it.
if sys.dont_write_bytecode and sys.prefix != sys.base_prefix:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(Path(sys.prefix) / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


# No example has a deadline, because a busy machine must not fail a test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Files with tests that take more than about five seconds, in the order in which workers receive
# them.
LONG = (
    "tests/deploy/test_checks.py",
    "tests/browser/admin/test_from_nothing.py",
    "tests/deploy/test_first_survey.py",
    "tests/faults/server/test_sign_in_flood.py",
    "tests/examples/test_redbook.py",
    "tests/faults/scale/test_replicas.py",
    "tests/deploy/test_compose.py",
    "tests/browser/test_demo_report.py",
    "tests/browser/sdk/test_summary_alike.py",
    "tests/browser/admin/test_form.py",
    "tests/faults/server/test_release_kill.py",
    "tests/docs/test_guides.py",
    "tests/browser/sdk/test_conformance.py",
    "tests/faults/test_restart.py",
    "tests/tools/test_release.py",
    "tests/faults/server/test_kill.py",
    "tests/browser/admin/test_by_stratum.py",
    "tests/faults/server/test_generated.py",
    "tests/faults/server/test_read_only.py",
    "tests/faults/server/test_full_disk.py",
    "tests/faults/scale/test_two_servers.py",
    "tests/docs/test_first_hour.py",
    "tests/frankly_analyst/test_notebooks.py",
)

# A limit for tests that hang, not a measurement. Other tests have the `timeout` of pyproject.toml.
FULL_TIMEOUT_S = 7200


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --full."""
    parser.addoption(
        "--full",
        action="store_true",
        help="add the tests marked full_only, and run those that count (fixture `full`) at full counts",
    )


def pytest_sessionfinish() -> None:
    """Remove the bytecode of temporary files, because no later process reads it."""
    if sys.pycache_prefix:
        temporary = Path(tempfile.gettempdir()).resolve()
        place = Path(sys.pycache_prefix) / temporary.relative_to(temporary.anchor)
        shutil.rmtree(place, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests with the garbage collector disabled, then freeze all objects.

    Modules and tests live until the end of the run, so every collection of the oldest generation
    would visit millions of objects in vain, in every worker.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the whole browser for --full, before a test module reads tests/chromium.py."""
    if config.getoption("--full"):
        os.environ["TEST_CHROMIUM"] = "/usr/bin/chromium"


def _is_in(item: pytest.Item, *folders: str) -> bool:
    place = item.nodeid.partition("::")[0] + "/"  # strings, because Path objects would add a second
    return place.startswith(tuple(f"{folder}/" for folder in folders))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a database or a browser, and deselect full_only tests without --full. No
    test is skipped."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = item.nodeid.partition("[")[2].rstrip("]").split("-")  # fixture parameters
        if "postgres" in fixtures or "postgresql" in parameters:
            item.add_marker(pytest.mark.database)
        if fixtures & {"browser", "playwright", "chromium"} or _is_in(item, "tests/browser"):
            item.add_marker(pytest.mark.browser)
        for marker, package in (("database", "postgresql"), ("browser", "chromium-headless-shell")):
            if item.get_closest_marker(marker) and not _is_in(item, *NEEDED_BY[package]):
                raise pytest.UsageError(
                    f"{item.nodeid}: run.NEEDED_BY[{package!r}] lacks its folder"
                )
        # Only --full installs Go and the Node packages of the examples.
        if "go_root" in fixtures or _is_in(item, *NEEDED_BY["npm"]):
            item.add_marker(pytest.mark.full_only)
    if config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full_only") or "full" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.timeout(FULL_TIMEOUT_S))
        return
    deselected = [item for item in items if item.get_closest_marker("full_only")]
    config.hook.pytest_deselected(items=deselected)
    items[:] = in_turns(
        [item for item in items if not item.get_closest_marker("full_only")],
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )


def in_turns(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order tests so that each worker begins with its share of the files in LONG.

    `--dist worksteal` gives each worker an equal section of the list and moves tests from the ends
    of long queues to idle workers. If a test of half a minute were near the end of a section, one
    worker would run it while the others were idle.
    """
    if workers == 1:
        return items
    place = {name: number for number, name in enumerate(LONG)}
    files = [item.nodeid.partition("::")[0] for item in items]
    first = sorted((place[file], i) for i, file in enumerate(files) if file in place)
    others = iter([item for item, file in zip(items, files, strict=True) if file not in place])
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        share = [items[i] for number, i in first if number % workers == worker]
        # xdist likewise divides the remaining tests among the workers that have none yet.
        size = (len(items) - len(ordered)) // (workers - worker)
        ordered += [*share, *islice(others, max(0, size - len(share)))]
    return [*ordered, *others]


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """True to run with full counts; otherwise counts are small enough for the default suite."""
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
