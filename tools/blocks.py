# SPDX-License-Identifier: Apache-2.0
"""Fenced code blocks of a page: files to save, commands, their output, and untested blocks.

Sphinx directives (```{toctree}) are blocks whose language has braces.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+?) -->\n)?^```(?P<language>\w*|\{[\w-]+\})\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(r"(?:#|//|<!--) ?(?P<name>[\w./+-]+\.\w+)(?: -->)?\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; start and end are the positions of its body in the page.

    why : the reason why no test runs it, or None if tests do.
    """

    language: str
    body: str
    start: int
    end: int
    why: str | None

    @property
    def name(self) -> str | None:
        """File name under which to save the block, from its first line, or None."""
        match = _NAMED.match(self.body)
        return match["name"] if match else None

    @property
    def commands(self) -> list[str]:
        """The command lines of a shell block; a backslash at the end of a line joins lines."""
        joined = self.body.replace("\\\n", " ")
        return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    for match in _FENCE.finditer(text):
        yield Block(
            match["language"], match["body"], match.start("body"), match.end("body"), match["why"]
        )


def pages(root: Path) -> list[Path]:
    """Return every page of the site, and the Markdown files at the top of the repository."""
    return sorted([*(root / "docs").rglob("*.md"), *root.glob("*.md")])
