# SPDX-License-Identifier: Apache-2.0
"""Notebooks, run against a filled survey; `python -m tests.frankly_analyst.notebooks` writes their pages."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.frankly_analyst import redbook_desk, validity_desk
from tests.frankly_analyst.desk import filled, serving
from tests.frankly_server.web.site import Site
from tools.site.notebooks import page, run

ROOT: Final = Path(__file__).resolve().parents[2]
NOTEBOOKS: Final = (
    "first_estimates",
    "tables_and_evidence",
    "weights_and_a_model",
    "comparisons",
    "validity",
    "survey_packages",
    "regression_on_public_data",
)
REPORTS: Final = 2400
_OWN_DESK: Final = {
    "validity": (validity_desk.filled, REPORTS),
    "regression_on_public_data": (redbook_desk.filled, redbook_desk.WOMEN),
}
"""Notebook → the function that fills its survey and the number of reports, where these are its own."""


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


def served(
    folder: Path, chosen: Sequence[str] = NOTEBOOKS
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Run the chosen notebooks, each against its survey; return like `pages`."""
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    by_desk: dict[tuple[Callable[[Path, int], Site], int], list[str]] = {}
    for name in chosen:
        by_desk.setdefault(_OWN_DESK.get(name, (filled, REPORTS)), []).append(name)
    for number, ((fill, n), names) in enumerate(by_desk.items()):
        home = folder / f"desk{number}"
        home.mkdir()
        with serving(fill(home, n)) as environment:
            made |= pages(home, environment, names)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made = served(Path(scratch))
        target = ROOT / "docs" / "notebooks"
        target.mkdir(exist_ok=True)
        for name, (text, _) in made.items():
            (target / f"{name}.md").write_text(text, encoding="utf-8")
