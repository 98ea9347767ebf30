# SPDX-License-Identifier: Apache-2.0
"""SVG text: axes with round ticks, grid lines, curves and labels; no scripts, no inline styles.

Shared by the plots of this package and of the server's pages, by the papers' figures, and by the
pictures of the documentation and of the benchmarks. The classes `axis`, `curve` and `label` take
their colours from a page's style sheet; the attributes written here apply without one.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final
from unicodedata import bidirectional

SHADES: Final = (
    "#0b3c6f",
    "#b8420f",
    "#1c7a3d",
    "#6d2a86",
    "#555555",
    "#0e8088",
    "#9a7400",
    "#a8104c",
)
"""Colours of the curves in one plot."""
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 2", "6 2 1 2 1 2")
"""Dashes of the same curves, so that they also differ in black and white."""
GRID: Final = 'stroke="#ddd"'
PAGE_GRID: Final = 'class="axis" stroke="#999" stroke-width="0.5"'
ZERO: Final = 'class="axis" stroke="#999" stroke-width="1.5"'
"""The zero line is heavier on pages, because estimated shares can be negative."""

_NOT_IN_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Point = tuple[float, float]
"""Place (x, y) in pixels, or a pair of values of a curve."""
Ticks = Iterable[tuple[float, str]]
"""Values with their labels."""


def escaped(content: str) -> str:
    """Return a text as it is written in SVG: characters that no XML may have become U+FFFD."""
    return escape(_NOT_IN_XML.sub("\ufffd", content))


class Svg(str):
    """SVG text that a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Axis:
    """Scale from values to pixels: low and high lie at the pixels start and end.

    low, high : exponents of ten if `log`. step : distance between ticks; not used if `log`.
    """

    low: float
    high: float
    start: float
    end: float
    step: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, *, log: bool) -> "Axis":
        """Return an axis that covers all finite values, with a little room at the ends.

        If `log`, values that are not positive are ignored.
        """
        finite = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [0.1, 1.0]
        low, high = min(finite), max(finite)
        if log:
            low, high = math.log10(low), math.log10(high)
        # An axis around a single value would have the length 0.
        if high - low < 1e-12 * max(1.0, abs(high)):
            low, high = low - 0.5, high + 0.5
        room = 0.03 * (high - low)
        # Zero is included if it is near, because an axis that starts above zero exaggerates
        # differences.
        low = 0.0 if not log and 0 <= low < 0.35 * high else low - room
        return cls(low, high + room, start, end, _round_step(high + room - low, 5), log)

    @classmethod
    def from_zero(
        cls, values: Iterable[float], start: float, end: float, *, most: int = 5
    ) -> "Axis":
        """Return an axis over zero and all values with about `most` equal steps; both ends are ticks."""
        covered = [0.0, *values]
        return cls.between(
            min(covered), max(covered) if any(covered) else 1.0, start, end, most=most
        )

    @classmethod
    def between(cls, low: float, high: float, start: float, end: float, *, most: int = 5) -> "Axis":
        """Return an axis with about `most` equal steps, from a tick at or below `low` to one at or above `high`."""
        if not high > low:
            low, high = low - 0.5, high + 0.5
        step = _round_step(high - low, most)
        # Subtracting 1e-9 keeps float errors of the quotient from adding a step beyond a value on a
        # tick.
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(first * step, last * step, start, end, step)

    def at(self, value: float) -> float:
        """Return the pixel of a value; values beyond the axis are placed at its end."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, factor: float = 1, unit: str = "") -> list[tuple[float, str]]:
        """Return about five round values with their labels, which show `factor` times the value."""
        if self.log:
            powers = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            if len(powers) >= 2:
                every = max(1, len(powers) // 5)
                return [(10.0**k, _power(k)) for k in powers if k % every == 0]
            thirds = (self.low + (self.high - self.low) * i / 3 for i in range(4))
            return [(10.0**v, f"{10.0**v:.2g}") for v in thirds]
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        values = [k * self.step for k in range(first, last + 1)]
        return [(v, f"{v * factor:.6g}{unit}".replace("-", "−")) for v in values]


def document(
    width: int,
    height: int,
    title: str,
    description: str,
    elements: Iterable[str],
    attributes: str = 'class="intervals"',
    *,
    margin: int = 0,
) -> Svg:
    """Return a complete SVG of width × height pixels, with title and description for screen readers.

    description : "" for none. attributes : further attributes of the svg element. margin : pixels around these.
    """
    box = f"{-margin} {-margin} {width + 2 * margin} {height + 2 * margin}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img"'
    return Svg(
        "\n".join(
            [
                f"{head} {attributes}>",
                f"<title>{escaped(title)}</title>",
                *([f"<desc>{escaped(description)}</desc>"] if description else []),
                *elements,
                "</svg>",
            ]
        )
    )


def reading(content: str) -> str:
    """Return the attribute of an element whose text is read from right to left; "" for other texts."""
    is_rightward = all(bidirectional(letter) not in ("R", "AL") for letter in content)
    return "" if is_rightward else ' unicode-bidi="plaintext"'


def text(
    x: float,
    y: float,
    anchor: str,
    content: str,
    size: int = 13,
    fill: str = "",
    *,
    weight: str = "",
    kind: str = "label",
) -> str:
    """Return one line of text: (x, y) is its start, middle or end (`anchor`); `size` is in pixels.

    weight : of the font, "" for the usual one. kind : classes for the style sheet.
    """
    shade = (f' fill="{fill}"' if fill else "") + (f' font-weight="{weight}"' if weight else "")
    ends = f'x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}"{reading(content)}'
    return f'<text class="{kind}" {ends}{shade}>{escaped(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str = GRID) -> str:
    """Return a straight line. style : attributes of the element."""
    return f'<line x1="{round(x1, 1)}" y1="{y1}" x2="{round(x2, 1)}" y2="{y2}" {style}/>'


def polyline(places: Iterable[Point], stroke: str, width: float, dash: str = "") -> str:
    """Return a curve through places in pixels."""
    points = " ".join(f"{x},{y}" for x, y in places)
    style = f'fill="none" stroke="{stroke}" stroke-width="{width}"'
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline class="curve" points="{points}" {style}{dashes}/>'


def steps(places: Sequence[Point]) -> list[Point]:
    """Return the corners of a step function: each height lasts until the next place."""
    following = [*places[1:], *places[-1:]]
    return [
        corner
        for (x, y), (after, _) in zip(places, following, strict=True)
        for corner in ((x, y), (after, y))
    ]


def dot(kind: str, place: Point, radius: float) -> str:
    """Return a filled circle. kind : class for the style sheet."""
    return f'<circle class="{kind}" cx="{place[0]}" cy="{place[1]}" r="{radius}" fill="#174ea6"/>'


def columns(
    axis: Axis, ticks: Ticks, top: float, bottom: float, size: int = 12, style: str = GRID
) -> list[str]:
    """Draw the ticks of a horizontal axis: lines from top to bottom, with labels below."""
    return [
        part
        for value, label in ticks
        for part in (
            line(axis.at(value), top, axis.at(value), bottom, style),
            text(axis.at(value), bottom + size + 4, "middle", label, size),
        )
    ]


def rows(
    axis: Axis, ticks: Ticks, left: float, right: float, size: int = 12, style: str = GRID
) -> list[str]:
    """Draw the ticks of a vertical axis: lines from left to right, with labels on the left."""
    return [
        part
        for value, label in ticks
        for part in (
            line(left, axis.at(value), right, axis.at(value), style),
            text(left - 6, axis.at(value) + 4, "end", label, size),
        )
    ]


def _round_step(span: float, most: int) -> float:
    """Return the least step, 1, 2, 2.5 or 5 times a power of ten, with span / step ≤ most."""
    least = span / most
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= least * (1 - 1e-9))


def _power(k: int) -> str:
    return f"{10.0**k:g}" if -4 < k < 5 else f"1e{k}"
