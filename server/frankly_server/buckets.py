# SPDX-License-Identifier: Apache-2.0
"""Token buckets that limit bursts and rates, one bucket per name. Time is an argument."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil

MAX_NAMES = 4096


@dataclass(frozen=True, slots=True)
class BucketLevel:
    """The state of a bucket.

    level : what can be taken now, 0.0 or more. wait_s : seconds until one more is allowed, 0.0 if
    it is now.
    full_s : seconds until the bucket is full.
    """

    level: float
    wait_s: float
    full_s: float

    @property
    def retry_after_s(self) -> int:
        """Whole seconds to wait, at least 1, as for the Retry-After header."""
        return max(1, ceil(self.wait_s))


class Buckets:
    """One bucket per name, of at most `burst`, which gains `per_s` a second; thread-safe.

    Callers may choose names, so only the MAX_NAMES used last are remembered: memory is bounded. A
    name that was forgotten starts again with a full bucket.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        if per_s <= 0 or burst < 1:
            raise ValueError("a bucket fills at a positive rate and holds at least 1")
        self.per_s, self.burst = per_s, burst
        self._guard = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # name -> (level, time in s)

    def look(self, name: str, now: float) -> BucketLevel:
        """Return the allowance of a name without taking anything."""
        with self._guard:
            return self._allowance(self._level(name, now))

    def take(self, name: str, now: float, cost: float = 1.0) -> BucketLevel:
        """Take `cost` if the level is at least 1; return the allowance before that.

        A cost above the level leaves a debt: later callers see wait_s > 0 until it is paid.
        """
        with self._guard:
            level = self._level(name, now)
            if level >= 1.0:
                self._levels[name] = (level - cost, now)
                # The name used last goes to the end; the ones forgotten below are at the front.
                self._levels.move_to_end(name)
                while len(self._levels) > MAX_NAMES:
                    self._levels.popitem(last=False)
            return self._allowance(level)

    def _level(self, name: str, now: float) -> float:
        # max: a clock that was set back must not empty the bucket.
        level, then = self._levels.get(name, (self.burst, now))
        return min(self.burst, level + max(0.0, now - then) * self.per_s)

    def _allowance(self, level: float) -> BucketLevel:
        return BucketLevel(
            level=max(0.0, level),
            wait_s=0.0 if level >= 1.0 else (1.0 - level) / self.per_s,
            full_s=(self.burst - level) / self.per_s,
        )
