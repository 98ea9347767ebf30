# SPDX-License-Identifier: Apache-2.0
"""`frankly survey pause|resume|close|archive`: the changes of state that the overview offers."""

from collections.abc import Iterator, Mapping
from typing import Final

import click

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import command_record, open_services
from frankly_server.surveys.survey_state import MOVES

_HELP: Final[Mapping[str, str]] = {
    "pause": "Refuse reports of the survey called NAME for now: devices send them again later.",
    "resume": "Accept reports of the paused survey called NAME again.",
    "close": "Close the survey called NAME permanently; to go on, publish a new survey.",
    "archive": "Archive the closed survey called NAME, or an unpublished draft, permanently.",
}
_FINAL: Final = ("close",)


def commands() -> Iterator[click.Command]:
    """Yield a command for every change of a survey's state."""
    return map(_command, MOVES)


def _command(move: str) -> click.Command:
    @click.command(move, help=_HELP[move])
    @click.argument("name")
    @json_option
    def run(name: str, as_json: bool, yes: bool = True) -> None:
        if not yes:
            click.confirm(f"Close {name}? It cannot be opened again", abort=True, err=True)
        with open_services() as services:
            survey = services.surveys.summary(name)
            state = services.lifecycle.move(
                survey.survey_id,
                move,
                lambda state: command_record(services, f"survey {state}", survey.survey_id),
            )
        respond(
            as_json,
            {"status": state, "survey": survey.survey_id, "name": survey.name},
            f"Survey {survey.name} is {state}.",
        )

    return click.option("--yes", is_flag=True, help="Do not ask.")(run) if move in _FINAL else run
