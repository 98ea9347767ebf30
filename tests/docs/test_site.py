# SPDX-License-Identifier: Apache-2.0
"""Documentation site: complete, up to date, accessible, and without console messages.

Set SCREENSHOTS to a folder to save screenshots.
"""

import fcntl
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.chromium import CHROMIUM, QUIET
from tests.docs.site import broken_links, parsed, served
from tools.site import map as code_map
from tools.site import reference
from tools.site.pictures import PICTURES

CUT = """[...document.querySelectorAll("article table, article pre, article img, article math")].filter(
  (place) => {
    if (place.getBoundingClientRect().right <= window.innerWidth) return false;
    for (let box = place; box.tagName !== "ARTICLE"; box = box.parentElement)
      if (getComputedStyle(box).overflowX === "auto") return false;
    return true;
  }).map((place) => place.outerHTML.slice(0, 80))"""
"""Tables, code, pictures and formulas that are wider than the page and cannot be scrolled."""
SHOWN = ("index", "tour", "choosing", "python", "maths/estimator")


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode, in which a warning is an error; once for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with folder.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.exists():
            command = [
                sys.executable,
                "-m",
                "sphinx",
                "-W",
                "--keep-going",
                "-q",
                "docs",
                f"{folder}",
            ]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_every_page_exists_and_no_link_is_broken(root: Path, built: Path) -> None:
    sources = {
        page.relative_to(root / "docs").with_suffix("") for page in (root / "docs").rglob("*.md")
    }
    pages = {page.relative_to(built).with_suffix("") for page in built.rglob("*.html")}
    assert pages == sources | {Path("search")}
    assert broken_links(built) == []


def test_pages_fetch_nothing_from_anywhere(built: Path) -> None:
    for page in built.rglob("*.html"):
        assert [link for link in parsed(page).fetched if "//" in link] == [], page.name
    for style in built.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\((?!\s*['\"]?data:)[^)]*//", text), style.name


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_script_draws(root: Path, name: str) -> None:
    stored = (root / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    drawn = PICTURES[name]()
    assert re.sub(r"[\d.]+", "N", stored) == re.sub(r"[\d.]+", "N", drawn), (
        "python -m tools.site.pictures"
    )
    # rounding: the last digit of a coordinate may differ between processors
    ours, theirs = ([float(n) for n in re.findall(r"\d+\.?\d*", text)] for text in (stored, drawn))
    assert ours == pytest.approx(theirs, abs=0.21)


def test_the_map_equals_that_of_the_code(root: Path) -> None:
    assert (root / "docs" / "map.md").read_text(encoding="utf-8") == code_map.page(), (
        "python -m tools.site.map"
    )


RULES = [(rule, place) for rules in code_map.RULES.values() for rule, place in rules]


@pytest.mark.parametrize(("rule", "place"), RULES, ids=[rule for rule, _ in RULES])
def test_a_rule_of_the_map_is_decided_where_its_object_is_defined(rule: str, place: str) -> None:
    file, name = code_map.place_of(place)
    assert code_map.is_defined(file, name), f"{rule}: {file} does not define {name}"


def test_a_rule_is_listed_once() -> None:
    assert len({rule for rule, _ in RULES}) == len(RULES) > 90


@pytest.mark.parametrize(
    ("file", "name", "defined"),
    [
        ("server/frankly_server/accounts/service.py", "after_failure", False),  # imported there
        ("server/frankly_server/accounts/service.py", "Accounts", True),
        ("server/frankly_server/accounts/passwords.py", "MAX_LENGTH", True),  # MIN_, MAX_ = …
        ("client_sdk/frankly_sdk/policy.py", "Policy.check", True),
        ("client_sdk/frankly_sdk/policy.py", "Policy.parse_nats", False),
        ("client_sdk/browser/src/words.js", "Texts", True),
        ("client_sdk/browser/src/element.js", "inWords", False),
        ("client_sdk/browser/src/nowhere.js", "", False),
    ],
)
def test_an_import_is_no_definition(file: str, name: str, defined: bool) -> None:
    assert code_map.is_defined(file, name) is defined


def test_every_file_that_the_map_names_is_there(root: Path) -> None:
    text = (root / "docs" / "map.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+(?:\.[a-z]+|/))`", text))
    assert len(named) > 60
    assert [name for name in sorted(named) if not (root / name).exists()] == []


def test_generated_references_equal_those_of_the_code(root: Path) -> None:
    assert (root / "docs" / "api.md").read_text(encoding="utf-8") == reference.page(), (
        "python -m tools.site.reference"
    )
    assert reference.settings_table() in (root / "docs" / "settings.md").read_text("utf-8"), (
        "python -m tools.site.reference"
    )


def test_public_names_and_commands_are_in_the_reference(root: Path, built: Path) -> None:
    pages = (page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md"))
    imported = re.findall(r"^(?:from|import) (frankly_sdk[.a-z_]*)", "".join(pages), re.MULTILINE)
    python = parsed(built / "python.html")
    modules = {name.removeprefix("module-") for name in python.ids if name.startswith("module-")}
    assert set(imported) <= modules
    names: dict[object, set[str]] = {}
    for module in modules:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            if inspect.isroutine(value) or inspect.isclass(value):
                names.setdefault(value, set()).add(f"{module}.{name}")
    assert len(names) > 130
    assert [alike for alike in names.values() if not alike & python.ids] == []
    commands = re.findall(r"^\| `frankly ([^`]+)`", code_map.page(), re.MULTILINE)
    assert len(commands) > 40
    places = {f"frankly-{command.replace(' ', '-')}" for command in commands}
    assert places - parsed(built / "commands.html").ids == set()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


def _record(page: Page, url: str, messages: list[str]) -> None:
    """Record errors and warnings of the page, and every request to another site."""
    page.on(
        "console", lambda message: messages.append(message.text) if message.type != "log" else None
    )
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith(url) else messages.append(sent.url))


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (360, "dark")], ids=["wide", "phone-dark"]
)
def test_pages_are_readable_quiet_and_accessible(
    built: Path, browser: Browser, width: int, scheme: Literal["light", "dark"], full: bool
) -> None:
    names = sorted(
        page.relative_to(built).with_suffix("").as_posix() for page in built.rglob("*.html")
    )
    with served(built) as url:
        for name in names if full else SHOWN:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            messages: list[str] = []
            _record(page, url, messages)
            page.goto(f"{url}/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
            assert page.evaluate(CUT) == [], name
            assert all(
                page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
            ), name
            violations = Axe().run(page).response["violations"]
            assert [
                (violation["id"], violation["nodes"][0]["html"]) for violation in violations
            ] == [], name
            assert messages == [], name
            if "SCREENSHOTS" in os.environ:
                page.screenshot(
                    path=f"{os.environ['SCREENSHOTS']}/{name.replace('/', '-')}-{width}.png",
                    full_page=True,
                )
            page.close()


def test_search_finds_a_page_without_a_server(built: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((built / "index.html").as_uri())
    page.get_by_placeholder("Search").first.fill("poisoning")
    page.keyboard.press("Enter")
    page.locator("ul.search li a").first.click()
    assert "oison" in page.locator("article").inner_text()
    page.close()
