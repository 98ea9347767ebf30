# SPDX-License-Identifier: Apache-2.0
"""`frankly design|measure|estimate|waves|verify` (spec 1.9): JSON in, a result on stdout."""

import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import click
from frankly_design.engine.regret import in_words
from frankly_design.requests.design import design_json
from frankly_design.requests.estimate import estimate_json
from frankly_design.requests.measure import measure_json
from frankly_design.requests.verify import verify_json
from frankly_design.requests.waves import DIVISIONS, waves_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, respond, table
from frankly_server.cli.search_progress import search_shown, stops_at_interrupt

MAX_INPUT_BYTES = 64 * 2**20


_input: Final = click.argument("file", type=click.File("rb"), default="-")


def _read_object(file: BinaryIO) -> dict[str, Any]:
    """Return the JSON object in a file; fractions are read exactly, as decimals."""
    data = file.read(MAX_INPUT_BYTES + 1)
    if not data.strip():
        raise InvalidInput(
            Problem.JSON_INVALID,
            "name a file that contains one JSON object, or write it to standard input",
        )
    # Decimals, because the float 0.1 is not exactly the requested level.
    value = parse_json(data, max_bytes=MAX_INPUT_BYTES, decimals=True)
    if not isinstance(value, dict):
        raise InvalidInput(Problem.JSON_INVALID, "the input must contain one JSON object")
    return value


def answer(
    question: Callable[[dict[str, Any]], dict[str, Any]], name: str, file: BinaryIO, as_json: bool
) -> None:
    """Write the answer to the question in a file: one JSON object, or a table of it."""
    response = question(_read_object(file))
    regret = response.get("regret")
    respond(
        as_json,
        response,
        rows=table(
            name, ("quantity", "value"), ((key, _plain(value)) for key, value in response.items())
        ),
        output=[f"Note: {in_words(regret)}."] if regret else [],
    )


def _plain(value: Any) -> str:
    """Return a value as text for people, floats with six significant digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    return "none" if value is None else str(value)


@click.command()
@_input
@json_option
def design(file: BinaryIO, as_json: bool) -> None:
    """Design a mechanism: reads a prior, a notion and a level from FILE or standard input.

    Ctrl-C ends the search: the best mechanism so far is verified and written, with its bound.
    """

    def timed(request: dict[str, Any]) -> dict[str, Any]:
        started = time.monotonic()
        with stops_at_interrupt() as stopped, search_shown() as progress:
            result = design_json(request, time.monotonic, progress, stopped)
        # The time is measured here, because `design/` reads no clock.
        return result | {"seconds": round(time.monotonic() - started, 3)}

    answer(timed, "design", file, as_json)


@click.command()
@_input
@json_option
def measure(file: BinaryIO, as_json: bool) -> None:
    """Measure a mechanism: reads its matrix or weights and a prior from FILE or standard input."""
    answer(measure_json, "measure", file, as_json)


@click.command()
@_input
@json_option
def estimate(file: BinaryIO, as_json: bool) -> None:
    """Estimate shares from counts: reads weights and counts from FILE or standard input."""
    answer(estimate_json, "estimate", file, as_json)


@click.command()
@_input
@json_option
def waves(file: BinaryIO, as_json: bool) -> None:
    """Plan several waves with one level per person: reads a design input and the number of waves."""
    plan = waves_json(_read_object(file), time.monotonic)
    rows = (
        (
            name,
            _groups_in_words(plan[name]["groups"]),
            f"± {max(change['margin'] for change in plan[name]['changes']):.1%}",
            f"{plan[name]['ratio']:.2f}",
        )
        for name in DIVISIONS
    )
    titles = (
        "design",
        "people (waves, nats in each)",
        "widest change",
        "people for equal variance",
    )
    respond(as_json, plan, rows=table("waves", titles, rows))


def _groups_in_words(groups: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"{group['n']} ({group['first']}"
        + (f"–{group['last']}" if group["last"] > group["first"] else "")
        + f", {group['epsilon']})"
        for group in groups
    )


@click.command()
@_input
@json_option
def verify(file: BinaryIO, as_json: bool) -> None:
    """Verify a mechanism's claim or a survey document exactly: reads either from FILE or standard input."""
    answer(verify_json, "verify", file, as_json)
