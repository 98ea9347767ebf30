# SPDX-License-Identifier: Apache-2.0
"""The page on estimates names every column of an exported table, in a row of its own table."""

import re
from pathlib import Path

from frankly_analyst.formats import COLUMNS


def test_every_column_is_explained(root: Path) -> None:
    page = (root / "docs" / "estimates.md").read_text("utf-8")
    (table,) = re.findall(r"### Columns\n.*?\n\| column \| meaning \|\n(.*?)\n\n", page, re.DOTALL)
    named = [
        name for row in table.splitlines() for name in re.findall("`([a-z_]+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(COLUMNS)
