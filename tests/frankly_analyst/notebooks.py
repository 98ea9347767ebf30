# SPDX-License-Identifier: Apache-2.0
"""Notebooks, run against a filled survey; `python -m tests.frankly_analyst.notebooks` writes their pages."""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.frankly_analyst.desk import filled, serving
from tools.site.notebooks import page, run

ROOT: Final = Path(__file__).resolve().parents[2]
NOTEBOOKS: Final = (
    "first_estimates",
    "tables_and_evidence",
    "weights_and_a_model",
    "survey_packages",
)
REPORTS: Final = 2400


def pages(
    folder: Path, environment: Mapping[str, str], chosen: Sequence[str] = NOTEBOOKS
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Run the chosen notebooks in `folder`; return the page and the variables of each notebook by name."""
    made = {}
    outer = dict(os.environ)
    os.environ.update(environment)
    try:
        with contextlib.chdir(folder):
            for name in chosen:
                file = ROOT / "examples" / "notebooks" / f"{name}.ipynb"
                names: dict[str, Any] = {}
                made[name] = page(file, run(file, names)), names
    finally:
        os.environ.clear()
        os.environ.update(outer)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        with serving(filled(Path(scratch), REPORTS)) as environment:
            made = pages(Path(scratch), environment)
        target = ROOT / "docs" / "notebooks"
        target.mkdir(exist_ok=True)
        for name, (text, _) in made.items():
            (target / f"{name}.md").write_text(text, encoding="utf-8")
