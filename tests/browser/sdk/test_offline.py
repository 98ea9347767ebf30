# SPDX-License-Identifier: Apache-2.0
"""The hosted page without a network: it opens again after one visit, says so, and stores no answer."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from frankly_server.web.hosted import integrity, page_files, service_worker
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings, strings
from tests.browser.sdk.english import english_on
from tests.browser.sdk.site import Site, hosted, visit
from tests.browser.sdk.test_hosted import DRAWN
from tests.browser.sdk.test_hosted_files import MOST_REQUESTS

KEPT = """async (words) => {
  const wanted = [location.pathname, "/sdk/v1/page/app.js", ...words.map((one) => `/sdk/v1/page/words.${one}.js`)];
  for (let left = 400; left; left--) {
    const found = await Promise.all(wanted.map((one) => caches.match(one, {ignoreVary: true})));
    const all = await navigator.serviceWorker.getRegistrations();
    if (found.every(Boolean) && all.filter(({active}) => active?.state === "activated").length === 2) return true;
    await new Promise((done) => setTimeout(done, 25));
  }
  return false;
}"""
STORED = """async () => {
  const said = [localStorage, sessionStorage].map((one) => JSON.stringify({...one}));
  said.push(document.cookie, history.state, location.href);
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const {url} of await cache.keys()) said.push(url, await (await cache.match(url, {ignoreVary: true})).text());
  }
  const rows = {}, result = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
  for (const {name} of await indexedDB.databases()) {
    const db = await result(indexedDB.open(name));
    const tx = db.transaction([...db.objectStoreNames]);
    for (const store of db.objectStoreNames) rows[store] = await result(tx.objectStore(store).getAll());
    db.close();
  }
  const text = (key, value) => {
    if (value instanceof Uint8Array) return new TextDecoder().decode(value);
    return typeof value === "bigint" ? String(value) : value;
  };
  return [said.map(String), JSON.parse(JSON.stringify(rows, text))];
}"""
KEYS = """caches.keys().then(async (names) => {
  const all = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  return all.flat().map(({url}) => url);
})"""
OLDER = "caches.open('frankly-page 0').then((one) => one.put('/s/' + '0'.repeat(32), new Response('old')))"
REGISTER = """async () => {
  const policy = trustedTypes.createPolicy("frankly-page", {createScriptURL: () => "/sdk/v1/page/service.js"});
  const {installing} = await navigator.serviceWorker.register(policy.createScriptURL(""), {scope: "/s/"});
  while (!["activated", "redundant"].includes(installing.state)) await new Promise((done) => setTimeout(done, 25));
  return installing.state;
}"""
SEND = "button[type=submit]"


def kept(page: Page, *words: str) -> None:
    """Wait until the open page can be opened again offline."""
    page.locator(SEND).wait_for()
    assert page.evaluate(KEPT, words)


def until(page: Page, expression: str) -> None:
    """Wait for an expression, or what it promises, to be true; the page's policy forbids `wait_for_function`."""
    assert page.evaluate(
        f"""async () => {{
          for (let left = 400; left; left--) {{
            if (await ({expression})) return true;
            await new Promise((done) => setTimeout(done, 25));
          }}
        }}"""
    ), expression


def fill_in(page: Page) -> None:
    for choice in ("yes", "daily", "south"):
        page.locator(f"input[value={choice}]").check()


@contextmanager
def changing(home: Path, **more: Any) -> Iterator[tuple[Site, dict[str, Callable[..., Any]]]]:
    """A site, and replies by the end of a path that replace its own."""
    instead: dict[str, Callable[..., Any]] = {}

    def around(app: Any) -> Any:
        def serve(environ: Any, start: Any) -> Any:
            found = [one for end, one in instead.items() if environ["PATH_INFO"].endswith(end)]
            return (found[0] if found else app)(environ, start)

        return serve

    with hosted(home, around=around, **more) as site:
        yield site, instead


def test_the_page_opens_without_its_server(browser: Browser, tmp_path: Path, full: bool) -> None:
    """Its port is closed, so no request of page, worker or service worker has a reply."""
    with ExitStack() as stack:
        site = stack.enter_context(hosted(tmp_path))
        page = visit(browser, site.link)
        kept(page)
    # The browser's HTTP cache has the files for five minutes.
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    with pytest.raises(requests.ConnectionError):
        requests.get(site.origin, timeout=5)
    told = strings("en")["offline"]
    for _ in range(1000 if full else 20):
        page.reload()
        page.locator(SEND).wait_for()
        page.get_by_role("status").get_by_text(told).wait_for()
    assert page.title() == "Health and habits"
    assert page.evaluate("violations") == []
    page.goto("about:blank")
    page.goto(site.link)  # without the help of a reload
    page.locator(SEND).wait_for()
    page.context.close()


def test_an_answer_without_a_network(browser: Browser, site: Site) -> None:
    """Nothing that was entered is stored; then only the report, which is delivered once."""
    page = visit(browser, site.link)
    kept(page)
    page.context.set_offline(offline=True)
    page.reload()
    page.locator(SEND).wait_for()
    before, rows = page.evaluate(STORED)
    fill_in(page)
    assert page.evaluate(STORED) == [before, rows]
    assert rows["answers"] == rows["plans"] == []
    assert findings(page) == []
    page.locator(SEND).click()
    page.get_by_text(strings("en")["queued"]).wait_for()
    assert page.locator("#offline").inner_text() == ""
    after, rows = page.evaluate(STORED)
    assert after == before
    (answer,) = rows.pop("answers")
    report = json.loads(answer["body"])
    assert report["strata"] == {"region": "south"}
    assert answer["state"] == "sealed"
    assert not {"yes", "daily"} & set(json.dumps(answer).replace('\\"', '"').split('"'))
    assert site.services.intake.accepted(site.survey) == 0
    page.context.set_offline(offline=False)
    page.get_by_text(strings("en")["sent"]).wait_for()
    page.reload()
    page.get_by_text(strings("en")["before"]).wait_for()
    assert site.services.intake.accepted(site.survey) == 1
    page.context.close()


def test_the_page_says_at_once_that_it_is_offline(browser: Browser, site: Site) -> None:
    page = visit(browser, site.link)
    page.locator(SEND).wait_for()
    said = page.locator("#offline")
    for _ in range(2):
        page.context.set_offline(offline=True)
        page.get_by_text(strings("en")["offline"]).wait_for(timeout=2000)
        page.context.set_offline(offline=False)
        until(page, "document.querySelector('#offline').textContent === ''")
    page.context.set_offline(offline=True)
    page.locator("#language").select_option("ar")
    page.get_by_text("الصحة والعادات").first.wait_for()
    assert said.get_attribute("role") == "status"
    page.context.close()
    page = visit(browser, "about:blank")
    page.route("**/document*", lambda route: route.abort())
    page.goto(site.link)  # a survey that cannot be opened has its own message
    page.get_by_role("alert").wait_for()
    page.context.set_offline(offline=True)
    assert page.locator("#offline").inner_text() == ""
    page.context.close()


def test_a_server_that_cannot_be_reached_is_asked_again(browser: Browser, site: Site) -> None:
    """The browser has a network, and says so."""
    page = visit(browser, site.link)
    page.locator(SEND).wait_for()
    page.clock.install()
    for path in ("**/document*", "**/v1/keys/chain"):
        page.route(path, lambda route: route.abort())
    page.reload()
    page.get_by_text(strings("en")["offline"]).wait_for()
    page.unroute("**/v1/keys/chain")
    page.clock.fast_forward(15_000)
    until(page, "document.querySelector('#offline').textContent === ''")
    page.context.close()


def test_what_the_device_has_drawn_is_asked_offline(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as stack:
        site = stack.enter_context(hosted(tmp_path, text=DRAWN, languages=("en",)))
        page = visit(browser, site.link)
        kept(page)
        (asked,) = page.locator("fieldset").evaluate_all("all => all.map(({id}) => id)")
    page.reload()
    page.locator(SEND).wait_for()
    assert page.locator("fieldset").evaluate_all("all => all.map(({id}) => id)") == [asked]
    page.locator("input[value=yes]").check()
    page.locator(SEND).click()
    page.get_by_text(strings("en")["queued"]).wait_for()
    page.context.close()


def test_a_changed_file_is_not_kept_and_does_not_run(browser: Browser, tmp_path: Path) -> None:
    """The pinned one is kept if it came first, and then opens the page offline."""
    with changing(tmp_path) as (site, instead):
        forged = b"globalThis.forged = true;" + page_files()["app.js"]["identity"]

        def serve(_environ: Any, start: Any) -> list[bytes]:
            start("200 OK", [("Content-Type", "text/javascript"), ("Cache-Control", "no-store")])
            return [forged]

        page = visit(browser, site.link)
        kept(page)
        instead["/app.js"] = serve
        text = "caches.match('/sdk/v1/page/app.js', {ignoreVary: true}).then((one) => one.text())"
        for is_offline in (False, True):
            page.context.set_offline(offline=is_offline)
            page.reload()
            page.locator(SEND).wait_for()
            assert integrity(page.evaluate(text).encode()) == integrity(
                page_files()["app.js"]["identity"]
            )
            assert page.evaluate("globalThis.forged") is None
        page.context.close()
        page = visit(browser, site.link)  # a device without the pinned one
        page.get_by_role("alert").wait_for()
        assert page.evaluate(REGISTER) == "redundant"
        assert not any(one.endswith("/app.js") for one in page.evaluate(KEYS))
        page.context.close()


def test_a_closed_survey_is_forgotten(browser: Browser, tmp_path: Path) -> None:
    with changing(tmp_path) as (site, instead):
        page = visit(browser, site.link)
        kept(page)

        def broken(_environ: Any, start: Any) -> list[bytes]:
            start("503 Service Unavailable", [("Content-Type", "text/html")])
            return [b"<p>Busy"]

        instead[f"/s/{site.survey}"] = broken
        page.reload()
        page.get_by_text("Busy").wait_for()  # as the server says, not as it said
        assert f"{site.origin}/s/{site.survey}" in page.evaluate(KEYS)
        instead.clear()
        site.services.lifecycle.move(site.survey, "close")
        page.reload()
        page.get_by_role("heading").wait_for()
        until(page, f"{KEYS}.then((all) => !all.some((one) => one.includes('/s/')))")
        page.context.set_offline(offline=True)
        with pytest.raises(Exception, match="ERR_"):
            page.reload()
        page.context.close()


def test_what_is_kept(browser: Browser, site: Site) -> None:
    """The page's own files and one language; no fragment, key, document, report or earlier release."""
    page = visit(browser, f"{site.link}&id=somebody", language="ar")
    page.evaluate(OLDER)
    kept(page, "ar")
    page.reload()
    page.locator(SEND).wait_for()
    files = {
        f"{site.origin}/sdk/v1/page/{name}"
        for name in page_files()
        if name != "service.js" and ("words." not in name or name == "words.ar.js")
    }
    assert set(page.evaluate(KEYS)) == files | {f"{site.origin}/s/{site.survey}"}
    assert len(page.evaluate("caches.keys()")) == 1
    policies = page.evaluate(
        """Promise.all(['/sdk/v1/page/verifier.js', location.pathname].map((one) =>
             caches.match(one, {ignoreVary: true}).then(({headers}) => headers.get('Content-Security-Policy'))))"""
    )
    assert all("default-src 'none'" in policy for policy in policies)
    assert page.evaluate("violations") == []
    assert page.said == []  # type: ignore[attr-defined]
    page.context.set_offline(offline=True)
    page.reload()
    page.get_by_text(strings("ar")["offline"]).wait_for()
    assert english_on(page, "ar") == []
    assert page.locator("#offline").get_attribute("dir") == "rtl"
    assert findings(page) == []
    page.context.close()


def test_the_form_comes_first(browser: Browser, site: Site) -> None:
    """The first visit makes no further request before the form is open, and for a second afterwards."""
    page = visit(browser, "about:blank")
    page.add_init_script(
        "const {setTimeout: own} = window; window.setTimeout = (run, ms, ...given) =>"
        " ms === 1000 ? void (window.later = run) : own(run, ms, ...given)"
    )
    site.requested.clear()
    page.goto(site.link)
    until(page, "globalThis.later")
    page.locator(SEND).wait_for()
    page.wait_for_timeout(200)
    assert len(site.requested) == len(set(site.requested)) <= MOST_REQUESTS, site.requested
    page.evaluate("later()")
    kept(page)
    again = [path for path in site.requested if site.requested.count(path) > 1]
    assert set(again) == {
        f"/s/{site.survey}",
        "/sdk/v1/page/service.js",
    }  # the rest is in the HTTP cache
    page.context.close()


def test_the_service_worker_as_it_is_served(site: Site) -> None:
    reply = requests.get(f"{site.origin}/sdk/v1/page/service.js", timeout=60)
    assert reply.content == service_worker(page_files())["identity"]
    assert reply.headers["Service-Worker-Allowed"] == "/s"
    assert reply.headers["Content-Security-Policy"] == "default-src 'none'; connect-src 'self'"
    assert reply.headers["Cache-Control"] == "no-cache"
    changed = page_files() | {"app.js": {"identity": b"0;"}}
    assert service_worker(changed)["identity"] != reply.content
    assert b"service.js" not in reply.content.partition(b"\n")[0]


def test_nothing_is_kept_where_there_are_no_service_workers(browser: Browser, site: Site) -> None:
    """Or where the browser is told to save data; the page is the same."""
    pages = {}
    for fault in (
        "delete Navigator.prototype.serviceWorker",
        "ServiceWorkerContainer.prototype.register = async () => { throw new DOMException('no', 'SecurityError'); }",
        "Object.defineProperty(NetworkInformation.prototype, 'saveData', {get: () => true})",
    ):
        page = pages[fault] = visit(browser, "about:blank")
        page.add_init_script(fault)
        page.goto(site.link)
        page.locator(SEND).wait_for()
    page.wait_for_timeout(1500)
    for fault, page in pages.items():
        assert page.evaluate("caches.keys()") == [], fault
        assert page.said == []  # type: ignore[attr-defined]
        assert page.locator("#offline").inner_text() == ""
        page.context.close()
