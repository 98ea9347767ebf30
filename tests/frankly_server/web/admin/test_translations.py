# SPDX-License-Identifier: Apache-2.0
"""Translations page: texts side by side, what is missing, and refusals at their text."""

import html
import re
from typing import Any

from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from tests.frankly_server.web.admin.office import Office, send, token
from tests.frankly_server.web.admin.test_forms import refused_field
from tests.frankly_server.web.admin.test_question_form import begun, draft_of, submit


def shown(client: FlaskClient, survey: str, to: str = "de") -> list[str]:
    """Return the translations that the page shows, "" for one that is missing."""
    page = client.get(f"{survey}/translations?to={to}").text
    found = re.findall(
        r'<textarea name="text"[^>]*>([^<]*)<|<input name="text"[^>]* value="([^"]*)"', page
    )
    return [html.unescape(area or line) for area, line in found]


def originals(client: FlaskClient, survey: str) -> list[str]:
    page = client.get(f"{survey}/translations").text
    return [html.unescape(one) for one in re.findall(r'name="original" value="([^"]*)"', page)]


def post(
    client: FlaskClient, survey: str, texts: list[str], of: list[str] | None = None, to: str = "de"
) -> Any:
    """Send the form. of : the texts of the first language that the form showed; None for today's."""
    shown = originals(client, survey) if of is None else of
    data = MultiDict([("csrf", token(client)), ("to", to), *(("text", text) for text in texts)])
    data.update(MultiDict([("original", text) for text in shown]))
    return client.post(f"{survey}/translations", data=data, content_type="multipart/form-data")


def test_what_is_missing_is_an_empty_field_and_is_translated(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "translated")
    submit(client, f"{survey}/new-question", {"text-en": "Tired?", "text-de": ""})
    texts = shown(client, survey)
    # Ball has one word in both languages, and so has the new question, whose choices have German words.
    assert [i for i, text in enumerate(texts) if not text] == [12, 14]
    page = client.get(f"{survey}/translations").text
    assert "2 of 17 texts are missing or the same" in page
    assert page.count('class="missing"') == 2
    texts[14] = "Müde?"
    assert post(client, survey, texts).status_code == 303
    definition = draft_of(office, survey)
    assert definition.questions[-1].text == {"en": "Tired?", "de": "Müde?"}
    assert "1 of 17" in client.get(f"{survey}/translations").text
    # Every other text stays, and an emptied one is missing again.
    texts[0] = ""
    assert post(client, survey, texts).status_code == 303
    assert draft_of(office, survey).title == {"en": "Members", "de": "Members"}


def test_a_refused_text_is_named_and_all_typed_ones_stay(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "translated-badly")
    before, texts = draft_of(office, survey), shown(client, survey)
    texts[0], texts[4] = "Getippt", "a\u202eb"
    answer = post(client, survey, texts)
    assert (answer.status_code, refused_field(answer)) == (422, "text[4]")
    assert 'value="Getippt"' in answer.text
    assert draft_of(office, survey) == before


def test_a_refusal_of_equal_labels_is_at_one_of_them(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "translated-equally")
    texts = shown(client, survey)
    place = texts.index("Schwimmen")
    texts[place] = texts[place - 1] = "Gleich"
    answer = post(client, survey, texts)
    assert (answer.status_code, refused_field(answer)) == (422, f"text[{place - 1}]")


def test_texts_of_other_questions_are_not_mixed_up(office: Office) -> None:
    """After a change by somebody else, what was typed stands beside its own text, also when saved again."""
    client, survey = office.client("admin"), begun(office, "translated-late")
    texts, of = shown(client, survey), originals(client, survey)
    texts[of.index("How long?")] = "Getippt?"
    texts[of.index("Prefer not to say")] = "Verwaist"
    send(client, f"{survey}/questions/years/move", direction="up")
    rows = [{"was": "no", "choice": "no", "label-en": "No", "label-de": "Nein"},
            {"was": "yes", "choice": "yes", "label-en": "Yes", "label-de": "Ja"}]  # fmt: skip
    assert submit(client, f"{survey}/questions/smokes", {"no_answer": ""}, *rows).status_code == 303
    before = draft_of(office, survey)
    answer = post(client, survey, texts, of)
    assert (answer.status_code, draft_of(office, survey)) == (409, before)
    assert "typed for texts that are gone" in answer.text
    assert "Verwaist" in answer.text
    again = [
        html.unescape(one) for one in re.findall(r'name="text"[^>]* value="([^"]*)"', answer.text)
    ]
    assert post(client, survey, again).status_code == 303
    texts_by_question = {q.id: q.text["de"] for q in draft_of(office, survey).questions}
    assert texts_by_question["years"] == "Getippt?"
    assert texts_by_question["smokes"] == "Rauchen Sie?"
    assert post(client, survey, again[:-1]).status_code == 409
    assert post(client, survey, again, to="fr").status_code == 409


def test_a_survey_in_one_language_has_nothing_to_translate(office: Office) -> None:
    client = office.client("viewer")
    page = client.get(f"/admin/surveys/{office.survey}/translations").text
    assert "This survey has one language." in page
