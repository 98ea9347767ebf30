# SPDX-License-Identifier: Apache-2.0
"""Command `python -m papers`: reproduce the papers' figures as numbers and plots."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.cli import front
from frankly_server.cli.console import json_option, remarks, results, table, write_json
from frankly_server.web import logs

from papers.catalogue import FIGURES, chosen
from papers.figure import Check, Figure
from papers.records import Records, read_records
from papers.runner import FigureOutput, make

USUAL_ADULT = Path("../shared/data/adult.csv")
_EVERY_S = 10.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("figure", required=False)
@click.option(
    "--list", "listing", is_flag=True, help="List every figure and table that can be reproduced."
)
@click.option("--quick", is_flag=True, help="Fewer points and draws: seconds instead of minutes.")
@click.option(
    "--draws", type=int, help="Number of random distributions, instead of the paper's number."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder to write to [default: .].",
)
@click.option(
    "--adult",
    type=click.Path(path_type=Path),
    help=f"File of the Adult data [default: {USUAL_ADULT} if it exists].",
)
@json_option
def reproduce(
    figure: str | None,
    listing: bool,
    quick: bool,
    draws: int | None,
    out: Path,
    adult: Path | None,
    as_json: bool,
) -> None:
    """Reproduce FIGURE (or all): write FIGURE.csv and FIGURE.svg, and compare the numbers with the paper's text."""
    if listing:
        _list(as_json)
        return
    if figure is None:
        raise InvalidInput(Problem.USAGE, "name a figure, or all; --list shows them", "FIGURE")
    selected = chosen(figure)
    records = _records(selected, adult)
    summaries = []
    for entry in selected:
        with _progress_of(entry.id) as progress:
            result = make(
                entry,
                quick=quick,
                timer=time.perf_counter,
                on_progress=progress,
                draws=draws,
                records=records,
            )
        summaries.append(_write(result, out, as_json))
    if as_json:
        write_json({"figures": summaries})


def _list(as_json: bool) -> None:
    if as_json:
        body = [{"id": f.id, "paper": f.paper, "number": f.number, "title": f.title, "adult": f.adult}
                for f in FIGURES.values()]  # fmt: skip
        write_json({"figures": body})
        return
    rows = [
        (f.id, f.number, f.title + (" (needs Adult)" if f.adult else "")) for f in FIGURES.values()
    ]
    results().print(table("Figures", ("id", "printed as", "what it shows"), rows))


def _records(figures: list[Figure], adult: Path | None) -> Records | None:
    if not any(figure.adult for figure in figures):
        return None
    return read_records(adult or USUAL_ADULT)


@contextmanager
def _progress_of(name: str) -> Iterator[Callable[[str], None]]:
    """Report progress on stderr: at a terminal in one changing line, otherwise in a line every ten seconds."""
    console = remarks()
    if console.is_terminal:
        with console.status(name) as status:
            yield lambda text: status.update(f"{name}: {text}")
        return
    last = time.monotonic() - _EVERY_S

    def report(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_S:
            console.print(f"{name}: {text}", markup=False)
            last = time.monotonic()

    yield report


def _write(result: FigureOutput, out: Path, as_json: bool) -> dict[str, Any]:
    """Write the files, print the checks unless `as_json`, and return the figure's JSON."""
    files = {f"{result.figure.id}.csv": result.csv, f"{result.figure.id}.svg": result.svg}
    if result.seconds:
        files[f"{result.figure.id}.seconds.csv"] = result.seconds
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_text(content, encoding="utf-8")
    except OSError as error:
        message = f"cannot write to this folder: {error.strerror}; give another one"
        raise InvalidInput(Problem.USAGE, message, "--out") from None
    if not as_json:
        click.echo(f"{result.figure.id}: {', '.join(str(out / name) for name in files)}")
        for check in result.checks:
            click.echo(f"  {check.line()}")
    body = [_check(check) for check in result.checks]
    return {"id": result.figure.id, "files": [str(out / name) for name in files], "checks": body}


def _check(check: Check) -> dict[str, Any]:
    return {
        "words": check.words,
        "paper": check.paper,
        "tolerance": check.tolerance,
        "ours": check.ours if math.isfinite(check.ours) else None,
        "holds": check.holds,
        "expected": check.expected,
    }


if __name__ == "__main__":
    logs.configure(level=logging.CRITICAL)  # send messages to the terminal as text
    sys.exit(front.run(sys.argv[1:], reproduce, "python -m papers"))
