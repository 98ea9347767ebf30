# SPDX-License-Identifier: Apache-2.0
"""Plots of shares over time as SVG text: one panel per choice, all on the same scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from frankly_analyst import svg
from frankly_analyst.plots import STROKE, WHISKER, WIDTH, percent

_LEFT, _RIGHT, _PANEL, _LABEL, _BOTTOM = 46, WIDTH - 12, 108, 22, 26


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Estimated share in one period. low, high : ends of its interval, None if it has none."""

    period: str
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Trend:
    """A choice, with a point for each period that has enough answers."""

    label: str
    points: Sequence[TrendPoint]


def trend_plot(title: str, periods: Sequence[str], trends: Sequence[Trend]) -> str:
    """Return an SVG of dots with whiskers, joined by a line that skips missing periods."""
    if not periods or not any(trend.points for trend in trends):
        raise ValueError("a plot needs at least one point")
    values = [
        value
        for trend in trends
        for point in trend.points
        for value in (point.estimate, point.low, point.high)
        if value is not None
    ]
    # A single period is drawn in the middle, because an axis from 0 to 0 would have no length.
    last = len(periods) - 1
    x = svg.Axis(0, last, _LEFT + 10, _RIGHT - 10, 1) if last else svg.Axis(-1, 1, _LEFT, _RIGHT, 1)
    parts = []
    for i, trend in enumerate(trends):
        top = (_PANEL + _LABEL) * i + _LABEL
        y = svg.Axis.from_zero(values, top + _PANEL - 6, top + 6)
        parts.append(svg.text(2, top - 6, "start", trend.label))
        parts += svg.rows(y, y.ticks(100, "%"), _LEFT, _RIGHT, 12, svg.PAGE_GRID)
        parts.append(svg.line(_LEFT, y.at(0), _RIGHT, y.at(0), svg.ZERO))
        parts += _points([(x.at(periods.index(p.period)), p) for p in trend.points], y)
    height = (_PANEL + _LABEL) * len(trends) + _BOTTOM
    # Only the first and the last period have labels, because labels in between would overlap.
    ends = [(0, "start"), (last, "end")][: len(periods)]
    parts += [svg.text(x.at(i), height - 8, side, periods[i], 12) for i, side in ends]
    description = "; ".join(
        f"{trend.label}: " + ", ".join(map(_description, trend.points)) for trend in trends
    )
    return svg.document(WIDTH, height, title, description, parts)


def _points(points: Sequence[tuple[float, TrendPoint]], y: svg.Axis) -> list[str]:
    """Draw points at their x in pixels, with whiskers, and the line that joins them."""
    parts = [svg.polyline([(x, y.at(point.estimate)) for x, point in points], STROKE, 1.5)]
    for x, point in points:
        if point.low is not None and point.high is not None:
            parts.append(svg.line(x, y.at(point.low), x, y.at(point.high), WHISKER))
        parts.append(svg.dot("curve-point", (x, y.at(point.estimate)), 3.5))
    return parts


def _description(point: TrendPoint) -> str:
    sentence = f"{point.period} {percent(point.estimate)}"
    if point.low is None or point.high is None:
        return sentence
    return f"{sentence} (from {percent(point.low)} to {percent(point.high)})"
