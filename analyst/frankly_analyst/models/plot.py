# SPDX-License-Identifier: Apache-2.0
"""Dot plot with whiskers as SVG text, for numbers on any scale; 0 is always on the axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.svg import Svg


@dataclass(frozen=True)
class Dot:
    """Estimate with its interval."""

    label: str
    estimate: float
    low: float
    high: float


def dot_plot(title: str, dots: Sequence[Dot], factor: float = 1, unit: str = "") -> Svg:
    """Return an SVG of dots with whiskers, one row each; labels show `factor` times the value.

    Raises ValueError without dots.
    """
    lines = [
        Line(
            dot.label,
            *(dot.estimate, dot.low, dot.high),
            _text(dot.estimate, factor, unit),
            f"{_text(dot.low, factor, unit)} to {_text(dot.high, factor, unit)}",
        )
        for dot in dots
    ]
    return intervals(title, [("", lines)], Scale.from_zero_of(lines, factor, unit), dots=True)


def _text(value: float, factor: float, unit: str) -> str:
    return f"{value * factor:.3g}{unit}".replace("-", "−")
