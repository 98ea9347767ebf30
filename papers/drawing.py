# SPDX-License-Identifier: Apache-2.0
"""Plots of curves, points, steps and boxes as SVG text, readable in black and white and without a style sheet.

Curves differ in dash, marker and shade, never only in colour.
"""

import math
from collections.abc import Sequence

from frankly_analyst import svg

from papers.figure import Figure, Panel, Row

WIDTH, HEIGHT, COLUMNS = 430, 320, 2
LEFT, RIGHT, TOP, BOTTOM, HEAD, LINE = 66, 14, 34, 44, 44, 18
_SMALL = 11
_LETTER = 7.4
_MARKERS = ("circle", "square", "triangle", "diamond", "cross", "plus", "ring", "bar")
_MOST_MARKED = 24


def drawing(figure: Figure, rows: Sequence[Row], subtitle: str) -> str:
    """Return a figure as one SVG: panels in two columns, the legend below. subtitle : line under the title."""
    curves = list(dict.fromkeys(row.curve for row in rows))
    across = min(COLUMNS, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    title = f"{figure.number}: {figure.title}"
    width = max(across * WIDTH, round(_LETTER * len(title)) + 24)
    legend = _legend(curves, width, HEAD + down * HEIGHT)
    height = HEAD + down * HEIGHT + legend[1]
    elements = [
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        svg.text(12, 19, "start", title, 14),
        svg.text(12, 36, "start", subtitle, _SMALL),
    ]
    for i, panel in enumerate(figure.panels):
        panel_rows = [row for row in rows if row.panel == panel.key]
        elements.append(
            f'<g transform="translate({i % across * WIDTH} {HEAD + i // across * HEIGHT})">'
        )
        elements += _panel(panel, panel_rows, curves)
        elements.append("</g>")
    description = f"{figure.paper}, {figure.number}. {subtitle}"
    style = 'font-family="sans-serif" class="figure"'
    return svg.document(width, height, title, description, [*elements, *legend[0]], style) + "\n"


def _panel(panel: Panel, rows: Sequence[Row], curves: Sequence[str]) -> list[str]:
    ends = [v for row in rows for v in (row.y, *_ranges(panel, row)) if v is not None]
    ends += [0.0] if panel.from_zero else []
    x_values = [row.x for row in rows]
    if panel.kind == "box":
        x_values = [-0.6, len(panel.names) - 0.4]
    x = svg.Axis.around(x_values, LEFT, WIDTH - RIGHT, log=panel.x_log)
    y = svg.Axis.around(ends, HEIGHT - BOTTOM, TOP, log=panel.y_log)
    elements = [svg.text(LEFT, TOP - 12, "start", panel.title, 13), *_frame(panel, x, y)]
    for name in dict.fromkeys(row.curve for row in rows):
        curve_rows = sorted((row for row in rows if row.curve == name), key=lambda row: row.x)
        elements += _curve(panel, curve_rows, curves.index(name), x, y)
    return elements


def _ranges(panel: Panel, row: Row) -> tuple[float | None, ...]:
    return (row.low, row.high, row.least, row.most) if panel.kind == "box" else (row.low, row.high)


def _frame(panel: Panel, x: svg.Axis, y: svg.Axis) -> list[str]:
    across = (
        [(float(i), name) for i, name in enumerate(panel.names)]
        or [(v, f"{v:g}") for v in panel.marks]
        or x.ticks()
    )
    elements = [
        *svg.columns(x, across, TOP, HEIGHT - BOTTOM, _SMALL),
        *svg.rows(y, y.ticks(), LEFT, WIDTH - RIGHT, _SMALL),
    ]
    box = f'x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"'
    elements.append(f'<rect class="axis" {box} fill="none" stroke="#333"/>')
    elements.append(
        svg.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 33, "middle", panel.x, 12)
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    elements.append(
        f'<g transform="rotate(-90 14 {middle})">{svg.text(14, middle, "middle", panel.y, 12)}</g>'
    )
    return elements


def _curve(panel: Panel, rows: Sequence[Row], k: int, x: svg.Axis, y: svg.Axis) -> list[str]:
    shade = svg.SHADES[k % len(svg.SHADES)]
    if panel.kind == "box":
        return [element for row in rows for element in _box(row, x, y, shade)]
    if panel.kind == "points":
        return [_marker(k, x.at(row.x), y.at(row.y)) for row in rows]
    places = [(x.at(row.x), y.at(row.y)) for row in rows]
    if panel.kind == "steps":
        places = svg.steps(places)
    elements = [svg.polyline(places, shade, 1.6, svg.DASHES[k % len(svg.DASHES)])]
    for i, row in enumerate(rows):
        if row.low is not None and row.high is not None:
            # Shifted, so that the ranges of several curves at the same x do not overlap.
            centre = x.at(row.x) + (k % 5 - 2) * 1.5
            elements.append(
                svg.line(
                    centre,
                    y.at(row.low),
                    centre,
                    y.at(row.high),
                    f'stroke="{shade}" stroke-width="0.8"',
                )
            )
        if panel.kind == "line" and i % math.ceil(len(rows) / _MOST_MARKED) == 0:
            elements.append(_marker(k, x.at(row.x), y.at(row.y)))
    return elements


def _box(row: Row, x: svg.Axis, y: svg.Axis, shade: str) -> list[str]:
    at, ends = x.at(row.x), (row.least, row.low, row.high, row.most)
    least, low, high, most = (y.at(row.y if v is None else v) for v in ends)
    stroke = f'stroke="{shade}" stroke-width="1.5"'
    return [
        svg.line(at, least, at, low, stroke),
        svg.line(at, high, at, most, stroke),
        svg.line(at - 8, least, at + 8, least, stroke),
        svg.line(at - 8, most, at + 8, most, stroke),
        f'<rect x="{at - 14}" y="{high}" width="28" height="{round(low - high, 1)}" fill="none" {stroke}/>',
        svg.line(at - 14, y.at(row.y), at + 14, y.at(row.y), f'stroke="{shade}" stroke-width="3"'),
    ]


def _marker(k: int, x: float, y: float) -> str:
    # The ninth curve has the dash of the first curve, but another marker.
    shade, kind = (
        svg.SHADES[k % len(svg.SHADES)],
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
    """Return the legend's SVG elements and its height in pixels."""
    elements: list[str] = []
    x, y = 16.0, top + 14.0
    for k, name in enumerate(curves):
        entry_width = 52 + 6.6 * len(name)
        if x + entry_width > width and x > 16:
            x, y = 16.0, y + LINE
        shade, dash = svg.SHADES[k % len(svg.SHADES)], svg.DASHES[k % len(svg.DASHES)]
        elements.append(
            svg.line(
                x,
                y - 4,
                x + 32,
                y - 4,
                f'stroke="{shade}" stroke-width="1.6" stroke-dasharray="{dash}"',
            )
        )
        elements.append(_marker(k, x + 16, y - 4))
        elements.append(svg.text(x + 38, y, "start", name, 12))
        x += entry_width
    return elements, round(y) - top + 12
