# SPDX-License-Identifier: Apache-2.0
"""Print which test shows which claim, as docs/maths/coverage.md has it; with --write, write that page."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))  # as pytest has it

from tests.papers.coverage import page

if "--write" in sys.argv[1:]:
    (Path(__file__).resolve().parents[2] / "docs" / "maths" / "coverage.md").write_text(
        page(), encoding="utf-8"
    )
else:
    sys.stdout.write(page())
