# SPDX-License-Identifier: Apache-2.0
"""`frankly plan`: reports, level and margin of one table, of two arms, or of a survey file."""

import time
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO, Final

import click
from frankly_design.requests.plan import plan_json
from frankly_design.requests.split import split_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, respond, results, table
from frankly_server.cli.json_commands import answer
from frankly_server.cli.search_progress import designs_shown
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.plan_request import SurveyPlanFields
from frankly_server.surveys.survey_plan import survey_plan
from frankly_server.surveys.yaml import MAX_BYTES

_OF_SURVEYS: Final = {
    "margin": "Wanted margin of every question, in shares: 0.03.",
    "reports": "Instead of a margin: the number of reports.",
    "level": "Confidence level; 0.95 by default.",
    "response_rate": "Share of the invited people who answer.",
    "population": "Number of people who can answer.",
    "group_share": "Share of the smallest group in which the margin is wanted.",
    "random": "Guessed share of people who answer at random.",
    "difference": "Difference between two arms to find, of everybody, in shares.",
    "power": "Chance at which the difference is found; 0.8 by default.",
}
_WHOLE: Final = ("reports", "population")


def _options(command: Any) -> Any:
    for name, words in reversed(_OF_SURVEYS.items()):
        kind = int if name in _WHOLE else None
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, name, type=kind, help=f"With --survey. {words}")(command)
    return command


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--split",
    is_flag=True,
    help="Plan a comparison of two arms: reads the arms and their guessed shares.",
)
@click.option("--survey", type=click.File("rb"), help="Plan a whole survey file (YAML).")
@_options
@click.option(
    "--groups",
    help="With --survey. Instead of --group-share, a public question with the guessed shares of its "
    "choices: region=0.4,0.4,0.2.",
)
@click.option(
    "--any-shares",
    is_flag=True,
    help="With --survey. Ignore the file's expected shares: margins for any true shares.",
)
@click.option(
    "--strengths",
    is_flag=True,
    help="With --survey. Also plan the next stronger and weaker protection.",
)
@json_option
def plan(file: BinaryIO, split: bool, survey: BinaryIO | None, as_json: bool, **asked: Any) -> None:
    """Plan a survey: reads two of level, reports and margin from FILE or standard input, writes the third.

    With --survey, plans a survey file: how many people, and what each of its wishes costs in respondents.
    """
    given = {name: value for name, value in asked.items() if value not in (None, False)}
    if survey is not None:
        if split:
            raise InvalidInput(Problem.USAGE, "plan a survey or two arms: leave one of them out")
        _plan_survey(survey, given, as_json=as_json)
        return
    if given:
        option = min(given).replace("_", "-")
        raise InvalidInput(Problem.USAGE, f"--{option} belongs to --survey FILE")
    planner = split_json if split else plan_json
    answer(lambda obj: planner(obj, time.monotonic), "plan", file, as_json)


def _plan_survey(file: BinaryIO, given: dict[str, Any], *, as_json: bool) -> None:
    fields = SurveyPlanFields.from_json(_fields(given))
    fields.require_coherent()
    definition = parse_definition(file.read(MAX_BYTES + 1))
    with designs_shown() as progress:
        found = survey_plan(definition, fields, time.monotonic, progress)
    if as_json:
        respond(as_json, found)
        return
    respond(as_json, found, rows=_ladder(found))
    results().print(_questions(found))
    if found["strengths"]:
        results().print(_strengths(found))
    for note in found["notes"]:
        click.echo(note)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return the request that the options stand for. Raises InvalidInput(usage) for malformed numbers."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name == "groups":
            question, _, shares = value.partition("=")
            fields["groups"] = {question: [_number(one, name) for one in shares.split(",")]}
        elif name == "any_shares":
            fields["shares"] = "any"
        elif isinstance(value, str):
            fields[name] = _number(value, name)
        else:
            fields["n" if name == "reports" else name] = value
    return fields


def _number(text: str, name: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        option = name.replace("_", "-")
        raise InvalidInput(Problem.USAGE, f"--{option} takes a number such as 0.2") from None


def _ladder(found: dict[str, Any]) -> Any:
    goal = f"±{100 * found['margin']:.3g} points"
    title = f"{goal} at {found['level']:.3g}: what each step costs in respondents"
    rows = (
        (
            row["text"],
            f"{'≤ ' if row['at_most'] else ''}{row['n']:,}",
            "" if row["factor"] is None else f"{row['added']:+,}",
            "" if row["factor"] is None else f"× {row['factor']:.2f}",
        )
        for row in found["ladder"]
    )
    return table(title, ("step", "people", "added", "factor"), rows)


def _questions(found: dict[str, Any]) -> Any:
    where = "in the group" if found["group"] < 1 else "about it"
    rows = (
        (row["text"], f"{row['reports']:,}", row["figure"], _margin(row))
        for row in found["questions"]
    )
    columns = ("question", f"answers {where}", "wanted", "margin")
    return table(f"With {found['n']:,} answers", columns, rows)


def _margin(row: dict[str, Any]) -> str:
    if row["margin"] is None:
        return "unknown"
    if not row["has_result"]:
        return "no sure result"
    points = f"±{100 * row['margin']:.1f} points"
    return points if row["span"] is None else f"±{row['span'] * row['margin']:.2g}"


def _strengths(found: dict[str, Any]) -> Any:
    rows = (
        (
            (row["strength"] or "") + (" (the file's)" if row["is_current"] else ""),
            ", ".join(row["epsilon"]),
            "not possible" if row["n"] is None else f"{row['n']:,}",
        )
        for row in found["strengths"]
    )
    return table("Strength against respondents", ("strength", "nats", "answers"), rows)
