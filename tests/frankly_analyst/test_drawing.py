# SPDX-License-Identifier: Apache-2.0
"""The chart that fits rows of one question: its kind, its lines, and the cells of tables in their places."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import pytest
from frankly_analyst.charts import LEFT, RIGHT, WIDTH, Scale
from frankly_analyst.drawing import MOST_LINES, draw
from frankly_analyst.plots import NUMBER
from frankly_analyst.rows import Estimate
from frankly_analyst.shown import CONTRAST
from frankly_analyst.svg import Svg

from tests.frankly_analyst.svg_boxes import SVG, faults, of_number, said, texts
from tests.frankly_analyst.test_charts import cells_of
from tests.frankly_analyst.test_shown import row
from tests.narrowing import present


def rows_of(
    shares: dict[str, float], by: str = "", question: str = "q", n: int = 100
) -> list[Estimate]:
    return [
        replace(
            row(question=question, choice=choice, label=choice.title(), by=by, n=n),
            estimate=share,
            low=share - 0.1,
            high=share + 0.1,
        )
        for choice, share in shares.items()
    ]


def drawn(rows: Sequence[Estimate], title: str = "t", **changes: object) -> Svg:
    chart = present(draw(title, rows, **changes))  # type: ignore[arg-type]
    assert faults(chart) == []
    return chart


def words(chart: Svg) -> list[str]:
    return [box.what for box in texts(ElementTree.fromstring(chart))]


def count(chart: Svg, kind: str) -> int:
    return sum(one.get("class") == kind for one in ElementTree.fromstring(chart).iter())


def test_shares_are_bars_and_numbers_are_dots() -> None:
    bars = drawn(rows_of({"no": 0.6, "yes": 0.4}))
    assert (count(bars, "bar"), count(bars, "curve-point")) == (2, 0)
    mean = replace(row(choice="mean", label="mean", unit=NUMBER), estimate=3.0, low=2.0, high=4.5)
    dot = drawn([mean], possible=(1.0, 5.0))
    assert (count(dot, "bar"), count(dot, "curve-point")) == (0, 1)
    assert "Mean" in words(dot)
    assert {"1", "5"} <= set(words(dot))


def test_shares_beyond_what_is_possible_are_drawn_at_the_border() -> None:
    beyond = zip(rows_of({"no": 1.2, "yes": -0.2}), ((0.9, 1.4), (-0.4, 0.1)), strict=True)
    chart = drawn([replace(one, low=low, high=high) for one, (low, high) in beyond])
    full, none = (
        one for one in ElementTree.fromstring(chart).iter(f"{SVG}rect") if one.get("class") == "bar"
    )
    assert said(chart) == "No 100.0%, from 90.0% to 100.0%; Yes 0.0%, from 0.0% to 10.0%"
    assert of_number(full, "width") == WIDTH - LEFT - RIGHT
    assert of_number(none, "width") == 0
    assert of_number(full, "x") == of_number(none, "x")


@pytest.mark.parametrize("rows", [[], [replace(row(), estimate=None, low=None, high=None)]])
def test_nothing_to_draw_is_none(rows: list[Estimate]) -> None:
    assert draw("t", rows) is None


def test_more_figures_than_a_reader_takes_in_are_not_drawn() -> None:
    many = rows_of({f"c{i}": 0.01 for i in range(MOST_LINES + 1)})
    assert draw("t", many) is None
    assert draw("t", many[1:]) is not None
    assert draw("t", many, most=len(many)) is not None


def test_groups_carry_their_own_n_and_two_choices_show_the_last() -> None:
    groups = [
        *rows_of({"no": 0.7, "yes": 0.3}, "region=north", n=1200),
        *rows_of({"no": 0.4, "yes": 0.6}, "region=south", n=80),
    ]
    chart = drawn(groups)
    assert said(chart) == (
        "Yes: north (n=1,200) 30%, from 20% to 40%, south (n=80) 60%, from 50% to 70%"
    )
    three = drawn([r for by in "ab" for r in rows_of({"x": 0.2, "y": 0.3, "z": 0.5}, f"g={by}")])
    assert [part.partition(":")[0] for part in said(three).split("; ")] == ["X", "Y", "Z"]


def test_two_wanted_shares_in_groups_are_both_drawn_because_one_is_not_the_rest_of_the_other() -> (
    None
):
    groups = [r for by in "ab" for r in rows_of({"at all": 0.7, "daily": 0.2}, f"g={by}")]
    assert [part.partition(":")[0] for part in said(drawn(groups)).split("; ")] == [
        "At All",
        "Daily",
    ]


def test_a_contrast_is_cut_neither_to_shares_nor_to_scores() -> None:
    contrast = replace(row(choice=CONTRAST, label="contrast"), estimate=-0.3, low=-0.6, high=0.0)
    chart = drawn([contrast], possible=(0.0, 1.0), scale=Scale(0, 1, 100, "%"))
    assert said(chart) == "Contrast −30%, from −60% to 0%"
    assert "−60%" in words(chart)
    both = drawn(
        [
            replace(row(choice="mean", label="mean", unit=NUMBER), estimate=3.0, low=2.0, high=9.0),
            replace(contrast, unit=NUMBER, estimate=-7.0, low=-9.0, high=-5.0),
        ],
        possible=(1.0, 5.0),
    )
    assert said(both).startswith("Mean 3.0, from 2.0 to 5.0; Contrast −7.0, from −9.0 to −5.0")
    assert "−10" in words(both)


def test_of_two_units_the_first_is_drawn() -> None:
    mean = replace(row(choice="mean", label="mean", unit=NUMBER), estimate=3.0, low=2.0, high=4.0)
    assert said(drawn([mean, *rows_of({"up to 1": 0.2})])).startswith("Mean 3.0")
    assert "Mean" not in said(drawn([*rows_of({"up to 1": 0.2}), mean]))


MONTHS = ["2025-11", "2026-02", "2025-12"]


def test_periods_are_in_order_and_one_without_figures_keeps_its_place() -> None:
    rows = [
        r
        for month, share in zip(MONTHS, (0.1, 0.5, 0.3), strict=True)
        for r in rows_of({"no": 1 - share, "yes": share}, f"month={month}")
    ]
    chart = drawn(rows)
    tree = ElementTree.fromstring(chart)
    x = [of_number(one, "cx") for one in tree.iter(f"{SVG}circle")]
    assert x[2] - x[1] == pytest.approx(2 * (x[1] - x[0]), abs=0.3)  # January has no figure
    assert said(chart) == (
        "Yes: 2025-11 10%, from 0% to 20%, 2025-12 30%, from 20% to 40%, 2026-02 50%, from 40% to 60%"
    )
    (line,) = tree.iter(f"{SVG}polyline")
    assert len((line.get("points") or "").split()) == 2


@pytest.mark.parametrize(
    ("name", "first", "last", "between"),
    [("day", "2026-02-27", "2026-03-02", 3), ("week", "2026-W52", "2027-W01", 2), ("month", "2025-12", "2026-01", 1)],
)  # fmt: skip
def test_all_periods_between_the_first_and_the_last_have_a_place(
    name: str, first: str, last: str, between: int
) -> None:
    rows = [r for one in (first, last) for r in rows_of({"a": 0.5}, f"{name}={one}")]
    chart = drawn(rows)
    joined = count(chart, "curve")
    assert joined == (1 if between == 1 else 0)
    assert {first, last} <= set(words(chart))


def test_periods_of_an_unknown_form_are_drawn_in_their_order() -> None:
    rows = [r for one in ("b", "a") for r in rows_of({"x": 0.5}, f"month={one}")]
    assert said(drawn(rows)).startswith("X: a 50%, from 40% to 60%, b 50%")


def test_periods_are_in_order_of_time_whatever_they_are_called() -> None:
    called = {"month=2026-01": "January", "month=2026-02": "February", "month=2026-03": "March"}
    rows = [r for one in called for r in rows_of({"x": 0.5}, one)]
    chart = drawn(rows, group=called.__getitem__)
    names = [part.split()[0] for part in said(chart).removeprefix("X: ").split("%, ")]
    assert [name for name in names if name.isalpha() and name != "from"] == list(called.values())


def a_table(
    question: str, down: Sequence[str], across: Sequence[str], joint: str, turned: bool = False
) -> list[Estimate]:
    """Return the cells, row by row; if `turned`, the choice of the row is the second part of their names."""
    return [
        row(
            question=question, choice=joint.join((c, d) if turned else (d, c)),
            label=joint.join((c.upper(), d.upper()) if turned else (d.upper(), c.upper())),
            estimate=(i + 1) / 20, low=i / 20, high=(i + 2) / 20,
        )
        for i, (d, c) in enumerate(product(down, across))
    ]  # fmt: skip


TABLES = {
    "joint": ("a × b", " × ", False, "Across: B?", "Down: A?"),
    "each row is all": ("b | a", " | ", True, "Across: B?", "Down: A?, each by itself"),
    "each column is all": ("a | b", " | ", False, "Across: B?, each by itself", "Down: A?"),
}


@pytest.mark.parametrize("name", TABLES)
def test_cells_of_a_table_are_in_their_rows_and_columns(name: str) -> None:
    question, joint, turned, across, down = TABLES[name]
    rows = a_table(question, ["no", "yes"], ["never", "weekly", "daily"], joint, turned)
    title = joint.join(("B?", "A?") if turned else ("A?", "B?"))
    chart = drawn(rows, title)
    tree = ElementTree.fromstring(chart)
    cells, heads = cells_of(tree), {box.what: box for box in texts(tree)}
    assert [float(cell[3][:-1]) for cell in cells] == [5, 10, 15, 20, 25, 30]
    assert {across, down} <= set(heads)
    for i, cell in enumerate(cells):
        column = heads[("NEVER", "WEEKLY", "DAILY")[i % 3]]
        assert cell[0] < column.right
        assert column.left < cell[0] + 100
        assert cell[1] < heads[("NO", "YES")[i // 3]].top < cell[1] + 44
    assert max(cells, key=lambda cell: float(cell[3][:-1]))[2] == min(
        (cell[2] for cell in cells), key=lambda colour: int(colour[1:3], 16)
    )
    assert "NO: NEVER 5.0%, from 0.0% to 10.0%, WEEKLY 10.0%" in said(chart)


def test_a_sign_within_a_label_does_not_move_it_to_the_other_question() -> None:
    rows = a_table("a × b", ["no", "yes"], ["x", "y"], " × ")
    piped = drawn([replace(one, label=f"a | {one.label}") for one in rows], "Smoking | vaping? × B")
    assert {"a | NO", "a | YES", "X", "Y", "Down: Smoking | vaping?", "Across: B"} <= set(words(piped))  # fmt: skip
    # With the sign itself in a label nobody can say where the second one begins: ids are drawn.
    crossed = drawn([replace(one, label=f"a × {one.label}") for one in rows], "A × B × C")
    assert {"no", "yes", "x", "y", "Down: a", "Across: b"} <= set(words(crossed))


@pytest.mark.parametrize("left_out", [[0], [5], [0, 4], [1, 2, 3]])
def test_a_table_with_missing_cells_is_drawn_as_bars(left_out: list[int]) -> None:
    rows = a_table("a × b", ["no", "yes"], ["x", "y", "z"], " × ")
    known = [one for i, one in enumerate(rows) if i not in left_out]
    chart = drawn(known)
    assert (count(chart, "heat"), count(chart, "bar")) == (0, len(known))
    assert all(one.label in said(chart) for one in known)


@pytest.mark.parametrize("unknown", [[0], [5], [0, 4], [0, 1, 2]])
def test_an_unknown_cell_of_a_table_is_said_and_left_pale(unknown: list[int]) -> None:
    rows = a_table("a × b", ["no", "yes"], ["x", "y", "z"], " × ")
    chart = drawn(
        [replace(one, estimate=None) if i in unknown else one for i, one in enumerate(rows)]
    )
    cells = cells_of(ElementTree.fromstring(chart))
    assert [i for i, cell in enumerate(cells) if cell[3] == "unknown"] == unknown
    assert len({cells[i][2] for i in unknown}) == 1
    assert said(chart).count(" unknown") == len(unknown)
    assert faults(chart) == []


def test_a_table_of_three_questions_or_in_groups_is_drawn_as_bars() -> None:
    three = [row(question="a × b × c", choice=f"x × y × {c}", label=f"X × Y × {c}") for c in "uv"]
    assert (count(drawn(three), "heat"), count(drawn(three), "bar")) == (0, 2)
    rows = a_table("a × b", ["no", "yes"], ["x", "y"], " × ")
    groups = [replace(one, by=f"g={by}") for by in "pq" for one in rows]
    assert count(drawn(groups), "bar") == 8


def test_a_note_is_in_the_picture_with_the_title() -> None:
    chart = drawn(rows_of({"no": 0.6, "yes": 0.4}), "How are you?", note="100 reports")
    assert {"How are you?", "100 reports"} <= set(words(chart))
    left, top, width, height = map(float, ElementTree.fromstring(chart).attrib["viewBox"].split())
    assert left == top < 0
    assert width > 400
    assert height > 0
    alone = drawn(rows_of({"no": 0.6, "yes": 0.4}), "How are you?")
    assert "How are you?" not in words(alone)
    assert ElementTree.fromstring(alone).findtext(f"{SVG}title") == "How are you?"
