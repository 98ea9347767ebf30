# SPDX-License-Identifier: Apache-2.0
"""`frankly estimates`: estimates over HTTP with an API key, or from this machine's database."""

import re
from dataclasses import asdict
from datetime import date
from typing import Any, BinaryIO

import click
from frankly_analyst import Analyst, AnalystError, Estimate, Estimates
from frankly_analyst.plots import figure
from frankly_analyst.request import FIELDS, KINDS, SCALES, SHARES
from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import format_time
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.cli.console import Command, json_option, remarks, results, table, write_json
from frankly_server.cli.services import open_services
from frankly_server.times import next_release

MAX_RESULT_BYTES = 64 * 2**20
_NO_END = "no end"
"""Text for the ends of an unbounded interval of a ratio."""

_LINK = re.compile(r"(?P<url>https?://[^/]+(?:/.+)?)/s/(?P<survey>[0-9a-f]{32})(?:#.*)?")
_ID = re.compile(r"[0-9a-f]{32}")
_OPTIONS: dict[Any, dict[str, Any]] = {
    bool: {"is_flag": True},
    float: {"type": float, "show_default": True},
    int: {"type": int},
    date: {"metavar": "YYYY-MM-DD"},
}


def request_options(command: Command) -> Command:
    """Add an option for each declared field but `targets`: `--crosstab` is easier to type."""
    # Decorators apply from the bottom up, so the first option is added last.
    for name, item in reversed(FIELDS.items()):
        more = _OPTIONS.get(KINDS[name], {})
        if choices := item.metadata.get("choices"):
            more = {"type": click.Choice(choices)}
        words = item.metadata["description"]
        if name != "targets":
            command = click.option(f"--{name}", default=item.default, help=words, **more)(command)
    return command


@click.command()
@click.argument("survey")
@click.option(
    "--url",
    envvar="FRANKLY_URL",
    help="The server's URL [default: the link's; without a link, this machine's database].",
)
@click.option(
    "--key",
    envvar="FRANKLY_API_KEY",
    help="An API key; set FRANKLY_API_KEY rather than typing it.",
)
@request_options
@click.option(
    "--crosstab",
    multiple=True,
    help="Question id of a joint table; repeat the option for each question.",
)
@click.option(
    "--scales",
    is_flag=True,
    help="Mean, distribution and median of the questions with scores or ranges, instead of shares.",
)
@click.option("--language", help="Language of the labels [default: the survey's first].")
@click.option(
    "--result",
    is_flag=True,
    help="Write the complete result as JSON, for `frankly replay`.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")
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
    as_json: bool,
    **fields: Any,
) -> None:
    """Show estimates of a SURVEY, each with the ends of its interval.

    For a link, or an id with --url, they come from that server and need an API key. For a name or
    an id alone, they come from this machine's database.
    """
    if result + as_csv + as_json > 1:
        raise InvalidInput(Problem.USAGE, "choose one of --result, --csv and --json", "csv")
    if scales and crosstab:
        raise InvalidInput(Problem.USAGE, "choose --scales or --crosstab", "scales")
    link = _LINK.fullmatch(survey)
    # The machine interface has one parameter for shares and joint tables.
    fields["targets"] = list(crosstab) or (SCALES if scales else SHARES)
    response = (
        _remote(link, survey, url, key, language, fields)
        if link or url
        else _local(survey, language, fields)
    )
    if result:
        click.echo(encode(response.body), nl=False)
        return
    if as_csv:
        click.echo(response.to_csv(), nl=False)
    elif as_json:
        write_json(_json(response))
    else:
        _show(response)


def _remote(
    link: re.Match[str] | None,
    survey: str,
    url: str | None,
    key: str | None,
    language: str | None,
    fields: dict[str, Any],
) -> Estimates:
    """Return the estimates from the server that --url or the link names. Raises FranklyError."""
    if not key:
        raise InvalidInput(
            Problem.USAGE, "an API key is needed: set FRANKLY_API_KEY, or use --key", "key"
        )
    if link is None and not _ID.fullmatch(survey):
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN, "give the survey's link, or its id of 32 hex digits", "SURVEY"
        )
    try:
        analyst = Analyst(url or (link["url"] if link else ""), key)
        return analyst.estimates(link["survey"] if link else survey, language=language, **fields)
    except AnalystError as error:
        raise FranklyError(error.detail, code=error.code, field=error.field) from None


def _local(survey: str, language: str | None, fields: dict[str, Any]) -> Estimates:
    """Return the estimates from this machine's database.

    No API key is needed, because access to the database already exposes the reports.
    """
    with open_services() as services:
        # Names are unique on this machine; any other text is treated as an id.
        ids = {line.name: line.survey_id for line in services.surveys.list()}
        body = services.analysis.estimates(ids.get(survey, survey), **fields)
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
    return summary | {"rows": rows}


def _show(response: Estimates) -> None:
    out = results()
    columns = (
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
    )
    level = f" at {response.rows[0].level:.10g}" if response.rows else ""
    days = " of all days" if response.body["since"] or response.body["until"] else ""
    out.print(
        table(
            f"{response.title}: {response.n} reports{days}{level}", columns, map(_cells, response)
        )
    )
    for question, missing_count in response.insufficient.items():
        out.print(
            f"{question}: not enough reports for an estimate, {missing_count} more needed.",
            markup=False,
        )
    for note in response.body["notes"]:
        out.print(note, markup=False)


def _cells(row: Estimate) -> tuple[str, ...]:
    ceiling = "∞" if row.ceiling == "inf" else row.ceiling
    no_end = figure(None, row.unit) if "interval_unknown" in row.flags else _NO_END
    numbers = [
        row.value,
        *(no_end if end is None else figure(end, row.unit) for end in (row.low, row.high)),
    ]
    label = f"{row.label} ({row.by})" if row.by else row.label
    return (
        row.question,
        label,
        *numbers,
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
    result = parse_json(saved, max_bytes=MAX_RESULT_BYTES, max_depth=16, decimals=True)
    with open_services() as services:
        again = services.analysis.replay(result)
    if again != saved:
        raise Differs
    if as_json:
        write_json({"same": True, "bytes": len(saved)})
    else:
        click.echo(f"identical: all {len(saved)} bytes")


class Differs(FranklyError):
    """A saved result that differs from the one computed from its batches."""

    def __init__(self) -> None:
        super().__init__(
            "the result differs from the one computed from its batches", code="integrity"
        )
