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
    {"defaultValue": "=displayValue('drinks')"},
    {"visibleIf": "{$p.isVisible} = true"},
    {"visibleIf": "propertyValue('p', 'isVisible') = true"},
    {"visibleIf": "isContainerReady('page1')"},
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
    conditional = {"type": "panel", "name": "p", "visibleIf": "{smokes} = true", "elements": [HTML]}
    for one in cases[: len(DERIVED)]:
        one["form"]["elements"].append(conditional)
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


HTML = {"type": "html", "name": "h", "html": "hello"}
MATRIX_BY_URL = {
    "type": "matrixdynamic", "name": "w", "rowCount": 1, "columns": [
        {"name": "c", "cellType": "dropdown", "choicesByUrl": {"url": "https://other.example/{drinks}"}},
    ],
}  # fmt: skip
# name, a question that is removed because what it loads depends on a randomised answer, the reason
LOADING: list[tuple[str, dict[str, Any], str]] = [
    ("HTML", {"type": "html", "html": "<img src='https://other.example/{drinks}'>"}, "address"),
    ("HTML in a locale", {"type": "html", "html": {"default": "hello", "de": "<img src='/{drinks}'>"}}, "address"),
    ("style", {"type": "html", "html": "<b style='background: url(/{calculated})'>"}, "address"),
    ("an image set", {"type": "html", "html": "<b style='background-image: image-set(\"/{drinks}\" 1x)'>"}, "address"),
    ("escapes in style", {"type": "html", "html": "<b style='background: u\\72l(/{drinks})'>"}, "address"),
    ("another page", {"type": "html", "html": "<meta http-equiv=refresh content='0; url=/{drinks}'>"}, "address"),
    ("a document", {"type": "html", "html": "<iframe srcdoc='&lt;img src&#61;/{drinks}>'>"}, "address"),
    ("a listener", {"type": "html", "html": "<svg onload='f(/{drinks}/)'>"}, "address"),
    ("a quiz", {"type": "html", "html": "<img src='/{correctAnswers}'>"}, "address"),
    ("a variable", {"type": "html", "html": "<img src='/{flag}'>"}, "address"),
    ("image", {"type": "image", "imageLink": "https://other.example/{drinks}"}, "address"),
    ("a condition", {"type": "image", "imageLink": "/smoker.png", "visibleIf": "{smokes} = true"}, "address"),
    ("choices", {"type": "dropdown", "choicesByUrl": {"url": "https://other.example/{drinks}"}}, "derived"),
    ("their path", {"type": "tagbox", "choicesByUrl": {"url": "/all", "path": "{drinks}"}}, "derived"),
    ("choices of cells", MATRIX_BY_URL, "derived"),
    ("image picker", {"type": "imagepicker", "choices": [{"value": 1, "imageLink": "/{drinks}"}]}, "derived"),
]  # fmt: skip
QUIZ = {"type": "boolean", "name": "smokes", "correctAnswer": True}
FLAG = {
    "type": "setvalue",
    "expression": "{smokes} = true",
    "setToName": "flag",
    "setValue": "set",
    "isVariable": True,
}
CALCULATED = {"name": "calculated", "expression": "{drinks}"}
ALL = "https://other.example/{drinks}{smokes}{flag}{calculated}{correctAnswers}"


def with_everything(site: Site, *more: dict[str, Any], **survey: Any) -> dict[str, Any]:
    """Return a case whose form has a quiz, a trigger and a calculated value; survey : its properties."""
    form = {
        "elements": [SIGNED[0], QUIZ, SIGNED[2], *more],
        "triggers": [FLAG],
        "calculatedValues": [CALCULATED],
    }
    return case(site, options={"unprotected": "keep"}, form=form | survey)


def test_nothing_that_is_loaded_contains_or_depends_on_a_randomised_answer(site: Site) -> None:
    cases = [with_everything(site, {"name": "w"} | question) for _, question, _ in LOADING]
    plain = {"type": "html", "name": "w", "html": "<b>You drink {drinks}.</b>"}
    fixed = {"type": "image", "name": "w", "imageLink": "/logo.png"}
    public = {"type": "image", "name": "w", "imageLink": "/{region}.png"}
    inline = {"type": "image", "name": "w", "imageLink": "data:,", "visibleIf": "{smokes} = true"}
    cases += [with_everything(site, one) for one in (plain, fixed, public, inline)]
    *removed, said, still, of_region, drawn_here = run("protected", cases)
    for (name, _, reason), one in zip(LOADING, removed, strict=True):
        assert ["w", reason] in one["warnings"], name
        assert "w" not in one["visible"], name
        assert (one["loaded"], one["requests"], one["seen"], one["status"]) == (
            [],
            [],
            {},
            "sent",
        ), name
    assert said["loaded"] == ["<b>You drink never.</b>"]
    assert (still["loaded"], of_region["loaded"]) == (["/logo.png"], ["/south.png"])
    assert drawn_here["loaded"] == ["data:,"]
    assert [one["warnings"] for one in (said, still, of_region, drawn_here)] == [[]] * 4


def test_what_follows_completion_sees_no_answer(site: Site) -> None:
    conditions = [{"expression": "{smokes} = true", "url": f"{ALL}/on", "html": ALL}]
    survey = {"navigateToUrl": ALL, "completedHtml": f"<img src='{ALL}'>"}
    on_condition = {f"{name}OnCondition": conditions for name in survey}
    in_german = with_everything(site, logo={"default": "/a.png", "de": ALL}) | {"locales": ["de"]}
    logo, of_locale, *results = run("protected", [with_everything(site, logo=ALL), in_german, *(
        with_everything(site, **{name: value}) for name, value in (survey | on_condition).items()
    )])  # fmt: skip
    for one in (logo, of_locale):
        assert (one["loaded"], one["warnings"]) == ([], [["", "address"]])
    for one in results:
        assert one["warnings"] == [["", "erased"]]
        assert (one["seen"], one["status"]) == ({}, "sent")
        for text in one["after"]:
            assert not any(
                word in (text or "").replace("{calculated}", "")
                for word in ("never", "true", "set", "/on", "1")
            ), text


def test_nothing_is_loaded_before_the_survey_is_verified(site: Site) -> None:
    loading = [
        {"type": "html", "name": "h", "html": "<img src='/{drinks}'>"},
        {"name": "w"} | next(question for name, question, _ in LOADING if name == "choices"),
    ]
    unreachable = site.link.replace("/s/", "/none/s/")
    [one] = run("protected", [case(site, *loading, link=unreachable)])
    assert one["faults"] != []
    assert (one["loaded"], one["requests"]) == (["<img src='/{drinks}'>"], [])


# name, a question that would stay with "keep" although it has or depends on a randomised answer, a trigger
NOT_KEPT: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("the same value", {"type": "text", "name": "w", "valueName": "smokes"}, []),
    ("a shared panel", {"type": "paneldynamic", "name": "w", "valueName": "drinks",
                        "templateElements": [{"type": "text", "name": "a"}]}, []),
    ("its choices", {"type": "checkbox", "name": "w", "choicesFromQuestion": "drinks"}, []),
    ("its count", {"type": "paneldynamic", "name": "w", "bindings": {"panelCount": "drinks"}}, []),
    ("after an early end", {"type": "text", "name": "w"}, [{"type": "complete", "expression": "{smokes} = false"}]),
    ("after a jump", {"type": "text", "name": "w"},
     [{"type": "skip", "expression": "{smokes} = false", "gotoName": "w"}]),
    ("a variable", {"type": "text", "name": "w", "visibleIf": "{flag} = 'set'"}, [FLAG]),
]  # fmt: skip


def test_what_shares_or_follows_a_randomised_answer_is_not_kept(site: Site) -> None:
    options = {"unprotected": "keep"}
    cases = [case(site, one, options=options, values=VALUES) for _, one, _ in NOT_KEPT]
    for one, (_, _, triggers) in zip(cases, NOT_KEPT, strict=True):
        one["form"]["triggers"] = triggers
    for (name, _, _), one in zip(NOT_KEPT, run("protected", cases), strict=True):
        assert ["w", "derived"] in one["warnings"], name
        assert (one["seen"], one["status"]) == ({}, "sent"), name
        assert "w" not in one["fields"], name


def test_a_question_is_found_by_its_own_name_and_by_that_of_its_value(site: Site) -> None:
    named = [*SIGNED[:2], SIGNED[2] | {"valueName": "v"}]
    followers: list[dict[str, Any]] = [
        {"type": "checkbox", "name": "w", "choicesFromQuestion": "drinks"},
        {"type": "text", "name": "w", "defaultValueExpression": "displayValue('drinks')"},
        {"type": "text", "name": "w", "visibleIf": "{v} = 'never'"},
    ]
    cases = [
        case(
            site,
            form={"elements": [*named, one]},
            options={"unprotected": "keep"},
            values={"region": "south", "smokes": True, "v": "never"},
        )
        for one in followers
    ]
    for one, given in zip(run("protected", cases), followers, strict=True):
        assert ["w", "derived"] in one["warnings"], given
        assert (one["seen"], one["status"]) == ({}, "sent"), given


def test_a_form_never_gives_answers_to_its_app(site: Site) -> None:
    results = run("held", {"form": {"elements": SIGNED}, "link": site.link, "values": VALUES})
    for name, one in results.items():
        count = 2 if name == "cleared" else 1
        status = "disabled" if name == "off" else "sent"
        assert (one["seen"], one["status"], one["state"]) == ([{}] * count, status, "completed"), (
            name
        )
    assert results["switched"]["said"] == {"off": ["disabled", None] * 2, "state": "running"}
    assert results["reopened"]["said"] == {"closed": "running"}
    assert results["off"]["said"] == {"isReadOnly": False}
    assert results["again"]["said"]["first"].startswith("LinkError")
    assert results["twice"]["said"]["second"].endswith("protected already: close that first")
    assert results["early"]["said"] == {"held": True, "released": True}


def test_a_second_question_of_the_same_name_keeps_no_answer(site: Site) -> None:
    [one] = run(
        "protected",
        [case(site, {"type": "comment", "name": "smokes"}, options={"unprotected": "keep"})],
    )
    assert (one["seen"], one["status"]) == ({}, "sent")
    assert one["fields"].count("smokes") == 1


def test_a_trigger_does_not_show_what_is_hidden(site: Site) -> None:
    form = {"elements": [*SIGNED, {"type": "text", "name": "w"}], "triggers": [
        {"type": "visible", "expression": "{region} = 'south'", "questions": ["w"]},
    ]}  # fmt: skip
    [one] = run("protected", [case(site, form=form)])
    assert "w" not in one["fields"]
    assert one["status"] == "sent"


def test_a_form_loses_what_would_send_answers_or_free_text(site: Site) -> None:
    free = {"showOtherItem": True, "showCommentArea": True}
    again = {"type": "setvalue", "expression": "{smokes} empty", "setToName": "note", "setValue": 1}
    form = {
        "elements": [SIGNED[0], SMOKES, SIGNED[2] | free],
        "surveyPostId": "abc",
        "sendResultOnPageNext": True,
        "triggers": [again],
    }
    [one] = run("protected", [case(site, form=form)])
    assert one["sending"] == ["", False]
    assert [one["own"][name] for name in VALUES] == [[False, False, True]] * 3
    assert (one["seen"], one["status"]) == (
        {},
        "sent",
    )  # a trigger would write while they are erased


def test_fields_within_choices_are_removed(site: Site) -> None:
    own = [
        {"value": "never", "showCommentArea": True},
        {"value": "weekly", "elements": [{"type": "text", "name": "why"}]},
        "daily",
    ]
    form = {"elements": [SIGNED[0], SMOKES, SIGNED[2] | {"choices": own}]}
    values = VALUES | {"drinks-Comment": "free"}
    [one] = run("protected", [case(site, form=form, values=values)])
    assert one["warnings"] == [["drinks", "free_text"]]
    assert "why" not in one["fields"]
    assert (one["seen"], one["status"]) == ({}, "sent")


# what makes a question that is sent as given, or an image, depend on a randomised answer
REVEALING: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"setValueExpression": "iif({smokes} = true, 'north', 'south')"}, {}, "region is sent as given"),
    ({"visibleIf": "{smokes} = true"}, {}, "region is sent as given"),
    ({"valueName": "smokes"}, {}, "region is sent as given"),
    ({"choicesVisibleIf": "{drinks} = 'never'"}, {}, "region is sent as given"),
    ({}, {"triggers": [{"type": "copyvalue", "fromName": "smokes", "setToName": "region"}]}, "region is sent as given"),
    ({}, {"triggers": [FLAG | {"setToName": "region", "isVariable": False}]}, "region is sent as given"),
    ({}, {"triggers": [{"type": "visible", "expression": "{smokes} = true", "pages": ["page1"]}]},
     "region is sent as given"),
]  # fmt: skip


def test_a_public_question_that_depends_on_a_randomised_one_is_refused(site: Site) -> None:
    cases = [
        case(site, form={"elements": [SIGNED[0] | change, *SIGNED[1:]]} | survey)
        for change, survey, _ in REVEALING
    ]
    picker = {"type": "imagepicker", "visibleIf": "{smokes} = true", "choices": [
        {"value": value, "imageLink": f"/{value}.png"} for value in SIGNED[2]["choices"]
    ]}  # fmt: skip
    by_url = {"type": "dropdown", "choices": [], "choicesByUrl": {"url": "/{smokes}"}}
    cases += [
        case(site, form={"elements": [*SIGNED[:2], {"name": "drinks"} | one]})
        for one in (picker, by_url)
    ]
    later = [
        {"elements": SIGNED[:2]},
        {"elements": [{"name": "drinks"} | picker | {"visibleIf": ""}]},
        {"elements": [HTML]},
    ]
    jump = [{"type": "skip", "expression": "{smokes} = true", "gotoName": "h"}]
    cases.append(case(site, form={"pages": later, "triggers": jump}))
    expected = [fault for *_, fault in REVEALING] + ["what drinks loads from a server depends"] * 3
    for one, fault, given in zip(run("protected", cases), expected, cases, strict=True):
        assert [text[: len(fault)] for text in one["faults"]] == [fault], given


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
NUMBER = DRAWN.replace("id: smokes, type: yes-no,", "id: age, ranges: [0, 10, 100],")
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
    assert without["faults"] == ["the form does not ask check"]
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


def test_the_browser_is_asked_not_to_keep_a_number_that_is_typed(tmp_path: Path) -> None:
    number = {"type": "text", "name": "age", "inputType": "number", "autocomplete": "bday-year"}
    with hosted(tmp_path, text=NUMBER, languages=("en",)) as site:
        given = {
            "link": site.link,
            "values": {"age": 44, "week": {"walks": "no", "swims": "yes"}},
            "form": {"elements": [number, *PARTS[1:]]},
        }
        results = run("protected", [given] * 12)
    found = [one["autocomplete"] for one in results if "age" in one["fields"]]
    assert found
    assert {name for names in found for name in names} == {"off"}


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
