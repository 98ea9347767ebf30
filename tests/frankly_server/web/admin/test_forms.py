# SPDX-License-Identifier: Apache-2.0
"""Forms of all pages: whatever is entered is stored, or refused at its field with nothing changed."""

import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_server.store.schema import metadata
from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.webhooks import Webhooks
from sqlalchemy import select
from werkzeug.datastructures import MultiDict
from werkzeug.routing import Rule

from tests.frankly_server.web.admin.office import Office, make_office, token
from tests.frankly_server.web.site import NOW, SURVEY
from tests.survey_files import DRINKS, REGION, SMOKES, habits

INVITED = habits(SMOKES, DRINKS, budget="2", strata=REGION).replace(
    b"name: habits", b"name: invited\ntokens: {kind: invite}"
)
SCORED = b"""name: scored
title: {en: Scored}
languages: [en]
budget: "2"
min_reports: 10
form:
  questions:
    - id: mood
      text: {en: "Mood?"}
      wanted: mean
      choices:
        - {id: low, label: {en: Low}, score: 1}
        - {id: high, label: {en: High}, score: 2}
        - {id: silent, label: {en: "No answer"}, role: no_answer}
    - {id: rested, type: yes-no, text: {en: "Rested?"}}
    - id: moved
      type: yes-no
      text: {en: "Moved?"}
      ask_if: {question: rested, choices: ["yes"]}
      not_applicable: true
  cross_tables: [[rested, moved]]
instructed:
  id: check
  text: {en: "Choose the second."}
  choices: [{id: a, label: {en: First}}, {id: b, label: {en: Second}}, {id: c, label: {en: Third}}]
  answer: b
"""
TWO = b"""name: two
title: {en: Two, fr: Deux}
languages: [en, fr]
budget: "1"
form: {questions: [{id: tired, type: yes-no, text: {en: "Tired?", fr: "Tired?"}}]}
"""
PAGES = (
    "/admin/surveys", "/admin/surveys/new", "/admin/people", "/admin/keys", "/admin/account",
    *(f"/admin/surveys/INVITED/{tab}" for tab in (
        "questions", "questions/smokes", "new-question", "protection", "try", "publish", "invitations", "answers",
        "results/links", "webhook", "file", "")),
    *(f"/admin/surveys/SCORED/{tab}" for tab in (
        "questions", "questions/mood", "questions/moved", "questions/check", "new-question",
        "protection", "try", "file", "publish", "")),
    "/admin/surveys/CLOSED/",
    "/admin/surveys/TWO/translations", "/admin/surveys/TWO/drafts",
)  # fmt: skip
# Forms of other states: without a session, of a running job, and of a second factor.
ELSEWHERE = {
    "/admin/sign-in", "/admin/sign-in/code", "/admin/sign-in/passkey", "/admin/account/totp/confirm",
    "/admin/account/totp/remove", "/admin/account/passkeys", "/admin/account/passkeys/remove",
    "/admin/account/recovery-codes",
    "/admin/surveys/<survey_id>/jobs/<job_id>/cancel", "/admin/surveys/<survey_id>/protection/outlook",
}  # fmt: skip
VOLATILE = ("audit_events", "earlier_drafts", "sessions", "known_browsers", "pending_sign_ins")
CHOICES = ("radio", "checkbox", "select")
NEEDS = {"label-en": "number", "item_choices": "item_answer"}
ENTERED = {"numeric": "41", "decimal": "0.37", "date": "2026-06-20", "range": "6"}


@dataclass
class Control:
    """A field of a form: kind, name, value as sent if nothing is entered (None if not sent)."""

    kind: str
    name: str
    value: str | None
    options: list[str] = field(default_factory=list)
    is_required: bool = False
    chosen: int = 0


@dataclass
class Form:
    page: str
    action: str
    controls: list[Control] = field(default_factory=list)


class Forms(HTMLParser):
    """The forms of a page that are sent by POST."""

    def __init__(self, page: str, text: str) -> None:
        super().__init__()
        self.page, self._text = page, False
        self.forms: list[Form] = []
        self._form: Form | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._form = None
            if given.get("method") == "post":
                self._form = Form(self.page, given.get("action") or self.page)
                self.forms.append(self._form)
        if self._form is None:
            return
        controls, name, value = self._form.controls, given.get("name") or "", given.get("value")
        if tag == "option":
            self._text = value is None
            controls[-1].options.append(value or "")
            if "selected" in given:
                controls[-1].chosen = len(controls[-1].options) - 1
        elif tag in ("input", "select", "textarea", "button") and name:
            kind = given.get("inputmode") or given.get("type") or tag
            if kind in ("radio", "checkbox") and "checked" not in given:
                controls.append(Control(kind, name, None, [value or ""]))
            else:
                sent = None if tag in ("button", "select") else value or ""
                options = [value or ""] if kind in ("radio", "checkbox") else []
                controls.append(Control(kind, name, sent, options, "required" in given))
            self._text = tag == "textarea"

    def handle_data(self, data: str) -> None:
        if self._form is None or not self._form.controls or not self._text:
            return
        control = self._form.controls[-1]
        if control.kind == "textarea":
            control.value = (control.value or "") + data
        elif control.kind == "select":
            control.options[-1] = data
            self._text = False

    def handle_endtag(self, tag: str) -> None:
        if tag in ("textarea", "option"):
            self._text = False
        if tag == "select" and self._form is not None:
            control = self._form.controls[-1]
            control.value = control.options[control.chosen]
        if tag == "form":
            self._form = None


@dataclass(frozen=True)
class Shown(Office):
    """drafts : the drafts of the surveys whose pages are read, by survey id."""

    drafts: dict[str, SurveyDefinition]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """An office with every form: a survey by invitation with a webhook, and a form with scores and an item."""
    made = make_office(tmp_path_factory.mktemp("office"))
    services = made.services
    services.webhooks = Webhooks(services.database, FixedClock(NOW), Post(["hooks.example.org"]))
    for file in (
        INVITED,
        SCORED,
        TWO.replace(b"Deux", b"2"),
        TWO,
        SURVEY.replace(b"name: habits", b"name: closed"),
    ):
        services.surveys.apply(parse_definition(file))
    services.surveys.publish("invited")
    services.surveys.publish("closed")
    services.lifecycle.move(survey_id(made, "closed"), "close")
    services.invites.make("invited", 3)
    services.access.create("reader", "a guest", surveys=[survey_id(made, "invited")])
    services.webhooks.set(survey_id(made, "invited"), "https://hooks.example.org/old")
    drafts = {
        survey_id(made, name): services.surveys.draft(name) for name in ("invited", "scored", "two")
    }
    yield Shown(**vars(made), drafts=drafts)
    services.close()


def survey_id(office: Office, name: str) -> str:
    return next(row.survey_id for row in office.services.surveys.list() if row.name == name)


def placed(office: Office, path: str) -> str:
    for name in ("invited", "scored", "closed", "two"):
        path = path.replace(name.upper(), survey_id(office, name))
    return path.rstrip("/")


def rows(office: Office) -> dict[str, list[str]]:
    """Return everything stored except sessions and the audit trail."""
    with office.services.database.engine.connect() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(select(table)))
            for table in metadata.sorted_tables
            if table.name not in VOLATILE
        }


def events(office: Office) -> int:
    """Return the number of events of the audit trail."""
    with office.services.database.engine.connect() as connection:
        return len(connection.execute(select(metadata.tables["audit_events"])).all())


def posts(office: Office) -> list[Rule]:
    return [
        rule
        for rule in office.app.url_map.iter_rules()
        if rule.rule.startswith("/admin") and "POST" in (rule.methods or ())
    ]


def rule_of(office: Office, path: str) -> Rule:
    adapter = office.app.url_map.bind("")
    rule, _ = adapter.match(urlsplit(path).path, method="POST", return_rule=True)
    return rule


def forms(office: Office, client: FlaskClient) -> list[Form]:
    found = []
    for page in PAGES:
        answer = client.get(placed(office, page))
        assert answer.status_code == 200, page
        found += Forms(placed(office, page), answer.text).forms
    return found


def post(client: FlaskClient, csrf: str, path: str, fields: Any) -> Any:
    data = MultiDict([("csrf", csrf), *(fields.items() if isinstance(fields, dict) else fields)])
    return client.post(path, data=data, content_type="multipart/form-data")


def refused_field(answer: Any) -> str | None:
    """Return the field that the page's refusal names; None if the form was not refused."""
    found = re.search(r'id="refusal" data-field="([^"]*)"', answer.text)
    return found and html.unescape(found[1])


# Case F of the small inputs that fail: a number beside a choice that was not made.
@pytest.mark.slow
def test_a_stop_rule_needs_its_choice(office: Shown) -> None:
    survey, client = next(iter(office.drafts)), office.client("admin")
    csrf, page = token(client), f"/admin/surveys/{survey}/answers"
    rule = f"/admin/surveys/{survey}/stop-rule"
    for fields, at in (
        ({"rule": "never", "reports": "40", "points": ""}, "reports"),
        ({"rule": "never", "reports": "", "points": "3"}, "points"),
        ({"reports": "40"}, "rule"),
        ({"rule": "reports", "reports": "40", "points": "3"}, "points"),
        ({"rule": "reports", "reports": "4e1"}, "reports"),
        ({"rule": "reports", "reports": "\uff14\uff10"}, "reports"),
    ):
        answer = post(client, csrf, rule, fields)
        assert (answer.status_code, refused_field(answer)) == (422, at), fields
        if at in ("reports", "points"):
            # The message is beside the field even without scripts, and what was entered stays.
            tag = re.search(
                rf'id="{at}-error">.*?</p>\s*(<input[^>]*name="{at}"[^>]*>)', answer.text, re.DOTALL
            )
            assert tag
            assert f'value="{fields[at]}"' in tag[1]
            assert 'aria-invalid="true"' in tag[1]
        assert office.services.lifecycle.get(survey).stop_reports is None
    chosen = {"rule": "reports", "reports": "40 ", "points": ""}
    assert post(client, csrf, rule, chosen).status_code == 303
    assert office.services.lifecycle.get(survey).stop_reports == 40
    # The number of the stored rule is part of the page, so another rule may be chosen beside it.
    assert 'value="40"' in client.get(page).text
    to_margin = {"rule": "margin", "reports": "40", "points": "3"}
    assert post(client, csrf, rule, to_margin).status_code == 303
    assert office.services.lifecycle.get(survey).stop_margin == "0.03"
    back = {"rule": "never", "reports": "", "points": "3"}
    assert post(client, csrf, rule, back).status_code == 303
    assert office.services.lifecycle.get(survey).stop_reports is None


def test_every_form_has_a_view_that_takes_its_fields(office: Office) -> None:
    """A form or a field that is added to a page is found here."""
    for rule in posts(office):
        assert hasattr(office.app.view_functions[rule.endpoint], "takes"), rule.rule
    met = set()
    for form in forms(office, office.client("owner")):
        rule = rule_of(office, form.action)
        met.add(rule.rule)
        takes = ("csrf", *office.app.view_functions[rule.endpoint].takes)
        for control in form.controls:
            listed = [
                name
                for name in takes
                if name == control.name or (name[-1] == "-" and control.name.startswith(name))
            ]
            assert listed, (rule.rule, control.name)
    assert met | ELSEWHERE == {rule.rule for rule in posts(office)}
    assert not met & ELSEWHERE


def test_unknown_and_repeated_fields_are_refused(office: Office) -> None:
    client = office.client("owner")
    csrf, before = token(client), rows(office)
    values = {"survey_id": office.survey, "question_id": "smokes", "job_id": office.job, "prefix": office.key,
              "account_id": office.account, "number": 1}  # fmt: skip
    with office.app.test_request_context():
        paths = {
            rule.rule: office.app.url_map.bind("").build(
                rule.endpoint, {name: values[name] for name in rule.arguments}, method="POST"
            )
            for rule in posts(office)
        }
    for rule, path in paths.items():
        answer = post(client, csrf, path, {"zzq": "1"})
        assert (answer.status_code, "the field zzq has no use here" in answer.text) == (
            422,
            True,
        ), rule
        upload = post(client, csrf, path, {"zzq": (io.BytesIO(b"1"), "a.csv")})
        assert (upload.status_code, "the field zzq has no use here" in upload.text) == (
            422,
            True,
        ), rule
        twice = post(client, csrf, path, [("csrf", csrf)])
        assert (twice.status_code, "did not work" in twice.text) == (400, True), rule
    assert rows(office) == before


def entered(control: Control, number: int) -> str | None:
    """Return a value to enter into a control, "" to untick it; None if nothing can be entered."""
    if control.kind == "checkbox":
        return "" if control.value else control.options[0]
    if control.kind == "radio":
        return control.options[0] if control.value is None else None
    if control.kind == "select":
        return next((option for option in control.options[::-1] if option != control.value), None)
    if control.kind == "email":
        return f"zzq{number}@example.org"
    if control.kind == "url":
        return f"https://hooks.example.org/zzq{number}"
    if control.kind in ("hidden", "file", "password", "button"):
        return None
    return ENTERED.get(control.kind, "zzq\nzzr" if control.kind == "textarea" else "zzq")


def filled(
    office: Office, form: Form, changed: int | None = None, value: str = "", number: int = 0
) -> list[tuple[str, str]]:
    """Return the fields as a browser sends them, with one control changed."""
    needed = {"question": "Ever?", "text-en": "Ever?", "choices": "No\nYes", "title": "New", "label": "note",
              "count": "2", "email": f"person{number}@example.org", "file": office.file, "name": "closed"}  # fmt: skip
    fields = []
    for i, control in enumerate(form.controls):
        sent = control.value
        if sent == "" and control.is_required:
            sent = needed[control.name]
        if i == changed:
            sent = value if value or control.kind != "checkbox" else None
        elif (
            changed is not None
            and control.kind == "radio"
            and form.controls[changed].kind == "radio"
        ):
            sent = None if control.name == form.controls[changed].name else sent
        # Without `seen`, a form is based on the stored draft.
        if sent is not None and control.name not in ("csrf", "seen") and control.kind != "file":
            fields.append((control.name, sent))
    return fields


def restore(office: Shown, form: Form) -> None:
    """Undo the changes of a form of a survey's draft or stop rule."""
    survey = form.action.removeprefix("/admin/surveys/").split("/")[0]
    if survey in office.drafts:
        office.services.surveys.apply(office.drafts[survey])
        office.services.lifecycle.stop_at(survey, None)


def is_right(
    office: Shown, client: FlaskClient, csrf: str, form: Form, i: int, number: int
) -> bool:
    """Return True if what is entered into a control alone is stored, or refused at the control."""
    control, plain = form.controls[i], None
    value, is_choice = entered(control, number) or "", control.kind in CHOICES
    restore(office, form)
    if is_choice:
        plain = post(client, csrf, form.action, filled(office, form, number=number))
        plain_rows = rows(office)
        restore(office, form)
    before, recorded = rows(office), events(office)
    answer = post(client, csrf, form.action, filled(office, form, i, value, number + 1))
    after = rows(office)
    # Whatever a page changes is in the audit trail.
    if (after != before) is not (events(office) > recorded):
        return False
    if answer.status_code < 400:
        if plain is not None:
            # A format, for instance, changes only the response.
            return after != plain_rows or answer.mimetype != plain.mimetype
        return after != before and all(line in repr(after) for line in value.split("\n"))
    # A choice may need further fields, a new choice its score, and a form's only field no name.
    if is_choice and control.kind != "checkbox":
        return after == before
    parts = re.split(r"[.\[\]]", refused_field(answer) or "")
    is_only = sum(entered(other, 0) is not None for other in form.controls) == 1
    names = {control.name, control.name.split("-")[0], NEEDS.get(control.name, "")}
    return after == before and (is_only or names.intersection(parts) != set())


@pytest.mark.slow
def test_whatever_is_entered_alone_is_stored_or_refused_at_its_field(office: Shown) -> None:
    """Every field of every form, without the choice that it may need."""
    client = office.client("owner")
    csrf, ignored, tried = token(client), [], 0
    for form in forms(office, client):
        # A trial stores nothing, and forms with a password have no other optional field.
        if form.action.endswith("/try") or any(one.kind == "password" for one in form.controls):
            continue
        for i, control in enumerate(form.controls):
            if entered(control, 0) is not None:
                tried += 1
                if not is_right(office, client, csrf, form, i, 2 * tried):
                    ignored.append(
                        (rule_of(office, form.action).rule, control.name, control.options)
                    )
    assert not ignored, "\n".join(map(str, ignored))
    assert tried > 80


LONG = "x" * 4001
ROWS = [
    ("label-en", "No"),
    ("choice", "no"),
    ("was", "no"),
    ("label-en", "Yes"),
    ("choice", "yes"),
    ("was", "yes"),
]
SMOKES_ROWS = [
    ("id", "smokes"),
    ("text-en", "Do you smoke?"),
    ("kind", "single"),
    ("place", "block"),
    *ROWS,
]
NEW = {"kind": "yes-no", "place": "block", "text-en": "Q"}
ABOUT = {"languages": "en", "title-en": "T", "min_reports": "10"}
ITEM = {"item_text": "Choose “Often”.", "item_choices": "Never\nOften", "item_answer": "Often"}
LEVEL = {"block": "smokes"}
COUNTS = "region,,no,yes\nnorth,low,120,30\nnorth,high,40,60\nsouth,low,120,30\nsouth,high,40,60"
INCOME = LEVEL | {"secret": "attribute", "name": "Income", "source": "x", "epsilon": "0.5", "counts": COUNTS,
                  "backstop": "yes"}  # fmt: skip
# Page of the invited survey or another address, what is sent, and the field of the refusal, which
# is "form" for a field that has no use there.
REFUSED: dict[str, tuple[str, Any, str]] = {
    "an empty language": ("/admin/surveys/new", {"title": "T", "language": "", "question": "Q", "choices": "a\nb"},
                          "languages"),
    "another way to begin": ("/admin/surveys/new", {"how": "magic", "title": "T"}, "how"),
    "a field of another beginning": ("/admin/surveys/new", {"how": "template", "template": "census", "title": "T"},
                                     "form"),
    "another tick": ("new-question", NEW | {"no_answer": "maybe"}, "no_answer"),
    "a mean in a block": ("new-question", NEW | {"wanted": "mean"}, "wanted"),
    "a long consent": ("text", ABOUT | {"consent-en": LONG}, "consent-en"),
    "a language that the draft lacks": ("text", ABOUT | {"title-fr": "T"}, "form"),
    "an empty number of people": ("protection", {"block": "smokes", "strength": "2", "expected_reports": ""},
                                  "expected_reports"),
    "a day that is none": ("text", ABOUT | {"closes": "30.6.2026"}, "closes"),
    "a day with a time": ("text", ABOUT | {"closes": "2026-06-20T10:00:00"}, "closes"),
    "a short name without a text": ("questions/smokes", [*SMOKES_ROWS, ("label-en", ""), ("choice", "zzq"),
                                                         ("was", "")], "choice[2]"),
    "another short name without a text": ("questions/smokes", [*SMOKES_ROWS, ("label-en", ""), ("choice", "zzq"),
                                                               ("was", "never")], "choice[2]"),
    "a long short name": ("questions/smokes", [("id", "s" * 65), *SMOKES_ROWS[1:]], "id"),
    "scores of a question without": ("questions/smokes", [*SMOKES_ROWS, ("number", "1"), ("number", "2")], "number[0]"),
    "a text in another language": ("questions/smokes", [*SMOKES_ROWS, ("label-fr", "Non"), ("label-fr", "Oui")],
                                   "form"),
    "an answer of a question": ("questions/smokes", [*SMOKES_ROWS, ("answer", "1")], "form"),
    "an item that asks for nothing": ("item", ITEM | {"item_answer": ""}, "item_answer"),
    "an item that asks for no choice of it": ("item", ITEM | {"item_answer": "Always"}, "item_answer"),
    "an item with one choice": ("item", ITEM | {"item_choices": "Often"}, "item_choices"),
    "an item with equal choices": ("item", ITEM | {"item_choices": "Often\noften"}, "item_choices"),
    "an item with choices that look the same": ("item", ITEM | {"item_choices": "Often\nОften"}, "item_choices"),
    "an item with many choices": ("item", ITEM | {"item_choices": "Often" + "\n".join(map(str, range(65)))
                                                  + "\nOften"}, "item_choices"),
    "an item without a text": ("item", ITEM | {"item_text": ""}, "item_text"),
    "an item with a long text": ("item", ITEM | {"item_text": LONG}, "item_text"),
    "more rows than texts": ("questions/smokes", [*SMOKES_ROWS, ("was", "")], "choices"),
    "an exact level beside a moved slider": ("protection", {"block": "smokes", "strength": "0", "epsilon": "0.37"},
                                             "strength"),
    "a strength that is none": ("protection", {"block": "smokes", "strength": "7"}, "strength"),
    "an answer beside all of them": ("protection", LEVEL | {"epsilon": "1", "one": "smokes/no"}, "one"),
    "an answer of another question": ("protection", LEVEL | {"epsilon": "1", "secret": "one", "one": "drinks/no"},
                                      "one"),
    "one answer of several questions": ("protection", LEVEL | {"epsilon": "1", "secret": "one", "one": "smokes/yes",
                                                               "together": "drinks"}, "together"),
    "two levels beside one": ("protection", INCOME | {"notion": "lip", "low": "0.2"}, "low"),
    "one level beside two": ("protection", INCOME | {"notion": "alip", "low": "0.2"}, "epsilon"),
    "another question beside a name": ("protection", INCOME | {"secret": "question", "other": "drinks"}, "name"),
    "a sample without its promise": ("protection", INCOME | {"notion": "lip", "sample": "2000"}, "sample"),
    "counts typed and uploaded": ("protection", INCOME | {"counts_file": (io.BytesIO(b"x"), "a.csv")}, "counts"),
    "a file without a secret": ("protection", LEVEL | {"epsilon": "1", "counts_file": (io.BytesIO(b"x"), "a.csv")},
                                "counts_file"),
    "the secret among the questions": ("protection", INCOME | {"secret": "question", "name": "", "other": "drinks",
                                                               "together": "drinks"}, "together"),
    "an unknown secret": ("protection", LEVEL | {"secret": "all"}, "secret"),
    "answers of both trials": ("try", {"what": "everybody", "block": "smokes", "answer": "no", "q-smokes": "no"},
                               "form"),
    "an answer to no question": ("try", {"what": "form", "q-nothing": "no"}, "form"),
    "another format": ("invitations", {"count": "2", "format": "pdf"}, "format"),
    "one code and all": ("invitations/revoke", {"code": "0000-0000-0000-0000", "all": "yes"}, "code"),
    "a direction": ("questions/smokes/move", {"direction": "left"}, "direction"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_input_beside_another_choice_changes_nothing(office: Shown, case: str) -> None:
    page, fields, where = REFUSED[case]
    survey, *_ = office.drafts
    client = office.client("owner")
    before = rows(office)
    path = page if page.startswith("/") else f"/admin/surveys/{survey}/{page}"
    answer = post(client, token(client), path, fields)
    assert answer.status_code in (400, 422), answer.text
    refused = refused_field(answer)
    if refused is None:  # an error page, because no field of a page can mend this
        assert "did not work" in answer.text
        assert where in ("form", "direction", "what")
    else:
        assert where in (refused, *refused.split("."), refused.rpartition(".")[2].partition("[")[0])
    assert rows(office) == before


def test_a_table_of_counts_belongs_to_its_secret(office: Shown) -> None:
    """The same fields with their choice are stored."""
    survey, *_ = office.drafts
    client = office.client("owner")
    restore(office, Form("", f"/admin/surveys/{survey}/protection"))
    stored = post(client, token(client), f"/admin/surveys/{survey}/protection", INCOME)
    assert stored.status_code == 303, stored.text
    block = office.services.surveys.draft(survey).blocks[0]
    assert (block.notion, block.epsilon, block.prior and block.prior.secret) == (
        "lip",
        "0.5",
        "income",
    )
    restore(office, Form("", f"/admin/surveys/{survey}/protection"))


def test_the_time_of_the_last_day_stays_unless_the_day_changes(office: Shown) -> None:
    survey, *_ = office.drafts
    client = office.client("owner")
    restore(office, Form("", f"/admin/surveys/{survey}/text"))
    closes = office.drafts[survey].closes
    assert closes is not None
    day = closes.strftime("%Y-%m-%d")
    for sent, expected in ((day, closes.isoformat()[:19]), ("2026-06-20", "2026-06-20T23:59:59")):
        answer = post(
            client,
            token(client),
            f"/admin/surveys/{survey}/text",
            ABOUT | {"closes": sent, "invited": "yes"},
        )
        assert answer.status_code == 303, answer.text
        stored = office.services.surveys.draft(survey).closes
        assert stored is not None
        assert stored.isoformat()[:19] == expected
    restore(office, Form("", f"/admin/surveys/{survey}/text"))


def test_a_text_of_a_language_that_is_removed_is_not_dropped(office: Shown) -> None:
    """A translation that nobody touched may go with its language."""
    text = SURVEY.replace(b"name: habits", b"name: two").replace(
        b"languages: [en]", b"languages: [en, de]"
    )
    text = re.sub(rb"\{en: (.+?)\}", rb"{en: \1, de: \1}", text)
    services = office.services
    survey = services.surveys.apply(parse_definition(text)).survey_id
    assert survey is not None
    client = office.client("owner")
    page = f"/admin/surveys/{survey}"
    title = services.surveys.draft(survey).title
    fields = {
        "title-en": title["en"],
        "title-de": title["de"],
        "min_reports": "10",
        "languages": "en",
    }
    csrf = token(client)
    refused = post(client, csrf, f"{page}/text", fields | {"title-de": "Neuer Titel"})
    assert (refused.status_code, refused_field(refused)) == (422, "title-de")
    assert 'value="Neuer Titel"' in refused.text
    assert services.surveys.draft(survey).title == title
    assert post(client, csrf, f"{page}/text", fields).status_code == 303
    assert set(services.surveys.draft(survey).title) == {"en"}
