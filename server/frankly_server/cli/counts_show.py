# SPDX-License-Identifier: Apache-2.0
"""`frankly counts show` and `table`: released counts, over HTTP or from this machine's database."""

from pathlib import Path
from typing import Any

import click
from frankly_analyst import Counts, InvalidRequest
from frankly_analyst.counts_request import COUNTS_FIELDS
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import Command, json_option, results, write_json
from frankly_server.cli.remote import analyst_errors, remote_of, survey_id_of, url_and_key
from frankly_server.cli.services import open_services


def _options(command: Command) -> Command:
    # Decorators apply from the bottom up, so the first option is added last.
    for name, item in reversed(COUNTS_FIELDS.items()):
        metavar = "NAMES" if name in ("by", "questions") else "YYYY-MM-DD"
        description = item.metadata["description"].replace("in a query separated", "separated")
        command = click.option(f"--{name}", metavar=metavar, help=description)(command)
    return command


@click.command()
@click.argument("survey")
@url_and_key
@_options
@click.option("--csv", "as_csv", is_flag=True, help="Write one line per count as CSV.")
@json_option
def show(
    survey: str, url: str | None, key: str | None, as_csv: bool, as_json: bool, **fields: Any
) -> None:
    """Show the released counts of noisy symbols of a SURVEY by stratum.

    Every estimate is computed from these counts. `--json` adds the mechanisms and their decoders.
    For a link, or a survey with --url, the counts come from that server and need an API key.
    Otherwise they come from this machine's database.
    """
    if as_csv and as_json:
        raise InvalidInput(Problem.USAGE, "choose one of --csv and --json", "csv")
    with analyst_errors():
        counts = _counts(survey, url, key, fields)
    if as_json:
        write_json(counts.body)
    elif as_csv:
        click.echo(counts.to_csv(), nl=False)
    else:
        results().print(str(counts), markup=False, highlight=False, soft_wrap=True)


@click.command("table")
@click.argument("survey")
@url_and_key
@_options
@click.option(
    "--complete", is_flag=True, help="Leave out reports whose public answers are missing."
)
@click.option(
    "--documents",
    metavar="DIGESTS",
    help="Only these versions, by their digests, separated by commas [default: all].",
)
@click.option("--expand", is_flag=True, help="Write one row for each report instead of a count.")
@click.option(
    "--out",
    metavar="FILE",
    help="Write this file (.csv, .parquet, .sav or .dta), and its codebook beside it.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Write the rows as CSV to standard output.")
def score_table(
    survey: str,
    url: str | None,
    key: str | None,
    complete: bool,
    documents: str | None,
    expand: bool,
    out: str | None,
    as_csv: bool,
    **fields: Any,
) -> None:
    """Write public answers and decoded scores of --questions of a SURVEY for a statistics package.

    Name one question, or several that one block or table has. The mean of a score is the unbiased
    share of its choice among the reports of the table, and its standard error that of a sample of
    them. Without --out and --csv the columns are listed.
    """
    if out is not None and as_csv:
        raise InvalidInput(Problem.USAGE, "choose one of --csv and --out", "csv")
    questions, digests = _names(fields["questions"]), _names(documents)
    with analyst_errors():
        counts = _counts(survey, url, key, fields)
        table = counts.table(*questions, complete=complete, expand=expand, documents=digests)
    written: tuple[Path, ...] = ()
    if out is not None:
        try:
            written = table.write(out)
        except InvalidRequest as error:
            raise InvalidInput(Problem.UNSUPPORTED, str(error.detail), "out") from None
    if as_csv:
        click.echo(table.to_csv(), nl=False)
        return
    lines = [str(table), *(f"Written: {path}" for path in written)]
    results().print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name]


def _counts(survey: str, url: str | None, key: str | None, fields: dict[str, Any]) -> Counts:
    remote = remote_of(survey, url, key)
    return _local(survey, fields) if remote is None else remote[0].counts(remote[1], **fields)


def _local(survey: str, fields: dict[str, Any]) -> Counts:
    with open_services() as services:
        return Counts.from_json(services.analysis.counts(survey_id_of(services, survey), **fields))
