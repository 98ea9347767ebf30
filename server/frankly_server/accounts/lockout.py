# SPDX-License-Identifier: Apache-2.0
"""Lockout after wrong passwords or codes."""

from datetime import datetime, timedelta
from typing import Final

from frankly_protocol.clock import parse_time

TRIES: Final = 5
_LOCK_S: Final = 60
_LONGEST_LOCK_S: Final = 15 * 60
_MOST_FAILURES: Final = 10 * TRIES


def after_failure(failures: int, longest_s: int = _LONGEST_LOCK_S) -> tuple[int, int]:
    """Return (number of failures to store after one more, duration of the lock in seconds or 0).

    Every fifth wrong password or code in a row locks the account: for one minute at first, then for
    twice as long as before, up to `longest_s`.
    """
    failures += 1
    # Bounded: after the maximum the last five values repeat, and so does the longest lock.
    failures = failures if failures <= _MOST_FAILURES else failures - TRIES
    if failures % TRIES:
        return failures, 0
    # The duration is limited, because strangers could otherwise lock an owner out for days.
    return failures, min(_LOCK_S << (failures // TRIES - 1), longest_s)


def is_locked(until: str | None, now: datetime, longest_s: int = _LONGEST_LOCK_S) -> bool:
    """Return True if a lock that ends at `until` (RFC 3339) is in force at `now`.

    A lock that ends more than `longest_s` after `now` was set while the clock was ahead; it is
    ignored.
    """
    if until is None:
        return False
    return timedelta(0) < parse_time(until) - now <= timedelta(seconds=longest_s)
