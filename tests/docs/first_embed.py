# SPDX-License-Identifier: Apache-2.0
"""Follow the embedding guides from an empty folder: install, build, serve, answer once, and time it.

`python -m tests.docs.first_embed [STACK]...` prints the seconds per stack. It needs pip, npm and
their registries, as a newcomer does. The packages are those of a release made from this checkout.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import requests
from playwright.sync_api import sync_playwright

from tests.browser.sdk.site import hosted
from tests.chromium import CHROMIUM, QUIET
from tests.docs.session import Session
from tests.ports import free_port
from tools.blocks import Block, blocks
from tools.follow import LINK
from tools.release.__main__ import build

ROOT: Final = Path(__file__).resolve().parents[2]
PORT: Final = "8001"
"""The port of the app in the guides."""
WAIT_S: Final = 60
NO_STATISTICS: Final = {f"{tool}_TELEMETRY_DISABLED": "1" for tool in ("NEXT", "NUXT", "ASTRO")}
"""Settings without which these tools report builds to their makers."""
SURVEY: Final = """
name: habits
title: {{en: "Health and habits"}}
languages: [en]
opens: {opens}
closes: {closes}
expires: {closes}
min_reports: 2
budget: "2.5"
blocks:
  - id: smokes
    notion: ldp
    epsilon: "1"
    mechanism: warner
    questions:
      - id: smokes
        text: {{en: "Have you smoked in the last 30 days?"}}
        choices: [{{id: "no", label: {{en: "No"}}}}, {{id: "yes", label: {{en: "Yes"}}}}]
"""


@dataclass(frozen=True)
class Guide:
    """One stack's part of a page."""

    page: str
    heading: str
    answer: Callable[[str], None]

    @property
    def blocks(self) -> list[Block]:
        """The files and commands, in order."""
        text = (ROOT / "docs" / self.page).read_text(encoding="utf-8")
        found = re.split(r"^##+ ", text, flags=re.MULTILINE)
        [part] = [part for part in found if part.partition("\n")[0] == self.heading]
        return list(blocks(part))

    @property
    def commands(self) -> list[str]:
        """The command lines."""
        return [line for one in self.blocks if one.language == "sh" for line in one.commands]

    @property
    def own_lines(self) -> int:
        """Number of lines that a newcomer saves, without empty ones and the names of files."""
        files = [one.body.splitlines()[1:] for one in self.blocks if one.name is not None]
        return sum(bool(line.strip()) for lines in files for line in lines)


def in_a_browser(address: str) -> None:
    """Answer as a visitor of the page."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = chromium.new_page()
        page.goto(address)
        page.get_by_label("Yes", exact=True).check()
        page.locator("button[type=submit]").click()
        page.get_by_text("Thank you. Your randomised answer has arrived").wait_for()
        # The SDK ends a worker that fails, for example because the build has lost its script.
        assert len(page.workers) == 1, "the survey was verified in a worker"
        chromium.close()


def by_surveyjs(address: str) -> None:
    """Answer the form as a visitor of the page, once it has been protected."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = chromium.new_page()
        page.goto(address)
        page.get_by_text("What leaves this device").wait_for()
        page.get_by_text("Yes", exact=True).first.click()
        page.get_by_role("button", name="Complete").click()
        page.get_by_text("Thank you.").wait_for()
        chromium.close()


def by_form(address: str) -> None:
    """Answer by a form; Django's needs the token of its first response."""
    visitor = requests.Session()
    told = visitor.get(address, timeout=WAIT_S).json()
    assert "is made here, on this device" in told.pop("explanation")
    reply = visitor.post(address, told | {"smokes": "yes"}, timeout=WAIT_S)
    assert reply.json() == {"status": "sent"}, reply.text


def by_json(address: str) -> None:
    """Answer by JSON."""
    told = requests.get(address, timeout=WAIT_S).json()
    assert "is made here, on this device" in told["explanation"]
    reply = requests.post(f"{address}answers", json={"smokes": "yes"}, timeout=WAIT_S)
    assert reply.json() == {"status": "sent"}, reply.text


GUIDES: Final = {
    "react": Guide("web_frameworks.md", "A page with React", in_a_browser),
    "vue": Guide("web_frameworks.md", "A page with Vue", in_a_browser),
    "next": Guide("web_frameworks.md", "A page with Next", in_a_browser),
    "nuxt": Guide("web_frameworks.md", "A page with Nuxt", in_a_browser),
    "svelte": Guide("web_frameworks.md", "A page with SvelteKit", in_a_browser),
    "astro": Guide("web_frameworks.md", "A page with Astro", in_a_browser),
    "webpack": Guide("web_frameworks.md", "A page built by webpack", in_a_browser),
    "esbuild": Guide("web_frameworks.md", "A page built by esbuild", in_a_browser),
    "surveyjs": Guide("web_frameworks.md", "A page with SurveyJS", by_surveyjs),
    "plain": Guide("web_frameworks.md", "A plain page", in_a_browser),
    "flask": Guide("stacks.md", "Flask", by_form),
    "fastapi": Guide("stacks.md", "FastAPI", by_json),
    "django": Guide("stacks.md", "Django", by_form),
}


def follow(name: str, folder: Path, archives: list[Path]) -> float:
    """Follow one guide in an empty folder; return the seconds until its report has arrived."""
    guide, home, app = GUIDES[name], folder / "server", folder / "app"
    home.mkdir(parents=True)
    app.mkdir()
    for archive in archives:
        shutil.copy(archive, app)
    session, port = Session(app, literal=True), str(free_port())
    session.environment.update(NO_STATISTICS)
    start = time.perf_counter()
    with hosted(home, languages=["en"], text=SURVEY) as site:
        last = guide.commands[-1]
        for block in guide.blocks:
            body = block.body.replace(LINK, site.link)
            if block.name is not None:
                path = app / block.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body, "utf-8")
                continue
            for line in replace(block, body=body).commands:
                if line != last:
                    session.run(line)
        with _serving(last.replace(PORT, port), app, session.environment, port) as address:
            guide.answer(address)
        seconds = time.perf_counter() - start
        assert _stored(home) == 1, "the report has arrived"
    return seconds


@contextmanager
def _serving(command: str, folder: Path, environment: dict[str, str], port: str) -> Iterator[str]:
    """Run the guide's last command until the end; yield the address of its page once it responds."""
    log = folder / "server.log"
    with log.open("wb") as file:
        # its own group, because npx and Django start further processes
        server = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=file,
            stderr=file, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + WAIT_S
        address = f"http://localhost:{port}/"
        while True:
            try:
                requests.get(address, timeout=WAIT_S)
                break
            except requests.ConnectionError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.05)
        yield address
    finally:
        _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(timeout=WAIT_S)


def _stored(home: Path) -> int:
    with closing(sqlite3.connect(home / "frankly.db")) as database, database:
        (count,) = database.execute("SELECT count(*) FROM reports").fetchone()
    return int(count)


def main(names: list[str]) -> None:
    """Follow the guides and print commands, own lines and seconds of each."""
    with tempfile.TemporaryDirectory() as scratch:
        archives = build(Path(scratch) / "release")
        for name in names:
            seconds = follow(name, Path(scratch) / name, archives)
            guide = GUIDES[name]
            sys.stdout.write(
                f"{name:<8} {len(guide.commands)} commands {guide.own_lines:3} lines {seconds:6.1f} s\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or list(GUIDES))
