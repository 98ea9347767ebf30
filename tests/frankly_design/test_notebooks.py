# SPDX-License-Identifier: Apache-2.0
"""Notebook optimal_mechanisms: it runs, and its page shows what it gives."""

import json
import re
from pathlib import Path

import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tests.frankly_design.notebooks import FILE, NAME, PAGES, made
from tools.site.notebooks import cells, page, run


def rounded(text: str) -> str:
    """Return a page without the digits that differ between processors: the fourth decimal and
    beyond, and a gap near 1e-9."""
    text = re.sub(r"better by more than [\de.-]+", "better by more than GAP", text)
    return re.sub(r"(\d\.\d{3})\d+", r"\1", text)


@pytest.fixture(scope="module")
def page_made() -> str:
    return made(None)[0]


def test_the_page_is_what_the_notebook_gives(page_made: str) -> None:
    """`python -m tests.frankly_design.notebooks` writes the page again."""
    stored = (PAGES / f"{NAME}.md").read_text(encoding="utf-8")
    assert rounded(stored) == rounded(page_made)


def test_statements_of_the_notebook_hold(page_made: str) -> None:
    """Cells print True for each statement of the texts beside them."""
    assert "```text\nTrue True\n```" in page_made  # seven standard errors
    assert "```text\nTrue True True\n```" in page_made  # Funnel, Figure 3
    assert "```text\n{True} lip (" in page_made  # whole numbers
    assert "False" not in page_made


def test_every_picture_of_the_page_is_stored_and_no_other(page_made: str) -> None:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page_made)
    assert len(named) == len(set(named)) == 7
    assert sorted(named) == sorted(file.name for file in PAGES.glob(f"{NAME}_*.png"))


def test_the_notebook_needs_nothing_but_its_libraries() -> None:
    source = "".join("".join(cell["source"]) + "\n" for cell in cells(FILE))
    imported = re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE)
    assert imported == ["frankly_design", "numpy", "pandas", "matplotlib"]
    assert all(not cell.get("outputs") for cell in cells(FILE))


def test_the_page_is_in_the_index(root: Path) -> None:
    index = (root / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"<notebooks/{NAME}>\n" in index


def test_a_plot_becomes_a_picture_or_its_title(tmp_path: Path) -> None:
    source = "from matplotlib import pyplot as plt\nplt.subplots()[1].set_ylabel('share');"
    cell_texts = [("markdown", "# Plots"), ("code", source)]
    notebook = {"cells": [{"cell_type": kind, "source": [text]} for kind, text in cell_texts]}
    file = tmp_path / "plots.ipynb"
    file.write_text(json.dumps(notebook), encoding="utf-8")
    assert page(file, run(file)).endswith("\n```\n\n*Plot: share*\n")
    drawn: list[Figure] = []

    def picture(figure: Figure, number: int) -> str:
        drawn.append(figure)
        return f"{number}.png"

    assert page(file, run(file), picture=picture).endswith("\n![Plot: share](1.png)\n")
    assert len(drawn) == 1
    plt.close("all")
