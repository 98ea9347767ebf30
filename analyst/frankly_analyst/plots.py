# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG text: bars with whiskers, and curves; no scripts, no inline styles, accessible.

Colours come from the page's style sheet through the classes `bar`, `whisker`, `truth`, `axis`,
`label`, `curve` and `mark`; the attributes written here apply on a page without a style sheet.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

# Labels stand above their bars, so that the plot stays readable on a phone's width.
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 440, 14, 62, 46, 4, 28
_SIGNED_LABEL = 24
"""Half the width in pixels of a label such as −100%, which must not start outside the picture."""
# Widths between ticks that read well in percent; the smallest with at most six ticks is used.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class PlotRow:
    """Share with its interval; a known `truth` (in demonstrations) is drawn as a diamond.

    low, high : None for a product without an interval, which gets no whisker.
    """

    label: str
    estimate: float
    low: float | None
    high: float | None
    truth: float | None = None

    @property
    def values(self) -> list[float]:
        """All values that the scale must cover."""
        return [v for v in (self.low, self.high, self.estimate, self.truth) if v is not None]


@dataclass(frozen=True, slots=True)
class Mark:
    """Named point beside a curve."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of a curve: its title, and the format of its numbers."""

    title: str
    shown: Callable[[float], str]


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
        # The 1e-9 keeps float errors of the quotient from adding a tick beyond a value that lies on
        # one.
        return cls(
            math.floor(low / step + 1e-9) * step,
            max(math.ceil(high / step - 1e-9), 1) * step,
            step,
        )

    def x(self, value: float) -> float:
        """Return the horizontal position of a value in pixels."""
        return round(LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT), 1)

    def ticks(self) -> list[float]:
        """Return the round values that get a line."""
        return [
            self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)
        ]


def interval_plot(title: str, rows: Sequence[PlotRow]) -> str:
    """Return an SVG of horizontal bars (estimates) with whiskers (intervals), in percent."""
    if not rows:
        raise ValueError("a plot needs at least one row")
    scale = _Scale.around([v for row in rows for v in row.values])
    height = TOP + ROW * len(rows) + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" class="intervals">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape('; '.join(_description(row) for row in rows))}</desc>",
        *_axis(scale, height),
    ]
    for i, row in enumerate(rows):
        lines += _row(row, scale, TOP + ROW * i + ROW / 2)
    return "\n".join([*lines, "</svg>"])


def percent(share: float | None) -> str:
    """Return a share as text with a true minus sign: one decimal, two below 0.1%."""
    if share is None:
        return "unknown"
    decimals = 1 if share == 0 or abs(share) >= 0.001 else 2
    return f"{share * 100:.{decimals}f}%".replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """Return an interval of shares as text; both ends, because intervals need not be symmetric."""
    return (
        "interval unbounded"
        if low is None or high is None
        else f"{percent(low)} to {percent(high)}"
    )


def _axis(scale: _Scale, height: int) -> list[str]:
    bottom = height - BOTTOM
    lines = []
    for tick in scale.ticks():
        x = scale.x(tick)
        # The zero line is heavier, because shares may be negative.
        weight = 1.5 if abs(tick) < scale.step / 2 else 0.5
        ends = f'x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"'
        lines.append(f'<line class="axis" {ends} stroke="#999" stroke-width="{weight}"/>')
        middle = x if tick >= 0 else max(x, _SIGNED_LABEL)
        lines.append(text(middle, bottom + 18, "middle", f"{tick * 100:.0f}%".replace("-", "−")))
    return lines


def _row(row: PlotRow, scale: _Scale, y: float) -> list[str]:
    """Draw a row with its middle at `y`: label in the upper half, bar and whisker below."""
    bar = y + 10
    start, end = sorted((scale.x(0.0), scale.x(row.estimate)))
    lines = [
        text(LEFT, y - 6, "start", row.label),
        f'<rect class="bar" x="{start}" y="{bar - 7}" width="{round(end - start, 1)}" height="14" fill="#7aa6d8"/>',
        *_whisker(row, scale, bar),
        text(WIDTH, bar + 5, "end", percent(row.estimate)),
    ]
    if row.truth is not None:
        x = scale.x(row.truth)
        points = f"{x},{bar - 7} {x + 5},{bar} {x},{bar + 7} {x - 5},{bar}"
        lines.append(
            f'<polygon class="truth" points="{points}" fill="#c8501e" stroke="#fff" stroke-width="1"/>'
        )
    return lines


def _whisker(row: PlotRow, scale: _Scale, bar: float) -> list[str]:
    if row.low is None or row.high is None:
        return []
    low, high = scale.x(row.low), scale.x(row.high)
    whisker = 'class="whisker" stroke="#123" stroke-width="2"'
    return [
        f'<line {whisker} x1="{low}" x2="{high}" y1="{bar}" y2="{bar}"/>',
        f'<line {whisker} x1="{low}" x2="{low}" y1="{bar - 5}" y2="{bar + 5}"/>',
        f'<line {whisker} x1="{high}" x2="{high}" y1="{bar - 5}" y2="{bar + 5}"/>',
    ]


def curve_plot(
    title: str,
    curve: Sequence[tuple[float, float]],
    marks: Sequence[Mark],
    x: Axis,
    y: Axis,
) -> str:
    """Return an SVG of a line through points (x, y), with named marks; both axes start at 0."""
    if not curve:
        raise ValueError("a curve needs at least one point")
    points = [*curve, *((mark.x, mark.y) for mark in marks)]
    across, up = (_round_up(max(point[i] for point in points)) for i in (0, 1))

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return (
            round(_CURVE_LEFT + point[0] / across * (WIDTH - _CURVE_LEFT - 24), 1),
            round(
                _CURVE_HEIGHT
                - _CURVE_BOTTOM
                - point[1] / up * (_CURVE_HEIGHT - _CURVE_BOTTOM - 24),
                1,
            ),
        )

    polyline = " ".join(f"{px},{py}" for px, py in map(at, curve))
    description = "; ".join([*(f"{x.shown(a)}, {y.shown(b)}" for a, b in curve),
                      *(f"{m.label} {x.shown(m.x)}, {y.shown(m.y)}" for m in marks)])  # fmt: skip
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {_CURVE_HEIGHT}" role="img" class="intervals">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(f'{x.title}, {y.title}: {description}')}</desc>",
        *_frame(at, across, up, x, y),
        f'<polyline class="curve" points="{polyline}" fill="none" stroke="#174ea6" stroke-width="2.5"/>',
        *(_dot("curve-point", at(point), 3.5) for point in curve),
    ]
    for i, (place, labels) in enumerate(
        _apart([(at((mark.x, mark.y)), mark.label) for mark in marks])
    ):
        # A label right of the middle ends at its mark, so that it stays inside the picture.
        side = "end" if place[0] > WIDTH * 0.55 else "start"
        # Labels alternate above and below the curve, so that neighbours do not overlap.
        low = i % 2 == 1 and place[1] + 20 < _CURVE_HEIGHT - _CURVE_BOTTOM
        below = place[1] + (20 if low or place[1] < 30 else -10)
        lines += [
            _dot("mark", place, 5),
            text(place[0] + (4 if side == "end" else -4), below, side, labels),
        ]
    return "\n".join([*lines, "</svg>"])


_CURVE_LEFT, _CURVE_HEIGHT, _CURVE_BOTTOM, _SAME_PLACE = 52, 280, 44, 10


def _frame(
    at: Callable[[tuple[float, float]], tuple[float, float]],
    across: float,
    up: float,
    x: Axis,
    y: Axis,
) -> list[str]:
    """Draw grid lines at quarters, their numbers, and the titles of the axes."""
    lines = []
    for i in range(5):
        (left, level), (right, _) = at((0.0, up * i / 4)), at((across, up * i / 4))
        (column, bottom), (_, top) = at((across * i / 4, 0.0)), at((across * i / 4, up))
        stroke = f'stroke="#999" stroke-width="{1.5 if i == 0 else 0.5}"'
        lines += [
            f'<line class="axis" x1="{left}" x2="{right}" y1="{level}" y2="{level}" {stroke}/>',
            f'<line class="axis" x1="{column}" x2="{column}" y1="{top}" y2="{bottom}" {stroke}/>',
            text(left - 6, level + 4, "end", y.shown(up * i / 4), 12),
            text(column, bottom + 17, "middle", x.shown(across * i / 4), 12),
        ]
    return [
        *lines,
        text(WIDTH - 24, _CURVE_HEIGHT - 8, "end", x.title, 12),
        text(2, 12, "start", y.title, 12),
    ]


def _apart(
    places: Sequence[tuple[tuple[float, float], str]],
) -> list[tuple[tuple[float, float], str]]:
    """Return each place once with all its labels; marks nearer than a dot's width share one."""
    groups: list[tuple[tuple[float, float], list[str]]] = []
    for place, label in places:
        labels_nearby = next(
            (
                labels
                for group_place, labels in groups
                if math.dist(place, group_place) < _SAME_PLACE
            ),
            None,
        )
        if labels_nearby is None:
            groups.append((place, [label]))
        else:
            labels_nearby.append(label)
    return [(place, ", ".join(labels)) for place, labels in groups]


def _dot(kind: str, place: tuple[float, float], size: float) -> str:
    return f'<circle class="{kind}" cx="{place[0]}" cy="{place[1]}" r="{size}" fill="#174ea6"/>'


def _round_up(value: float) -> float:
    """Return the least of 1, 2, 4, 6, 8 times a power of ten ≥ value: quarters are short."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * (1 - 1e-12))


def text(x: float, y: float, anchor: str, content: str, size: int = 13) -> str:
    """Return one line of text: (x, y) is its start, middle or end (`anchor`), size in pixels."""
    return f'<text class="label" x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'


def _description(row: PlotRow) -> str:
    sentence = f"{row.label} {percent(row.estimate)}"
    if row.low is not None and row.high is not None:
        sentence = f"{sentence}, from {percent(row.low)} to {percent(row.high)}"
    return sentence if row.truth is None else f"{sentence}, truth {percent(row.truth)}"
