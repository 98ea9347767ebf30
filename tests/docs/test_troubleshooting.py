# SPDX-License-Identifier: Apache-2.0
"""Messages that docs/troubleshooting.md quotes, compared with the texts of the program.

A quoted message is the first cell of a table's row, in backticks; `…` stands for a part that varies. It must
occur within one text of the sources, in which the values of f-strings and templates are `…` as well.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.test_definition import of_a_template, of_javascript, of_python

_ROOT: Final = Path(__file__).resolve().parents[2]
_PAGE: Final = _ROOT / "docs" / "troubleshooting.md"
_SOURCES: Final = {
    "run.py": of_python,
    "server/frankly_server/**/*.py": of_python,
    "design/frankly_design/**/*.py": of_python,
    "shared/frankly_protocol/**/*.py": of_python,
    "client_sdk/frankly_sdk/**/*.py": of_python,
    "analyst/frankly_analyst/**/*.py": of_python,
    "client_sdk/browser/src/*.js": of_javascript,
    "server/frankly_server/**/*.html": of_a_template,
    "s*/frankly_*/**/texts/en.json": lambda path: [path.read_text("utf-8").replace("\n", "\n\n")],
}
"""Files → the function that yields their texts. The SDK's test kit is no source of real messages."""
_VALUE: Final = r"\$?\{+[^{}]*\}+|\b2\b"
"""A value within a text. `of_python` and `of_javascript` write the number 2 in place of each."""
_BETWEEN: Final = "\x00"


def messages(page: str) -> list[str]:
    """Return the messages that a page quotes in the first cells of its tables."""
    return re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _texts() -> Iterator[str]:
    for pattern, read in _SOURCES.items():
        paths = sorted(_ROOT.glob(pattern))
        assert paths, pattern
        for path in paths:
            if "testing" not in path.parts:
                for text in read(path):
                    yield from re.split(r"\n\s*\n", text)  # lines of a module, elements of a page


@functools.cache
def program() -> str:
    """Return all texts of the program in one string; a character that no message has separates them."""
    return _BETWEEN.join(_squeezed(re.sub(_VALUE, "…", text)) for text in _texts())


def is_said(message: str) -> bool:
    """Return True if one text of the program has the parts of the message in their order."""
    parts = [part.strip() for part in re.sub(r"\b2\b", "…", message).split("…")]
    pattern = rf"[^{_BETWEEN}]*?".join(re.escape(_squeezed(part)) for part in parts if part)
    return re.search(pattern, program()) is not None


QUOTED: Final = messages(_PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_one_of_the_program(message: str) -> None:
    assert len(re.sub(r"[^A-Za-z]", "", message)) > 5, "too short to be found by chance alone"
    assert is_said(message)


def test_every_row_quotes_a_message(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\|(?! You see|---)", line)]
    assert len(rows) == len(QUOTED) > 90


@pytest.mark.parametrize(
    "message",
    [
        "Frankly needs Python 3.10 or newer",
        "the database has no table yet; run …",
        "the survey has been closed; send it again",
        "cannot listen on … gate …: …",
        "are needed. … are released",
    ],
)
def test_a_wrong_message_is_noticed(message: str) -> None:
    assert not is_said(message)
