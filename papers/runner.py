# SPDX-License-Identifier: Apache-2.0
"""Reproduction of one figure: numbers as CSV, the plot as SVG, and the comparison with the paper's text."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from papers.drawing import drawing
from papers.figure import SECONDS, Check, Figure, Row, Rows, Run
from papers.records import Records

COLUMNS = ("panel", "curve", "x", "y", "low", "high", "least", "most")
MOST_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class FigureOutput:
    """A figure as text. csv and svg are identical in every run; seconds is also CSV, "" if nothing is timed."""

    figure: Figure
    csv: str
    svg: str
    seconds: str
    checks: tuple[Check, ...]
    rows: tuple[Row, ...]

    @property
    def surprises(self) -> tuple[Check, ...]:
        """The decided checks whose result is not the expected one."""
        return tuple(
            check
            for check in self.checks
            if check.holds is not None and check.holds is not check.expected
        )


def make(
    figure: Figure,
    *,
    quick: bool,
    timer: Callable[[], float],
    on_progress: Callable[[str], None],
    draws: int | None = None,
    records: Records | None = None,
) -> FigureOutput:
    """Compute a figure.

    draws : number of random distributions, 1 to 10,000, instead of the figure's own number; ignored if it draws none.
    records : the Adult data, for figures that use it. timer, on_progress : see `Run`.

    Raises InvalidInput: field_type for draws out of range, field_missing if the figure needs records, and the errors of
    the design engine.
    """
    if draws is not None and not 1 <= draws <= MOST_DRAWS:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"the number of draws must be from 1 to {MOST_DRAWS}", "--draws"
        )
    if figure.adult and records is None:
        raise InvalidInput(
            Problem.FIELD_MISSING, f"{figure.id} needs the Adult data: give its file", "--adult"
        )
    usual = figure.quick_draws if quick else figure.draws
    count = usual if draws is None or not usual else draws
    run = Run(quick=quick, draws=count, records=records, on_progress=on_progress, timer=timer)
    all_rows = tuple(figure.rows(run))
    rows = tuple(row for row in all_rows if row.panel != SECONDS)
    timed = tuple(row for row in all_rows if row.panel == SECONDS)
    checks = tuple(_decided(check, quick) for check in figure.checks(Rows(rows, count)))
    head = header(figure, run)
    return FigureOutput(
        figure,
        csv=_csv([*head, *(f"paper's text: {check.line()}" for check in checks)], rows),
        svg=drawing(figure, rows, _drawn(run)),
        seconds=_csv(
            [*head, "these numbers are seconds on this machine and differ from run to run"], timed
        )
        if timed
        else "",
        checks=checks,
        rows=rows,
    )


def _decided(check: Check, quick: bool) -> Check:
    """Return the check, undecided if a quick run has too few points and draws for it."""
    return check if check.always or not quick else replace(check, holds=None)


def header(figure: Figure, run: Run) -> list[str]:
    """Return the header lines of the CSV, which describe how the numbers were computed."""
    lines = [
        f"{figure.id}: {figure.paper}, {figure.number}",
        figure.title,
        _drawn(run),
        f"seed: {figure.seed or figure.id} (SHAKE-256 of this, the case and the number of the draw)",
    ]
    lines += [f"{name}: {value}" for name, value in figure.parameters.items()]
    lines += [
        f"panel {panel.key}: {panel.title}; x = {panel.x}, y = {panel.y}" for panel in figure.panels
    ]
    return lines + [f"note: {note}" for note in figure.notes]


def _drawn(run: Run) -> str:
    draws = f"{run.draws} random distributions" if run.draws else "no random draws"
    return f"{'quick run' if run.quick else 'full run'}, {draws}"


def _csv(head: Iterable[str], rows: Iterable[Row]) -> str:
    file = io.StringIO()
    file.writelines(f"# {line}\n" for line in head)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        numbers = (row.x, row.y, row.low, row.high, row.least, row.most)
        writer.writerow(
            [row.panel, row.curve, *("" if v is None else f"{v:.10g}" for v in numbers)]
        )
    return file.getvalue()
