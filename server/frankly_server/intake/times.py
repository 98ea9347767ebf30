# SPDX-License-Identifier: Apache-2.0
"""Release times: when pending reports may be released."""

from datetime import datetime, timedelta
from typing import Final

PERIOD: Final = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
"""Value of the document's `release_every` → length of the period."""


def next_release(every: str, now: datetime) -> datetime:
    """Return the next release after `now` (UTC): 00:00 for ``day``, the full hour for ``hour``."""
    start = now.replace(hour=0 if every == "day" else now.hour, minute=0, second=0, microsecond=0)
    return start + PERIOD[every]
