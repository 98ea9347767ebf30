# SPDX-License-Identifier: Apache-2.0
"""What a page loads: the core alone for most surveys, a part more for some; nothing passes while a part is missing."""

import pytest
from playwright.sync_api import Page

from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.every_kind import documents
from tests.frankly_protocol.samples import NOW

AT = NOW.timestamp() * 1000
LATER = {"log.js", "rare.js", "delta.js", "rotation.js", "problems.js", "respondents.js", "tokens.js", "memory.js"}
WORDS = {"explain.js", "guesses.js", "shown.js", "texts.js", "words.js", "element.js", "styles.js", "words.ar.js"}
CORE = """async ([link, at]) => {
  const {Client} = await import("/sdk/core.js");
  window.client = await Client.open(link, {now: () => at, spreadMs: 0, policy: {cap: "64", maxCeiling: null}});
  return typeof client.explain;
}"""


def loaded(wire: Wire) -> set[str]:
    """The SDK's files that a page has asked for."""
    return {path.removeprefix("/sdk/") for path, _ in wire.asked if path.startswith("/sdk/")}


def test_the_core_answers_without_words_and_explains_when_they_come(page: Page, wire: Wire) -> None:
    assert page.evaluate(CORE, [wire.publish(), AT]) == "undefined"
    assert page.evaluate("client.answer({affair: 'yes', marriage: 'good'})")["status"] == "sent"
    assert not loaded(wire) & (LATER | WORDS)
    said = page.evaluate(
        "import('/sdk/explain.js').then(({explain}) => String(explain(client.survey, client.signedBy, 'en')))"
    )
    assert "only what is listed below leaves it" in said
    page.evaluate(program("open"), {"link": wire.publish(survey_id="cd" * 16), "at": AT, "options": {"store": "b"}})
    assert loaded(wire) & (LATER | WORDS) == {"explain.js", "guesses.js", "shown.js", "texts.js"}


RARE = ["dense srlip", "subset rldp"]


@pytest.mark.parametrize("name", RARE)
def test_a_notion_whose_part_cannot_be_loaded_is_never_taken_on_trust(page: Page, wire: Wire, name: str) -> None:
    link = wire.publish(documents()[name])
    page.route("**/sdk/rare.js", lambda route: route.abort())
    opened = """([code, given]) => (0, eval)(code)(given).then(() => null, async (error) => {
      const {describe} = await import("/sdk/texts.js");
      return [error.code, error.detail, describe(error)];
    })"""
    code, key, words = page.evaluate(opened, [CORE, [link, AT]])
    assert (code, key) == ("network", "no_part")
    assert "a part of the SDK could not be loaded" in words
    page.reload()
    page.unroute("**/sdk/rare.js")
    assert page.evaluate(opened, [CORE, [link, AT]]) is None
    assert "rare.js" in loaded(wire)
