# SPDX-License-Identifier: Apache-2.0
"""Audit trail of the command line: every command that changes a survey or a key leaves a line."""

import re
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import click
import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.accounts import Accounts
from frankly_server.accounts.service import COMMAND_LINE
from frankly_server.cli.front import VERBS
from frankly_server.settings import Settings
from frankly_server.store import Database

from tests.frankly_server.cli.conftest import Frankly

NAME = "habits"


def trail() -> list[tuple[str, str, str]]:
    """Return actor, action and subject of the main organisation's events, oldest first."""
    with closing(Database(Settings.load().store_url())) as database:
        events = Accounts(database, SystemClock()).trail("main")
    # The first characters of an API key are random.
    subjects = [re.sub(r"^[\w-]{8}…,", "PREFIX…,", event.subject) for event in events]
    return [
        (event.actor, event.action, subject)
        for event, subject in reversed(list(zip(events, subjects, strict=True)))
    ]


# Arguments of a command, and the action and subject of its line.
COMMANDS: list[tuple[list[str], str, str]] = [
    (["survey", "publish", NAME], "version 1 published", NAME),
    (["survey", "publish", NAME], "version 1 unchanged", NAME),
    (["tokens", NAME, "--count", "3"], "invite tokens made: 3", NAME),
    (["release", NAME, "--now"], "reports released at once", NAME),
    (["release", "--now"], "reports released at once", "all surveys"),
    (["survey", "pause", NAME], "survey paused", NAME),
    (["survey", "resume", NAME], "survey open", NAME),
    (["survey", "erase", NAME, "--yes"], "answers erased", NAME),
    (["survey", "close", NAME, "--yes"], "survey closed", NAME),
    (["survey", "archive", NAME], "survey archived", NAME),
    (
        ["keys", "api", "--role", "admin", "--label", "CI"],
        "API key made",
        "PREFIX…, admin, all surveys: CI",
    ),
    (["counts", "rebuild", NAME], "counts rebuilt", NAME),
    (["backup", "create", "FILE"], "backup created", "the whole database"),
    (["keys", "rotate", "--publisher", "--yes"], "signing keys changed", "version 2"),
    (["keys", "resign", "--yes"], "documents signed again", "documents: 1"),
]


# Commands that change something, whose lines other tests require, or that have no database to write to.
ELSEWHERE = {
    *("survey apply", "restore", "migrate", "scale partition"),
    *("admin create-owner", "admin unlock", "admin reset-password"),
    *("admin reset-second-factor", "admin disable"),
    *("keys init", "keys revoke", "keys sign"),
}
READING = {
    *(
        "keys status",
        "admin list",
        "survey diff",
        "survey export",
        "survey import",
        "survey template",
        "survey schema",
    ),
    *(
        "survey list",
        "serve",
        "backup verify",
        "codebook",
        "evidence",
        "counts show",
        "counts table",
        "counts verify",
    ),
    *("scale export", "scale count", "doctor", "estimates", "witness", "audit", "replay", "design"),
    *("measure", "estimate", "plan", "waves", "verify", "demo"),
}


def commands(command: click.Command, name: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for word, one in command.commands.items():
            yield from commands(one, f"{name} {word}")
    else:
        yield name


def test_every_command_is_known_to_leave_a_line_or_to_read_only() -> None:
    """A new command is found here."""
    every = set()
    for verb, (place, _) in VERBS.items():
        module, _, attribute = place.partition(":")
        every |= set(commands(getattr(import_module(module), attribute), verb))
    lines = {
        name
        for name in every
        if any(name.split() == one[: len(name.split())] for one, *_ in COMMANDS)
    }
    assert lines | ELSEWHERE | READING == every
    assert not lines & READING


@pytest.fixture
def applied(ready: Frankly, survey_file: Path) -> Frankly:
    assert ready("survey", "apply", survey_file).code == 0
    return ready


def test_every_command_that_changes_something_leaves_a_line(
    applied: Frankly, tmp_path: Path
) -> None:
    expected = [("draft created", NAME)]
    for arguments, action, subject in COMMANDS:
        done = applied(*(tmp_path / "backup.zip" if one == "FILE" else one for one in arguments))
        assert done.code == 0, (arguments, done.err)
        expected.append((action, subject))
    assert [(action, subject) for _, action, subject in trail()] == expected
    assert {actor for actor, _, _ in trail()} == {COMMAND_LINE}


def test_a_command_that_changes_nothing_leaves_no_line(applied: Frankly, survey_file: Path) -> None:
    before = trail()
    for arguments in (
        ["survey", "apply", survey_file],
        ["survey", "apply", survey_file, "--dry-run"],
        ["survey", "diff", survey_file],
        ["survey", "erase", "another", "--yes"],
        ["tokens", "another", "--count", "1"],
        ["release"],
        ["keys", "resign", "--yes"],
        ["keys", "status"],
    ):
        applied(*arguments)
    assert trail() == before


def test_the_line_belongs_to_the_organisation_of_the_survey(
    ready: Frankly, survey_file: Path
) -> None:
    assert ready("survey", "apply", survey_file, "--organisation", "clinic").code == 0
    assert ready("survey", "erase", "habits@clinic", "--yes").code == 0
    assert trail() == []


def test_keys_change_without_a_database(frankly: Frankly) -> None:
    """A key ceremony also runs on a machine that has no database."""
    assert frankly("keys", "init", "--yes").code == 0
    assert frankly("keys", "rotate", "--yes").code == 0
