# SPDX-License-Identifier: Apache-2.0
"""A scripted network: each step determines the result of one request."""

import json
from collections import deque
from collections.abc import Callable, Iterable

from frankly_protocol.problems import Problem, problem_body

from frankly_sdk.errors import NetworkError
from frankly_sdk.transport import Reply

JSON, PROBLEM = "application/json", "application/problem+json"
Server = Callable[[], Reply]
Step = Callable[[Server], Reply]


def pass_on() -> Step:
    """Deliver a request to the server and return its response."""
    return lambda server: server()


def drop() -> Step:
    """Lose a request before it arrives."""
    return lambda _server: _lost()


def lose_receipt() -> Step:
    """Deliver a request but lose the response: the device cannot know that the request arrived."""

    def step(server: Server) -> Reply:
        server()
        return _lost()

    return step


def status(code: int, problem: str | None = None, retry_after: object = None) -> Step:
    """Respond with a status; the request does not reach the server.

    problem : one of the codes of docs/errors.md; without it the response is an empty HTML page, as
        a gateway might send.
    retry_after : value of the header, not checked.

    Raises ValueError for an unknown problem code.
    """
    known_problem = Problem.from_code(problem) if problem is not None else None
    if problem is not None and known_problem is None:
        raise ValueError(f"{problem} is not a problem code; see docs/errors.md")
    body = (
        b""
        if known_problem is None
        else json.dumps(problem_body(known_problem, known_problem.title)).encode()
    )
    reply = Reply(
        code,
        PROBLEM if known_problem else "text/html",
        None if retry_after is None else str(retry_after),
        body,
    )
    return lambda _server: reply


def redirect() -> Step:
    """Respond with a redirect, which the transport refuses."""

    def step(_server: Server) -> Reply:
        raise NetworkError("the server answered with a redirect, which is not followed", "redirect")

    return step


def log_in_page() -> Step:
    """Respond with status 200 and the log-in page of a captive portal."""
    return lambda _server: Reply(200, "text/html", None, b"<html><title>Welcome</title></html>")


class Network:
    """A queue of steps, one for each request; once it is empty, requests reach the server.

    With `reports_only`, steps apply only to reports, and other requests reach the server. While
    `online` is false, every request is lost.
    """

    def __init__(self, steps: Iterable[Step] = (), *, reports_only: bool = True) -> None:
        self._steps = deque(steps)
        self._reports_only = reports_only
        self.online = True

    def then(self, *steps: Step) -> None:
        """Append steps to the queue."""
        self._steps.extend(steps)

    def carry(self, server: Server, *, is_report: bool) -> Reply:
        """Apply the next step to one request."""
        if not self.online:
            return _lost()
        if self._steps and (is_report or not self._reports_only):
            return self._steps.popleft()(server)
        return server()


def _lost() -> Reply:
    raise NetworkError("the server could not be reached; it will be tried again")
