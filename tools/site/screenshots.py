# SPDX-License-Identifier: Apache-2.0
"""Screenshots for the documentation: python -m tools.site.screenshots REPORT.html [HOSTED-URL].

REPORT.html is the report of `frankly demo`; HOSTED-URL is the page /s/ID of a server. Pictures are
written to docs/pictures.
"""

import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "pictures"
_QUIET: Final = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)


def shoot(address: str, name: str, height: int) -> None:
    """Write a screenshot of one page, 900 pixels wide, in the light theme."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_QUIET))
        page = browser.new_page(viewport={"width": 900, "height": height}, color_scheme="light")
        page.goto(address, wait_until="networkidle")
        page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    shoot(Path(sys.argv[1]).resolve().as_uri(), "demo_report", 1040)
    if len(sys.argv) > 2:
        shoot(sys.argv[2], "hosted_page", 900)
