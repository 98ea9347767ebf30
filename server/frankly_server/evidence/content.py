# SPDX-License-Identifier: Apache-2.0
"""Content of the folder before it is rendered: parts with texts, tables, commands and open points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

FILL: Final = "to be filled in by you"
"""Text of every point that cannot be computed from the document or the server's state."""


@dataclass(frozen=True, slots=True)
class Open:
    """A point that only the operator of the survey can fill in.

    about : a noun phrase that names the point.
    """

    about: str

    def __str__(self) -> str:
        return f"{FILL}: {self.about}"


@dataclass(frozen=True, slots=True)
class Command:
    """One command line of a shell."""

    line: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a part."""

    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of the signed document, quoted as a paragraph of its own."""

    text: str


Cell = str | Open | Command


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; every row has one cell per header."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class FolderPart:
    """One part of the folder: a file in Markdown, and a section of the page.

    name : name of the file without its ending, and anchor of the section.
    """

    name: str
    title: str
    items: Sequence[Cell | Heading | Quote | Grid]

    @property
    def open_points(self) -> Iterator[Open]:
        """The open points of the part, in their order."""
        for item in self.items:
            cells = (
                [cell for row in item.rows for cell in row] if isinstance(item, Grid) else [item]
            )
            yield from (cell for cell in cells if isinstance(cell, Open))
