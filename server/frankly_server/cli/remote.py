# SPDX-License-Identifier: Apache-2.0
"""Options `--url` and `--key` of commands that query another server, and survey links."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from frankly_analyst import Analyst, AnalystError
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import Command
from frankly_server.services import Services

_LINK: Final = re.compile(r"(?P<url>https?://[^/]+(?:/.+)?)/s/(?P<survey>[0-9a-f]{32})(?:#.*)?")


def url_and_key(command: Command) -> Command:
    """Add the options --url and --key."""
    command = click.option(
        "--key",
        envvar="FRANKLY_API_KEY",
        help="An API key; set FRANKLY_API_KEY rather than typing it.",
    )(command)
    return click.option(
        "--url",
        envvar="FRANKLY_URL",
        help="The server's URL [default: the link's, or FRANKLY_URL; without both, this machine's database].",
    )(command)


@contextmanager
def analyst_errors() -> Iterator[None]:
    """Turn an error of the analyst's client into a FranklyError, which the command line reports."""
    try:
        yield
    except AnalystError as error:
        raise FranklyError(error.detail, code=error.code, field=error.field) from None


def remote_of(survey: str, url: str | None, key: str | None) -> tuple[Analyst, str] | None:
    """Return the client and the survey's id or name; None for a survey on this machine.

    A survey is remote if `url` is set or if `survey` is a link. Raises InvalidInput(usage) without
    a key, FranklyError for an unsafe address.
    """
    link = _LINK.fullmatch(survey)
    if link is None and url is None:
        return None
    if not key:
        raise InvalidInput(
            Problem.USAGE, "an API key is needed: set FRANKLY_API_KEY, or use --key", "key"
        )
    with analyst_errors():
        analyst = Analyst(url or (link["url"] if link else ""), key)
    return analyst, link["survey"] if link else survey


def survey_id_of(services: Services, survey: str) -> str:
    """Return the id of a survey on this machine; any text that is not a name counts as an id."""
    ids = {line.name: line.survey_id for line in services.surveys.list()}
    return ids.get(survey, survey)
