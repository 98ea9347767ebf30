# SPDX-License-Identifier: Apache-2.0
"""A test run in a forked process: pytest on chosen tests, or a run that traces each test's calls.

The parent has imported pytest and the large libraries, but no project code: a run imports only the
mutated tree.
"""

import gc
import importlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PACKAGES = ("analyst", "design", "server", "shared", "client_sdk")
_LIBRARIES = (
    "alembic apiflask argon2 cbor2 cdd click cryptography.x509 flask flint highspy jsonschema mpmath numpy pandas "
    "playwright.sync_api psycopg pyarrow.parquet pydantic pydantic_settings pyotp requests rich.console "
    "scipy.optimize scipy.sparse.linalg scipy.special scipy.stats segno sqlalchemy.dialects.postgresql structlog "
    "waitress webauthn yaml"
).split()
_PLUGINS = ("_hypothesis_pytestplugin", "pytest_timeout", "hypothesis.strategies")
MARK = "MUTATION_TREE"
"""Environment variable that marks every process a run starts."""
OWN_FAILURE = 97
"""Exit code of a run that could not be started."""


def warm() -> None:
    """Import the libraries that every run needs, so that forks share them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Plugins are named below: discovering and importing all of them takes 2 s.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in (*_LIBRARIES, *_PLUGINS):
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # otherwise a garbage collection in a fork would copy all these pages


@dataclass(frozen=True, slots=True)
class Chosen:
    """Tests of a run.

    files : files that pytest collects. names : node ids to run, in this order; traced runs ignore
    them. calls : True if a traced run records calls.
    """

    files: tuple[str, ...]
    names: tuple[str, ...] = ()
    calls: bool = True


def fork(tree: Path, chosen: Chosen, report: Path, *, trace: bool = False) -> int:
    """Start a run in a copy of the repository, which writes `report`; return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        _run(tree, chosen, report, trace=trace)
    except BaseException as error:  # noqa: BLE001 - a fork must never return into the parent's code
        report.write_text(json.dumps({"exit": OWN_FAILURE, "error": repr(error)}))
    os._exit(0)


def _run(tree: Path, chosen: Chosen, report: Path, *, trace: bool) -> None:
    os.setsid()  # the parent kills the whole group of a run that takes too long
    output = os.open(tree.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(tree)
    folders = [str(tree / name) for name in PACKAGES]
    sys.path[:] = [*folders, str(tree), *(entry for entry in sys.path if "mutation" not in entry)]
    os.environ[MARK] = str(tree)
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, str(tree)])
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)
    temporary = tree.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    recorder = _Tracing(tree, calls=chosen.calls) if trace else _Recorder(chosen)
    options = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={temporary}"]
    plugins = [sys.modules[name] for name in _PLUGINS[:2]]
    options += [] if trace else ["-x"]
    try:
        code = int(pytest.main([*options, *chosen.files], plugins=[recorder, *plugins]))
    except Exception:
        # Resources that a failed test left open may raise a warning as an error after pytest ends.
        if not recorder.outcome().get("failed"):
            raise
        code = 1
    report.write_text(json.dumps({"exit": code, **recorder.outcome()}))


class _Recorder:
    """Plugin that selects and orders tests, and records the first failure."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen, self._failed, self._message = chosen, "", ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {node: i for i, node in enumerate(self._chosen.names)}
        items[:] = [item for item in items if item.nodeid in place]
        items.sort(key=lambda item: place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failed:
            self._failed, self._message = report.nodeid, str(report.longrepr)[-300:]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self._failed:
            self._failed, self._message = f"{report.nodeid} (import)", str(report.longrepr)[-300:]

    def outcome(self) -> dict[str, Any]:
        """Return the first failed test, empty if none."""
        return {"failed": self._failed, "message": self._message}


class _Tracing:
    """Plugin that records, for each test, its seconds and the project functions that it calls.

    Functions called at import or by fixtures of a module or session count for every test of the
    file, because they run only once, for the first test.
    """

    def __init__(self, tree: Path, *, calls: bool) -> None:
        self._calls = calls
        self._prefixes = tuple(f"{tree / name}{os.sep}" for name in PACKAGES)
        self._cut = len(str(tree)) + 1
        self._shared: set[Any] = set()
        self._now = self._shared
        self._tests: dict[str, dict[str, Any]] = {}
        self._functions: dict[str, set[Any]] = {}
        if calls:
            threading.settrace(self._called)
            sys.settrace(self._called)
        sys.settrace(self._called)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        self._now.add(frame.f_code)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            is_on_postgresql = item.get_closest_marker("database") is not None
            self._tests[item.nodeid] = {"s": 0.0, "ok": True, "database": is_on_postgresql}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self._now = self._functions[item.nodeid] = set()
        if self._calls:  # set again, because a test may have switched tracing off
            sys.settrace(self._called)
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            self._now = self._shared

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        before = self._now
        if fixturedef.scope != "function":
            self._now = self._shared
        try:
            return (yield)
        finally:
            self._now = before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests[report.nodeid]
        test["s"] += report.duration
        test["ok"] &= not report.failed

    def outcome(self) -> dict[str, Any]:
        """Return the tests with their functions (``path::qualified name``), and the shared ones."""
        sys.settrace(None)
        for name, codes in self._functions.items():
            self._tests[name]["calls"] = sorted(self._names(codes))
        return {"tests": self._tests, "shared": sorted(self._names(self._shared))}

    def _names(self, codes: set[Any]) -> set[str]:
        return {
            f"{code.co_filename[self._cut :]}::{code.co_qualname.partition('.<locals>.<')[0]}"
            for code in codes
            if code.co_filename.startswith(self._prefixes)
        }
