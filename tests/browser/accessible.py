# SPDX-License-Identifier: Apache-2.0
"""Findings of axe of any impact, and the controls of a page as assistive technology gets them."""

import json
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from frankly_protocol import explanation
from playwright.sync_api import Page

TEXTS = Path(explanation.__file__).parent / "texts"
CONTROLS = {
    *("button", "checkbox", "combobox", "DisclosureTriangle", "link", "radio", "radiogroup"),
    *("spinbutton", "switch", "textbox"),
}


# An axe run in the middle of a transition would judge colours that nobody reads.
_ALL_STILL = """Promise.all(document.getAnimations()
  .filter(({effect}) => effect.getComputedTiming().endTime < Infinity)
  .map(({finished}) => finished.catch(() => {})))"""


def findings(page: Page) -> list[str]:
    """Return what axe finds, of any impact, after all animations that end."""
    page.evaluate(_ALL_STILL)
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


def controls(page: Page) -> list[tuple[str, str]]:
    """Return role and name of each control, sorted."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return sorted(
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in CONTROLS
    )


def strings(language: str) -> Any:
    """Return the element's texts in a language."""
    return json.loads((TEXTS / f"{language}.json").read_text("utf-8"))["element"]
