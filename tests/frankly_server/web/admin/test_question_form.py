# SPDX-License-Identifier: Apache-2.0
"""The form of a question: every kind and place, what a page sends back, and refusals at their field."""

import html
import re
from json import loads
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.editing import questions_of
from werkzeug.datastructures import MultiDict

from tests.frankly_server.surveys.random_files import random_file
from tests.frankly_server.web.admin.office import Office, token
from tests.frankly_server.web.admin.test_forms import Form, Forms, refused_field

FILE = b"""
name: FILE
title: {en: Members, de: Mitglieder}
languages: [en, de]
budget: "2"
form:
  questions:
    - {id: smokes, type: yes-no, text: {en: "Do you smoke?", de: "Rauchen Sie?"}, no_answer: true}
    - {id: years, text: {en: "How long?", de: "Wie lange?"}, ranges: [0, 2, 10]}
    - id: sports
      type: multi
      text: {en: "Which sports?", de: "Welcher Sport?"}
      boxes: [{id: ball, label: {en: Ball, de: Ball}}, {id: swim, label: {en: Swimming, de: Schwimmen}}]
"""
Row = tuple[str, ...]


def begun(office: Office, name: str) -> str:
    """Apply FILE under a name; return the address of the survey's pages."""
    office.services.surveys.apply(parse_definition(FILE.replace(b"FILE", name.encode())))
    return f"/admin/surveys/{office.services.surveys.summary(name).survey_id}"


def draft_of(office: Office, survey: str) -> SurveyDefinition:
    return office.services.surveys.draft(survey.rsplit("/", 1)[1])


def form_of(client: FlaskClient, page: str) -> Form:
    """Return the form of the question that is open on a page."""
    answer = client.get(page)
    assert answer.status_code == 200, page
    return next(form for form in Forms(page, answer.text).forms if form.action == page)


def sent(form: Form) -> list[tuple[str, str]]:
    """Return the fields as a browser sends them."""
    left_out = ("csrf", "raise")
    fields = [(one.name, one.value) for one in form.controls if one.name not in left_out]
    return [(name, value) for name, value in fields if value is not None]


def submit(client: FlaskClient, page: str, changes: dict[str, str], *rows: dict[str, str]) -> Any:
    """Send the form of a page with changed fields, and its rows of choices replaced by these, if any."""
    fields = [(name, value) for name, value in sent(form_of(client, page)) if name not in changes]
    if rows:
        cells = ("label-en", "label-de", "choice", "number", "contrast", "expected", "known", "was")
        fields = [(name, value) for name, value in fields if name not in cells]
        fields += [(name, row.get(name, "")) for row in rows for name in cells]
    data = MultiDict([("csrf", token(client)), *fields, *changes.items()])
    return client.post(page, data=data, content_type="multipart/form-data")


TEXT = {"text-en": "New?", "text-de": "Neu?"}
A, B = {"label-en": "A", "label-de": "Ah"}, {"label-en": "B", "label-de": "Be"}
IN_A = {"id": "a", "label": {"en": "A", "de": "Ah"}}
IN_B = {"id": "b", "label": {"en": "B", "de": "Be"}}
NO = {"id": "no", "label": {"en": "No", "de": "Nein"}}
YES = {"id": "yes", "label": {"en": "Yes", "de": "Ja"}}
SILENT = {
    "id": "no-answer",
    "label": {"en": "Prefer not to say", "de": "Keine Angabe"},
    "role": "no_answer",
}
NOT_ASKED = {
    "id": "not-applicable",
    "label": {"en": "Does not apply", "de": "Trifft nicht zu"},
    "role": "not_applicable",
}
# Fields, rows, and the question that is stored.
KINDS: dict[str, tuple[dict[str, str], list[dict[str, str]], dict[str, Any]]] = {
    "yes or no": ({}, [], {"choices": [NO,
                                       YES]}),
    "one of several": ({"kind": "single", "no_answer": "yes"}, [A, B],
                       {"choices": [IN_A, IN_B,
                                    SILENT]}),
    "boxes": ({"kind": "multi"}, [A, B],
              {"choices": [NO, YES],
               "boxes": [IN_A, IN_B]}),
    "a scale without scores": ({"kind": "scale"}, [A, B],
                               {"wanted": "mean", "choices": [IN_A | {"score": "1"},
                                                              IN_B | {"score": "2"}]}),
    "a scale by its ends": ({"kind": "scale", "span_from": "-1", "span_to": "0"}, [],
                            {"wanted": "mean", "choices": [
                                {"id": "nm1", "label": {"en": "-1", "de": "-1"}, "score": "-1"},
                                {"id": "n0", "label": {"en": "0", "de": "0"}, "score": "0"}]}),
    "a number": ({"kind": "number"}, [{"number": "0"}, {"number": "18", "label-en": "Adult", "label-de": ""}],
                 {"choices": [{"id": "0_17", "label": {"en": "0–17", "de": "0–17"}, "from": 0},
                              {"id": "18_up", "label": {"en": "Adult", "de": "18+"}, "from": 18}]}),
    "a contrast": ({"kind": "single", "wanted": "contrast", "importance": "2"},
                   [A | {"contrast": "1"}, B | {"contrast": "-1"}],
                   {"wanted": "contrast", "contrast": ["1", "-1"], "importance": "2",
                    "choices": [IN_A, IN_B]}),
    "expected counts": ({"kind": "single"}, [A | {"expected": "9"}, B | {"expected": "1"}],
                        {"expected": [9, 1],
                         "choices": [IN_A, IN_B]}),
    "known shares": ({"kind": "single", "place": "form", "known_source": "A report"},
                     [A | {"known": "11"}, B | {"known": "0"}],
                     {"anchor": {"counts": [11, 0], "source": "A report"},
                      "choices": [IN_A, IN_B]}),
    "a skip rule": ({"after": "smokes", "after_choice": "smokes/yes"}, [],
                    {"ask_if": {"question": "smokes", "choices": ["yes"]},
                     "choices": [NO, YES,
                                 NOT_ASKED]}),
    "a rule on a box": ({"after": "sports-ball", "after_choice": "sports-ball/yes"}, [],
                        {"ask_if": {"question": "sports-ball", "choices": ["yes"]},
                         "choices": [NO, YES,
                                     NOT_ASKED]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_is_made_on_its_form(office: Office, kind: str) -> None:
    client, survey = office.client("admin"), begun(office, re.sub(r"\W+", "-", f"kind {kind}"))
    fields, rows, stored = KINDS[kind]
    answer = submit(client, f"{survey}/new-question", TEXT | fields, *rows)
    assert answer.status_code == 303, answer.text
    assert answer.headers["Location"] == f"{survey}/questions?saved=q-new#q-new"
    form = loads(draft_of(office, survey).to_json())["form"]
    assert form["questions"][-1] == stored | {"id": "new", "text": {"en": "New?", "de": "Neu?"}}
    # The page shows it, and sends it back unchanged.
    before = draft_of(office, survey)
    assert submit(client, f"{survey}/questions/new", {}).status_code == 303
    assert draft_of(office, survey) == before


@pytest.mark.parametrize(
    ("place", "budget"), [("block", "3"), ("public", "2"), ("form", "2")], ids=str
)
def test_a_question_goes_to_another_place(office: Office, place: str, budget: str) -> None:
    """The level of the form stays, and the budget covers a new block."""
    client, survey = office.client("admin"), begun(office, f"place-{place}")
    submit(client, f"{survey}/new-question", TEXT)
    assert submit(client, f"{survey}/questions/new", {"place": place}).status_code == 303
    definition = draft_of(office, survey)
    places = {
        "block": [q.id for block in definition.blocks for q in block.questions],
        "public": [q.id for q in definition.strata],
        "form": [q.id for q in definition.form.questions] if definition.form else [],
    }
    assert ["new" in places[one] for one in places] == [place == one for one in places]
    assert (definition.budget, definition.form_epsilon) == (budget, "2")
    assert submit(client, f"{survey}/questions/new", {"place": "form"}).status_code == 303
    assert draft_of(office, survey).form_epsilon == "2"


def test_ranges_that_change_give_new_words_to_those_that_were_made_from_them(
    office: Office,
) -> None:
    client, survey = office.client("admin"), begun(office, "ranges")
    rows = [{"was": "0_1", "choice": "0_1", "label-en": "0–1", "label-de": "Neu", "number": "0"},
            {"was": "2_9", "choice": "2_9", "label-en": "2–9", "label-de": "2–9", "number": "3"},
            {"was": "10_up", "choice": "long", "label-en": "10+", "label-de": "10+", "number": "10"}]  # fmt: skip
    assert submit(client, f"{survey}/questions/years", {}, *rows).status_code == 303
    choices = draft_of(office, survey).questions[1].choices
    assert [(one.id, dict(one.label)) for one in choices] == [
        ("0_2", {"en": "0–2", "de": "Neu"}),
        ("3_9", {"en": "3–9", "de": "3–9"}),
        ("long", {"en": "10+", "de": "10+"}),
    ]


SINGLE, SCALE, NUMBER = (TEXT | {"kind": kind} for kind in ("single", "scale", "number"))
KNOWN = {"known_source": "A report"}
# Fields of a new question, rows, and the field at which it is refused.
REFUSED: dict[str, tuple[dict[str, str], list[dict[str, str]], str]] = {
    "no text": ({"text-en": ""}, [], "text-en"),
    "a row of a yes-or-no question": (TEXT, [{}, A], "label-en[1]"),
    "a text in the second language only": (SINGLE, [A, {"label-de": "Be"}], "label-en[1]"),
    "boxes of their own": (TEXT | {"kind": "multi", "place": "block"}, [A, B], "place"),
    "no boxes": (TEXT | {"kind": "multi"}, [], "label-en[0]"),
    "a public number": (TEXT | {"kind": "number", "place": "public"}, [{"number": "0"}, {"number": "5"}], "kind"),
    "a score of a choice": (SINGLE, [A, B | {"number": "3"}], "number[1]"),
    "a scale without one score": (SCALE, [A | {"number": "3"}, {}, B], "number[2]"),
    "equal scores": (SCALE, [A | {"number": "3"}, B | {"number": "3"}], "number"),
    "a score that is no number": (SCALE, [A | {"number": "3"}, {}, B | {"number": "x"}], "number[2]"),
    "ranges that fall": (NUMBER, [{"number": "5"}, {"number": "2"}], "number[0]"),
    "a range without a number": (NUMBER, [{"number": "5"}, A], "number[1]"),
    "ends of a scale with rows": (SCALE | {"span_to": "5"}, [A, B], "span_to"),
    "ends that are no numbers": (SCALE | {"span_from": "a", "span_to": "5"}, [], "span_from"),
    "a long scale": (SCALE | {"span_from": "0", "span_to": "21"}, [], "span_to"),
    "ends of a choice": (TEXT | {"span_from": "0", "span_to": "5"}, [], "span_from"),
    "answers without their question": (TEXT | {"after_choice": "smokes/yes"}, [], "after_choice"),
    "a question without its answers": (TEXT | {"after": "smokes"}, [], "after_choice"),
    "answers of another question": (TEXT | {"after": "smokes", "after_choice": "sports-ball/yes"}, [], "after_choice"),
    "a rule on a later question": ({"after": "years"}, [], "after"),
    "a rule of a public question": (TEXT | {"place": "public", "after": "smokes", "after_choice": "smokes/yes"},
                                    [], "after"),
    "a figure of a public question": (TEXT | {"place": "public", "wanted": "distribution"}, [], "wanted"),
    "a mean without scores": (TEXT | {"wanted": "mean"}, [], "number"),
    "a contrast without a number": (SINGLE | {"wanted": "contrast"}, [A | {"contrast": "1"}, B], "contrast[1]"),
    "numbers without their contrast": (SINGLE, [A | {"contrast": "1"}, B], "contrast[0]"),
    "one expected count": (SINGLE, [A | {"expected": "1"}, B], "expected[1]"),
    "a count that is none": (SINGLE, [A | {"expected": "1"}, {}, B | {"expected": "x"}], "expected[2]"),
    "one known count": (SINGLE, [A | {"known": "1"}, {}, B], "known[2]"),
    "a known count that is none": (SINGLE | KNOWN, [A | {"known": "1"}, {}, B | {"known": "x"}], "known[2]"),
    "known counts without a source": (SINGLE, [A | {"known": "1"}, B | {"known": "2"}], "known_source"),
    "a source without known counts": (SINGLE | KNOWN, [A, B], "known_source"),
    "a source of a yes-or-no question": (TEXT | KNOWN, [], "known_source"),
    "a source with a hidden character": (SINGLE | {"known_source": "a\u202eb"},
                                         [A | {"known": "1"}, B | {"known": "2"}], "known_source"),
    "known counts that are all 0": (SINGLE | KNOWN, [A | {"known": "0"}, B | {"known": "0"}], "known"),
    "known counts that are equal": (SINGLE | KNOWN, [A | {"known": "3"}, B | {"known": "3"}], "known"),
    "known counts and a refusal": (SINGLE | KNOWN | {"no_answer": "yes"},
                                   [A | {"known": "1"}, B | {"known": "2"}], "no_answer"),
    "known counts and a rule": (SINGLE | KNOWN | {"after": "smokes", "after_choice": "smokes/yes"},
                                [A | {"known": "1"}, B | {"known": "2"}], "after"),
    "known counts of boxes": (TEXT | KNOWN | {"kind": "multi"}, [A | {"known": "1"}, B | {"known": "2"}], "known[0]"),
    "known counts of a public question": (SINGLE | KNOWN | {"place": "public"},
                                          [A | {"known": "1"}, B | {"known": "2"}], "known[0]"),
    "a source of a public question": (SINGLE | KNOWN | {"place": "public"}, [A, B], "known_source"),
    "a known count of an empty row": (SINGLE | KNOWN, [A, B, {"known": "2"}], "known[2]"),
    "importance 0": (TEXT | {"importance": "0"}, [], "importance"),
    "the name of another question": (TEXT | {"id": "smokes"}, [], "id"),
    "a name that is none": (TEXT | {"id": "so long"}, [], "id"),
    "a choice's name that is none": (SINGLE, [A, {}, B | {"choice": "so long"}], "choice[2]"),
    "equal labels": (SINGLE, [A, A | {"choice": "b"}], "label-en"),
    "a hidden character": (SINGLE, [A, {}, B | {"label-de": "a\u202eb"}], "label-de[2]"),
    "another kind": (TEXT | {"kind": "essay"}, [], "kind"),
    "another place": (TEXT | {"place": "item"}, [], "place"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_at_its_field_and_keeps_what_was_typed(office: Office, case: str) -> None:
    client, survey = office.client("admin"), begun(office, "refused")
    fields, rows, at = REFUSED[case]
    page = "questions/smokes" if case == "a rule on a later question" else "new-question"
    before = draft_of(office, survey)
    answer = submit(client, f"{survey}/{page}", fields, *rows)
    assert (answer.status_code, refused_field(answer)) == (422, at), html.unescape(answer.text)
    assert draft_of(office, survey) == before
    shown = html.unescape(answer.text)
    typed = [value for name, value in fields.items() if name not in ("kind", "place")]
    for value in (*typed, *(text for row in rows for text in row.values())):
        assert value in shown, value


def test_a_question_that_is_gone_is_shown_as_a_new_one(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "gone")
    fields = {"kind": "yes-no", "place": "form", "text-en": "Typed", "text-de": "Getippt"}
    data = {"csrf": token(client), **fields}
    answer = client.post(f"{survey}/questions/gone", data=data, content_type="multipart/form-data")
    assert (answer.status_code, 'value="Getippt"' in answer.text) == (404, True)
    assert f'action="{survey}/new-question"' in answer.text


def test_pages_send_back_what_they_show(office: Office, full: bool) -> None:
    """Of random files, every question's form is stored as it was; more of them with --full."""
    client, survey = office.client("admin"), begun(office, "sent-back")
    for seed in range(60 if full else 8):
        file = random_file(1000 + seed) | {"name": "sent-back"}
        office.services.surveys.apply(parse_value(file))
        before = draft_of(office, survey)
        for question in questions_of(loads(before.to_json())):
            answer = submit(client, f"{survey}/questions/{question['id']}", {})
            assert answer.status_code == 303, (seed, question["id"], refused_field(answer))
            assert draft_of(office, survey) == before, (seed, question["id"])


def test_joint_tables_are_asked_for_and_removed(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "pairs")

    def send(**fields: str) -> Any:
        data = {"csrf": token(client), **fields}
        return client.post(f"{survey}/joint-tables", data=data, content_type="multipart/form-data")

    assert "Do you smoke? × Which sports? Ball" not in client.get(f"{survey}/questions").text
    assert send(first="smokes", second="sports-ball").status_code == 303
    assert "Do you smoke? × Which sports? Ball" in client.get(f"{survey}/questions").text
    for pair in (("smokes", "smokes"), ("sports-ball", "smokes"), ("smokes", "unknown")):
        refused = send(first=pair[0], second=pair[1])
        assert (refused.status_code, refused_field(refused)) == (422, "second"), pair
    assert send(drop="smokes/years").status_code == 404
    assert send(drop="smokes/sports-ball").status_code == 303
    form = draft_of(office, survey).form
    assert form is not None
    assert form.cross_tables == ()
