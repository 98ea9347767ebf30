# SPDX-License-Identifier: Apache-2.0
"""Clients and elements with `enabled: false`: no request, no storage, nothing drawn."""

from playwright.sync_api import Page

from tests.browser.sdk.wire import Wire

CLIENT = """async (link) => {
  const {Client} = await import("/sdk/index.js"), told = [];
  const client = await Client.open(link, {enabled: false, onEvent: (event) => told.push(event)});
  const codeOf = async (work) => { try { await work(); return ""; } catch ({code}) { return code; } };
  const needSurvey = ["plan", "budget", "view", "explain", "answered"], refused = {};
  for (const name of needSurvey) refused[name] = await codeOf(() => client[name]());
  refused.questions = await codeOf(() => client.questions);
  const receipt = await client.answer({ affair: "yes" }, {strata: {x: "y"}, token: "z"});
  const rest = [client.enabled, client.survey === undefined, await client.flush(), await client.evidence()];
  client.close();
  const wrong = await codeOf(() => Client.open("https://host/x", {enabled: false}));
  return {told, refused, receipt, rest, wrong, databases: await indexedDB.databases()};
}"""
ELEMENT = """async (link) => {
  const {FranklySurvey} = await import("/sdk/element.js"), element = new FranklySurvey();
  element.options = {enabled: false};
  element.setAttribute("link", link);
  document.querySelector("main").append(element);
  element.lang = "de";
  await new Promise((done) => setTimeout(done, 50));
  return [element.shadowRoot.childElementCount, await indexedDB.databases()];
}"""


def test_a_client_that_is_switched_off_does_nothing(page: Page, wire: Wire) -> None:
    link = wire.publish()
    told = page.evaluate(CLIENT, link)
    survey = next(iter(wire.documents))
    assert set(told["refused"].values()) == {"disabled"}
    assert (told["receipt"]["status"], told["receipt"]["code"]) == ("disabled", "disabled")
    assert told["receipt"]["detail"] == (
        "the app has switched this off: nothing was drawn, stored or sent"
    )
    assert told["rest"] == [False, True, [], []]
    assert told["told"] == [{"name": "disabled", "survey": survey, "code": "", "detail": ""}]
    assert told["wrong"] == "link"
    assert told["databases"] == []
    assert not [path for path, _ in wire.requests if path.startswith("/v1/")]


def test_an_element_that_is_switched_off_shows_nothing(page: Page, wire: Wire) -> None:
    paths: list[str] = []
    page.on("request", lambda request: paths.append(request.url))
    assert page.evaluate(ELEMENT, wire.publish()) == [0, []]
    assert not [path for path, _ in wire.requests if path.startswith("/v1/")]
    assert not [path for path in paths if "words.de" in path]
