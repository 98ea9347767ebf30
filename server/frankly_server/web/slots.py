# SPDX-License-Identifier: Apache-2.0
"""Limit on concurrent requests; further requests are refused after a short wait.

A server has one thread more than slots, so that a thread can refuse requests while all others wait
for a database that does not respond. `/health/live` needs no slot.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from frankly_server.surveys.searches import ANALYSES, MANAGING, PREVIEWS, SEARCHES
from frankly_server.web.headers import ALWAYS
from frankly_server.web.logs import method_name
from frankly_server.web.metrics import Metrics
from frankly_server.web.problems import RETRY_AFTER_S, raw_problem

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LIVE: Final = "/health/live"
SPARE_THREADS: Final = 1 + SEARCHES[1] + ANALYSES[1] + PREVIEWS[1] + MANAGING[1]
"""Number of threads that a server has in addition to its slots; slow work needs no slot."""
SLOTS: Final = "frankly.slots"
_WAIT_S: Final = 1.0
_log: Final = structlog.get_logger("frankly.web")


class Slots:
    """WSGI middleware that passes at most `number` concurrent requests to `application`.

    A request waits up to a second for a slot. If no slot becomes free, it gets 503, and further
    requests get 503 without waiting until a slot is free. Clients send these requests again later.
    """

    def __init__(self, application: "WSGIApplication", number: int, counted: Metrics) -> None:
        self._application, self._counted = application, counted
        self._free = threading.Semaphore(number)
        # The threads for slow work must not let more requests than one compete for a slot: they
        # would be refused after a second instead of waiting until others have been answered.
        self._entered = threading.Semaphore(number + 1)
        self._is_stalled = False

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request."""
        # The liveness check does not use the database, and must respond while all requests wait.
        if environ["PATH_INFO"] == LIVE:
            return self._application(environ, start_response)
        with self._entered:
            if not self._take():
                return self._refuse(environ["REQUEST_METHOD"], start_response)
            environ[SLOTS] = self
            try:
                # Responses are complete before they are sent, so a slow client holds no slot.
                return self._application(environ, start_response)
            finally:
                self._give_back()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the request's slot, and wait for one at the end of the block."""
        self._give_back()
        self._entered.release()
        try:
            yield
        finally:
            # In this order: whoever holds a slot never waits for others, who would be refused.
            self._entered.acquire()
            self._free.acquire()

    def _give_back(self) -> None:
        self._is_stalled = False
        self._free.release()

    def _take(self) -> bool:
        if self._free.acquire(blocking=False):
            return True
        if self._is_stalled:
            return False
        # In a burst a slot becomes free within milliseconds, so waiting is better than refusing.
        if self._free.acquire(timeout=_WAIT_S):
            return True
        # From now on requests are refused without waiting, to keep the spare thread free.
        self._is_stalled = True
        _log.warning("every slot is taken: requests are refused until one is free")
        return False

    def _refuse(self, method: str, start_response: "StartResponse") -> list[bytes]:
        _, headers, body = raw_problem(503)
        own = {"Content-Length": str(len(body)), "Retry-After": str(RETRY_AFTER_S)}
        start_response("503 SERVICE UNAVAILABLE", list((ALWAYS | dict(headers) | own).items()))
        self._counted.answered("none", method_name(method), 503, 0.0)
        return [body]
