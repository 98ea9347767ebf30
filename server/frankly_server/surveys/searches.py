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
from dataclasses import dataclass
from math import ceil
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

if TYPE_CHECKING:
    from frankly_server.surveys.definition import SurveyDefinition
    from frankly_server.surveys.drafting import Drafted, Progress

SEARCHES: Final = (1, 4, 1)
ANALYSES: Final = (2, 8, 4)
"""Searches, and estimates or counts, of requests: how many run at once, how many have a place, and
how many places one person or API key may have."""
PREVIEWS: Final = (1, 4, 1)
"""The same for previews, so that an admin who looks at one can still open the next page."""
MANAGING: Final = (2, 12, 4)
"""The same for requests of the management API, which read and check whole surveys."""
RETRY_S: Final = 5
_WAIT_S: Final = 30.0
"""Longest wait for a turn: longer than a search takes, so that whoever is next gets one."""
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
    *("frankly_design.requests.plan", "frankly_design.requests.split"),
    *("frankly_design.requests.waves", "frankly_server.analysis"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special"),
)
_Result = TypeVar("_Result")
_Hear = Callable[..., None]


class Busy(InvalidInput):
    """No place is free; the same request may be sent again after `retry_after_s` seconds."""

    def __init__(self, reason: str = "computing for others", retry_after_s: int = RETRY_S) -> None:
        super().__init__(
            Problem.TOO_MANY,
            f"the server is {reason}: send the same request again in {retry_after_s} s",
        )
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    organisation: str
    holder: str


class Places:
    """Places for slow work of requests, in the order in which they were taken.

    at_once : number of first places whose work runs; the others wait. most : number of places.
    each : number of places of one holder. An organisation always leaves one place to the others.
    """

    def __init__(self, at_once: int, most: int, each: int) -> None:
        self._at_once, self._most, self._each = at_once, most, each
        self._line: list[_Place] = []
        self._moved = threading.Condition()
        self._is_stopped = False

    @contextmanager
    def taken(self, organisation: str, holder: str, wait_s: float = _WAIT_S) -> Iterator[None]:
        """Hold a place until the block ends, which begins when it is this place's turn.

        holder : names a person or an API key of the organisation. Raises Busy if no place is free
        for it, or if its turn does not come within `wait_s` seconds.
        """
        place = _Place(organisation, holder)
        with self._moved:
            self._require_free(place)
            self._line.append(place)
        try:
            with self._moved:
                if not self._moved.wait_for(
                    lambda: self._is_stopped or self._line.index(place) < self._at_once, wait_s
                ):
                    raise Busy
            self.require_running()
            yield
        finally:
            with self._moved:
                self._line.remove(place)
                self._moved.notify_all()

    def _require_free(self, place: _Place) -> None:
        of_organisation = [one for one in self._line if one.organisation == place.organisation]
        if sum(one.holder == place.holder for one in of_organisation) >= self._each:
            raise Busy("computing for an earlier request of yours")
        if len(of_organisation) >= self._most - 1 or len(self._line) >= self._most:
            raise Busy

    def stop(self) -> None:
        """Let whoever waits, and every later `require_running`, raise Busy: the server stops."""
        self._is_stopped = True
        with self._moved:
            self._moved.notify_all()

    def require_running(self) -> None:
        """Raise Busy once `stop` has been called."""
        if self._is_stopped:
            raise Busy("stopping")

    @property
    def number_held(self) -> int:
        """Number of places that are held."""
        return len(self._line)


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
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _started(theirs, function, arguments, hear is not None, seconds)
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
    except (EOFError, OSError):
        # The system may have killed it, even while it sent its result.
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT,
            "this ended without a result, perhaps for lack of memory: use fewer answers, blocks or "
            "levels",
        ) from None
    finally:
        ours.close()
        # A process that has ended has no number of its own any more: it may be another's.
        if process.is_alive():
            process.kill()
        process.join()
    raise InvalidInput(
        Problem.OPTIMISER_LIMIT,
        f"this took longer than {seconds:g} s: use fewer answers, blocks or levels",
    )


def _started(*arguments: Any) -> BaseProcess:
    """Return a started process of `_work`."""
    _CONTEXT.set_forkserver_preload([*_IMPORTED])
    process = _process(_CONTEXT, arguments)
    try:
        process.start()
    except OSError:
        # A program that cleans the folder of temporary files has removed the socket of the process
        # that forks. "spawn" needs no socket; it only takes a second longer.
        process = _process(get_context("spawn"), arguments)
        process.start()
    return process


def _process(context: BaseContext, arguments: Sequence[Any]) -> BaseProcess:
    return context.Process(target=_work, args=arguments, name="frankly-search", daemon=True)  # type: ignore[attr-defined, no-any-return]  # of its subclasses


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
        # Where memory is scarce, the kernel ends this process instead of the server.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    hear = [lambda *said: pipe.send(("heard", said))] if is_heard else []
    outcome: tuple[str, Any]
    try:
        outcome = "result", function(*arguments, *hear)
    except MemoryError:
        return  # as if the kernel had ended it
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
