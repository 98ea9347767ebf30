# SPDX-License-Identifier: Apache-2.0
"""Terminal output: results on stdout, remarks on stderr, one JSON object with `--json`."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])


_WIDE = 1000
"""Width in columns of output to a file or a pipe, so that no line is cut."""


def json_option(command: Command) -> Command:
    """Add `--json` to a command."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Write one JSON object, for programs."
    )
    return option(command)


def remarks() -> Console:
    """Return the console on stderr; rich respects NO_COLOR and writes plain text to a pipe."""
    # Callers print with markup=False: rich would interpret brackets in names and paths.
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def results() -> Console:
    """Return the console on stdout."""
    width = None if sys.stdout.isatty() else _WIDE
    return Console(file=sys.stdout, highlight=False, soft_wrap=width is not None, width=width)


def write_json(value: Any) -> None:
    """Write one JSON object and a newline on stdout."""
    # NaN is not valid JSON: fail here rather than in the program that reads the output.
    click.echo(json.dumps(value, allow_nan=False))


def respond(
    as_json: bool, value: Any, *lines: str, rows: Table | None = None, output: Iterable[str] = ()
) -> None:
    """Write the result of a command: one JSON object with --json, else a table, text and remarks.

    rows, output : go to standard output, which a file or a pipe may receive.
    lines : remarks, to standard error.
    """
    if as_json:
        write_json(value)
        return
    if rows is not None:
        results().print(rows)
    for line in output:
        click.echo(line)
    for line in lines:
        remarks().print(line, markup=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table without an outer border."""
    # Text(…): names and labels are input, so they must not be interpreted as markup.
    rendered = Table(title=Text(title), title_justify="left", show_edge=False)
    for name in columns:
        rendered.add_column(name, overflow="fold")
    for row in rows:
        rendered.add_row(*(Text(cell) for cell in row))
    return rendered
