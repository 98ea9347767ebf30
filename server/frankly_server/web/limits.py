# SPDX-License-Identifier: Apache-2.0
"""Rate limits by survey and by API key, but not by address, which would have to be stored.

Stored reports, batches and requests of analysts count, because they are expensive. A refused single
report is cheap and does not count, so a flood of such reports does not use up any limit.
"""

import time
from collections.abc import Callable
from math import ceil, floor

from flask import g
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.buckets import WINDOW_S, BucketLevel, Buckets
from frankly_server.settings import Settings
from frankly_server.web import metrics

Now = Callable[[], float]


class TooMany(InvalidInput):
    """Rate limit exceeded; the same request may be sent again after `retry_after_s` seconds."""

    def __init__(self, allowance: BucketLevel) -> None:
        super().__init__(
            Problem.TOO_MANY,
            f"send the same request again in {allowance.retry_after_s} s, not earlier",
        )
        self.retry_after_s = allowance.retry_after_s


class Limit:
    """One kind of limit, such as that for surveys: a bucket of 10 · `per_s` tokens for each name.

    shown : True if responses state the remaining tokens. Responses to reports do not, because an
    observer of a survey's remaining tokens could see when a report is stored.
    """

    def __init__(self, kind: str, per_s: float, *, shown: bool, now: Now = time.monotonic) -> None:
        self.kind, self._shown, self._now = kind, shown, now
        self._buckets = Buckets.of_rate(per_s)
        self._policy = f'"{kind}";q={floor(self._buckets.burst)};w={WINDOW_S}'

    @property
    def policy(self) -> dict[str, str]:
        """The header with the limit, without the remaining tokens."""
        return {"RateLimit-Policy": self._policy}

    def has_left(self, name: str) -> bool:
        """Return True if `check` would succeed, without taking a token."""
        return self._buckets.look(name, self._now()).wait_s == 0.0

    def check(self, name: str) -> None:
        """Raise TooMany if no token is left for this name, without taking a token."""
        self._judge(self._buckets.look(name, self._now()), about_to_take=0)

    def spend(self, name: str, cost: int = 1) -> None:
        """Take `cost` tokens for completed work; the balance may become negative."""
        self._buckets.take(name, self._now(), cost)

    def take(self, name: str) -> None:
        """Take one token; raise TooMany if none is left."""
        self._judge(self._buckets.take(name, self._now()), about_to_take=1)

    def _judge(self, allowance: BucketLevel, about_to_take: int) -> None:
        g.limit_headers = self._limit_headers(allowance, about_to_take)
        if allowance.wait_s > 0.0:
            metrics.count_limited(self.kind)
            raise TooMany(allowance)

    def _limit_headers(self, allowance: BucketLevel, about_to_take: int) -> dict[str, str]:
        """Return the response headers of the IETF draft on RateLimit fields."""
        refused = allowance.wait_s > 0.0
        fields = self.policy
        if refused or self._shown:
            remaining = 0 if refused else max(0, floor(allowance.level) - about_to_take)
            until = allowance.retry_after_s if refused else ceil(allowance.full_s)
            fields["RateLimit"] = f'"{self.kind}";r={remaining};t={until}'
        return fields


class RateLimits:
    """The limits of one process; N replicas behind a proxy allow N times as many requests."""

    def __init__(self, settings: Settings, now: Now = time.monotonic) -> None:
        self.reports = Limit("survey", settings.survey_rate_per_s, shown=False, now=now)
        self.questions = Limit("key", settings.key_rate_per_s, shown=True, now=now)
