# SPDX-License-Identifier: Apache-2.0
"""Arms in Chromium (spec 3.10): refusals, the draw, one length, the level, and a report of each arm."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.arms import Arm
from frankly_protocol.arms import Arms as ArmsOf
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import Anchor, Instructed
from playwright.sync_api import Page

from tests.browser.sdk.reports import AT, PAGE, as_texts, documents
from tests.browser.sdk.test_plans import rows
from tests.browser.sdk.test_report_level import in_python
from tests.browser.sdk.test_same_as_python import judged_by_browser
from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.asked import DRUGS, form
from tests.frankly_protocol.samples import (
    dp_block,
    ldp_block,
    lip_block,
    put,
    question,
    sealed,
    survey,
)

REGION, SURE = question("region", "north", "south"), question("sure", "no", "yes")
CHECK = Instructed(question("check", "first", "second"), "second")
TEN = tuple(question(f"q{i}", "no", "yes") for i in range(10))


def named(block: Block, name: str) -> Block:
    """Return the block under another id and with other words: its question keeps its own id."""
    texts = tuple(replace(one, text={"en": f"{name} {one.id}?"}) for one in block.questions)
    return replace(block, id=name, questions=texts)


QUIET, LOUD = named(ldp_block(epsilon="1"), "quiet"), named(ldp_block(epsilon="2"), "loud")
DRAWN = named(form(*TEN, epsilon="1", drawn=True), "ten")
BOXES = named(form(*DRUGS, epsilon="0.5"), "boxes")
ARMS = {
    "a": (16384, (REGION,), (DRAWN, QUIET)),
    "b": (32768, (), (LOUD, BOXES)),
    "c": (16384, (SURE, REGION), ()),
}
Arms = dict[str, tuple[int, tuple[Any, ...], tuple[Block, ...]]]


def view(arm: str, arms: Arms = ARMS) -> SurveyDocument:
    """Return a document without arms that asks what an arm does."""
    _, strata, blocks = arms[arm]
    return replace(survey(), strata=strata, blocks=blocks)


def body(arms: Arms = ARMS, **more: Any) -> dict[str, Any]:
    """Return the payload of a survey with these arms."""
    strata = {one.id: one for _, asked, _ in arms.values() for one in asked}
    blocks = {one.id: one for _, _, asked in arms.values() for one in asked}
    written: dict[str, Any] = json.loads(replace(survey(ldp_block()), **more).payload())
    written["strata"] = [one.to_json() for one in strata.values()]
    written["blocks"] = [one.to_json() for one in blocks.values()]
    written["arms"] = {
        "id": "version",
        "arms": [
            {
                "id": name,
                "chance": chance,
                "strata": [one.id for one in strata],
                "blocks": [one.id for one in blocks],
            }
            for name, (chance, strata, blocks) in arms.items()
        ],
    }
    return written


@dataclass(frozen=True)
class Written:
    """A document as the server of these tests sends it."""

    body: dict[str, Any]

    def payload(self) -> bytes:
        return canonical.dumps(self.body)

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.payload()).hexdigest()}"


def publish(wire: Wire, document: dict[str, Any] | None = None) -> str:
    """Serve a document with arms; return its pinned link."""
    url = f"{wire.origin}/v1/surveys/{'ab' * 16}/reports"
    served: Any = Written({**(document or body()), "collect_url": url})
    wire.documents["ab" * 16] = served
    return f"{wire.origin}/s/{'ab' * 16}#{served.digest.replace(':', '=')}"


def edit(path: str, value: Any) -> Callable[[], dict[str, Any]]:
    """Return a valid document with one value replaced."""

    def edited() -> dict[str, Any]:
        document = body()
        put(path, value)(document)
        return document

    return edited


AT_ARMS = "arms.arms."
SECRET, STRATA_LIP = lip_block(), lip_block("faith")
TWO_TABLES = replace(
    STRATA_LIP,
    promises=tuple(
        replace(one, prior=replace(one.prior, tables=one.prior.tables * 2))
        for one in STRATA_LIP.promises
        if one.prior
    ),
)
KNOWN = replace(QUIET, questions=(replace(QUIET.questions[0], anchor=Anchor((1, 1), "Census")),))
AGAIN = named(ldp_block("again"), "again")
AGAIN = replace(AGAIN, questions=(replace(AGAIN.questions[0], anchor=Anchor(repeats="affair")),))
HALF = 32768


def two(one: tuple[Block, ...], other: tuple[Block, ...], **more: Any) -> dict[str, Any]:
    """Return a document with two arms that have these blocks."""
    return body({"a": (HALF, (), one), "b": (HALF, (), other)}, **more)


def twice_public() -> dict[str, Any]:
    document = body()
    document["strata"].append(document["strata"][0])
    return document


SCHEMA: list[tuple[Callable[[], dict[str, Any]], str | None]] = [
    (body, None),
    (edit("arms.more", 1), "arms.more"),
    (edit("arms", []), "arms"),
    (edit("arms.id", "Version"), "arms.id"),
    (edit("arms.arms", body()["arms"]["arms"][:1]), "arms.arms"),
    (edit("arms.arms", body()["arms"]["arms"] * 3), "arms.arms"),
    (edit(AT_ARMS + "0.more", 1), "arms.arms[0].more"),
    (edit(AT_ARMS + "1.id", ""), "arms.arms[1].id"),
    (edit(AT_ARMS + "0.chance", 0), "arms.arms[0].chance"),
    (edit(AT_ARMS + "0.chance", 65536), "arms.arms[0].chance"),
    (edit(AT_ARMS + "0.strata", ["r"] * 9), "arms.arms[0].strata"),
    (edit(AT_ARMS + "0.blocks", ["r"] * 101), "arms.arms[0].blocks"),
    (edit(AT_ARMS + "0.blocks", [1]), "arms.arms[0].blocks[0]"),
    # The arms' own checks, in their order.
    (edit(AT_ARMS + "0.chance", 16383), "arms.arms"),
    (edit(AT_ARMS + "1.id", "a"), "arms.arms"),
    (edit(AT_ARMS + "0.strata", ["regions"]), "arms.arms[0].strata"),
    (edit(AT_ARMS + "0.strata", ["quiet"]), "arms.arms[0].strata"),
    (edit(AT_ARMS + "2.strata", ["sure", "sure"]), "arms.arms[2].strata"),
    (edit(AT_ARMS + "1.blocks", ["loud", "affair"]), "arms.arms[1].blocks"),
    (edit(AT_ARMS + "1.blocks", ["loud", "loud"]), "arms.arms[1].blocks"),
    (edit(AT_ARMS + "2.strata", []), "arms.arms[2].blocks"),
    (edit(AT_ARMS + "2.strata", ["region"]), "arms.arms"),
    (edit(AT_ARMS + "1.blocks", ["loud"]), "arms.arms"),
    (twice_public, "strata"),
    (edit("release_every", "week"), "release_every"),
    # Those of each view.
    (edit(AT_ARMS + "1.blocks", ["loud", "boxes", "quiet"]), "blocks"),
    (edit("arms.id", "q3"), "blocks"),
    (edit("arms.id", "sure"), "blocks"),
    (edit("arms.id", "drugs-beer"), "blocks"),
    (lambda: body(instructed=CHECK), None),
    (lambda: {**body(instructed=CHECK), "arms": {**body()["arms"], "id": "check"}}, "blocks"),
    (lambda: two((KNOWN, AGAIN), (LOUD,)), None),
    (lambda: two((KNOWN,), (LOUD, AGAIN)), None),
    (lambda: two((AGAIN, KNOWN), (LOUD, AGAIN)), "again"),
    (lambda: two((QUIET,), (AGAIN,)), "again"),
    (lambda: two((SECRET,), (QUIET,), instructed=CHECK), "instructed"),
    (lambda: two((KNOWN,), (LOUD,), instructed=CHECK), "instructed"),
    (
        lambda: body({"a": (HALF, (REGION,), (QUIET,)), "b": (HALF, (), (LOUD, TWO_TABLES))}),
        "blocks[2].claims[0].prior.tables",
    ),
    (lambda: body({"a": (HALF, (), (QUIET,)), "b": (HALF, (REGION,), (LOUD, TWO_TABLES))}), None),
]


@pytest.mark.usefixtures("shared_page")
def test_documents_with_arms_are_refused_by_the_field_at_fault(page: Page) -> None:
    envelopes = [sealed(canonical.dumps(document())) for document, _ in SCHEMA]
    expected = [field and ["document_schema", field] for _, field in SCHEMA]
    judged = judged_by_browser(page, envelopes)
    different = [
        (i, *pair)
        for i, pair in enumerate(zip(expected, judged, strict=True))
        if pair[0] != pair[1]
    ]
    assert different == []


READ = program("arms")


def read(page: Page, document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(READ, canonical.dumps(document).decode())
    return found


def test_arms_are_drawn_by_their_chances_and_reports_have_one_length(page: Page) -> None:
    found = read(page, body())
    assert found["draws"] == ["a", "a", "b", "b", "c", "c"]
    assert set(found["lengths"]) == {max(found["own"])}
    assert len(set(found["own"])) == 3
    # The arm, with `,"version":"a"`, makes a report longer than one without arms.
    plain = [view(arm).report_length for arm in ARMS]
    named = len('"version":"a"')
    assert [own - one for own, one in zip(found["own"], plain, strict=True)] == [
        named + 1,
        named,
        named + 1,
    ]
    asked = [["region?", *(f"ten q{i}?" for i in range(10)), "quiet affair?"]]
    asked += [["loud affair?", "boxes drugs-beer?", "boxes drugs-weed?"], ["region?", "sure?"]]
    assert found["asked"] == asked


def test_plans_depend_on_the_arms_and_on_the_forms_of_all_of_them(page: Page) -> None:
    depends = read(page, body())["depends"]
    words = body()
    words["title"]["en"] = words["blocks"][1]["questions"][0]["text"]["en"] = "Other words"
    assert read(page, words)["depends"] == depends
    chances, names = body(), body()
    for arm, chance in zip(chances["arms"]["arms"], (16383, 32769, 16384), strict=True):
        arm["chance"] = chance
    names["arms"]["arms"][0]["id"] = "d"
    assert len({depends, *(read(page, one)["depends"] for one in (chances, names))}) == 3


def test_the_level_is_that_of_the_python_sdk(page: Page) -> None:
    dp = named(dp_block(epsilon="3"), "dp")
    arms: Arms = {
        "a": (16384, (), (QUIET, SECRET)),
        "b": (16384, (), (dp,)),
        "c": (16384, (REGION,), (LOUD, TWO_TABLES)),
        "d": (16384, (SURE,), ()),
    }
    cap = Fraction(1, 100)
    found = read(page, body(arms))
    document = SurveyDocument.parse(canonical.dumps(body(arms)))
    assert found["level"] == in_python(document, cap)
    assert found["arms"] == {name: in_python(one, cap) for name, one in document.views.items()}


def test_levels_of_random_arms_are_those_of_the_python_sdk(page: Page, full: bool) -> None:
    rng, split = Random(7), []
    for document in documents(12, 400 if full else 60):
        names = [block.id for block in document.blocks]
        strata = tuple(one.id for one in document.strata)
        # Public questions are in all arms or in none: the tables of priors are of all of them.
        listed = [rng.sample(names, rng.randint(0 if strata else 1, len(names))) for _ in "abc"]
        listed[0] = names
        chances = (1 << 15, 1 << 14, 1 << 14)
        arms = tuple(
            Arm(name, chance, strata, tuple(blocks))
            for name, chance, blocks in zip("abc", chances, listed, strict=True)
        )
        split.append(replace(document, arms=ArmsOf("version", arms)))
    for cap in (Fraction(0), Fraction(9, 100)):
        request = {
            "payloads": [document.payload().decode() for document in split],
            "cap": list(cap.as_integer_ratio()),
        }
        assert page.evaluate(program("levels"), request) == [in_python(one, cap) for one in split]


OPEN = program("arms_open")
REFUSED_OPEN = f"(args) => ({OPEN[OPEN.index('async') :].strip()})(args).catch(({{code}}) => code)"
PLAN = """async () => {
  const plan = await client.plan(), {survey, level} = client.view(plan);
  const blocks = survey.blocks.map(({id}) => id), isWhole = level === client.level;
  return [plan.arm, plan.questions, plan.asked, plan.of, blocks, isWhole, JSON.stringify(plan)];
}"""
ANSWER = """async ([answers, strata]) => {
  const said = (code, field = null) => ({code, field});
  try {
    const receipt = await client.answer(answers, {strata});
    return said(receipt.code);
  } catch (error) {
    return said(error.code, error.field);
  }
}"""
SPENT = "async () => (await client.store.spent()).map(({cost}) => cost.map(String))"
FIRST = {"a": 0, "b": 16384, "c": 49152}
ALL: dict[str, Any] = {
    "affair": "yes", "drugs": ["beer"], **{f"q{i}": "no" for i in range(10)},
}  # fmt: skip
OPEN_ALL = {"region": "south", "sure": "no"}


def opened(page: Page, wire: Wire, link: str, **more: Any) -> Page:
    page.goto(f"{wire.origin}/blank.html")
    page.evaluate(OPEN, {"link": link, "at": AT, **more})
    return page


def test_a_report_is_about_the_drawn_arm_alone(page: Page, wire: Wire) -> None:
    link, lengths, expected = publish(wire), set(), {"a": (REGION,), "b": (), "c": (SURE, REGION)}
    for arm, first in FIRST.items():
        opened(page, wire, link, first=first, options={"store": arm})
        assert page.evaluate(ANSWER, [ALL, OPEN_ALL]) == {"code": "accepted", "field": None}
        report = json.loads(wire.posted[-1])
        named = {one.id: OPEN_ALL[one.id] for one in expected[arm]}
        assert report["strata"] == {**named, "version": arm}
        assert len(report["y"]) == len(ARMS[arm][2])
        lengths.add(len(wire.posted[-1]))
        (cost,) = page.evaluate(SPENT)
        assert cost == as_texts(view(arm).report_level.cost.odds)
        again = page.evaluate(ANSWER, [{}, {}])
        assert again["code"] == "already_answered"
    assert len(lengths) == 1


def test_the_arm_is_stored_before_anything_is_asked_and_kept(page: Page, wire: Wire) -> None:
    link = publish(wire)
    planned = opened(page, wire, link, first=16384).evaluate(PLAN)
    assert planned == ["b", ["affair", "drugs-beer", "drugs-weed"], 2, 2, ["loud", "boxes"], False, "{}"]  # fmt: skip
    ((kept,),) = [list(row.values()) for row in rows(page)]
    assert kept == {"arm": "b", "plans": []}
    assert opened(page, wire, link, first=0).evaluate(PLAN) == planned
    # A version with other words has the same plan; one with other arms has its own, beside it.
    prev = "sha256:" + "cd" * 32
    words, arms = body(version=2, prev=prev), body(version=3, prev=prev)
    words["title"]["en"] = "Another title"
    arms["arms"]["arms"].reverse()
    assert opened(page, wire, publish(wire, words), first=0).evaluate(PLAN) == planned
    assert opened(page, wire, publish(wire, arms), first=65535).evaluate(PLAN)[0] == "a"
    ((*both,),) = [list(row.values()) for row in rows(page)]
    assert sorted(one["arm"] for one in both) == ["a", "b"]
    (drawn,) = [one["plans"] for one in both if one["arm"] == "a"]
    assert len(drawn) == 1
    assert wire.posted == []


def test_a_plan_of_an_arm_asks_what_its_forms_draw(page: Page, wire: Wire) -> None:
    arm, questions, asked, of, *_ = opened(page, wire, publish(wire), first=0).evaluate(PLAN)
    assert (arm, asked, of) == ("a", 2, 11)
    assert questions[1] == "affair"
    given = [dict.fromkeys(questions, "no"), {"region": "north"}]
    assert page.evaluate(ANSWER, given)["code"] == "accepted"
    assert rows(page) == [None]


REFUSED: list[tuple[int, dict[str, Any], dict[str, Any], str | None]] = [
    (0, {"affair": "maybe", **{f"q{i}": "no" for i in range(10)}}, OPEN_ALL, "affair"),
    (0, ALL, {}, "region"),
    (16384, {"affair": "no"}, {}, "drugs-beer"),
    (16384, {**ALL, "other": "no"}, {}, None),
    (16384, ALL, {"other": "no"}, None),
    (49152, {}, {"region": "north"}, "sure"),
]


def test_missing_and_unknown_answers_are_refused_and_the_arm_stays(page: Page, wire: Wire) -> None:
    link = publish(wire)
    for i, (first, answers, strata, field) in enumerate(REFUSED):
        opened(page, wire, link, first=first, options={"store": f"refused-{i}"})
        assert page.evaluate(ANSWER, [answers, strata]) == {
            "code": "unknown_choice",
            "field": field,
        }
        assert page.evaluate(PLAN)[0] == {0: "a", 16384: "b", 49152: "c"}[first]
    assert wire.posted == []


def test_answers_to_other_arms_are_dropped_unread(page: Page, wire: Wire) -> None:
    opened(page, wire, publish(wire), first=49152)
    result = page.evaluate("""async () => {
      const read = [], told = (names) => Object.defineProperties({}, Object.fromEntries(names.map((name) =>
        [name, {enumerable: true, get: () => read.push(name) && "no"}])));
      const strata = Object.assign(told([]), {region: "north", sure: "yes"});
      return [(await client.answer(told(["affair", "drugs", "drugs-beer", "q3"]), {strata})).code, read];
    }""")
    assert result == ["accepted", []]
    opened(page, wire, publish(wire), first=16384, options={"store": "other"})
    wrong = {"affair": "no", "drugs": [], "q0": 17}
    assert page.evaluate(ANSWER, [wrong, {"region": ["x"], "sure": 3}])["code"] == "accepted"


def test_the_budget_is_that_of_the_largest_arm_until_one_is_drawn(page: Page, wire: Wire) -> None:
    costs = {arm: view(arm).report_level.cost.odds for arm in ARMS}
    largest = max(one for one in costs.values() if one is not None)
    assert largest == costs["b"]
    cap = f"{log(largest) - 0.01:.2f}"  # enough for the other arms
    link = publish(wire)
    page.goto(f"{wire.origin}/blank.html")
    few = {"link": link, "at": AT, "first": 0, "options": {"policy": {"cap": cap}}}
    assert page.evaluate(REFUSED_OPEN, few) == "policy_cap"
    opened(page, wire, link, first=49152)
    told = page.evaluate("""async () => {
      const plan = await client.plan(), before = await client.budget(), own = await client.budget("", plan);
      return [before.cost, own.cost, own.canAnswer];
    }""")
    assert told[1:] == ["0.0000", True]
    assert float(told[0]) == pytest.approx(log(largest), abs=1e-4)


def test_a_final_survey_protects_the_answers_of_an_arm_without_secrets(
    page: Page, wire: Wire
) -> None:
    """Its largest odds of a secret are those of another arm."""
    page.goto(f"{wire.origin}/blank.html")
    options = {"policy": {"cap": "5", "finalSurveys": ["ab" * 16]}}
    for epsilon, expected in (("4", None), ("6", "policy_cap")):
        plain = named(ldp_block(epsilon=epsilon), "plain")
        link = publish(wire, two((SECRET,), (plain,)))
        given = {"link": link, "at": AT, "options": {**options, "store": epsilon}}
        assert page.evaluate(REFUSED_OPEN, given) == expected


def test_without_its_module_no_survey_with_arms_is_read(page: Page, wire: Wire) -> None:
    page.goto(f"{wire.origin}/blank.html")
    page.route("**/sdk/arms.js", lambda route: route.abort())
    assert page.evaluate(REFUSED_OPEN, {"link": publish(wire), "at": AT}) == "network"


def test_a_lost_plan_is_not_replaced_while_answers_wait(page: Page, wire: Wire) -> None:
    opened(page, wire, publish(wire), first=16384)
    code = page.evaluate("""async () => {
      const {store} = client, seal = store.seal.bind(store);
      store.seal = (chain, survey, names, form, make) => seal(chain, survey, names, "another form", make);
      try { await client.answer({affair: "no", drugs: []}); } catch (error) { return error.code; }
    }""")
    assert code == "store"
    assert wire.posted == []


SHOW = program("arms_show")


@pytest.mark.parametrize(
    ("arm", "fields", "other"),
    [
        ("a", ["region", "check", "affair"], "loud affair?"),
        ("b", ["affair", "check", "drugs-beer"], "quiet affair?"),
        ("c", ["region", "sure", "check"], "affair?"),
    ],
)
def test_the_element_shows_the_drawn_arm_and_no_other(
    page: Page, wire: Wire, arm: str, fields: list[str], other: str
) -> None:
    wire.pages["/form.html"] = PAGE
    page.goto(f"{wire.origin}/form.html")
    page.evaluate(SHOW, [publish(wire, body(instructed=CHECK)), AT, FIRST[arm]])
    page.locator("button[type=submit]").wait_for()
    shown = page.locator("fieldset").evaluate_all(
        "all => all.map(({id}) => id.replace('question-', ''))"
    )
    assert [name for name in shown if not name.startswith("q")] == fields
    page.locator("#details").click()
    text = page.locator("[part=body]").inner_text()
    assert other not in text
    assert "This survey has 3 versions." in text
    assert f"the version “{arm}”" in text
    whole = page.locator("[part=explanation]").text_content()
    assert whole is not None
    assert f'"version":"{arm}"' in whole
    for field in page.locator("fieldset").all():
        if field.locator("input[type=radio]").count():
            field.locator("input").last.check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you.").wait_for()
    assert wire.arrived.wait(60)
    assert json.loads(wire.posted[0])["strata"]["version"] == arm
    page.locator("[part=sent]").wait_for()
    assert other not in page.locator("[part=sent]").inner_text()


def test_a_preview_shows_no_question_before_the_draw(page: Page) -> None:
    legends = page.evaluate(
        """async (envelope) => {
          const {preview} = await import("/sdk/preview.js");
          const shown = preview(envelope, ["en"]);
          return [shown.querySelector("h1").textContent, shown.querySelectorAll("legend").length];
        }""",
        sealed(canonical.dumps(body(instructed=CHECK))).decode(),
    )
    assert legends == ["A survey", 0]


def test_reports_of_arms_are_spread_and_other_surveys_load_nothing_more(
    page: Page, wire: Wire
) -> None:
    whole = body({"a": (HALF, (REGION,), (QUIET,)), "b": (HALF, (), (LOUD,))})
    opened(page, wire, publish(wire, whole), options={"spreadMs": None})
    assert page.evaluate("client.delivery.spreadMs") == 30_000
    loaded = {path for path, _ in wire.requests}
    assert {"/sdk/arms.js", "/sdk/plans.js"} <= loaded
    wire.requests.clear()
    opened(page, wire, wire.publish(survey(ldp_block()), "cd" * 16))
    assert not any("arms.js" in path for path, _ in wire.requests)


def test_the_documented_lines_show_the_drawn_arm(page: Page, wire: Wire, root: Path) -> None:
    text = (root / "docs" / "browser.md").read_text(encoding="utf-8")
    _, _, after = text.partition("```js\nconst plan = await client.plan(), { survey }")
    lines = "const plan = await client.plan(), { survey }" + after.partition("```")[0]
    for arm, first in FIRST.items():
        opened(page, wire, publish(wire), first=first, options={"store": f"documented {arm}"})
        shown = page.evaluate(
            f"""async () => {{
              let all;
              const show = (...what) => (all = what);
              {lines}
              const [told, open, own] = all;
              return [String(told), open.map(({{id}}) => id), own.map(({{text}}) => text.en)];
            }}"""
        )
        _, strata, blocks = ARMS[arm]
        words = [question.text["en"] for block in blocks for question in block.questions]
        assert f"the version “{arm}”" in shown[0]
        assert sorted(shown[1]) == sorted(one.id for one in strata)
        assert set(shown[2]) <= set(words)
        assert shown[2] or not words


def test_the_largest_arm_is_checked_again_when_an_answer_is_sealed(page: Page, wire: Wire) -> None:
    """With room for the drawn arm alone, people of the cheap arms would be left."""
    for arm, first in FIRST.items():
        opened(page, wire, publish(wire), first=first, options={"store": f"checked {arm}"})
        page.evaluate("async () => void (await client.plan())")
        smaller = """async (cap) => {
          const {Policy} = await import("/sdk/ledger.js");
          client.policy = new Policy({cap});
        }"""
        page.evaluate(smaller, "2.4")  # the arm b costs 2.5 nats, a costs 2 and c nothing
        refused = page.evaluate(ANSWER, [ALL, OPEN_ALL])
        assert refused["code"] in ("policy_cap", "policy_final"), (arm, refused)
        page.evaluate(smaller, "2.6")
        assert page.evaluate(ANSWER, [ALL, OPEN_ALL])["code"] == "accepted"
