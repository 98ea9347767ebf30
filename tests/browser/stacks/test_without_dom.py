# SPDX-License-Identifier: Apache-2.0
"""Tests that run in Node: server-side rendering, and survey-core forms."""

from pathlib import Path
from typing import Any

from tests.browser.sdk.test_pages import snippet
from tests.browser.stacks.conftest import EXAMPLES, run


def test_components_render_on_a_server_and_open_nothing_there() -> None:
    rendered = run("render")
    assert rendered["dom"] == "undefined"
    ours, theirs, *off = rendered["shown"]
    for markup in (ours, theirs):
        assert markup.startswith("<frankly-survey ")
        assert 'cap="4"' in markup
        assert 'final-surveys="a b"' in markup
        assert "link" not in markup  # the browser sets the link, after the options
    assert off == ["", "<!---->"]
    assert rendered["states"] == ["opening", "disabled"] * 2


def test_the_react_component_of_the_docs_renders_on_a_server(root: Path) -> None:
    component = EXAMPLES / "node_modules" / ".test-component.mjs"
    component.write_text(snippet(root, "import { createElement"), "utf-8")
    # Rendered bare, as in the docs, the element has its link.
    assert run("documented") == '<frankly-survey link="https://host/s/ID"></frankly-survey>'


def choices(*ids: str, **more: object) -> list[dict[str, object]]:
    return [{"id": one, "label": {"en": one}, **more} for one in ids]


def question(name: str, *ids: str, **more: object) -> dict[str, Any]:
    return {"id": name, "text": {"en": name}, "choices": choices(*ids), **more}


def boxes(of: str, *ids: str) -> list[dict[str, Any]]:
    box = {"of": of, "text": {"en": of}, "label": {"en": "box"}}
    return [question(f"{of}-{one}", "no", "yes", box=box) for one in ids]


AGE = {"id": "age", "text": {"en": "age"}, "choices": [
    {"id": "young", "label": {"en": "18 to 39"}, "from": 18}, {"id": "old", "label": {"en": "40 or more"}, "from": 40},
]}  # fmt: skip
SCORES = [{"id": f"s{n}", "label": {"en": str(n)}, "score": str(n)} for n in range(1, 6)]
SCORED = question("mood") | {"choices": SCORES}
ASKED = ["never", "weekly"]
ROWS = {"type": "matrix", "name": "use", "columns": ["no", "yes"], "rows": ["tea", "wine"]}
# (Type, the question of the form, its value, the signed questions, the answer passed to the client)
TYPES: list[tuple[str, dict[str, Any], Any, list[dict[str, Any]], dict[str, Any]]] = [
    ("radiogroup", {"choices": ASKED}, "weekly", [question("q", *ASKED)], {"q": "weekly"}),
    ("dropdown", {"choices": ASKED}, "never", [question("q", *ASKED)], {"q": "never"}),
    ("buttongroup", {"choices": ASKED}, "never", [question("q", *ASKED)], {"q": "never"}),
    ("imagepicker", {"choices": ASKED}, "never", [question("q", *ASKED)], {"q": "never"}),
    ("boolean", {}, True, [question("q", "no", "yes")], {"q": "yes"}),
    ("boolean", {}, False, [question("q", "no", "yes")], {"q": "no"}),
    ("boolean", {"valueTrue": "ja", "valueFalse": "nein"}, "ja", [question("q", "nein", "ja")], {"q": "ja"}),
    ("boolean", {"valueTrue": "ja", "valueFalse": "nein"}, "nein", [question("q", "nein", "ja")], {"q": "nein"}),
    ("rating", {"rateMax": 5}, 4, [SCORED | {"id": "q"}], {"q": "s4"}),
    ("rating", {"rateMax": 3}, 2, [question("q", "1", "2", "3")], {"q": "2"}),
    ("checkbox", {"choices": ["a", "b", "c"]}, ["a", "c"], boxes("q", "a", "b", "c"), {"q": ["a", "c"]}),
    ("checkbox", {"choices": ["a", "b"]}, None, boxes("q", "a", "b"), {"q": []}),
    ("checkbox", {"choices": ["a", "b"], "showNoneItem": True}, ["none"], boxes("q", "a", "b"), {"q": []}),
    ("tagbox", {"choices": ["a", "b"]}, ["b"], boxes("q", "a", "b"), {"q": ["b"]}),
    ("text", {"inputType": "number"}, 44, [AGE | {"id": "q"}], {"q": 44}),
    ("checkbox", {"choices": ["a", "b"], "valuePropertyName": "k"}, [{"k": "a"}], boxes("q", "a", "b"), {"q": ["a"]}),
    ("radiogroup", {"choices": ASKED, "showNoneItem": True}, "none", [question("q", *ASKED, "none")], {"q": "none"}),
    ("rating", {"rateMax": 3, "rateType": "smileys"}, 2, [question("q", "1", "2", "3")], {"q": "2"}),
    ("boolean", {"renderAs": "radio"}, True, [question("q", "no", "yes")], {"q": "yes"}),
    ("radiogroup", {"choices": ASKED}, None, [question("q", *ASKED)], {}),
    ("radiogroup", {"choices": ASKED, "visible": False}, None,
     [question("q", *ASKED) | {"choices": [*choices(*ASKED), *choices("na", role="not_applicable")]}], {"q": "na"}),
]  # fmt: skip


def test_every_type_of_question_becomes_the_answer_of_the_signed_one() -> None:
    cases = [
        {"elements": [{"type": kind, "name": "q", **more}], "signed": signed}
        | ({"values": {"q": value}} if value is not None else {})
        for kind, more, value, signed, _ in TYPES
    ] + [
        {
            "elements": [ROWS],
            "signed": [question("use-tea", "no", "yes"), question("wine", "no", "yes")],
            "map": {"use.wine": "wine"},
            "values": {"use": {"tea": "yes", "wine": "no"}},
        }
    ]
    results = run("forms", cases)
    expected = [answers for *_, answers in TYPES] + [{"use-tea": "yes", "wine": "no"}]
    assert [result["answers"] for result in results] == expected
    assert [result["faults"] + result["warnings"] for result in results] == [[]] * len(cases)


SKIPPED = {"choices": [*choices("no", "yes"), *choices("na", role="not_applicable")]}
NAMED = {
    "a": True,
    "Is it so?": "Not at all",
    "Uses": {"Red wine": "Every day"},
    "Pets": ["Small dog"],
}


def test_names_and_values_that_are_no_ids_are_mapped() -> None:
    elements = [
        {"type": "radiogroup", "name": "Is it so?", "choices": ["Not at all", "Very"]},
        {"type": "matrix", "name": "Uses", "columns": ["Never", "Every day"], "rows": ["Red wine"]},
        {"type": "checkbox", "name": "Pets", "choices": ["Small dog", "Cat"]},
    ]
    signed = [
        question("so", "no", "yes"),
        question("wine", "never", "daily"),
        *boxes("pets", "dog", "cat"),
    ]
    names = {
        "Is it so?": "so", "Is it so?=Not at all": "no", "Is it so?=Very": "yes", "Uses.Red wine": "wine",
        "Uses=Never": "never", "Uses=Every day": "daily", "Pets": "pets", "Pets=Small dog": "dog", "Pets=Cat": "cat",
    }  # fmt: skip
    [result] = run(
        "forms", [{"elements": elements, "signed": signed, "map": names, "values": NAMED}]
    )
    assert (result["faults"], result["warnings"]) == ([], [])
    assert result["answers"] == {"so": "no", "wine": "daily", "pets": ["dog"]}


def test_the_answer_to_a_question_that_was_hidden_later_is_not_sent() -> None:
    first, second = (
        {"type": "boolean", "name": "a"},
        {"type": "boolean", "name": "q", "visibleIf": "{a} = true"},
    )
    panel = {
        "type": "panel",
        "name": "p",
        "visibleIf": "{a} = true",
        "elements": [{"type": "boolean", "name": "q"}],
    }
    signed = [question("a", "no", "yes"), question("q") | SKIPPED]
    kept = {
        "values": {"q": True, "a": False},
        "signed": signed,
        "more": {"clearInvisibleValues": "none"},
    }
    many = {"type": "checkbox", "name": "q", "choices": ["x", "y"], "visibleIf": "{a} = true"}
    [skipped] = boxes("q", "na")
    ticked = [*boxes("q", "x", "y"), skipped | {"box": skipped["box"] | {"role": "not_applicable"}}]
    rows = [{"value": "r", "visibleIf": "1 = 2"}]
    shown = run("forms", [
        {"elements": [first, second], **kept},
        {"elements": [first, panel], **kept},
        {"elements": [first, panel], "signed": signed, "values": {"a": False}},
        {"elements": [first, many], "signed": [signed[0], *ticked], "values": {"a": False, "q": ["x"]}},
        {"elements": [{"type": "matrix", "name": "q", "columns": ["no", "yes"], "rows": rows}],
         "signed": [question("q-r") | SKIPPED]},
    ])  # fmt: skip
    assert [one["answers"].get("q", one["answers"].get("q-r")) for one in shown] == [
        "na",
        "na",
        "na",
        ["na"],
        "na",
    ]


def test_choices_of_another_question_are_compared_as_well() -> None:
    elements = [
        {"type": "checkbox", "name": "a", "choices": ["x", "y"]},
        {
            "type": "radiogroup",
            "name": "q",
            "choicesFromQuestion": "a",
            "choicesFromQuestionMode": "selected",
        },
    ]
    signed = boxes("a", "x", "y")
    right, wrong = run("forms", [
        {"elements": elements, "signed": [*signed, question("q", "x", "y")], "values": {"a": ["x", "y"], "q": "y"}},
        {"elements": elements, "signed": [*signed, question("q", "x", "z")]},
    ])  # fmt: skip
    assert (right["faults"], right["answers"]["q"]) == ([], "y")
    assert wrong["faults"] == ["q offers y, which is no choice of q"]


YES_NO = question("q", "no", "yes")
FREE = ("comment", "file", "signaturepad", "ranking", "multipletext", "paneldynamic", "expression")
# What a form contains besides the signed question, and the resulting warnings
UNSAFE: list[tuple[list[dict[str, Any]], list[list[str]], list[str]]] = [
    *(([{"type": kind, "name": "w"}], [["w", "type"]], []) for kind in FREE),
    ([{"type": "text", "name": "w"}], [["w", "type"]], []),
    ([{"type": "boolean", "name": "w"}], [["w", "unsigned"]], []),
    ([{"type": "matrix", "name": "w", "columns": ["no"], "rows": []}], [["w", "unsigned"]], []),
    ([{"type": "html", "name": "w", "html": "hello"}], [], []),
]  # fmt: skip
FAULTS: list[tuple[list[dict[str, Any]], str]] = [
    ([], "the form does not ask q"),
    ([{"type": "checkbox", "name": "q", "choices": ["no"]}], "q is answered by one choice, but q by boxes"),
    ([{"type": "text", "inputType": "number", "name": "q"}], "q is answered by one choice, but q by a number"),
    ([{"type": "radiogroup", "name": "q", "choices": ["no", "maybe"]}], "q offers maybe, which is no choice of q"),
    ([{"type": "radiogroup", "name": "q", "choices": ["no", "yes"], "showNoneItem": True}],
     "q offers none, which is no choice of q"),
    ([{"type": "radiogroup", "name": "q", "choices": ["no", "yes"], "showRefuseItem": True}],
     "q offers refused, which is no choice of q"),
    ([{"type": "rating", "name": "q", "rateMax": 2}],
     "q offers 1, which is no choice of q; q offers 2, which is no choice of q"),
]  # fmt: skip


def test_unprotected_fields_are_named() -> None:
    form = [{"type": "boolean", "name": "q"}]
    cases: list[dict[str, Any]] = [
        {"elements": form + extra, "signed": [YES_NO]} for extra, _, _ in UNSAFE
    ]
    cases.append({"elements": form, "signed": [YES_NO], "more": {"surveyPostId": "abc"}})
    other = {"type": "radiogroup", "name": "q", "choices": ["no", "yes"], "showOtherItem": True}
    cases.append({"elements": [other], "signed": [YES_NO]})
    results = run("forms", cases)
    assert [result["warnings"] for result in results] == [
        *(warnings for _, warnings, _ in UNSAFE), [["", "posts"]], [["q", "free_text"]],
    ]  # fmt: skip
    assert {str(result["faults"]) for result in results} == {"[]"}


def test_a_form_that_asks_something_else_is_refused() -> None:
    results = run("forms", [{"elements": elements, "signed": [YES_NO]} for elements, _ in FAULTS])
    assert ["; ".join(result["faults"]) for result in results] == [fault for _, fault in FAULTS]
