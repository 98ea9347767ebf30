# SPDX-License-Identifier: Apache-2.0
"""Pages that embed the SDK: a plain page, a Flask app, the React component of the docs; files that
were tampered with."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from frankly_server.web.hosted import files, hosted_page, import_map, integrity, page_files
from playwright.sync_api import Browser, BrowserContext, Page
from werkzeug.serving import make_server

from examples.flask_page.app import create_app
from examples.plain_page.__main__ import serve
from tests.browser.sdk.site import Site
from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.samples import NOW, keys_document, sealed_keys
from tests.threads import listening


def fill_in(page: Page) -> None:
    for name in ("In the south", "Yes", "Never"):
        page.get_by_label(name).check()
    page.get_by_role("button").click()


def test_the_plain_page_embeds_the_sdk(context: BrowserContext, site: Site) -> None:
    with listening(serve()) as address:
        page = context.new_page()
        page.goto(f"{address}/?link={quote(site.link, safe='')}")
        fill_in(page)
        page.get_by_text("The page was told that a randomised answer arrived").wait_for()
        assert page.evaluate("violations") == []


def test_a_flask_apps_page_serves_its_own_sdk_files_and_keys(
    context: BrowserContext, site: Site
) -> None:
    keys = requests.get(f"{site.origin}/v1/keys", timeout=60).content
    app = create_app(site.link, keys)
    with listening(make_server("127.0.0.1", 0, app, threaded=True)) as address:
        page, requested = context.new_page(), []
        page.on("request", lambda request: requested.append(request.url))
        page.goto(address)
        fill_in(page)
        page.get_by_text("knows that you took part").wait_for()
        assert page.evaluate("violations") == []
    to_the_server = {
        url.removeprefix(site.origin).partition("?")[0]
        for url in requested
        if url.startswith(site.origin)
    }
    home = f"/v1/surveys/{site.survey}"
    assert to_the_server <= {"/v1/keys/chain", f"{home}/document", f"{home}/reports"}
    assert f"{home}/reports" in to_the_server


def test_a_flask_apps_page_accepts_only_its_own_keys(context: BrowserContext, site: Site) -> None:
    app = create_app(site.link, sealed_keys(keys_document()))
    with listening(make_server("127.0.0.1", 0, app, threaded=True)) as address:
        page = context.new_page()
        page.goto(address)
        page.get_by_role("alert").wait_for()
        assert page.locator("[part=detail]").inner_text().endswith("(document_keys)")


def snippets(root: Path, language: str, name: str = "browser") -> list[str]:
    """Return the code blocks of a page of docs/ in a language."""
    page = (root / "docs" / f"{name}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)```", page, re.DOTALL | re.MULTILINE)


def snippet(root: Path, start: str) -> str:
    """Return the JavaScript block that begins with `start`."""
    (block,) = (text for text in snippets(root, "js") if text.startswith(start))
    return block


# Arguments in the order of @noble/ed25519.
NOBLE = b"""export const verifyAsync = async (signature, message, key) => {
  const known = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  return crypto.subtle.verify("Ed25519", known, signature, message);
};"""
MAP = {
    "@frankly/sdk": "/sdk/index.js",
    "@frankly/sdk/element": "/sdk/element.js",
    "@noble/ed25519": "/noble.js",
}


def with_map(wire: Wire, page: Page, **modules: bytes) -> None:
    """Open a page on the test server's origin, with an import map for the imports in the docs."""
    imports = json.dumps({"imports": MAP | {"react": "/react.js"}})
    wire.pages["/docs.html"] = (
        f"<!doctype html><html lang=en><title>A</title><script type=importmap>{imports}</script><main></main>".encode()
    )
    wire.pages |= {f"/{name}.js": content for name, content in modules.items()}
    page.goto(f"{wire.origin}/docs.html")


def test_the_client_of_the_docs(
    root: Path, context: BrowserContext, wire: Wire, site: Site
) -> None:
    first, migration = snippet(root, "import { Client }"), snippet(root, "import * as ed25519")
    head, body = first.split("\n", 1)
    run = f"{head}\nexport async function run(link, shippedKeys, show) {{\n{body}\nreturn receipt.status; }}"
    head, body = migration.split("\n", 1)
    old = f"{head}\nimport {{ Client }} from '@frankly/sdk';\nexport const open = (link) =>\n{body}"
    page = context.new_page()
    with_map(wire, page, first=run.encode(), other=old.encode(), noble=NOBLE)
    assert page.evaluate(
        "link => import('/other.js').then(({open}) => open(link)).then((c) => c.trust.pinned)",
        site.link,
    )
    keys = list(requests.get(f"{site.origin}/v1/keys", timeout=60).content)
    result = page.evaluate(
        """async ([link, keys]) => {
          const {run} = await import("/first.js"), shown = [];
          return [await run(link, new Uint8Array(keys), (words) => shown.push(String(words))), shown];
        }""",
        [site.link, keys],
    )
    assert result[0] == "sent"
    assert "Have you smoked in the last 30 days?" in result[1][0]


def test_the_element_of_the_docs(
    root: Path, context: BrowserContext, wire: Wire, site: Site
) -> None:
    html = (
        snippets(root, "html")[0]
        .replace("https://host/s/ID#sha256=…", site.link)
        .replace("/frankly/", "/sdk/")
    )
    wire.pages["/element.html"] = (
        f"<!doctype html><html lang=en><title>A</title><main>{html}</main>".encode()
    )
    page = context.new_page()
    page.goto(f"{wire.origin}/element.html")
    fill_in(page)
    page.get_by_role("status").get_by_text("Thank you").wait_for()


def test_a_host_of_the_docs_saves_states(
    root: Path, context: BrowserContext, wire: Wire, site: Site
) -> None:
    [html], [js] = snippets(root, "html", "hosts"), snippets(root, "js", "hosts")
    html = html.replace("https://ask.example.org/s/ID#sha256=…", site.link)
    wire.pages["/host.js"] = js.encode()
    wire.pages["/host.html"] = (
        "<!doctype html><html lang=en><title>A</title><script>window.saved = [];"
        "const save = (one) => saved.push(one)</script>"
        f"<main>{html.replace('/frankly/', '/sdk/')}</main><script src=/host.js></script>"
    ).encode()
    page = context.new_page()
    page.goto(f"{wire.origin}/host.html")
    fill_in(page)
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert page.evaluate("saved") == [
        {"survey": site.survey, "state": "sealed", "code": ""},
        {"survey": site.survey, "state": "sent", "code": "accepted"},
    ]


OPTIONS_FIRST = """async ([link, keys, snippet]) => {
  window.failed = [];
  addEventListener("frankly-error", ({detail}) => failed.push(detail.code));
  const element = document.createElement("frankly-survey");
  document.querySelector("main").append(element);
  const {run} = await import(snippet);
  await new Promise((done) => setTimeout(done, 50));
  window.shown = element.shadowRoot?.childElementCount;
  await run(link, new Uint8Array(keys));
}"""


def test_an_element_without_a_link_waits_for_options_and_uses_only_its_keys(
    root: Path, context: BrowserContext, wire: Wire, site: Site
) -> None:
    head, body = snippet(root, 'import "@frankly/sdk/element"').split("\n", 1)
    wait = "await new Promise((done) => setTimeout(done, 100));"
    run = f"{head}\nexport async function run(link, shippedKeys) {{\n{wait}\n{body}\n}}"
    server_keys = requests.get(f"{site.origin}/v1/keys", timeout=60).content
    for keys, store in ((sealed_keys(keys_document()), "false"), (server_keys, "true")):
        page = context.new_page()
        with_map(wire, page, options=run.replace("keys: ", f"store: '{store}', keys: ").encode())
        page.evaluate(OPTIONS_FIRST, [site.link, list(keys), "/options.js"])
        assert page.evaluate("shown") == 0
        page.locator("[part=detail], form").wait_for()
        assert page.evaluate("failed") == (["document_keys"] if store == "false" else [])
        page.close()


UPGRADE = """async ([link, at]) => {
  const element = document.createElement("frankly-survey");
  const {withSeams} = await import("/sdk/testing.js");
  element.options = withSeams({store: "upgraded"}, {now: () => at});
  element.strings = {en: {send: "Throw the dice"}};
  element.token = "given early";
  element.setAttribute("link", link);
  document.querySelector("main").append(element);
  await import("/sdk/element.js");
  return [Object.hasOwn(element, "token"), element.getAttribute("token"), element.token];
}"""


def test_properties_set_before_the_module_loads_are_used(page: Page, wire: Wire) -> None:
    values = page.evaluate(UPGRADE, [wire.publish(), NOW.timestamp() * 1000])
    assert values == [False, "given early", "given early"]
    page.get_by_role(
        "button", name="Throw the dice"
    ).wait_for()  # the survey is open only at the time in `options`
    assert [database["name"] for database in page.evaluate("indexedDB.databases()")] == ["upgraded"]


def test_the_react_component_of_the_docs(root: Path, context: BrowserContext, wire: Wire) -> None:
    component = snippet(root, "import { createElement")
    page = context.new_page()
    with_map(wire, page, react=program("react").encode(), component=component.encode())
    page.evaluate(
        """async ([link, at]) => {
          const {withSeams} = await import("/sdk/testing.js");
          const {mount} = await import("/react.js"), {Survey} = await import("/component.js");
          window.sent = 0;
          window.unmount = mount(Survey, {link, onSent: () => sent++}, document.querySelector("main"));
          document.querySelector("frankly-survey").options = withSeams({}, {now: () => at});
        }""",
        [wire.publish(), NOW.timestamp() * 1000],
    )
    page.get_by_label("yes").check()
    page.get_by_label("good").check()
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert (page.evaluate("sent"), len(wire.stored)) == (1, 1)
    page.evaluate(
        """() => {
          const survey = document.querySelector("frankly-survey");
          unmount();
          survey.dispatchEvent(new CustomEvent("frankly-sent"));
        }"""
    )
    assert page.evaluate("[sent, document.querySelectorAll('frankly-survey').length]") == [1, 0]


def test_the_hosted_page_names_the_hash_of_every_module(site: Site) -> None:
    answer = requests.get(site.link, timeout=60)
    (text,) = re.findall(r'<script type="importmap">(.*?)</script>', answer.text, re.DOTALL)
    named = json.loads(text)["integrity"]
    # The service worker is no module, and has the hashes of the others itself.
    assert set(named) == {f"/sdk/v1/page/{name}" for name in set(page_files()) - {"service.js"}}
    for path, value in named.items():
        assert value == integrity(requests.get(site.origin + path, timeout=60).content)
    assert answer.headers["Content-Security-Policy"] == hosted_page()[1]
    assert f"'{integrity(text.encode(), 'sha256')}'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "name", ["app.js", "words.ar.js", pytest.param("hosted.js", marks=pytest.mark.full_only)]
)
def test_a_file_that_was_tampered_with_is_not_used(browser: Browser, site: Site, name: str) -> None:
    context = browser.new_context(locale="ar" if name == "words.ar.js" else "en")
    page, console = context.new_page(), []
    page.on("console", lambda message: console.append(message.text))
    page.route(
        f"**/sdk/v1/page/{name}",
        lambda route: route.fulfill(
            body=page_files()[name]["identity"] + b"\n", content_type="text/javascript"
        ),
    )
    page.goto(site.link)
    if name == "words.ar.js":  # the page works without Arabic texts
        page.locator("button[type=submit]").wait_for()
        assert page.locator("button[type=submit]").inner_text() == "Randomise and send"
    else:
        if name == "app.js":
            page.get_by_role("alert").get_by_text("Nothing was sent").wait_for()
        else:
            page.wait_for_timeout(500)
        assert page.locator("frankly-survey").count() == 0
        assert page.locator("input").count() == 0
    assert any("integrity" in text.lower() or "digest" in text.lower() for text in console)
    context.close()


def test_the_docs_name_the_hashes(root: Path) -> None:
    page = (root / "docs" / "browser.md").read_text("utf-8")
    written = import_map(files(), "https://collect.example")
    assert written in page, f"docs/browser.md should contain:\n{written}"
