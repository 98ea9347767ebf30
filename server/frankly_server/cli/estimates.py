# SPDX-License-Identifier: Apache-2.0
"""`frankly estimates`: estimates over HTTP with an API key, or from this machine's database."""

import json
from dataclasses import asdict
from datetime import date
from typing import Any, BinaryIO

import click
from frankly_analyst import Completion, Estimate, Estimates
from frankly_analyst.plots import figure
from frankly_analyst.request import FIELDS, KINDS, SCALES, WANTED
from frankly_protocol.clock import format_time
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import (
    Command,
    json_option,
    remarks,
    respond,
    results,
    table,
    write_json,
)
from frankly_server.cli.remote import analyst_errors, remote_of, survey_id_of, url_and_key
from frankly_server.cli.services import open_services
from frankly_server.intake.times import next_release

MAX_RESULT_BYTES = 64 * 2**20
_NO_END = "no end"
"""Text for the ends of an unbounded interval of a ratio."""

_OPTIONS: dict[Any, dict[str, Any]] = {
    bool: {"is_flag": True},
    float: {"type": float, "show_default": True},
    int: {"type": int},
    date: {"metavar": "YYYY-MM-DD"},
}


def request_options(command: Command) -> Command:
    """Add an option for each declared field except `targets`: `--crosstab` is easier to type."""
    # Decorators apply from the bottom up, so the first option is added last.
    for name, item in reversed(FIELDS.items()):
        settings = _OPTIONS.get(KINDS[name], {})
        if choices := item.metadata.get("choices"):
            settings = {"type": click.Choice(choices)}
        description = item.metadata["description"]
        if name != "targets":
            flag = f"--{name.replace('_', '-')}"
            option = click.option(flag, default=item.default, help=description, **settings)
            command = option(command)
    return command


@click.command()
@click.argument("survey")
@url_and_key
@request_options
@click.option(
    "--crosstab",
    multiple=True,
    help="Question id of a joint table; repeat the option for each question.",
)
@click.option(
    "--scales",
    is_flag=True,
    help="Mean, distribution and median of every question with scores or ranges.",
)
@click.option("--language", help="Language of the labels [default: the survey's first].")
@click.option(
    "--result", is_flag=True, help="Write the complete result as JSON, for `frankly replay`."
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV for programs.")
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="Write a CSV file for people, that spreadsheets open with a double click.",
)
@json_option
def estimates(
    survey: str,
    url: str | None,
    key: str | None,
    crosstab: tuple[str, ...],
    scales: bool,
    language: str | None,
    result: bool,
    as_csv: bool,
    spreadsheet: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Show estimates of a SURVEY, each with the ends of its interval.

    For a link, or an id with --url, they come from that server and need an API key. For a name or
    an id alone, they come from this machine's database.
    """
    if result + as_csv + spreadsheet + as_json > 1:
        ways = "choose one of --result, --csv, --spreadsheet and --json"
        raise InvalidInput(Problem.USAGE, ways, "csv")
    if spreadsheet and fields["compare"]:
        detail = "comparisons have no table for spreadsheets: choose --csv or --json"
        raise InvalidInput(Problem.USAGE, detail, "spreadsheet")
    if fields["completion"] and (spreadsheet or as_csv):
        detail = "completions have no table: choose --json, --result or none of them"
        raise InvalidInput(Problem.USAGE, detail, "completion")
    if scales and crosstab:
        raise InvalidInput(Problem.USAGE, "choose --scales or --crosstab", "scales")
    # The API has a single parameter for wanted figures and joint tables.
    fields["targets"] = list(crosstab) or (SCALES if scales else WANTED)
    remote = remote_of(survey, url, key)
    with analyst_errors():
        response = (
            _local(survey, language, fields)
            if remote is None
            else remote[0].estimates(remote[1], language=language, **fields)
        )
    if result:
        click.echo(response.to_json(), nl=False)
        return
    if as_csv:
        exported = response.comparisons if fields["compare"] else response
        click.echo(exported.to_csv(), nl=False)
    elif spreadsheet:
        click.echo(response.to_spreadsheet(), nl=False)
    elif as_json:
        write_json(_json(response))
    else:
        _show(response)


def _local(survey: str, language: str | None, fields: dict[str, Any]) -> Estimates:
    """Return the estimates from this machine's database.

    No API key is needed, because access to the database already exposes the reports.
    """
    with open_services() as services:
        body = services.analysis.estimates(survey_id_of(services, survey), **fields)
        now, versions = services.surveys.now(), services.surveys.versions(body["survey"])
    times = [next_release(version.release_every, now) for version in versions]
    message = "Reports received since the last release are not counted; the next release is at"
    remarks().print(f"{message} {format_time(min(times))}.", markup=False)
    return Estimates.from_json(body, language)


def _json(response: Estimates) -> dict[str, object]:
    rows = [asdict(row) for row in response]
    summary = {
        "survey": response.survey,
        "title": response.title,
        "n": response.n,
        "insufficient": dict(response.insufficient),
    }
    found = {name: response.body[name] for name in ("comparisons", "completions")}
    return summary | {"rows": rows} | {name: value for name, value in found.items() if value}


def _show(response: Estimates) -> None:
    out = results()
    columns = [
        "question",
        "choice",
        "estimate",
        "from",
        "to",
        "n",
        "mechanism",
        "notion",
        "ε",
        "ceiling",
        "remarks",
    ]
    has_corrected = any(row.correction for row in response)
    has_denied = any(row.denied for row in response)
    for name, is_shown in (("corrected", has_corrected), ("if denied", has_denied)):
        if is_shown:
            columns.insert(columns.index("n"), name)
    level = f" at {response.rows[0].level:.10g}" if response.rows else ""
    days = " of all days" if response.body["since"] or response.body["until"] else ""
    out.print(
        table(
            f"{response.title}: {response.n} reports{days}{level}",
            columns,
            [_cells(row, has_corrected=has_corrected, has_denied=has_denied) for row in response],
        )
    )
    for line in response.said_of_random_answers():
        out.print(line, markup=False)
    for question, missing_count in response.insufficient.items():
        out.print(
            f"{question}: not enough reports for an estimate, {missing_count} more needed.",
            markup=False,
        )
    if response.body["comparisons"]:
        click.echo(str(response.comparisons))
    if response.sources is not None:
        click.echo(f"Sources, by {response.sources.question}:\n{response.sources}")
    for completion in Completion.all_from_json(response.body, response.language):
        click.echo(str(completion))
    for note in response.body["notes"]:
        out.print(note, markup=False)


def _cells(row: Estimate, *, has_corrected: bool, has_denied: bool) -> tuple[str, ...]:
    ceiling = "∞" if row.ceiling == "inf" else row.ceiling
    # A missing end is unknown, or infinite: a ratio whose denominator may be 0 has no end.
    no_end = _NO_END if "unbounded" in row.flags else figure(None, row.unit)
    numbers = [
        row.value,
        *(no_end if end is None else figure(end, row.unit) for end in (row.low, row.high)),
    ]
    label = f"{row.label} ({row.by})" if row.by else row.label
    return (
        row.question,
        label,
        *numbers,
        *([row.correction] if has_corrected else []),
        *([row.denied] if has_denied else []),
        str(row.n),
        row.mechanism,
        row.notion,
        row.epsilon,
        ceiling,
        ", ".join(row.flags),
    )


@click.command()
@click.argument("file", type=click.File("rb"))
@json_option
def replay(file: BinaryIO, as_json: bool) -> None:
    """Recompute the estimates of a saved result FILE and compare both results byte for byte.

    Only the batches that the result names are read from this machine's database, even if others
    have been released since. FILE is the output of `frankly estimates --result`, or the server's
    JSON. Exit code 6 if there is any difference.
    """
    saved = file.read(MAX_RESULT_BYTES + 1)
    if len(saved) > MAX_RESULT_BYTES:
        detail = f"a result has at most {MAX_RESULT_BYTES} bytes"
        raise InvalidInput(Problem.BODY_TOO_LARGE, detail)
    try:
        # Not the strict parser of requests: names of cells, such as "yes × no", are keys of a result.
        result = json.loads(saved)
    except (ValueError, RecursionError):
        raise InvalidInput(
            Problem.JSON_INVALID, "this is not JSON: give the complete and unchanged result"
        ) from None
    with open_services() as services:
        again = services.analysis.replay(result)
    if again != saved:
        raise Differs
    respond(
        as_json, {"same": True, "bytes": len(saved)}, output=[f"identical: all {len(saved)} bytes"]
    )


class Differs(FranklyError):
    """A saved result that differs from the one computed from its batches."""

    def __init__(self) -> None:
        super().__init__(
            "the result differs from the one computed from its batches", code="integrity"
        )
