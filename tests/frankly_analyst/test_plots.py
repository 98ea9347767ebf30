# SPDX-License-Identifier: Apache-2.0
"""Percentages in words, and curves: points at their numbers, inside the picture, safe under a strict policy."""

from xml.etree import ElementTree

import pytest
from frankly_analyst.plots import WIDTH, Mark, curve_plot, percent

SVG = "{http://www.w3.org/2000/svg}"
X, Y = "information, nats", "margin, points"


def places(tree: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    return [
        (float(c.get("cx") or 0), float(c.get("cy") or 0))
        for c in tree.iter(f"{SVG}circle")
        if c.get("class") == kind
    ]


def test_percent_uses_a_true_minus() -> None:
    assert (percent(-0.0123), percent(0.5), percent(0)) == ("−1.2%", "50.0%", "0.0%")


def test_a_small_margin_does_not_read_as_none() -> None:
    assert (percent(0.0004), percent(0.001)) == ("0.04%", "0.1%")


def test_a_curve_without_points_is_refused() -> None:
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
def test_a_curve_lies_within_its_picture(scale: float) -> None:
    drawn = curve_plot(
        "t", [(0.1 * scale, scale), (scale, 0.1 * scale)], [Mark("far", scale, scale)], X, Y
    )
    tree = ElementTree.fromstring(drawn)
    for kind in ("curve-point", "mark"):
        for x, y in places(tree, kind):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= 280


def test_a_curve_writes_nothing_that_a_strict_policy_forbids() -> None:
    bad = '"><script>alert(1)</script>'
    drawn = curve_plot(bad, [(1.0, 1.0)], [Mark(bad, 1.0, 1.0)], bad, bad)
    assert "<script" not in drawn
    assert "style=" not in drawn
    ElementTree.fromstring(drawn)
