# SPDX-License-Identifier: Apache-2.0
"""Instructed items in the browser SDK: documents, reports, fields and preview."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.questions import Instructed
from playwright.sync_api import Page

from tests.browser.accessible import findings
from tests.browser.sdk.reports import AT, PAGE, SHOW
from tests.browser.sdk.test_same_as_python import verdicts
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.asked import AGE, DRUGS, STRESS, WORK, asked, form
from tests.frankly_protocol.samples import (
    ldp_block,
    lip_block,
    put,
    question,
    sealed,
    survey,
    without_anchors,
)

# The ids are longer and shorter than "passed" and "failed": the length of a report shows nothing.
CHECK = Instructed(question("check", "a", "second-of-all", "third"), "second-of-all")
REGION = question("region", "north", "south")
TEN = tuple(question(f"q{i}", "no", "yes") for i in range(10))


def checked(document: SurveyDocument) -> SurveyDocument:
    """Return the document with the item and a public question."""
    return replace(without_anchors(document), strata=(REGION,), instructed=CHECK)


Edit = Callable[[dict[str, Any]], object]


def _choices(count: int) -> list[Any]:
    return [{"id": f"c{i}", "label": {"en": "x"}} for i in range(count)]


def _both(*edits: Edit) -> Edit:
    return lambda body: [edit(body) for edit in edits]


ANCHOR = put("blocks.0.questions.0.anchor", {"counts": [3, 1], "source": "Census"})
PRIOR = put("blocks", json.loads(survey(lip_block()).payload())["blocks"])
SCHEMA = "document_schema"
# Edits of the document, and the field that both SDKs name; None if they accept the document.
EDITS: list[tuple[Edit, str | None]] = [
    (dict, None),
    (put("strata", []), None),
    (put("instructed", ...), None),
    (_both(put("instructed.choices", _choices(1000)), put("instructed.answer", "c999")), None),
    (_both(put("instructed.choices", _choices(1001)), put("instructed.answer", "c0")), "instructed.choices"),
    (_both(put("instructed.choices", _choices(1)), put("instructed.answer", "c0")), "instructed.choices"),
    (put("instructed", None), "instructed"),
    (put("instructed", []), "instructed"),
    *((put(f"instructed.{key}", ...), f"instructed.{key}") for key in ("id", "text", "choices", "answer")),
    *((put(f"instructed.{key}", 1), f"instructed.{key}") for key in ("box", "ask_if", "wanted", "anchor", "extra")),
    *((put("instructed.answer", bad), "instructed.answer") for bad in ("fourth", "SECOND", "", None, 1, ["a"])),
    (put("instructed.choices.0.role", "no_answer"), "instructed"),
    (put("instructed.choices.0.extra", "1"), "instructed.choices[0].extra"),
    (put("instructed.choices.1.id", "a"), "instructed.choices"),
    (put("instructed.text", {"de": "Was?"}), "instructed.text.de"),
    (put("instructed.id", "Check"), "instructed.id"),
    (put("instructed.id", "affair"), "blocks"),
    (put("instructed.id", "region"), "blocks"),
    (put("strata", [REGION.to_json(), REGION.to_json()]), "blocks"),
    (PRIOR, "instructed"),
    (_both(PRIOR, put("instructed", ...)), None),
    (_both(PRIOR, put("instructed.id", "region")), "blocks"),
    (ANCHOR, "instructed"),
    (_both(ANCHOR, put("instructed", ...)), None),
    (_both(PRIOR, ANCHOR), "instructed"),
    (_both(ANCHOR, put("instructed.id", "region")), "blocks"),
    (_both(ANCHOR, put("blocks.0.questions.0.anchor.counts", [0, 0])), "blocks[0].questions[0].anchor.counts"),
    # Of several faults, both name the same one.
    (_both(put("instructed.answer", "fourth"), put("token", 1)), "instructed.answer"),
    (_both(put("instructed.answer", "fourth"), put("blocks.0.id", 1)), "blocks[0].id"),
    (_both(PRIOR, put("release_every", "week")), "release_every"),
]  # fmt: skip


def edited(edit: Edit) -> bytes:
    body = json.loads(checked(survey(ldp_block())).payload())
    edit(body)
    return canonical.dumps(body)


@pytest.mark.usefixtures("shared_page")
def test_documents_are_read_and_refused_as_in_python(page: Page) -> None:
    judged = verdicts(page, [sealed(edited(edit)) for edit, _ in EDITS])
    assert judged == [field and [SCHEMA, field] for _, field in EDITS]


READ = """async (payload) => {
  const [{bytesOf}, {readSurvey}, {describe, speak}, {inWords}] =
    await Promise.all(["canonical", "documents", "errors", "texts"].map((name) => import(`/sdk/${name}.js`)));
  speak(inWords);
  return readSurvey(bytesOf(payload), "").then(({instructed}) => instructed ?? null, (error) => error.message);
}"""


@pytest.mark.usefixtures("shared_page")
def test_the_item_is_part_of_the_survey(page: Page) -> None:
    assert page.evaluate(READ, edited(dict).decode()) == CHECK.to_json()
    assert page.evaluate(READ, survey(ldp_block()).payload().decode()) is None


@pytest.mark.usefixtures("shared_page")
@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (PRIOR, "would need a prior of their own"),
        (ANCHOR, "an anchor both tell who answers at random: keep one"),
        (_both(PRIOR, ANCHOR), "would need a prior of their own"),
    ],
)
def test_what_may_not_stand_beside_an_item_is_refused_in_the_words_of_python(
    page: Page, edit: Edit, reason: str
) -> None:
    refused = edited(edit)
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(refused)
    assert reason in caught.value.detail
    assert caught.value.detail in page.evaluate(READ, refused.decode())


ANSWER = """async ([link, at, given]) => {
  const {withSeams} = await import("/sdk/testing.js"), {Client} = await import("/sdk/index.js"), results = [];
  for (const [i, strata] of given.entries()) {
    const client = await Client.open(link, withSeams({store: `check-${i}`, spreadMs: 0}, {now: () => at}));
    results.push(await client.answer({affair: "yes"}, {strata}).then(({status}) => [status],
      (error) => [error.code, error.field, error.valid, error.message]));
    client.close();
  }
  return results;
}"""
CHOICES = ("a", "second-of-all", "third")


def test_a_report_says_whether_the_item_was_passed_and_nothing_else(page: Page, wire: Wire) -> None:
    document = checked(survey(ldp_block()))
    given = [{"region": "north", "check": choice} for choice in CHOICES]
    results = page.evaluate(ANSWER, [wire.publish(document), AT, given])
    assert results == [["sent"]] * 3
    reports = [json.loads(body) for body in wire.posted]
    assert [one["strata"] for one in reports] == [
        {"check": result, "region": "north"} for result in ("failed", "passed", "failed")
    ]
    assert {len(body) for body in wire.posted} == {wire.documents["ab" * 16].report_length}
    for body in wire.posted:
        assert not any(f'"{choice}"'.encode() in body for choice in CHOICES)


def test_an_answer_to_the_item_is_needed_and_one_of_its_choices(page: Page, wire: Wire) -> None:
    given = [
        {"region": "north"},
        *({"region": "north", "check": bad} for bad in ("passed", "failed", "canary", 1, None)),
    ]
    results = page.evaluate(ANSWER, [wire.publish(checked(survey(ldp_block()))), AT, given])
    for code, field, valid, message in results:
        assert (code, field, tuple(valid)) == ("unknown_choice", "check", CHOICES)
        assert "canary" not in message
    assert wire.posted == []


FIELDS = "all => all.map(({id}) => id.replace('question-', ''))"


def shown(page: Page, wire: Wire, document: SurveyDocument) -> Page:
    """Show the element on an empty page."""
    wire.pages["/form.html"] = PAGE
    page.goto(f"{wire.origin}/form.html")
    page.evaluate(SHOW, [wire.publish(document), AT])
    page.locator("button[type=submit]").wait_for()
    return page


PREVIEW = """async (envelope) => {
  const {preview} = await import("/sdk/preview.js");
  return [...preview(envelope, ["en"]).querySelectorAll("legend")].map(({textContent}) => textContent);
}"""
WITH_BOXES = checked(asked(AGE, *DRUGS, WORK))


@pytest.mark.parametrize(
    ("document", "order"),
    [
        (checked(survey(ldp_block("a"))), "region a check"),
        (checked(survey(ldp_block("a"), ldp_block("b"))), "region a check b"),
        (checked(survey(*map(ldp_block, "abc"))), "region a b check c"),
        (WITH_BOXES, "region age drugs-beer check work"),
        # A question that is hidden at first counts too: the others do not move when it appears.
        (checked(asked(AGE, WORK, STRESS, *DRUGS)), "region age work check stress drugs-beer"),
        (replace(survey(ldp_block("a"), ldp_block("b")), instructed=CHECK), "a check b"),
    ],
)
def test_the_item_stands_in_the_middle_in_the_form_and_in_its_preview(
    page: Page, wire: Wire, document: SurveyDocument, order: str
) -> None:
    shown(page, wire, document)
    assert " ".join(page.locator("fieldset").evaluate_all(FIELDS)) == order
    visible = page.locator("fieldset:visible legend").all_inner_texts()
    assert page.evaluate(PREVIEW, sealed(document.payload()).decode()) == visible


def test_the_element_asks_for_the_item_and_sends_one_bit(page: Page, wire: Wire) -> None:
    shown(page, wire, checked(survey(*map(ldp_block, "abc"))))
    field = page.locator("#question-check")
    note = "Only whether you chose what it asks for is sent, not randomised"
    assert field.locator(".note").inner_text() == note
    assert (
        page.locator("#question-region .note").inner_text() == "Sent as you give it, not randomised"
    )
    assert page.locator("#question-b .note").count() == 0
    page.get_by_role("progressbar", name="Still to answer: 5 of 5").wait_for()
    for name, choice in (("region", "north"), ("a", "no"), ("c", "no")):
        page.locator(f"#question-{name} input[value={choice}]").check()
    page.locator("button[type=submit]").click()
    # The first missing answer, in the order of the form, gets the focus.
    focused = "document.querySelector('frankly-survey').shadowRoot.activeElement.name"
    assert page.evaluate(focused) == "b"
    page.locator("#question-b input[value=yes]").check()
    page.locator("button[type=submit]").click()
    assert page.evaluate(focused) == "check"
    assert field.get_attribute("aria-invalid") == "true"
    assert findings(page) == []
    page.get_by_role("progressbar", name="Still to answer: 1 of 5").wait_for()
    field.locator("input[value=second-of-all]").check()
    page.locator("button[type=submit]").click()
    page.get_by_role("status").wait_for()
    assert wire.arrived.wait(60)
    (body,) = wire.posted
    assert json.loads(body)["strata"] == {"check": "passed", "region": "north"}
    assert b"second" not in body


def test_the_item_is_asked_beside_what_is_drawn(page: Page, wire: Wire) -> None:
    shown(page, wire, checked(survey(ldp_block(epsilon="1"), form(*TEN, drawn=True))))
    fields = page.locator("fieldset").evaluate_all(FIELDS)
    assert fields[:3] == ["region", "affair", "check"]
    assert len(fields) == 4
    said = page.locator("[part=drawn]").inner_text()
    assert said == "You are asked at most 4 of 13 questions; this device has drawn which."
    for name, choice in zip(fields, ("south", "no", "third", "yes"), strict=True):
        page.locator(f"#question-{name} input[value={choice}]").check()
    page.locator("button[type=submit]").click()
    page.get_by_role("status").wait_for()
    assert wire.arrived.wait(60)
    assert json.loads(wire.posted[0])["strata"] == {"check": "failed", "region": "south"}
