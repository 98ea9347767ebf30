# SPDX-License-Identifier: Apache-2.0
"""Token buckets: how much may happen at once, and how fast it may happen again. Time is an argument."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil

MOST_NAMES = 4096


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left. wait_s : seconds until one more is allowed, 0.0 if it is now. full_s : until all of it is back."""

    left: float
    wait_s: float
    full_s: float

    @property
    def retry_after_s(self) -> int:
        """Whole seconds to wait, at least 1: what Retry-After says."""
        return max(1, ceil(self.wait_s))


class Buckets:
    """One bucket per name, each holding `burst` at most and gaining `per_s` a second. Safe to share between threads.

    Names may be chosen by callers, so only the MOST_NAMES used last are remembered: memory is bounded, and a name that
    was forgotten begins anew, with a full bucket.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        if per_s <= 0 or burst < 1:
            raise ValueError("a bucket fills at a positive rate and holds at least 1")
        self.per_s, self.burst = per_s, burst
        self._guard = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name -> (level, when in seconds)

    def look(self, name: str, now: float) -> Allowance:
        """Return what a name has left, taking nothing."""
        with self._guard:
            return self._allowance(self._level(name, now))

    def take(self, name: str, now: float, cost: float = 1.0) -> Allowance:
        """Take `cost` if at least 1 is there, and return what was there before.

        Taking more than there is leaves a debt, which later callers wait for; the next one sees wait_s > 0.
        """
        with self._guard:
            level = self._level(name, now)
            if level >= 1.0:
                self._levels[name] = (level - cost, now)
                self._levels.move_to_end(name)
                while len(self._levels) > MOST_NAMES:
                    self._levels.popitem(last=False)
            return self._allowance(level)

    def _level(self, name: str, now: float) -> float:
        level, then = self._levels.get(name, (self.burst, now))
        return min(self.burst, level + max(0.0, now - then) * self.per_s)

    def _allowance(self, level: float) -> Allowance:
        return Allowance(
            left=max(0.0, level),
            wait_s=0.0 if level >= 1.0 else (1.0 - level) / self.per_s,
            full_s=(self.burst - level) / self.per_s,
        )
