# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the implementation under test, a scripted server, and one install."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import format_time

from tests.conformance.driver import OURS, Outcome, Run, command_line, in_this_process, process
from tests.conformance.site import Site, serving
from tests.frankly_protocol.samples import NOW


@pytest.fixture(scope="session")
def run(full: bool) -> Run:
    """Return a runner that starts a process for each command; our own implementation runs in this
    process unless --full is set."""
    named = command_line()
    if named is not None:
        return process(named)
    return process(OURS) if full else in_this_process


@pytest.fixture
def site() -> Iterator[Site]:
    """A separate server for each test."""
    with serving() as running_site:
        yield running_site


@dataclass
class Install:
    """One device, which runs commands on its store, by default at the time of the sample documents,
    and records outcomes."""

    run: Run
    site: Site
    folder: Path
    now: Any = NOW
    outcomes: list[Outcome] = field(default_factory=list)

    def init(
        self, *, pin: bool = True, shipped: bool = True, link: str | None = None, **policy: Any
    ) -> Outcome:
        """Run `init` for the site's survey."""
        settings = {
            "store": str(self.folder),
            "link": link or self.site.link(pin=pin),
            "policy": policy,
        }
        return self._run("init", {**settings, "keys": self.site.shipped if shipped else None})

    def refresh(self) -> Outcome:
        """Run `refresh`, which fetches, verifies and sends sealed reports."""
        return self._run("refresh", {"store": str(self.folder), "now": format_time(self.now)})

    def plan(self, **fields: Any) -> Outcome:
        """Run `plan`, which draws what to ask or returns what was drawn before."""
        request = {"store": str(self.folder), "now": format_time(self.now)}
        return self._run("plan", request | fields)

    def answer(self, answers: Any = None, **fields: Any) -> Outcome:
        """Run `answer`, by default for the only question of the sample document."""
        request = {
            "store": str(self.folder),
            "now": format_time(self.now),
            "answers": {"affair": "yes"} if answers is None else answers,
        }
        return self._run("answer", {**request, **fields})

    def _run(self, name: str, request: Any) -> Outcome:
        self.outcomes.append(self.run(name, request))
        return self.outcomes[-1]


@pytest.fixture
def install(run: Run, site: Site, tmp_path: Path) -> Install:
    """A new device."""
    return Install(run, site, tmp_path / "device")
