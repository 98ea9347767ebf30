# SPDX-License-Identifier: Apache-2.0
"""Every sentence of a summary stands on the page of publishing, and on the respondents' page that it links to."""

import re
from collections.abc import Iterator
from fractions import Fraction

from frankly_protocol.audit import DEVICE_CAP, exp_lower
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.devices import expected_form
from frankly_server.surveys.summary import Summary, summary_of
from playwright.sync_api import Page

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.surveys.random_files import random_file

SURVEYS = 2
_BIDI = re.compile("[\u2066-\u2069\u200e\u200f]")
TEXT = """() => {
  const all = (root) => [...root.childNodes].map((one) => one.nodeType === Node.TEXT_NODE ? one.data
    : ["STYLE", "SCRIPT"].includes(one.tagName) ? ""
    : all(one) + (one.shadowRoot ? all(one.shadowRoot) : "")).join(" ");
  return all(document.body);
}"""


def text_of(page: Page) -> str:
    """Return all text of a page, also what is folded away, without any spaces."""
    return squeezed(page.evaluate(TEXT))


def squeezed(text: str) -> str:
    """Return a text without spaces and marks of direction, which differ between pages."""
    return re.sub(r"\s+", "", _BIDI.sub("", text))


def drafts(desk: Desk) -> Iterator[tuple[str, str]]:
    """Yield ids and names of random drafts that devices with the usual cap accept."""
    seed = found = 0
    while found < SURVEYS:
        seed += 1
        value = random_file(seed) | {"name": f"random-{seed}", "min_reports": 50}
        definition: SurveyDefinition = parse_value(value)
        try:
            survey = desk.services.surveys.apply(definition).survey_id
        except InvalidInput:
            continue
        assert survey is not None
        level = expected_form(definition).report_level
        if level.cost.odds is None or level.cost.odds > exp_lower(Fraction(DEVICE_CAP)):
            continue
        yield survey, f"random-{seed}"
        found += 1


def open_summary(desk: Desk, survey: str) -> str:
    """Open the page of publishing until it has a summary, and return its text.

    A server that is busy says that there is none at the moment.
    """
    for _ in range(60):
        desk.open(f"/admin/surveys/{survey}/publish")
        if not desk.page.get_by_text(re.compile("There is no summary|took longer than")).count():
            break
    return text_of(desk.page)


def require_said(summary: Summary, text: str, where: str) -> None:
    missing = [one for one in summary.read.sentences if squeezed(one) not in text]
    assert missing == [], (where, missing)


def test_the_pages_say_what_the_summary_says(desk: Desk) -> None:
    page, surveys = desk.page, desk.services.surveys
    desk.open("/admin/")
    desk.sign_in("ada@example.org", PASSWORD)
    for n, (survey, name) in enumerate(drafts(desk)):
        address = f"{desk.url}/admin/surveys/{survey}"
        # The draft, as it is designed for the preview.
        (document,) = _shown(page, f"{address}/preview?ask=drawn")
        summary = summary_of(document, 1000)
        require_said(summary, text_of(page), "in the preview")
        require_said(summary, open_summary(desk, survey), "before publishing")
        # The version, whose design may be another, because publishing searches longer.
        link = surveys.publish(name).link
        (document,) = surveys.versions(name)
        summary = summary_of(document, 1000)
        require_said(summary, open_summary(desk, survey), "after publishing")
        if n < 2:
            desk.check(f"publish-summary-{n}", again=n > 0)
        page.goto(link)
        _in_first_language(page, document)
        require_said(summary, text_of(page), "to respondents")
        # What is not said is found.
        page.evaluate(
            "document.querySelector('frankly-survey').shadowRoot.querySelector('[part=promise]').replaceChildren()"
        )
        assert squeezed(summary.read.summary[0]) not in text_of(page)


def _shown(page: Page, address: str) -> Iterator[SurveyDocument]:
    """Open a preview; yield the document that it shows."""
    with page.expect_response(re.compile("/preview/draft")) as response:
        page.goto(address)
    document = SurveyDocument.from_envelope(response.value.json()["envelope"].encode())
    _in_first_language(page, document)
    yield document


def _in_first_language(page: Page, document: SurveyDocument) -> None:
    """Wait for the respondents' page and choose the language of the summary."""
    page.locator("#send").wait_for()
    if len(document.languages) > 1:
        page.locator("#language").select_option(document.languages[0])
    page.locator(f"[part=body][lang='{document.languages[0]}'] #send").wait_for()
