# SPDX-License-Identifier: Apache-2.0
"""Axes and SVG elements: values lie between round ticks, and elements are valid in browsers with a
strict policy."""

from xml.etree import ElementTree

import pytest
from frankly_analyst.svg import Axis, document, polyline, steps, text


@pytest.mark.parametrize(
    ("values", "log"),
    [([0.0, 1.0], False), ([3.0], False), ([-5.0, -4.9], False), ([1e-3, 10.0], True), ([2.0, 3.0], True), ([], False),
     ([1e-9, 2e-9], False), ([5e5, 6e6], False)],
)  # fmt: skip
def test_axes_hold_their_values_between_round_ticks(values: list[float], log: bool) -> None:
    axis = Axis.around(values, 50, 400, log=log)
    assert all(50 <= axis.at(value) <= 400 for value in values)
    places = [axis.at(value) for value, _ in axis.ticks()]
    assert 2 <= len(places) <= 9
    assert places == sorted(places)
    assert len({words for _, words in axis.ticks()}) == len(places)


@pytest.mark.parametrize(
    ("values", "ends"),
    [([0.68, 0.72], (0, 0.8)), ([-0.08, 0.32], (-0.1, 0.4)), ([0.0], (0, 1)), ([], (0, 1)), ([-3.0], (-3, 0)),
     ([0.3, 0.6], (0, 0.6)), ([23.7, 26], (0, 30)), ([2.5e-7], (0, 2.5e-7))],
)  # fmt: skip
def test_an_axis_from_zero_ends_at_the_nearest_ticks(
    values: list[float], ends: tuple[float, float]
) -> None:
    axis = Axis.from_zero(values, 20, 420)
    assert (axis.low, axis.high) == pytest.approx(ends, rel=1e-12, abs=0)
    ticks = [value for value, _ in axis.ticks()]
    assert (ticks[0], ticks[-1]) == pytest.approx(ends, rel=1e-12, abs=0)
    assert 0 in ticks
    assert (axis.at(axis.low), axis.at(axis.high)) == (20, 420)


def test_labels_show_the_unit_and_a_true_minus() -> None:
    labels = [label for _, label in Axis.from_zero([-0.05, 0.075], 0, 100).ticks(100, "%")]
    assert labels == ["−5%", "−2.5%", "0%", "2.5%", "5%", "7.5%"]


def test_a_step_function_keeps_each_height_until_the_next_place() -> None:
    assert steps([(0, 1), (2, 5), (3, 4)]) == [(0, 1), (2, 1), (2, 5), (3, 5), (3, 4), (3, 4)]
    assert steps([]) == []


def test_texts_are_escaped_and_elements_well_formed() -> None:
    parts = [
        text(1, 2, "end", "<b> & co", 12, "#fff"),
        polyline([(0, 1), (2, 3)], "#000", 2, "4 2"),
    ]
    drawn = document(10, 20, "a < b", "</desc>", parts)
    root = ElementTree.fromstring(drawn)
    assert [child.text for child in root] == ["a < b", "</desc>", "<b> & co", None]
    assert root[3].get("points") == "0,1 2,3"
    assert root[3].get("stroke-dasharray") == "4 2"
