# SPDX-License-Identifier: Apache-2.0
"""Command `frankly admin`, and survey files on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import SystemClock
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import SecondFactorNeeded, passwords
from frankly_server.accounts.service import COMMAND_LINE
from frankly_server.cli.front import run
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import PasskeyRow
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.accounts.people import CHEAP, code
from tests.frankly_server.web.site import SURVEY
from tests.migrated import migrated


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRANKLY_HOME", str(tmp_path))
    monkeypatch.setattr(passwords, "PasswordHasher", lambda: CHEAP)
    migrated(f"sqlite:///{tmp_path / 'frankly.db'}").close()
    return tmp_path


def test_an_owner_is_created_and_can_sign_in(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def admin(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a command of `frankly admin` and return its JSON."""
    capsys.readouterr()
    assert run(["admin", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {row["email"]: row["state"] for row in admin(capsys, "list")["accounts"]}


def test_an_owner_who_is_locked_out_can_sign_in_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    email = "ada@example.org"
    password = admin(capsys, "create-owner", "--email", email)["password"]
    services = Services.open(Settings(home=home), SystemClock())
    session = services.accounts.sign_in(email, password).token
    for _ in range(5):
        with pytest.raises(InvalidInput):
            services.accounts.sign_in(email, "wrong wrong wrong")
    assert states(capsys) == {email: "locked"}
    admin(capsys, "unlock", "--email", " Ada@Example.org ")
    assert states(capsys) == {email: "open"}
    assert services.accounts.person(session) is not None
    assert services.accounts.sign_in(email, password)
    for _ in range(5):
        with pytest.raises(InvalidInput):
            services.accounts.sign_in(email, "wrong wrong wrong")
    with services.database.transaction("a passkey") as tx:
        account = tx.accounts.by_email(email)
        assert account is not None
        tx.passkeys.add(PasskeyRow("c", account.id, b"", 0, 0, "laptop", "2026-06-01T12:00:00Z"))
    reset = admin(capsys, "reset-password", "--email", email)
    assert reset["passkeys"] == ["laptop, since 2026-06-01"]
    assert (reset["totp"], reset["recovery_codes"]) == (False, 0)
    assert run(["admin", "reset-password", "--email", email]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "keeps passkeys that sign in without it (laptop, since 2026-06-01)" in said
    assert "`frankly admin reset-second-factor` removes them" in said
    admin(capsys, "reset-second-factor", "--email", email)
    renewed = admin(capsys, "reset-password", "--email", email)["password"]
    assert services.accounts.person(session) is None  # the account's sessions have ended
    with pytest.raises(InvalidInput):
        services.accounts.sign_in(email, password)
    session = services.accounts.sign_in(email, renewed).token
    admin(capsys, "disable", "--email", email)
    assert states(capsys) == {email: "disabled"}
    assert services.accounts.person(session) is None
    with pytest.raises(InvalidInput):
        services.accounts.sign_in(email, renewed)
    actions = [
        event.action for event in services.accounts.trail("main") if event.actor == COMMAND_LINE
    ]
    assert actions == [
        *("account disabled", "password reset", "second factor reset", "password reset"),
        *("password reset", "account unlocked", "account created"),
    ]
    services.close()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command of `frankly admin` and return its remarks."""
    capsys.readouterr()
    assert run(["admin", *arguments, "--email", "ada@example.org"]) == 0
    return " ".join(capsys.readouterr().err.split())


def test_a_disabled_account_is_called_disabled(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    email = "ada@example.org"
    admin(capsys, "create-owner", "--email", email)
    assert said(capsys, "unlock") == f"{email} can sign in again."
    assert "disabled" not in said(capsys, "reset-password")
    assert admin(capsys, "unlock", "--email", email)["disabled"] is False
    admin(capsys, "disable", "--email", email)
    assert said(capsys, "unlock").startswith(f"{email} is disabled and still cannot sign in")
    words = said(capsys, "reset-password")
    assert "It is disabled and still cannot sign in." in words
    assert "after signing in" not in words
    for command in ("unlock", "reset-password"):
        assert admin(capsys, command, "--email", email)["disabled"] is True


@pytest.mark.parametrize("command", ["reset-password", "reset-second-factor", "disable"])
def test_what_an_evicted_person_has_made_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    admin(capsys, "create-owner", "--email", "ada@example.org")
    words = said(capsys, command)
    assert (
        "API keys of its organisation stay, and so do accounts that this person has made" in words
    )
    assert "revoke keys at /admin/keys" in words
    assert "disable accounts that you do not know at /admin/people" in words


def test_a_second_factor_that_is_lost_is_removed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    email = "ada@example.org"
    password = admin(capsys, "create-owner", "--email", email)["password"]
    services = Services.open(Settings(home=home), SystemClock())
    person = services.accounts.sign_in(email, password).person
    factors = services.second_factors
    factors.begin_totp(person, password)
    secret = factors.state(person).new_secret
    assert secret is not None
    factors.confirm_totp(person, code(secret, int(SystemClock().now().timestamp())))
    with pytest.raises(SecondFactorNeeded):
        services.accounts.sign_in(email, password)
    admin(capsys, "reset-second-factor", "--email", email)
    assert services.accounts.sign_in(email, password).person == person
    services.close()


@pytest.mark.parametrize("command", ["unlock", "reset-password", "reset-second-factor", "disable"])
def test_an_unknown_address_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run(["admin", command, "--email", "nobody@example.org"]) == 3
    assert "frankly admin list" in capsys.readouterr().err


def test_the_applied_file_is_exported(
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
    assert len(names) == 11
    for name in names:
        assert run(["survey", "template", name]) == 0
        assert parse_definition(capsys.readouterr().out.encode()).name == name
    assert run(["survey", "template", "nothing"]) == 3
