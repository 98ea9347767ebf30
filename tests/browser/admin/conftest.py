# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a server with its first owner, and a browser that records console messages and requests
to other sites."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from frankly_protocol.clock import SystemClock
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from playwright.sync_api import Locator, Page, sync_playwright
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.chromium import CHROMIUM, QUIET
from tests.frankly_server.accounts.people import CHEAP
from tests.migrated import opened

PASSWORD = "correct horse battery"
Screens = tuple[tuple[int, Literal["light", "dark"]], ...]
SCREENS: Final[Screens] = ((1280, "light"), (320, "light"), (320, "dark"))
ALL_SCREENS: Final[Screens] = tuple(
    (width, scheme) for width in (1280, 768, 320) for scheme in get_args(Literal["light", "dark"])
)
"""Of the screenshots: with them, every page is checked on all of these."""


class _Silent(WSGIRequestHandler):
    def log(self, *_arguments: object) -> None:
        pass


@dataclass
class Desk:
    """A server and a page open on it; messages : console messages and errors, checked : routes checked."""

    url: str
    home: Path
    services: Services
    routes: Map
    page: Page
    messages: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    shots: Path | None = None

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def press(self, name: str) -> None:
        """Press the button with this name and wait for the next page."""
        self.follow(self.page.get_by_role("button", name=name, exact=True).first)

    def follow(self, what: Locator) -> None:
        """Click and wait until the next page has loaded; a click alone returns before that."""
        with self.page.expect_navigation():
            what.click()

    def sign_in(self, email: str, password: str) -> None:
        self.page.get_by_label("E-mail address").fill(email)
        self.page.get_by_label("Password").fill(password)
        with self.page.expect_navigation():
            self.page.get_by_label("Password").press("Enter")  # signing in needs no mouse

    def check(self, name: str, *, again: bool = False) -> None:
        """Check that the page fits wide and narrow screens and that axe reports nothing above minor.

        again : a nearly identical page has already been checked, so axe runs in dark mode only.
        """
        for width, scheme in SCREENS if self.shots is None else ALL_SCREENS:
            self.page.set_viewport_size({"width": width, "height": 800})
            self.page.emulate_media(color_scheme=scheme)
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} scrolls sideways at {width}: {wide}"
            if self.shots is not None:
                self.page.screenshot(
                    path=self.shots / f"{name}-{width}-{scheme}.png", full_page=True
                )
            if (width, scheme) == (320, "dark") or (
                (width, scheme) == (1280, "light") and not again
            ):
                violations = Axe().run(self.page).response["violations"]
                found = [
                    (v["id"], [node["html"] for node in v["nodes"]])
                    for v in violations
                    if v["impact"] != "minor"
                ]
                assert found == [], f"{name} at {width} in {scheme}: {found}"
        self.page.set_viewport_size({"width": 1280, "height": 800})
        self.page.emulate_media(color_scheme="light")
        assert self.messages == []
        # A form's response, whose URL has no GET route, or an address that does not exist.
        with suppress(MethodNotAllowed, NotFound):
            rule, _ = self.routes.bind("").match(urlsplit(self.page.url).path, return_rule=True)
            if rule.rule.startswith("/admin"):
                self.checked.add(rule.rule)

    def open_refused(self, path: str, status: int) -> None:
        """Open a page that the server refuses; the browser must log this status and nothing else."""
        answer = self.page.goto(self.url + path)
        assert answer is not None
        self.expect_refusal(answer.status, status)

    def press_refused(self, name: str, status: int) -> None:
        """Press a button and require that the server refuses with this status."""
        with self.page.expect_navigation() as navigation:
            self.page.get_by_role("button", name=name, exact=True).first.click()
        self.expect_refusal(navigation.value.status, status)

    def expect_refusal(self, got: int, status: int) -> None:
        assert got == status
        assert [f"status of {status}" in message for message in self.messages] == [True]
        self.messages.clear()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk on a server with an owner; screenshots are saved in the folder that SCREENSHOTS names."""
    home = tmp_path_factory.mktemp("desk")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = Settings(
        home=home, public_url=f"http://localhost:{port}", webhook_hosts="hooks.example.org"
    )
    services = opened(settings, SystemClock(), Passwords(CHEAP))
    services.accounts.create("main", "ada@example.org", "owner", PASSWORD)
    app = create_app(settings, services=services)
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    folder = os.environ.get("SCREENSHOTS")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = chromium.new_page(
            reduced_motion="reduce"
        )  # without transitions, axe never measures a colour in the middle of one
        # Playwright can inject axe despite the page's policy; the policy remains in force for the
        # page itself.
        owner_desk = Desk(
            settings.public_url,
            home,
            services,
            app.url_map,
            page,
            shots=Path(folder) if folder else None,
        )
        page.on(
            "console",
            lambda message: (
                owner_desk.messages.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on("pageerror", lambda error: owner_desk.messages.append(str(error)))
        page.on(
            "request",
            lambda sent: (
                None
                if sent.url.startswith(owner_desk.url)
                else owner_desk.messages.append(sent.url)
            ),
        )
        yield owner_desk
        chromium.close()
    server.shutdown()
    thread.join()
    server.server_close()
    services.close()
