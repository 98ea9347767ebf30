# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one build of the examples, cached until their sources change, served with a strict policy."""

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from frankly_protocol.languages import EXPLAINED
from playwright.sync_api import BrowserContext, Page

from tests.browser.sdk.site import Site, hosted
from tests.threads import listening

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


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder of built pages until the block ends; yield the origin."""
    handler = partial(_Handler, directory=str(folder))
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as origin:
        yield origin


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Origin of the built examples."""
    with serving(built) as origin:
        yield origin


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey in all languages of the SDKs."""
    with hosted(tmp_path_factory.mktemp("stacks"), languages=EXPLAINED) as served:
        yield served


def visit(context: BrowserContext, address: str, site: Site, name: str) -> tuple[Page, list[str]]:
    """Open an example; return the page and the list of bodies that it posts."""
    page, posted = context.new_page(), []
    page.on("request", lambda request: posted.append(request.post_data or ""))
    page.goto(f"{address}/{name}/index.html?link={quote(site.link, safe='')}")
    return page, posted


PROGRAMS = Path(__file__).parent / "programs"


def run(name: str, given: object = None) -> Any:
    """Run a program as a file in the examples folder, because it imports the packages installed there."""
    source = (PROGRAMS / f"{name}.js").read_text("utf-8")
    place = EXAMPLES / "node_modules" / f".test-{name}.mjs"
    place.write_text(source.replace("../../../../client_sdk/", "../../"), "utf-8")
    done = subprocess.run(
        ["node", "--preserve-symlinks", "--preserve-symlinks-main", str(place)],
        input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout.splitlines()[-1])
