# SPDX-License-Identifier: Apache-2.0
"""Searches in processes of their own: they delay no report, and a deadline ends whatever they do.

A search would hold the interpreter of the server for seconds. Its own time limit is read between
its steps, but rank, rounding or verification can be a single long step; a process can be killed.
"""

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

if TYPE_CHECKING:
    from frankly_server.surveys.definition import SurveyDefinition
    from frankly_server.surveys.drafting import Drafted, Progress

SEARCHES: Final = (1, 3)
ANALYSES: Final = (2, 8)
"""Searches, and estimates or counts, of requests: how many run at once, how many have a place."""
RETRY_S: Final = 5
_WAIT_S: Final = 10.0
_CHECK_S: Final = 0.3
_BLOCK_S: Final = 120.0
"""Seconds for each block of a publication; its search takes at most half of them."""
# Not "fork": a forked process could inherit a lock that another thread of the server holds.
_CONTEXT: Final = (
    get_context("forkserver") if "forkserver" in get_all_start_methods() else get_context("spawn")
)
_IMPORTED: Final = (
    "__main__",
    *("frankly_server.surveys.preview", "frankly_server.surveys.trial", "highspy"),
    *("frankly_server.requests.plan", "frankly_server.requests.waves", "frankly_server.analysis"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
)
_Result = TypeVar("_Result")
_Hear = Callable[..., None]


class Busy(InvalidInput):
    """All places are taken; the same request may be sent again after `retry_after_s` seconds."""

    retry_after_s: int = RETRY_S

    def __init__(self) -> None:
        super().__init__(
            Problem.TOO_MANY,
            f"the server is computing for others: send the same request again in {RETRY_S} s",
        )


class Places:
    """Places for slow work of requests: `at_once` run, and up to `most` in total have a place."""

    def __init__(self, at_once: int, most: int) -> None:
        self._turns, self._places = threading.Semaphore(at_once), threading.Semaphore(most)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a place, and wait for a turn, until the block ends.

        Raises Busy if no place is free or no turn comes within ten seconds.
        """
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            if not self._turns.acquire(timeout=_WAIT_S):
                raise Busy
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._places.release()


def draft_apart(
    definition: "SurveyDefinition", progress: "Progress | None", timer: Callable[[], float]
) -> "Sequence[Drafted]":
    """Design every block as `drafting.draft_blocks` does, in a process.

    timer : called several times a second; an exception that it raises ends the process.
    """
    # Imported on use: it imports numpy, which most commands do not need.
    from frankly_server.surveys.drafting import draft_blocks  # noqa: PLC0415

    seconds = _BLOCK_S * len(definition.parts)
    return apart(draft_blocks, definition, seconds=seconds, hear=progress or _ignore, poll=timer)


def apart(
    function: Callable[..., _Result],
    *arguments: Any,
    seconds: float,
    hear: _Hear | None = None,
    poll: Callable[[], object] = time.monotonic,
) -> _Result:
    """Return `function(*arguments)`, computed in a new process that is killed after `seconds`.

    function : defined in a module, because the process imports it. hear : called with what the
    function reports; the function then gets a callback as its last argument. poll : called several
    times a second; an exception that it raises kills the process.

    Raises InvalidInput(optimiser_limit) if the process is killed or ends without a result, and the
    errors of the function.
    """
    _CONTEXT.set_forkserver_preload([*_IMPORTED])
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(
        target=_work,
        args=(theirs, function, arguments, hear is not None, seconds),
        name="frankly-search",
        daemon=True,
    )
    process.start()
    theirs.close()
    deadline = time.monotonic() + seconds
    try:
        while (remaining_s := deadline - time.monotonic()) > 0:
            poll()
            if not ours.poll(min(_CHECK_S, remaining_s)):
                continue
            kind, value = ours.recv()
            if kind == "result":
                result: _Result = value
                return result
            if kind == "error":
                raise value
            if hear is not None:
                hear(*value)
    except EOFError:
        pass
    finally:
        ours.close()
        # A process that has ended has no number of its own any more: it may be another's.
        if process.is_alive():
            process.kill()
        process.join()
    raise InvalidInput(
        Problem.OPTIMISER_LIMIT,
        f"this took longer than {seconds:g} s, or too much memory: use fewer answers, blocks or levels",
    )


def _work(
    pipe: Connection,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    is_heard: bool,
    seconds: float,
) -> None:
    """Send the result or the error of a function; the main function of the process."""
    # Ctrl-C reaches the whole group of processes; the server decides when the search ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "alarm"):
        # The kernel ends the process even if the server has been killed.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ceil(seconds) + 1)
        # Reports come first where processors are scarce; a container may forbid it.
        with suppress(OSError):
            os.nice(10)
    hear = [lambda *said: pipe.send(("heard", said))] if is_heard else []
    try:
        outcome = "result", function(*arguments, *hear)
    except Exception as error:  # noqa: BLE001 - raised again by the server's thread
        outcome = "error", _sendable(error)
    with suppress(BrokenPipeError):
        pipe.send(outcome)


def _sendable(error: Exception) -> Exception:
    """Return the error, or one with its type only if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - written here
    except Exception:  # noqa: BLE001 - any error of any class
        return RuntimeError(type(error).__name__)
    return error.with_traceback(None)


def _ignore(*_said: Any) -> None:
    pass
