# SPDX-License-Identifier: Apache-2.0
"""Bars with whiskers as SVG text: no scripts, no inline styles, readable by screen readers and in print.

Colours come from the page's style sheet through the classes `bar`, `whisker`, `truth`, `axis` and `label`; the
attributes written here are what a page without one shows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# Labels stand above their bars, so that the plot stays readable on a phone's width.
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 440, 14, 62, 46, 4, 28
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class PlotRow:
    """One share with its interval; `truth` is drawn as a diamond where it is known (in demonstrations)."""

    label: str
    estimate: float
    low: float
    high: float
    truth: float | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Sequence[float]) -> "_Scale":
        """Cover zero and all values with about six round ticks."""
        low, high = min(0.0, *values), max(0.0, *values)
        step = next((s for s in _STEPS if (high - low) / s <= 6), (high - low) / 6)
        return cls(math.floor(low / step + 1e-9) * step, max(math.ceil(high / step - 1e-9), 1) * step, step)

    def x(self, value: float) -> float:
        """Return the horizontal position of a value in pixels."""
        return round(LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT), 1)

    def ticks(self) -> list[float]:
        """Return the round values that get a line."""
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]


def interval_plot(title: str, rows: Sequence[PlotRow]) -> str:
    """Return an SVG of horizontal bars (estimates) with whiskers (intervals); shares are shown in percent."""
    if not rows:
        raise ValueError("a plot needs at least one row")
    known = [row.truth for row in rows if row.truth is not None]
    scale = _Scale.around([v for row in rows for v in (row.low, row.high, row.estimate)] + known)
    height = TOP + ROW * len(rows) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" class="intervals">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape('; '.join(_words(row) for row in rows))}</desc>",
        *_axis(scale, height),
    ]
    for i, row in enumerate(rows):
        parts += _row(row, scale, TOP + ROW * i + ROW / 2)
    return "\n".join([*parts, "</svg>"])


def percent(share: float) -> str:
    """Return a share as text with a true minus sign: one decimal, two where one would read as nothing."""
    decimals = 1 if share == 0 or abs(share) >= 0.001 else 2
    return f"{share * 100:.{decimals}f}%".replace("-", "−")


def _axis(scale: _Scale, height: int) -> list[str]:
    bottom = height - BOTTOM
    lines = []
    for tick in scale.ticks():
        x = scale.x(tick)
        weight = 1.5 if abs(tick) < scale.step / 2 else 0.5
        ends = f'x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"'
        lines.append(f'<line class="axis" {ends} stroke="#999" stroke-width="{weight}"/>')
        lines.append(text(x, bottom + 18, "middle", f"{tick * 100:.0f}%".replace("-", "−")))
    return lines


def _row(row: PlotRow, scale: _Scale, y: float) -> list[str]:
    """Draw one row whose middle is at `y`: the label in its upper half, bar and whisker in the lower."""
    bar = y + 10
    start, end = sorted((scale.x(0.0), scale.x(row.estimate)))
    low, high = scale.x(row.low), scale.x(row.high)
    whisker = 'class="whisker" stroke="#123" stroke-width="2"'
    parts = [
        text(LEFT, y - 6, "start", row.label),
        f'<rect class="bar" x="{start}" y="{bar - 7}" width="{round(end - start, 1)}" height="14" fill="#7aa6d8"/>',
        f'<line {whisker} x1="{low}" x2="{high}" y1="{bar}" y2="{bar}"/>',
        f'<line {whisker} x1="{low}" x2="{low}" y1="{bar - 5}" y2="{bar + 5}"/>',
        f'<line {whisker} x1="{high}" x2="{high}" y1="{bar - 5}" y2="{bar + 5}"/>',
        text(WIDTH, bar + 5, "end", percent(row.estimate)),
    ]
    if row.truth is not None:
        x = scale.x(row.truth)
        points = f"{x},{bar - 7} {x + 5},{bar} {x},{bar + 7} {x - 5},{bar}"
        parts.append(f'<polygon class="truth" points="{points}" fill="#c8501e" stroke="#fff" stroke-width="1"/>')
    return parts


def text(x: float, y: float, anchor: str, said: str, size: int = 13) -> str:
    """Return one line of text: (x, y) is its start, middle or end (`anchor`), size in pixels."""
    return f'<text class="label" x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(said)}</text>'


def _words(row: PlotRow) -> str:
    said = f"{row.label} {percent(row.estimate)}, from {percent(row.low)} to {percent(row.high)}"
    return said if row.truth is None else f"{said}, truth {percent(row.truth)}"
