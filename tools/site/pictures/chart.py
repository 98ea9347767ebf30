# SPDX-License-Identifier: Apache-2.0
"""Charts of the site: curves on one pair of axes, distinguished by dash, label and colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from frankly_analyst import svg

INK, PALE = "#16202c", "#dbe7f3"
BLUE, ORANGE, GREEN, *_ = svg.SHADES
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 70, 150, 50, 52


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y), with a name drawn at the right end."""

    name: str
    points: Sequence[tuple[float, float]]
    steps: bool = False


@dataclass(frozen=True, slots=True)
class ChartTexts:
    """Texts of a chart: title, axes, and description for screen readers."""

    title: str
    x: str
    y: str
    description: str


def picture(width: int, height: int, title: str, description: str, elements: Sequence[str]) -> str:
    """Return a whole SVG: white background, title, and description for screen readers."""
    paper = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    size = f'width="{width}" height="{height}" font-family="system-ui, sans-serif"'
    return svg.document(width, height, title, description, [paper, *elements], size) + "\n"


def chart(
    texts: ChartTexts, curves: Sequence[Curve], *, logs: tuple[bool, bool] = (False, False)
) -> str:
    """Return a chart of curves on one pair of axes. logs : True for a logarithmic x or y axis."""
    x = svg.Axis.around([p[0] for c in curves for p in c.points], LEFT, WIDTH - RIGHT, log=logs[0])
    y = svg.Axis.around([p[1] for c in curves for p in c.points], HEIGHT - BOTTOM, TOP, log=logs[1])
    elements = [svg.text(12, 26, "start", texts.title, 16), *_grid(texts, x, y)]
    ends = _apart([y.at(c.points[-1][1]) for c in curves])
    for i, (curve, end) in enumerate(zip(curves, ends, strict=True)):
        elements += _curve(curve, i, x, y, end)
    return picture(WIDTH, HEIGHT, texts.title, texts.description, elements)


def _grid(texts: ChartTexts, x: svg.Axis, y: svg.Axis) -> list[str]:
    ticks = [(v, f"{v:,.0f}" if v >= 1000 else label) for v, label in x.ticks()]
    return [
        *svg.columns(x, ticks, TOP, HEIGHT - BOTTOM),
        *svg.rows(y, y.ticks(), LEFT, WIDTH - RIGHT),
        svg.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "middle", texts.x),
        svg.text(12, TOP - 8, "start", texts.y),
    ]


def _curve(curve: Curve, i: int, x: svg.Axis, y: svg.Axis, end: float) -> list[str]:
    places = [(x.at(a), y.at(b)) for a, b in curve.points]
    return [
        svg.polyline(svg.steps(places) if curve.steps else places, svg.SHADES[i], 2, svg.DASHES[i]),
        svg.text(WIDTH - RIGHT + 8, end + 4, "start", curve.name, 12, svg.SHADES[i]),
    ]


def _apart(
    heights: Sequence[float], least: float = 16, lowest: float = HEIGHT - BOTTOM - 8
) -> list[float]:
    """Move labels apart, in their order, so that no label covers another or the axis."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + least)
    for i in reversed(order):
        placed[i] = min(placed[i], lowest)
        lowest = placed[i] - least
    return placed
