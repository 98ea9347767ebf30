# SPDX-License-Identifier: Apache-2.0
"""Warning for an app that would answer for all visitors of a web server as one person.

A store without respondents' keys belongs to one person. On a web server, the first visitor's answer
would be the only one, and the answers would reach the server before they are randomised.
"""

import sys
import warnings
from types import FrameType

from frankly_sdk.events import Event, OnEvent

_HANDLERS = (
    "aiohttp.web",
    "bottle",
    "cherrypy._cp",
    "django.core.handlers",
    "falcon.",
    "fastapi.",
    "flask.app",
    "gunicorn.workers",
    "hypercorn.",
    "litestar.",
    "pyramid.router",
    "quart.app",
    "sanic.",
    "starlette.",
    "tornado.web",
    "uvicorn.",
    "waitress.",
    "werkzeug.serving",
    "wsgiref.handlers",
)
"""Beginnings of the names of modules that call an app to handle a request."""
_TEXT = (
    "a web request answers without a respondent: all visitors would share one answer, and their "
    "answers would reach this server before they are randomised. Use the browser SDK for visitors, "
    "or pass respondent=… for each person; if this server runs on the device of one person, open "
    "the client with one_person=True"
)


class SharedStoreWarning(UserWarning):
    """A store that belongs to one person is about to be used for the visitors of a web server."""


class SharedStore:
    """Warns once per client, unless the app states that the install is one person's."""

    def __init__(self, is_one_persons: bool, announce: OnEvent, survey: str) -> None:
        self._is_settled = is_one_persons
        self._announce = announce
        self._survey = survey

    def check(self, respondent: str | None) -> None:
        """Warn if a web request is about to answer without a respondent's key.

        Called before anything is drawn, in the thread or task of the request: if the app turns
        warnings into errors, no state has changed yet.
        """
        if respondent is not None or self._is_settled or not _is_in_a_request():
            return
        self._is_settled = True
        self._announce(Event("shared_store", self._survey, "shared_store", _TEXT))
        warnings.warn(_TEXT, SharedStoreWarning, stacklevel=3)


def _is_in_a_request() -> bool:
    """Return True if a web framework is among the callers."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  as `inspect` does, without loading it
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        # Starlette runs sync handlers in anyio's threads, whose call stacks do not show the
        # request.
        if name.startswith(_HANDLERS) or (
            name == "anyio._backends._asyncio" and "starlette" in sys.modules
        ):
            return True
        frame = frame.f_back
    return False
