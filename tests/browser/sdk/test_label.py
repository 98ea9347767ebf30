# SPDX-License-Identifier: Apache-2.0
"""The label on a page: its picture, the trial on the device, and what was sent, in words and as bytes."""

import json
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from frankly_server.surveys.page_definition import logo_text
from frankly_server.web import page_look
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings, strings
from tests.browser.sdk.site import SURVEY, Site, hosted, visit
from tests.browser.sdk.test_hosted import DRAWN
from tests.frankly_protocol.audit.definitions import table
from tests.frankly_sdk.labels import is_unknown
from tests.frankly_sdk.told import Told
from tests.frankly_server.samples import stored
from tests.pixels import PNG
from tests.reading import grade

ENGLISH = strings("en")
FITTED = """async ([payloads, symbols]) => {
  const names = ["canonical", "documents", "explained_kinds"];
  const [canonical, documents, {fitted}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  return Promise.all(payloads.map(async (text, i) => {
    const bytes = canonical.bytesOf(text), survey = await documents.readSurvey(bytes, await canonical.digestOf(bytes));
    const shown = (one) => (one ? [one.answers, one.share.join("/")] : null);
    return survey.blocks.map((block, b) => symbols[i][b].map((y) => fitted(block, y).map(shown)));
  }));
}"""


def fitting(told: Told, i: int, column: list[Fraction]) -> list[list[Any] | None]:
    """Return the choices that a symbol of block i fits, for each question, and their share, by enumeration.

    There are no choices if it says nothing; None stands for what is known only together with other
    answers, and for what the SDK does not compute.
    """
    block, sizes = told.document.blocks[i], told.case.shape.questions[i]
    if is_unknown(block):
        return [None] * len(sizes)
    truths, found = list(product(*map(range, sizes))), list[list[Any] | None]()
    law = dict(zip(truths, column, strict=True))
    for q, size in enumerate(sizes):
        likely = [sum(p for x, p in law.items() if x[q] == a) for a in range(size)]
        best = [a for a in range(size) if likely[a] == max(likely)]
        if len(best) < size:
            found.append([best, sum(likely[a] for a in best) / sum(law.values())])
        elif all(p == law[(*x[:q], 0, *x[q + 1 :])] for x, p in law.items()):
            found.append([[], 1])
        else:
            found.append(None)
    return found


@pytest.mark.usefixtures("shared_page")
def test_a_symbol_fits_the_answers_that_make_it_most_likely(page: Page) -> None:
    cases = [Told.of(seed) for seed in range(60)]
    laws = [
        [dict(islice(table(mechanism).items(), 40)) for mechanism in told.mechanisms]
        for told in cases
    ]
    symbols = [
        [[mechanism.symbol_json(y) for y in law] for mechanism, law in zip(told.mechanisms, own, strict=True)]  # type: ignore[arg-type]
        for told, own in zip(cases, laws, strict=True)
    ]  # fmt: skip
    payloads = [told.document.payload().decode() for told in cases]
    for told, own, found in zip(
        cases, laws, page.evaluate(FITTED, [payloads, symbols]), strict=True
    ):
        for i, law in enumerate(own):
            expected = [fitting(told, i, list(column)) for column in law.values()]
            shown = [
                [one and [one[0], Fraction(one[1])] for one in of_symbol] for of_symbol in found[i]
            ]
            assert shown == expected, told.document.blocks[i].mechanism


def first_words(page: Page) -> str:
    """Return the page's own words that are visible before the first question."""
    parts = page.locator("[part=promise], [part=label], [part=explanation]").all_inner_texts()
    return "\n".join(parts).replace("Have you smoked in the last 30 days?", "")


def test_before_the_first_question_there_is_little_to_read(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link, 390)
    page.locator("button[type=submit]").wait_for()
    summary = page.locator("[part=promise]").inner_text()
    assert len(summary.split()) <= 90
    assert grade(summary) <= 6
    assert len(first_words(page).split()) <= 160
    assert grade(first_words(page)) <= 6
    assert page.locator("[part=picture]").all_inner_texts() == [
        "100 people who answer like you: 73",
        "100 people with another answer: 27",
    ]
    counts = page.locator("[part=picture]").evaluate_all(
        "all => all.map((one) => [one.querySelectorAll('.full').length, one.querySelectorAll('circle').length])"
    )
    assert counts == [[73, 100], [27, 100]]
    page.context.close()


# Random bits that are all 0 or all 1: the device's draw is then known.
BITS = "bits => { crypto.getRandomValues = (array) => array.fill(bits); }"
STORED = """async () => {
  const all = [];
  for (const {name} of await indexedDB.databases()) {
    const done = (ask) => new Promise((found) => { ask.onsuccess = () => found(ask.result); });
    const db = await done(indexedDB.open(name));
    for (const store of db.objectStoreNames)
      all.push(JSON.stringify(await done(db.transaction(store).objectStore(store).getAll())));
    db.close();
  }
  return [all, {...localStorage}, {...sessionStorage}, document.cookie, location.href];
}"""


def try_it(page: Page, question: str, answer: str) -> list[str]:
    """Draw an answer in the trial; return what is shown."""
    page.get_by_label(ENGLISH["try_question"], exact=True).select_option(label=question)
    page.get_by_label(ENGLISH["try_answer"], exact=True).select_option(label=answer)
    page.get_by_role("button", name=ENGLISH["draw"]).click()
    return page.locator(".draws li").all_inner_texts()  # such as 12 × Yes


def test_a_trial_is_drawn_on_the_device_and_neither_stored_nor_sent(
    browser: Browser, site: Site
) -> None:
    page = visit(browser, site.link)
    page.locator("button[type=submit]").wait_for()
    page.wait_for_load_state("networkidle")
    before, requests = page.evaluate(STORED), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.locator("details.trial summary").click()
    assert page.get_by_text(ENGLISH["trial"]).is_visible()
    page.get_by_role("button", name=ENGLISH["draw"]).click()  # nothing is chosen yet
    assert page.locator(".draws").count() == 0
    assert page.locator("frankly-survey").get_by_role("status").inner_text() == ENGLISH["choose"]
    smoked = "Have you smoked in the last 30 days?"
    for bits, drawn in ((0, "No"), (2**32 - 1, "Yes")):  # symbols are in the order of the choices
        page.evaluate(BITS, bits)
        for answer in ("No", "Yes"):
            assert try_it(page, smoked, answer) == [f"20 × fits {drawn}"]
            full = page.locator(".draws circle.full").count()
            assert full == (20 if drawn == answer else 0)
    assert findings(page) == []
    assert requests == []
    assert page.evaluate(STORED) == before
    assert page.locator("form input:checked").count() == 0
    assert page.evaluate("violations") == []
    page.context.close()


def answer(page: Page) -> None:
    for choice in ("yes", "daily", "south"):
        page.locator(f"input[value={choice}]").click()
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you. Your randomised answer has arrived").wait_for()


def test_what_was_sent_is_shown_once_in_words_and_as_bytes(
    browser: Browser, tmp_path: Path
) -> None:
    with hosted(tmp_path) as site:
        page, bodies = visit(browser, site.link, 390), list[str]()
        page.on(
            "request",
            lambda request: (
                bodies.append(request.post_data or "") if request.method == "POST" else None
            ),
        )
        answer(page)
        (body,) = bodies
        page.locator("[part=sent] summary").click()
        assert page.locator("[part=sent] pre").inner_text() == body.rstrip()
        assert page.locator("[part=sent] summary").inner_text() == f"As bytes ({len(body)})"
        said, sent = page.locator("[part=sent]").inner_text(), json.loads(body)
        with site.services.database.reading("test") as tx:
            (report,) = stored(tx, site.survey)
        assert list(report.symbols) == sent["y"]
        labels = [("No", "Yes"), ("Never", "About every week", "Nearly every day")]
        smoked, drinks = (own[y] for own, y in zip(labels, sent["y"], strict=True))
        assert page.locator("[part=sent] li").all_inner_texts() == [
            "“Where do you live?”: In the south, just as you gave it.",
            f"“Have you smoked in the last 30 days?”: what was sent fits {smoked}. Of 100 people who send this, about "
            "27 have another answer. This counts all answers as equally common.",
            f"“How often do you drink alcohol?”: what was sent fits {drinks}. Of 100 people who send this, about "
            "42 have another answer. This counts all answers as equally common.",
        ]
        host = site.origin.removeprefix("http://")
        assert (
            f"Those who run this survey see results at {host}, each about at least 2 people together."
            in said
        )
        assert findings(page) == []
        assert page.evaluate("violations") == []
        page.reload()
        page.get_by_text("This device has answered already").wait_for()
        assert page.locator("[part=sent]").count() == 0
        page.context.close()


def test_what_is_sealed_is_shown_only_when_it_has_arrived(browser: Browser, tmp_path: Path) -> None:
    with hosted(tmp_path, text=DRAWN, languages=("en",)) as site:
        page = visit(browser, "about:blank", 390)
        page.clock.install()
        page.goto(site.link)
        page.locator("input[value=yes]").click()
        page.locator("button[type=submit]").click()
        page.get_by_text("It is sent while this page is open").wait_for()
        assert page.locator("[part=sent]").count() == 0
        page.clock.fast_forward(31_000)  # the report leaves at a random moment within half a minute
        page.locator("[part=sent]").wait_for()
        lines = page.locator("[part=sent] li").all_inner_texts()
        assert len(lines) == 6
        assert sum(line.endswith("nothing was sent about it.") for line in lines) == 5
        page.context.close()


LOOK = f'page: {{{{accent: "#ffe000", logo: "{logo_text(PNG)}"}}}}\n'


def test_the_colour_and_the_logo_of_a_survey_can_be_read(browser: Browser, tmp_path: Path) -> None:
    with hosted(tmp_path, text=SURVEY + LOOK) as site:
        for scheme, shade in zip(("light", "dark"), page_look.shades("#ffe000"), strict=True):
            page = visit(browser, site.link, 320, scheme)
            page.locator("button[type=submit]").wait_for()
            page.locator("#details").click()
            colour = page.locator("button[type=submit]").evaluate(
                "one => getComputedStyle(one).backgroundColor"
            )
            parts = [int(shade[i : i + 2], 16) for i in (1, 3, 5)]
            assert colour == f"rgb({', '.join(map(str, parts))})"
            assert page.locator("header img").evaluate("one => one.naturalWidth") == 96
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert findings(page) == []
            assert page.evaluate("violations") == []
            page.context.close()


def test_the_page_prints_everything_but_its_controls(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    page.locator("button[type=submit]").wait_for()
    page.emulate_media(media="print")
    for part in (".trial", ".progress", ".languages", "button[type=submit]"):
        assert page.locator(f"frankly-survey {part}").first.is_hidden()
    for part in ("[part=promise]", "[part=picture]", "[part=explanation] .words", "fieldset"):
        box = page.locator(f"frankly-survey {part}").first.bounding_box()
        assert box is not None
        assert box["height"] > 20, part
    page.context.close()
