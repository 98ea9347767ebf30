# SPDX-License-Identifier: Apache-2.0
"""Page docs/conformance.md: its example runs, and it names every file and every field."""

import json
import re
from pathlib import Path

from frankly_sdk import conformance

from tests.conformance.driver import VARIABLE, in_this_process
from tests.vectors import make


def test_the_example_runs(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "conformance.md").read_text()
    example = re.search(r"echo '(\{.*\})' \\\n  \| python -m frankly_sdk.conformance (\w+)", page)
    assert example is not None
    request = json.loads(example.group(1)) | {"store": str(tmp_path / "device")}
    assert in_this_process(example.group(2), request).body == {
        "survey": "0123456789abcdef" * 2,
        "digest": None,
    }
    assert VARIABLE in page


def test_every_file_command_and_field_is_described(root: Path) -> None:
    page = (root / "docs" / "conformance.md").read_text()
    for name in make.FILES:
        assert f"| `{name}` |" in page
    for name, (needs, takes) in conformance._FIELDS.items():
        (row,) = re.findall(rf"^\| `{name}` \| (.*)$", page, re.MULTILINE)
        for field in needs | takes:
            assert f"`{field}`" in row
