# SPDX-License-Identifier: Apache-2.0
"""Command that prints the page docs/maths/coverage.md, which lists the tests of each claim; --write
writes the page."""

import sys
from pathlib import Path

from tests.papers.coverage import page

if "--write" in sys.argv[1:]:
    (Path(__file__).resolve().parents[2] / "docs" / "maths" / "coverage.md").write_text(
        page(), encoding="utf-8"
    )
else:
    sys.stdout.write(page())
