# SPDX-License-Identifier: Apache-2.0
"""Results go to stdout, progress and remarks to stderr; `--json` turns every result into one JSON object."""

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
    """Add `--json` to a verb."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Write one JSON object, for programs."
    )
    return option(command)


def remarks() -> Console:
    """Return the console on stderr; rich keeps to NO_COLOR and to plain text when it is no terminal."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def results() -> Console:
    """Return the console on stdout."""
    width = None if sys.stdout.isatty() else _WIDE
    return Console(file=sys.stdout, highlight=False, soft_wrap=width is not None, width=width)


def write_json(value: Any) -> None:
    """Write one JSON object and a newline on stdout."""
    click.echo(json.dumps(value, allow_nan=False))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a plain table; nothing in it is read as markup, since labels are other people's text."""
    rendered = Table(title=Text(title), title_justify="left", show_edge=False)
    for name in columns:
        rendered.add_column(name, overflow="fold")
    for row in rows:
        rendered.add_row(*(Text(cell) for cell in row))
    return rendered
