# SPDX-License-Identifier: Apache-2.0
"""Events for the app and its log; none depends on an answer or a draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

LOGGER = "frankly_sdk"
"""The name of the log that `debug` writes to."""
EVENTS = (
    "opened",
    "planned",
    "sealed",
    "sent",
    "queued",
    "refused",
    "disabled",
    "log_renamed",
    "same_respondent",
    "shared_store",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a client.

    name : one of `EVENTS`. survey : the survey's id. code, detail : as in a `Receipt`.

    Nothing in an event depends on an answer or a draw, so events may be written to any log.
    """

    name: str
    survey: str
    code: str = ""
    detail: str = ""


OnEvent = Callable[[Event], None]


def announcer(on_event: OnEvent | None, *, debug: bool) -> OnEvent:
    """Return a function that passes events to the app, and to the log ``frankly_sdk`` if `debug`.

    Exceptions raised by `on_event` are ignored: a sealed answer has to be sent even if the app's
    display fails. Only their type is logged, because their messages may contain anything.
    """

    def announce(event: Event) -> None:
        # Imported only with `debug`, because most apps do not need it.
        if debug:
            _log().debug(
                "%s survey=%s code=%s %s", event.name, event.survey, event.code, event.detail
            )
        if on_event is None:
            return
        try:
            on_event(event)
        except Exception as error:  # noqa: BLE001
            _log().warning("on_event raised %s, which is ignored", type(error).__name__)

    return announce


def _log() -> "logging.Logger":
    import logging  # noqa: PLC0415  rarely needed, and a tenth of this package's loading time

    return logging.getLogger(LOGGER)
