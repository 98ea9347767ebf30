# SPDX-License-Identifier: Apache-2.0
"""Notebooks, run cell by cell against a real server; each page shows the outputs of its notebook."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from frankly_analyst import Estimate, Estimates
from frankly_analyst.plots import percent

from tests.frankly_analyst.conftest import Served
from tests.frankly_analyst.notebooks import NOTEBOOKS, pages
from tests.frankly_analyst.notebooks import served as run_all
from tests.frankly_analyst.validity_desk import DENY, FINED, TOLD, TRAVELS
from tests.narrowing import present
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


def test_the_notebook_of_comparisons_says_what_its_survey_shows(tmp_path: Path) -> None:
    ((_, names),) = run_all(tmp_path, ["comparisons"]).values()
    by_region = {(row.question, row.choice, row.by): row for row in names["by_region"]}
    weighted = [row for row in names["sized"] if row.by == "weighted=region"]
    assert len(weighted) == len(names["plain"])
    for row in weighted:
        plain = names["plain"][row.question, row.choice]
        north, south = (
            by_region[row.question, row.choice, f"region={one}"] for one in ("north", "south")
        )
        is_larger_in_the_south = present(south.estimate) > present(north.estimate)
        assert (present(row.estimate) > present(plain.estimate)) is is_larger_in_the_south
        assert present(row.se) > present(plain.se)
    assert names["found"].flags == ("score_instead",)
    assert {row.method for row in names["certain"]} == {"kl"}


def test_the_notebook_of_validity_says_what_its_survey_shows(tmp_path: Path) -> None:
    ((shown, names),) = run_all(tmp_path, ["validity"]).values()
    assert TOLD in " ".join(shown.split())
    says_yes = FINED * (1 - DENY)
    assert names["truth"] == pytest.approx([1 - says_yes, says_yes, *TRAVELS])
    found = {row.choice: row for row in names["estimates"]}
    truth = dict(zip(found, names["truth"], strict=True))

    def correction_helps(row: Estimate) -> bool:
        known = truth[row.choice]
        return abs(present(row.corrected) - known) < abs(present(row.estimate) - known)

    assert [correction_helps(row) for row in found.values()] == [False] * 2 + [True] * 3
    tested = {
        question: people.law_p
        for (question, _), people in names["estimates"].random_answers.items()
    }
    assert present(tested["fined"]) < 0.001 < 0.05 < present(tested["travels"])
    (yes,) = (row for row in names["stated"] if row.choice == "yes")
    assert present(yes.corrected_low) < truth["yes"] < present(yes.corrected_high)
    assert present(names["stated"].random_answers["fined", ""].law_p) > 0.05
    assert present(names["yes"].corrected_low) < FINED < present(names["yes"].denied_high)


def test_the_notebook_of_regression_says_what_its_survey_shows(tmp_path: Path) -> None:
    ((_, names),) = run_all(tmp_path, ["regression_on_public_data"]).values()
    assert names["part"].withheld_strata == 7
    # The answers are those of the same women, so the noise alone is between the two.
    beside = names["beside"]
    assert not beside.isna().any(axis=None)
    truth = beside["true answers"]
    assert ((beside["through the noise"] - truth).abs() < 3 * beside["its error"]).all()
    assert (beside["noise taken for answers"].abs() < truth.abs())[1:].all()
    assert names["coarse"].part("affair").withheld_strata == 0


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
    for name, (text, _) in run_all(tmp_path).items():
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


_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s.*\bfrankly_(\w+)", re.MULTILINE)


@pytest.mark.parametrize("name", [*NOTEBOOKS, "optimal_mechanisms"])
def test_a_notebook_needs_no_package_but_its_own(root: Path, name: str) -> None:
    """Readers of a notebook install the client, or of optimal_mechanisms the mathematics."""
    found = cells(root / "examples" / "notebooks" / f"{name}.ipynb")
    code = "\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "code")
    own = "design" if name == "optimal_mechanisms" else "analyst"
    assert set(_IMPORT.findall(code)) == {own}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_hold_no_outputs(root: Path, name: str) -> None:
    """Outputs are stored on the pages; in the notebook files, outputs would obscure changes of cells."""
    found = cells(root / "examples" / "notebooks" / f"{name}.ipynb")
    assert all(not cell.get("outputs") for cell in found)
