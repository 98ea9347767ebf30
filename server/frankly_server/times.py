# SPDX-License-Identifier: Apache-2.0
"""The published times of releases."""

from datetime import datetime, timedelta
from typing import Final

PERIOD: Final = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
"""By what a document says in `release_every`."""


def next_release(every: str, now: datetime) -> datetime:
    """Return the next published time after `now` (UTC): 00:00 for ``day``, a full hour for ``hour``."""
    start = now.replace(hour=0 if every == "day" else now.hour, minute=0, second=0, microsecond=0)
    return start + PERIOD[every]
