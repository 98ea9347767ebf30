# SPDX-License-Identifier: Apache-2.0
"""Estimates as text and as HTML; groups are columns, each with its own number of reports."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from frankly_analyst.charts import Line, small_bar
from frankly_analyst.plots import SHARE
from frankly_analyst.rows import Estimate
from frankly_analyst.shown import Shown

_LINE: Final = 120
"""Characters of a line with groups side by side, so that lines fit on a screen."""


def as_text(title: str, n: int, rows: Sequence[Estimate], insufficient: Mapping[str, int]) -> str:
    """Return the estimates as lines of text: a table for each question."""
    lines = [f"{title}: {n} reports"]
    for question_rows in _tables(rows):
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


def _tables(rows: Sequence[Estimate]) -> list[list[Estimate]]:
    """Return the rows of each question; of each of its forms, if versions of the survey ask it differently."""
    tables: list[list[Estimate]] = []
    documents: dict[str, tuple[str, ...]] = {}
    for row in rows:
        is_other = not tables or tables[-1][0].question != row.question
        if is_other or documents.get(row.by, row.documents) != row.documents:
            tables.append([])
            documents = {}
        documents[row.by] = row.documents
        tables[-1].append(row)
    return tables


def missing(insufficient: Mapping[str, int]) -> list[str]:
    """Return a line for each question or group with too few reports."""
    return [
        f"{question}: not enough reports, {needed} more needed"
        for question, needed in insufficient.items()
    ]


def label(row: Estimate) -> str:
    """Return the label of a row, with its group."""
    return f"{row.label} ({row.by})" if row.by else row.label


def bars(*rows: Estimate) -> list[Line]:
    """Return bars to draw for the rows that are shares."""
    return [
        Line.of(label(row), Shown.row(row))
        for row in rows
        if row.estimate is not None and row.unit == SHARE
    ]


def _flags(row: Estimate, left_out: Sequence[str] = ()) -> str:
    """Return the corrected figure and that with denial, if there are any, and the flags of a row."""
    flags = [flag for flag in row.flags if flag not in left_out]
    return _beside(row) + (f"  [{', '.join(flags)}]" if flags else "")


def _beside(row: Estimate) -> str:
    corrected = f"; corrected {row.correction}" if row.correction else ""
    return corrected + (f"; if denied {row.denied}" if row.denied else "")


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
    """Return a question's table with a column for each group, in blocks that are as wide as a line."""
    groups = list(dict.fromkeys((row.by, row.n) for row in rows))
    labels = {row.choice: row.label for row in rows}
    shared = _shared(rows)
    own = {
        (row.choice, row.by): [flag for flag in row.flags if flag not in shared[row.by]]
        for row in rows
    }
    # Flags are below the table, because a column with them would be as wide as three without.
    cells = {
        (row.choice, row.by): f"{row.value}, {row.interval}{_beside(row)}"
        f"{' *' if own[row.choice, row.by] else ''}"
        for row in rows
    }
    promises = list(dict.fromkeys(_promise(row) for row in rows))
    lines = [f"{rows[0].question} ({'; '.join(promises)}) at {rows[0].level:.10g}"]
    columns = [
        [f"{by} (n {n})", *(cells.get((choice, by), "") for choice in labels)] for by, n in groups
    ]
    for block in _blocks(["", *labels.values()], columns):
        widths = [max(map(len, column)) for column in block]
        lines += [
            "  "
            + "  ".join(
                f"{text:<{width}}" for text, width in zip(line, widths, strict=True)
            ).rstrip()
            for line in zip(*block, strict=True)
        ]
    lines += [f"  {by}: {', '.join(flags)}" for by, flags in shared.items() if flags]
    marked = {
        ", ".join(flags): [
            f"{labels[choice]} ({by})" for (choice, by), f in own.items() if f == flags
        ]
        for flags in own.values()
        if flags
    }
    return [*lines, *(f"  * {', '.join(cells)}: {flags}" for flags, cells in marked.items())]


def _blocks(first: list[str], columns: Sequence[list[str]]) -> list[list[list[str]]]:
    """Return columns in blocks that fit into a line, each with the column of labels first."""
    blocks: list[list[list[str]]] = []
    width = 0
    for column in columns:
        wide = 2 + max(map(len, column))
        if not blocks or width + wide > _LINE:
            blocks.append([first])
            width = 2 + max(map(len, first))
        blocks[-1].append(column)
        width += wide
    return blocks


def _head(titles: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<th>{escape(title)}</th>' for title in titles)}</tr>"


def _listed(rows: Sequence[Estimate]) -> str:
    lines = [
        f"<tr><td>{escape(row.question)}</td><td>{escape(row.label)}</td>"
        f"<td>{row.value}</td><td>{row.interval}{_beside(row)}</td><td>{row.n}</td>"
        f"<td>{''.join(map(small_bar, bars(row)))}</td><td>{escape(', '.join(row.flags))}</td></tr>"
        for row in rows
    ]
    titles = ("question", "choice", "estimate", "interval", "n", "", "flags")
    return _head(titles) + "".join(lines)


def _columns(rows: Sequence[Estimate]) -> str:
    """Return rows of HTML with a column for each group; n is in every question's first row."""
    groups = list(dict.fromkeys(row.by for row in rows))
    lines = [_head(("question", "choice", *groups))]
    for question_rows in _tables(rows):
        question = question_rows[0].question
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
