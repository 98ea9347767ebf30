# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the command line in this process, with a separate home and settings, and its output and
exit code."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import format_time
from frankly_server.cli import front
from frankly_server.cli.services import open_services
from frankly_server.store import Database

from tests.frankly_server.samples import row
from tests.frankly_server.web.site import SURVEY


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> Any:
        return json.loads(self.err)


Frankly = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty FRANKLY_HOME, set in the environment of this test and of the processes that it starts."""
    for name in [name for name in os.environ if name.startswith("FRANKLY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FRANKLY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def frankly(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Frankly:
    """Run one command with `stdin` (text) as its input."""

    def run(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode(errors="surrogateescape")))
        )
        capsys.readouterr()
        code = front.run([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Done(code, written.out, written.err)

    return run


@pytest.fixture
def survey_file(tmp_path: Path) -> Path:
    """The file of a survey that is open today."""
    now = datetime.now(UTC)
    text = SURVEY.decode()
    for name, days in (("opens", -1), ("closes", 30), ("expires", 60)):
        start = text.index(f"{name}: ")
        text = (
            text[:start]
            + f"{name}: {format_time(now + timedelta(days=days))}"
            + text[text.index("\n", start) :]
        )
    file = tmp_path / "survey.yaml"
    file.write_text(text)
    return file


@pytest.fixture
def ready(frankly: Frankly) -> Frankly:
    """A server with keys and tables."""
    assert frankly("keys", "init", "--yes").code == 0
    assert frankly("migrate").code == 0
    return frankly


def filled(
    ready: Frankly, survey_file: Path, home: Path, symbols: Iterable[tuple[int, ...]]
) -> tuple[str, str, Database]:
    """Publish the survey and store a report with each of these symbols.

    Returns the survey's id, its document's digest, and the database.
    """
    assert ready("survey", "apply", str(survey_file)).code == 0
    survey = ready("survey", "publish", "habits", "--json").json["survey"]
    database = Database(f"sqlite:///{home / 'frankly.db'}")
    with database.transaction("fill") as tx:
        (document,) = tx.documents.versions(survey)
        rows = [replace(row(*y, document=document.digest), survey=survey) for y in symbols]
        tx.reports.add(rows)
    return survey, document.digest, database


@pytest.fixture
def counted(ready: Frankly, survey_file: Path) -> Frankly:
    """A published survey 'habits' with 60 reports, and a draft called 'draft'."""
    ready("survey", "apply", survey_file)
    published = ready("survey", "publish", "habits", "--json").json
    with open_services() as services:
        reports = [
            {"v": 1, "doc": published["digest"], "id": f"{i:032x}", "y": [i % 2, i % 3], "strata": {"region": "north"},
             "token": None}
            for i in range(60)
        ]  # fmt: skip
        services.intake.accept_batch(published["survey"], reports)
        services.releasing.release()
    survey_file.write_text(survey_file.read_text().replace("name: habits", "name: draft"))
    ready("survey", "apply", survey_file)
    return ready
