# SPDX-License-Identifier: Apache-2.0
"""Forms of survey-core, protected and completed in Node: locales, and questions that cannot be protected."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frankly_protocol import explanation
from frankly_protocol.asking import Asking
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.languages import EXPLAINED
from frankly_protocol.mechanisms.agreement import Plan

from tests.browser.sdk.site import Site, hosted
from tests.browser.stacks.conftest import run

TEXTS = Path(explanation.__file__).parent / "texts"
SMOKES: dict[str, Any] = {"type": "boolean", "name": "smokes"}
SIGNED: list[dict[str, Any]] = [
    {"type": "dropdown", "name": "region", "choices": ["north", "south"]},
    SMOKES,
    {"type": "radiogroup", "name": "drinks", "choices": ["never", "weekly", "daily"]},
]
VALUES = {"region": "south", "smokes": True, "drinks": "never"}


def case(site: Site, *more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a case for the program: the signed questions, and more of them."""
    form = {"elements": [*SIGNED, *more]}
    return {"form": form, "link": site.link, "values": VALUES} | changes


def texts_of(language: str) -> Any:
    return json.loads((TEXTS / f"{language}.json").read_text("utf-8"))


def test_the_notes_and_the_explanation_follow_the_form_s_locale(site: Site) -> None:
    locales = [*EXPLAINED[::-1], "pt-br", "", "tlh", "en"]
    [result] = run("protected", [case(site, locales=locales)])
    for locale in locales:
        # SurveyJS has an empty locale for its default, English; Klingon is not one of the survey's.
        language = {"": "en", "tlh": EXPLAINED[0]}.get(locale, locale.split("-")[0])
        shown, texts = result["shown"]["" if locale == "en" else locale], texts_of(language)
        element, explanation = texts["element"], texts["explanation"]
        assert shown["title"] == shown["named"] == element["details"]
        assert shown["description"] == element["final"]
        assert shown["notes"]["region"] == element["public"]
        assert shown["notes"]["smokes"] == ""
        assert explanation["limits"] in shown["said"]
        assert explanation["made_here"] in shown["said"]
        assert (f"Health and habits ({language})" in shown["said"]) == (
            language not in ("ar", "en")
        )
    assert result["status"] == "sent"


def test_an_app_s_own_strings_stay_in_every_locale(site: Site) -> None:
    own = {"details": "Ours", "open": "Plain", "final": "No way back"}
    [result] = run("protected", [case(site, options={"strings": own}, locales=["de", "fr"])])
    for shown in result["shown"].values():
        assert (shown["title"], shown["description"]) == ("Ours", "No way back")
        assert shown["notes"]["region"] == "Plain"


# name, a question that cannot be protected, its value, what is in the data besides at the end
KEPT: list[tuple[str, dict[str, Any], Any, dict[str, Any]]] = [
    ("free text", {"type": "comment", "name": "w"}, "free", {"w": "free"}),
    ("unsigned", {"type": "boolean", "name": "w"}, True, {"w": True}),
    ("unanswered", {"type": "text", "name": "w"}, None, {}),
    ("another name of its value", {"type": "text", "name": "w", "valueName": "v"}, "free", {"v": "free"}),
    ("other", {"type": "radiogroup", "name": "w", "choices": [1], "showOtherItem": True}, "other",
     {"w": "other", "w-Comment": "mine"}),
    ("ranking", {"type": "ranking", "name": "w", "choices": [1, 2]}, [2, 1], {"w": [2, 1]}),
    ("a fixed condition", {"type": "text", "name": "w", "visibleIf": "1 = 1"}, "free", {"w": "free"}),
]  # fmt: skip
# what a question contains that would let its answer reveal one that is randomised
DERIVED: list[dict[str, Any]] = [
    {"visibleIf": "{smokes} = true"},
    {"enableIf": "{SMOKES} = true"},
    {"requiredIf": "{region} = 'south' and {smokes} = true"},
    {"defaultValueExpression": "{smokes}"},
    {"setValueExpression": "displayValue('drinks')"},
    {"validators": [{"type": "expression", "expression": "{drinks} = 'never'"}]},
    {"visibleIf": "{calculated} = 1"},
]


def test_kept_questions_keep_their_answers_and_no_other(site: Site) -> None:
    cases = []
    for _, question, value, data in KEPT:
        name = question.get("valueName", "w")
        values = VALUES | data | ({} if value is None else {name: value})
        cases.append(case(site, question, options={"unprotected": "keep"}, values=values))
        cases.append(case(site, question, values=values))  # hidden, as by default
    results = run("protected", cases)
    for (name, *_, data), kept, hidden in zip(KEPT, results[::2], results[1::2], strict=True):
        assert (kept["seen"], kept["status"]) == (data, "sent"), name
        assert "w" in kept["visible"], name
        assert kept["shown"][""]["notes"]["w"] == texts_of("en")["element"]["public"], name
        assert (hidden["seen"], hidden["status"]) == ({}, "sent"), name
        assert "w" not in hidden["visible"], name


def test_what_would_reveal_a_randomised_answer_is_not_kept(site: Site) -> None:
    keep: dict[str, Any] = {"unprotected": "keep"}
    cases = [
        case(site, {"type": "text", "name": "w"} | more, options=keep, values=VALUES | {"w": "x"})
        for more in DERIVED
    ]
    in_panel = {
        "type": "panel",
        "name": "p",
        "visibleIf": "{smokes} = true",
        "elements": [{"type": "text", "name": "w"}],
    }
    chained = [
        {"type": "text", "name": "first", "visibleIf": "{smokes} = true"},
        {"type": "text", "name": "w", "visibleIf": "{first} notempty"},
    ]
    cases.append(case(site, in_panel, options=keep, values=VALUES | {"w": "x"}))
    cases.append(case(site, *chained, options=keep, values=VALUES | {"first": "y", "w": "x"}))
    cases.append(case(site, {"type": "text", "name": "w"}, options=keep))
    for one in cases:
        one["form"]["calculatedValues"] = [
            {
                "name": "calculated",
                "expression": "iif({smokes} = true, 1, 0)",
                "includeIntoResult": True,
            }
        ]
    cases[-1]["form"]["triggers"] = [
        {
            "type": "copyvalue",
            "expression": "{region} notempty",
            "fromName": "smokes",
            "setToName": "w",
        }
    ]
    for one, result in zip(cases, run("protected", cases), strict=True):
        assert result["seen"] in ({}, {"calculated": 0}), one
        assert "w" not in result["visible"], one
        assert ["w", "derived"] in result["warnings"], one
        assert result["status"] == "sent"


DRAWN = """
name: habits
title: {{en: Habits}}
languages: [en]
opens: {opens}
closes: {closes}
min_reports: 10
budget: "1"
form:
  questions:
    - {{id: smokes, type: yes-no, text: {{en: "Smokes?"}}}}
    - {{id: week-walks, type: yes-no, text: {{en: "Walks?"}}}}
    - {{id: week-swims, type: yes-no, text: {{en: "Swims?"}}}}
    - id: pets
      type: multi
      text: {{en: "Pets?"}}
      boxes: [{{id: cat, label: {{en: Cat}}}}, {{id: dog, label: {{en: Dog}}}}]
"""
PARTS: list[dict[str, Any]] = [
    SMOKES,
    {
        "type": "matrix",
        "name": "week",
        "columns": ["no", "yes"],
        "rows": ["walks", "swims"],
        "isAllRowRequired": True,
    },
    {"type": "checkbox", "name": "pets", "choices": ["cat", "dog"], "isRequired": False},
]


def recording(bodies: list[bytes]) -> Callable[[Any], Any]:
    """Return a middleware that records what is posted."""

    def around(app: Any) -> Any:
        def record(environ: Any, start: Any) -> Any:
            if environ["REQUEST_METHOD"] == "POST":
                bodies.append(environ["wsgi.input"].read())
                environ["wsgi.input"] = io.BytesIO(bodies[-1])
            return app(environ, start)

        return record

    return around


ITEM = """
instructed:
  id: check
  text: {en: "Please choose the second answer."}
  choices: [{id: first, label: {en: One}}, {id: second, label: {en: Two}}]
  answer: second
"""


def test_an_instructed_item_is_one_bit_of_the_report(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    item = {"type": "radiogroup", "name": "check", "choices": ["first", "second"]}
    with hosted(tmp_path, ITEM, languages=("en", "de"), around=recording(bodies)) as site:
        right, wrong, without = run(
            "protected",
            [
                case(site, item, values=VALUES | {"check": "second"}, locales=["de"]),
                case(site, item, values=VALUES | {"check": "first"}, options={"strings": {"passed": "Ours"}}),
                case(site),
            ],
        )  # fmt: skip
    assert without == {"faults": ["the form does not ask check"]}
    for locale, language in (("", "en"), ("de", "de")):
        notes, texts = right["shown"][locale]["notes"], texts_of(language)["element"]
        assert (notes["check"], notes["region"]) == (texts["passed"], texts["public"])
    assert wrong["shown"][""]["notes"]["check"] == "Ours"
    assert [one["seen"] for one in (right, wrong)] == [{}, {}]
    assert [json.loads(body)["strata"] for body in bodies] == [
        {"check": result, "region": "south"} for result in ("passed", "failed")
    ]
    assert len({len(body) for body in bodies}) == 1


def test_a_form_asks_what_its_device_has_drawn(tmp_path: Path) -> None:
    bodies: list[bytes] = []
    with hosted(tmp_path, text=DRAWN, languages=("en",), around=recording(bodies)) as site:
        document = SurveyDocument.from_envelope(site.services.surveys.envelope(site.survey))
        answers = {"smokes": True, "week": {"walks": "no", "swims": "yes"}, "pets": ["cat"]}
        form = {"elements": PARTS}
        before = {"smokes": False, "week": {"walks": "yes"}, "pets": ["dog"]}
        cases = [
            {"form": form, "link": site.link, "values": answers, "before": before}
            for _ in range(24)
        ]
        results = run("protected", cases)
        asked = []
        for result in results:
            assert (result["status"], result["seen"]) == ("queued", {})
            visible = [name for name in result["visible"] if not name.startswith("frankly")]
            asked.append([*result["rows"]] if visible == ["week"] else visible)
        forms = {block.id: block for block in document.blocks if block.asks_drawn}
        (block,) = forms.values()
        drawn = [
            Asking(document.blocks).asked({block.id: Plan(y[0], tuple(y[1::2]))})
            for y in (json.loads(body)["y"][0] for body in bodies)
        ]
        sent = [
            list(dict.fromkeys(one.box.of if one.box else one.id for one in questions))
            for questions in drawn
        ]
        assert sorted(asked) == sorted(sent)
        assert {len(names) for names in asked} == {1}


RULED = """
name: habits
title: {{en: Habits}}
languages: [en]
opens: {opens}
closes: {closes}
min_reports: 10
budget: "1"
form:
  questions:
    - {{id: q0, type: yes-no, text: {{en: Q0}}}}
    - {{id: q1, type: yes-no, text: {{en: Q1}}, ask_if: {{question: q0, choices: ["yes"]}}, not_applicable: {{en: x}}}}
    - {{id: q2, type: yes-no, text: {{en: Q2}}, ask_if: {{question: q1, choices: ["yes"]}}, not_applicable: {{en: x}}}}
    - {{id: q3, type: yes-no, text: {{en: Q3}}, not_applicable: {{en: x}}}}
    - {{id: q4, type: yes-no, text: {{en: Q4}}}}
"""
FOUR: list[dict[str, Any]] = [{"type": "boolean", "name": f"q{i}"} for i in range(5)]
SIGNED_RULES = {1: {"visibleIf": "{q0} = true"}, 2: {"visibleIf": "{q1} = true and {q0} = true"}}


def ruled(*more: dict[str, Any], **changed: dict[str, Any]) -> dict[str, Any]:
    """Return the form with its signed rules, changes by name, and further elements."""
    elements = [
        one | SIGNED_RULES.get(i, {}) | changed.get(one["name"], {}) for i, one in enumerate(FOUR)
    ]
    return {"elements": [*elements, *more]}


def test_a_rule_that_is_not_signed_is_refused_where_its_question_may_not_be_asked(
    tmp_path: Path,
) -> None:
    in_panel = {"type": "panel", "name": "p", "visibleIf": "{q4} = true", "elements": [FOUR[3]]}
    without = {"elements": [one for one in ruled()["elements"] if one["name"] != "q3"]}
    trigger = {"type": "visible", "expression": "{q4} = true", "questions": ["q3"]}
    refused = [
        ruled(q3={"visibleIf": "{q4} = true"}),
        ruled(q3={"requiredIf": "{q4} = true"}),
        {"elements": [*without["elements"], in_panel]},
        ruled() | {"triggers": [trigger]},
    ]
    with hosted(tmp_path, text=RULED, languages=("en",)) as site:
        values = dict.fromkeys(("q0", "q1", "q2", "q3", "q4"), True)
        cases = [{"form": form, "link": site.link, "values": values} for form in refused]
        good = [{"form": ruled(), "link": site.link, "values": values}] * 12
        for one in run("protected", cases):
            assert [fault.split(":")[0] for fault in one["faults"]] == [
                "q3 depends on q4, which may not be asked"
            ]
        asked = set()
        for one in run("protected", good):
            assert (one["status"], one["seen"]) == ("queued", {})
            assert set(one["held"]) >= {name for name in one["visible"] if name[0] == "q"}
            asked.add(tuple(name for name in one["visible"] if name[0] == "q"))
        assert asked <= {("q0",), ("q3",), ("q4",)}  # before anything is answered
