# SPDX-License-Identifier: Apache-2.0
"""MkDocs hooks of this site: scrolling tables, and a page of all figures of the papers."""

import re
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW: Final = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<(?P<kind>t[hd])(?P<given>[^>]*)>(?P<body>.*?)</t[hd]>", re.DOTALL)
_CODE: Final = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_PICTURE: Final = re.compile(r'<img [^>]*?src="(?P<place>[^"]+\.svg)"[^>]*>')
_TAG: Final = re.compile(r"<[^>]+>")
_JOINT: Final = re.compile(r"(?<=\w)(?:::|[_./=-])(?=\w)")
_WIDTHS: Final = {"prose": 60, "words": 16}
"""Class of a column -> its longest cell has more characters than this; widths are in site.css."""
_TITLE: Final = re.compile(r"<title>(.*?)</title>")
_GALLERY: Final = "figures.md"
_HEAD: Final = """# Reproduced figures of the papers

`python -m papers` writes them; [Reproduced figures](reproduce.md) compares each with the paper.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add a page that shows every figure, because a site has no folder listings."""
    drawn = sorted(
        file.src_uri for file in files if re.fullmatch(r"figures/[\w.-]+\.svg", file.src_uri)
    )
    sections = [_HEAD]
    for name in drawn:
        match = _TITLE.search((Path(config["docs_dir"]) / name).read_text(encoding="utf-8"))
        title = (match[1] if match else Path(name).stem).replace("[", "(").replace("]", ")")
        sections.append(f"\n## {title}\n\n![{title}]({name})\n")
    files.append(File.generated(config, _GALLERY, content="".join(sections)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links to the folder of figures by links to the page that shows them."""
    return markdown.replace("](figures/)", f"]({_GALLERY})")


def _readable(table: str) -> str:
    """Add width classes to columns of text, and allow breaks inside long names in code."""
    rows = [
        [len(_TAG.sub("", cell["body"])) for cell in _CELL.finditer(row)]
        for row in _ROW.findall(table)
    ]
    longest = [max(column) for column in zip(*rows, strict=True)]
    columns = cycle(longest)  # cells are matched row by row

    def cell(match: re.Match[str]) -> str:
        length, kind = next(columns), match["kind"]
        width = next((f' class="{name}"' for name, least in _WIDTHS.items() if length > least), "")
        body = _CODE.sub(lambda code: _JOINT.sub(r"\g<0><wbr>", code[0]), match["body"])
        return f"<{kind}{match['given']}{width}>{body}</{kind}>"

    return _CELL.sub(cell, table)


def on_page_content(html: str, **_: Any) -> str:
    """Wrap each table in a scrollable region for keyboards and screen readers; link each picture.

    The link opens only the picture, so that a phone can enlarge it.
    """
    number = 0

    def boxed(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        # an empty corner cell is not a header
        table = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", _readable(match.group()))
        return f'<div class="scroll" role="region" aria-label="Table {number}" tabindex="0">{table}</div>'

    return _PICTURE.sub(r'<a href="\g<place>">\g<0></a>', _TABLE.sub(boxed, html))
