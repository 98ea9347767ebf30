# SPDX-License-Identifier: Apache-2.0
"""Drills and incidents of docs/operations.md, run as written on a server that has reports."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.cli import front
from frankly_server.services import Services
from frankly_server.settings import Settings
from pydantic import SecretStr

from tests.faults.server.running import Running, report_bytes
from tests.frankly_server.samples import stored
from tools.blocks import blocks

REPORTS = 25


@dataclass(frozen=True)
class Desk:
    """An operator's shell in a separate folder, for a server that has reports."""

    folder: Path
    home: Path
    database_url: str
    stick: Path
    survey: str
    output: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def line_by_line(self, script: str) -> str:
        """Run a script as a shell would, with `frankly` in this process; return the last output."""
        last_output, umask = "", ""
        for line in script.splitlines():
            arguments = shlex.split(os.path.expandvars(line), comments=True)
            if arguments[0] == "frankly":
                last_output = self.run(line)
            elif arguments[0] == "export":
                for word in arguments[1:]:
                    self.monkeypatch.setenv(*word.split("=", 1))
            elif arguments[0] == "umask":
                umask = f"{line}\n"
            else:
                last_output = self.shell(umask + line)
        return last_output

    def shell(self, script: str) -> str:
        """Run a script unchanged in a shell; return its output."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        completed = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], env={**os.environ, "PATH": path}, cwd=self.folder,
            capture_output=True, text=True,
        )  # fmt: skip
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def run(self, line: str, code: int = 0) -> str:
        """Run one line `frankly …` in this process; return its output."""
        program, *arguments = shlex.split(os.path.expandvars(line), comments=True)
        assert program == "frankly"
        self.output.readouterr()
        assert front.run(arguments) == code, line
        return self.output.readouterr().out

    def json(self, line: str) -> Any:
        """Run one line; return the JSON value it prints."""
        return json.loads(self.run(f"{line} --json"))

    def services(self, home: Path | None = None) -> Services:
        """Open the services of this home folder or of another."""
        url = self.database_url if home is None else f"sqlite:///{home / 'frankly.db'}"
        return Services.open(
            Settings(home=home or self.home, database_url=SecretStr(url)), SystemClock()
        )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home folder of a server that has reports, including its root key; created once."""
    home = tmp_path_factory.mktemp("home")
    running = Running(home, f"sqlite:///{home / 'frankly.db'}")
    services = running.services()
    for number in range(REPORTS):
        services.intake.accept(
            running.survey, report_bytes(running, f"{number:032x}", (number % 2, number % 3))
        )
    services.close()
    return home, running.survey


@pytest.fixture
def desk(
    filled: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    """A copy of that server for one test, with its root key in a separate folder."""
    home, stick, folder = tmp_path / "home", tmp_path / "stick", tmp_path / "folder"
    shutil.copytree(filled[0], home)
    for directory in (stick, folder):
        directory.mkdir(mode=0o700)
    (home / "keys" / "root.pem").rename(stick / "root.pem")
    url = f"sqlite:///{home / 'frankly.db'}"
    for name, value in (
        ("FRANKLY_HOME", str(home)),
        ("FRANKLY_DATABASE_URL", url),
        ("STICK", str(stick)),
        ("PWD", str(folder)),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return Desk(folder, home, url, stick, filled[1], capsys, monkeypatch)


def drill(root: Path, name: str) -> str:
    """Return the blocks of a drill in order, as one script."""
    text = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    blocks = re.findall(
        rf"^<!-- drill: {name} -->\n```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    assert blocks
    return "".join(blocks)


def test_a_backup_is_restored_elsewhere_and_is_the_same_server(
    root: Path, desk: Desk, full: bool
) -> None:
    ours, script = desk.services(), drill(root, "backup")
    printed = desk.shell(script) if full else desk.line_by_line(script)
    assert "every count agrees with the reports" in " ".join(printed.split())
    # Both files contain signing keys.
    for path in (desk.folder / "keys.tar", desk.folder / "drill"):
        assert path.stat().st_mode & 0o077 == 0
    theirs = desk.services(desk.folder / "drill")
    for original, restored in zip(
        _reports_and_counts(ours, desk.survey),
        _reports_and_counts(theirs, desk.survey),
        strict=True,
    ):
        assert original == restored
    assert len(_reports_and_counts(theirs, desk.survey)[0]) == REPORTS
    assert theirs.surveys.envelope(desk.survey) == ours.surveys.envelope(desk.survey)
    assert theirs.keys.document() == ours.keys.document()
    for services in (ours, theirs):
        services.close()


DOCKER = """#!/bin/sh
case "$1 $2" in "compose up") exec frankly migrate ;; esac
while [ "$1" != keys ] && [ "$1" != migrate ]; do shift; done
shift
for word; do
  shift
  set -- "$@" "$(printf %s "$word" | sed "s#/tmp/#$FRANKLY_HOME/#g; s#/var/lib/frankly#$FRANKLY_HOME#g")"
done
exec "$@"
"""
"""Replaces docker: runs the command of a service on this machine, and the migration at every `up`."""


@pytest.mark.parametrize("up_first", [False, True])
def test_a_backup_is_restored_before_or_after_the_first_up(
    root: Path, desk: Desk, compose: dict[str, Any], up_first: bool
) -> None:
    [script] = [
        block.body
        for block in blocks((root / "docs" / "operations.md").read_text(encoding="utf-8"))
        if "frankly restore /tmp/" in block.body
    ]
    # What this test takes from the file: at every `up` the migration runs, and servers wait for it.
    services = compose["services"]
    assert services["migrate"]["command"] == ["frankly", "migrate"]
    waits_for = services["server"]["depends_on"]["migrate"]
    assert waits_for == {"condition": "service_completed_successfully"}
    ours = desk.services()
    desk.line_by_line(drill(root, "backup").partition("umask 077\nmkdir drill")[0])
    programs, volume = desk.folder / "bin", desk.folder / "volume"
    for folder in (programs, volume):
        folder.mkdir(mode=0o700)
    (programs / "docker").write_text(DOCKER)
    (programs / "docker").chmod(0o755)
    desk.monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    desk.monkeypatch.setenv("FRANKLY_HOME", str(volume))
    desk.monkeypatch.setenv("FRANKLY_DATABASE_URL", f"sqlite:///{volume / 'frankly.db'}")
    _, copy_keys, _, up = script.splitlines()
    if up_first:
        desk.shell(copy_keys)
        with pytest.raises(AssertionError, match="the log of this database is empty"):
            desk.shell(up)
        assert not (volume / "frankly.db").exists()
    desk.shell(script)
    theirs = desk.services(volume)
    theirs.check_start()
    assert _reports_and_counts(theirs, desk.survey) == _reports_and_counts(ours, desk.survey)
    for opened in (ours, theirs):
        opened.close()


def _reports_and_counts(services: Services, survey: str) -> tuple[list[Any], dict[Any, int]]:
    with services.database.reading("compare") as tx:
        counts: dict[Any, int] = {}
        for document in services.surveys.versions(survey):
            counts |= {
                (document.digest, key): n
                for key, n in tx.counts.of_document(document.digest).items()
            }
        return sorted((row.id, row.symbols, row.document) for row in stored(tx, survey)), counts


def test_the_publishers_key_is_replaced_and_documents_are_signed_again(
    root: Path, desk: Desk
) -> None:
    before = desk.json("frankly keys status")
    desk.line_by_line(drill(root, "keys"))
    after = desk.json("frankly keys status")
    assert after["version"] == before["version"] + 1
    assert _in_force(after, "publisher").isdisjoint(_in_force(before, "publisher"))
    services = desk.services()
    assert services.surveys.signed_by_others() == []
    services.close()


def _in_force(status: Any, role: str) -> set[str]:
    return {
        key["key_id"] for key in status["keys"] if (key["role"], key["state"]) == (role, "in force")
    }


def test_a_stolen_key_is_revoked_and_signs_nothing_more(desk: Desk) -> None:
    [stolen] = _in_force(desk.json("frankly keys status"), "publisher")
    desk.run(f'frankly keys revoke {stolen} --root-key "$STICK/root.pem" --yes')
    [new] = _in_force(desk.json("frankly keys status"), "publisher")
    assert new != stolen
    services = desk.services()
    assert (
        len(services.surveys.signed_by_others()) == 1
    )  # until `resign`, devices refuse the documents
    services.close()
    assert len(desk.json("frankly keys resign --yes")["signed"]) == 1
    assert "broken" not in desk.run("frankly doctor")


def test_without_any_root_key_nothing_is_changed_and_surveys_go_on(desk: Desk) -> None:
    (desk.stick / "root.pem").unlink()
    status = desk.json("frankly keys status")
    for command in ("rotate --publisher", f"revoke {next(iter(_in_force(status, 'publisher')))}"):
        desk.run(f"frankly keys {command} --yes", code=3)
    assert desk.json("frankly keys status") == status
    assert "broken" not in desk.run("frankly doctor")


def test_a_second_root_key_replaces_a_lost_one(desk: Desk) -> None:
    desk.run('frankly keys rotate --add-root 1 --root-key "$STICK/root.pem" --yes')
    [second] = (desk.home / "keys").glob("root-*.pem")
    second.rename(desk.stick / "second.pem")
    (desk.stick / "root.pem").unlink()
    before = _in_force(desk.json("frankly keys status"), "root")
    desk.run('frankly keys rotate --root --root-key "$STICK/second.pem" --yes')
    assert _in_force(desk.json("frankly keys status"), "root").isdisjoint(before)


def test_every_command_of_the_page_exists(root: Path) -> None:
    """The test looks up each `frankly …` command of the page, with the options that the page uses."""
    text = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    commands = set(re.findall(r"frankly ((?:[a-z]+(?:-[a-z]+)* ?){1,2})((?: ?--[a-z-]+)*)", text))
    assert len(commands) >= 15
    for verbs, options in sorted(commands):
        command: click.Command = front.cli
        for word in verbs.split():
            if not isinstance(command, click.Group):
                break  # the remaining words are arguments
            under = command.get_command(click.Context(command), word)
            assert under is not None, f"frankly {verbs}"
            command = under
        options_known = {option for parameter in command.params for option in parameter.opts}
        assert set(options.split()) <= options_known | {"--help"}, f"frankly {verbs}{options}"
