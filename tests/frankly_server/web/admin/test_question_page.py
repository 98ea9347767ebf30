# SPDX-License-Identifier: Apache-2.0
"""Page of one question, and the buttons of the list of questions."""

import html
import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.editing import item_words
from werkzeug.datastructures import MultiDict

from tests.frankly_server.web.admin.office import Office, ask, begin, send, token, without_terms


@pytest.fixture
def draft(office: Office) -> tuple[FlaskClient, str]:
    """An admin's browser, and the address of a new draft with two questions."""
    client = office.client("admin")
    address = begin(client).headers["Location"]
    assert ask(client, address, "Happy?", "No\nYes").status_code == 303
    return client, address


def stored(office: Office, address: str) -> SurveyDefinition:
    return office.services.surveys.draft(address.split("/")[3])


def ids(office: Office, address: str) -> list[str]:
    return [question.id for question in stored(office, address).questions]


def post(client: FlaskClient, path: str, *fields: tuple[str, str]) -> Any:
    """Send a question's form, in which names repeat; an instructed item has no kind and no place."""
    usual = [] if path.endswith(("/check", "/reads")) else [("kind", "single"), ("place", "block")]
    data = MultiDict([("csrf", token(client)), *usual, *fields])
    return client.post(path, data=data, content_type="multipart/form-data")


def row(was: str, label: str, choice: str = "") -> list[tuple[str, str]]:
    return [("label-en", label), ("choice", choice), ("was", was)]


def test_a_question_is_edited(office: Office, draft: tuple[FlaskClient, str]) -> None:
    client, address = draft
    assert 'value="Tired?"' in client.get(f"{address}/tired").text
    rows = [
        *row("no", "Never", "no"),
        *row("yes", "Sometimes", "some"),
        *row("", "Always"),
        *row("", ""),
    ]
    answer = post(client, f"{address}/tired", ("id", "fatigue"), ("text-en", "How tired?"), *rows)
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        f"{address}?saved=q-fatigue#q-fatigue",
    )
    question = stored(office, address).blocks[0].questions[0]
    assert (question.id, question.text["en"]) == ("fatigue", "How tired?")
    assert [(c.id, c.label["en"]) for c in question.choices] == [
        ("no", "Never"),
        ("some", "Sometimes"),
        ("always", "Always"),
    ]


def test_a_choice_moves_up_and_the_page_stays(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    rows = [*row("no", "No", "no"), *row("yes", "Yes", "yes")]
    answer = post(
        client, f"{address}/tired", ("id", "tired"), ("text-en", "Tired?"), *rows, ("raise", "1")
    )
    assert answer.headers["Location"] == f"{address}/tired?saved=q-tired#q-tired"
    choices = stored(office, address).blocks[0].questions[0].choices
    assert [choice.id for choice in choices] == ["yes", "no"]


@pytest.mark.parametrize("raised", ["0", "2", "-1", "x", "²", "9" * 5000])
def test_an_impossible_move_of_a_choice_is_refused(
    office: Office, draft: tuple[FlaskClient, str], raised: str
) -> None:
    client, address = draft
    rows = [*row("no", "No", "no"), *row("yes", "Yes", "yes")]
    answer = post(
        client, f"{address}/tired", ("id", "tired"), ("text-en", "Tired?"), *rows, ("raise", raised)
    )
    assert answer.status_code == 422
    assert [c.id for c in stored(office, address).blocks[0].questions[0].choices] == ["no", "yes"]


# What is sent instead, and a part of the refusal.
BAD: dict[str, tuple[list[tuple[str, str]], str]] = {
    "no text": ([("text-en", ""), *row("no", "No"), *row("yes", "Yes")], "text"),
    "one choice": ([*row("no", "No")], "2 to 1000 choices"),
    "no choices": ([], "2 to 1000 choices"),
    "the same label twice": ([*row("no", "No"), *row("yes", "no ")], "look the same"),
    "the same id twice": ([*row("no", "No", "x"), *row("yes", "Yes", "x")], "look the same"),
    "an id with spaces": ([("id", "so tired"), *row("no", "No"), *row("yes", "Yes")], "id"),
    "the id of another question": (
        [("id", "happy"), *row("no", "No"), *row("yes", "Yes")],
        "happy",
    ),
    "rows of unequal length": ([("label-en", "No"), ("was", "no"), ("was", "yes")], "choices"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_shown_again(
    office: Office, draft: tuple[FlaskClient, str], case: str
) -> None:
    client, address = draft
    fields, said = BAD[case]
    names = {name for name, _ in fields}
    usual = [
        (name, value)
        for name, value in (("id", "tired"), ("text-en", "Tired? Typed"))
        if name not in names
    ]
    before = stored(office, address)
    answer = post(client, f"{address}/tired", *usual, *fields)
    assert answer.status_code in (400, 422)
    assert said in answer.text
    if "text-en" not in names:
        assert "Tired? Typed" in answer.text
    assert stored(office, address) == before


def test_buttons_move_copy_and_remove(office: Office, draft: tuple[FlaskClient, str]) -> None:
    client, address = draft
    assert ids(office, address) == ["tired", "happy"]
    assert send(client, f"{address}/happy/move", direction="up").status_code == 303
    assert ids(office, address) == ["happy", "tired"]
    assert send(client, f"{address}/happy/move", direction="sideways").status_code == 422
    assert send(client, f"{address}/happy/copy").status_code == 303
    assert ids(office, address) == ["happy", "happy-2", "tired"]
    assert send(client, f"{address}/happy/remove").status_code == 303
    assert ids(office, address) == ["happy-2", "tired"]
    page = client.get(address).text
    # The first question cannot move up, the last one cannot move down.
    assert re.findall(r'aria-label="(Move \w+: \w+\?)"', page) == [
        "Move down: Happy?",
        "Move up: Tired?",
    ]
    for action in ("move", "copy", "remove"):
        fields = {"direction": "up"} if action == "move" else {}
        assert send(client, f"{address}/unknown/{action}", **fields).status_code == 404


ITEM = {"item_text": "Choose “Often”.", "item_choices": "Never\nOften", "item_answer": "often "}


def rows_of_the_item(*labels: str) -> list[tuple[str, str]]:
    ids = ("never", "often", "")
    return [field for was, label in zip(ids, labels, strict=False) for field in row(was, label)]


def test_an_item_is_added_edited_and_removed(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    form = html.unescape(client.get(address).text)
    assert all(text in form for text in item_words("en").choices)
    item_address = address.removesuffix("questions") + "item"
    assert send(client, item_address, **ITEM).status_code == 303
    item = stored(office, address).instructed
    assert item is not None
    assert (item.id, item.answer) == ("check", "often")
    assert "Add an item" not in client.get(address).text
    assert send(client, item_address, **ITEM).status_code == 422
    named = ("id", "reads"), ("text-en", "Choose “Always”.")
    labels = rows_of_the_item("Never", "Often", "Always")
    # The button of a row moves the mark with its choice.
    saved = post(client, f"{address}/check", *named, *labels, ("answer", "2"), ("raise", "2"))
    assert saved.headers["Location"] == f"{address}/reads?saved=q-reads#q-reads"
    item = stored(office, address).instructed
    assert item is not None
    assert (item.id, item.answer) == ("reads", "always")
    assert [choice.id for choice in item.choices] == ["never", "always", "often"]
    checked = r'value="1" aria-label="Choice 2 is asked for" checked'
    assert re.findall(r'name="answer" (.* checked)', client.get(f"{address}/reads").text) == [
        checked
    ]
    for action in ("move", "copy"):
        fields = {"direction": "up"} if action == "move" else {}
        assert send(client, f"{address}/reads/{action}", **fields).status_code == 404
    assert send(client, f"{address}/reads/remove").status_code == 303
    assert stored(office, address).instructed is None


@pytest.mark.parametrize(
    "fields",
    [
        [*rows_of_the_item("Never", ""), ("answer", "1")],
        [*rows_of_the_item("Never", "Often", ""), ("answer", "2")],
        rows_of_the_item("Never", "Often"),
        [*rows_of_the_item("Never", "Often"), ("answer", "2")],
        [*rows_of_the_item("Never", "Often"), ("answer", "often")],
    ],
    ids=["removed", "an empty row", "none", "no row", "an id"],
)
def test_an_item_always_asks_for_one_of_its_choices(
    office: Office, draft: tuple[FlaskClient, str], fields: list[tuple[str, str]]
) -> None:
    client, address = draft
    send(client, address.removesuffix("questions") + "item", **ITEM)
    before = stored(office, address)
    answer = post(client, f"{address}/check", ("id", "check"), ("text-en", "Typed"), *fields)
    assert (answer.status_code, 'data-field="answer"' in answer.text) == (422, True)
    assert 'value="Typed"' in answer.text
    assert stored(office, address) == before


def test_beside_counts_there_is_no_item(office: Office, draft: tuple[FlaskClient, str]) -> None:
    client, address = draft
    survey = address.removesuffix("/questions")
    counts = {"block": "tired", "secret": "attribute", "epsilon": "0.5"}
    counts |= {"name": "Income", "counts": ",no,yes\nlow,120,30\nhigh,40,60", "source": "a table"}
    assert send(client, f"{survey}/protection", **counts).status_code == 303
    page = client.get(address).text
    assert "item_text" not in page
    assert (
        "cannot be added, because this survey protects what answers give away, by counts"
        in without_terms(page)
    )
    before = stored(office, address)
    refused = send(client, f"{survey}/item", **ITEM)
    assert (refused.status_code, stored(office, address)) == (422, before)
    assert "rests on a prior" in refused.text
    # The other way round, the protection is refused.
    assert send(client, f"{survey}/protection", block="tired", strength="2").status_code == 303
    assert send(client, f"{survey}/item", **ITEM).status_code == 303
    refused = send(client, f"{survey}/protection", **counts)
    assert (refused.status_code, "rests on a prior" in refused.text) == (422, True)


def test_the_publish_page_says_what_is_sent_of_an_item(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    survey = address.removesuffix("/questions")
    assert "who reads" not in client.get(f"{survey}/publish").text
    send(client, f"{survey}/item", **ITEM)
    page = " ".join(client.get(f"{survey}/publish").text.split())
    assert (
        "One item shows who reads: “Choose “Often”.” Of it, only “passed” or “failed” is sent, unprotected."
        in page
    )


def test_a_page_of_an_older_state_moves_nothing(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    seen = re.search(r'name="seen" value="(\w+:?\w+)"', client.get(address).text)
    assert seen
    assert send(client, f"{address}/happy/move", direction="up").status_code == 303
    answer = send(client, f"{address}/happy/move", direction="down", seen=seen.group(1))
    assert answer.status_code == 409
    assert ids(office, address) == ["happy", "tired"]


def test_counts_for_each_choice_need_a_confirmation(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    form = {
        "block": "tired",
        "secret": "attribute",
        "epsilon": "0.5",
        "name": "Income",
        "counts": ",no,yes\nlow,120,30\nhigh,40,60",
        "source": "a table",
    }
    protection = address.removesuffix("/questions") + "/protection"
    assert send(client, protection, **form).status_code == 303
    fields = [
        ("id", "tired"),
        ("text-en", "Tired?"),
        *row("no", "No", "no"),
        *row("yes", "Yes", "yes"),
        *row("", "Often"),
    ]
    refused = post(client, f"{address}/tired", *fields)
    assert refused.status_code == 422
    assert 'name="reset"' in refused.text
    assert "Often" in refused.text
    assert post(client, f"{address}/tired", *fields, ("reset", "yes")).status_code == 303
    block = stored(office, address).blocks[0]
    assert (block.notion, len(block.questions[0].choices)) == ("ldp", 3)


def test_a_survey_is_translated_on_its_pages(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    text = address.removesuffix("questions") + "text"
    about = {"title-en": "Work", "min_reports": "100", "consent-en": "Please answer."}
    assert send(client, text, **about, languages="en, fr").status_code == 303
    assert stored(office, address).languages == ("en", "fr")
    assert (
        "4 texts in French are not translated yet, or the same as in English"
        in client.get(address).text
    )
    both = [
        ("label-en", "No"),
        ("label-fr", "Non"),
        ("choice", "no"),
        ("was", "no"),
        ("label-en", "Yes"),
        ("label-fr", "Oui"),
        ("choice", "yes"),
        ("was", "yes"),
    ]
    fields = [("id", "tired"), ("text-en", "Tired?"), ("text-fr", "Fatigué ?"), *both]
    assert post(client, f"{address}/tired", *fields).status_code == 303
    about |= {"title-fr": "Travail", "consent-fr": "Merci de répondre."}
    assert send(client, text, **about, languages="en fr").status_code == 303
    definition = stored(office, address)
    assert (definition.title["fr"], definition.blocks[0].questions[0].text["fr"]) == (
        "Travail",
        "Fatigué ?",
    )
    assert definition.consent == {"en": "Please answer.", "fr": "Merci de répondre."}
    # A new question begins with the text of the first language in both.
    assert ask(client, address, "Paid?", "No\nYes").status_code == 303
    assert stored(office, address).questions[-1].text == {"en": "Paid?", "fr": "Paid?"}
    for languages in ("", "en en", "nonsense!"):
        assert send(client, text, **about, languages=languages).status_code in (400, 422)


def known(was: str, label: str, count: str) -> list[tuple[str, str]]:
    return [*row(was, label, was), ("known", count)]


OF_TIRED = [("id", "tired"), ("text-en", "Tired?")]
NEARLY_NOBODY = [*OF_TIRED, *known("no", "No", "1100"), *known("yes", "Yes", "1")]
EMPTY = [*OF_TIRED, *known("no", "No", ""), *known("yes", "Yes", ""), ("known_source", "")]


def test_known_shares_are_set_shown_kept_and_removed(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    source = ("known_source", "A <b>report</b>")
    assert post(client, f"{address}/tired", *NEARLY_NOBODY, source).status_code == 303
    anchor = stored(office, address).blocks[0].questions[0].anchor
    assert anchor is not None
    assert (anchor.counts, anchor.source) == ((1100, 1), "A <b>report</b>")
    listed = " ".join(client.get(address).text.split())
    assert (
        "Known: No <strong>1,100</strong>, Yes <strong>1</strong> (A &lt;b&gt;report&lt;/b&gt;)."
        in listed
    )
    opened = client.get(f"{address}/tired").text
    assert 'aria-label="Known count of choice 1" value="1100"' in opened
    assert 'value="A &lt;b&gt;report&lt;/b&gt;"' in opened
    # A page that was opened before the fields existed keeps them.
    plain = [*OF_TIRED, *row("no", "No", "no"), *row("yes", "Often", "yes")]
    assert post(client, f"{address}/tired", *plain).status_code == 303
    assert stored(office, address).blocks[0].questions[0].anchor == anchor
    assert post(client, f"{address}/tired", *EMPTY).status_code == 303
    assert stored(office, address).blocks[0].questions[0].anchor is None
    assert "Known:" not in client.get(address).text


def put(client: FlaskClient, path: str, *fields: tuple[str, str]) -> Any:
    """Send exactly these fields of a question's form."""
    data = MultiDict([("csrf", token(client)), *fields])
    return client.post(path, data=data, content_type="multipart/form-data")


def test_a_question_is_asked_again(office: Office, draft: tuple[FlaskClient, str]) -> None:
    client, address = draft
    new = [
        ("kind", "yes-no"),
        ("place", "form"),
        ("text-en", "Do you <i>smoke</i>?"),
        ("id", "smokes"),
    ]
    form_path = address.replace("/questions", "/new-question")
    assert put(client, form_path, *new).status_code == 303
    # A new question, and one without an earlier one like it, cannot ask one again.
    for page in (form_path, f"{address}/smokes"):
        assert 'name="repeats"' not in client.get(page).text
    assert send(client, f"{address}/smokes/copy").status_code == 303
    opened = client.get(f"{address}/smokes-2").text
    assert '<option value="smokes">Do you &lt;i&gt;smoke&lt;/i&gt;?</option>' in opened
    plain = [
        ("id", "smokes-2"),
        ("text-en", "Are you a smoker?"),
        ("kind", "single"),
        ("place", "form"),
    ]
    plain += [*row("no", "No", "no"), *row("yes", "Yes", "yes")]
    repeated = ("repeats", "smokes")
    assert put(client, f"{address}/smokes-2", *plain, ("repeats", "tired")).status_code == 422
    assert put(client, f"{address}/smokes-2", *plain, repeated).status_code == 303

    def repeats() -> str | None:
        form = stored(office, address).form
        assert form is not None
        anchor = form.questions[1].anchor
        return None if anchor is None else anchor.repeats

    assert repeats() == "smokes"
    listed = " ".join(without_terms(client.get(address).text).split())
    assert "Asks “Do you &lt;i&gt;smoke&lt;/i&gt;?” again. It shows" in listed
    assert (
        "The second answer to “Are you a smoker?” shows how many people answer at random" in listed
    )
    assert '<option value="smokes" selected>' in client.get(f"{address}/smokes-2").text
    # A page that was opened before the field existed keeps it.
    assert put(client, f"{address}/smokes-2", *plain).status_code == 303
    assert repeats() == "smokes"
    for removed in (f"{address}/smokes/remove", f"{address}/smokes-2/move"):
        refused = send(
            client, removed, **({"direction": "up"} if removed.endswith("/move") else {})
        )
        assert refused.status_code == 422
        assert "smokes-2 is said to ask smokes again" in refused.text
    refused = put(client, f"{address}/smokes-2", *plain, repeated, ("wanted", "distribution"))
    assert (refused.status_code, 'data-field="wanted"' in refused.text) == (422, True)
    other = [*plain[:4], *row("no", "No", "no"), *row("yes", "Never", "never")]
    refused = put(client, f"{address}/smokes-2", *other)
    assert (refused.status_code, 'data-field="repeats"' in refused.text) == (422, True)
    assert put(client, f"{address}/smokes-2", *plain, ("repeats", "")).status_code == 303
    assert repeats() is None


def test_known_shares_or_an_item_but_not_both(
    office: Office, draft: tuple[FlaskClient, str]
) -> None:
    client, address = draft
    known_shares = [*NEARLY_NOBODY, ("known_source", "A report")]
    assert post(client, f"{address}/tired", *known_shares).status_code == 303
    listed = " ".join(without_terms(client.get(address).text).split())
    assert "known of the answers to “Tired?” shows how many people answer at random" in listed
    assert "Add an item that shows who reads" not in listed
    words = item_words("en")
    fields = {"item_text": words.text, "item_choices": "\n".join(words.choices)}
    fields["item_answer"] = words.choices[words.answer]
    path = address.replace("/questions", "/item")
    refused = send(client, path, **fields)
    assert (refused.status_code, "keep one of the two" in refused.text) == (422, True)
    # The other way round, the refusal is at the numbers.
    assert post(client, f"{address}/tired", *EMPTY).status_code == 303
    assert "Add an item that shows who reads" in client.get(address).text
    assert send(client, path, **fields).status_code == 303
    refused = post(client, f"{address}/tired", *known_shares)
    assert (refused.status_code, 'data-field="known"' in refused.text) == (422, True)
