# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly keys` and `frankly migrate`: they write private files and overwrite nothing."""

import stat
from pathlib import Path

import pytest
from frankly_server.cli.services import open_services

from tests.frankly_server.cli.conftest import Frankly


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_init_creates_private_files_without_a_terminal(frankly: Frankly, home: Path) -> None:
    result = frankly("keys", "init", "--yes", "--json")
    assert result.code == 0
    assert Path(result.json["folder"]) == home / "keys"
    assert result.json["set_aside"] is None
    assert (modes(home / "keys"), stat.S_IMODE((home / "keys").stat().st_mode)) == ({0o600}, 0o700)


def test_init_names_every_key_and_the_first_of_each_role(frankly: Frankly) -> None:
    made = frankly("keys", "init", "--yes", "--json", "--roots", "2", "--publishers", "3").json
    assert (len(set(made["roots"])), len(set(made["publishers"]))) == (2, 3)
    assert (made["root"], made["publisher"]) == (made["roots"][0], made["publishers"][0])
    assert made["encrypted"] is False
    for option in ("--roots", "--publishers", "--root-threshold", "--publisher-threshold"):
        for number in ("0", "33"):
            assert frankly("keys", "init", "--yes", "--force", option, number).code == 2
    text = frankly("keys", "init", "--yes", "--force").err
    assert "Move root*.pem to a safe place offline" in " ".join(text.split())
    assert "The older keys are in" in text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == [
        "root", "publisher", "log",
    ]  # fmt: skip


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("", 2)])
def test_init_prompts_once(frankly: Frankly, home: Path, answer: str, code: int) -> None:
    result = frankly("keys", "init", stdin=answer)
    assert result.code == code
    assert (home / "keys").exists() == (code == 0)
    assert result.err.count("Make new signing keys") == 1


def test_init_never_overwrites(frankly: Frankly, home: Path) -> None:
    first = frankly("keys", "init", "--yes", "--json").json
    again = frankly("keys", "init", "--yes", "--json")
    assert (again.code, again.problem["code"]) == (3, "file_exists")
    forced = frankly("keys", "init", "--yes", "--force", "--json").json
    assert forced["root"] != first["root"]
    assert Path(forced["set_aside"]).is_dir()


def test_api_keys_are_shown_once_and_alone_on_stdout(ready: Frankly, home: Path) -> None:
    result = ready("keys", "api", "--role", "analyst", "--label", "Ada")
    assert result.code == 0
    assert result.out.startswith("frankly_live_")
    assert result.out.count("\n") == 1
    assert result.out.strip() not in result.err
    assert result.out.strip().encode() not in (home / "frankly.db").read_bytes()
    assert (
        ready("keys", "api", "--role", "admin", "--label", "Ada", "--json").json["role"] == "admin"
    )


def test_an_api_key_for_one_survey(ready: Frankly, survey_file: Path) -> None:
    """The role reader needs a survey; an unknown name makes no key."""
    assert ready("survey", "apply", str(survey_file)).code == 0
    make = ("keys", "api", "--label", "Ada", "--json")
    refused = ready(*make, "--role", "reader")
    assert (refused.code, refused.problem["code"], refused.problem["field"]) == (
        3,
        "field_type",
        "surveys",
    )
    assert ready(*make, "--role", "reader", "--survey", "none").problem["code"] == "survey_unknown"
    assert ready(*make, "--role", "reader", "--survey", "habits").json["role"] == "reader"
    # Its organisation is that of the survey.
    clinic = ("survey", "apply", str(survey_file), "--organisation", "clinic", "--json")
    survey = ready(*clinic).json["survey"]
    made = ready(*make, "--role", "analyst", "--survey", "habits@clinic").json
    with open_services() as services:
        holder = services.access.authenticate(made["key"])
    assert (holder.role, holder.organisation, holder.surveys) == ("analyst", "clinic", (survey,))


def test_a_label_that_cannot_be_shown_is_refused(ready: Frankly) -> None:
    result = ready("keys", "api", "--role", "admin", "--label", "a\u202eb", "--json")
    assert (result.code, result.problem["code"], result.problem["field"]) == (
        3,
        "text_characters",
        "label",
    )


def test_migrate_twice_changes_nothing(frankly: Frankly) -> None:
    assert frankly("migrate", "--json").json == frankly("migrate", "--json").json


def test_before_migrating_every_verb_says_what_to_do(frankly: Frankly, home: Path) -> None:
    for _ in range(2):  # without a home, then with an empty home
        result = frankly("survey", "list")
        assert result.code == 3
        assert "frankly migrate" in result.err
        home.mkdir(exist_ok=True)


def test_a_database_that_is_down_is_exit_5(
    frankly: Frankly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRANKLY_DATABASE_URL", "postgresql://nobody:canary@127.0.0.1:1/none")
    result = frankly("survey", "list", "--json")
    assert (result.code, result.problem["code"]) == (5, "unavailable")
    assert "canary" not in result.err
