# SPDX-License-Identifier: Apache-2.0
"""Every notebook runs, cell by cell, against a real server."""

import json
from pathlib import Path
from typing import Any

import pytest
from frankly_analyst import Estimates
from frankly_analyst.plots import percent

from tests.frankly_analyst.conftest import Served

NOTEBOOKS = ("first_estimates", "tables_and_evidence")


def run(file: Path) -> dict[str, Any]:
    """Execute the code cells in order, in one namespace."""
    names: dict[str, Any] = {}
    for i, cell in enumerate(json.loads(file.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{file.name}[{i}]", "exec"), names)
    return names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(
    served: Served,
    root: Path,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable, value in (
        ("FRANKLY_URL", served.url), ("FRANKLY_API_KEY", served.site.analyst_key), ("SURVEY", served.site.survey),
    ):  # fmt: skip
        monkeypatch.setenv(variable, value)
    names = run(root / "examples" / "notebooks" / f"{name}.ipynb")
    assert isinstance(names["estimates"], Estimates)
    shown = capsys.readouterr().out
    if name == "first_estimates":
        assert names["picture"].startswith("<svg")
        ends = [(row.low, row.high) for name in ("estimates", "safe") for row in names[name]]
        assert all(f" {percent(low)} to {percent(high)} " in shown for low, high in ends)
        assert names["relative"].low is None or names["relative"].low < names["relative"].high
    else:
        assert len(names["table"]) == 6
        assert "of releases [1]" in shown
        assert json.loads((tmp_path / "result.json").read_bytes()) == names["estimates"].body


def test_no_notebook_is_left_out(root: Path) -> None:
    assert {file.stem for file in (root / "examples" / "notebooks").glob("*.ipynb")} == set(
        NOTEBOOKS
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_hold_no_outputs(root: Path, name: str) -> None:
    cells = json.loads((root / "examples" / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)
