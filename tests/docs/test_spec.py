# SPDX-License-Identifier: Apache-2.0
"""References to the specification, bad inputs and errata, all of which must exist in the repository."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SECTION = re.compile(r"\bspec (\d+\.\d+(?:, \d+\.\d+)*)")
BAD_INPUT = re.compile(r"\bbad inputs? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")
ERRATUM = re.compile(r"\b(?:[Ee]rratum|[Ee]rrata) 9\.(\d+)(?:-(?:9\.)?(\d+))?((?:, 9\.\d+)*)")
# Documents outside the repository; texts in the repository must not refer to them.
OUTSIDE = re.compile(
    r"\bDESIGN(?:\.md\b| §| \d)|\bTHREATS\b|\bBAD_INPUTS\b|\bEXPECTATIONS\b|\bLIBRARIES\b|\bSTYLE\.md\b"
)
READ = {".py", ".js", ".ts", ".mjs", ".md", ".html", ".toml", ".yml", ".sh"}


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield every text file of the repository except this one, whose examples are intentionally wrong."""
    listing = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    )
    for name in listing.stdout.splitlines():
        path = root / name
        if path.suffix in READ and path != Path(__file__) and path.exists():
            yield name, path.read_text(encoding="utf-8")


def sections(root: Path) -> set[str]:
    pages = (root / "docs" / "spec").glob("[0-9]*.md")
    return {
        number
        for page in pages
        for number in re.findall(r"^## (\d+\.\d+) ", page.read_text("utf-8"), re.MULTILINE)
    }


def bad_inputs(root: Path) -> set[int]:
    page = (root / "docs" / "bad_inputs.md").read_text("utf-8")
    return {int(number) for number in re.findall(r"^\| (\d+) ", page, re.MULTILINE)}


def errata(root: Path) -> set[int]:
    page = (root / "docs" / "maths" / "errata.md").read_text("utf-8")
    return {int(number) for number in re.findall(r"^\| (\d+) ", page, re.MULTILINE)}


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a list such as "4-8, 10"."""
    for part in text.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def dangling(text: str, root: Path) -> list[str]:
    """Return the references of a text to something that does not exist."""
    broken = [
        f"spec {number}"
        for match in SECTION.finditer(text)
        for number in match[1].split(", ")
        if number not in sections(root)
    ]
    broken += [
        f"bad input {number}"
        for match in BAD_INPUT.finditer(text)
        for number in numbers(match[1])
        if number not in bad_inputs(root)
    ]
    for match in ERRATUM.finditer(text):
        rows = set(range(int(match[1]), int(match[2] or match[1]) + 1))
        rows |= {int(number) for number in re.findall(r"9\.(\d+)", match[3])}
        broken += [f"erratum 9.{row}" for row in sorted(rows - errata(root))]
    return broken + OUTSIDE.findall(text)


def test_every_reference_leads_somewhere(root: Path) -> None:
    assert {name: wrong for name, text in texts(root) if (wrong := dangling(text, root))} == {}


def test_the_specification_is_referred_to(root: Path) -> None:
    used = {
        number
        for name, text in texts(root)
        if name.endswith(".py")
        for match in SECTION.finditer(text)
        for number in match[1].split(", ")
    }
    assert len(used) > 20


def test_sections_are_numbered_in_order(root: Path) -> None:
    pages = sorted((root / "docs" / "spec").glob("[0-9]*.md"))
    assert [page.name[0] for page in pages] == [str(i) for i in range(1, 10)]
    for part, page in enumerate(pages, 1):
        text = page.read_text("utf-8")
        assert text.startswith(f"# {part}. ")
        headings = re.findall(r"^## (\S+) ", text, re.MULTILINE)
        assert headings == [f"{part}.{i}" for i in range(1, len(headings) + 1)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("as spec 1.4 says", []),
        ("as spec 1.99 says", ["spec 1.99"]),
        ("(spec 2.1, 2.77)", ["spec 2.77"]),
        ("(bad inputs 4-6, 999)", ["bad input 999"]),
        ("erratum 9.4", []),
        ("errata 9.98-99", ["erratum 9.98", "erratum 9.99"]),
        ("see DESIGN §3.6", ["DESIGN §"]),
        ("a threat of THREATS T7", ["THREATS"]),
    ],
)
def test_broken_references_are_found(root: Path, text: str, wrong: list[str]) -> None:
    assert dangling(text, root) == wrong
