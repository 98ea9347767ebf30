# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one build of the examples, cached until their sources change, served with a strict policy."""

import fcntl
import hashlib
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.languages import EXPLAINED
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.sdk.conftest import WATCH
from tests.browser.sdk.site import Site, hosted
from tests.chromium import CHROMIUM, QUIET

PACKAGES = Path(__file__).resolve().parents[3] / "client_sdk"
EXAMPLES = PACKAGES / "examples"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src http:; worker-src 'self'"
)
MORE = {
    "react": "; require-trusted-types-for 'script'; trusted-types frankly",
    "vue": "; require-trusted-types-for 'script'; trusted-types frankly vue",
    # survey-js-ui sets innerHTML without a Trusted Types policy, and sets colours through style
    # attributes
    "surveyjs": "; style-src-attr 'unsafe-inline'; img-src data:",
}
"""What docs/web_frameworks.md says about the policy of each example's page."""


def _sources() -> list[Path]:
    ignored = {"node_modules", "dist", "bundle", "build"}
    return sorted(
        path
        for path in PACKAGES.rglob("*")
        if path.suffix in {".js", ".ts", ".tsx", ".vue", ".json", ".html"}
        and not ignored & set(path.relative_to(PACKAGES).parts)
        and "frankly_sdk" not in path.parts
    )


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the built examples, rebuilt if a source has changed."""
    made = EXAMPLES / "dist"
    lock = EXAMPLES / "node_modules" / ".build.lock"
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.relative_to(PACKAGES).as_posix().encode() + path.read_bytes())
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # several test processes may build at once
        stamp = made / f"made-of-{digest.hexdigest()[:16]}"
        if not stamp.exists():
            command = ["node", "node_modules/vite/bin/vite.js", "build", "--minify", "false"]
            done = subprocess.run(
                command, cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=600
            )
            assert done.returncode == 0, done.stdout + done.stderr
            stamp.touch()
    return made


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        """Send the example's policy."""
        self.send_header("Content-Security-Policy", POLICY + MORE.get(self.path.split("/")[1], ""))
        super().end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Origin of the built examples."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(built)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey in all languages of the SDKs."""
    with hosted(tmp_path_factory.mktemp("stacks"), languages=EXPLAINED) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    new_context = browser.new_context()
    new_context.add_init_script(WATCH)
    yield new_context
    new_context.close()
