# SPDX-License-Identifier: Apache-2.0
"""No snippet is left out: every page with code has a test that runs it, or says block by block why not."""

import re
from pathlib import Path

import pytest

from tools.blocks import blocks, pages

# Page → the test that runs its code. A page that is not here may have no block but for those marked “not run”.
RUN_BY = {
    "README.md": "tests/deploy/test_readme.py",
    "docs/tour.md": "tests/docs/test_guides.py",
    "docs/embed.md": "tests/docs/test_guides.py",
    "docs/run_a_survey.md": "tests/docs/test_guides.py",
    "docs/analyse.md": "tests/docs/test_guides.py",
    "docs/choosing.md": "tests/docs/test_numbers.py",
    "docs/design.md": "tests/docs/test_design_examples.py",
    "docs/sdk.md": "tests/frankly_sdk/test_docs.py",
    "docs/browser.md": "tests/browser/sdk/test_pages.py",
    "docs/conformance.md": "tests/conformance/test_docs.py",
    "docs/admin.md": "tests/browser/admin/test_from_nothing.py",
}
# Pages whose blocks show formats or commands for an operator, and why no test runs them as they stand.
SHOWN_ONLY = {
    "CONTRIBUTING.md": "what a contributor types; the tests are what it runs",
    "docs/estimates.md": "a request, a fragment, a plan; the same calls are in tests/frankly_server/client",
    "docs/operations.md": "needs Docker; tests/deploy/test_image.py runs every command of the services by hand",
    "docs/performance.md": "benches of minutes; written by bench/_performance.py from their results",
    "docs/protocol.md": "formats; tests/vectors holds their bytes",
    "docs/reproduce.md": "hours; tests/frankly_server/reproduce runs the quick form of every figure",
    "docs/scaling.md": "a cluster; tests of frankly_server.scale run the same jobs on one machine",
    "docs/analysts.md": "pages; tests/browser/admin drives them",
}


def named(root: Path) -> dict[str, Path]:
    return {page.relative_to(root).as_posix(): page for page in pages(root)}


def test_every_page_with_code_is_run_or_says_why_not(root: Path) -> None:
    with_code = {
        name
        for name, page in named(root).items()
        if any(block.why is None for block in blocks(page.read_text(encoding="utf-8")))
    }
    known = RUN_BY.keys() | SHOWN_ONLY.keys()
    assert with_code <= known, "name the test that runs them, or mark blocks: <!-- not run: why -->"


@pytest.mark.parametrize("test", sorted(set(RUN_BY.values())))
def test_the_tests_named_are_there(root: Path, test: str) -> None:
    assert (root / test).is_file()


def test_what_is_not_run_has_its_reason_and_its_stand_in(root: Path) -> None:
    marked = [
        (name, block)
        for name, page in named(root).items()
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.why is not None
    ]
    assert marked
    for name, block in marked:
        tests = re.findall(r"tests/[\w/]+\.py", block.why)
        assert tests, f"{name}: name the test that shows the same: {block.why}"
        assert all((root / test).is_file() for test in tests), name


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASING.md"])
def test_links_of_pages_that_are_not_in_the_site(root: Path, name: str) -> None:
    text = (root / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text)
    wanted = [link.partition("#")[0] for pair in links for link in pair if link and "://" not in link]
    assert [link for link in wanted if not (root / link).exists()] == []
    quoted = re.findall(r"`((?:docs|tests|examples|server|shared|requirements)/[\w./-]+)`", text)
    assert [place for place in quoted if not (root / place).exists()] == []
