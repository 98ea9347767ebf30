# SPDX-License-Identifier: Apache-2.0
"""R notebook survey_packages.Rmd: its page, survey_packages_r.md, has every cell and today's outputs."""

from pathlib import Path

import pytest

from tests.frankly_analyst.desk import filled, serving
from tests.frankly_analyst.notebooks import REPORTS
from tests.frankly_analyst.test_notebooks import rounded
from tests.frankly_analyst_r.notebook import NOTEBOOK, PAGE, page


def test_the_page_has_every_cell_of_the_notebook(root: Path) -> None:
    """`python -m tests.frankly_analyst_r.notebook` regenerates the page."""
    shown = PAGE.read_text(encoding="utf-8")
    assert "<notebooks/survey_packages_r>\n" in (root / "docs/index.md").read_text("utf-8")
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert text.count("```{r") > 10
    # Outputs are between the lines of a cell.
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("```")]
    assert [line for line in lines if line not in shown.splitlines()] == []


@pytest.mark.full_only
def test_the_page_is_what_the_notebook_shows(tmp_path: Path) -> None:
    home = tmp_path / "server"
    home.mkdir()
    with serving(filled(home, REPORTS)) as environment:
        made = page(tmp_path, environment)
    assert rounded(made) == rounded(PAGE.read_text(encoding="utf-8"))
