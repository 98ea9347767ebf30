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
class PlotRow:
    """Share with its interval; the `truth`, if known (in demonstrations), is drawn as a diamond.

    low, high : None for an estimate without an interval, which gets no whisker.
    """

    label: str
    estimate: float
    low: float | None
    high: float | None
    truth: float | None = None

    @property
    def values(self) -> list[float]:
        """All values that the scale must cover."""
        return [v for v in (self.low, self.high, self.estimate, self.truth) if v is not None]


@dataclass(frozen=True, slots=True)
class Mark:
    """Named point to draw with a curve."""

    label: str
    x: float
    y: float


def interval_plot(title: str, rows: Sequence[PlotRow]) -> str:
    """Return an SVG of horizontal bars (estimates) with whiskers (intervals), in percent.

    Raises ValueError without rows.
    """
    if not rows:
        raise ValueError("a plot needs at least one row")
    scale = svg.Axis.from_zero([v for row in rows for v in row.values], LEFT, WIDTH - RIGHT, most=6)
    bottom = TOP + ROW * len(rows)
    elements = svg.columns(scale, scale.ticks(100, "%"), TOP, bottom, 13, svg.PAGE_GRID)
    elements.append(svg.line(scale.at(0), TOP, scale.at(0), bottom, svg.ZERO))
    for i, row in enumerate(rows):
        elements += _row(row, scale, TOP + ROW * i + ROW / 2)
    description = "; ".join(_description(row) for row in rows)
    return svg.document(WIDTH, bottom + BOTTOM, title, description, elements)


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


def _row(row: PlotRow, scale: svg.Axis, y: float) -> list[str]:
    """Draw a row centred at `y`: label in the upper half, bar and whisker below."""
    bar = y + 10
    elements = [
        svg.text(LEFT, y - 6, "start", row.label),
        *_bar(row, scale, bar, 7),
        svg.text(WIDTH, bar + 5, "end", percent(row.estimate)),
    ]
    if row.truth is not None:
        x = scale.at(row.truth)
        points = f"{x},{bar - 7} {x + 5},{bar} {x},{bar + 7} {x - 5},{bar}"
        style = 'fill="#c8501e" stroke="#fff" stroke-width="1"'
        elements.append(f'<polygon class="truth" points="{points}" {style}/>')
    return elements


def _bar(row: PlotRow, scale: svg.Axis, y: float, half: float) -> list[str]:
    """Draw a bar of height 2 × half and its whisker, both centred at `y`."""
    start, end = sorted((scale.at(0.0), scale.at(row.estimate)))
    box = f'x="{start}" y="{y - half}" width="{round(end - start, 1)}" height="{2 * half}"'
    bar = f'<rect class="bar" {box} fill="#7aa6d8"/>'
    if row.low is None or row.high is None:
        return [bar]
    low, high = scale.at(row.low), scale.at(row.high)
    ends = ((low, y, high, y), *((x, y - 5, x, y + 5) for x in (low, high)))
    return [bar, *(svg.line(*places, WHISKER) for places in ends)]


def small_bar(row: PlotRow) -> str:
    """Return an SVG of one bar with its whisker, for a cell of a table.

    It covers 0% to 100%: values outside are clipped, but are in the title.
    """
    elements = _bar(row, svg.Axis(0, 1, 2, 102, 1), 7, 4)
    return svg.document(104, 14, _description(row), "", elements, 'width="104" height="14"')


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


def _description(row: PlotRow) -> str:
    sentence = f"{row.label} {percent(row.estimate)}"
    if row.low is not None and row.high is not None:
        sentence = f"{sentence}, from {percent(row.low)} to {percent(row.high)}"
    return sentence if row.truth is None else f"{sentence}, truth {percent(row.truth)}"
