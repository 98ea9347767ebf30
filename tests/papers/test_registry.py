# SPDX-License-Identifier: Apache-2.0
"""The documentation of the mathematics names claims, files and tests that exist."""

import re
from pathlib import Path

from tests.papers.registry import collect

_TEST = re.compile(r"`(test_\w+)::(test_\w+)`")
_CODE = re.compile(r"`((?:design|estimate)/\w+\.py|rational\.py)`")


def test_every_test_named_in_the_documentation_exists(root: Path) -> None:
    defined = {
        (path.stem, name)
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {pair for path in _documents(root) for pair in _TEST.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert named - defined == set()


def test_every_file_named_in_the_documentation_exists(root: Path) -> None:
    named = {name for path in _documents(root) for name in _CODE.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (root / "server" / "frankly_server" / name).is_file()] == []


def test_every_registered_claim_is_documented(root: Path) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in _documents(root))
    claims = collect()
    assert len(claims) >= 8
    assert [claim for claim in sorted(claims) if claim not in text] == []


def _documents(root: Path) -> list[Path]:
    return sorted((root / "docs" / "maths").glob("*.md"))
