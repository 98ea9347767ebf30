# SPDX-License-Identifier: Apache-2.0
"""Notebook of frankly_design; `python -m tests.frankly_design.notebooks` writes its page and pictures."""

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot as plt

from tools.site.notebooks import page, run

ROOT: Final = Path(__file__).resolve().parents[2]
NAME: Final = "optimal_mechanisms"
FILE: Final = ROOT / "examples" / "notebooks" / f"{NAME}.ipynb"
PAGES: Final = ROOT / "docs" / "notebooks"
_DOTS_PER_INCH: Final = 80


def made(folder: Path | None) -> tuple[str, dict[str, Any]]:
    """Run the notebook; return its page and its variables. Plots are written if `folder` is not None."""
    mpl.use("Agg")

    def picture(figure: Any, number: int) -> str:
        name = f"{NAME}_{number}.png"
        if folder is not None:
            figure.savefig(folder / name, dpi=_DOTS_PER_INCH, metadata={"Software": None})
        plt.close(figure)
        return name

    names: dict[str, Any] = {}
    note = "as run by the tests; plots of drawn reports differ from run to run"
    text = page(
        FILE, run(FILE, names), made_by="tests.frankly_design.notebooks", note=note, picture=picture
    )
    return text, names


if __name__ == "__main__":
    (PAGES / f"{NAME}.md").write_text(made(PAGES)[0], encoding="utf-8")
