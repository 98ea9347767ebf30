# SPDX-License-Identifier: Apache-2.0
"""Estimates as text and as HTML; groups are columns, each with its own number of reports."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from frankly_analyst.plots import SHARE, PlotRow, small_bar
from frankly_analyst.rows import Estimate

_COLUMNS = 4  # maximum number of groups side by side, so that lines fit on a screen


def as_text(title: str, n: int, rows: Sequence[Estimate], insufficient: Mapping[str, int]) -> str:
    """Return the estimates as lines of text: a table for each question."""
    lines = [f"{title}: {n} reports"]
    for _, group in groupby(rows, lambda row: row.question):
        question_rows = list(group)
        has_groups = any(row.by for row in question_rows)
        lines += _grouped(question_rows) if has_groups else _ungrouped(question_rows)
    return "\n".join([*lines, *missing(insufficient)])


def as_html(title: str, n: int, rows: Sequence[Estimate], insufficient: Mapping[str, int]) -> str:
    """Return the estimates as an HTML table for notebooks."""
    level = f" at {rows[0].level:.10g}" if rows else ""
    caption = f"<caption>{escape(title)}: {n} reports{level}</caption>"
    body = _columns(rows) if any(row.by for row in rows) else _listed(rows)
    items = "".join(f"<li>{escape(line)}</li>" for line in missing(insufficient))
    return f"<table>{caption}{body}</table>" + (f"<ul>{items}</ul>" if items else "")


def missing(insufficient: Mapping[str, int]) -> list[str]:
    """Return a line for each question or group with too few reports."""
    return [
        f"{question}: not enough reports, {needed} more needed"
        for question, needed in insufficient.items()
    ]


def label(row: Estimate) -> str:
    """Return the label of a row, with its group."""
    return f"{row.label} ({row.by})" if row.by else row.label


def bars(*rows: Estimate) -> list[PlotRow]:
    """Return bars to plot for the rows that are shares."""
    return [
        PlotRow(label(row), row.estimate, row.low, row.high)
        for row in rows
        if row.estimate is not None and row.unit == SHARE
    ]


def _flags(row: Estimate, left_out: Sequence[str] = ()) -> str:
    """Return the corrected figure, if there is one, and the flags of a row."""
    flags = [flag for flag in row.flags if flag not in left_out]
    return _corrected(row) + (f"  [{', '.join(flags)}]" if flags else "")


def _corrected(row: Estimate) -> str:
    return f"; corrected {row.correction}" if row.correction else ""


def _shared(rows: Sequence[Estimate]) -> dict[str, list[str]]:
    """Return, by group, the flags that all its rows have; they are shown only once."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        groups.setdefault(row.by, []).append(row.flags)
    return {
        by: [flag for flag in flags[0] if all(flag in row_flags for row_flags in flags)]
        for by, flags in groups.items()
    }


def _promise(row: Estimate) -> str:
    return f"{row.mechanism}, {row.notion}, ε {row.epsilon}, ceiling {row.ceiling}"


def _ungrouped(rows: Sequence[Estimate]) -> list[str]:
    width, ends = max(len(row.label) for row in rows), max(len(row.interval) for row in rows)
    head = f"{rows[0].question} (n {rows[0].n}, {_promise(rows[0])})"
    return [
        head,
        *(
            f"  {row.label:<{width}}  {row.value:>7}  {row.interval:<{ends}} at {row.level:.10g}{_flags(row)}"
            for row in rows
        ),
    ]


def _grouped(rows: Sequence[Estimate]) -> list[str]:
    """Return a question's table with a column for each group, in blocks of `_COLUMNS` groups."""
    groups = list(dict.fromkeys((row.by, row.n) for row in rows))
    labels = {row.choice: row.label for row in rows}
    shared = _shared(rows)
    cells = {
        (row.choice, row.by): f"{row.value}, {row.interval}{_flags(row, shared[row.by])}"
        for row in rows
    }
    promises = list(dict.fromkeys(_promise(row) for row in rows))
    lines = [f"{rows[0].question} ({'; '.join(promises)}) at {rows[0].level:.10g}"]
    for start in range(0, len(groups), _COLUMNS):
        side_by_side = groups[start : start + _COLUMNS]
        table = [["", *(f"{by} (n {n})" for by, n in side_by_side)]]
        table += [
            [text, *(cells.get((choice, by), "") for by, _ in side_by_side)]
            for choice, text in labels.items()
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines += [
            "  "
            + "  ".join(
                f"{text:<{width}}" for text, width in zip(line, widths, strict=True)
            ).rstrip()
            for line in table
        ]
    return lines + [f"  {by}: {', '.join(flags)}" for by, flags in shared.items() if flags]


def _head(titles: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<th>{escape(title)}</th>' for title in titles)}</tr>"


def _listed(rows: Sequence[Estimate]) -> str:
    lines = [
        f"<tr><td>{escape(row.question)}</td><td>{escape(row.label)}</td>"
        f"<td>{row.value}</td><td>{row.interval}{_corrected(row)}</td><td>{row.n}</td>"
        f"<td>{''.join(map(small_bar, bars(row)))}</td><td>{escape(', '.join(row.flags))}</td></tr>"
        for row in rows
    ]
    titles = ("question", "choice", "estimate", "interval", "n", "", "flags")
    return _head(titles) + "".join(lines)


def _columns(rows: Sequence[Estimate]) -> str:
    """Return rows of HTML with a column for each group; n is in every question's first row."""
    groups = list(dict.fromkeys(row.by for row in rows))
    lines = [_head(("question", "choice", *groups))]
    for question, group in groupby(rows, lambda row: row.question):
        question_rows = list(group)
        shared = _shared(question_rows)
        # Flags of all rows of a group are shown once, in the head.
        sizes = {
            row.by: escape(", ".join([f"n {row.n}", *shared[row.by]])) for row in question_rows
        }
        lines.append(_cells(question, "", [sizes.get(by, "") for by in groups]))
        cells = {
            (
                row.choice,
                row.by,
            ): f"{escape(f'{row.value}, {row.interval}{_flags(row, shared[row.by])}')}"
            f"{''.join(map(small_bar, bars(row)))}"
            for row in question_rows
        }
        lines += [
            _cells("", text, [cells.get((choice, by), "") for by in groups])
            for choice, text in {row.choice: row.label for row in question_rows}.items()
        ]
    return "".join(lines)


def _cells(question: str, text: str, cells: Sequence[str]) -> str:
    heads = f"<td>{escape(question)}</td><td>{escape(text)}</td>"
    return f"<tr>{heads}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
