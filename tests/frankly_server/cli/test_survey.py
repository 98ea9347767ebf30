# SPDX-License-Identifier: Apache-2.0
"""Command `frankly survey`: dry runs, idempotent apply, certified publish, and refusals without effect."""

import json
from pathlib import Path

import pytest
from frankly_protocol.canonical import digest
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_server.app import create_app
from frankly_server.cli.services import open_services
from frankly_server.cli.survey import survey
from frankly_server.settings import Settings
from frankly_server.store import Database
from frankly_server.surveys.survey_state import MOVES

from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.surveys.samples import value
from tests.frankly_server.web.admin.office import PASSWORD, send


def test_apply_is_idempotent_and_dry_run_changes_nothing(ready: Frankly, survey_file: Path) -> None:
    tried = ready("survey", "apply", survey_file, "--dry-run", "--json").json
    assert (tried["status"], tried["dry_run"]) == ("created", True)
    assert ready("survey", "list", "--json").json == {"surveys": []}
    created = ready("survey", "apply", survey_file, "--json").json
    assert created["status"] == "created"
    assert ready("survey", "apply", survey_file, "--json").json["status"] == "unchanged"
    survey_file.write_text(survey_file.read_text().replace("Do you smoke?", "Do you smoke now?"))
    changed = ready("survey", "apply", survey_file, "--dry-run")
    assert changed.out == "~ blocks[0].questions[0].text.en: Do you smoke? → Do you smoke now?\n"
    assert "would be updated" in changed.err
    updated = ready("survey", "apply", survey_file, "--json").json
    assert (updated["status"], updated["survey"]) == ("updated", created["survey"])


def test_names_are_unique_within_an_organisation(ready: Frankly, survey_file: Path) -> None:
    ours = ready("survey", "apply", survey_file, "--json").json
    clinic = ("survey", "apply", survey_file, "--organisation", "clinic", "--json")
    theirs = ready(*clinic).json
    assert (theirs["status"], theirs["name"]) == ("created", "habits@clinic")
    assert ready(*clinic).json["status"] == "unchanged"
    assert ours["survey"] != theirs["survey"]
    listed = ready("survey", "list", "--json").json["surveys"]
    assert [line["name"] for line in listed] == ["habits", "habits@clinic"]
    published = ready("survey", "publish", "habits@clinic", "--json").json
    assert published["survey"] == theirs["survey"]
    for organisation in ("A clinic", "", "a@b"):
        refused = ready("survey", "apply", survey_file, "--organisation", organisation, "--json")
        assert (refused.code, "organisation" in refused.err) == (3, True)


def test_publish_signs_once_and_pins(ready: Frankly, survey_file: Path) -> None:
    survey = ready("survey", "apply", survey_file, "--json").json["survey"]
    first = ready("survey", "publish", "habits", "--json")
    assert first.code == 0
    published = first.json
    assert (published["status"], published["survey"], published["version"]) == (
        "published",
        survey,
        1,
    )
    assert published["link"].endswith(f"/s/{survey}#{published['digest'].replace(':', '=')}")
    assert [block["id"] for block in published["blocks"]] == ["smokes", "drinks"]
    assert ready("survey", "publish", "habits", "--json").json["status"] == "unchanged"
    database = Database(Settings.load().store_url())
    with database.reading("test") as tx:
        (row,) = tx.documents.versions(survey)
    database.close()
    payload = Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload
    assert digest(payload) == published["digest"]
    SurveyDocument.parse(payload).require_private()
    listed = ready("survey", "list", "--json").json["surveys"]
    assert [(line["name"], line["state"], line["link"]) for line in listed] == [
        ("habits", "open", published["link"])
    ]


def test_publish_shows_a_table_and_ends_with_the_link(ready: Frankly, survey_file: Path) -> None:
    ready("survey", "apply", survey_file)
    result = ready("survey", "publish", "habits")
    lines = result.out.splitlines()
    assert lines[-1].startswith("http://127.0.0.1:8000/s/")
    assert any("smokes" in line and "ldp" in line and "warner" in line for line in lines)
    assert any("within the budget of 2 nats" in line for line in lines)
    assert "\x1b" not in result.out


def test_publishing_again_says_what_the_earlier_link_does(
    ready: Frankly, survey_file: Path
) -> None:
    ready("survey", "apply", survey_file)
    assert ready("survey", "publish", "habits", "--json").json["older_links"] == []
    assert "has its own link" not in ready("survey", "publish", "habits").err
    with open_services() as services:
        closes = services.surveys.versions("habits")[0].closes
    survey_file.write_text(survey_file.read_text().replace("Do you smoke?", "Do you smoke now?"))
    ready("survey", "apply", survey_file)
    second = ready("survey", "publish", "habits")
    assert (
        "Version 2 has its own link: give it out instead of the one before. Links of earlier"
        in second.err
    )
    assert f"accept answers until it closes (version 1: {closes:%Y-%m-%d %H:%M} UTC)." in second.err
    again = ready("survey", "publish", "habits", "--json").json
    assert again["older_links"] == [{"version": 1, "closes": format_time(closes)}]
    assert second.out.splitlines()[-1] == again["link"]
    with open_services() as services:
        first = services.surveys.versions("habits")[0].digest
        report = {"v": 1, "doc": first, "id": "0" * 32, "y": [0, 0], "strata": {"region": "north"},
                  "token": None}  # fmt: skip
        (outcome,) = services.intake.accept_batch(again["survey"], [report])
    assert getattr(outcome, "status", None) == "accepted"


def test_a_notion_without_an_epsilon_shows_none(ready: Frankly, tmp_path: Path) -> None:
    prior = {"secret": "affair", "secrets": ["no", "yes"], "source": "a pilot",
             "joint": [["100", "200", "300"], ["150", "120", "60"]]}  # fmt: skip
    block = {
        key: field_value for key, field_value in value()["blocks"][1].items() if key != "epsilon"
    }
    dpv = {"notion": "dpv", "dpv": "0.6", "sensitive": "yes", "ceiling_cap": "3", "prior": prior}
    anytime = {("opens",): None, ("closes",): None, ("expires",): None}
    (tmp_path / "dpv.yaml").write_text(json.dumps(value({("blocks", 1): block | dpv, **anytime})))
    assert ready("survey", "apply", tmp_path / "dpv.yaml").code == 0
    result = ready("survey", "publish", "habits")
    assert result.code == 0
    lines = (line.replace("│", " ").split() for line in result.out.splitlines())
    cells = {
        cells_of_line[0]: cells_of_line
        for cells_of_line in lines
        if cells_of_line and cells_of_line[0] in ("affair", "happy") and len(cells_of_line) == 7
    }
    assert cells["affair"][2] == "1.0000"
    assert (cells["happy"][2], "inf" in result.out) == ("–", False)
    blocks = {
        block["id"]: block["epsilon"]
        for block in ready("survey", "publish", "habits", "--json").json["blocks"]
    }
    assert blocks == {"affair": "1.0000", "happy": "inf"}  # JSON represents infinity as "inf"


# Name -> (text to replace in the survey file, replacement, exit code, problem, field)
REFUSED: dict[str, tuple[str, str, int, str, str]] = {
    "NaN as ε": ('epsilon: "1"', 'epsilon: "nan"', 3, "eps_not_finite", "blocks[0].epsilon"),
    "ε of 50": ('epsilon: "1"', 'epsilon: "50"', 3, "eps_out_of_range", "blocks[0].epsilon"),
    "an unknown field": ("min_reports", "min_report", 3, "field_unknown", "min_report"),
    "duplicate keys": ("min_reports: 10", "min_reports: 10\nmin_reports: 11", 3, "definition_invalid", ""),
    "choices that look alike": ("id: weekly, label: {en: Weekly}", "id: weekly, label: {en: NEVER}", 3,
                                "choices_collide", "blocks[1].questions[0].choices"),
    "choices in two scripts": ("id: weekly, label: {en: Weekly}", "id: weekly, label: {en: N\u0435v\u0435r}", 3,
                               "choices_collide", "blocks[1].questions[0].choices"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_by_field(ready: Frankly, survey_file: Path, name: str) -> None:
    old, new, code, problem, field = REFUSED[name]
    text = survey_file.read_text()
    assert old in text
    survey_file.write_text(text.replace(old, new, 1))
    result = ready("survey", "apply", survey_file, "--json")
    assert (result.code, result.problem["code"], result.problem["field"] or "") == (
        code,
        problem,
        field,
    )
    assert ready("survey", "list", "--json").json == {"surveys": []}


def test_doubtful_choices_are_a_warning(ready: Frankly, survey_file: Path) -> None:
    text = (
        survey_file.read_text()
        .replace("{en: Weekly}", "{en: N0}")
        .replace("{en: Never}", "{en: NO}")
    )
    survey_file.write_text(text)
    applied = ready("survey", "apply", survey_file)
    assert applied.code == 0
    assert "Warning: In a list of answers, the choices “NO” and “N0” of" in applied.err
    assert "U+0030 DIGIT ZERO" in applied.err
    warnings = ready("survey", "publish", "habits", "--json").json["warnings"]
    assert [line for line in warnings if "look alike" in line]


@pytest.mark.parametrize("command", [["apply"], ["apply", "--dry-run"], ["diff"]])
def test_over_budget_is_a_privacy_refusal_and_stores_nothing(
    ready: Frankly, survey_file: Path, command: list[str]
) -> None:
    survey_file.write_text(survey_file.read_text().replace('budget: "2"', 'budget: "1.9"'))
    result = ready("survey", *command, survey_file, "--json")
    assert (result.code, result.problem["code"], result.out) == (4, "budget_exceeded", "")
    assert ready("survey", "list", "--json").json["surveys"] == []


def test_an_unknown_survey(ready: Frankly) -> None:
    result = ready("survey", "publish", "nothing", "--json")
    assert (result.code, result.problem["code"]) == (3, "survey_unknown")


def test_publishing_with_a_key_that_others_can_read(
    ready: Frankly, survey_file: Path, home: Path
) -> None:
    ready("survey", "apply", survey_file)
    (home / "keys" / "publisher.pem").chmod(0o644)
    result = ready("survey", "publish", "habits")
    assert result.code == 3
    assert "chmod 600" in result.err


def state(ready: Frankly) -> str:
    return str(ready("survey", "list", "--json").json["surveys"][0]["state"])


def trail(ready: Frankly) -> list[tuple[str, str, str]]:
    with open_services() as services:
        return [
            (entry.actor, entry.action, entry.subject) for entry in services.accounts.trail("main")
        ]


def test_states_change_as_on_the_pages_and_the_trail_records_them(
    ready: Frankly, survey_file: Path
) -> None:
    survey = ready("survey", "apply", survey_file, "--json").json["survey"]
    ready("survey", "publish", "habits")
    for move, becomes in (
        ("pause", "paused"),
        ("resume", "open"),
        ("close", "closed"),
        ("archive", "archived"),
    ):
        result = ready("survey", move, "habits", *(["--yes"] if move == "close" else []), "--json")
        assert (result.code, result.json) == (
            0,
            {"status": becomes, "survey": survey, "name": "habits"},
        )
        assert state(ready) == becomes
        assert trail(ready)[0] == ("the command line", f"survey {becomes}", "habits")


def test_closing_asks_first_and_prints_readable_text(ready: Frankly, survey_file: Path) -> None:
    ready("survey", "apply", survey_file)
    ready("survey", "publish", "habits")
    assert ready("survey", "pause", "habits").err == "Survey habits is paused.\n"
    declined = ready("survey", "close", "habits", stdin="n\n")
    assert declined.code != 0
    assert state(ready) == "paused"
    assert ready("survey", "close", "habits", stdin="y\n").code == 0
    assert state(ready) == "closed"


def test_every_move_is_a_command() -> None:
    assert set(MOVES) <= set(survey.commands)


# Name -> earlier moves, the move that is refused, its code, its exit code
REFUSED_MOVES = {
    "nobody's survey": ((), ("pause", "nobody"), "survey_unknown", 3),
    "a draft": ((), ("pause", "habits"), "immutable", 3),
    "a draft, closed": ((), ("close", "habits", "--yes"), "immutable", 3),
    "nothing to resume": (("publish",), ("resume", "habits"), "immutable", 3),
    "archived while open": (("publish",), ("archive", "habits"), "immutable", 3),
    "opened again": (("publish", "close"), ("resume", "habits"), "immutable", 3),
    "archived twice": (("archive",), ("archive", "habits"), "immutable", 3),
    "no name": ((), ("pause",), "usage", 2),
}


@pytest.mark.parametrize("name", REFUSED_MOVES)
def test_an_impossible_move_changes_nothing(name: str, ready: Frankly, survey_file: Path) -> None:
    before, refused, code, exit_code = REFUSED_MOVES[name]
    ready("survey", "apply", survey_file)
    for move in before:
        assert ready("survey", move, "habits", *(["--yes"] if move == "close" else [])).code == 0
    state_before, trail_before = state(ready), trail(ready)
    answer = ready("survey", *refused, "--json")
    assert (answer.code, json.loads(answer.err)["code"]) == (exit_code, code)
    assert (state(ready), trail(ready)) == (state_before, trail_before)


def test_a_form_above_the_usual_cap_is_a_warning(ready: Frankly, survey_file: Path) -> None:
    survey_file.write_text(
        survey_file.read_text().replace('epsilon: "1"', 'epsilon: "3"').replace('"2"', '"6"')
    )
    warning_text = "The whole report reveals up to 6.0000 nats, more than 5 nats"
    for command in (
        ("apply", survey_file, "--dry-run"),
        ("apply", survey_file),
        ("publish", "habits"),
    ):
        result = ready("survey", *command)
        assert (result.code, result.err.count("Warning: "), result.err.count(warning_text)) == (
            0,
            1,
            1,
        )
        assert warning_text not in result.out
        (warning,) = ready("survey", *command, "--json").json["warnings"]
        assert warning.startswith(warning_text)
    with open_services() as services:
        page = create_app(services.settings, services=services).test_client()
        services.accounts.create("main", "o@example.org", "owner", PASSWORD)
        send(page, "/admin/sign-in", email="o@example.org", password=PASSWORD)
        survey_id = services.surveys.summary("habits").survey_id
        # The pages name factors instead of nats.
        said = page.get(f"/admin/surveys/{survey_id}/publish").text
        assert (
            said.count("The whole report can change odds by up to ×403.43, more than devices") == 1
        )
