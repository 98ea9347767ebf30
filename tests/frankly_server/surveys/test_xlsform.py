# SPDX-License-Identifier: Apache-2.0
"""Import of XLSForms: each construct, refused workbooks, and drafts that always parse."""

import io
import random
import time
from collections.abc import Sequence
from typing import Any

import openpyxl
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.xlsform import Imported, read_xlsform
from frankly_server.surveys.xlsform_questions import LEFT, UNKNOWN

from tests.frankly_server.surveys.workbooks import CHOICES, SURVEY, XLS, form, with_part, workbook

ONE = ("select_one fruit", "q", "Which?", "yes")


def read(*rows: Sequence[Any], **options: Any) -> Imported:
    imported = read_xlsform(form(*rows, **options))
    parse_value(imported.draft)
    return imported


def question(imported: Imported, name: str = "q") -> dict[str, Any]:
    questions: list[dict[str, Any]] = imported.draft["form"]["questions"]
    return next(one for one in questions if one["id"] == name)


def ids(choices: Sequence[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in choices]


def outcomes(imported: Imported) -> dict[str, tuple[str, str]]:
    return {row.name: (row.outcome, row.reason) for row in imported.rows}


def test_one_choice_among_several_is_taken_as_it_is() -> None:
    imported = read(ONE)
    assert question(imported) == {
        "id": "q",
        "text": {"en": "Which?"},
        "choices": [
            {"id": "apple", "label": {"en": "Apple"}},
            {"id": "pear", "label": {"en": "Pear"}},
            {"id": "plum", "label": {"en": "Plum"}},
        ],
    }
    [row] = imported.rows
    assert (row.line, row.name, row.text, row.outcome, row.reason) == (
        2,
        "q",
        "Which?",
        "taken",
        "",
    )
    assert imported.draft["budget"] == "1"
    assert imported.draft["languages"] == ["en"]


@pytest.mark.parametrize("required", ["", "no", "false()", "false"])
def test_an_optional_question_can_be_refused(required: str) -> None:
    choices = question(read(("select_one yn", "q", "Do you?", required)))["choices"]
    assert choices[-1] == {
        "id": "no-answer",
        "label": {"en": "Prefer not to say"},
        "role": "no_answer",
    }


REFUSALS = [
    (("refused", "Refused"), True),
    (("r", "Refuses."), True),
    (("-99", "Prefer not to answer"), True),
    (("3", "Prefer not to say"), True),
    (("c", "I would rather not say (do not read out)"), True),
    (("c", "Refused to answer this question"), True),
    (("c", "Doesn’t want to respond"), True),
    (("c", "Declined to answer"), True),
    (("c", "Préfère ne pas répondre"), True),
    (("c", "Prefiero no contestar"), True),
    (("c", "Keine Angabe"), True),
    (("98", "Don't know"), False),
    (("99", "Ninety-nine"), False),
    (("declined", "Declined by the bank"), False),
    (("declined", "Declined"), False),
    (("9", "I was refused a permit"), False),
    (("refused", "Entry refused at the border"), False),
    (("99", "No answer from the office"), False),
    (("prefer_not_to_say", "…"), False),
]


@pytest.mark.parametrize(("choice", "has_role"), REFUSALS)
def test_a_choice_that_refuses_gets_its_role(choice: tuple[str, str], has_role: bool) -> None:
    listed = (CHOICES[0], ("l", "a", "A"), ("l", "b", "B"), ("l", *choice))
    choices = question(read(("select_one l", "q", "Q?", "yes"), choices=listed))["choices"]
    assert (choices[-1].get("role") == "no_answer") == has_role
    assert len(choices) == 3


def test_an_optional_list_with_a_refusal_gets_no_second_one() -> None:
    listed = (CHOICES[0], ("l", "1", "Agree"), ("l", "2", "No"), ("l", "3", "Prefer not to say"))
    imported = read(("select_one l", "q", "Q?", "no"), choices=listed)
    assert ids(question(imported)["choices"]) == ["1", "2", "3"]
    assert outcomes(imported)["q"] == ("taken", "")


def test_a_refusal_that_may_be_an_answer_is_said() -> None:
    listed = (CHOICES[0], ("l", "a", "Approved"), ("l", "b", "Pending"), ("l", "r", "Refused"))
    imported = read(("select_one l", "q", "What became of your visa?", "yes"), choices=listed)
    assert outcomes(imported)["q"] == (
        "changed",
        "“Refused” counts as “Prefer not to say”: if it is an answer, remove its role",
    )


def test_several_choices_are_boxes() -> None:
    made = question(read(("select_multiple fruit", "q", "Which ones?")))
    assert ids(made["boxes"]) == ["apple", "pear", "plum", "no-answer"]
    assert ids(made["choices"]) == ["no", "yes"]


def test_other_is_a_choice_without_its_text() -> None:
    imported = read(("select_one fruit or_other", "q", "Which?", "yes"))
    assert ids(question(imported)["choices"])[-1] == "other"
    assert outcomes(imported)["q"] == (
        "changed",
        "what people write under “Other” is not taken over",
    )


@pytest.mark.parametrize("listed", [(), (("fruit", "x", "Other"),)])
def test_a_rule_finds_the_other_of_or_other(listed: Sequence[Any]) -> None:
    imported = read(
        ("select_one fruit or_other", "a", "Which?", "yes"),
        ("select_one yn", "q", "Q?", "yes", "${a} = 'other'"),
        choices=(*CHOICES, *listed),
    )
    other = "x" if listed else "other"
    assert question(imported)["ask_if"] == {"question": "a", "choices": [other]}


@pytest.mark.parametrize(
    ("names", "scores"),
    [(("1", "2", "3"), ["1", "2", "3"]), (("-1", "0", "1"), ["-1", "0", "1"]), (("1", "x"), [])],
)
def test_a_likert_question_has_scores(names: Sequence[str], scores: list[str]) -> None:
    listed = (CHOICES[0], *(("l", name, f"L {name}") for name in names))
    imported = read(("select_one l", "q", "Q?", "yes", "", "", "likert"), choices=listed)
    choices = question(imported)["choices"]
    assert [one["score"] for one in choices if "score" in one] == scores


@pytest.mark.parametrize(
    "more", [("98", "Don't know"), ("3", "Don’t know"), ("3", "Not applicable"), ("4", "Four")]
)
def test_a_likert_list_that_is_no_scale_has_no_scores(more: tuple[str, str]) -> None:
    listed = (CHOICES[0], ("l", "1", "Bad"), ("l", "2", "Good"), ("l", *more))
    imported = read(("select_one l", "q", "Q?", "yes", "", "", "likert"), choices=listed)
    assert not any("score" in one for one in question(imported)["choices"])
    outcome, reason = outcomes(imported)["q"]
    assert outcome == "changed"
    assert reason.startswith("its numbers are not used as scores")


def test_a_refusal_has_no_place_on_a_scale() -> None:
    listed = (CHOICES[0], ("l", "1", "Bad"), ("l", "2", "Good"), ("l", "99", "Refused to answer"))
    imported = read(("select_one l", "q", "Q?", "yes", "", "", "likert"), choices=listed)
    assert [one.get("score") for one in question(imported)["choices"]] == ["1", "2", None]
    assert outcomes(imported)["q"] == ("taken", "")


def test_a_short_range_is_a_scale_and_a_long_one_ranges() -> None:
    imported = read(
        ("range", "q", "How?", "yes", "", "", "", "start=0 end=1 step=0.25"),
        ("range", "r", "How?", "yes", "", "", "", "start=0 end=99 step=1"),
    )
    assert [one["score"] for one in question(imported)["choices"]] == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
    ]
    assert [one["from"] for one in question(imported, "r")["choices"]] == [0, 20, 40, 60, 80]


@pytest.mark.parametrize(
    ("constraint", "lows"),
    [
        (". >= 0 and . <= 120", [0, 24, 48, 72, 96]),
        ("(.>=18) and (.<100)", [18, 34, 50, 67, 83]),
        (".<3 and .>0", [1, 2]),
        (". >= -2 and . <= 2", [-2, -1, 0, 1, 2]),
    ],
)
def test_a_number_between_bounds_becomes_ranges(constraint: str, lows: list[int]) -> None:
    imported = read(("integer", "q", "Age?", "yes", "", constraint))
    assert [one["from"] for one in question(imported)["choices"]] == lows
    outcome, reason = outcomes(imported)["q"]
    assert outcome == "changed"
    assert "edit them" in reason


@pytest.mark.parametrize(
    ("row", "lows"),
    [
        (("decimal", ". >= 0 and . <= 10", ""), [0, 2, 4, 6, 8]),
        (("decimal", ". > 0 and . < 10", ""), [0, 2, 4, 6, 8]),
        (("decimal", ". > 0.5 and . < 2.5", ""), [0, 1, 2]),
        (("range", "", "start=0 end=20 step=0.5"), [0, 4, 8, 12, 16]),
    ],
)
def test_fractions_are_lost_and_that_is_said(row: tuple[str, str, str], lows: list[int]) -> None:
    kind, constraint, parameters = row
    imported = read((kind, "q", "How much?", "yes", "", constraint, "", parameters))
    assert [one["from"] for one in question(imported)["choices"]] == lows
    assert "whole numbers only, without fractions" in outcomes(imported)["q"][1]


@pytest.mark.parametrize(
    ("kind", "constraint", "parameters"),
    [
        ("decimal", ". >= 0 and . <= 1", ""),
        ("decimal", ". > 0.5 and . < 2", ""),
        ("range", "", "start=0 end=1 step=0.01"),
    ],
)
def test_a_number_between_close_bounds_is_left(kind: str, constraint: str, parameters: str) -> None:
    imported = read(ONE, (kind, "n", "How much?", "yes", "", constraint, "", parameters))
    assert outcomes(imported)["n"] == (
        "left",
        "its numbers are less than 2 apart, and people enter whole numbers only",
    )


LEFT_ROWS = [
    *((kind, LEFT[kind]) for kind in ("text", "date", "geopoint", "image", "note", "calculate")),
    *((kind, LEFT[kind]) for kind in ("deviceid", "audit", "hidden", "barcode", "acknowledge")),
    ("add text prompt", LEFT["text"]),
    ("start-geopoint", LEFT["start_geopoint"]),
    ("uri:phonenumber", LEFT["phonenumber"]),
    ("dateTime", LEFT["date"]),
    ("rank fruit", LEFT["rank"]),
    ("select_one_from_file a.csv", LEFT["from_file"]),
    ("select_one_external a", LEFT["select_one_external"]),
    ("teleport", UNKNOWN),
    ("integer", LEFT["integer"]),
    ("decimal", LEFT["integer"]),
    ("select_one ${who}", "its choices are earlier answers, which are not known here"),
    ("select_one nowhere", "the sheet choices has no list called nowhere"),
    ("select_one single", "its list has only one choice"),
    (
        "select_one wards",
        "it has more than 64 choices, the most of a question in a form: merge some",
    ),
]
MORE = (*CHOICES, ("single", "a", "A"), *(("wards", f"w{i}", f"Ward {i}") for i in range(65)))


@pytest.mark.parametrize(("kind", "reason"), LEFT_ROWS)
def test_what_cannot_be_protected_is_left_with_the_reason(kind: str, reason: str) -> None:
    imported = read(ONE, (kind, "left", "A label"), choices=MORE)
    assert outcomes(imported)["left"] == ("left", reason)


@pytest.mark.parametrize(
    "constraint", [". >= 0", ". <= 9", ". > 5 or . < 3", ". >= 0 and . <= ${max}", ". = 3"]
)
def test_a_number_without_two_bounds_is_left(constraint: str) -> None:
    imported = read(ONE, ("integer", "n", "How many?", "yes", "", constraint))
    assert outcomes(imported)["n"] == ("left", LEFT["integer"])


def test_a_repeat_is_left_and_a_group_dissolved() -> None:
    imported = read(
        ("begin group", "g", "Group"),
        ONE,
        ("end group", "g"),
        ("begin_repeat", "members", "Members"),
        ("select_one yn", "member", "Is …?"),
        ("end_repeat",),
    )
    assert [row.name for row in imported.rows] == ["g", "q", "members", "member"]
    found = outcomes(imported)
    assert found["g"] == ("changed", "its questions are taken over without its heading")
    assert found["q"] == ("taken", "")
    assert found["members"][0] == found["member"][0] == "left"


A, B = ("select_one yn", "a", "A?", "yes"), ("select_multiple fruit", "b", "B?", "yes")
RULES = [
    ("${a} = 'yes'", "a", ["yes"]),
    ("'yes' = ${a}", "a", ["yes"]),
    ("selected(${a}, 'yes')", "a", ["yes"]),
    ("(${a} = 'yes') or ${a}='no'", "a", ["yes", "no"]),
    ("${a} != 'yes'", "a", ["no"]),
    ("not(selected(${a}, 'yes'))", "a", ["no"]),
    ("selected(${b}, 'pear')", "b-pear", ["yes"]),
    ('not(selected( ${b} , "pear"))', "b-pear", ["no"]),
    ("${a} = 'yes' and ${a} != 'no'", "a", ["yes"]),
    ("(${a} = 'yes' or ${a} = 'no') and ${a} != 'no'", "a", ["yes"]),
    ("selected(${a}, 'yes') or selected(${a}, 'no')", "a", ["yes", "no"]),
]


@pytest.mark.parametrize(("relevant", "item", "choices"), RULES)
def test_a_rule_about_one_question_is_taken(relevant: str, item: str, choices: list[str]) -> None:
    imported = read(A, B, ("select_one fruit", "q", "Q?", "yes", relevant))
    made = question(imported)
    assert made["ask_if"] == {"question": item, "choices": choices}
    assert made["choices"][-1]["role"] == "not_applicable"
    assert outcomes(imported)["q"] == ("taken", "")


LOST = [
    ("${n} > 3", "only rules about the choices of one question can be"),
    ("${n} = 3", "it is about n, which is not taken over"),
    ("${q} = 'x'", "it is about q, which is not taken over"),
    ("${z} = 'yes'", "it is about z, which comes later"),
    ("${a} = 'no' or ${a} = 'yes' and ${a} != 'no'", "it mixes and with or, without brackets"),
    ("${a} != 'no' and ${a} = 'yes' or ${a} = 'no'", "it mixes and with or, without brackets"),
    ("(${a} = 'no' or ${a} = 'yes' and ${a} = 'no')", "it mixes and with or, without brackets"),
    ("not(${a} = 'no' or ${a} = 'yes' and ${a} = 'no')", "it mixes and with or, without"),
    ("${a} = 'no' or (${a} = 'yes' and selected(${b}, 'pear'))", "it joins several conditions"),
    ("${b} = 'pear'", "it compares all that is ticked in b: only selected() can be"),
    ("${b} != 'pear'", "it compares all that is ticked in b: only selected() can be"),
    ("not('pear' = ${b})", "it compares all that is ticked in b: only selected() can be"),
    ("${a} = 'maybe'", "a has no choice maybe"),
    ("${a} = 'yes' or selected(${b}, 'pear')", "it is about several questions or boxes"),
    ("count-selected(${b}) > 1", "only rules about the choices of one question can be"),
    ("not(${a} = 'yes' or ${a} = 'no')", "no choice of the other question is left"),
    ("${a} = 'yes' and ${a} = 'no'", "no answer satisfies it"),
    ("(" * 99 + "1" + ")" * 99, "only rules about the choices of one question can be"),
    ("${a} = 'yes' " * 400, "it is too long"),
    ("not(" * 50 + "1" + ")" * 50, "it is too deeply nested"),
    ("'", "only rules about the choices of one question can be"),
]


@pytest.mark.parametrize(("relevant", "why"), LOST)
def test_another_rule_is_reported(relevant: str, why: str) -> None:
    imported = read(A, B, ("select_one fruit", "q", "Q?", "yes", relevant), (*B[:1], "z", "Z?"))
    made = question(imported)
    assert "ask_if" not in made
    assert made["choices"][-1]["role"] == "not_applicable"
    outcome, reason = outcomes(imported)["q"]
    assert outcome == "changed"
    assert reason.startswith("asked of everybody: the rule is not taken over")
    assert why in reason


def test_the_rule_of_a_group_applies_to_its_questions() -> None:
    imported = read(
        A,
        ("begin group", "g", "", "", "${a} = 'yes'"),
        ("select_one fruit", "q", "Q?", "yes"),
        ("select_one fruit", "r", "R?", "yes", "${q} = 'apple'"),
        ("select_one fruit", "s", "S?", "yes", "${n} > 1"),
        ("end group",),
        ("select_one fruit", "t", "T?", "yes", "${q} = 'apple' and ${a} = 'no'"),
    )
    found = outcomes(imported)
    assert found["g"][0] == "changed"
    rules = {one["id"]: one.get("ask_if") for one in imported.draft["form"]["questions"]}
    assert rules["q"] == {"question": "a", "choices": ["yes"]}
    # Who answers apple was asked, so the group's rule follows.
    assert rules["r"] == {"question": "q", "choices": ["apple"]}
    assert found["r"] == ("taken", "")
    assert rules["s"] == {"question": "a", "choices": ["yes"]}
    assert found["s"][1].startswith("asked of more people")
    assert found["t"][1].startswith("asked of more people")


def test_a_group_whose_rule_is_lost_says_so() -> None:
    imported = read(("begin group", "g", "G", "", "${age} > 18"), ONE, ("end group",))
    assert outcomes(imported)["g"] == (
        "changed",
        "its questions are taken over without its heading and its rule (${age} > 18: only rules"
        " about the choices of one question can be)",
    )
    assert outcomes(imported)["q"][1].startswith("asked of everybody")


NOT_TAKEN = [
    ("choice_filter", "${a} = x", "all choices are offered: the filter is not taken over"),
    ("default", "pear", "no answer is chosen beforehand: its default is not taken over"),
    ("constraint", "count-selected(.) < 3", "its constraint is not taken over"),
    ("parameters", "randomize=true", "its choices keep their order: they are not shuffled"),
    (
        "parameters",
        "seed=1, randomize = TRUE",
        "its choices keep their order: they are not shuffled",
    ),
]


@pytest.mark.parametrize(("column", "cell", "reason"), NOT_TAKEN)
def test_what_a_question_loses_is_said(column: str, cell: str, reason: str) -> None:
    imported = read((*ONE[:3], cell), header=("type", "name", "label", column))
    assert outcomes(imported)["q"] == ("changed", reason)


@pytest.mark.parametrize(
    "row",
    [
        ("range", "q", "Q?", "yes", "", "", "", "start=1 end=5", "3"),
        ("integer", "q", "Q?", "yes", "", ". > 0 and . < 9", "", "", "3"),
    ],
)
def test_a_default_of_a_number_is_said(row: Sequence[str]) -> None:
    reason = outcomes(read(row, header=(*SURVEY, "default")))["q"][1]
    assert reason.endswith("no answer is chosen beforehand: its default is not taken over")


def test_optional_questions_are_counted_in_a_note() -> None:
    imported = read(ONE, ("select_one yn", "r", "R?"), ("select_multiple yn", "s", "S?", "no"))
    [note] = [note for note in imported.notes if "Prefer not to say" in note]
    assert note.startswith("“Prefer not to say” is offered by 2 questions that are not required")
    assert outcomes(imported)["r"] == ("taken", "")
    assert not any("Prefer" in note for note in read(ONE).notes)


def test_rows_without_a_type_or_a_list_are_reported() -> None:
    listed = (*CHOICES, (None, "maybe", "Maybe"), (None, None, None), ("", "", "Never"))
    imported = read(ONE, (None, "lost", "Where is my type?"), (None, "", "A text"), choices=listed)
    reason = "it has no type: merged cells, or a formula without a stored value?"
    assert [(row.outcome, row.reason) for row in imported.rows[1:]] == [("left", reason)] * 2
    assert (
        "2 rows of the sheet choices have no list_name and are not taken over: merged cells?"
        in imported.notes
    )


def test_choices_that_look_the_same_are_merged() -> None:
    listed = (CHOICES[0], ("l", "a", "Same"), ("l", "b", "same "), ("l", "c", "Other one"))
    imported = read(
        ("select_one l", "q", "Q?", "yes"),
        ("select_one l", "r", "R?", "yes", "${q} = 'b'"),
        choices=listed,
    )
    assert ids(question(imported)["choices"]) == ["a", "c"]
    assert question(imported, "r")["ask_if"] == {"question": "q", "choices": ["a"]}


LANGUAGES = [
    (["label::English (en)", "label::Français (fr)"], "", ["en", "fr"]),
    (["label::English", "label::Kiswahili"], "Kiswahili", ["sw", "en"]),
    (["label:Nepali"], "", ["ne"]),
    (["label", "label::Español"], "English", ["en", "es"]),
    (["label", "label::Arabic (ar)"], "", ["ar"]),
    (["label::Klingon", "label::Quenya"], "", ["qaa", "qab"]),
    (["label::pt-BR"], "", ["pt-BR"]),
]


@pytest.mark.parametrize(("columns", "default", "tags"), LANGUAGES)
def test_languages_of_columns(columns: list[str], default: str, tags: list[str]) -> None:
    texts = [f"Text {i}" for i in range(len(columns))]
    data = workbook(
        survey=[["type", "name", *columns], ["select_one l", "q", *texts]],
        choices=[["list_name", "name", *columns], ["l", "a", *texts], ["l", "b", "B"]],
        settings=[["default_language"], [default]],
    )
    assert read_xlsform(data).draft["languages"] == tags


def test_missing_translations_begin_with_the_first_language() -> None:
    data = workbook(
        survey=[
            ["type", "name", "label::English (en)", "label::French (fr)"],
            ["select_one l", "q", "Hello?", "Bonjour ?"],
        ],
        choices=[["list_name", "name", "label::English (en)"], ["l", "a", "A"], ["l", "b", "B"]],
    )
    imported = read_xlsform(data)
    choices = question(imported)["choices"]
    assert question(imported)["text"] == {"en": "Hello?", "fr": "Bonjour ?"}
    assert choices[0]["label"] == {"en": "A", "fr": "A"}
    assert choices[-1]["label"] == {"en": "Prefer not to say", "fr": "Je préfère ne pas répondre"}
    assert any(note.startswith("fr: 2 texts have no translation") for note in imported.notes)


LABELS = [
    ("<b>Bold</b> and <span style='color:red'>red</span>", "Bold and red"),
    (
        "**Bold**, *slanted* and _more_ of snake_case_name",
        "Bold, slanted and more of snake_case_name",
    ),
    ("# Heading\nnext &amp; last", "Heading next & last"),
    ("A [link](https://example.org) here", "A link here"),
    ("2 < 3 and 4 > 3", "2 < 3 and 4 > 3"),
    ("Income <R500 or >R1000?", "Income <R500 or >R1000?"),
    ("Is <b and c> so?", "Is <b and c> so?"),
    ("<p class=a>One</p><p>two<br/>three<BR>four</P><!-- five -->", "One two three four"),
    ("<script>x</script><font color=red size='2'>y</font>", "xy"),
    ("Zero\u200bwidth\u202e and\ttab", "Zerowidth and tab"),
]


@pytest.mark.parametrize(("label", "text"), LABELS)
def test_labels_lose_their_markup(label: str, text: str) -> None:
    assert question(read((ONE[0], "q", label)))["text"] == {"en": text}


def test_a_label_with_another_answer_is_left() -> None:
    found = outcomes(read(ONE, ("select_one yn", "r", "Is ${name} well?")))
    assert found["r"] == (
        "left",
        "its text contains another answer (${…}), which is not known here",
    )


def test_ids_keep_the_names() -> None:
    listed = (CHOICES[0], ("l", "-99", "A"), ("l", "Two Words", "B"), ("l", "under_score", "C"))
    imported = read(
        ("select_one l", "A_Name", "Q?", "yes"),
        ("select_one l", "a_name", "R?", "yes"),
        choices=listed,
    )
    assert ids(imported.draft["form"]["questions"]) == ["a_name", "a-name"]
    assert ids(question(imported, "a_name")["choices"]) == ["m99", "two-words", "under_score"]


def test_ids_of_boxes_do_not_collide_with_questions() -> None:
    imported = read(
        ("select_one yn", "b-pear", "Q?", "yes"), ("select_multiple fruit", "b", "B?", "yes")
    )
    assert ids(imported.draft["form"]["questions"]) == ["b-pear", "b-2"]


def test_title_and_name_come_from_the_settings() -> None:
    data = workbook(
        survey=[SURVEY, ONE],
        choices=CHOICES,
        settings=[["form_title", "form_id"], ["My form", "f_1"]],
    )
    draft = read_xlsform(data).draft
    assert (draft["title"], draft["name"]) == ({"en": "My form"}, "f-1")


def test_a_form_is_full_at_a_hundred_questions_and_boxes() -> None:
    imported = read(*(("select_one yn", f"q{i}", f"Q {i}?", "yes") for i in range(102)))
    assert len(imported.draft["form"]["questions"]) == 100
    assert [row.outcome for row in imported.rows[99:]] == ["taken", "left", "left"]
    assert "the form is full" in imported.rows[-1].reason


def test_the_largest_form_takes_seconds() -> None:
    """Every limit on rows, choices and rules is reached at once."""
    rule = "(" * 9 + " or ".join(["${a} = 'b'"] * 60) + ")" * 9
    rows = [("select_one l", "q" * 90, "Q?", "yes", rule)] * 2400
    groups = [("begin group", "g", "", "", rule), ("end group",)] * 1200
    listed = [CHOICES[0], *(("l", "same name", f"L {i % 70}") for i in range(200))]
    start = time.monotonic()
    with pytest.raises(InvalidInput, match="no question can be taken over"):
        read_xlsform(form(*rows, *groups, choices=listed))
    assert time.monotonic() - start < 20


def test_aliases_of_columns_types_and_sheets() -> None:
    data = workbook(
        Survey=[
            ["Command", "Tag", "Caption", "Bind::Relevant"],
            ["select one from l", "q", "Q?", ""],
        ],
        CHOICES=[["list name", "value", "caption"], ["l", 1, "A"], ["l", 2.0, "B"]],
    )
    assert ids(question(read_xlsform(data))["choices"])[:2] == ["1", "2"]


def test_an_old_workbook_is_read_too() -> None:
    imported = read_xlsform(XLS)
    assert [one["label"] for one in question(imported)["choices"]] == [{"en": "One"}, {"en": "Two"}]
    assert ids(question(imported)["choices"]) == ["1", "2"]
    assert [row.outcome for row in imported.rows] == ["taken", "left"]


def test_comments_and_hints_are_no_rows() -> None:
    header = ("type", "name", "label", "hint::English")
    imported = read((*ONE[:3], "A hint"), ("", "", "", "a comment"), header=header)
    assert len(imported.rows) == 1
    assert "2 hints are not taken over" in imported.notes


REFUSED = {
    "text": (b"type,name\n", "no Excel workbook"),
    "nothing": (b"", "no Excel workbook"),
    "a part of a zip": (form(ONE)[:500], "incomplete or damaged"),
    "no workbook": (workbook(survey=[SURVEY])[:0] + b"PK\x03\x04" + bytes(100), "incomplete"),
    "a broken .xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "cannot be read"),
    "no survey": (workbook(data=[["a"]], more=[["b"]]), "no sheet called survey"),
    "empty survey": (workbook(survey=[SURVEY], choices=CHOICES), "no sheet called survey"),
    "only text": (form(("text", "t", "Name?")), "1 row: free text cannot be protected"),
    "too large": (b"PK\x03\x04" + bytes(2 * 2**20), "larger than 2 MB"),
    "columns": (form(ONE, header=[*SURVEY, *(f"c{i}" for i in range(300))]), "300 columns"),
    "rows": (form(ONE, *[("note", "n", "N")] * 5001), "more than 5,000 rows"),
    "groups": (form(*[("begin group", "g")] * 51), "more than 50 groups"),
    "bomb": (with_part(form(ONE), "xl/styles.xml", " " * (21 * 2**20)), "more than 20 MB"),
    "cells": (with_part(form(ONE), "xl/styles.xml", "<x/>" * 10**6), "far more cells"),
    "entities": (
        with_part(
            form(ONE),
            "xl/worksheets/sheet1.xml",
            '<!DOCTYPE a [<!ENTITY b "c">]><worksheet xmlns="http://schemas.openxmlformats.org/'
            'spreadsheetml/2006/main"><sheetData><row><c t="str"><v>&b;</v></c></row></sheetData></worksheet>',
        ),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_workbook_is_refused_with_a_reason(name: str) -> None:
    data, detail = REFUSED[name]
    with pytest.raises(InvalidInput) as refused:
        read_xlsform(data)
    assert detail in refused.value.detail
    assert (refused.value.code, refused.value.field) == ("definition_invalid", "xlsform")


def test_openpyxl_refuses_entities() -> None:
    assert openpyxl.DEFUSEDXML


def test_a_far_away_cell_costs_nothing() -> None:
    book = openpyxl.load_workbook(io.BytesIO(form(ONE)))
    book["survey"]["XFD1048576"] = None
    book["choices"]["A1048576"] = "far"
    file = io.BytesIO()
    book.save(file)
    assert len(read_xlsform(file.getvalue()).rows) == 1


WORDS = [
    "",
    "A",
    "b",
    "Ä",
    "${x}",
    "<b>x</b>",
    "**",
    "نعم",
    "x" * 4100,
    "\u200b",
    "a_b",
    "-1",
    "99",
]
TYPES = [
    *("select_one l", "select_multiple l", "select_one m or_other", "select_multiple m", "range"),
    *(
        "integer",
        "begin group",
        "end group",
        "begin repeat",
        "end repeat",
        "text",
        "note",
        "rank l",
    ),
]


def _random_form(rng: random.Random) -> bytes:
    columns = rng.sample(
        ["label", "label::English (en)", "label::Xx", "label::fr"], rng.randint(1, 3)
    )
    names = ["a", "b", "c", "a-b", "a-b-c", "q" * 70, "", "Ü"]

    def rule() -> str:
        atom = rng.choice(["${%s} = '%s'", "selected(${%s}, '%s')", "${%s} != '%s'"])
        parts = [
            atom % (rng.choice(names[:4]), rng.choice(WORDS[:4])) for _ in range(rng.randint(1, 3))
        ]
        return rng.choice(["", rng.choice([" and ", " or "]).join(parts)])

    def texts() -> list[str]:
        return [rng.choice(WORDS) for _ in columns]

    survey = [
        [
            rng.choice(TYPES), rng.choice(names), rng.choice(["yes", "no", ""]), rule(),
            rng.choice(["", ". > 0 and . < 9", ".>=0"]), rng.choice(["", "likert"]),
            rng.choice(["", "start=1 end=5 step=1", "start=-1 end=1 step=0.1"]), *texts(),
        ]
        for _ in range(rng.randint(1, 12))
    ]  # fmt: skip
    choices = [
        [rng.choice(["l", "m"]), rng.choice([*WORDS, "no", "yes", "no-answer"]), *texts()]
        for _ in range(rng.randint(1, 12))
    ]
    header = ["type", "name", "required", "relevant", "constraint", "appearance", "parameters"]
    return workbook(
        survey=[[*header, *columns], *survey], choices=[["list_name", "name", *columns], *choices]
    )


@pytest.mark.parametrize("part", range(4))
def test_a_draft_always_parses(part: int) -> None:
    rng = random.Random(f"xlsform {part}")
    taken = 0
    for _ in range(50):
        data = _random_form(rng)
        try:
            imported = read_xlsform(data)
        except InvalidInput as refused:
            assert refused.detail.startswith("no question can be taken over")
            continue
        parse_value(imported.draft)
        taken += len(imported.draft["form"]["questions"])
    assert taken > 20
