# SPDX-License-Identifier: Apache-2.0
"""Rendering of parts: Markdown files, CSV tables, and one page without scripts."""

import base64
import csv
import hashlib
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from frankly_analyst.formats import cell as spreadsheet_cell
from jinja2 import Environment, PackageLoader, StrictUndefined

from frankly_server.evidence.content import (
    FILL,
    Cell,
    Command,
    FolderPart,
    Grid,
    Heading,
    Open,
    Quote,
)
from frankly_server.evidence.facts import Facts

_MARKUP: Final = re.compile(r"([\\`*_\[\]|#~$!])")
_KINDS: Final = {
    Open: "open",
    Command: "command",
    Heading: "heading",
    Quote: "quote",
    Grid: "table",
}


def page(facts: Facts, parts: Sequence[FolderPart], files: Sequence[str]) -> bytes:
    """Return `index.html` with every part; it loads nothing and contains no script."""
    environment = Environment(
        loader=PackageLoader("frankly_server.evidence"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = environment.get_template("evidence.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    text = environment.get_template("index.html").render(
        facts=facts,
        parts=parts,
        files=files,
        fill=FILL,
        style=style,
        style_digest=digest,
        count=sum(len(list(part.open_points)) for part in parts),
        kind_of=_kind_of,
    )
    return text.encode()


def markdown(part: FolderPart) -> bytes:
    """Return a part as a Markdown file; texts are escaped, so that none of them is markup."""
    blocks = [f"# {_escaped(part.title)}", *map(_markdown_item, part.items)]
    return ("\n\n".join(blocks) + "\n").encode()


def csv_table(table: Grid) -> bytes:
    """Return a table as CSV for spreadsheets, with a byte order mark; cells that they would evaluate are escaped."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.headers)
    writer.writerows([spreadsheet_cell(_plain(cell)) for cell in row] for row in table.rows)
    return out.getvalue().encode("utf-8-sig")


def open_points(parts: Sequence[FolderPart]) -> Grid:
    """Return the table of all open points."""
    rows = [(part.name, point.about) for part in parts for point in part.open_points]
    return Grid(("part", "open point"), rows)


def _kind_of(item: Any) -> str:
    return _KINDS.get(type(item), "text")


def _markdown_item(item: Cell | Heading | Quote | Grid) -> str:
    if isinstance(item, Heading):
        return f"## {_escaped(item.text)}"
    if isinstance(item, Quote):
        return f"> {_escaped(item.text)}"
    if not isinstance(item, Grid):
        return _markdown_cell(item)
    lines = [item.headers, ["---"] * len(item.headers)]
    header = [" | ".join(map(_escaped, item.headers)), " | ".join(lines[1])]
    rows = [" | ".join(map(_markdown_cell, row)) for row in item.rows]
    return "\n".join(f"| {line} |" for line in (*header, *rows))


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Command):
        # A vertical bar would end a table's cell even within code.
        return f"`{' '.join(cell.line.split()).replace('|', '&#124;')}`"
    text = _escaped(_plain(cell))
    return f"**{text}**" if isinstance(cell, Open) else text


def _plain(cell: Cell) -> str:
    return cell.line if isinstance(cell, Command) else str(cell)


def _escaped(text: str) -> str:
    # A line break would start a new block, such as a heading.
    # References, because renderers differ in whether a backslash disarms a tag.
    return escape(_MARKUP.sub(r"\\\1", " ".join(text.split())), quote=False)
