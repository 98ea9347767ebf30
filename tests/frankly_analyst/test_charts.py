# SPDX-License-Identifier: Apache-2.0
"""Charts: texts in their places whatever they are, marks at their figures, and every figure in words."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from frankly_analyst.charts import (
    LEFT,
    RIGHT,
    WIDTH,
    Line,
    Scale,
    heat_map,
    intervals,
    small_bar,
    trend,
)
from frankly_analyst.lettering import width_of, wrapped
from frankly_analyst.plots import NUMBER, SHARE
from frankly_analyst.shown import Shown
from frankly_analyst.svg import Svg

from tests.frankly_analyst.svg_boxes import SVG, advance, faults, lines, of_number, said, texts

WORDS = (
    "a", "of", "MMMWWW", "W" * 60, "Straßenbahnhaltestellenunterhaltungskommission", "щука", "ЖЖЩЩ" * 12, "Шиншилла",
    "你好世界", "漢" * 50, "سصسص", "صباح", "שלום", "👩‍👩‍👧", "🙂" * 40, "<b>&\"'", "]]>", "&amp;", "i" * 90, "100%",
    "é" * 70, "½", "ﷺ", "﷽", "नमस्ते", "한국어", "—", "\ufffe", "\x01", "@" * 45, "Ǆ" * 20, "№" * 9, "x × y | z",
)  # fmt: skip
MOST = 200


def any_text(draw: random.Random) -> str:
    """Return a text of 1 to 200 characters."""
    length, text = draw.choice([1, 3, 9, 25, 70, MOST]), ""
    while len(text) < length:
        text += draw.choice(WORDS) + " "
    return text[:length]


def a_line(draw: random.Random, label: str, unit: str = SHARE) -> Line:
    """Return the line of any figure; some have no interval, some a tiny or a large one."""
    scale = 1.0 if unit == SHARE else draw.choice([1e-4, 1.0, 3e4, 9e8])
    middle, half = (
        scale * draw.uniform(-0.2, 1.2),
        scale * 10 ** draw.uniform(-6, 0) * draw.choice([0, 1]),
    )
    possible = (0.0, 1.0) if unit == SHARE and draw.random() < 0.7 else None
    if unit == NUMBER and draw.random() < 0.3:
        return Line.of(label, Shown.exact(middle, middle - half, middle + half))
    low, high = (middle - half, middle + half) if draw.random() < 0.9 else (None, None)
    return Line.of(label, Shown.of(middle, low, high, unit, possible))


def an_interval_chart(draw: random.Random, note: str | None) -> Svg:
    unit = draw.choice([SHARE, NUMBER])
    blocks = [
        (any_text(draw) if draw.random() < 0.6 else "", [a_line(draw, any_text(draw), unit) for _ in range(count)])
        for count in draw.choice([[1], [3], [2, 2], [1, 1, 4]])
    ]  # fmt: skip
    drawn = [line for _, block in blocks for line in block]
    scale = Scale.of_shares(drawn) if unit == SHARE else Scale.of_numbers(drawn)
    return intervals(any_text(draw), blocks, scale, dots=unit == NUMBER, note=note)


def a_trend(draw: random.Random, note: str | None) -> Svg:
    unit = draw.choice([SHARE, NUMBER])
    periods = [f"2026-{month:02}" for month in range(1, draw.choice([2, 3, 8, 13]))]
    if draw.random() < 0.3:
        periods = [f"{i} {any_text(draw)}" for i, _ in enumerate(periods)]
    panels = [
        (
            any_text(draw),
            {one: a_line(draw, one, unit) for one in periods if draw.random() < 0.7}
            or {periods[0]: a_line(draw, periods[0], unit)},
        )
        for _ in range(draw.choice([1, 2, 4]))
    ]
    drawn = [line for _, points in panels for line in points.values()]
    scale = Scale.of_shares(drawn) if unit == SHARE else Scale.of_numbers(drawn)
    return trend(any_text(draw), periods, panels, scale, note=note)


def a_heat_map(draw: random.Random, note: str | None) -> Svg:
    columns = [any_text(draw) for _ in range(draw.choice([1, 2, 5, 9]))]
    rows = [
        (any_text(draw), [a_line(draw, column) for column in columns])
        for _ in range(draw.choice([1, 2, 4]))
    ]
    scale = Scale.of_shares([line for _, cells in rows for line in cells])
    return heat_map(
        any_text(draw), columns, rows, scale, (any_text(draw), any_text(draw)), note=note
    )


@pytest.mark.parametrize("chart", [an_interval_chart, a_trend, a_heat_map])
def test_every_text_has_its_place_in_the_picture(
    chart: Callable[[random.Random, str | None], Svg],
) -> None:
    for seed in range(60):
        draw = random.Random(seed)
        drawn = chart(draw, any_text(draw) if seed % 2 else None)
        assert faults(drawn) == [], f"seed {seed}"


def test_a_text_is_never_wider_than_it_is_said_to_be() -> None:
    letters = "".join(map(chr, (*range(0x20, 0x7F), *range(0x400, 0x460), *range(0x5D0, 0x5EB))))
    for character in letters + "".join(WORDS):
        assert width_of(character, 100) >= 100 * advance(character), character
    draw = random.Random(3)
    for _ in range(200):
        text, width = any_text(draw), draw.choice([62.0, 102.0, 400.0])
        parts = wrapped(text, width, 12)
        assert 1 <= len(parts) <= 3
        assert all(width_of(part, 12) <= width for part in parts)
        kept = "".join("".join(parts).split())
        if "…" not in kept:
            assert kept == "".join(text.split())
        elif not {"﷽", "ﷺ"} & set(text):  # which are wider than a line
            assert "".join(text.split()).startswith(kept[:-1])


def test_a_mark_stays_with_its_letter() -> None:
    parts = wrapped("e\u0301" * 40, 62, 12)
    assert all(not part.startswith("\u0301") for part in parts)


def share(label: str, estimate: float, low: float, high: float) -> Line:
    return Line.of(label, Shown.of(estimate, low, high, possible=(0.0, 1.0)))


def whiskers(tree: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    return [
        (of_number(one, "x1"), of_number(one, "y1"), of_number(one, "x2"), of_number(one, "y2"))
        for one in tree.iter(f"{SVG}line")
        if one.get("class") == "whisker"
    ]


def pixel(value: float, low: float, high: float) -> float:
    return LEFT + (value - low) / (high - low) * (WIDTH - RIGHT - LEFT)


@pytest.mark.parametrize(
    ("figure", "axis"),
    [((0.3, 0.2, 0.4), (0.0, 0.4)), ((0.71, 0.62, 0.79), (0.0, 0.8)), ((1.2, 0.9, 1.4), (0.0, 1.0)),
     ((-0.1, -0.3, 0.04), (0.0, 0.04))],
)  # fmt: skip
def test_bars_and_whiskers_end_at_their_figures(
    figure: tuple[float, float, float], axis: tuple[float, float]
) -> None:
    line = share("a", *figure)
    tree = ElementTree.fromstring(intervals("t", [("", [line])], Scale.of_shares([line])))
    (bar,) = (one for one in tree.iter(f"{SVG}rect") if one.get("class") == "bar")
    value, low, high = (min(1.0, max(0.0, one)) for one in figure)
    start = of_number(bar, "x")
    assert start == pytest.approx(pixel(0, *axis), abs=0.11)
    assert start + of_number(bar, "width") == pytest.approx(pixel(value, *axis), abs=0.11)
    across, first, last = whiskers(tree)
    assert (across[0], across[2]) == pytest.approx(
        (pixel(low, *axis), pixel(high, *axis)), abs=0.11
    )
    assert (first[0], last[0]) == (across[0], across[2])
    labels = {box.what: (box.left + box.right) / 2 for box in texts(tree)}
    assert labels["0%"] == pytest.approx(pixel(0, *axis), abs=1)


def test_negative_contrasts_begin_at_zero_and_go_left() -> None:
    line = Line.of("a", Shown.of(-0.2, -0.4, 0.1))
    tree = ElementTree.fromstring(intervals("t", [("", [line])], Scale.of_shares([line])))
    (bar,) = (one for one in tree.iter(f"{SVG}rect") if one.get("class") == "bar")
    ends = of_number(bar, "x"), of_number(bar, "x") + of_number(bar, "width")
    assert ends == pytest.approx((pixel(-0.2, -0.4, 0.1), pixel(0, -0.4, 0.1)), abs=0.11)


def test_a_mean_is_a_dot_on_the_scale_of_its_scores() -> None:
    line = Line.of("Mean", Shown.of(3.0, 2.5, 3.5, NUMBER, (1.0, 5.0)))
    drawn = intervals("t", [("", [line])], Scale.of_numbers([line], (1.0, 5.0)), dots=True)
    tree = ElementTree.fromstring(drawn)
    (dot,) = tree.iter(f"{SVG}circle")
    assert of_number(dot, "cx") == pytest.approx(pixel(3, 1, 5), abs=0.11)
    assert not [one for one in tree.iter(f"{SVG}rect") if one.get("class") == "bar"]


def test_an_axis_shows_the_digits_of_its_steps_and_only_labels_that_have_room() -> None:
    for values in ([1234567.0, 1234569.0], [1e6, 5e6], [0.00012, 0.00019], [-1e9, 1e9], [4.0, 4.5]):
        drawn = [Line.of("a", Shown.of(value, value, value, NUMBER)) for value in values]
        picture = intervals("t", [("", drawn)], Scale.of_numbers(drawn), dots=True)
        assert faults(picture) == []
        bottom = max(box.bottom for box in texts(ElementTree.fromstring(picture)))
        labels = [
            float(box.what.replace("−", "-"))
            for box in texts(ElementTree.fromstring(picture))
            if box.bottom == bottom
        ]
        steps = {round(b - a, 9) for a, b in pairwise(labels)}
        assert len(labels) >= 2
        assert len({round(step / max(steps), 6) for step in steps}) == 1
        assert labels[0] <= min(values)


def test_a_truth_is_drawn_and_said() -> None:
    line = Line.of("Yes", Shown.of(0.3, 0.2, 0.4), truth=0.35)
    drawn = intervals("t", [("", [line])], Scale.of_shares([line]))
    (mark,) = ElementTree.fromstring(drawn).iter(f"{SVG}polygon")
    x = float((mark.get("points") or "").split(",")[0])
    assert x == pytest.approx(pixel(0.35, 0, 0.4), abs=0.11)
    assert said(drawn) == "Yes 30%, from 20% to 40%, truth 35.0%"


@pytest.mark.parametrize(
    ("chart", "message"),
    [(lambda s: intervals("t", [("a", [])], s), "line"), (lambda s: trend("t", ["1"], [], s), "line"),
     (lambda s: trend("t", ["1"], [("a", {})], s), "line"), (lambda s: trend("t", [], [("a", {})], s), "line"),
     (lambda s: heat_map("t", [], [], s, ("", "")), "cell")],
)  # fmt: skip
def test_nothing_to_draw_is_refused(chart: Callable[[Scale], Svg], message: str) -> None:
    with pytest.raises(ValueError, match=f"at least one {message}"):
        chart(Scale(0, 1))


MONTHS = ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]


def a_panel(values: Sequence[float | None]) -> dict[str, Line]:
    known = zip(MONTHS, values, strict=True)
    return {one: share(one, v, v - 0.1, v + 0.1) for one, v in known if v is not None}


def test_a_trend_has_its_periods_in_order_and_gaps_where_figures_are_missing() -> None:
    points = a_panel([0.2, 0.4, None, 0.6, None])
    shuffled = {one: points[one] for one in reversed(points)}
    drawn = trend("t", MONTHS, [("Yes", shuffled)], Scale.of_shares(list(points.values())))
    tree = ElementTree.fromstring(drawn)
    dots = [(of_number(c, "cx"), of_number(c, "cy")) for c in tree.iter(f"{SVG}circle")]
    (line,) = tree.iter(f"{SVG}polyline")
    # The two neighbours are joined; the third figure, after a gap, is not.
    assert line.get("points") == " ".join(f"{x},{y}" for x, y in dots[:2])
    step = dots[1][0] - dots[0][0]
    assert dots[2][0] - dots[1][0] == pytest.approx(2 * step, abs=0.3)
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.2)
    # Each whisker is followed by its two caps.
    for (x, y), (x1, y1, x2, y2) in zip(dots, list(whiskers(tree))[::3], strict=True):
        assert (x1, x2) == (x, x)
        assert (y1 + y2) / 2 == pytest.approx(y, abs=0.11)
        assert y1 - y2 == pytest.approx(dots[0][1] - dots[1][1], abs=0.2)  # as long as 0.2
    assert said(drawn) == (
        "Yes: 2026-01 20%, from 10% to 30%, 2026-02 40%, from 30% to 50%, 2026-04 60%, from 50% to 70%"
    )
    words = [box.what for box in texts(tree)]
    assert "60%50% to 70% (2026-04)" in words
    assert {"2026-01", "2026-05"} <= set(words)


def test_a_trend_of_one_period_is_one_dot_in_the_middle() -> None:
    line = share("2026-01", 0.5, 0.4, 0.6)
    drawn = trend("t", MONTHS[:1], [("Yes", {"2026-01": line})], Scale.of_shares([line]))
    tree = ElementTree.fromstring(drawn)
    (dot,) = tree.iter(f"{SVG}circle")
    grid = [box for box in lines(tree) if box.what == "line" and box.right - box.left > 100]
    assert of_number(dot, "cx") == pytest.approx((grid[0].left + grid[0].right) / 2, abs=0.6)
    assert not list(tree.iter(f"{SVG}polyline"))
    assert faults(drawn) == []


def test_panels_of_a_trend_have_one_scale_and_one_without_figures_is_left_out() -> None:
    first, second = [0.2, None, None, None, 0.4], [0.6, 0.8, None, None, None]
    panels: list[tuple[str, dict[str, Line]]] = [
        ("A", a_panel(first)),
        ("B", a_panel(second)),
        ("C", {}),
    ]
    scale = Scale.of_shares([line for _, points in panels for line in points.values()])
    drawn = trend("t", MONTHS, panels, scale)
    dots = [of_number(c, "cy") for c in ElementTree.fromstring(drawn).iter(f"{SVG}circle")]
    assert dots[0] - dots[1] == pytest.approx(dots[2] - dots[3], abs=0.2)
    assert "C" not in {box.what for box in texts(ElementTree.fromstring(drawn))}


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def cells_of(tree: ElementTree.Element) -> list[tuple[float, float, str, str, str]]:
    """Return left, top, colour, text and its colour of each cell."""
    found = []
    inside = [one for one in tree.iter(f"{SVG}text") if one.get("class") == "cell"]
    for one in tree.iter(f"{SVG}rect"):
        if one.get("class") != "heat":
            continue
        x, y, w, h = (of_number(one, name) for name in ("x", "y", "width", "height"))
        (text, *_) = (
            t for t in inside if x < of_number(t, "x") < x + w and y < of_number(t, "y") < y + h
        )
        found.append((x, y, one.attrib["fill"], text.text or "", text.attrib["fill"]))
    return found


def test_the_darkest_cell_is_the_largest_share_and_every_text_can_be_read_on_its_cell() -> None:
    depths = [i / 255 for i in range(256)]
    random.Random(5).shuffle(depths)
    rows = [
        (str(i), [share(str(j), depths[16 * i + j], 0, 1) for j in range(16)]) for i in range(16)
    ]
    drawn = heat_map("t", [str(j) for j in range(16)], rows, Scale(0, 1, 100, "%"), ("a", "b"))
    cells = cells_of(ElementTree.fromstring(drawn))
    shades = [luminance(colour) for _, _, colour, _, _ in cells]
    ordered = [shade for _, shade in sorted(zip(depths, shades, strict=True))]
    assert all(a >= b for a, b in pairwise(ordered))
    assert ordered[0] > 0.8
    assert ordered[-1] < 0.06
    for _, _, colour, _, ink in cells:
        pale, dark = sorted((luminance(colour), luminance(ink)), reverse=True)
        assert (pale + 0.05) / (dark + 0.05) >= 4.5


def test_a_heat_map_has_its_cells_in_rows_and_columns() -> None:
    rows = [
        ("No", [share("Never", 0.4, 0.3, 0.5), share("Daily", 0.1, 0.0, 0.2)]),
        ("Yes", [share("Never", 0.3, 0.2, 0.4), share("Daily", 0.2, 0.1, 0.3)]),
    ]
    drawn = heat_map("t", ["Never", "Daily"], rows, Scale(0, 0.5, 100, "%"), ("smokes", "drinks"))
    (a, b, c, d) = cells_of(ElementTree.fromstring(drawn))
    assert [one[3] for one in (a, b, c, d)] == ["40%", "10%", "30%", "20%"]
    assert a[0] == c[0] < b[0] == d[0]
    assert a[1] == b[1] < c[1] == d[1]
    places = {box.what: box for box in texts(ElementTree.fromstring(drawn))}
    assert places["Never"].left > a[0] > places["No"].right
    assert places["Daily"].left > b[0]
    assert a[1] < places["No"].top < c[1] < places["Yes"].top
    assert said(drawn) == (
        "Across: drinks. Down: smokes. No: Never 40%, from 30% to 50%, Daily 10%, from 0% to 20%; "
        "Yes: Never 30%, from 20% to 40%, Daily 20%, from 10% to 30%"
    )


def test_every_figure_of_a_picture_is_in_its_description() -> None:
    for seed in range(40):
        draw = random.Random(seed)
        for chart in (an_interval_chart, a_heat_map):
            drawn = chart(draw, "n = 5")
            description = said(drawn)
            assert description.endswith(". n = 5")
            for one in ElementTree.fromstring(drawn).iter(f"{SVG}tspan"):
                assert (one.text or "") in description
            for cell in cells_of(ElementTree.fromstring(drawn)):
                assert cell[3] in description


def test_a_small_bar_is_cut_at_its_ends_and_its_title_has_the_numbers() -> None:
    tree = ElementTree.fromstring(small_bar(Line.of("<a>", Shown.of(1.02, 0.9, 1.14))))
    assert tree.findtext(f"{SVG}title") == "<a> 102%, from 90% to 114%"
    (bar,) = tree.iter(f"{SVG}rect")
    assert (bar.get("x"), bar.get("width")) == ("2.0", "100.0")
    across = next(tree.iter(f"{SVG}line"))
    assert (across.get("x1"), across.get("x2")) == ("92.0", "102.0")
    assert tree.find(f"{SVG}desc") is None
