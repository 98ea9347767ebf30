# SPDX-License-Identifier: Apache-2.0
"""Growth bench at a few small sizes, and the page, which has a line per curve and every miss."""

import importlib
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    return importlib.import_module("growth")


@pytest.mark.full_only
def test_points_are_measured(bench: Any) -> None:
    points = list(bench.measure(("design", "verify", "estimate"), quick=True))
    assert {(p.panel, p.curve, p.x) for p in points} == {
        *(("design", "c = 2 secrets", a) for a in (4, 8)),
        *(("verify", name, k) for name in ("LDP", "LIP, k secrets") for k in (2, 8)),
        *(
            ("estimate_n", name, n)
            for name in ("5 shares", "16 × 16 cross-tab")
            for n in (100, 10_000)
        ),
        *(("estimate_k", name, k) for name in ("k shares", "k × k cross-tab") for k in (2, 8)),
    }
    assert all(0 < p.y < 60 for p in points)


def test_filed_results_are_on_the_page(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    performance = importlib.import_module("_performance")
    monkeypatch.setattr(performance, "DOCS", tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "design.json").write_text(
        (root / "docs" / "bench" / "design.json").read_text()
    )
    of = {"python": "3.11", "machine": "x"}
    growth = of | {
        "bench": "growth",
        "points": [
            {"panel": "design", "curve": "c = 2 secrets", "x": a, "y": a * 0.1} for a in (4, 8, 16)
        ]
        + [{"panel": "intake", "curve": "single reports", "x": k, "y": 900.0 * k} for k in (1, 2)],
    }
    intake = of | {
        "bench": "intake",
        "ratio_single_sqlite": 0.9,
        "spread": {"ratio_single_sqlite": [0.8, 1.0]},
        "asked": {"ratio_single_sqlite": "≥ 0.8"},
    }
    for name, body in {
        "growth": growth,
        "intake": intake | {"short": ["ratio_single_sqlite"]},
    }.items():
        (tmp_path / f"{name}.out").write_text(json.dumps(body))
    (tmp_path / "measured.md").write_text("By hand.\n" + performance.MARK + "old\n")
    performance.main([str(tmp_path / "growth.out"), str(tmp_path / "intake.out")])
    page = (tmp_path / "measured.md").read_text()
    assert page.startswith("By hand.\n" + performance.MARK)
    assert (
        "| Design: LIP optimum, ε = 1; c = 2 secrets | answers a: 4 to 16 "
        "| 0.4 to 1.6 CPU seconds, median 0.8 |" in page
    )
    assert "| 900 to 1,800 reports a second |" in page
    assert "| `ratio_single_sqlite` | 0.9 | ≥ 0.8 | **0 of 1** |" in page
    assert "- `ratio_single_sqlite`: 0.9; target ≥ 0.8." in page
    drawn = ElementTree.parse(tmp_path / "bench" / "growth.svg").getroot()
    curves = [
        line.get("points", "").split() for line in drawn.iter() if line.tag.endswith("polyline")
    ]
    assert [len(points) for points in curves] == [3, 2]


def test_a_result_of_a_part_replaces_that_part(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    performance = importlib.import_module("_performance")
    monkeypatch.setattr(performance, "DOCS", tmp_path)
    (tmp_path / "bench").mkdir()

    def filed(body: dict[str, Any]) -> dict[str, Any]:
        performance._file(body)
        merged: dict[str, Any] = json.loads(
            (tmp_path / "bench" / f"{body['bench']}.json").read_text()
        )
        return merged

    complete = {
        "bench": "scale",
        "sent_per_s": 5.0,
        "ratio_memory": 1.5,
        "crosstab_s": 3.0,
        "load": [1.0, 2.0],
    }
    filed(complete | {"short": ["ratio_memory", "crosstab_s"], "holds": False})
    merged = filed(
        {
            "bench": "scale",
            "crosstab_s": 0.5,
            "part": True,
            "load": [9.0, 8.0],
            "short": [],
            "holds": True,
        }
    )
    assert (merged["sent_per_s"], merged["crosstab_s"], merged["short"]) == (
        5.0,
        0.5,
        ["ratio_memory"],
    )
    assert (merged["holds"], merged["load"]) == (False, [1.0, 2.0, 9.0, 8.0])
    again = filed(complete | {"short": [], "holds": True})
    assert (again["crosstab_s"], again["load"]) == (3.0, [1.0, 2.0])

    def items(*numbers: int, seconds: float) -> dict[str, Any]:
        rows = [{"item": item, "seconds": seconds} for item in numbers]
        return filed({"bench": "design", "python": "3", "rows": rows, "ratio": 2.0, "holds": True})

    items(2, 3, seconds=1.0)
    assert items(1, 3, seconds=2.0) == {
        "bench": "design",
        "python": "3",
        "rows": [
            {"item": 1, "seconds": 2.0},
            {"item": 2, "seconds": 1.0},
            {"item": 3, "seconds": 2.0},
        ],
    }

    def panels(*names: str, y: float, load: float) -> dict[str, Any]:
        points = [{"panel": name, "curve": "c", "x": 1, "y": y} for name in names]
        return filed({"bench": "growth", "points": points, "load": [load]})

    panels("design", "intake", y=1.0, load=1.0)
    after = panels("intake", y=2.0, load=3.0)
    assert [(p["panel"], p["y"]) for p in after["points"]] == [("design", 1.0), ("intake", 2.0)]
    assert after["load"] == [1.0, 3.0]
    assert panels("design", "intake", y=4.0, load=5.0)["load"] == [5.0]
