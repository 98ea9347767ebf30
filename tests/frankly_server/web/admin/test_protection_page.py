# SPDX-License-Identifier: Apache-2.0
"""The protection step: what is stored for each answer to its questions, and what it says before that."""

import html
import io
import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.definition import BlockDefinition, SurveyDefinition, parse_definition
from frankly_server.surveys.protection import sensitive_answer
from frankly_server.surveys.survey_templates import template

from tests.frankly_server.web.admin.office import Office, ask, begin, send, token
from tests.frankly_server.web.admin.test_form_pages import SURVEYS
from tests.frankly_server.web.admin.test_forms import Forms

COUNTS = ",no,yes\nlow,120,30\nhigh,40,60"
GIVEN_AWAY = {
    "secret": "attribute",
    "name": "Income",
    "counts": COUNTS,
    "source": "a table",
    "notion": "lip",
    "backstop": "yes",
}


@pytest.fixture(scope="module")
def client(office: Office) -> FlaskClient:
    return office.client("admin")


def started(client: FlaskClient, title: str, **changes: str) -> str:
    """Return the address of a new survey with one question."""
    return str(begin(client, title=title, **changes).headers["Location"]).removesuffix("/questions")


def stored(office: Office, survey: str) -> SurveyDefinition:
    return office.services.surveys.draft(survey.rsplit("/", 1)[1])


def only_block(office: Office, survey: str) -> BlockDefinition:
    (block,) = stored(office, survey).blocks
    return block


def outlook(client: FlaskClient, survey: str, **fields: Any) -> dict[str, Any]:
    """Return what the page's script is told about the fields."""
    answer = client.post(
        f"{survey}/protection/outlook",
        data={"csrf": token(client), **fields},
        content_type="multipart/form-data",
        headers={"Accept": "application/json"},
    )
    assert answer.status_code == 200
    told: dict[str, Any] = answer.get_json()
    return told


# Name -> (fields, notion, level of the block)
STORED: dict[str, tuple[dict[str, str], str, str | None]] = {
    "the answer, strong": ({"secret": "answer", "strength": "2"}, "ldp", "1"),
    "the answer, very weak": ({"secret": "answer", "strength": "6"}, "ldp", "4"),
    "the answer, exactly": ({"secret": "answer", "strength": "2", "epsilon": "1.2"}, "ldp", "1.2"),
    "given away": (GIVEN_AWAY | {"strength": "2"}, "lip", "0.5"),
    "odds of what is given away": (GIVEN_AWAY | {"strength": "2", "notion": "secret-ldp"}, "secret-ldp", "1"),
    "one answer": ({"secret": "one", "one": "tired/yes", "strength": "4"}, "metric-ldp", None),
}  # fmt: skip


@pytest.mark.parametrize("one_level", [{}, {"one_level": "yes"}], ids=["by itself", "in a form"])
@pytest.mark.parametrize("name", STORED)
def test_what_is_chosen_is_stored(
    office: Office, client: FlaskClient, name: str, one_level: dict[str, str]
) -> None:
    """A question of a form gets its own block if it is not protected like the others."""
    fields, notion, level = STORED[name]
    survey = started(client, f"{name} {len(one_level)}"[:24], **one_level)
    part = "form" if one_level else "tired"
    if one_level and fields["secret"] == "attribute":
        fields = fields | {"question": "tired"}
    told = outlook(client, survey, block=part, expected_reports="400", **fields)
    assert stored(office, survey).expected_reports == 1000  # nothing is stored yet
    assert told["sentences"], told
    answer = send(client, f"{survey}/protection", block=part, expected_reports="400", **fields)
    assert answer.status_code == 303, answer.text
    definition = stored(office, survey)
    assert definition.expected_reports == 400
    if one_level and fields["secret"] == "answer":
        assert (definition.blocks, definition.form_epsilon) == ((), level)
    else:
        assert definition.form is None
        assert (only_block(office, survey).notion, only_block(office, survey).epsilon) == (
            notion,
            level,
        )
    if fields["secret"] == "one":
        assert sensitive_answer(only_block(office, survey)) == ("yes", "2")
        assert only_block(office, survey).ceiling_cap == "2.9957"
    # The page that follows shows what was saved, and what it says about it is the same.
    shown = client.get(answer.headers["Location"]).text
    assert "Saved." in shown
    assert f'value="{fields["secret"]}" checked' in shown
    again = dict(fields) | (
        {} if fields["secret"] == "answer" or not one_level else {"block": "tired"}
    )
    again.pop("question", None)
    if "epsilon" in again:  # the slider now stands at the next stop
        again["strength"] = "3"
    assert outlook(client, survey, **({"block": part} | again)) == told


def test_without_scripts_a_button_says_what_it_means(office: Office, client: FlaskClient) -> None:
    survey = started(client, "No scripts")
    before = stored(office, survey)
    page = send(
        client, f"{survey}/protection/outlook", block="tired", secret="answer", strength="1",
        expected_reports="300",
    )  # fmt: skip
    assert page.status_code == 200
    assert "can become 63% sure at most" in page.text  # e^0.5 : 1
    assert 'value="300"' in page.text
    assert re.search(r'<input type="range"[^>]*value="1"', page.text)
    assert stored(office, survey) == before
    # A refused one is shown too, with what was entered.
    refused = send(
        client,
        f"{survey}/protection/outlook",
        block="tired",
        secret="attribute",
        name="Pay",
        strength="1",
    )
    assert (refused.status_code, 'value="Pay"' in refused.text) == (422, True)
    told = outlook(client, survey, block="tired", secret="attribute", name="Pay", strength="1")
    assert set(told) == {"refused"}
    assert "line with the answers" in told["refused"]


def test_counts_are_read_from_a_file(client: FlaskClient, office: Office) -> None:
    survey = started(client, "Uploaded")
    fields = {name: value for name, value in GIVEN_AWAY.items() if name != "counts"}
    told = outlook(
        client,
        survey,
        block="tired",
        strength="2",
        **fields,
        counts_file=(io.BytesIO(COUNTS.encode()), "a.csv"),
    )
    assert any("your “income”" in sentence for sentence in told["sentences"])
    assert only_block(office, survey).prior is None


def test_a_question_leaves_the_form_for_a_protection_of_its_own(
    office: Office, client: FlaskClient
) -> None:
    survey = started(client, "Three together", one_level="yes")
    for text in ("Hungry?", "Cold?"):
        assert ask(client, survey, text, "No\nYes", place="form").status_code == 303
    before = outlook(client, survey, block="form", strength="2")
    assert len(before["rows"]) == 3
    moved = send(
        client, f"{survey}/protection", block="form", secret="one", one="cold/yes", strength="3"
    )
    assert moved.status_code == 303, moved.text
    definition = stored(office, survey)
    assert definition.form is not None
    assert [question.id for question in definition.form.questions] == ["tired", "hungry"]
    assert definition.form_epsilon == "1"  # as before
    assert sensitive_answer(only_block(office, survey)) == ("yes", "1.5")
    page = html.unescape(client.get(f"{survey}/protection?block=form").text)
    assert "The questions protected together" in page
    assert "Cold?" in page  # a tab of its own
    # Each page of the design step speaks of either part.
    for tab in ("protection", "margins", "try"):
        for part in ("cold", "form"):
            assert client.get(f"{survey}/{tab}?block={part}").status_code == 200
    answers = {"q-tired": "no", "q-hungry": "no", "q-cold": "yes"}
    tried = send(client, f"{survey}/try", what="form", block="form", **answers)
    assert "This would be sent, and nothing else" in tried.text
    assert client.get(f"{survey}/protection?block=nothing").status_code == 404


def test_the_slider_and_an_exact_level(office: Office, client: FlaskClient) -> None:
    survey = started(client, "Exactly")
    path = f"{survey}/protection"

    def shown() -> tuple[str, str, str]:
        page = client.get(path).text
        found = re.search(r'name="strength"[^>]*value="(\d)"', page)
        exact = re.search(r'id="epsilon" name="epsilon"[^>]*value="([^"]*)"', page)
        word = re.search(r"<output[^>]*>([^<]*)<", page)
        assert found
        assert exact
        assert word
        return found[1], exact[1], word[1]

    assert send(client, path, block="tired", strength="2", epsilon="0.7").status_code == 303
    assert only_block(office, survey).epsilon == "0.7"
    assert shown() == ("2", "0.7", "Exact level: 0.7")
    # Both say something else: nothing is taken silently.
    refused = send(client, path, block="tired", strength="5", epsilon="0.7")
    assert (refused.status_code, 'data-field="strength"' in refused.text) == (422, True)
    assert send(client, path, block="tired", strength="5", epsilon="").status_code == 303
    assert only_block(office, survey).epsilon == "3"
    assert shown() == ("5", "", "Weak")


def test_looking_does_not_take_over_what_others_saved(office: Office, client: FlaskClient) -> None:
    """A form that is shown again stays based on the draft that it was made from."""
    survey = started(client, "Two tabs")
    seen = stored(office, survey).digest
    assert (
        send(client, f"{survey}/protection", block="tired", strength="0", seen=seen).status_code
        == 303
    )
    looked = send(client, f"{survey}/protection/outlook", block="tired", strength="5", seen=seen)
    assert f'name="seen" value="{seen}"' in looked.text
    refused = send(client, f"{survey}/protection", block="tired", strength="5", seen=seen)
    assert refused.status_code == 409
    assert only_block(office, survey).epsilon == "0.25"


# Name -> (fields, field of the refusal)
REFUSED = {
    "a name in other letters": (GIVEN_AWAY | {"name": "Доход"}, "name"),
    "no name": (GIVEN_AWAY | {"name": " "}, "name"),
    "values in other letters": (GIVEN_AWAY | {"counts": ",no,yes\nнизкий,120,30\nвысокий,40,60"}, "counts"),
    "the name of a question": (GIVEN_AWAY | {"name": "Tired"}, "name"),
    "no source": (GIVEN_AWAY | {"source": ""}, "source"),
    "an answer of a public question": ({"secret": "one", "one": "age/old"}, "one"),
    "an answer of no question": ({"secret": "one", "one": "zzq/old"}, "one"),
    "nothing chosen": ({"secret": "one"}, "one"),
}  # fmt: skip


@pytest.mark.parametrize("one_level", [{}, {"one_level": "yes"}], ids=["by itself", "in a form"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_could_read_is_refused_at_its_field(
    office: Office, client: FlaskClient, name: str, one_level: dict[str, str]
) -> None:
    fields, at = REFUSED[name]
    survey = started(client, f"{name} {len(one_level)}"[:24], **one_level)
    assert ask(client, survey, "Age", "Young\nOld", place="public").status_code == 303
    if "counts" in fields:  # with a public question, counts are given for each of its answers
        head, *rows = fields["counts"].split("\n")
        lines = [f"age,{head}", *(f"{age},{row}" for age in ("young", "old") for row in rows)]
        fields = fields | {"counts": "\n".join(lines), "question": "tired"}
        if not one_level:
            del fields["question"]
    before = stored(office, survey)
    block = "form" if one_level else "tired"
    refused = send(client, f"{survey}/protection", block=block, strength="2", **fields)
    assert refused.status_code in (409, 422), refused.text
    assert f'id="{at}-error"' in refused.text or f'data-field="{at}"' in refused.text
    assert stored(office, survey) == before


def test_the_example_of_counts_is_accepted_as_it_is(office: Office, client: FlaskClient) -> None:
    survey = started(
        client, "Example", choices="Not once\nOnce, or twice\nThree to five\nMore often"
    )
    assert ask(client, survey, "Age", "Young\nMiddle\nOld", place="public").status_code == 303
    shown = re.search(r"<pre>(.*?)</pre>", client.get(f"{survey}/protection").text, re.DOTALL)
    assert shown is not None
    example = html.unescape(shown[1])
    fields = GIVEN_AWAY | {"strength": "2", "counts": example}
    answer = send(client, f"{survey}/protection", block="tired", **fields)
    assert answer.status_code == 303, answer.text
    assert only_block(office, survey).notion == "lip"


def test_a_file_that_was_refused_is_not_lost(client: FlaskClient) -> None:
    survey = started(client, "Refused file")
    fields = GIVEN_AWAY | {"source": "", "counts": ""}
    refused = send(
        client, f"{survey}/protection", block="tired", strength="2", **fields,
        counts_file=(io.BytesIO(COUNTS.encode()), "a.csv"),
    )  # fmt: skip
    assert refused.status_code == 422
    assert "low,120,30" in refused.text


def test_a_question_with_a_rule_stays_in_the_form(office: Office, client: FlaskClient) -> None:
    """What is sent about the other one would tell more about it than its own protection allows."""
    surveys = office.services.surveys
    rule = "\n      ask_if: {question: smoke, choices: ['yes']}\n      not_applicable: true\n      type: yes-no"
    file = SURVEYS["alone"].replace("name: alone", "name: ruled").replace(
        "    - {id: drink, text: {en: drink asked}, choices: [{id: no, label: {en: N}}, {id: yes, label: {en: Y}}]}",
        f"    - id: drink\n      text: {{en: drink asked}}{rule}",
    )  # fmt: skip
    surveys.apply(parse_definition(file.encode()))
    survey = next(row.survey_id for row in surveys.list() if row.name == "ruled")
    path = f"/admin/surveys/{survey}/protection"
    for one in ("smoke/yes", "drink/yes"):
        refused = send(client, path, block="form", secret="one", one=one, strength="2", ask="all")
        assert (refused.status_code, "remove that rule first" in refused.text) == (422, True)
    assert (
        send(
            client, path, block="form", secret="one", one="mood/high", strength="2", ask="all"
        ).status_code
        == 303
    )


def test_saving_an_unchanged_page_changes_nothing(office: Office, client: FlaskClient) -> None:
    surveys = office.services.surveys
    for name in (
        "student",
        "workplace",
        "health",
        "opinion",
        "questionnaire",
        "attributes",
        "census",
    ):
        surveys.apply(parse_definition(template(name)))
        survey = next(row.survey_id for row in surveys.list() if row.name == name)
        before = surveys.draft(survey)
        page = f"/admin/surveys/{survey}/protection"
        for part in [block.id for block in before.blocks] or ["form"]:
            fields = Forms(page, client.get(f"{page}?block={part}").text).forms[1]
            sent = {
                control.name: control.value
                for control in fields.controls
                if control.value is not None and control.kind != "file" and control.name != "csrf"
            }
            answer = send(client, page, **sent)
            assert answer.status_code == 303, (name, part, answer.text)
            assert surveys.draft(survey) == before, (name, part)


@pytest.mark.parametrize("name", SURVEYS)
def test_nats_are_for_experts_only(office: Office, name: str) -> None:
    surveys = office.services.surveys
    surveys.apply(parse_definition(SURVEYS[name].encode()))
    survey = next(row.survey_id for row in surveys.list() if row.name == name)
    client = office.client("viewer")
    for part in ("form", "other") if name == "beside" else ("form",):
        page = client.get(f"/admin/surveys/{survey}/protection?block={part}").text
        usual = re.sub(
            r'<details id="experts".*?</details>\s*</form>', "</form>", page, flags=re.DOTALL
        )
        assert usual != page
        words = re.sub(r"<[^>]*>", " ", usual[usual.index("<main") :])
        assert not re.search(r"\bnats?\b|LDP|LIP|epsilon|ε|\bnotion", words), words
        assert "<button>Save</button>" not in page  # a viewer changes nothing


@pytest.mark.parametrize("people", ["0", "many", "1.5", ""])
def test_a_number_of_people_is_refused_at_its_field(
    office: Office, client: FlaskClient, people: str
) -> None:
    survey = started(client, f"People {people}")
    before = stored(office, survey)
    answer = send(
        client, f"{survey}/protection", block="tired", strength="2", expected_reports=people
    )
    assert answer.status_code == 422
    assert 'id="expected_reports-error"' in answer.text
    assert stored(office, survey) == before
