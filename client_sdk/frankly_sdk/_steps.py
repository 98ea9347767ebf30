# SPDX-License-Identifier: Apache-2.0
"""Steps: operations that yield their waits; a thread sleeps during a wait, asyncio awaits it.

A step is the work between two waits, such as sealing an answer or sending a request. Sync and async
clients run the same steps.
"""

import os
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")
Steps = Generator[float, None, Result]
"""An operation with this result; it yields the seconds to wait before its next step."""


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """The result of an operation that has ended."""

    result: Result


def advance(steps: Steps[Result]) -> float | Done[Result]:
    """Run the next step; return the seconds to wait after it, or the result."""
    try:
        return next(steps)
    except StopIteration as end:
        return Done(end.value)


def run(steps: Steps[Result], sleep: Callable[[float], object]) -> Result:
    """Run all steps, sleeping between them, and return the result."""
    while not isinstance(step := advance(steps), Done):
        sleep(step)
    return step.result


class Stop:
    """Ends the waits of a client when it is closed; also works after a fork."""

    def __init__(self) -> None:
        self._is_set, self._since = False, 0.0
        self._pid, self._event = os.getpid(), threading.Event()

    def set(self) -> None:
        """End all waits, now and later."""
        if not self._is_set:
            self._is_set, self._since = True, time.monotonic()
        self._own().set()

    def is_set(self) -> bool:
        """Return True if `set` has been called."""
        return self._is_set

    def left_s(self, seconds: float) -> float:
        """Return what is left of this many seconds, counted from the first call of `set`."""
        return max(0.0, self._since + seconds - time.monotonic()) if self._is_set else seconds

    def wait(self, seconds: float) -> None:
        """Wait until `set` is called, at most this many seconds."""
        if not self._is_set:
            self._own().wait(min(seconds, threading.TIMEOUT_MAX))

    def _own(self) -> threading.Event:
        # The lock inside an event may have been held by another thread when this process forked.
        if self._pid != os.getpid():
            self._pid, self._event = os.getpid(), threading.Event()
        return self._event
