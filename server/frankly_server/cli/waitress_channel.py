# SPDX-License-Identifier: Apache-2.0
"""waitress channel and tasks: a time limit for arriving requests, and errors as problem objects.

waitress refuses some requests before the application sees them; these responses are problem
objects too. A request that does not arrive in time gets 408; the client may send it again.
"""

import time
from http import HTTPStatus
from typing import Any

from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.task import ErrorTask, WSGITask  # type: ignore[import-untyped]
from waitress.utilities import Error  # type: ignore[import-untyped]

from frankly_server.web.problems import raw_problem


class _Refused(Error):  # type: ignore[misc]  # waitress has no types
    code = 408


class _Task(WSGITask):  # type: ignore[misc]
    """Task of a request; while the server is stopping, the response closes the connection."""

    def build_response_header(self) -> bytes:
        if getattr(self.channel.server, "stopping", False):
            self.set_close_on_finish()
        header: bytes = super().build_response_header()
        return header


class _ErrorTask(ErrorTask):  # type: ignore[misc]
    """Error response of waitress itself, as a problem object."""

    def execute(self) -> None:
        problem, headers, body = raw_problem(self.request.error.code)
        self.status = f"{problem.status} {HTTPStatus(problem.status).phrase}"
        self.response_headers.extend(headers)
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class TimelyChannel(HTTPChannel):  # type: ignore[misc]
    """Connection that records when its latest request began to arrive."""

    task_class = _Task
    error_task_class = _ErrorTask
    request: Any
    _begun = 0.0

    def received(self, data: bytes) -> bool:
        """Parse received bytes, and record the time at which a new request begins."""
        before = self.request
        consumed: bool = super().received(data)
        if self.request is not before:
            self._begun = time.monotonic()
        return consumed

    def refuse_if_late(self, seconds: float) -> None:
        """Respond with 408 if the current request has been arriving for longer than `seconds`."""
        # A worker thread may start or finish a request on this connection at the same time.
        with self.requests_lock:
            request = self.request
            if request is None or self.requests or time.monotonic() - self._begun <= seconds:
                return
            request.error, request.completed, self.request = _Refused(""), True, None
            self.requests.append(request)
        self.server.add_task(self)
