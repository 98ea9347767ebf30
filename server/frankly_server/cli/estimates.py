# SPDX-License-Identifier: Apache-2.0
"""`frankly estimates`: an analyst's table, asked over HTTP with an API key."""

import re
from dataclasses import asdict

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, results, table, write_json
from frankly_server.client import Analyst, Estimate, Estimates

_LINK = re.compile(r"(?P<url>https?://[^/]+(?:/.+)?)/s/(?P<survey>[0-9a-f]{32})(?:#.*)?")
_ID = re.compile(r"[0-9a-f]{32}")


@click.command()
@click.argument("survey")
@click.option("--url", envvar="FRANKLY_URL", help="The server [default: the link's, else http://127.0.0.1:8000].")
@click.option(
    "--key", envvar="FRANKLY_API_KEY", required=True, help="An API key; better set FRANKLY_API_KEY than type it."
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence, strictly between 0 and 1.")
@click.option("--census", is_flag=True, help="The respondents are everybody: margins of the privacy noise alone.")
@click.option("--simultaneous", is_flag=True, help="Margins for all choices of a question at once.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")
@json_option
def estimates(
    survey: str, url: str | None, key: str, level: float, census: bool, simultaneous: bool, as_csv: bool, as_json: bool
) -> None:
    """Show estimates of a SURVEY, given by its id or its link, each beside its margin."""
    link = _LINK.fullmatch(survey)
    if link is None and not _ID.fullmatch(survey):
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "give the survey's link, or its id of 32 hex digits", "SURVEY")
    where = url or (link["url"] if link else "http://127.0.0.1:8000")
    found = Analyst(where, key).estimates(link["survey"] if link else survey, level, census, simultaneous)
    if as_csv:
        click.echo(found.to_csv(), nl=False)
    elif as_json:
        write_json(_json(found))
    else:
        _show(found)


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
