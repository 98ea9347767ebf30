# SPDX-License-Identifier: Apache-2.0
"""Plots of shares over time as SVG text: one panel per choice, all on the same scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from frankly_analyst.plots import WIDTH, percent, text

_LEFT, _RIGHT, _PANEL, _LABEL, _BOTTOM = 46, 12, 96, 22, 26


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Share in one period; low, high : None for a product without an interval."""

    period: str
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Trend:
    """Choice, with a point for each period that has enough answers."""

    label: str
    points: Sequence[TrendPoint]


def trend_plot(title: str, periods: Sequence[str], trends: Sequence[Trend]) -> str:
    """Return an SVG of dots with whiskers joined by a line; missing periods leave a gap."""
    if not periods or not any(trend.points for trend in trends):
        raise ValueError("a plot needs at least one point")
    values = [0.0] + [
        value
        for trend in trends
        for point in trend.points
        for value in (point.estimate, point.low, point.high)
        if value is not None
    ]
    # At least one percentage point high: a constant share would divide by zero.
    low, high = min(values), max(*values, min(values) + 0.01)
    height = (_PANEL + _LABEL) * len(trends) + _BOTTOM
    description = "; ".join(
        f"{trend.label}: " + ", ".join(map(_description, trend.points)) for trend in trends
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" class="intervals">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(description)}</desc>",
    ]
    for i, trend in enumerate(trends):
        lines += _panel(trend, list(periods), (low, high), (_PANEL + _LABEL) * i + _LABEL)
    # Only the first and the last period are named: labels between them would overlap.
    ends = [(_x(0, len(periods)), "start", periods[0])]
    if len(periods) > 1:
        ends.append((_x(len(periods) - 1, len(periods)), "end", periods[-1]))
    return "\n".join(
        [*lines, *(text(x, height - 8, side, label, 12) for x, side, label in ends), "</svg>"]
    )


def _panel(trend: Trend, periods: list[str], span: tuple[float, float], top: int) -> list[str]:
    low, high = span

    def y(value: float) -> float:
        return round(top + 6 + (high - value) / (high - low) * (_PANEL - 12), 1)

    lines = [text(2, top - 6, "start", trend.label)]
    # The lines at zero and at both ends; fromkeys drops equal ones and keeps the order.
    for value in dict.fromkeys((low, 0.0, high)):
        # A number that would overlap the zero line's is left out; the table on the page shows it.
        overlaps = value in (low, high) and 0 < abs(y(value) - y(0.0)) < 14
        lines.append(
            _line("axis", _LEFT, WIDTH - _RIGHT, y(value), y(value), 1.5 if value == 0 else 0.5)
        )
        lines += (
            []
            if overlaps
            else [text(_LEFT - 6, y(value) + 4, "end", f"{value * 100:.0f}%".replace("-", "−"), 12)]
        )
    places = [(_x(periods.index(point.period), len(periods)), point) for point in trend.points]
    polyline = " ".join(f"{x},{y(point.estimate)}" for x, point in places)
    lines.append(
        f'<polyline class="curve" points="{polyline}" fill="none" stroke="#174ea6" stroke-width="1.5"/>'
    )
    for x, point in places:
        if point.low is not None and point.high is not None:
            lines.append(_line("whisker", x, x, y(point.low), y(point.high), 2))
        lines.append(
            f'<circle class="curve-point" cx="{x}" cy="{y(point.estimate)}" r="3.5" fill="#174ea6"/>'
        )
    return lines


def _x(place: int, periods: int) -> float:
    room = WIDTH - _LEFT - _RIGHT - 20
    return round(_LEFT + 10 + (room * place / (periods - 1) if periods > 1 else room / 2), 1)


def _line(kind: str, x1: float, x2: float, y1: float, y2: float, width: float) -> str:
    colour = "#123" if kind == "whisker" else "#999"
    ends = f'x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"'
    return f'<line class="{kind}" {ends} stroke="{colour}" stroke-width="{width}"/>'


def _description(point: TrendPoint) -> str:
    sentence = f"{point.period} {percent(point.estimate)}"
    if point.low is None or point.high is None:
        return sentence
    return f"{sentence} (from {percent(point.low)} to {percent(point.high)})"
