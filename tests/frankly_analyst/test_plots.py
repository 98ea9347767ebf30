# SPDX-License-Identifier: Apache-2.0
"""Plots with bars and whiskers: well-formed, complete, and safe under a strict content security policy."""

from xml.etree import ElementTree

import pytest
from frankly_analyst.plots import LEFT, RIGHT, WIDTH, PlotRow, interval_plot, percent, small_bar

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [PlotRow("No & <never>", 0.68, 0.64, 0.72, 0.66), PlotRow("Yes", 0.32, 0.28, 0.36, 0.34)]


def test_every_row_has_its_bar_whisker_truth_and_words() -> None:
    tree = ElementTree.fromstring(interval_plot("Affairs?", ROWS))
    kinds = [element.get("class") for element in tree.iter()]
    assert (kinds.count("bar"), kinds.count("whisker"), kinds.count("truth")) == (2, 6, 2)
    said = tree.findtext(f"{SVG}desc") or ""
    assert "No & <never> 68.0%, from 64.0% to 72.0%, truth 66.0%" in said


@pytest.mark.parametrize("low", [-0.2, -0.003, 0.0, 0.9])
def test_everything_lies_within_the_plot(low: float) -> None:
    tree = ElementTree.fromstring(interval_plot("t", [PlotRow("a", low + 0.05, low, low + 0.1)]))
    for element in tree.iter(f"{SVG}line"):
        for side in ("x1", "x2"):
            assert LEFT <= float(element.get(side) or -1) <= WIDTH - RIGHT


def test_nothing_a_strict_policy_forbids_is_written() -> None:
    drawn = interval_plot('"><script>alert(1)</script>', ROWS)
    assert "<script" not in drawn
    assert "style=" not in drawn


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        interval_plot("t", [])


def test_percent_uses_a_true_minus() -> None:
    assert (percent(-0.0123), percent(0.5), percent(0)) == ("−1.2%", "50.0%", "0.0%")


def test_a_small_margin_does_not_read_as_none() -> None:
    assert (percent(0.0004), percent(0.001)) == ("0.04%", "0.1%")


def test_every_element_is_svg_as_browsers_know_it() -> None:
    known = {
        "class",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "width",
        "height",
        "points",
        "fill",
        "stroke",
        "stroke-width",
    }
    known |= {"viewBox", "role", "text-anchor", "font-size"}
    tree = ElementTree.fromstring(interval_plot("t", [PlotRow("a", -0.05, -0.2, 0.1)]))
    assert {name for element in tree.iter() for name in element.attrib} <= known
    assert "−20%" in [element.text for element in tree.iter(f"{SVG}text")]


def test_a_small_bar_is_cut_at_its_ends_but_its_title_has_the_numbers() -> None:
    tree = ElementTree.fromstring(small_bar(PlotRow("<a>", 1.02, 0.9, 1.14)))
    assert tree.findtext(f"{SVG}title") == "<a> 102.0%, from 90.0% to 114.0%"
    (bar,) = tree.iter(f"{SVG}rect")
    assert (bar.get("x"), bar.get("width")) == ("2.0", "100.0")
    across = next(tree.iter(f"{SVG}line"))
    assert (across.get("x1"), across.get("x2")) == ("92.0", "102.0")
    assert tree.find(f"{SVG}desc") is None
