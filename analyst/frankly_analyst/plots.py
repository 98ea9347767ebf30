# SPDX-License-Identifier: Apache-2.0
"""Plots as accessible SVG text: bars with whiskers, and curves; no scripts, no inline styles.

Colours come from the page's style sheet through the classes `bar`, `whisker`, `truth`, `axis`,
`label`, `curve` and `mark`; the attributes written here apply on a page without a style sheet.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from frankly_analyst import svg

SHARE: Final = "share"
NUMBER: Final = "number"
"""Units of estimates."""
# Labels are above their bars, so that plots fit on a phone.
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 440, 22, 62, 46, 4, 28
STROKE, WHISKER = "#174ea6", 'class="whisker" stroke="#123" stroke-width="2"'
_CURVE_LEFT, _CURVE_HEIGHT, _SAME_PLACE = 52, 280, 10


@dataclass(frozen=True, slots=True)
class Mark:
    """Named point to draw with a curve."""

    label: str
    x: float
    y: float


def percent(share: float | None) -> str:
    """Return a share in percent with a typographic minus: one decimal, two below 0.1%; None is "unknown"."""
    if share is None:
        return "unknown"
    decimals = 1 if share == 0 or abs(share) >= 0.001 else 2
    return f"{share * 100:.{decimals}f}%".replace("-", "−")


def figure(value: float | None, unit: str) -> str:
    """Return an estimate as text: a share in percent, a number with up to four digits."""
    if unit == SHARE or value is None:
        return percent(value)
    return f"{value:.4g}".replace("-", "−")


def interval(low: float | None, high: float | None, unit: str = SHARE) -> str:
    """Return an interval as text: both ends, because intervals need not be symmetric."""
    return (
        "interval unbounded"
        if low is None or high is None
        else f"{figure(low, unit)} to {figure(high, unit)}"
    )


def curve_plot(
    title: str, curve: Sequence[svg.Point], marks: Sequence[Mark], x_title: str, y_title: str
) -> str:
    """Return an SVG of a line through points (x, y), with named marks; both axes include 0.

    Raises ValueError without points.
    """
    if not curve:
        raise ValueError("a curve needs at least one point")
    points = [*curve, *((mark.x, mark.y) for mark in marks)]
    right, bottom = WIDTH - 24, _CURVE_HEIGHT - 44
    x = svg.Axis.from_zero([point[0] for point in points], _CURVE_LEFT, right)
    y = svg.Axis.from_zero([point[1] for point in points], bottom, 24)
    places = [(x.at(a), y.at(b)) for a, b in curve]
    elements = [
        *svg.columns(x, x.ticks(), 24, bottom, 12, svg.PAGE_GRID),
        *svg.rows(y, y.ticks(), _CURVE_LEFT, right, 12, svg.PAGE_GRID),
        svg.line(_CURVE_LEFT, bottom, right, bottom, svg.ZERO),
        svg.line(_CURVE_LEFT, 24, _CURVE_LEFT, bottom, svg.ZERO),
        svg.text(right, _CURVE_HEIGHT - 8, "end", x_title, 12),
        svg.text(2, 12, "start", y_title, 12),
        svg.polyline(places, STROKE, 2.5),
        *(svg.dot("curve-point", place, 3.5) for place in places),
    ]
    groups = _merged([((x.at(mark.x), y.at(mark.y)), mark.label) for mark in marks])
    for i, (place, labels) in enumerate(groups):
        # A label in the right part of the picture ends at its mark, so that it stays inside.
        side, shift = ("end", 4) if place[0] > WIDTH * 0.55 else ("start", -4)
        # Labels alternate above and below the curve, so that neighbours do not overlap.
        low = i % 2 == 1 and place[1] + 20 < bottom
        below = place[1] + (20 if low or place[1] < 30 else -10)
        elements.append(svg.dot("mark", place, 5))
        elements.append(svg.text(place[0] + shift, below, side, labels))
    description = "; ".join(
        [f"{x_title}, {y_title}: " + "; ".join(f"{a:.3g}, {b:.3g}" for a, b in curve)]
        + [f"{mark.label} {mark.x:.3g}, {mark.y:.3g}" for mark in marks]
    )
    return svg.document(WIDTH, _CURVE_HEIGHT, title, description, elements)


def _merged(places: Sequence[tuple[svg.Point, str]]) -> list[tuple[svg.Point, str]]:
    """Return each place once with all its labels; marks closer than a dot's width share a place."""
    groups: list[tuple[svg.Point, list[str]]] = []
    for place, label in places:
        nearby = (
            labels for group_place, labels in groups if math.dist(place, group_place) < _SAME_PLACE
        )
        labels = next(nearby, None)
        if labels is None:
            groups.append((place, [label]))
        else:
            labels.append(label)
    return [(place, ", ".join(labels)) for place, labels in groups]
