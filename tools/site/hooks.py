# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does for this site beyond its own: tables that scroll, and a page of all the papers' figures."""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_TITLE: Final = re.compile(r"<title>(.*?)</title>")
_GALLERY: Final = "figures.md"
_HEAD: Final = """# Figures of the papers, made again

Each is written by `frankly reproduce`; [Figures made again](reproduce.md) says how, and what stands beside the paper.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add a page that shows every figure: a site has no listing of its folders."""
    drawn = sorted(file.src_uri for file in files if re.fullmatch(r"figures/[\w.-]+\.svg", file.src_uri))
    parts = [_HEAD]
    for name in drawn:
        found = _TITLE.search((Path(config["docs_dir"]) / name).read_text(encoding="utf-8"))
        title = (found[1] if found else Path(name).stem).replace("[", "(").replace("]", ")")
        parts.append(f"\n## {title}\n\n![{title}]({name})\n")
    files.append(File.generated(config, _GALLERY, content="".join(parts)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to the folder of figures to the page that shows them."""
    return markdown.replace("](figures/)", f"]({_GALLERY})")


def on_page_content(html: str, **_: Any) -> str:
    """Let wide tables scroll by themselves on a phone, as regions that keyboards and screen readers find."""
    number = 0

    def boxed(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        table = match.group().replace("<th></th>", "<td></td>")  # a corner without words heads nothing
        return f'<div class="scroll" role="region" aria-label="Table {number}" tabindex="0">{table}</div>'

    return _TABLE.sub(boxed, html)
