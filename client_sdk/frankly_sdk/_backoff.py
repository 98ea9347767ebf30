# SPDX-License-Identifier: Apache-2.0
"""Exponential backoff with jitter, and this process's record of servers that failed."""

import secrets
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 3600.0


def longer(wait_s: float) -> float:
    """Return the wait after this one: twice as long, at most an hour."""
    return min(2 * wait_s, _LONGEST_WAIT_S)


def jitter() -> float:
    """Return a factor from 0.5 to 1.5, so that clients do not retry in lockstep."""
    return 0.5 + uniform()


def uniform() -> float:
    """Return a uniform random multiple of 2^-20 in [0, 1), or 0.5 without a random source."""
    try:
        return secrets.randbits(20) / 2**20
    except (OSError, NotImplementedError):
        return 0.5  # safe: it affects only the timing; the noise has already been drawn


@dataclass(slots=True)
class _Rest:
    """Next wait of a server or survey, and the time before which nothing is sent to it."""

    wait_s: float = FIRST_WAIT_S
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Backoffs:
    """Waits after failed attempts, for the background sender.

    Calls by the app are explicit attempts and do not observe these waits.
    """

    _rests: dict[str, _Rest] = field(default_factory=dict)

    def failed(self, collect_url: str, now: float, *, is_survey: bool) -> None:
        """Lengthen the wait of a server, or of one survey if only that survey is not accepted."""
        rest = self._rests.setdefault(collect_url if is_survey else _server(collect_url), _Rest())
        rest.until = now + rest.wait_s * jitter()
        rest.wait_s = longer(rest.wait_s)

    def settled(self, collect_url: str) -> None:
        """Forget the waits of a server that has accepted or refused a report."""
        for key in (collect_url, _server(collect_url)):
            self._rests.pop(key, None)

    def until(self, collect_url: str) -> float:
        """Return the time until which reports to an address wait; 0 if they need not wait."""
        rests = (self._rests.get(key) for key in (collect_url, _server(collect_url)))
        return max(rest.until if rest else 0.0 for rest in rests)


def _server(collect_url: str) -> str:
    return urlsplit(collect_url).netloc
