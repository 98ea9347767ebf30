# SPDX-License-Identifier: Apache-2.0
"""Surveys as files over HTTP: JSON as YAML, the dry run as publishing, and no change that is lost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.surveys import Surveys
from frankly_server.web.management import survey_file

from tests.frankly_server.web.management.desk import YAML, Desk
from tests.frankly_server.web.site import check_problem
from tests.survey_files import DRINKS, REGION, SMOKES, habits

FILE = habits(SMOKES, DRINKS, budget="2", strata=REGION)
TEMPLATES = sorted(survey_templates.templates())


def named(name: str, file: bytes = FILE) -> bytes:
    return re.sub(rb"(?m)^name: .*$", f"name: {name}".encode(), file)


def as_numbers(value: Any) -> Any:
    """Return the file's values with numbers instead of texts, as programs would write them."""
    if isinstance(value, dict):
        words = ("label", "text", "title", "consent")
        return {key: one if key in words else as_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_numbers(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]*|0\.[0-9]*[1-9]", value):
        return json.loads(value)
    return value


@pytest.mark.parametrize("template", TEMPLATES)
def test_json_and_yaml_are_the_same_file(desk: Desk, template: str) -> None:
    """Each template, as YAML and as JSON with numbers and with texts, is the same draft."""
    file = survey_templates.template(template)
    texts = yaml.load(file, Loader=yaml.BaseLoader)
    digests = set[str]()
    for kind, data in (
        (YAML, file),
        ("application/json", json.dumps(texts).encode()),
        ("application/json", json.dumps(as_numbers(texts)).encode()),
    ):
        name = f"{template}-{len(digests)}-{len(data)}"[:60].strip("-")
        sent = data.replace(f"name: {texts['name']}".encode(), f"name: {name}".encode()).replace(
            f'"name": "{texts["name"]}"'.encode(), f'"name": "{name}"'.encode()
        )
        made = desk.ask("POST", "/v1/surveys", data=sent, content_type=kind)
        assert made.status_code == 201, made.text
        draft = desk.ask("GET", f"{made.headers['Location']}/draft")
        value = draft.get_json() | {"name": texts["name"]}
        digests.add(json.dumps(value, sort_keys=True))
        # Put back as it was read, in both formats, it is the same.
        for query, media_type in (("", "application/json"), ("?format=yaml", YAML)):
            read = desk.ask("GET", f"{made.headers['Location']}/draft{query}")
            assert read.content_type == media_type
            put = desk.ask(
                "PUT", f"{made.headers['Location']}/draft", data=read.data, content_type=media_type,
                headers={"If-Match": read.headers["ETag"]},
            )  # fmt: skip
            assert (put.status_code, put.headers["ETag"]) == (200, draft.headers["ETag"])
    assert len(digests) == 1


BAD_FILES: dict[str, tuple[str, bytes, int, str, str | None]] = {
    "no YAML": (YAML, b"a: [", 422, "definition_invalid", None),
    "no map": (YAML, b"- a", 422, "definition_invalid", None),
    "no JSON": ("application/json", b"{", 400, "json_invalid", None),
    "JSON twice": ("application/json", b'{"name": "a", "name": "b"}', 400, "json_invalid", None),
    "no number": ("application/json", b'{"budget": NaN}', 422, "number_not_finite", None),
    "huge number": ("application/json", b'{"budget": 1e999999999}', 400, "json_invalid", None),
    "other type": ("text/plain", FILE, 415, "content_type", None),
    "form": ("application/x-www-form-urlencoded", b"a=b", 415, "content_type", None),
    "nothing": (YAML, b"", 422, "definition_invalid", None),
    "too large": (YAML, b"#" * (2**20 + 1), 422, "definition_invalid", None),
    "far too large": (YAML, b"#" * (2**21 + 1), 413, "body_too_large", None),
    "unknown field": (YAML, named("x") + b"colour: red\n", 422, "field_unknown", "colour"),
    "no budget": (YAML, named("x").replace(b'budget: "2"\n', b""), 422, "field_missing", "budget"),
    "level": (YAML, named("x").replace(b'epsilon: "1"', b"epsilon: -1"), 422, "eps_out_of_range",
              "blocks[0].epsilon"),
    "name in use": (YAML, FILE, 409, "taken", "name"),
    "name": (YAML, named("A b"), 422, "definition_invalid", "name"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_changes_nothing(desk: Desk, case: str) -> None:
    kind, data, status, code, field = BAD_FILES[case]
    before = desk.tables()
    path = "/v1/surveys"
    answer = desk.ask("POST", path, data=data, content_type=kind)
    problem = check_problem(answer, status, code)
    if field:
        assert problem["field"] == field
    assert "canary" not in answer.text
    if case != "name in use":  # a dry run compares such a file
        dry = desk.ask("POST", "/v1/dry-run", data=data, content_type=kind)
        assert dry.get_json() == problem
    assert desk.tables() == before


def test_every_refusal_of_a_file_is_that_of_the_command(desk: Desk) -> None:
    """The same code, field and words as `parse_definition`, which `frankly survey apply` prints."""
    for bad in (
        b'{en: "Do you smoke?"}',
        b"warner",
        b"id: smokes",
        b'budget: "2"',
        b"languages: [en]",
    ):
        file = named("x").replace(bad, b"canary", 1)
        with pytest.raises(InvalidInput) as error:
            parse_definition(file)
        problem = desk.create(file).get_json()
        said = {"code": error.value.code, "detail": error.value.detail, "field": error.value.field}
        assert {name: problem[name] for name in said} == said


def test_a_large_file_is_parsed_in_a_process(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_file, "_SMALL", 10)
    assert desk.create(named("large")).status_code == 201
    check_problem(desk.create(b"blocks: [1, 2, 3]"), 422, "field_missing")


def test_a_draft_is_changed_only_as_it_was_read(own_desk: Desk) -> None:
    path = f"/v1/surveys/{own_desk.office.survey}/draft"
    draft = own_desk.ask("GET", path)
    tag, value = draft.headers["ETag"], draft.get_json()
    same = own_desk.ask("GET", path, headers={"If-None-Match": tag})
    assert (same.status_code, same.data) == (304, b"")

    def put(minimum: int, **headers: str) -> Any:
        body = value | {"min_reports": minimum}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return own_desk.ask("PUT", path, json=body, headers=named)

    check_problem(put(20), 428, "precondition_required")
    first = put(20, If_Match=tag)
    assert (first.status_code, first.get_json()["min_reports"]) == (200, 20)
    now = first.headers["ETag"]
    for stale in (tag, f"W/{now}", f'"x", {tag}', "x", "", '"sha256:' + "0" * 64 + '"'):
        problem = check_problem(put(30, If_Match=stale), 412, "precondition_failed")
        assert problem["field"] == "If-Match"
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 20
    assert put(30, If_Match=f'"x", {now}').status_code == 200
    assert put(40, If_Match="*").status_code == 200
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 40
    # The name stays, and an archived survey stays as it is.
    body = value | {"name": "other"}
    problem = own_desk.ask("PUT", path, json=body, headers={"If-Match": "*"})
    assert check_problem(problem, 422, "definition_invalid")["field"] == "name"
    for move in ("close", "archive"):
        own_desk.ask("POST", path.replace("/draft", "/move"), json={"move": move})
    check_problem(put(50, If_Match="*"), 409, "immutable")


def test_a_draft_that_changes_meanwhile_is_not_replaced(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody saves between the check of the ETag and the transaction."""
    path, real = f"/v1/surveys/{own_desk.office.survey}/draft", Surveys.redefine
    draft = own_desk.ask("GET", path)

    def late(service: Surveys, survey: str, definition: Any, seen: str, record: Any) -> None:
        theirs = definition.model_copy(update={"min_reports": 77})
        real(service, survey, theirs, seen, lambda _: None)
        real(service, survey, definition, seen, record)

    with monkeypatch.context() as patch:
        patch.setattr(Surveys, "redefine", late)
        answer = own_desk.ask(
            "PUT", path, json=draft.get_json() | {"min_reports": 20},
            headers={"If-Match": draft.headers["ETag"]},
        )  # fmt: skip
    check_problem(answer, 412, "precondition_failed")
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 77


def test_an_answer_is_about_the_draft_that_was_stored(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody saves right after the transaction: the answer's ETag must not name their draft."""
    path, real = f"/v1/surveys/{own_desk.office.survey}/draft", Surveys.redefine
    draft = own_desk.ask("GET", path)

    def overtaken(service: Surveys, survey: str, definition: Any, seen: str, record: Any) -> None:
        real(service, survey, definition, seen, record)
        theirs = definition.model_copy(update={"min_reports": 77})
        real(service, survey, theirs, definition.digest, lambda _: None)

    def put(minimum: int, tag: str) -> Any:
        body = draft.get_json() | {"min_reports": minimum}
        return own_desk.ask("PUT", path, json=body, headers={"If-Match": tag})

    with monkeypatch.context() as patch:
        patch.setattr(Surveys, "redefine", overtaken)
        answer = put(20, draft.headers["ETag"])
    assert answer.get_json()["min_reports"] == 20
    assert answer.headers["ETag"] == f'"{answer.get_json()["draft"]}"'
    check_problem(put(30, answer.headers["ETag"]), 412, "precondition_failed")
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 77


def test_a_star_replaces_also_what_is_stored_at_the_same_moment(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = f"/v1/surveys/{own_desk.office.survey}/draft", Surveys.redefine
    draft, raced = own_desk.ask("GET", path).get_json(), list[int]()

    def late(service: Surveys, survey: str, definition: Any, seen: str, record: Any) -> None:
        if len(raced) < 2:
            raced.append(70 + len(raced))
            theirs = definition.model_copy(update={"min_reports": raced[-1]})
            real(service, survey, theirs, seen, lambda _: None)
        real(service, survey, definition, seen, record)

    with monkeypatch.context() as patch:
        patch.setattr(Surveys, "redefine", late)
        answer = own_desk.ask(
            "PUT", path, json=draft | {"min_reports": 20}, headers={"If-Match": "*"}
        )
    assert (answer.status_code, raced) == (200, [70, 71])
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 20


@pytest.mark.parametrize("template", ["workplace", "questionnaire"])
def test_a_dry_run_says_what_publishing_says(own_desk: Desk, template: str) -> None:
    """The same promises, level and warnings as the version that is then published; nothing is stored."""
    file = survey_templates.template(template)
    before = own_desk.tables()
    dry = own_desk.ask("POST", "/v1/dry-run", data=file, content_type=YAML)
    assert dry.status_code == 200, dry.text
    said = dry.get_json()
    assert own_desk.tables() == before
    assert (said["status"], said["survey"]) == ("created", None)
    assert all(line.startswith("+ ") for line in said["diff"])
    survey = own_desk.create(file).get_json()["survey"]
    assert own_desk.publish(survey)["problem"] is None
    version = own_desk.ask("GET", f"/v1/surveys/{survey}/versions/1").get_json()
    # How near a form's design is to the best possible takes longer than a dry run.
    for block in version["blocks"]:
        block["notes"] = [note for note in block["notes"] if "above the best possible" not in note]
    for name in ("report", "blocks", "warnings"):
        assert said[name] == version[name], name
    again = own_desk.ask("POST", "/v1/dry-run", data=file, content_type=YAML).get_json()
    assert (again["status"], again["survey"], again["diff"]) == ("unchanged", survey, [])
    more = re.sub(rb"(?m)^expected_reports: .*\n", b"", file) + b"expected_reports: 4321\n"
    changed = own_desk.ask("POST", "/v1/dry-run", data=more, content_type=YAML).get_json()
    assert (changed["status"], changed["expected"]["people"]) == ("updated", 4321)
    assert [line for line in changed["diff"] if "4321" in line]


def test_a_dry_run_refuses_what_publishing_refuses(own_desk: Desk) -> None:
    file = named("dear", habits(SMOKES, DRINKS, budget="1"))
    dry = own_desk.ask("POST", "/v1/dry-run", data=file, content_type=YAML)
    survey = own_desk.create(file).get_json()["survey"]
    job = own_desk.publish(survey)
    assert (job["state"], job["digest"]) == ("failed", None)
    assert job["problem"] == check_problem(dry, 422, "budget_exceeded")
    past = named("past", habits(SMOKES, budget="2", window="closes: 2026-01-01T00:00:00Z\n"))
    dry = own_desk.ask("POST", "/v1/dry-run", data=past, content_type=YAML)
    job = own_desk.publish(own_desk.create(past).get_json()["survey"])
    assert job["problem"] == check_problem(dry, 422, "definition_invalid")


def test_a_dry_run_refuses_a_survey_that_accepts_no_more_answers(own_desk: Desk) -> None:
    survey = f"/v1/surveys/{own_desk.office.survey}"
    for move in ("close", "archive"):
        assert own_desk.ask("POST", f"{survey}/move", json={"move": move}).status_code == 200
        dry = own_desk.ask("POST", "/v1/dry-run", data=FILE, content_type=YAML)
        job = own_desk.ask("POST", f"{survey}/jobs")
        assert check_problem(dry, 410, "closed") == check_problem(job, 410, "closed")


def test_a_key_for_some_surveys_tries_these_only(own_desk: Desk) -> None:
    ours = own_desk.ask("POST", "/v1/dry-run", "this survey", data=FILE, content_type=YAML)
    assert (ours.status_code, ours.get_json()["survey"]) == (200, own_desk.office.survey)
    assert own_desk.create(named("other")).status_code == 201
    for name in ("other", "unknown"):
        answer = own_desk.ask(
            "POST", "/v1/dry-run", "this survey", data=named(name), content_type=YAML
        )
        assert check_problem(answer, 403, "forbidden")["field"] == "name"
    # A survey of another organisation with the same name is no survey of this one.
    foreign = own_desk.ask("POST", "/v1/dry-run", "foreign owner", data=FILE, content_type=YAML)
    assert (foreign.status_code, foreign.get_json()["survey"]) == (200, None)


def test_two_organisations_may_use_the_same_name(own_desk: Desk, tmp_path: Path) -> None:
    made = own_desk.create(FILE, "foreign owner")
    assert made.status_code == 201
    assert made.get_json()["name"] == "habits"
    check_problem(own_desk.create(FILE, "foreign owner"), 409, "taken")
    seen = own_desk.ask("GET", "/v1/surveys?drafts=true", "foreign owner").get_json()["surveys"]
    assert [one["survey"] for one in seen] == [made.get_json()["survey"]]
