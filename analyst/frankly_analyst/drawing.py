# SPDX-License-Identifier: Apache-2.0
"""The chart that fits estimates of one question: shares, means, groups, a trend or a cross-table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from frankly_analyst import charts
from frankly_analyst.charts import Line, Scale
from frankly_analyst.plots import NUMBER
from frankly_analyst.request import WEIGHTED
from frankly_analyst.rows import Estimate
from frankly_analyst.shown import CONTRAST, Range, Shown
from frankly_analyst.svg import Svg
from frankly_analyst.words import ENGLISH, Words

_PERIODS = frozenset({"day", "week", "month"})
_MOST_PERIODS: Final = 1000
_TINY: Final = 1e-6
_BETWEEN, _AMONG = " × ", " | "
_FIGURES = ("mean", "median", "contrast")
_VALUES: Final = {"up to ": "up_to", "quantile ": "quantile"}
"""How the names of figures begin that have a value, with the name of their text."""
MOST_LINES = 60
"""Largest number of figures of a chart; one with more would be unreadable."""


def group_values(by: str) -> str:
    """Return the values of a group such as ``region=north`` without their names; of a population "weighted region"."""
    parts = (part.partition("=") for part in by.split(" "))
    return ", ".join(f"{name} {value}" if name == WEIGHTED else value for name, _, value in parts)


def lines_of(
    rows: Sequence[Estimate], possible: Range | None = None, words: Words = ENGLISH
) -> list[Line]:
    """Return the lines of rows with an estimate; their scale must cover them.

    possible : see `Shown.row`. words : the language.
    """
    return [
        _line(row, label_of(row, words), possible, words)
        for row in rows
        if row.estimate is not None
    ]


def draw(
    title: str,
    rows: Sequence[Estimate],
    *,
    group: Callable[[str], str] = group_values,
    scale: Scale | None = None,
    possible: Range | None = None,
    most: int = MOST_LINES,
    note: str | None = None,
    corner: tuple[str, str] | None = None,
    words: Words = ENGLISH,
) -> Svg | None:
    """Return the chart of rows about one question, of all its groups, or None if there is nothing to draw.

    Of rows in two units, such as a mean and a distribution, those in the first row's unit are drawn, because they have
    one scale.

    group : function from a group's label to its name. scale : None for one that covers these rows. possible : the
    range of a mean, None if it is not known. most : largest number of figures.
    note : a line below the title, which is then a part of the picture, as in a file; None for a picture without both.
    corner : texts of the questions of a table's rows and columns; None to take them from the title. words : the
    language of everything else.
    """
    known = [row for row in rows if row.estimate is not None]
    # Whether they are a table is asked of all cells, also of those that are unknown.
    table = None if not rows or rows[0].by else _table(rows)
    known = [row for row in known if row.unit == known[0].unit]
    if not known or len(known) > most:
        return None
    is_number = known[0].unit == NUMBER
    # Of a contrast, scores are weights, not the ends of what is possible.
    if any(row.choice == CONTRAST for row in known):
        scale = None
    if all(row.choice == CONTRAST for row in known):
        possible = None
    if scale is None:
        lines = lines_of(known, possible)
        scale = Scale.of_numbers(lines, possible) if is_number else Scale.of_shares(lines)
    is_over_time = table is None and known[0].by and _is_over_time(known[0].by)
    if is_over_time and is_number:
        # Changes over time are small beside the whole range.
        scale = Scale.of_numbers(lines_of(known, possible))
    scale = replace(scale, words=words)
    if table is not None:
        return _heat_map(title, table, scale, note, corner)
    if is_over_time:
        return _trend(title, known, scale, group, possible, note)
    return charts.intervals(
        title, _blocks(known, group, possible, words), scale, dots=is_number, note=note
    )


def _line(row: Estimate, label: str, possible: Range | None = None, words: Words = ENGLISH) -> Line:
    return Line.of(label, Shown.row(row, possible).said_in(words))


def label_of(row: Estimate, words: Words = ENGLISH) -> str:
    """Return the label of a choice, or the name of a figure as the beginning of a line."""
    name = row.label
    if row.choice in _FIGURES:
        name = words.say(row.choice) if row.label == row.choice else row.label
    else:
        begins = next((one for one in _VALUES if row.choice.startswith(one)), None)
        if begins is None:
            return name
        if name.startswith(begins):
            name = words.say(_VALUES[begins], value=words.figure(name.removeprefix(begins)))
    return name[:1].upper() + name[1:]


def _asked(rows: Sequence[Estimate], words: Words) -> dict[str, str]:
    """Return the labels of the choices to show in groups and over time, by choice."""
    labels = {row.choice: label_of(row, words) for row in rows}
    # Of two shares that add up to all, the second says everything: the first is the rest.
    if len(labels) == 2 and _are_all(rows):
        return dict([list(labels.items())[-1]])
    return labels


def _are_all(rows: Sequence[Estimate]) -> bool:
    """Return whether the figures of each group are shares that add up to 1."""
    sums: dict[str, float] = {}
    for row in rows:
        sums[row.by] = sums.get(row.by, 0.0) + (row.estimate or 0.0)
    is_share = rows[0].unit != NUMBER
    return is_share and all(abs(total - 1) < _TINY for total in sums.values())


def _blocks(
    rows: Sequence[Estimate], group: Callable[[str], str], possible: Range | None, words: Words
) -> list[tuple[str, list[Line]]]:
    """Return the lines of a chart in blocks: of groups a block for each choice, so that they can be compared."""
    if not rows[0].by:
        return [("", lines_of(rows, possible, words))]
    return [
        (
            label,
            [
                # Each group has its own number of reports, which its interval depends on.
                _line(row, words.say("group_n", group=group(row.by), n=row.n), possible, words)
                for row in rows
                if row.choice == choice
            ],
        )
        for choice, label in _asked(rows, words).items()
    ]


def _is_over_time(by: str) -> bool:
    return all(part.partition("=")[0] in _PERIODS for part in by.split(" "))


def _trend(
    title: str,
    rows: Sequence[Estimate],
    scale: Scale,
    group: Callable[[str], str],
    possible: Range | None,
    note: str | None,
) -> Svg:
    panels = [
        (
            label,
            {
                group(row.by): _line(row, group(row.by), possible, scale.words)
                for row in rows
                if row.choice == choice
            },
        )
        for choice, label in _asked(rows, scale.words).items()
    ]
    periods = [group(by) for by in _periods({row.by for row in rows})]
    return charts.trend(title, periods, panels, scale, note=note)


def _periods(known: set[str]) -> list[str]:
    """Return periods such as ``month=2026-06`` in order, with those in between that have no figure."""
    ordered = sorted(known)
    name, _, first = ordered[0].partition("=")
    last = ordered[-1].partition("=")[2]
    found = [ordered[0]]
    day = _first_day(name, first)
    while day is not None and found[-1] < ordered[-1] and len(found) < _MOST_PERIODS:
        day += timedelta(days=1)
        period = f"{name}={_named(name, day)}"
        if period != found[-1]:
            found.append(period)
    # Periods of two kinds, or in a form of their own, are those with figures.
    return found if last and known <= set(found) else ordered


def _first_day(name: str, period: str) -> date | None:
    text = {"day": period, "week": f"{period}-1", "month": f"{period}-01"}.get(name, "")
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _named(name: str, day: date) -> str:
    if name == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    return day.isoformat()[: 7 if name == "month" else 10]


def _table(rows: Sequence[Estimate]) -> list[list[Estimate]] | None:
    """Return the cells of a table of two questions by row, None if the rows are no complete table."""
    separator = _separator(rows[0].question)
    ids = [row.choice.split(separator) for row in rows]
    if len(rows[0].question.split(separator)) != 2 or any(len(parts) != 2 for parts in ids):
        return None
    down = _place(ids)
    cells: dict[str, dict[str, Estimate]] = {}
    for parts, row in zip(ids, rows, strict=True):
        cells.setdefault(parts[down], {})[parts[1 - down]] = row
    columns = list(next(iter(cells.values())))
    is_complete = all(list(row) == columns for row in cells.values())
    if not is_complete or len(cells) * len(columns) != len(rows):
        return None
    return [list(row.values()) for row in cells.values()]


def _place(ids: Sequence[Sequence[str]]) -> int:
    """Return which part of the ids of cells is that of their row."""
    # Cells are row-major: neighbours have the same answer to the question of the rows.
    return 0 if len(ids) == 1 or ids[0][0] == ids[1][0] else 1


def _separator(question: str) -> str:
    """Return what separates the two parts of a table's id, and of its texts and cells."""
    return _AMONG if _AMONG in question else _BETWEEN


def _heat_map(
    title: str,
    table: Sequence[Sequence[Estimate]],
    scale: Scale,
    note: str | None,
    corner: tuple[str, str] | None,
) -> Svg:
    question = table[0][0].question
    separator = _separator(question)
    down = _place([cell.choice.split(separator) for row in table for cell in row])
    cells = [cell for row in table for cell in row]
    # Ids where a label contains the sign between the two, because it does not say where the second one begins.
    is_clear = all(len(cell.label.split(separator)) == 2 for cell in cells)

    def names(cell: Estimate) -> list[str]:
        return (cell.label if is_clear else cell.choice).split(separator)

    asked = title.split(separator)
    if len(asked) != 2:
        asked = question.split(separator)
    if corner is not None:
        asked = [*corner] if down == 0 else [*reversed(corner)]
    # Of "B | A" the shares of B add up to 100% for each choice of A.
    if separator == _AMONG:
        asked = [asked[0], scale.words.say("each_by_itself", question=asked[1])]
    across, along = asked[1 - down], asked[down]
    rows = [
        (
            names(row[0])[down],
            [
                None
                if cell.estimate is None
                else _line(cell, names(cell)[1 - down], words=scale.words)
                for cell in row
            ],
        )
        for row in table
    ]
    columns = [names(cell)[1 - down] for cell in table[0]]
    return charts.heat_map(title, columns, rows, scale, (along, across), note=note)
