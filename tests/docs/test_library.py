# SPDX-License-Identifier: Apache-2.0
"""Page docs/library.md: its Python runs and prints what the page says; it names every public name."""

import re
from pathlib import Path

import frankly_design
import pytest

from tools.blocks import blocks


def test_the_python_of_the_library_page_prints_what_it_says(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "library.md").read_text(encoding="utf-8")
    snippets = [block.body for block in blocks(page) if block.language == "python"]
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(snippet, names)
        promised = re.findall(r"# prints (.*)", snippet)
        assert capsys.readouterr().out.splitlines() == promised, snippet
    assert len(snippets) == 9


def test_the_library_page_has_every_notion_and_function(root: Path) -> None:
    page = (root / "docs" / "library.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE))
    classes = {
        name
        for name in frankly_design.__all__
        if isinstance(getattr(getattr(frankly_design, name), "name", None), str)
    }
    functions = {"design", "compare", "frontier", "measure", "estimate_shares", "design_form"}
    assert functions < set(frankly_design.__all__)
    assert described == functions | classes
