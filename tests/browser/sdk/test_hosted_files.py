# SPDX-License-Identifier: Apache-2.0
"""Files of the hosted page: few requests, a small critical path, and compression that the browser accepts."""

import gzip
import json
import subprocess

import pytest
import requests
from frankly_protocol.languages import EXPLAINED
from frankly_server.web.hosted import hosted_page, integrity, page_files
from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import Browser, Route

from tests.browser.sdk.site import Site
from tests.browser.sdk.test_bundle import BUNDLE, REMAKE, SOURCES, digests
from tests.browser.sdk.wire import FOLDERS

FOLDER = FOLDERS["src"].parent / "page"
MOST_REQUESTS, CRITICAL_BYTES = 6, 4096
"""Requests in English; another language takes one more, for its texts."""
BROTLI = """const {brotliCompressSync, brotliDecompressSync} = require("zlib"), input = require("fs").readFileSync(0);
process.stdout.write(process.argv[1] === "open" ? brotliDecompressSync(input) : brotliCompressSync(input))"""


def brotli(data: bytes, what: str) -> bytes:
    """Compress (make) or decompress (open) with the Node that Playwright includes."""
    node, _ = compute_driver_executable()
    return subprocess.run(
        [node, "-e", BROTLI, what], input=data, capture_output=True, check=True
    ).stdout


def test_the_files_were_made_of_these_sources() -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text("ascii"))
    assert manifest["sources"] == digests(SOURCES), REMAKE
    assert manifest["makers"] == json.loads((BUNDLE / "manifest.json").read_text())["makers"]
    files = page_files()
    assert manifest["files"] == {n: integrity(files[n]["identity"]) for n in sorted(files)}, REMAKE
    for name, contents in files.items():
        assert gzip.decompress(contents["gzip"]) == contents["identity"], name
    assert brotli(b"".join([files["app.js"]["br"]]), "open") == files["app.js"]["identity"]
    assert brotli(files["hosted.js"]["br"], "open") == files["hosted.js"]["identity"]


@pytest.mark.full_only
def test_every_brotli_file_contains_its_script() -> None:
    for name, contents in page_files().items():
        assert brotli(contents["br"], "open") == contents["identity"], name


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("identity", None),
        ("", None),
        ("zstd", None),
    ],
)
def test_a_file_comes_as_the_browser_accepts_it(
    site: Site, accepted: str, encoding: str | None
) -> None:
    asked = {"Accept-Encoding": accepted}
    address = f"{site.origin}/sdk/v1/page/app.js"
    answer = requests.get(address, headers=asked, timeout=60, stream=True)
    body = answer.raw.read(decode_content=False)
    assert answer.headers.get("Content-Encoding") == encoding
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert body == page_files()["app.js"][encoding or "identity"]
    page = requests.get(site.link, headers=asked, timeout=60)
    assert page.headers.get("Content-Encoding") == ("gzip" if "gzip" in accepted else None)
    assert page.text.startswith("<!doctype html>")
    assert "pageFile" not in requests.get(f"{site.origin}/sdk/v1/page/x.js", timeout=60).text


def test_the_critical_path_is_small(site: Site) -> None:
    """The critical path is what must arrive before the questions are shown, except the survey itself."""
    page = requests.get(site.link, timeout=60).content
    assert len(brotli(page, "make")) + len(page_files()["hosted.js"]["br"]) <= CRITICAL_BYTES
    for language in EXPLAINED:
        spoken = hosted_page(language=language)[0].encode()
        as_served = len(gzip.compress(spoken, 9, mtime=0)) + len(page_files()["hosted.js"]["br"])
        assert as_served <= CRITICAL_BYTES, language


@pytest.mark.parametrize("locale", ["en", "ar"])
def test_the_page_needs_few_requests(browser: Browser, site: Site, locale: str) -> None:
    """The worker loads the page's files again, but from the browser's cache."""
    context = browser.new_context(locale=locale)
    page = context.new_page()
    site.requested.clear()
    page.goto(site.link)
    page.locator("button[type=submit]").wait_for()
    requested = sorted(site.requested)
    assert len(set(requested)) == len(requested) <= MOST_REQUESTS + (locale != "en"), requested
    context.close()


def test_questions_are_shown_before_the_checks_and_open_after_them(
    browser: Browser, site: Site
) -> None:
    context = browser.new_context(locale="ar")
    page, held = context.new_page(), list[Route]()
    page.route("**/app.js", lambda route: held.append(route))  # noqa: PLW0108  a built-in cannot be a handler
    page.goto(site.link, wait_until="commit")
    page.get_by_role("heading", name="الصحة والعادات").wait_for()
    preview = page.locator("[aria-busy=true]")
    assert preview.get_attribute("dir") == "rtl"
    inputs = preview.locator("input")
    assert inputs.count() == 7
    assert not any(inputs.nth(i).is_enabled() for i in range(7))
    assert page.locator("frankly-survey").count() == 0
    for route in held:
        route.continue_()
    page.unroute("**/app.js")  # the worker asks for it again
    page.locator("button[type=submit]").wait_for()
    assert preview.count() == 0
    page.get_by_label("نعم").check()
    assert page.locator("h1").count() == 1
    context.close()


SLOW = """
window.slow = [];
const {DisplayNames} = Intl;
Intl.DisplayNames = class extends DisplayNames { constructor(...given) { super(...given); slow.push("names"); } };
const parsed = JSON.parse;
JSON.parse = (...given) => {
  const value = parsed(...given);
  if (value?.blocks) slow.push("survey");
  return value;
};
"""


def test_the_page_leaves_to_others_what_takes_long(browser: Browser, site: Site) -> None:
    """The names of languages are a table; the survey is parsed for the preview, then in the worker."""
    context = browser.new_context()
    context.add_init_script(SLOW)
    page = context.new_page()
    page.goto(site.link)
    page.locator("button[type=submit]").wait_for()
    assert page.locator("#language option").all_inner_texts() == ["English", "العربية"]
    assert page.evaluate("slow") in (["survey"], [])  # none if the element came before the preview
    context.close()


def test_a_survey_that_fails_its_checks_never_opens(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.link[:-1] + ("0" if site.link[-1] != "0" else "1"))
    page.get_by_role("alert").wait_for()
    assert page.locator("input").count() == 0
    assert page.locator("[aria-busy=true]").count() == 0
    context.close()
