# SPDX-License-Identifier: Apache-2.0
"""Components of React and Vue that are rendered again: the survey is not opened again, and nothing entered is lost."""

import subprocess

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.sdk.site import Site
from tests.browser.sdk.wire import Wire, running
from tests.browser.stacks.conftest import EXAMPLES, PROGRAMS

ENTERED = (
    "document.querySelector('frankly-survey').shadowRoot.querySelectorAll('input:checked').length"
)


@pytest.fixture(scope="module")
def script() -> bytes:
    """The program and the packages that it imports, in one file; without a worker, the page verifies surveys."""
    place = EXAMPLES / "node_modules" / ".test-again.js"
    place.write_text((PROGRAMS / "again.js").read_text("utf-8"), "utf-8")
    options = "--bundle --format=esm --preserve-symlinks --define:process.env.NODE_ENV='production'"
    command = [str(EXAMPLES / "node_modules" / ".bin" / "esbuild"), str(place), *options.split()]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def shown(page: Page, language: str) -> None:
    page.locator(f"[part=body][lang={language}] form").wait_for()


@pytest.mark.parametrize("name", ["React", "Vue"])
def test_a_component_that_is_rendered_again_loses_nothing(
    context: BrowserContext, site: Site, script: bytes, name: str
) -> None:
    page = context.new_page()
    with running(Wire()) as wire:
        wire.pages["/again.js"] = script
        wire.pages["/again.html"] = b"<!doctype html><html lang=en><title>A</title><main></main>"
        page.goto(f"{wire.origin}/again.html")
        page.evaluate(
            """async ([name, link]) => {
              window.opened = 0;
              addEventListener("frankly-opened", () => opened++);
              window.render = (await import("/again.js"))[`mount${name}`](link);
              await render({});
            }""",
            [name, site.link],
        )
        shown(page, "en")
        for label in ("In the south", "Yes", "Never"):
            page.get_by_label(label, exact=True).check()
        for language in ("en", "de", "en"):
            page.evaluate("lang => render({lang})", language)
            shown(page, language)
            assert page.evaluate(ENTERED) == 3, language
        assert page.evaluate("opened") == 1
        page.evaluate("render({isShown: false})")
        assert not page.locator("form").is_visible()
        page.evaluate("render({})")
        shown(page, "en")
        assert page.evaluate(ENTERED) == 3
