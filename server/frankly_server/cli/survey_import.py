# SPDX-License-Identifier: Apache-2.0
"""`frankly survey import`: a survey file from an XLSForm, and a report on each of its rows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, remarks, table, write_json

if TYPE_CHECKING:
    from frankly_server.surveys import definition, xlsform
else:
    # Lazy, because these modules import the design engine and the readers of workbooks.
    definition = LazyModule("frankly_server.surveys.definition")
    xlsform = LazyModule("frankly_server.surveys.xlsform")

# More than the reader accepts, so that it refuses a larger file instead of reading a part.
_MAX_BYTES = 4 * 2**20
_MAX_SHOWN = 60


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Survey file to write [default: standard output].",
)
@json_option
def import_form(file: BinaryIO, output: Path | None, as_json: bool) -> None:
    """Write a survey file from an XLSForm FILE (.xlsx or .xls), as ODK and Kobo use.

    Questions with choices are taken over, numbers as ranges. The table says what became of each row
    of the sheet survey, and why: free text, dates and places cannot be protected. No database is needed.
    """
    imported = xlsform.read_xlsform(file.read(_MAX_BYTES))
    text = definition.parse_value(imported.draft).to_yaml()
    if output is not None:
        try:
            output.write_bytes(text)
        except OSError as error:
            detail = f"the survey file cannot be written: {error.strerror}"
            raise InvalidInput(Problem.USAGE, detail, "output") from None
    if as_json:
        rows = [asdict(row) for row in imported.rows]
        write_json({"survey": imported.draft, "rows": rows, "notes": list(imported.notes)})
        return
    if output is None:
        click.echo(text, nl=False)
    columns = ("line", "name", "text", "outcome", "reason")
    shown = [(str(r.line), r.name, _short(r.text), r.outcome, r.reason) for r in imported.rows]
    out = remarks()
    out.print(table("Rows of the form", columns, shown))
    for note in imported.notes:
        out.print(f"Note: {note}.", markup=False)
    questions = len(imported.draft["form"]["questions"])
    out.print(
        f"Questions taken over: {questions}. Read the file before you apply it.", markup=False
    )


def _short(text: str) -> str:
    """Return the beginning of a text, which is enough to find it in the form."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
