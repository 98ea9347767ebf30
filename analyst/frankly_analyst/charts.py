# SPDX-License-Identifier: Apache-2.0
"""Charts of results as accessible SVG text: intervals, trends and heat maps; no scripts, no inline styles.

Colours come from the page's style sheet through the classes `bar`, `whisker`, `truth`, `axis`, `label`, `soft`,
`curve-point` and `mark`; the attributes written here apply in a file of its own and in a notebook. Every text is
inside its picture, whatever its length: labels are broken into lines, and the description has them whole.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final, Self

from frankly_analyst import svg
from frankly_analyst.lettering import width_of, wrapped
from frankly_analyst.plots import NUMBER, SHARE, figure
from frankly_analyst.shown import Range, Shown
from frankly_analyst.words import ENGLISH, Words

WIDTH: Final = 400
"""Width of a chart in pixels, so that its texts can be read on a phone."""
LEFT, RIGHT = 16, 20
"""Room beside the axis."""
_TEXT, _SMALL, _TINY, _LINE, _MARGIN = 14, 12, 10, 18, 12
_BAR, _GAP, _HEADING_GAP = 7, 14, 10
_LEAST_ROOM: Final = 130
"""Smallest width of a label beside its figures; with less room they are below it."""
WHISKER: Final = 'class="whisker" stroke="#123" stroke-width="2"'
_STROKE: Final = "#174ea6"
_PANEL: Final = 110
_CELL, _CELL_HEIGHT, _HEADS, _MOST_HEAD = 60, 44, 110, 100
_MIDDLE: Final = 0.179
"""Luminance at which black and white text have the same contrast, 4.58: each cell has at least that."""
_PALE, _DEEP = (0xEE, 0xF3, 0xFA), (0x12, 0x3F, 0x86)


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a chart. low, high : None without an interval, which then has no whisker.

    text, ends : of the estimate and of its interval, "" for none. truth : drawn as a diamond if it is known (in
    demonstrations). words : the language.
    """

    label: str
    estimate: float
    low: float | None
    high: float | None
    text: str
    ends: str
    truth: float | None = None
    words: Words = ENGLISH

    @classmethod
    def of(cls, label: str, shown: Shown, truth: float | None = None) -> Self:
        """Return the line of a figure. Raises ValueError for one without an estimate."""
        if shown.estimate is None:
            raise ValueError("a line needs an estimate")
        figures = shown.estimate, shown.low, shown.high, shown.text, shown.ends
        return cls(label, *figures, truth, shown.words)

    @property
    def values(self) -> list[float]:
        """All values that the scale must cover."""
        return [v for v in (self.low, self.high, self.estimate, self.truth) if v is not None]

    @property
    def said(self) -> str:
        """The line in words."""
        has_interval = self.low is not None and self.high is not None
        said = self.words.say("from_ends", ends=self.ends) if has_interval else self.ends
        ends = f", {said}" if self.ends else ""
        unit = SHARE if self.text.endswith("%") else NUMBER
        truth = f", truth {figure(self.truth, unit)}" if self.truth is not None else ""
        return f"{self.label} {self.text}{ends}{truth}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale of one or several charts.

    factor, unit : of its labels, which show `factor` times the value. words : the language of its charts.
    """

    low: float
    high: float
    factor: float = 1
    unit: str = ""
    from_zero: bool = True
    words: Words = ENGLISH

    @classmethod
    def of_shares(cls, lines: Sequence[Line]) -> Self:
        """Return a scale for shares, which begins at 0."""
        return cls.from_zero_of(lines, 100, "%")

    @classmethod
    def of_numbers(cls, lines: Sequence[Line], possible: Range | None = None) -> Self:
        """Return a scale for numbers. possible : the whole range of what they can be, if it is known."""
        # A contrast beside a mean is no score, so that its values can be outside.
        values = [*(possible or ()), *(value for line in lines for value in line.values)] or [0.0]
        return cls(min(values), max(values), from_zero=False)

    @classmethod
    def from_zero_of(cls, lines: Sequence[Line], factor: float = 1, unit: str = "") -> Self:
        """Return a scale with the zero and all values of the lines."""
        values = [0.0, *(value for line in lines for value in line.values)]
        return cls(min(values), max(values), factor, unit)

    def axis(self, start: float, end: float, most: int = 6) -> svg.Axis:
        """Return the axis between two pixels; its ends are ticks."""
        if self.from_zero:
            return svg.Axis.from_zero([self.low, self.high], start, end, most=most)
        return svg.Axis.between(self.low, self.high, start, end, most=most)

    def ticks(self, axis: svg.Axis) -> list[tuple[float, str]]:
        """Return the ticks with their labels, which have all the digits of the step."""
        step, largest = axis.step * self.factor, max(abs(axis.low), abs(axis.high)) * self.factor
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        digits += f"{step:.1e}".startswith("2.5")
        if digits > 6 or largest >= 1e12:
            return axis.ticks(self.factor, self.unit)
        return [
            (value, self.words.figure(_number(f"{value * self.factor:.{digits}f}") + self.unit))
            for value, _ in axis.ticks()
        ]


def _number(digits: str) -> str:
    """Return a number without zeros at the end of its decimals, with a typographic minus, which zero never has."""
    text = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if text in ("-0", "") else text.replace("-", "−")


def intervals(
    title: str,
    blocks: Sequence[tuple[str, Sequence[Line]]],
    scale: Scale,
    *,
    dots: bool = False,
    note: str | None = None,
) -> svg.Svg:
    """Return horizontal bars from zero (or dots) with whiskers, in blocks with a heading, "" for none.

    note : a line below the title, which is then a part of the picture; None for a picture without both.
    Raises ValueError without lines.
    """
    lines = [line for _, block in blocks for line in block]
    if not lines:
        raise ValueError("a chart needs at least one line")
    axis = scale.axis(LEFT, WIDTH - RIGHT)
    marks: list[str] = []
    y = top = _title(marks, title, note, WIDTH)
    for heading, block in blocks:
        if heading:
            y += _HEADING_GAP if y > top else 0
            y = _texts(marks, heading, y) + 2
        for line in block:
            y = _line(marks, line, scale, axis, y, dots=dots)
    marks += _labels([(axis.at(value), text) for value, text in scale.ticks(axis)], y + 10)
    said = "; ".join(
        f"{heading}: {', '.join(line.said for line in block)}"
        if heading
        else "; ".join(line.said for line in block)
        for heading, block in blocks
    )
    return _document((WIDTH, y + 16), title, said, marks, note)


def _labels(ticks: Sequence[tuple[float, str]], y: float) -> list[str]:
    """Write the labels of a horizontal axis: all, or else every second, third …, so that none overlap."""
    placed: list[tuple[float, float, str]] = []
    for every in range(1, len(ticks) + 1):
        placed = []
        for x, text in ticks[::every]:
            half = width_of(text, _SMALL) / 2
            placed.append((min(max(x, half), WIDTH - half), half, text))
        if all(b[0] - b[1] - a[0] - a[1] >= 3 for a, b in pairwise(placed)):
            break
    return [svg.text(round(x, 1), y, "middle", text, _SMALL) for x, _, text in placed]


def _title(marks: list[str], title: str, note: str | None, width: float) -> float:
    """Write the title and the note of a picture that has them; return where they end."""
    if note is None:
        return 0.0
    y = _texts(marks, title, 4.0, width)
    for part in wrapped(note, width, _SMALL):
        y += _LINE - 2
        marks.append(svg.text(0, y - 4, "start", part, _SMALL, kind="label soft"))
    return y + 8


def _texts(marks: list[str], text: str, y: float, width: float = WIDTH) -> float:
    """Write bold lines below `y`; return where they end."""
    for part in wrapped(text, width, _TEXT):
        y += _LINE
        marks.append(svg.text(0, y - 4, "start", part, _TEXT, weight="600"))
    return y


def _line(
    marks: list[str], line: Line, scale: Scale, axis: svg.Axis, y: float, *, dots: bool
) -> float:
    """Draw a line below `y`: its label and figures, and the mark below them; return where it ends."""
    y = _head(marks, line.label, line, LEFT, y)
    middle = y + _BAR + 2
    # The grid is behind the marks only, so that no line runs through a text.
    ends = middle - _BAR - 2, middle + _BAR + 2
    ticks = scale.ticks(axis)
    places = [f"M{axis.at(value)},{ends[0]}V{ends[1]}" for value, _ in ticks if value]
    # One element for all, because a page has many lines.
    marks.append(f'<path {svg.PAGE_GRID} d="{"".join(places)}"/>')
    if any(value == 0 for value, _ in ticks):
        marks.append(svg.line(axis.at(0), ends[0], axis.at(0), ends[1], svg.ZERO))
    marks += _mark(line, axis, middle, _BAR, dots=dots)
    if line.truth is not None:
        x = axis.at(line.truth)
        points = f"{x},{middle - 7} {x + 5},{middle} {x},{middle + 7} {x - 5},{middle}"
        style = 'fill="#c8501e" stroke="#fff" stroke-width="1"'
        marks.append(f'<polygon class="truth" points="{points}" {style}/>')
    return middle + _BAR + _GAP - 4


def _head(marks: list[str], label: str, line: Line, x: float, y: float, weight: str = "") -> float:
    """Write a label below `y`, and the figures of a line at the right or below it; return where they end."""
    figures = f"{line.text}  {line.ends}" if line.ends else line.text
    room = WIDTH - x - width_of(figures, _TEXT) - 12
    is_beside = room >= _LEAST_ROOM or width_of(label, _TEXT) <= room
    bottom = y
    for part in _label_lines(label, room if is_beside else WIDTH - x, WIDTH - x):
        bottom += _LINE
        marks.append(svg.text(x, bottom - 4, "start", part, _TEXT, weight=weight))
    y = y + _LINE if is_beside else bottom + _LINE
    if width_of(figures, _TEXT) <= WIDTH - 4:
        reading = svg.reading(figures)
        # The interval follows the estimate, to the left in a text that is read from there.
        gap = f'dx="{-8 if reading else 8}"'
        ends = f'<tspan class="soft" {gap}>{svg.escaped(line.ends)}</tspan>' if line.ends else ""
        place = f'x="{WIDTH - 2}" y="{y - 4}" text-anchor="end" font-size="{_TEXT}"'
        text = f'<tspan font-weight="600">{svg.escaped(line.text)}</tspan>'
        marks.append(f'<text class="label" {place}{reading}>{text}{ends}</text>')
        return max(y, bottom)
    # Numbers of very many digits.
    parts = [*wrapped(line.text, WIDTH - 4, _TEXT), *wrapped(line.ends, WIDTH - 4, _TEXT)]
    for i, part in enumerate(parts):
        marks.append(svg.text(WIDTH - 2, y - 4 + i * _LINE, "end", part, _TEXT))
    return y + (len(parts) - 1) * _LINE


def _label_lines(label: str, first: float, others: float) -> list[str]:
    """Return a label in lines, the first of which has another width than the others."""
    text = " ".join(label.split())
    start, *more = wrapped(text, first, _TEXT)
    return [start, *wrapped(text[len(start) :], others, _TEXT)] if more else [start]


def _mark(line: Line, axis: svg.Axis, y: float, half: float, *, dots: bool = False) -> list[str]:
    """Draw a bar of height 2 × half, or a dot, and its whisker, all centred at `y`."""
    marks = []
    if not dots:
        start, end = sorted((axis.at(0.0), axis.at(line.estimate)))
        box = f'x="{start}" y="{y - half}" width="{round(end - start, 1)}" height="{2 * half}"'
        marks.append(f'<rect class="bar" {box} fill="#7aa6d8"/>')
    if line.low is not None and line.high is not None:
        low, high = axis.at(line.low), axis.at(line.high)
        ends = ((low, y, high, y), *((x, y - 5, x, y + 5) for x in (low, high)))
        marks += [svg.line(*places, WHISKER) for places in ends]
    if dots:
        marks.append(svg.dot("curve-point", (axis.at(line.estimate), y), 5))
    return marks


def _document(
    box: tuple[float, float],
    title: str,
    said: str,
    marks: Sequence[str],
    note: str | None,
    kind: str = "intervals",
) -> svg.Svg:
    """Return the picture, which looks the same in a file of its own: on white paper, in a font without serifs.

    box : width and height. note : a picture that has one also has a margin. kind :
    classes for the style sheet.
    """
    width, height = map(round, box)
    margin = 0 if note is None else _MARGIN
    place = f'x="{-margin}" y="{-margin}"' if margin else ""
    size = f'width="{width + 2 * margin}" height="{height + 2 * margin}"'
    paper = f'<rect class="paper" {place} {size} fill="#fff"/>'.replace("  ", " ")
    look = f'class="{kind}" font-family="system-ui, sans-serif" {size}'
    described = f"{said}. {note}" if note else said
    return svg.document(width, height, title, described, [paper, *marks], look, margin=margin)


def small_bar(line: Line) -> svg.Svg:
    """Return a bar with its whisker from 0% to 100%, for a cell of a table."""
    elements = _mark(line, svg.Axis(0, 1, 2, 102, 1), 7, 4)
    return svg.document(104, 14, line.said, "", elements, 'width="104" height="14"')


def trend(
    title: str,
    periods: Sequence[str],
    panels: Sequence[tuple[str, Mapping[str, Line]]],
    scale: Scale,
    *,
    note: str | None = None,
) -> svg.Svg:
    """Return a panel for each label, with its figures by period, joined by a line with gaps at missing periods.

    periods : in order, with those that have no figure. panels : (label, period -> its figure, whose label is the
    period). note : as in `intervals`. Raises ValueError without figures.
    """
    # A line across a missing period would look like figures of that period.
    drawn = [
        (label, [points.get(period) for period in periods])
        for label, points in panels
        if any(period in points for period in periods)
    ]
    if not drawn:
        raise ValueError("a chart needs at least one line")
    labels = [text for _, text in scale.ticks(scale.axis(_PANEL, 0, 4))]
    left, right = math.ceil(max(width_of(text, _SMALL) for text in labels)) + 8, WIDTH - 12
    # A single period is drawn in the middle, because an axis from 0 to 0 would have no length.
    last = len(periods) - 1
    x = svg.Axis(0, last, left + 10, right - 10, 1) if last else svg.Axis(-1, 1, left, right, 1)
    marks: list[str] = []
    top = _title(marks, title, note, WIDTH)
    for label, points in drawn:
        known = [(i, point) for i, point in enumerate(points) if point is not None]
        at, newest = known[-1]
        ends = f"{newest.ends} ({periods[at]})".strip()
        top = _head(marks, label, replace(newest, ends=ends), 0, top, "600")
        y = scale.axis(top + _PANEL - 10, top + 10, 4)
        marks += svg.rows(y, scale.ticks(y), left, right, _SMALL, svg.PAGE_GRID)
        marks += _curve([(x.at(i), point) for i, point in known], y, _runs(points))
        top += _PANEL + 8
    names = [wrapped(period, WIDTH / 2, _SMALL, 1)[0] for period in periods]
    marks += _labels([(x.at(i), name) for i, name in enumerate(names)], top + 10)
    said = "; ".join(
        f"{label}: {', '.join(point.said for point in points if point is not None)}"
        for label, points in drawn
    )
    return _document((WIDTH, top + 20), title, said, marks, note)


def _runs(points: Sequence[Line | None]) -> list[int]:
    """Return the lengths of the runs of neighbouring periods with a figure."""
    return [len(list(run)) for known, run in groupby(points, lambda one: one is not None) if known]


def _curve(places: Sequence[tuple[float, Line]], y: svg.Axis, runs: Sequence[int]) -> list[str]:
    """Draw the figures of a panel: a line through each run, and every figure with its whisker."""
    marks, rest = [], list(places)
    for run in runs:
        joined, rest = rest[:run], rest[run:]
        if len(joined) > 1:
            through = [(at, y.at(point.estimate)) for at, point in joined]
            marks.append(svg.polyline(through, _STROKE, 1.5))
    for at, point in places:
        if point.low is not None and point.high is not None:
            low, high = y.at(point.low), y.at(point.high)
            # Caps, so that a dot does not hide a short whisker.
            ends = ((at, low, at, high), *((at - 4, end, at + 4, end) for end in (low, high)))
            marks += [svg.line(*places, WHISKER) for places in ends]
        marks.append(svg.dot("curve-point", (at, y.at(point.estimate)), 3))
    return marks


def heat_map(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Line | None]]],
    scale: Scale,
    corner: tuple[str, str],
    *,
    note: str | None = None,
) -> svg.Svg:
    """Return a cross-table whose cells are darker the larger their share is.

    rows : (name, figures), None for one that is unknown. corner : what the rows and the columns are. note : as
    in `intervals`. Raises ValueError without cells.
    """
    if not rows or not columns:
        raise ValueError("a heat map needs at least one cell")
    widest = _cell_width(columns, [line for _, cells in rows for line in cells])
    width = math.ceil(max(WIDTH, _HEADS + widest * len(columns)))
    cell = (width - _HEADS) / len(columns)
    marks: list[str] = []
    top = _title(marks, title, note, width)
    say = scale.words.say
    sides = say("across", question=corner[1]), say("down", question=corner[0])
    for side in sides:
        for part in wrapped(side, width, _SMALL):
            top += _LINE
            marks.append(svg.text(0, top - 4, "start", part, _SMALL, kind="label soft"))
    top = _columns(marks, columns, cell, top)
    most = max(scale.high, 1e-9)
    for name, cells in rows:
        parts = wrapped(name, _HEADS - 8, _SMALL)
        height = max(_CELL_HEIGHT, 16 * len(parts) + 8)
        first = top + height / 2 - 8 * (len(parts) - 1) + 4
        marks += [
            svg.text(0, round(first + 16 * i, 1), "start", part, _SMALL)
            for i, part in enumerate(parts)
        ]
        for j, line in enumerate(cells):
            figures = (say("unknown"), "") if line is None else (line.text, line.ends)
            marks += _cell(line, figures, most, (_HEADS + cell * j, top, cell, height))
        top += height
    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{column} {say('unknown')}" if line is None else line.said
            for column, line in zip(columns, cells, strict=True)
        )
        for name, cells in rows
    )
    said = f"{'. '.join(sides)}. {said}"
    return _document((width, top + 4), title, said, marks, note, "intervals table")


def _cell_width(columns: Sequence[str], cells: Sequence[Line | None]) -> float:
    """Return the width in pixels in which all figures have a place, and the words of the heads if they can."""
    figures = [
        max(width_of(line.text, _SMALL), width_of(line.ends, _TINY)) for line in cells if line
    ]
    words = [width_of(word, _SMALL) for name in columns for word in name.split()]
    return max(_CELL, *figures, min(_MOST_HEAD, max(words, default=0.0))) + 8


def _columns(marks: list[str], columns: Sequence[str], cell: float, top: float) -> float:
    """Write the heads of columns below `top`, side by side on a common ground; return where they end."""
    heads = [wrapped(name, cell - 6, _SMALL, 4) for name in columns]
    deepest = max(map(len, heads))
    for j, head in enumerate(heads):
        middle = round(_HEADS + cell * (j + 0.5), 1)
        for i, part in enumerate(head, deepest - len(head) + 1):
            marks.append(svg.text(middle, top + 16 * i - 2, "middle", part, _SMALL))
    return top + 16 * deepest + 4


def _cell(
    line: Line | None, figures: tuple[str, str], most: float, box: tuple[float, float, float, float]
) -> list[str]:
    """Draw a cell with its figures. most : value of the darkest colour. box : left, top, width, height."""
    x, y, width, height = (round(one, 1) for one in box)
    depth = 0.0 if line is None else min(1.0, max(0.0, line.estimate / most))
    mixed = [round(pale + depth * (deep - pale)) for pale, deep in zip(_PALE, _DEEP, strict=True)]
    colour = "#" + "".join(f"{one:02x}" for one in mixed)
    ink = "#ffffff" if _luminance(mixed) < _MIDDLE else "#000000"
    middle, half = round(x + width / 2, 1), round(y + height / 2, 1)
    text, ends = figures
    first = half - 2 if ends else half + 4
    texts = [svg.text(middle, first, "middle", text, _SMALL, ink, weight="600", kind="cell")]
    if ends:
        texts.append(svg.text(middle, half + 12, "middle", ends, _TINY, ink, kind="cell"))
    frame = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return [f'<rect class="heat" {frame} fill="{colour}" stroke="#fff" stroke-width="1"/>', *texts]


def _luminance(colour: Sequence[int]) -> float:
    """Return the relative luminance of a colour, 0 to 1 (WCAG 2.2). colour : red, green, blue, each 0 to 255."""
    parts = (one / 255 for one in colour)
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
