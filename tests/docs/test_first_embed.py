# SPDX-License-Identifier: Apache-2.0
"""Embedding guides: few commands, few own lines, and with --full followed from an empty folder."""

from pathlib import Path

import pytest

from tests.docs.first_embed import GUIDES, follow
from tools.release.__main__ import build

MAX_COMMANDS, MAX_LINES, HOUR_S = 6, 25, 3600


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_short_and_complete(name: str) -> None:
    guide = GUIDES[name]
    assert 1 < len(guide.commands) <= MAX_COMMANDS, guide.commands
    assert 1 < guide.own_lines <= MAX_LINES
    assert sum("https://ask.example.org/s/ID#sha256=…" in one.body for one in guide.blocks) == 1
    assert guide.commands[-1].endswith("8001"), "the last command serves the page"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the packages of a release, made from this checkout."""
    return build(tmp_path_factory.mktemp("release"))


@pytest.mark.full_only
@pytest.mark.parametrize("name", GUIDES)
def test_a_newcomer_s_answer_arrives(name: str, archives: list[Path], tmp_path: Path) -> None:
    assert follow(name, tmp_path, archives) < HOUR_S
