# SPDX-License-Identifier: Apache-2.0
"""Rate limits by survey and by API key; never by address, which would have to be looked at and kept (THREATS A4, A6).

What is limited is what costs: reports that were stored, and questions of analysts. A refused report costs next to
nothing and draws on no limit, so a flood of them takes nothing from honest respondents of the same survey.
"""

import time
from collections.abc import Callable
from math import ceil, floor

from flask import g
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.buckets import BucketLevel, Buckets
from frankly_server.settings import Settings
from frankly_server.web import metrics

_WINDOW_S = 10
Now = Callable[[], float]


class TooMany(InvalidInput):
    """More than the limit of this name and kind; the same request may be sent again after `retry_after_s` seconds."""

    def __init__(self, allowance: BucketLevel) -> None:
        super().__init__(
            Problem.TOO_MANY,
            f"send the same request again in {allowance.retry_after_s} s, not earlier",
        )
        self.retry_after_s = allowance.retry_after_s


class Limit:
    """One kind of limit, such as that of surveys: a bucket of `per_s` · 10 for each name.

    shown : whether answers say how much is left. For reports they do not: whoever may see what is left of a survey's
    limit can watch, to the second, when somebody answers it.
    """

    def __init__(self, kind: str, per_s: float, *, shown: bool, now: Now = time.monotonic) -> None:
        self.kind, self._shown, self._now = kind, shown, now
        self._buckets = Buckets(per_s, max(1.0, per_s * _WINDOW_S))
        self._policy = f'"{kind}";q={floor(self._buckets.burst)};w={_WINDOW_S}'

    @property
    def policy(self) -> dict[str, str]:
        """What the headers of every answer say."""
        return {"RateLimit-Policy": self._policy}

    def has_left(self, name: str) -> bool:
        """Tell whether `check` would raise nothing; takes nothing."""
        return self._buckets.look(name, self._now()).wait_s == 0.0

    def check(self, name: str) -> None:
        """Raise TooMany if nothing is left for this name; takes nothing."""
        self._judge(self._buckets.look(name, self._now()), about_to_take=0)

    def spend(self, name: str, cost: int = 1) -> None:
        """Take `cost` after `check`: the work is done already, so it may leave a debt."""
        self._buckets.take(name, self._now(), cost)

    def take(self, name: str) -> None:
        """Take one; raises TooMany if nothing is left."""
        self._judge(self._buckets.take(name, self._now()), about_to_take=1)

    def _judge(self, allowance: BucketLevel, about_to_take: int) -> None:
        g.limit_headers = self._told(allowance, about_to_take)
        if allowance.wait_s > 0.0:
            metrics.count_limited(self.kind)
            raise TooMany(allowance)

    def _told(self, allowance: BucketLevel, about_to_take: int) -> dict[str, str]:
        """Return what the answer's headers say, in the words of the IETF draft on RateLimit fields."""
        refused = allowance.wait_s > 0.0
        told = self.policy
        if refused or self._shown:
            left = 0 if refused else max(0, floor(allowance.level) - about_to_take)
            until = allowance.retry_after_s if refused else ceil(allowance.full_s)
            told["RateLimit"] = f'"{self.kind}";r={left};t={until}'
        return told


class Limits:
    """The limits of one process: with N replicas behind a proxy, N times as much is let through."""

    def __init__(self, settings: Settings, now: Now = time.monotonic) -> None:
        self.reports = Limit("survey", settings.survey_rate_per_s, shown=False, now=now)
        self.questions = Limit("key", settings.key_rate_per_s, shown=True, now=now)
