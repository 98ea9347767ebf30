# SPDX-License-Identifier: Apache-2.0
"""R notebook, run by knitr against a filled survey; `python -m tests.frankly_analyst_r.notebook` writes its page."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.frankly_analyst.desk import filled, serving
from tests.frankly_analyst.notebooks import REPORTS
from tests.frankly_analyst_r.commands import installed, r
from tools.site.notebooks import Ran
from tools.site.notebooks import page as converted

ROOT: Final = Path(__file__).resolve().parents[2]
NOTEBOOK: Final = ROOT / "examples" / "notebooks" / "survey_packages.Rmd"
PAGE: Final = ROOT / "docs" / "notebooks" / "survey_packages_r.md"
# Outputs are blocks of text, as on the pages of the Python notebooks.
_KNIT: Final = """
options(width = 100, digits = 7)
knitr::render_markdown()
knitr::opts_chunk$set(comment = NA)
block <- function(x, options) paste0("\\n```text\\n", sub("\\n*$", "\\n", x), "```\\n")
knitr::knit_hooks$set(output = block, error = block, warning = block, message = block)
knitr::knit(commandArgs(TRUE)[1], "page.md", quiet = TRUE)
"""


def page(folder: Path, environment: Mapping[str, str]) -> str:
    """Run the notebook in `folder` with the package of this tree; return its page."""
    installed(folder)
    (folder / "knit.R").write_text(_KNIT)
    r("Rscript", "knit.R", str(NOTEBOOK), cwd=folder, **environment)
    knitted = (folder / "page.md").read_text(encoding="utf-8")
    lines = "\n".join(line.rstrip() for line in knitted.strip().splitlines())
    while "\n\n\n" in lines:
        lines = lines.replace("\n\n\n", "\n\n")
    return converted(
        NOTEBOOK,
        iter([Ran(is_code=False, source=lines)]),
        made_by="tests.frankly_analyst_r.notebook",
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "server")
        home.mkdir()
        with serving(filled(home, REPORTS)) as environment:
            PAGE.write_text(page(Path(scratch), environment), encoding="utf-8")
