# SPDX-License-Identifier: Apache-2.0
"""Edits of one question: its texts, choices and ids, its place, a copy, and translations."""

from copy import deepcopy
from dataclasses import replace
from json import loads
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.editing import Draft, add_item, item_words, new_draft, remove_question
from frankly_server.surveys.question_definition import InstructedDefinition
from frankly_server.surveys.question_edit import (
    ChoiceRow,
    QuestionEdit,
    edit_of,
    question_of,
    repeatable,
)
from frankly_server.surveys.question_editing import (
    copy_question,
    move_question,
    new_id,
    with_question,
)
from frankly_server.surveys.question_types import SINGLE
from frankly_server.surveys.translating import untranslated, with_languages

from tests.frankly_server.surveys.drafts import add_question, rows_of
from tests.refusals import refusal

FORM = b"""
name: habits
title: {en: Habits}
languages: [en]
min_reports: 10
budget: "2"
form:
  cross_tables: [[smokes, sports-ball]]
  questions:
    - id: smokes
      text: {en: "Do you smoke?"}
      choices: [{id: "no", label: {en: "No"}}, {id: some, label: {en: "Some"}}, {id: a-lot, label: {en: "A lot"}}]
      wanted: mean
      scores: ["0", "5", "20"]
      expected: [50, 30, 20]
    - id: quit
      text: {en: "Would you like to quit?"}
      choices: [{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]
      not_applicable: true
      ask_if: {question: smokes, choices: [some, a-lot]}
    - id: sports
      text: {en: "Which sports?"}
      type: multi
      boxes: [{id: ball, label: {en: "Ball games"}}, {id: swim, label: {en: "Swimming"}}]
"""
PRIOR = b"""
name: work
title: {en: Work}
languages: [en]
min_reports: 10
budget: "3"
strata:
  - id: region
    text: {en: "Where do you live?"}
    choices: [{id: north, label: {en: North}}, {id: south, label: {en: South}}]
blocks:
  - id: tired
    notion: lip
    epsilon: "1"
    ceiling_cap: "2.9957"
    prior:
      secret: income
      secrets: [low, high]
      source: made up
      strata:
        - when: {region: north}
          joint: [[120, 130], [140, 160]]
        - when: {region: south}
          joint: [[100, 130], [140, 170]]
    questions:
      - id: tired
        text: {en: "Tired?"}
        choices: [{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]
"""


def draft_of(file: bytes) -> Draft:
    return dict(loads(parse_definition(file).to_json()))


def changed(
    draft: Draft, question_id: str, rows: list[ChoiceRow], *, name: str = "", reset: bool = False
) -> Draft:
    edit = replace(edit_of(draft, question_id), rows=tuple(rows))
    return with_question(draft, replace(edit, id=name or question_id), question_id, reset=reset)


@pytest.mark.parametrize(
    ("file", "question"), [(FORM, "smokes"), (FORM, "sports"), (PRIOR, "tired"), (PRIOR, "region")]
)
def test_keeping_a_question_as_it_is_changes_nothing(file: bytes, question: str) -> None:
    draft = draft_of(file)
    assert parse_value(changed(draft, question, rows_of(draft, question))) == parse_value(draft)


def test_a_new_id_is_used_wherever_the_question_is_named() -> None:
    draft = draft_of(FORM)
    first, second, third = rows_of(draft, "smokes")
    rows = [first, replace(second, id="few"), third]
    edited = changed(draft, "smokes", rows, name="tobacco")
    boxes = rows_of(draft, "sports")
    edited = changed(
        edited, "sports", [ChoiceRow("ball", "team", boxes[0].labels), boxes[1]], name="sport"
    )
    form = parse_value(edited).form
    assert form is not None
    rule = form.questions[1].ask_if
    assert rule is not None
    assert (rule.question, rule.choices) == ("tobacco", ("few", "a-lot"))
    assert form.cross_tables == (("tobacco", "sport-team"),)


def test_a_renamed_box_is_followed_by_the_rules_about_it() -> None:
    draft = draft_of(FORM)
    quit_edit = edit_of(draft, "quit")
    moved = move_question(draft, "quit", 1)
    edit = replace(quit_edit, after="sports-ball", after_choices=("sports-ball/yes",))
    draft = with_question(moved, edit, "quit")
    boxes = rows_of(draft, "sports")
    edited = changed(draft, "sports", [replace(boxes[0], id="team"), boxes[1]], name="sport")
    form = parse_value(edited).form
    assert form is not None
    rule = form.questions[2].ask_if
    assert rule is not None
    assert (rule.question, rule.choices) == ("sport-team", ("yes",))


def numbered() -> Draft:
    """A draft whose boxes have numbers, as after an import, and a question with a name like a box's."""
    boxes = [{"id": str(i), "label": {"en": f"Box {i}"}} for i in (1, 2)]
    questions: list[Any] = [{"id": "q", "type": "multi", "text": {"en": "Q?"}, "boxes": boxes}]
    questions += [
        {"id": name, "type": "yes-no", "text": {"en": name}} for name in ("work", "work-2", "home")
    ]
    file: Any = {"name": "n", "title": {"en": "N"}, "languages": ["en"], "budget": "1"}
    file |= {"form": {"questions": questions, "cross_tables": [["work-2", "home"]]}}
    return dict(loads(parse_value(file).to_json()))


def test_new_ids_are_not_those_of_boxes() -> None:
    draft = numbered()
    assert [one.id for one in form_of(copy_question(draft, "q"))][:2] == ["q", "q-3"]
    assert new_id(draft, "Q 1") == "q-1-2"
    edit = replace(edit_of(draft, "home"), id="q-1")
    error = refusal(InvalidInput, with_question, draft, edit, "home")
    assert error.field == "id"


def form_of(draft: Draft) -> Any:
    form = parse_value(draft).form
    assert form is not None
    return form.questions


def test_a_removed_question_takes_its_joint_tables_along() -> None:
    draft = remove_question(numbered(), "work-2")
    assert [one.id for one in form_of(draft)] == ["q", "work", "home"]
    assert draft["form"]["cross_tables"] == []
    assert remove_question(numbered(), "work")["form"]["cross_tables"] == [["work-2", "home"]]


def test_a_choice_with_a_role_is_removed_by_its_tick_alone() -> None:
    draft = draft_of(FORM)
    *answers, role = rows_of(draft, "quit")
    for row, roles, said in (
        (replace(role, labels={"en": ""}), {"not_applicable"}, "untick"),
        (replace(role, labels={"en": "Typed"}), set(), "tick that below"),
    ):
        edit = replace(edit_of(draft, "quit"), rows=(*answers, row), roles=frozenset(roles))
        edit = replace(edit, after="", after_choices=())
        error = refusal(InvalidInput, with_question, draft, edit, "quit")
        assert (error.field, said in error.detail) == ("label-en[2]", True)
    edit = replace(edit_of(draft, "quit"), roles=frozenset(), after="", after_choices=())
    assert len(question_of(with_question(draft, edit, "quit"), "quit")["choices"]) == 2


def test_new_ids_in_blocks_reach_the_counts() -> None:
    draft = draft_of(PRIOR)
    north, south = rows_of(draft, "region")
    rows = [ChoiceRow("north", "up", north.labels), south]
    edited = changed(draft, "region", rows, name="area")
    edited = changed(edited, "tired", rows_of(draft, "tired"), name="weary")
    definition = parse_value(edited)
    block = definition.blocks[0]
    assert block.id == "weary"
    assert block.prior is not None
    assert [dict(stratum.when) for stratum in block.prior.strata] == [
        {"area": "up"},
        {"area": "south"},
    ]


def test_lists_of_a_form_question_follow_its_choices() -> None:
    """A removed, a moved and a new choice: scores and expected counts stay with their choices."""
    draft = draft_of(FORM)
    first, _, third = rows_of(draft, "smokes")
    new = ChoiceRow("", "", {"en": "Very much"}, "40", expected="1")
    edited = changed(draft, "smokes", [third, first, new])
    question = question_of(edited, "smokes")
    assert [choice["id"] for choice in question["choices"]] == ["a-lot", "no", "very-much"]
    assert [choice["score"] for choice in question["choices"]] == ["20", "0", "40"]
    assert question["expected"] == ["20", "50", "1"]


@pytest.mark.parametrize("place", [0, 3])
def test_a_choice_of_a_wanted_mean_needs_its_score(place: int) -> None:
    """A blanked score, and a new choice without one: 0 would be a number that nobody has chosen."""
    draft = draft_of(FORM)
    rows = [*rows_of(draft, "smokes"), ChoiceRow("", "", {"en": "Very much"}, "40", "", "7")]
    rows[place] = replace(rows[place], number="")
    error = refusal(InvalidInput, changed, draft, "smokes", rows)
    assert (error.code, error.field) == ("definition_invalid", f"number[{place}]")


def test_counts_for_each_choice_are_never_given_to_other_choices() -> None:
    draft = draft_of(PRIOR)
    no, yes = rows_of(draft, "tired")
    for rows in ([no, yes, ChoiceRow("", "", {"en": "Sometimes"})], [yes, no]):
        error = refusal(InvalidInput, changed, draft, "tired", rows)
        assert (error.problem, error.field) == (Problem.DEFINITION_INVALID, "reset")
        definition = parse_value(changed(draft, "tired", rows, reset=True))
        assert (definition.blocks[0].notion, definition.blocks[0].prior) == ("ldp", None)
        assert len(definition.blocks[0].questions[0].choices) == len(rows)
    # Other words, and other ids, keep the protection.
    renamed = parse_value(changed(draft, "tired", [ChoiceRow("no", "never", {"en": "Never"}), yes]))
    assert renamed.blocks[0].prior == parse_value(draft).blocks[0].prior


def test_a_row_without_texts_is_removed_and_a_question_keeps_two_choices() -> None:
    draft = draft_of(FORM)
    no, yes, _ = rows_of(draft, "smokes")
    assert len(question_of(changed(draft, "smokes", [no, yes]), "smokes")["choices"]) == 2
    with pytest.raises(InvalidInput) as refused:
        parse_value(changed(draft, "smokes", [no, ChoiceRow("some", "some", {"en": ""})]))
    assert refused.value.problem is Problem.CHOICES_COUNT


def ids(definition: SurveyDefinition) -> list[str]:
    return [question.id for question in definition.questions]


def three() -> Draft:
    draft = new_draft("Habits", "habits", "en", "A?", ["No", "Yes"])
    draft = add_question(draft, "B?", ["No", "Yes"])
    return add_question(draft, "C?", ["No", "Yes"], public=True)


def test_questions_move_within_their_list() -> None:
    draft = three()
    assert ids(parse_value(move_question(draft, "b", -1))) == ["b", "a", "c"]
    assert ids(parse_value(move_question(draft, "a", 1))) == ["b", "a", "c"]
    for question, steps in (("a", -1), ("b", 1), ("c", 1), ("c", -1), ("a", 0)):
        assert move_question(draft, question, steps) == draft


def test_a_question_does_not_move_before_the_one_that_its_rule_names() -> None:
    error = refusal(InvalidInput, parse_value, move_question(draft_of(FORM), "quit", -1))
    assert error.problem is Problem.DEFINITION_INVALID


def test_a_copy_has_an_id_of_its_own_and_costs_its_own_level() -> None:
    draft = three()
    definition = parse_value(copy_question(draft, "a"))
    assert ids(definition) == ["a", "a-2", "b", "c"]
    assert float(definition.budget) == 3
    assert definition.blocks[0].questions[0].choices == definition.blocks[1].questions[0].choices
    assert ids(parse_value(copy_question(draft, "c"))) == ["a", "b", "c", "c-2"]
    assert ids(parse_value(copy_question(draft_of(FORM), "quit")))[:3] == [
        "smokes",
        "quit",
        "quit-2",
    ]


@pytest.mark.parametrize(
    "edit",
    [
        lambda draft: move_question(draft, "x", 1),
        lambda draft: copy_question(draft, "x"),
        lambda draft: with_question(draft, edit_of(draft, "a"), "x"),
    ],
)
def test_an_unknown_question_is_refused(edit: Any) -> None:
    assert refusal(InvalidInput, edit, three()).problem is Problem.NOT_FOUND


def test_a_new_language_begins_with_the_texts_of_the_first() -> None:
    draft = with_languages(three() | {"consent": {"en": "Please."}}, ["en", "fr"])
    definition = parse_value(draft)
    assert definition.title == {"en": "Habits", "fr": "Habits"}
    assert untranslated(draft) == {
        "fr": 5
    }  # title, consent, 3 questions; No and Yes have words in French
    rows = [
        ChoiceRow("no", "no", {"en": "No", "fr": "Non"}),
        ChoiceRow("yes", "yes", {"en": "Yes", "fr": "Oui"}),
    ]
    edit = replace(edit_of(draft, "a"), text={"en": "A?", "fr": "À ?"}, rows=tuple(rows))
    draft = with_question(draft, edit, "a")
    assert untranslated(draft) == {"fr": 4}
    assert parse_value(with_languages(draft, ["fr"])).questions[0].text == {"fr": "À ?"}


def test_a_tag_for_private_use_is_renamed_with_its_texts() -> None:
    draft = with_languages(three(), ["en", "qaa"])
    draft["title"]["qaa"] = "Empisa"
    assert with_languages(draft, ["en", "lg"])["title"] == {"en": "Habits", "lg": "Empisa"}
    # Any other language that takes a place is a new one.
    other = with_languages(with_languages(draft, ["en", "lg"]), ["en", "fr"])
    assert other["title"] == {"en": "Habits", "fr": "Habits"}
    assert with_languages(draft, ["en", "lg", "fr"])["title"]["lg"] == "Habits"


def with_item() -> Draft:
    return add_item(three(), item_words("en"))


def item_of(draft: Draft) -> InstructedDefinition:
    item = parse_value(draft).instructed
    assert item is not None
    return item


def with_known(place: str = "form") -> Draft:
    """A draft with a question of which shares are known: of three choices, in the form or in a block."""
    draft = draft_of(FORM)
    labels = {"No": "5", "Once": "0", "Often": "7"}
    rows = tuple(ChoiceRow("", "", {"en": label}, known=n) for label, n in labels.items())
    new = QuestionEdit("moved", {"en": "Moved?"}, SINGLE, place, rows, known_source="Registry")
    return dict(loads(parse_value(with_question(draft, new)).to_json()))


def test_known_shares_follow_their_choices() -> None:
    """A removed, a moved and a new choice, and other names: each count stays with its choice."""
    draft = with_known()
    assert edit_of(draft, "moved").known_source == "Registry"
    no, once, often = rows_of(draft, "moved")
    new = ChoiceRow("", "", {"en": "Now"}, known="2")
    edited = changed(draft, "moved", [often, replace(no, id="never"), new])
    question = question_of(edited, "moved")
    assert [choice["id"] for choice in question["choices"]] == ["often", "never", "now"]
    assert question["anchor"] == {"counts": ["7", "5", "2"], "source": "Registry"}
    error = refusal(
        InvalidInput, changed, draft, "moved", [no, once, often, replace(new, known="")]
    )
    assert (error.field, error.detail.startswith("write a number for each choice")) == (
        "known[3]",
        True,
    )


@pytest.mark.parametrize("source", ["Registry", ""])
def test_clearing_the_known_counts_removes_them(source: str) -> None:
    """The source may stay as it was, but another one would count for nothing."""
    draft = with_known()
    edit = edit_of(draft, "moved")
    empty = replace(edit, rows=tuple(replace(row, known="") for row in edit.rows))
    edited = with_question(draft, replace(empty, known_source=source), "moved")
    assert "anchor" not in question_of(edited, "moved")
    other = replace(empty, known_source="Another")
    assert refusal(InvalidInput, with_question, draft, other, "moved").field == "known_source"


@pytest.mark.parametrize("place", ["form", "block", "public"])
def test_known_shares_go_along_to_a_place_that_can_have_them(place: str) -> None:
    draft = with_known("block" if place == "form" else "form")
    moved = with_question(draft, replace(edit_of(draft, "moved"), place=place), "moved")
    assert ("anchor" in question_of(moved, "moved")) is (place != "public")
    parse_value(moved)


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"roles": frozenset({"no_answer"})}, "no_answer"),
        ({"after": "smokes", "after_choices": ("smokes/some",)}, "after"),
        ({"known_source": ""}, "known_source"),
    ],
    ids=str,
)
def test_what_contradicts_known_shares_is_refused_at_its_field(
    changes: dict[str, Any], at: str
) -> None:
    draft = with_known()
    edit = replace(edit_of(draft, "moved"), **changes)
    assert refusal(InvalidInput, with_question, draft, edit, "moved").field == at


def test_known_shares_that_the_draft_contradicts_are_refused_at_the_numbers() -> None:
    """Of a question with a rule, and without it of one with “does not apply”."""
    draft = draft_of(FORM)
    first, *others = rows_of(draft, "quit")
    edit = replace(
        edit_of(draft, "quit"), rows=(replace(first, known="1"), *others), known_source="A"
    )
    for one in (edit, replace(edit, after="", after_choices=())):
        assert refusal(InvalidInput, with_question, draft, one, "quit").field == "known[0]"


def test_nothing_is_known_of_a_copy() -> None:
    """It becomes another question."""
    for place in ("form", "block"):
        copied = copy_question(with_known(place), "moved")
        assert "anchor" in question_of(copied, "moved")
        assert "anchor" not in question_of(copied, "moved-2")
        parse_value(copied)


def with_repeated() -> Draft:
    """A draft whose form asks “smokes” again, at its end."""
    copied = copy_question(draft_of(FORM), "smokes")
    while copied["form"]["questions"][-1]["id"] != "smokes-2":
        copied = move_question(copied, "smokes-2", 1)
    # The copy has the mean and the expected counts of the first one, and loses them.
    edit = replace(edit_of(copied, "smokes-2"), repeats="smokes")
    edited = with_question(copied, edit, "smokes-2")
    assert not {"expected", "contrast"} & set(question_of(edited, "smokes-2"))
    return dict(loads(parse_value(edited).to_json()))


def test_a_copy_asks_its_question_again() -> None:
    draft = with_repeated()
    assert question_of(draft, "smokes-2")["anchor"] == {"repeats": "smokes"}
    edit = edit_of(draft, "smokes-2")
    assert edit.repeats == "smokes"
    assert parse_value(with_question(draft, edit, "smokes-2")) == parse_value(draft)
    edited = with_question(draft, replace(edit, repeats=""), "smokes-2")
    assert "anchor" not in question_of(edited, "smokes-2")
    parse_value(edited)


def test_only_earlier_questions_with_its_choices_can_be_asked_again() -> None:
    draft = with_repeated()
    assert [one["id"] for one in repeatable(draft, "smokes-2")] == ["smokes"]
    for name in ("smokes", "quit", None):
        assert repeatable(draft, name) == []


def test_a_question_that_is_asked_again_may_get_another_name() -> None:
    draft = with_repeated()
    renamed = with_question(draft, replace(edit_of(draft, "smokes"), id="habit"), "smokes")
    assert question_of(renamed, "smokes-2")["anchor"] == {"repeats": "habit"}
    parse_value(renamed)


@pytest.mark.parametrize(
    ("name", "copied_as"), [("smokes", "smokes-3"), ("smokes-2", "smokes-2-2")]
)
def test_a_copy_of_either_asks_nothing_again(name: str, copied_as: str) -> None:
    copied = copy_question(with_repeated(), name)
    assert "anchor" not in question_of(copied, copied_as)
    parse_value(copied)


def test_a_question_that_is_asked_again_is_not_lost() -> None:
    """Without it, after the second one or with other choices the draft is refused, and says what to change."""
    draft = with_repeated()
    edit = edit_of(draft, "smokes")
    first, *others = edit.rows
    moved = draft
    for _ in draft["form"]["questions"]:
        moved = move_question(moved, "smokes", 1)
    for edited in (
        without_rule(remove_question(draft, "smokes")),
        without_rule(moved),
        with_question(draft, replace(edit, rows=(replace(first, id="other"), *others)), "smokes"),
        with_question(without_rule(draft), replace(edit, place="block"), "smokes"),
    ):
        error = refusal(InvalidInput, parse_value, edited)
        assert (error.field or "").endswith("anchor.repeats")
        assert error.detail.startswith("smokes-2 is said to ask smokes again")
    parse_value(remove_question(draft, "smokes-2"))


def without_rule(draft: Draft) -> Draft:
    """Return the draft without rules, which would be refused first."""
    edited = deepcopy(draft)
    for question in edited["form"]["questions"]:
        question.pop("ask_if", None)
    edited["form"]["cross_tables"] = []
    return edited


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"known_source": "Registry"}, "known_source"),
        ({"after": "quit", "after_choices": ("quit/yes",)}, "after"),
        ({"wanted": "mean"}, "wanted"),
        ({"place": "block", "repeats": "quit"}, "repeats"),
    ],
    ids=str,
)
def test_what_contradicts_asking_again_is_refused_at_its_field(
    changes: dict[str, Any], at: str
) -> None:
    draft = with_repeated()
    edit = replace(edit_of(draft, "smokes-2"), **changes)
    assert refusal(InvalidInput, with_question, draft, edit, "smokes-2").field == at


def test_numbers_that_contradict_asking_again_are_refused() -> None:
    draft = with_repeated()
    edit = edit_of(draft, "smokes-2")
    for rows, at in (
        (tuple(replace(row, known="1") for row in edit.rows), "known[0]"),
        (tuple(replace(row, expected="1") for row in edit.rows), "expected[0]"),
    ):
        changed_rows = replace(edit, rows=rows)
        assert refusal(InvalidInput, with_question, draft, changed_rows, "smokes-2").field == at


@pytest.mark.parametrize("place", ["block", "public"])
def test_a_question_that_leaves_the_form_asks_nothing_again(place: str) -> None:
    draft = with_repeated()
    plain = replace(edit_of(draft, "smokes-2"), place=place, type=SINGLE)
    moved = with_question(draft, replace(plain, rows=without_scores(plain.rows)), "smokes-2")
    assert "anchor" not in question_of(moved, "smokes-2")
    parse_value(moved)


def without_scores(rows: tuple[ChoiceRow, ...]) -> tuple[ChoiceRow, ...]:
    return tuple(replace(row, number="") for row in rows)


def test_an_item_that_is_kept_as_it_is_does_not_change() -> None:
    draft = with_item()
    assert changed(draft, "check", asked_rows(draft, 2)) == draft
    assert untranslated(with_languages(draft, ["en", "fr"]))["fr"] == 9


def asked_rows(draft: Draft, asked: int | None) -> list[ChoiceRow]:
    """Return the rows that change nothing of the item, with this one as asked for."""
    return [replace(row, asked_for=i == asked) for i, row in enumerate(rows_of(draft, "check"))]


def test_a_new_id_of_the_choice_that_an_item_asks_for_is_its_answer() -> None:
    draft = with_item()
    rows = asked_rows(draft, 2)
    rows[2] = replace(rows[2], id="now-and-then")
    item = item_of(changed(draft, "check", rows, name="reads"))
    assert (item.id, item.answer) == ("reads", "now-and-then")
    # Another choice, a new one, or the same in another place can be asked for.
    assert item_of(changed(draft, "check", asked_rows(draft, 0))).answer == "never"
    new = ChoiceRow("", "", {"en": "Always"}, asked_for=True)
    assert item_of(changed(draft, "check", [*asked_rows(draft, None), new])).answer == "always"
    moved = item_of(changed(draft, "check", asked_rows(draft, 2)[::-1]))
    assert (moved.answer, moved.choices[1].id) == ("sometimes", "sometimes")


@pytest.mark.parametrize("asked", [2, None])
def test_the_choice_that_an_item_asks_for_is_not_removed(asked: int | None) -> None:
    draft = with_item()
    rows = asked_rows(draft, asked)
    rows[2] = replace(rows[2], labels={"en": ""})
    error = refusal(InvalidInput, changed, draft, "check", rows)
    assert (error.problem, error.field) == (Problem.DEFINITION_INVALID, "answer")
    assert "mark another one" in error.detail
    others = [replace(row, asked_for=i == 1) for i, row in enumerate(rows)]
    item = item_of(changed(draft, "check", others))
    assert ([choice.id for choice in item.choices], item.answer) == (
        ["never", "rarely", "often"],
        "rarely",
    )


def test_an_item_has_no_place_and_no_copy() -> None:
    for edit in (
        lambda: move_question(with_item(), "check", 1),
        lambda: copy_question(with_item(), "check"),
    ):
        assert refusal(InvalidInput, edit).problem is Problem.NOT_FOUND
    copied = copy_question(add_question(with_item(), "Check", ["No", "Yes"]), "check-2")
    assert ids(parse_value(copied)) == ["a", "b", "check-2", "check-2-2", "c", "check"]
