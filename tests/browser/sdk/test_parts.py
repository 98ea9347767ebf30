# SPDX-License-Identifier: Apache-2.0
"""Optional modules of the SDK: most surveys need only the core, and no check passes while a module
is missing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from frankly_protocol.questions import Anchor, Wanted
from frankly_protocol.tokens import TokenRule
from playwright.sync_api import BrowserContext, Page

from tests.browser.sdk.test_trust import Logged
from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.asked import asked
from tests.frankly_protocol.every_kind import documents
from tests.frankly_protocol.samples import NOW, ldp_block, survey

AT = NOW.timestamp() * 1000
LATER = {
    "log.js",
    "rare.js",
    "delta.js",
    "respondents.js",
    "tokens.js",
    "memory.js",
    "agreement.js",
    "kinds.js",
    "sets.js",
}
WORDS = {
    "explain.js",
    "explained_kinds.js",
    "guesses.js",
    "shown.js",
    "texts.js",
    "words.js",
    "words.en.js",
    "element.js",
    "styles.js",
    "words.ar.js",
}
CORE = """async ([link, at]) => {
  const {Client} = await import("/sdk/core.js");
  const {withSeams} = await import("/sdk/testing.js");
  const options = {spreadMs: 0, policy: {cap: "64", maxCeiling: null}};
  window.client = await Client.open(link, withSeams(options, {now: () => at}));
  return typeof client.explain;
}"""


def loaded(wire: Wire) -> set[str]:
    """Return the SDK files that pages have requested."""
    return {path.removeprefix("/sdk/") for path, _ in wire.requests if path.startswith("/sdk/")}


def test_the_core_answers_without_words_and_explains_when_they_come(page: Page, wire: Wire) -> None:
    assert page.evaluate(CORE, [wire.publish(), AT]) == "undefined"
    assert page.evaluate("client.answer({affair: 'yes', marriage: 'good'})")["status"] == "sent"
    assert not loaded(wire) & (LATER | WORDS)
    explanation = page.evaluate(
        """import("/sdk/explain.js").then(({explain}) =>
             String(explain(client.survey, client.level, client.signedBy, "en")))"""
    )
    assert "nothing is sent except what is listed below" in explanation
    page.evaluate(
        program("open"),
        {"link": wire.publish(survey_id="cd" * 16), "at": AT, "options": {"store": "b"}},
    )
    words = {"explain.js", "explained_kinds.js", "guesses.js", "shown.js", "texts.js", "words.js"}
    assert loaded(wire) & (LATER | WORDS) == {*words, "words.en.js"}


BLOCK = "Object.defineProperty(window, 'indexedDB', {get() { throw new DOMException('blocked', 'SecurityError'); }})"
RUN = """([link, at, options, respondent]) => {
  const run = async () => {
    const {Client} = await import("/sdk/core.js");
    const {withSeams} = await import("/sdk/testing.js");
    window.client = await Client.open(link, withSeams({spreadMs: 0, policy: {cap: "64"}, ...options}, {now: () => at}));
    if (respondent) await client.answer({affair: "yes"}, {respondent});
    return null;
  };
  window.ended = false;
  window.done = run().catch(async (error) => {
    const {describe} = await import("/sdk/texts.js");
    return [error.constructor.name, error.code, error.detail, describe(error)];
  }).finally(() => { window.ended = true; });
}"""
WAIT = "done"


def plain(_page: Page, wire: Wire) -> str:
    return wire.publish(survey(ldp_block()))


def rare(_page: Page, wire: Wire) -> str:
    return wire.publish(documents()["dense srlip"])


def rare_sets(_page: Page, wire: Wire) -> str:
    return wire.publish(documents()["subset rldp"])


def of_sets(_page: Page, wire: Wire) -> str:
    return wire.publish(documents()["subset ldp"])


def ways(_page: Page, wire: Wire) -> str:
    return wire.publish(asked())


def figure(_page: Page, wire: Wire) -> str:
    block = ldp_block()
    wanted = replace(block.questions[0], wanted=Wanted("distribution"))
    return wire.publish(survey(replace(block, questions=(wanted,))))


def anchor(_page: Page, wire: Wire) -> str:
    block = ldp_block()
    known = replace(block.questions[0], anchor=Anchor((3, 1), "Census"))
    return wire.publish(survey(replace(block, questions=(known,))))


def form(_page: Page, wire: Wire) -> str:
    return wire.publish(documents()["agreement ldp"])


def for_invited(_page: Page, wire: Wire) -> str:
    return wire.publish(replace(survey(ldp_block()), token=TokenRule("invite")))


def without_pin(_page: Page, wire: Wire) -> str:
    wire.publish(survey(ldp_block()))
    logged = Logged(wire)
    wire.publish(survey(ldp_block()))
    logged.digest = wire.documents["ab" * 16].digest
    logged.log.digests.append(logged.digest)
    logged.serve()
    return logged.link


@dataclass(frozen=True)
class Need:
    """Conditions under which a module is loaded: link, options, and a named respondent or None."""

    link: Callable[[Page, Wire], str]
    options: dict[str, Any] = field(default_factory=dict)
    respondent: str | None = None
    script: str = ""


PARTS: dict[str, tuple[str, Need]] = {
    "srlip": ("rare", Need(rare)),
    "sets": ("rare", Need(rare_sets)),
    "kinds": ("kinds", Need(of_sets)),
    "ways": ("ways", Need(ways)),
    "figure": ("ways", Need(figure)),
    "anchor": ("ways", Need(anchor)),
    "form": ("agreement", Need(form)),
    "a part of a part": ("delta", Need(rare)),
    "respondents": ("respondents", Need(plain, respondent="somebody")),
    "tokens": ("tokens", Need(for_invited)),
    "log": ("log", Need(without_pin)),
    "memory": ("memory", Need(plain, {"allowMemory": True}, script=BLOCK)),
}


HELD = ("srlip", "respondents")  # the others run with --full


def begun(page: Page, link: str, need: Need) -> None:
    page.evaluate(need.script or "0")
    page.evaluate(RUN, [link, AT, need.options, need.respondent])


@pytest.mark.parametrize("name", PARTS)
def test_no_check_passes_while_a_module_is_missing(page: Page, wire: Wire, name: str) -> None:
    part, need = PARTS[name]
    link = need.link(page, wire)
    page.reload()
    page.route(f"**/sdk/{part}.js", lambda route: route.abort())
    begun(page, link, need)
    kind, code, key, message = page.evaluate(WAIT)
    assert (kind, code, key) == ("NetworkError", "network", "no_part")
    assert "a part of the SDK could not be loaded" in message
    assert wire.posted == []
    page.reload()
    page.unroute(f"**/sdk/{part}.js")
    begun(page, link, need)
    assert page.evaluate(WAIT) is None
    assert f"{part}.js" in loaded(wire)
    assert len(wire.posted) == (1 if need.respondent else 0)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in HELD else pytest.mark.full_only) for name in PARTS],
)
def test_a_module_that_never_loads_times_out_after_half_a_minute(
    page: Page, wire: Wire, name: str
) -> None:
    part, need = PARTS[name]
    link = need.link(page, wire)
    page.clock.install()
    page.reload()
    held: list[str] = []
    page.route(f"**/sdk/{part}.js", lambda route: held.append(route.request.url))
    with page.expect_request(f"**/sdk/{part}.js"):
        begun(page, link, need)
    page.clock.run_for(29_000)
    assert page.evaluate("ended") is False
    page.clock.run_for(2_000)
    assert page.evaluate(WAIT)[:3] == ["NetworkError", "limit", "no_part"]
    assert (len(held), wire.posted) == (1, [])


def test_sending_needs_no_file_and_releases_the_lock(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    """The server is overloaded, so it does not serve the SDK's files either."""
    options = {"policy": {"cap": "64"}}
    page.evaluate(RUN, [plain(page, wire), AT, options, None])
    assert page.evaluate(WAIT) is None
    page.evaluate("import('/sdk/texts.js').then(({describe}) => { window.describe = describe; })")
    page.route("**/sdk/**", lambda _route: None)
    wire.steps[:] = ["503"] * 3
    results = page.evaluate(
        """async () => {
          const events = [];
          client.on("*", (event) => events.push(event));
          const receipt = await client.answer({affair: "yes"}, {patienceMs: 0});
          return [receipt, receipt.detail && describe(receipt), events.map(describe)];
        }"""
    )
    busy = "the server cannot take the answer right now; it will be sent again"
    assert results == [{"status": "queued", "code": "http_503", "detail": "busy"}, busy, ["", busy]]
    assert page.evaluate("navigator.locks.query().then(({held}) => held.length)") == 0
    second_tab = context.new_page()
    second_tab.goto(f"{wire.origin}/blank.html")
    second_tab.evaluate(
        RUN, [wire.publish(survey(ldp_block(), survey_id="cd" * 16), "cd" * 16), AT, options, None]
    )
    assert second_tab.evaluate(WAIT) is None  # opening also retries the first survey's report


def test_an_element_without_a_network_shows_an_error(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    page.evaluate(
        """async ([link, at]) => {
          const {FranklySurvey} = await import("/sdk/element.js"), survey = new FranklySurvey();
          const {withSeams} = await import("/sdk/testing.js");
          survey.options = withSeams({}, {now: () => at});
          window.said = new Promise((done) => survey.addEventListener("frankly-error", ({detail}) => done(detail)));
          window.show = () => { survey.setAttribute("link", link); document.querySelector("main").append(survey); };
        }""",
        [wire.publish(), AT],
    )
    context.set_offline(offline=True)
    page.evaluate("show()")
    message = "the server could not be reached; it will be tried again"
    assert page.evaluate("said") == {"code": "network", "detail": message, "field": None}
    assert page.locator("[part=detail]").inner_text() == f"{message} (network)"
    context.set_offline(offline=False)
    page.get_by_role("button").click()
    page.get_by_label("good").wait_for()
