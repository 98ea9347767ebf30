# SPDX-License-Identifier: Apache-2.0
"""`frankly estimates`: an analyst's table, asked over HTTP with an API key, or on the server's own machine without."""

import re
from dataclasses import asdict

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, results, table, write_json
from frankly_server.cli.opening import open_services
from frankly_server.client import Analyst, Estimate, Estimates

_LINK = re.compile(r"(?P<url>https?://[^/]+(?:/.+)?)/s/(?P<survey>[0-9a-f]{32})(?:#.*)?")
_ID = re.compile(r"[0-9a-f]{32}")


@click.command()
@click.argument("survey")
@click.option("--url", envvar="FRANKLY_URL", help="The server to ask about an id [default: this machine].")
@click.option("--key", envvar="FRANKLY_API_KEY", help="An API key; better set FRANKLY_API_KEY than type it.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence, strictly between 0 and 1.")
@click.option("--census", is_flag=True, help="The respondents are everybody: margins of the privacy noise alone.")
@click.option("--simultaneous", is_flag=True, help="Margins for all choices of a question at once.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")
@json_option
def estimates(
    survey: str,
    url: str | None,
    key: str | None,
    level: float,
    census: bool,
    simultaneous: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show estimates of a SURVEY, each beside its margin.

    A link, or an id with --url, asks that server with an API key. A name or an id alone reads this machine's database.
    """
    link = _LINK.fullmatch(survey)
    if link or url:
        found = _remote(link, survey, url, key).estimates(
            link["survey"] if link else survey, level, census, simultaneous
        )
    else:
        found = _local(survey, level, census, simultaneous)
    if as_csv:
        click.echo(found.to_csv(), nl=False)
    elif as_json:
        write_json(_json(found))
    else:
        _show(found)


def _remote(link: re.Match[str] | None, survey: str, url: str | None, key: str | None) -> Analyst:
    """Return the client of the server that the link or --url names."""
    if not key:
        raise InvalidInput(Problem.USAGE, "an API key is needed: set FRANKLY_API_KEY, or use --key", "key")
    if link is None and not _ID.fullmatch(survey):
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "give the survey's link, or its id of 32 hex digits", "SURVEY")
    return Analyst(url or (link["url"] if link else ""), key)


def _local(survey: str, level: float, census: bool, simultaneous: bool) -> Estimates:
    """Return the estimates from this machine's database: whoever can open it needs no API key."""
    with open_services() as services:
        ids = {line.name: line.survey_id for line in services.surveys.list()}
        body = services.analysis.estimates(
            ids.get(survey, survey), level=level, census=census, simultaneous=simultaneous
        )
    return Estimates.from_json(body)


def _json(found: Estimates) -> dict[str, object]:
    rows = [asdict(row) for row in found]
    short = {"survey": found.survey, "title": found.title, "n": found.n, "insufficient": dict(found.insufficient)}
    return short | {"rows": rows}


def _show(found: Estimates) -> None:
    out = results()
    columns = ("question", "choice", "estimate", "margin", "n", "mechanism", "notion", "ε", "ceiling", "remarks")
    level = f" at {found.rows[0].level:.10g}" if found.rows else ""
    out.print(table(f"{found.title}: {found.n} reports{level}", columns, map(_cells, found)))
    for question, more in found.insufficient.items():
        out.print(f"{question}: not enough reports for a number, {more} more needed.", markup=False)


def _cells(row: Estimate) -> tuple[str, ...]:
    ceiling = "∞" if row.ceiling == "inf" else row.ceiling
    numbers = (f"{row.estimate:.1%}", f"± {row.margin:.1%}", str(row.n))
    return row.question, row.label, *numbers, row.mechanism, row.notion, row.epsilon, ceiling, ", ".join(row.flags)
