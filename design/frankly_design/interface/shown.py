# SPDX-License-Identifier: Apache-2.0
"""How designs, measures and estimates look: text, HTML of notebooks, plots."""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import TYPE_CHECKING, Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

if TYPE_CHECKING:
    from frankly_design.interface.design import Design

_MOST_SHOWN: Final = 24
"""Largest number of rows and of columns of a channel that is shown; longer ones are cut."""
_BLUE: Final = (31, 78, 156)


class Listing(Sequence[dict[str, Any]]):
    """Rows of figures that print as a table and plot as points; `found` has the objects of the rows."""

    def __init__(self, title: str, rows: list[dict[str, Any]], found: tuple[Any, ...]) -> None:
        """Wrap rows with the same keys."""
        self.title, self._rows, self.found = title, rows, found

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return frame([list(row.values()) for row in self._rows], self._head())

    def plot(self, x: str = "information", y: str = "variance", ax: Any = None) -> Any:
        """Draw one figure against another, a point for each row; returns the matplotlib axes.

        x, y : keys of the rows. Rows without a finite number are left out.
        """
        for name in (x, y) if self._rows else ():
            if name not in self._head():
                raise InvalidInput(
                    Problem.FIELD_UNKNOWN, f"the figures are {', '.join(self._head())}", name
                )
        ax = axes(ax)
        rows = [row for row in self._rows if math.isfinite(row[x]) and math.isfinite(row[y])]
        named = any("mechanism" in row for row in rows)
        ax.plot([row[x] for row in rows], [row[y] for row in rows], "o" if named else "o-")
        # One text for mechanisms that are equal, which else would be written over each other.
        names: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows if named else ():
            names.setdefault((number(row[x]), number(row[y])), []).append(row)
        for equal in names.values():
            text = "\n".join(f" {row['mechanism']}" for row in equal)
            ax.annotate(text, (equal[0][x], equal[0][y]), va="top", fontsize="small")
        ax.margins(0.2 if named else 0.05)
        ax.set_xlabel(x.replace("_", " "))
        ax.set_ylabel(y.replace("_", " "))
        return ax

    def _lines(self) -> list[tuple[str, ...]]:
        return [tuple(map(number, row.values())) for row in self._rows]

    def _head(self) -> tuple[str, ...]:
        return tuple(self._rows[0]) if self._rows else (self.title,)

    def __repr__(self) -> str:
        return aligned([self._head(), *self._lines()])

    def _repr_html_(self) -> str:
        return table_html(self._head(), self._lines())


def number(value: Any) -> str:
    """Return a figure for reading: six significant digits of a float."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def up(value: float) -> str:
    """Return a level or factor for reading: six significant digits, rounded up."""
    if not math.isfinite(value):
        return str(value)
    return (
        f"{Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value).normalize():f}"
    )


def listed(labels: Sequence[Any]) -> str:
    """Return the first labels as text."""
    shown = [repr(label) for label in labels[:_MOST_SHOWN]]
    return ", ".join(shown) + (", …" if len(labels) > _MOST_SHOWN else "")


def worth(design: "Design") -> Iterator[str]:
    """Yield sentences about a design's ceiling, its value and how near it is to the best possible."""
    level = design.answer_ldp
    if math.isinf(level):
        yield "Under another prior a report can tell more: some reports rule answers out."
    else:
        yield f"Under any prior the answer has {up(level)}-LDP."
    if not math.isnan(design.information):
        part = f"{design.normalised_information:.1%} of the answer's own entropy"
        yield f"A report carries {design.information:.4g} nats about the answer, {part}."
    if not design.identifiable:
        yield f"Of the shares only these can be estimated: {'; '.join(design.estimable) or 'none'}."
    elif math.isfinite(design.variance):
        total = f"{design.variance:.4g}/n"
        yield f"At the prior, the variances of all shares estimated from n reports sum to {total}."
    if design.gap is not None:
        gap = f"{max(Decimal(design.gap).quantize(Decimal('1e-9'), ROUND_CEILING), Decimal('1e-9')):g}"
        capped = " and the limit of the variance" if design.is_capped else ""
        best = f"no mechanism that keeps these promises{capped} is better by more than {gap}"
        yield f"Its {design.goal} is {design.value:.6g}, and {best}."


def figures(design: "Design") -> list[tuple[str, str]]:
    """Return the figures that are shown beside a channel."""
    rows: list[tuple[str, Any]] = [
        ("ε of the answer's LDP, nats", up(design.answer_ldp)),
        ("information, nats", design.information),
        ("variance, one report", design.variance),
        ("error of the best guess", design.hamming),
    ]
    if design.bound is not None:
        best = "yes" if design.certified else "no"
        rows += [(f"bound of the {design.goal}", design.bound), ("reaches the bound", best)]
    return [(name, number(value)) for name, value in rows]


def text(design: "Design") -> str:
    """Return a design as text: its name, its figures and its channel, if that is not too large."""
    kind = f"{design.mechanism.kind}, {len(design.answers)} answers, {design.reports} reports"
    lines = [f"{design.name} ({kind})", aligned(figures(design))]
    if max(len(design.answers), design.reports) <= _MOST_SHOWN:
        head = ("Q(y|x)", *design._columns())  # noqa: SLF001 - the view of this class
        rows = [
            (str(label), *(f"{q:.4f}" for q in row))
            for label, row in zip(design.answers, design.channel, strict=True)
        ]
        lines.append(aligned([head, *rows]))
    return "\n".join(lines)


def html(design: "Design") -> str:
    """Return a design as HTML: figures, and the channel with a colour for each probability."""
    title = f"<p><strong>{escape(design.name)}</strong>: {len(design.answers)} answers, {design.reports} reports</p>"
    summary = table_html(("figure", "value"), figures(design))
    if max(len(design.answers), design.reports) > _MOST_SHOWN:
        return title + summary
    head = "".join(f"<th>{escape(c)}</th>" for c in ("Q(y|x)", *design._columns()))  # noqa: SLF001
    body = "".join(
        f"<tr><th>{escape(str(label))}</th>{''.join(map(_cell, row))}</tr>"
        for label, row in zip(design.answers, design.channel, strict=True)
    )
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{summary}"


def _cell(chance: float) -> str:
    colour = "rgba({},{},{},{:.2f})".format(*_BLUE, chance)
    ink = "white" if chance > 0.8 else "inherit"
    return f'<td style="background:{colour};color:{ink}">{chance:.4f}</td>'


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table; every text is escaped."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def notes_html(notes: Sequence[str]) -> str:
    """Return notes as HTML paragraphs."""
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of text with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def frame(rows: Any, columns: Sequence[str], index: Sequence[Any] | None = None) -> Any:
    """Return a pandas DataFrame. Raises InvalidInput(unsupported) without pandas."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError:
        raise _missing("tables need pandas", "") from None
    labels = None if index is None else pd.Index(list(index), tupleize_cols=False)
    return pd.DataFrame(rows, index=labels, columns=list(columns))


def axes(ax: Any) -> Any:
    """Return matplotlib axes: those given, or new ones. Raises InvalidInput without matplotlib."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - optional
    except ImportError:
        raise _missing("plots need matplotlib", "ax") from None
    return plt.subplots(layout="constrained")[1]


def _missing(what: str, field: str) -> InvalidInput:
    return InvalidInput(Problem.UNSUPPORTED, f"{what}: install it beside frankly-design", field)


def literal(label: Any) -> str:
    """Return a label as matplotlib shows it without reading formulas between dollars."""
    return str(label).replace("$", r"\$")


def heat_map(design: "Design", ax: Any) -> Any:
    """Draw a channel as a map of colours."""
    ax = axes(ax)
    image = ax.imshow(design.channel, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.set_yticks(range(len(design.answers)), list(map(literal, design.answers)))
    ax.set_xticks(range(design.reports), list(map(literal, design._columns())))  # noqa: SLF001 - the view of this class
    ax.set_xlabel("report y")
    ax.set_ylabel("answer x")
    ax.figure.colorbar(image, ax=ax, label="Q(y|x)")
    return ax
