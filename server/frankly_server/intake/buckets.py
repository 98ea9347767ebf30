# SPDX-License-Identifier: Apache-2.0
"""Token buckets that limit bursts and rates, one bucket per name. Time is an argument."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil
from typing import Self

MAX_NAMES = 4096
WINDOW_S = 10
"""Seconds of the rate that a full bucket holds."""


@dataclass(frozen=True, slots=True)
class BucketLevel:
    """The state of a bucket.

    level : number of tokens, at least 0.0 (also while the bucket is in debt). wait_s : seconds
    until the next request is allowed, 0.0 if it is allowed now. full_s : seconds until the bucket
    is
    full.
    """

    level: float
    wait_s: float
    full_s: float

    @property
    def retry_after_s(self) -> int:
        """Value of the Retry-After header: whole seconds to wait, at least 1."""
        return max(1, ceil(self.wait_s))


class Buckets:
    """One bucket per name: at most `burst` tokens, and `per_s` new ones per second; thread-safe.

    Clients may choose names, so only the MAX_NAMES most recently used names are stored. A dropped
    name starts again with a full bucket.
    """

    @classmethod
    def of_rate(cls, per_s: float) -> Self:
        """Return buckets with the tokens of `WINDOW_S` seconds, at least one."""
        return cls(per_s, max(1.0, per_s * WINDOW_S))

    def __init__(self, per_s: float, burst: float) -> None:
        if per_s <= 0 or burst < 1:
            raise ValueError("a bucket needs a positive rate and a burst of at least 1")
        self.per_s, self.burst = per_s, burst
        self._guard = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # name -> (level, time in s)

    def look(self, name: str, now: float) -> BucketLevel:
        """Return the state of a name's bucket without taking a token."""
        with self._guard:
            return self._allowance(self._level(name, now))

    def take(self, name: str, now: float, cost: float = 1.0) -> BucketLevel:
        """Take `cost` tokens if there is at least one; return the bucket's state before that.

        A cost above the level leaves a debt: wait_s is positive until the bucket has a token again.
        """
        with self._guard:
            level = self._level(name, now)
            if level >= 1.0:
                self._levels[name] = (level - cost, now)
                # The latest name moves to the end; names are dropped from the front.
                self._levels.move_to_end(name)
                while len(self._levels) > MAX_NAMES:
                    self._levels.popitem(last=False)
            return self._allowance(level)

    def _level(self, name: str, now: float) -> float:
        # max: the bucket must not lose tokens if the clock is set back.
        level, then = self._levels.get(name, (self.burst, now))
        return min(self.burst, level + max(0.0, now - then) * self.per_s)

    def _allowance(self, level: float) -> BucketLevel:
        return BucketLevel(
            level=max(0.0, level),
            wait_s=0.0 if level >= 1.0 else (1.0 - level) / self.per_s,
            full_s=(self.burst - level) / self.per_s,
        )
