# SPDX-License-Identifier: Apache-2.0
"""Dot plot with whiskers as SVG text, for numbers on any scale; 0 is always on the axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from frankly_analyst import svg
from frankly_analyst.plots import BOTTOM, LEFT, RIGHT, ROW, TOP, WHISKER, WIDTH


@dataclass(frozen=True)
class Dot:
    """Estimate with its interval."""

    label: str
    estimate: float
    low: float
    high: float


def dot_plot(title: str, dots: Sequence[Dot], factor: float = 1, unit: str = "") -> str:
    """Return an SVG of dots with whiskers, one row each; labels show `factor` times the value.

    Raises ValueError without dots.
    """
    if not dots:
        raise ValueError("a plot needs at least one row")
    scale = svg.Axis.from_zero(
        [v for d in dots for v in (d.low, d.estimate, d.high)], LEFT, WIDTH - RIGHT, most=6
    )
    bottom = TOP + ROW * len(dots)
    elements = svg.columns(scale, scale.ticks(factor, unit), TOP, bottom, 13, svg.PAGE_GRID)
    elements.append(svg.line(scale.at(0), TOP, scale.at(0), bottom, svg.ZERO))
    for i, dot in enumerate(dots):
        y = TOP + ROW * i + ROW / 2
        low, high = scale.at(dot.low), scale.at(dot.high)
        ends = ((low, y + 10, high, y + 10), *((x, y + 5, x, y + 15) for x in (low, high)))
        elements += [
            svg.text(LEFT, y - 6, "start", dot.label),
            *(svg.line(*places, WHISKER) for places in ends),
            svg.dot("mark", (scale.at(dot.estimate), y + 10), 5),
            svg.text(WIDTH, y + 15, "end", _text(dot.estimate, factor, unit)),
        ]
    texts = [[_text(v, factor, unit) for v in (d.estimate, d.low, d.high)] for d in dots]
    description = "; ".join(
        f"{d.label} {value}, from {low} to {high}"
        for d, (value, low, high) in zip(dots, texts, strict=True)
    )
    return svg.document(WIDTH, bottom + BOTTOM, title, description, elements)


def _text(value: float, factor: float, unit: str) -> str:
    return f"{value * factor:.3g}{unit}".replace("-", "−")
