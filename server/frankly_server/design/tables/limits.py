# SPDX-License-Identifier: Apache-2.0
"""Limits of a search (gap, time, memory), and its progress callback."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_UNLIMITED = 10**9

Progress = Callable[[str, float, float], None]
"""Callback of (stage, best value so far, best bound so far); nan while a number is unknown."""


def _never() -> bool:
    return False


def _silent(stage: str, value: float, bound: float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a search.

    gap : largest distance from the proven bound at which a design is called certified, in (0, 1]:
        relative to the value for variances, absolute for information (nats) and error rates.
    out_of_time : polled throughout the search; once it returns True (at a deadline, or because the
        user stopped the search), the best result so far is returned.
    half_time : polled by optional work; it returns True once half of the time is over.
    boxes : largest number of boxes in one proof of a variance, for searches without a deadline.
    memory : approximate megabytes for open branches or vertices; once they are used up, the search
        ends with its current bound.
    progress : called as the search proceeds.
    """

    gap: float = 1e-6
    out_of_time: Callable[[], bool] = _never
    half_time: Callable[[], bool] = _never
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
        """Return limits that end a search `seconds` after this call.

        timer : a monotonic clock in seconds; an exception that it raises ends the search at once.
        stopped : ends the search once it returns True. others : the fields gap, memory, progress.
        """
        start = timer()
        return cls(
            boxes=_UNLIMITED,
            # One callback polls the clock and `stopped`, so that both end a search in the same way.
            out_of_time=lambda: stopped() or timer() > start + seconds,
            half_time=lambda: stopped() or timer() > start + seconds / 2,
            **others,
        )
