# SPDX-License-Identifier: Apache-2.0
"""SVG charts and elements of the site's pictures; curves differ by dash and label, not colour alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from frankly_analyst.plots import text

from papers.drawing import Axis

INK, SOFT, BLUE, ORANGE, GREEN, PALE = (
    "#16202c",
    "#56616c",
    "#0b3c6f",
    "#b8420f",
    "#1c7a3d",
    "#dbe7f3",
)
DASHES: Final = ("", "8 4", "2 3", "10 3 2 3", "5 2")
SHADES: Final = (BLUE, ORANGE, GREEN, "#6d2a86", SOFT)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 70, 150, 50, 52


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y) with a name that stands at its right end."""

    name: str
    points: Sequence[tuple[float, float]]
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Texts of a chart: title, axes, and description for screen readers."""

    title: str
    x: str
    y: str
    description: str


def picture(width: int, height: int, title: str, description: str, parts: Sequence[str]) -> str:
    """Return a whole SVG: white paper, title, and description for screen readers."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(description)}</desc>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *parts,
        "</svg>",
        "",
    ])  # fmt: skip


def chart(
    words: Words, curves: Sequence[Curve], *, logs: tuple[bool, bool] = (False, False)
) -> str:
    """Return curves over one pair of axes; logs : whether x and y are logarithmic."""
    x = Axis.around([p[0] for c in curves for p in c.points], LEFT, WIDTH - RIGHT, log=logs[0])
    y = Axis.around([p[1] for c in curves for p in c.points], HEIGHT - BOTTOM, TOP, log=logs[1])
    parts = [text(12, 26, "start", words.title, 16), *_grid(words, x, y)]
    ends = _apart([y.at(c.points[-1][1]) for c in curves])
    for i, (curve, end) in enumerate(zip(curves, ends, strict=True)):
        parts += _curve(curve, i, x, y, end)
    return picture(WIDTH, HEIGHT, words.title, words.description, parts)


def _grid(words: Words, x: Axis, y: Axis) -> list[str]:
    parts = []
    for value, name in x.ticks():
        at = x.at(value)
        written = f"{value:,.0f}" if value >= 1000 else name
        parts += [
            line(at, TOP, at, HEIGHT - BOTTOM),
            text(at, HEIGHT - BOTTOM + 17, "middle", written, 12),
        ]
    for value, name in y.ticks():
        at = y.at(value)
        parts += [line(LEFT, at, WIDTH - RIGHT, at), text(LEFT - 7, at + 4, "end", name, 12)]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "middle", words.x, 13))
    parts.append(text(12, TOP - 8, "start", words.y, 13))
    return parts


def _curve(curve: Curve, i: int, x: Axis, y: Axis, end: float) -> list[str]:
    places = [(x.at(a), y.at(b)) for a, b in curve.points]
    if curve.steps:
        places = [
            place for (h, v), (after, _) in pairwise(places) for place in ((h, v), (after, v))
        ]
    dash = f' stroke-dasharray="{DASHES[i]}"' if DASHES[i] else ""
    points = " ".join(f"{h},{v}" for h, v in places)
    shade = SHADES[i]
    label = text(WIDTH - RIGHT + 8, end + 4, "start", curve.name, 12).replace(
        "<text ", f'<text fill="{shade}" ', 1
    )
    return [
        f'<polyline points="{points}" fill="none" stroke="{shade}" stroke-width="2"{dash}/>',
        label,
    ]


def _apart(
    heights: Sequence[float], least: float = 16, lowest: float = HEIGHT - BOTTOM - 8
) -> list[float]:
    """Move labels apart so that none covers another nor the axis, keeping their order."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + least)
    for i in reversed(order):
        placed[i] = min(placed[i], lowest)
        lowest = placed[i] - least
    return placed


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = 'stroke="#ddd"') -> str:
    """Return a straight line."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {stroke}/>'
