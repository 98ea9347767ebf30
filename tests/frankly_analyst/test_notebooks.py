# SPDX-License-Identifier: Apache-2.0
"""Notebooks, run cell by cell against a real server; each page shows the outputs of its notebook."""

import json
import re
from pathlib import Path

import pytest
from frankly_analyst import Estimates
from frankly_analyst.plots import percent

from tests.frankly_analyst.conftest import Served
from tests.frankly_analyst.desk import filled, serving
from tests.frankly_analyst.notebooks import NOTEBOOKS, REPORTS, pages
from tools.site.notebooks import cells


def test_the_notebooks_run(served: Served, tmp_path: Path) -> None:
    environment = {
        "FRANKLY_URL": served.url,
        "FRANKLY_API_KEY": served.site.analyst_key,
        "SURVEY": served.site.survey,
    }
    # weights_and_a_model needs public strata with enough reports, and survey_packages the package
    # svy, so they run with their pages, below.
    made = pages(tmp_path, environment, NOTEBOOKS[:2])
    shown, names = made["first_estimates"]
    assert names["picture"].startswith("<svg")
    assert names["picture"] in shown
    ends = [(row.low, row.high) for name in ("estimates", "safe") for row in names[name]]
    assert all(f" {percent(low)} to {percent(high)} " in shown for low, high in ends)
    assert names["relative"].low is None or names["relative"].low < names["relative"].high
    shown, names = made["tables_and_evidence"]
    assert isinstance(names["estimates"], Estimates)
    assert len(names["table"]) == 6
    assert "of releases [1]" in shown
    assert json.loads((tmp_path / "result.json").read_bytes()) == names["estimates"].body


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_page_has_every_cell_of_its_notebook_and_its_outputs(root: Path, name: str) -> None:
    """`python -m tests.frankly_analyst.notebooks` regenerates the pages."""
    page = (root / "docs" / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
    assert f"<notebooks/{name}>\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")
    assert '<div class="output">' in page
    for cell in cells(root / "examples" / "notebooks" / f"{name}.ipynb"):
        source = "".join(cell["source"]).strip()
        title, _, rest = source.partition("\n")
        assert (source if cell["cell_type"] == "code" else rest.strip()) in page
        assert title in page


@pytest.mark.full_only
def test_the_pages_are_what_the_notebooks_show(root: Path, tmp_path: Path) -> None:
    with serving(filled(tmp_path, REPORTS)) as environment:
        made = pages(tmp_path, environment)
    for name, (text, _) in made.items():
        page = (root / "docs" / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
        assert rounded(text) == rounded(page)


def rounded(page: str) -> str:
    """Return a page without the digits that differ between processors and the sizes that change
    with the API."""
    return re.sub(r"\b\d+ bytes", "N bytes", re.sub(r"(\d\.\d{3})\d+", r"\1", page))


def test_no_notebook_is_left_out(root: Path) -> None:
    assert {file.stem for file in (root / "examples" / "notebooks").glob("*.ipynb")} == {
        *NOTEBOOKS,
        "optimal_mechanisms",  # tests/frankly_design/test_notebooks.py
    }


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_hold_no_outputs(root: Path, name: str) -> None:
    """Outputs are stored on the pages; in the notebook files, outputs would obscure changes of cells."""
    found = cells(root / "examples" / "notebooks" / f"{name}.ipynb")
    assert all(not cell.get("outputs") for cell in found)
