# SPDX-License-Identifier: Apache-2.0
"""Limits of a design (gap, time, memory), and its progress callback."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

_UNLIMITED = 10**9

Poll = Callable[[], None]
"""Callback of long computations; an exception that it raises ends them."""


def no_poll() -> None:
    """Never end a computation."""


FINISH_S: Final = 2.0
"""Seconds for rounding, verification and figures after the end of the search. Figures that take
longer are left out; without a verified mechanism by then, the design is refused."""

Progress = Callable[[str, float, float], None]
"""Callback with (stage, best value so far, best bound so far); unknown numbers are nan."""


def _never() -> bool:
    return False


def _silent(stage: str, value: float, bound: float) -> None:
    pass


class TimeExceeded(InvalidInput):
    """Error for a design that is not verified `FINISH_S` seconds after its time limit."""

    def __init__(self) -> None:
        super().__init__(
            Problem.OPTIMISER_LIMIT,
            "the time limit is over and no mechanism has been found and verified: allow more "
            "seconds, or use the mechanism grr, or for one question subset-selection or oue",
            "mechanism",
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a design.

    gap : largest distance from the proven bound at which a design counts as certified, in (0, 1]:
    relative to the value for variances, absolute for information (nats) and error rates.
    out_of_time : polled throughout the search; once it returns True (at a deadline, or because the
        user stopped the search), the best result so far is returned.
    half_time : polled by optional work; it returns True once half of the time is over.
    search_overdue : polled by the search while it has no mechanism yet; it returns True from half
    of `FINISH_S` after the time limit.
    overdue : polled by all later work; it returns True from `FINISH_S` after the time limit.
    boxes : largest number of boxes in one proof of a variance, for searches without a deadline.
    memory : approximate megabytes for open branches or vertices; once they are used up, the search
        ends with its current bound.
    progress : called as the search proceeds.
    """

    gap: float = 1e-6
    out_of_time: Callable[[], bool] = _never
    half_time: Callable[[], bool] = _never
    search_overdue: Callable[[], bool] = _never
    overdue: Callable[[], bool] = _never
    boxes: int = 2000
    memory: int = 1024
    progress: Progress = _silent

    @classmethod
    def within(
        cls,
        seconds: float,
        timer: Callable[[], float],
        stopped: Callable[[], bool] = _never,
        **others: Any,
    ) -> "Limits":
        """Return limits that end a search `seconds` after this call, and the design soon after.

        timer : a monotonic clock in seconds; an exception that it raises ends the search
        immediately.
        stopped : ends the search once it returns True. others : the fields gap, memory and
        progress.
        """
        deadline = _Deadline(seconds, timer, stopped)
        return cls(
            boxes=_UNLIMITED,
            out_of_time=deadline.passed,
            half_time=deadline.half_passed,
            search_overdue=lambda: deadline.passed_by(FINISH_S / 2),
            overdue=lambda: deadline.passed_by(FINISH_S),
            **others,
        )

    def require_search_time(self) -> None:
        """Raise TimeExceeded if the search is overdue."""
        if self.search_overdue():
            raise TimeExceeded

    def require_time(self) -> None:
        """Raise TimeExceeded if the design is overdue."""
        if self.overdue():
            raise TimeExceeded


@dataclass(slots=True)
class _Deadline:
    """End of a search: after `seconds`, or when `stopped` first returns True."""

    seconds: float
    timer: Callable[[], float]
    stopped: Callable[[], bool]
    start: float = field(init=False)
    end: float = field(init=False)
    was_stopped: bool = False

    def __post_init__(self) -> None:
        self.start = self.timer()
        self.end = self.start + self.seconds

    def passed(self) -> bool:
        # A single callback polls the clock and `stopped`, so that both end a search in the same
        # way.
        now = self.timer()
        if not self.was_stopped and self.stopped():
            self.was_stopped, self.end = True, min(self.end, now)
        return self.was_stopped or now > self.end

    def half_passed(self) -> bool:
        return self.passed() or self.timer() > self.start + self.seconds / 2

    def passed_by(self, seconds: float) -> bool:
        return self.passed() and self.timer() > self.end + seconds
