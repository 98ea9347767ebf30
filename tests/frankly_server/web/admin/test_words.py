# SPDX-License-Identifier: Apache-2.0
"""Words page: every term that a page links to has an entry, and pages of a fresh survey have no units of experts."""

import re
from importlib import resources
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.definition import BlockDefinition, parse_definition
from frankly_server.web.admin.protected_words import IN_NUMBERS, protected_words
from frankly_server.web.admin.words import GROUPS, every_word

from tests.frankly_server.web.admin.office import Office, ask, begin, send

TERM = re.compile(r'\bterm\((?:[^()]|\([^()]*\))*?,\s*"([a-z-]+)"\)')
WITH_TERMS = ("questions", "new", "overview", "answers", "invitations", "estimates")


def sources() -> dict[str, str]:
    folder = resources.files("frankly_server.web.admin").joinpath("templates", "admin")
    return {one.name: one.read_text("utf-8") for one in folder.iterdir()}


def test_every_linked_term_has_an_entry() -> None:
    ids = [word.id for word in every_word()]
    assert len(ids) == len(set(ids))
    for name, text in sources().items():
        calls = text.count("m.term(")
        linked = TERM.findall(text)
        # The entry of what a block protects comes from `protected_words`.
        assert len(linked) + text.count("said.entry) if") == calls, name
        assert set(linked) <= set(ids), name
        assert not calls or len(linked) == calls or name == "questions.html"
    for name in WITH_TERMS:
        assert "m.term(" in sources()[f"{name}.html"], name


def test_entries_are_short_and_have_examples() -> None:
    for group, words in GROUPS.items():
        for word in words:
            assert 1 <= len(re.findall(r"[.?!](?: |$)", word.text)) <= 3, word.id
            assert word.example or group == "For experts", word.id


@pytest.mark.parametrize("caller", ["viewer", "analyst", "admin", "owner"])
def test_every_role_reads_the_words_from_every_page(office: Office, caller: str) -> None:
    client = office.client(caller)
    assert '<a href="/admin/words">' in client.get("/admin/surveys").text
    page = client.get("/admin/words").text
    for word in every_word():
        assert page.count(f'id="{word.id}"') == 1


def visible(client: FlaskClient, path: str) -> str:
    """Return the text of a page outside of what is folded."""
    page = client.get(path)
    assert page.status_code == 200, page.text
    return re.sub(r"<details.*?</details>", "", page.text, flags=re.DOTALL)


@pytest.mark.parametrize("one_level", [True, False], ids=["together", "by itself"])
def test_pages_of_a_fresh_survey_have_no_nats(office: Office, one_level: bool) -> None:
    client = office.client("admin")
    title = "Plain together" if one_level else "Plain alone"
    made = begin(client, title=title, **({"one_level": "yes"} if one_level else {}))
    survey = made.headers["Location"].removesuffix("/questions")
    ask(client, survey, "Rested?", "No\nYes", place="form" if one_level else "block")
    for path in ("/admin/surveys/new", f"{survey}/questions", survey):
        text = visible(client, path)
        assert not re.search(r"\bnats?\b", text), path
        assert not re.search(r"\b(?:LDP|LIP|SRLIP|notions?|ε)\b", text), path
    shown = re.sub(r"<[^>]+>", "", client.get(f"{survey}/questions").text)
    shown = " ".join(shown.split())
    if one_level:
        assert "2 questions protected together: Strong." in shown
        assert "only a part of the answers is about each" in shown
    else:
        assert shown.count("Protected: the answer itself. Strength: Strong.") == 2
        assert "only a part of the answers" not in shown


CHOICES = "questions: [{id: smokes, type: yes-no, text: {en: Smokes?}}]"
COUNTED = "prior: {secret: income, secrets: [low, high], joint: [[30, 10], [10, 30]], source: x}"


@pytest.mark.parametrize(
    ("levels", "what", "entry", "strength"),
    [
        ("notion: ldp, epsilon: '0.5'", "the answer itself", "", "Very strong"),
        ("notion: ldp, epsilon: '0.51'", "the answer itself", "", "Strong"),
        ("notion: dp, epsilon: '0.5', delta: '0.1'", "the answer itself", "", IN_NUMBERS),
        ("notion: metric-ldp, epsilons: [[inf, inf], ['2', inf]]", "only the answer “Yes”", "sensitive", "Moderate"),
        ("notion: metric-ldp, epsilons: [[inf, '1'], ['2', inf]]", "the answer itself", "", IN_NUMBERS),
        (f"notion: lip, epsilon: '0.5', {COUNTED}",
         "what the answer gives away about “income”", "gives-away", "Strong"),
        (f"notion: alip, epsilon_low: '0.5', epsilon_high: '0.5', {COUNTED}",
         "what the answer gives away about “income”", "gives-away", IN_NUMBERS),
        (f"notions: [{{notion: lip, epsilon: '1'}}, {{notion: ldp, epsilon: '2'}}], {COUNTED}",
         "what the file says, in several ways", "", IN_NUMBERS),
    ],
)  # fmt: skip
def test_a_block_says_what_it_protects(levels: str, what: str, entry: str, strength: str) -> None:
    file = f"{{name: n, title: {{en: N}}, languages: [en], budget: '9', blocks: [{{id: b, {CHOICES}, {levels}}}]}}"
    definition = parse_definition(file.encode())
    (block,) = definition.blocks
    assert isinstance(block, BlockDefinition)
    said: Any = protected_words(block, definition)
    assert (said.what, said.entry, said.strength) == (what, entry, strength)
    assert not said.entry or said.entry in {word.id for word in every_word()}


def test_what_was_saved_says_so_once(office: Office) -> None:
    client = office.client("admin")
    survey = begin(client, title="Saved notes").headers["Location"].removesuffix("/questions")
    asked = ask(client, survey, "Rested?", "No\nYes", place="block")
    about = send(
        client, f"{survey}/text", languages="en", min_reports="50", **{"title-en": "Saved notes"}
    )
    for answer, place in ((asked, 'id="q-rested"'), (about, 'id="about"')):
        assert answer.status_code == 303
        path, _, anchor = answer.headers["Location"].partition("#")
        assert anchor in place
        page = client.get(path).text
        assert page.count("Saved.</p>") == 1
        assert place in page.partition("Saved.</p>")[0].rpartition("<h2>")[0][-400:]
    assert "Saved.</p>" not in client.get(f"{survey}/questions").text
    assert client.get(f"{survey}/questions?saved=nothing").text.count("Saved.</p>") == 0
    assert client.get(f"{survey}/questions?other=1").status_code in (400, 422)
