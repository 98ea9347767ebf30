# SPDX-License-Identifier: Apache-2.0
"""Translations page: texts side by side, what is missing, and refusals at their text."""

import html
import re
from typing import Any

from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from tests.frankly_server.web.admin.office import Office, token
from tests.frankly_server.web.admin.test_forms import refused_field
from tests.frankly_server.web.admin.test_question_form import begun, draft_of, submit


def shown(client: FlaskClient, survey: str, to: str = "de") -> list[str]:
    """Return the translations that the page shows, "" for one that is missing."""
    page = client.get(f"{survey}/translations?to={to}").text
    found = re.findall(
        r'<textarea name="text"[^>]*>([^<]*)<|<input name="text"[^>]* value="([^"]*)"', page
    )
    return [html.unescape(area or line) for area, line in found]


def post(client: FlaskClient, survey: str, texts: list[str], **changes: str) -> Any:
    page = client.get(f"{survey}/translations").text
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    fields = hidden | {"csrf": token(client)} | changes
    data = MultiDict([*fields.items(), *(("text", text) for text in texts)])
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


def test_texts_of_other_questions_are_not_mixed_up(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "translated-late")
    texts = shown(client, survey)
    page = client.get(f"{survey}/translations").text
    of = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))["of"]
    submit(client, f"{survey}/new-question", {"text-en": "Tired?", "text-de": "Müde?"})
    before = draft_of(office, survey)
    for changes in ({"of": of}, {"of": "x"}):
        assert post(client, survey, texts, **changes).status_code == 409
    assert post(client, survey, texts[:-1]).status_code == 409
    assert post(client, survey, texts, to="fr").status_code == 422
    assert draft_of(office, survey) == before


def test_a_survey_in_one_language_has_nothing_to_translate(office: Office) -> None:
    client = office.client("viewer")
    page = client.get(f"/admin/surveys/{office.survey}/translations").text
    assert "This survey has one language." in page
