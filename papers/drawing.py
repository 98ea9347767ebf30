# SPDX-License-Identifier: Apache-2.0
"""Curves, points, steps and boxes as SVG text: axes, legend, readable in black and white and without a style sheet.

Curves differ by dash, by marker and by shade, never by colour alone.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from frankly_analyst.plots import text

from papers.figure import Figure, Panel, Row

WIDTH, HEIGHT, COLUMNS = 430, 320, 2
LEFT, RIGHT, TOP, BOTTOM, HEAD, LINE = 66, 14, 34, 44, 44, 18
_SMALL = 11
_LETTER = 7.4
_SHADES = ("#0b3c6f", "#b8420f", "#1c7a3d", "#6d2a86", "#555555", "#0e8088", "#9a7400", "#a8104c")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 2", "6 2 1 2 1 2")
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "plus", "ring", "bar")
_MOST_MARKED = 24


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from values to pixels: start and end are the pixels of low and high."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, *, log: bool) -> "Axis":
        """Cover all values, with a little room where they do not end at a tick."""
        known = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [
            0.1,
            1.0,
        ]
        low, high = min(known), max(known)
        if log:
            low, high = math.log10(low), math.log10(high)
        if high - low < 1e-12 * max(1.0, abs(high)):
            low, high = low - 0.5, high + 0.5
        room = 0.03 * (high - low)
        low = 0.0 if not log and 0 <= low < 0.35 * high else low - room
        return cls(low, high + room, start, end, log)

    def at(self, value: float) -> float:
        """Return the pixel of a value; the end of the axis for what is beyond it."""
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return about five round values with their words."""
        if self.log:
            powers = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            if len(powers) >= 2:
                every = max(1, len(powers) // 5)
                return [(10.0**k, _power(k)) for k in powers if k % every == 0]
            few = (self.low + (self.high - self.low) * i / 3 for i in range(4))
            return [(10.0**v, f"{10.0**v:.2g}") for v in few]
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= raw * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(k * step, f"{k * step:.6g}".replace("-", "−")) for k in range(first, last + 1)]


def drawing(figure: Figure, rows: Sequence[Row], said: str) -> str:
    """Return a figure as one SVG: its panels two abreast, the legend below. said : a line under the title."""
    curves = list(dict.fromkeys(row.curve for row in rows))
    across = min(COLUMNS, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    title = f"{figure.number}: {figure.title}"
    width = max(across * WIDTH, round(_LETTER * len(title)) + 24)
    legend = _legend(curves, width, HEAD + down * HEIGHT)
    height = HEAD + down * HEIGHT + legend[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="sans-serif" class="figure">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(f'{figure.paper}, {figure.number}. {said}')}</desc>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(12, 19, "start", title, 14),
        text(12, 36, "start", said, _SMALL),
    ]
    for i, panel in enumerate(figure.panels):
        own = [row for row in rows if row.panel == panel.key]
        parts.append(
            f'<g transform="translate({i % across * WIDTH} {HEAD + i // across * HEIGHT})">'
        )
        parts += _panel(panel, own, curves)
        parts.append("</g>")
    return "\n".join([*parts, *legend[0], "</svg>", ""])


def _panel(panel: Panel, rows: Sequence[Row], curves: Sequence[str]) -> list[str]:
    ends = [v for row in rows for v in (row.y, *_ranges(panel, row)) if v is not None]
    ends += [0.0] if panel.from_zero else []
    x_values = [row.x for row in rows]
    if panel.kind == "box":
        x_values = [-0.6, len(panel.names) - 0.4]
    x = Axis.around(x_values, LEFT, WIDTH - RIGHT, log=panel.x_log)
    y = Axis.around(ends, HEIGHT - BOTTOM, TOP, log=panel.y_log)
    parts = [text(LEFT, TOP - 12, "start", panel.title, 13), *_frame(panel, x, y)]
    for name in dict.fromkeys(row.curve for row in rows):
        own = sorted((row for row in rows if row.curve == name), key=lambda row: row.x)
        parts += _curve(panel, own, curves.index(name), x, y)
    return parts


def _ranges(panel: Panel, row: Row) -> tuple[float | None, ...]:
    return (row.low, row.high, row.least, row.most) if panel.kind == "box" else (row.low, row.high)


def _frame(panel: Panel, x: Axis, y: Axis) -> list[str]:
    parts = []
    across = (
        [(float(i), name) for i, name in enumerate(panel.names)]
        or [(v, f"{v:g}") for v in panel.marks]
        or x.ticks()
    )
    for value, words in across:
        at = x.at(value)
        parts.append(_line(at, TOP, at, HEIGHT - BOTTOM, 'stroke="#ddd"'))
        parts.append(text(at, HEIGHT - BOTTOM + 15, "middle", words, _SMALL))
    for value, words in y.ticks():
        at = y.at(value)
        parts.append(_line(LEFT, at, WIDTH - RIGHT, at, 'stroke="#ddd"'))
        parts.append(text(LEFT - 6, at + 4, "end", words, _SMALL))
    box = f'x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"'
    parts.append(f'<rect class="axis" {box} fill="none" stroke="#333"/>')
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 33, "middle", panel.x, 12))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<g transform="rotate(-90 14 {middle})">{text(14, middle, "middle", panel.y, 12)}</g>'
    )
    return parts


def _curve(panel: Panel, rows: Sequence[Row], k: int, x: Axis, y: Axis) -> list[str]:
    shade = _SHADES[k % len(_SHADES)]
    if panel.kind == "box":
        return [part for row in rows for part in _box(row, x, y, shade)]
    if panel.kind == "points":
        return [_marker(k, x.at(row.x), y.at(row.y)) for row in rows]
    places = [(x.at(row.x), y.at(row.y)) for row in rows]
    if panel.kind == "steps":
        places = _steps(places)
    points = " ".join(f"{h},{v}" for h, v in places)
    dash = f' stroke-dasharray="{_DASHES[k % len(_DASHES)]}"' if _DASHES[k % len(_DASHES)] else ""
    parts = [
        f'<polyline class="curve" points="{points}" fill="none" stroke="{shade}" stroke-width="1.6"{dash}/>'
    ]
    for i, row in enumerate(rows):
        if row.low is not None and row.high is not None:
            # curves that share their x stand beside each other
            at = x.at(row.x) + (k % 5 - 2) * 1.5
            parts.append(
                _line(at, y.at(row.low), at, y.at(row.high), f'stroke="{shade}" stroke-width="0.8"')
            )
        if panel.kind == "line" and i % math.ceil(len(rows) / _MOST_MARKED) == 0:
            parts.append(_marker(k, x.at(row.x), y.at(row.y)))
    return parts


def _steps(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for (h, v), (after, _) in zip(places, [*places[1:], places[-1]], strict=True):
        found += [(h, v), (after, v)]
    return found


def _box(row: Row, x: Axis, y: Axis, shade: str) -> list[str]:
    at, ends = x.at(row.x), (row.least, row.low, row.high, row.most)
    least, low, high, most = (y.at(row.y if v is None else v) for v in ends)
    stroke = f'stroke="{shade}" stroke-width="1.5"'
    return [
        _line(at, least, at, low, stroke),
        _line(at, high, at, most, stroke),
        _line(at - 8, least, at + 8, least, stroke),
        _line(at - 8, most, at + 8, most, stroke),
        f'<rect x="{at - 14}" y="{high}" width="28" height="{round(low - high, 1)}" fill="none" {stroke}/>',
        _line(at - 14, y.at(row.y), at + 14, y.at(row.y), f'stroke="{shade}" stroke-width="3"'),
    ]


def _marker(k: int, x: float, y: float) -> str:
    # a ninth curve has the first one's dash, but not its marker
    shade, kind = (
        _SHADES[k % len(_SHADES)],
        _MARKERS[(k + 3 * (k // len(_MARKERS))) % len(_MARKERS)],
    )
    fill = f'fill="{shade}"'
    stroke = f'fill="none" stroke="{shade}" stroke-width="1.5"'
    shapes = {
        "circle": f'<circle cx="{x}" cy="{y}" r="3" {fill}/>',
        "ring": f'<circle cx="{x}" cy="{y}" r="3.2" {stroke}/>',
        "square": f'<path d="M{x - 3},{y - 3}h6v6h-6z" {fill}/>',
        "triangle": f'<path d="M{x},{y - 4}l4,7h-8z" {fill}/>',
        "diamond": f'<path d="M{x},{y - 4.5}l3.5,4.5l-3.5,4.5l-3.5,-4.5z" {stroke}/>',
        "cross": f'<path d="M{x - 3},{y - 3}l6,6m0,-6l-6,6" {stroke}/>',
        "plus": f'<path d="M{x - 4},{y}h8m-4,-4v8" {stroke}/>',
        "bar": f'<path d="M{x},{y - 4}v8" {stroke}/>',
    }
    return shapes[kind]


def _legend(curves: Sequence[str], width: int, top: int) -> tuple[list[str], int]:
    """Return the legend's lines and its height."""
    parts: list[str] = []
    x, y = 16.0, top + 14.0
    for k, name in enumerate(curves):
        wide = 52 + 6.6 * len(name)
        if x + wide > width and x > 16:
            x, y = 16.0, y + LINE
        shade, dash = _SHADES[k % len(_SHADES)], _DASHES[k % len(_DASHES)]
        parts.append(
            _line(
                x,
                y - 4,
                x + 32,
                y - 4,
                f'stroke="{shade}" stroke-width="1.6" stroke-dasharray="{dash}"',
            )
        )
        parts.append(_marker(k, x + 16, y - 4))
        parts.append(text(x + 38, y, "start", name, 12))
        x += wide
    return parts, round(y) - top + 12


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{round(x1, 1)}" y1="{y1}" x2="{round(x2, 1)}" y2="{y2}" {style}/>'


def _power(k: int) -> str:
    return f"{10.0**k:g}" if -4 < k < 5 else f"1e{k}"
