# SPDX-License-Identifier: Apache-2.0
"""What an app can be told about: that something happened, never what was answered or drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

LOGGER = "frankly_sdk"
"""The name of the log that `debug` writes to."""
EVENTS = ("opened", "sealed", "sent", "queued", "refused", "disabled", "log_renamed", "same_respondent")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    name : one of `EVENTS`. survey : its id, the same for everybody. code, detail : as in a `Receipt`. Nothing in an
    event depends on an answer or a draw, so events may go to any log.
    """

    name: str
    survey: str
    code: str = ""
    detail: str = ""


OnEvent = Callable[[Event], None]


def announcer(on_event: OnEvent | None, *, debug: bool) -> OnEvent:
    """Return what tells an event to the app, and to the log ``frankly_sdk`` if `debug`.

    The app's own function is never let into our way: what it raises is dropped, for an answer that is sealed has to be
    sent whatever happens on a screen. Its words are not logged either, they could hold anything.
    """

    def announce(event: Event) -> None:
        if debug:
            _log().debug("%s survey=%s code=%s %s", event.name, event.survey, event.code, event.detail)
        if on_event is None:
            return
        try:
            on_event(event)
        except Exception as error:  # noqa: BLE001
            _log().warning("on_event raised %s, which is ignored", type(error).__name__)

    return announce


def _log() -> "logging.Logger":
    import logging  # noqa: PLC0415  a tenth of the time that loading this package takes, and rarely needed

    return logging.getLogger(LOGGER)
