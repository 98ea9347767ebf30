# SPDX-License-Identifier: Apache-2.0
"""Screenshots for the documentation.

    python -m tools.site.screenshots REPORT.html [HOSTED-URL [ADMIN-URL EMAIL PASSWORD]]

REPORT.html is the report of `frankly demo`; HOSTED-URL is the link of its survey, with the hash; ADMIN-URL is an
admin's page of its survey. Pictures are written to docs/pictures.
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


def shoot(address: str, name: str, height: int, account: tuple[str, str] | None = None) -> None:
    """Write a screenshot of one page, 900 pixels wide, in the light theme.

    account : e-mail address and password of whoever signs in first.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_QUIET))
        page = browser.new_page(viewport={"width": 900, "height": height}, color_scheme="light")
        page.goto(address, wait_until="networkidle")
        if account is not None:
            page.get_by_label("E-mail").fill(account[0])
            page.get_by_label("Password").fill(account[1])
            page.get_by_role("button", name="Sign in").first.click()
            page.goto(address, wait_until="networkidle")
        page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    report, hosted, admin, *account = [*sys.argv[1:], *[""] * 4][:5]
    shoot(Path(report).resolve().as_uri(), "demo_report", 1040)
    if hosted:
        shoot(hosted, "hosted_page", 1040)
    if admin:
        shoot(admin, "admin_page", 1040, (account[0], account[1]))
