# SPDX-License-Identifier: Apache-2.0
"""Pages of a survey with a form, with and without a block, and changes of questions."""

import html
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.live import may_be_without_result

from tests.frankly_protocol.mechanisms.laws import plans_of
from tests.frankly_server.web.admin.office import Office, ask, make_office, send

FORM = (
    "form:\n  questions:\n"
    "    - {id: smoke, text: {en: smoke asked}, choices: [{id: no, label: {en: N}}, {id: yes, label: {en: Y}}]}\n"
    "    - {id: drink, text: {en: drink asked}, choices: [{id: no, label: {en: N}}, {id: yes, label: {en: Y}}]}\n"
    "    - id: mood\n      text: {en: mood asked}\n      wanted: mean\n      scores: [1, 2, 3]\n"
    "      choices: [{id: low, label: {en: L}}, {id: mid, label: {en: M}}, {id: high, label: {en: H}}]\n"
    "  cross_tables: [[smoke, drink]]\n"
)
BLOCK = (
    "blocks:\n  - id: other\n    notion: ldp\n    epsilon: 1\n    questions:\n"
    "    - {id: other, text: {en: other asked}, choices: [{id: no, label: {en: N}}, {id: yes, label: {en: Y}}]}\n"
)
HEAD = "name: {}\ntitle: {{en: A form}}\nlanguages: [en]\nbudget: {}\nmin_reports: 50\n"
SURVEYS = {
    "alone": HEAD.format("alone", 2) + FORM + "  ask: all\n",
    "beside": HEAD.format("beside", 3) + BLOCK + FORM + "  epsilon: 2\n  ask: drawn\n",
}
TABS = (
    "questions",
    "protection",
    "margins",
    "try",
    "publish",
    "",
    "file",
    "embed",
    "answers",
    "estimates",
    "webhook",
    "versions/1",
    "estimates/download?format=csv",
)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    made = make_office(tmp_path_factory.mktemp("forms"))
    for file in SURVEYS.values():
        definition = parse_definition(file.encode())
        made.services.surveys.apply(definition)
        made.services.surveys.publish(definition.name)
    return made


def _id(office: Office, name: str) -> str:
    return next(row.survey_id for row in office.services.surveys.list() if row.name == name)


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("tab", TABS)
def test_every_page_is_shown(office: Office, name: str, tab: str) -> None:
    page = office.client("owner").get(f"/admin/surveys/{_id(office, name)}/{tab}".rstrip("/"))
    assert page.status_code in (200, 302, 303, 409), page.text
    assert "went wrong" not in page.text


def test_pages_describe_the_form(office: Office) -> None:
    owner, path = office.client("owner"), f"/admin/surveys/{_id(office, 'alone')}"
    questions = owner.get(f"{path}/questions").text
    assert "3 questions protected together" in questions
    assert "Wanted: the mean" in questions
    protection = owner.get(f"{path}/protection").text
    assert "The answers themselves: nobody may be sure" in protection
    margins = owner.get(f"{path}/margins").text
    assert "Of two questions, only these joint tables can be estimated: smoke × drink." in margins
    # The margin of a mean is in the unit of its scores.
    assert re.search(r"mood asked <small>mean</small></th>\s*<td[^>]*>±0\.\d+ <small>", margins)
    published = owner.get(f"{path}/publish").text
    assert "Each report is about" in published


def test_publishing_says_how_many_questions_a_person_is_asked(office: Office) -> None:
    """Counted over all plans, from the definition; the block's question is always asked."""
    (document,) = office.services.surveys.versions("beside")
    other, form = document.blocks
    assert (other.asks_drawn, form.asks_drawn) == (False, True)
    assert isinstance(form.mechanism, AgreementMechanism)
    parts = form.mechanism.parts
    asked = {
        plan: 1 + len({question for part in plan.parts for question in parts[part]})
        for plan in plans_of(form.mechanism)
    }
    mean = sum(chance * asked[plan] for plan, chance in plans_of(form.mechanism).items())
    note = f"A person is asked at most {max(asked.values())} of the 4 questions ({float(mean):.1f} on average):"
    page = office.client("owner").get(f"/admin/surveys/{_id(office, 'beside')}/publish").text
    assert note in html.unescape(page)
    alone = office.client("owner").get(f"/admin/surveys/{_id(office, 'alone')}/publish").text
    assert "A person is asked all 3 questions." in alone
    for tab in ("margins", "try"):
        page = office.client("owner").get(f"/admin/surveys/{_id(office, 'alone')}/{tab}").text
        assert "A person is asked all 3 questions." in page


def test_the_estimates_say_whether_people_gave_up_at_a_question(tmp_path: Path) -> None:
    """Without most reports about the first part, as if people had given up there."""
    office, rng = make_office(tmp_path), Random(4)
    one = HEAD.format("one", 1) + FORM.replace("  cross_tables: [[smoke, drink]]\n", "")
    pages = {}
    for name, file in (SURVEYS | {"one": one}).items():
        office.services.surveys.apply(parse_definition(file.encode()))
        office.services.surveys.publish(name)
        survey = _id(office, name)
        (document,) = office.services.surveys.versions(name)
        form = document.blocks[-1].mechanism
        assert isinstance(form, AgreementMechanism)
        reports: list[dict[str, object]] = []
        while len(reports) < 300:
            symbol = form.sample((0, 0, 0), rng.getrandbits)
            if 0 in symbol[1::2] and rng.random() < 0.9:
                continue
            symbols = [*([0] * (len(document.blocks) - 1)), form.symbol_json(symbol)]
            reports.append(
                {"v": 1, "doc": document.digest, "id": f"{len(reports):032x}", "y": symbols}
                | {"strata": {}, "token": None}
            )
        for outcome in office.services.intake.accept_batch(survey, reports):
            assert getattr(outcome, "status", None) == "accepted", outcome
        office.services.releasing.release()
        page = office.client("analyst").get(f"/admin/surveys/{survey}/estimates").text
        pages[name] = re.sub(r"\s+", " ", html.unescape(page))
        assert "Was every question answered as often as it was drawn?" in pages[name]
        assert "in fewer than 5 of 100 surveys (p < 0.001)" in pages[name]
        assert re.search(r'smoke asked</th> <td class="n" data-th="Reports">', pages[name])
        by = office.client("analyst").get(f"/admin/surveys/{survey}/estimates?by=version").text
        assert "as often as it was drawn" not in by
    for name in ("beside", "one"):
        assert "people gave up more often at some questions" in pages[name]
    assert "everybody is asked everything" in pages["alone"]
    # Bounds need reports about one question each.
    bounds = "What the shares can be, whatever those who gave up would have said"
    assert [bounds in pages[name] for name in ("alone", "beside", "one")] == [False, False, True]
    office.services.close()


PEOPLE, LEAST = 70, 50


def test_questions_without_a_result_are_named_before_anybody_answers(tmp_path: Path) -> None:
    """The minimum applies to the reports about a question, and a report is about some questions only."""
    office = make_office(tmp_path)
    text = SURVEYS["alone"] + f"expected_reports: {PEOPLE}\n"
    definition = parse_definition(text.encode())
    office.services.surveys.apply(definition)
    owner, path = office.client("owner"), f"/admin/surveys/{_id(office, 'alone')}"
    draft = owner.get(f"{path}/publish").text
    warnings = office.services.surveys.publish("alone").warnings
    (document,) = office.services.surveys.versions("alone")

    # By the law of the reports, instead of by the design's own chances.
    form, shown = document.blocks[0].mechanism, Counter[int]()
    assert isinstance(form, AgreementMechanism)
    for symbol in form.symbols():
        for _, part, _ in form.drawn(symbol):
            shown[part] += form.probability(symbol, (0, 0, 0))  # type: ignore[assignment]
    texts = ("smoke asked", "drink asked", "mood asked")
    about = {texts[part]: int(PEOPLE * shown[part]) for part in range(3)}
    assert min(about.values()) < LEAST

    (words,) = re.findall(
        r"If 70 people answer, expect none for (.*?): the numbers", " ".join(warnings)
    )
    named = {text: int(number) for text, number in re.findall(r"“([^“]*?)” \((\d+)\)", words)}
    # A joint table of two questions is named too.
    assert {text: n for text, n in named.items() if "×" not in text} == {
        text: n for text, n in about.items() if n < LEAST
    }
    # The summary says the same of the draft and of its version.
    for page in (draft, owner.get(f"{path}/publish").text):
        rows = re.findall(
            r'<th scope="row"[^>]*>([^<]*)</th>\s*<td[^>]*>[^<]*</td>\s*<td[^>]*>([\d,]+)</td>\s*<td[^>]*>([^<]*)<',
            page,
        )
        assert {text: int(n) for text, n, _ in rows if "×" not in text} == about
        assert {text: int(n) for text, n, margin in rows if margin == "no result"} == named
        assert "a result needs 50 answers about its question" in page

    margins = owner.get(f"{path}/margins").text
    for question, expected in about.items():
        (row,) = re.findall(
            rf"<th scope=\"row\">{question}(?: <small>mean</small>)?</th>(.*?)</tr>",
            margins,
            re.DOTALL,
        )
        first, *others = re.findall(
            r"<td[^>]*>(.*?) <small>([\d,]+)&nbsp;about&nbsp;it</small>", row
        )
        assert int(first[1]) == expected
        assert (first[0] == "no result") == (expected < LEAST)
        assert len(others) == 3
        assert not any(result == "no result" for result, _ in others)
    assert "Version 1 promised" not in margins
    office.services.surveys.apply(definition.model_copy(update={"min_reports": 20}))
    assert f"needs {LEAST}, not 20." in owner.get(f"{path}/margins").text


@pytest.mark.parametrize(
    ("people", "file", "words"),
    [
        (49, "alone", "If 49 people answer, there will be none."),
        (49, "block", "If 49 people answer, there will be none."),
        (50, "block", None),
        (50, "alone", "Its margins say which have no result if 50 people answer."),
        (149, "alone", "Its margins say which have no result if 149 people answer."),
        (150, "alone", None),
    ],
)
def test_a_draft_warns_of_questions_without_a_result(
    people: int, file: str, words: str | None
) -> None:
    text = SURVEYS["alone"] if file == "alone" else HEAD.format("block", 2) + BLOCK
    definition = parse_definition(f"{text}expected_reports: {people}\n".encode())
    found = may_be_without_result(definition)
    assert [line[-len(words or "") :] for line in found] == ([words] if words else [])


def test_an_admin_chooses_what_a_person_is_asked(tmp_path: Path) -> None:
    """An unstated choice stays unstated until the other one is chosen; a version keeps it."""
    office = make_office(tmp_path)
    office.services.surveys.apply(
        parse_definition(SURVEYS["alone"].replace("  ask: all\n", "").encode())
    )
    owner, survey = office.client("owner"), _id(office, "alone")
    path = f"/admin/surveys/{survey}/protection"

    def page() -> str:
        return html.unescape(re.sub(r"\s+", " ", owner.get(path).text))

    def ask() -> str | None:
        form = office.services.surveys.draft(survey).form
        return None if form is None else form.ask

    def summary() -> str:
        return re.sub(r"\s+", " ", owner.get(f"/admin/surveys/{survey}/publish").text)

    shown = page()
    assert re.search(r'value="drawn" checked', shown)
    assert "Only those that the person's report is about, picked by chance" in shown
    assert "A person is asked only the questions that the report will be about" in summary()
    for chosen, stored in (("drawn", None), ("all", "all"), ("drawn", "drawn")):
        saved = send(owner, path, epsilon="2", ask=chosen)
        assert saved.status_code in (302, 303), saved.text
        assert ask() == stored
    assert send(owner, path, epsilon="2", ask="some").status_code == 422
    refused = send(owner, path, epsilon="much", ask="all")
    assert refused.status_code == 422
    assert re.search(r'value="all" checked', refused.text)  # what was entered stays
    assert ask() == "drawn"
    send(owner, path, epsilon="2", ask="all")
    assert "A person is asked all questions of the form" in summary()
    office.services.surveys.publish("alone")
    form = office.services.surveys.draft(survey).form
    assert form is not None
    assert form.ask == "all"
    office.services.close()


def test_a_rehearsal_shows_a_report(office: Office) -> None:
    answers = {"q-smoke": "yes", "q-drink": "no", "q-mood": "mid"}
    path = f"/admin/surveys/{_id(office, 'alone')}/try"
    page = send(office.client("owner"), path, what="form", **answers)
    assert page.status_code == 200
    assert "This would be sent, and nothing else" in page.text
    missing = send(office.client("owner"), path, what="form", **{"q-smoke": "yes"})
    assert missing.status_code == 422


def test_a_rehearsal_of_a_form_says_whether_its_item_was_passed(tmp_path: Path) -> None:
    office = make_office(tmp_path)
    office.services.surveys.apply(parse_definition(SURVEYS["alone"].encode()))
    owner, path = office.client("owner"), f"/admin/surveys/{_id(office, 'alone')}"
    item = {"item_text": "Choose B.", "item_choices": "A\nB", "item_answer": "B"}
    assert send(owner, f"{path}/item", **item).status_code == 303
    answers = {"q-smoke": "yes", "q-drink": "no", "q-mood": "mid"}
    for choice, sent in (("a", "failed"), ("b", "passed")):
        page = send(owner, f"{path}/try", what="form", **answers, **{"q-check": choice})
        assert f'"strata":{{"check":"{sent}"}}' in html.unescape(page.text)
    missing = send(owner, f"{path}/try", what="form", **answers)
    assert (missing.status_code, 'data-field="check"' in missing.text) == (422, True)
    office.services.close()


def test_questions_of_a_form_can_be_added_and_removed(tmp_path: Path) -> None:
    office = make_office(tmp_path)
    office.services.surveys.apply(parse_definition(SURVEYS["alone"].encode()))
    owner, path = office.client("owner"), f"/admin/surveys/{_id(office, 'alone')}/questions"
    added = ask(owner, path, "Happy?", "No\nYes", place="form")
    assert added.status_code in (302, 303), added.text
    removed = send(owner, f"{path}/smoke/remove")
    assert removed.status_code in (302, 303), removed.text
    definition = office.services.surveys.draft(_id(office, "alone"))
    assert definition.form is not None
    assert [question.id for question in definition.form.questions] == ["drink", "mood", "happy"]
    assert definition.form.cross_tables == ()
    assert (definition.blocks, definition.budget) == ((), "2")
    unknown = send(owner, f"{path}/smoke/remove")
    assert unknown.status_code == 404
    office.services.close()


def test_a_form_is_created_and_changed_without_a_file(tmp_path: Path) -> None:
    office = make_office(tmp_path)
    owner = office.client("owner")
    begun = {"how": "question", "title": "Mood", "language": "en", "one_level": "yes"}
    made = send(owner, "/admin/surveys/new", question="Happy?", choices="No\nYes", **begun)
    assert made.status_code in (302, 303), made.text
    path = f"/admin/surveys/{_id(office, 'mood')}"
    added = ask(owner, path, "Tired?", "No\nA bit\nVery", place="form", kind="scale")
    assert added.status_code in (302, 303), added.text
    kept = send(owner, f"{path}/protection", epsilon="1.5")
    assert kept.status_code in (302, 303), kept.text
    definition = office.services.surveys.draft(_id(office, "mood"))
    assert definition.form is not None
    assert (definition.blocks, definition.form_epsilon) == ((), "1.5")
    assert [(q.wanted, [c.score for c in q.choices]) for q in definition.form.questions] == [
        ("shares", [None, None]),
        ("mean", ["1", "2", "3"]),
    ]
    refused = send(owner, f"{path}/protection", epsilon="much")
    assert refused.status_code == 422
    assert "epsilon" in refused.text or "number" in refused.text
    assert 'value="much"' in refused.text  # what was entered stays
    office.services.close()


def test_a_question_with_boxes_is_shown_and_removed_with_its_pairs(tmp_path: Path) -> None:
    office = make_office(tmp_path)
    file = HEAD.format("boxes", 2) + (
        "form:\n  cross_tables: [[signs-pain, smoke]]\n  questions:\n"
        "    - {id: smoke, type: yes-no, text: {en: smoke asked}}\n"
        "    - {id: signs, type: multi, text: {en: signs asked}, no_answer: true,\n"
        "       boxes: [{id: pain, label: {en: Pain}}, {id: fear, label: {en: Fear}}]}\n"
    )
    office.services.surveys.apply(parse_definition(file.encode()))
    owner, path = office.client("owner"), f"/admin/surveys/{_id(office, 'boxes')}"
    shown = owner.get(f"{path}/questions").text
    assert "Any number of these can be ticked." in shown
    tried = owner.get(f"{path}/try").text
    assert 'name="q-signs-pain"' in tried
    removed = send(owner, f"{path}/questions/signs/remove")
    assert removed.status_code in (302, 303), removed.text
    definition = office.services.surveys.draft(_id(office, "boxes"))
    assert definition.form is not None
    assert [question.id for question in definition.form.questions] == ["smoke"]
    assert definition.form.cross_tables == ()
    office.services.close()
