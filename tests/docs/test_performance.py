# SPDX-License-Identifier: Apache-2.0
"""Page docs/performance.md, which is generated from the benchmark results in docs/bench/."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_generated_from_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    page = importlib.import_module("_performance").page()
    assert (ROOT / "docs" / "performance.md").read_text() == page, (
        "run python bench/_performance.py"
    )
