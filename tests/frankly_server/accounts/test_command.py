# SPDX-License-Identifier: Apache-2.0
"""`frankly admin create-owner`, and surveys as files on the command line."""

import json
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.cli.front import run
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys import parse_definition

from tests.frankly_server.web.site import SURVEY


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRANKLY_HOME", str(tmp_path))
    assert run(["migrate"]) == 0
    return tmp_path


def test_an_owner_is_made_and_can_sign_in(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["admin", "create-owner", "--email", "ada@example.org", "--json"]) == 0
    created = json.loads(capsys.readouterr().out)
    assert (created["email"], created["organisation"], created["role"]) == (
        "ada@example.org",
        "main",
        "owner",
    )
    services = Services.open(Settings(home=home), SystemClock())
    assert services.accounts.sign_in("ada@example.org", created["password"]).person.role == "owner"
    services.close()
    assert run(["admin", "create-owner", "--email", "ada@example.org"]) == 3


def test_a_password_from_a_file_is_never_shown(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = home / "password"
    secret.write_text("correct horse battery\n")
    arguments = [
        "admin",
        "create-owner",
        "--email",
        "eve@example.org",
        "--organisation",
        "other",
        "--password-file",
    ]
    assert run([*arguments, str(secret)]) == 0
    captured = capsys.readouterr()
    assert "correct horse" not in captured.out + captured.err
    secret.write_text("short")
    assert run([*arguments[:3], "bob@example.org", *arguments[4:], str(secret)]) == 3


def test_what_is_exported_is_what_was_applied(
    home: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = home / "habits.yaml"
    file.write_bytes(SURVEY)
    assert run(["survey", "apply", str(file)]) == 0
    capsysbinary.readouterr()
    assert run(["survey", "export", "habits"]) == 0
    exported = capsysbinary.readouterr().out
    assert parse_definition(exported) == parse_definition(SURVEY)
    file.write_bytes(exported)
    assert run(["survey", "diff", str(file), "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["status"] == "unchanged"
    file.write_bytes(exported.replace(b"Do you smoke?", b"Do you vape?"))
    assert run(["survey", "diff", str(file)]) == 0
    assert (
        "~ blocks[0].questions[0].text.en: Do you smoke? → Do you vape?"
        in capsysbinary.readouterr().out.decode()
    )
    assert run(["survey", "export", "nothing"]) == 3


def test_templates_are_listed_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["survey", "template", "--json"]) == 0
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)["templates"]]
    assert len(names) == 6
    for name in names:
        assert run(["survey", "template", name]) == 0
        assert parse_definition(capsys.readouterr().out.encode()).name == name
    assert run(["survey", "template", "nothing"]) == 3
