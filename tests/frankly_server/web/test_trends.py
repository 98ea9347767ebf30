# SPDX-License-Identifier: Apache-2.0
"""Plots over time and plots of frontiers: points at the correct positions, and well-formed, safe markup."""

from xml.etree import ElementTree

import pytest
from frankly_analyst.plots import WIDTH, Mark, curve_plot
from frankly_server.web.trends import Trend, TrendPoint, trend_plot

SVG = "{http://www.w3.org/2000/svg}"
DAYS = ["2026-06-01", "2026-06-02", "2026-06-03"]
TRENDS = [
    Trend(
        "No & <never>", [TrendPoint(DAYS[0], 0.7, 0.6, 0.8), TrendPoint(DAYS[2], 0.9, 0.75, 1.05)]
    ),
    Trend(
        "Yes",
        [
            TrendPoint(DAYS[0], 0.3, None, None),
            TrendPoint(DAYS[1], -0.1, -0.2, 0.0),
            TrendPoint(DAYS[2], 0.1, 0.0, 0.2),
        ],
    ),
]
X, Y = "information, nats", "margin, points"


def places(tree: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    return [
        (float(c.get("cx") or 0), float(c.get("cy") or 0))
        for c in tree.iter(f"{SVG}circle")
        if c.get("class") == kind
    ]


def test_every_point_has_its_place_and_every_margin_its_whisker() -> None:
    tree = ElementTree.fromstring(trend_plot("Smoking", DAYS, TRENDS))
    points = places(tree, "curve-point")
    whiskers = [line for line in tree.iter(f"{SVG}line") if line.get("class") == "whisker"]
    assert (len(points), len(whiskers)) == (5, 4)  # an estimate without a margin has none
    across = sorted({x for x, _ in points})
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)
    first, second = points[:2], points[2:]
    assert first[0][1] > first[1][1]  # larger values are higher
    # Every panel has the same scale, so a share of 0.2 has the same height.
    assert first[0][1] - first[1][1] == pytest.approx(second[1][1] - second[2][1], abs=0.2)
    description = tree.findtext(f"{SVG}desc") or ""
    assert "No & <never>: 2026-06-01 70.0% (from 60.0% to 80.0%)" in description
    assert "Yes: 2026-06-01 30.0%, " in description


def test_whiskers_end_where_the_interval_does() -> None:
    tree = ElementTree.fromstring(
        trend_plot("t", DAYS[:1], [Trend("a", [TrendPoint(DAYS[0], 0.5, 0.0, 1.0)])])
    )
    line = next(line for line in tree.iter(f"{SVG}line") if line.get("class") == "whisker")
    ((_, middle),) = places(tree, "curve-point")
    assert (float(line.get("y1") or 0) + float(line.get("y2") or 0)) / 2 == pytest.approx(
        middle, abs=0.1
    )


@pytest.mark.parametrize("trends", [[], [Trend("a", [])]])
def test_nothing_to_draw_is_refused(trends: list[Trend]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        trend_plot("t", DAYS, trends)
    with pytest.raises(ValueError, match="at least one"):
        trend_plot("t", [], TRENDS)
    with pytest.raises(ValueError, match="at least one"):
        curve_plot("t", [], [], X, Y)


def test_a_curve_and_its_marks_are_at_their_numbers() -> None:
    curve = [(0.5, 2.0), (1.0, 4.0)]
    tree = ElementTree.fromstring(curve_plot("t", curve, [Mark("grr", 0.5, 4.0)], X, Y))
    (left, low), (right, high) = places(tree, "curve-point")
    assert places(tree, "mark") == [(left, high)]
    assert right > left
    assert low > high
    line = next(tree.iter(f"{SVG}polyline"))
    assert line.get("points") == f"{left},{low} {right},{high}"
    assert "0.5, 2; 1, 4; grr 0.5, 4" in (tree.findtext(f"{SVG}desc") or "")


def test_marks_at_one_point_share_their_label() -> None:
    marks = [Mark("optimal (chosen)", 1.0, 2.0), Mark("grr", 1.0, 2.0001), Mark("oue", 0.2, 4.0)]
    tree = ElementTree.fromstring(curve_plot("t", [(1.0, 2.0)], marks, X, Y))
    labels = [element.text for element in tree.iter(f"{SVG}text")]
    assert "optimal (chosen), grr" in labels
    assert "oue" in labels
    assert len(places(tree, "mark")) == 2


@pytest.mark.parametrize("scale", [1e-6, 0.003, 1.0, 250.0])
def test_everything_lies_within_the_plot(scale: float) -> None:
    drawn = curve_plot(
        "t", [(0.1 * scale, scale), (scale, 0.1 * scale)], [Mark("far", scale, scale)], X, Y
    )
    tree = ElementTree.fromstring(drawn)
    for kind in ("curve-point", "mark"):
        for x, y in places(tree, kind):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= 280


def test_nothing_a_strict_policy_forbids_is_written() -> None:
    bad = '"><script>alert(1)</script>'
    for drawn in (
        trend_plot(bad, [bad], [Trend(bad, [TrendPoint(bad, 0.5, 0.4, 0.6)])]),
        curve_plot(bad, [(1.0, 1.0)], [Mark(bad, 1.0, 1.0)], bad, bad),
    ):
        assert "<script" not in drawn
        assert "style=" not in drawn
        ElementTree.fromstring(drawn)
