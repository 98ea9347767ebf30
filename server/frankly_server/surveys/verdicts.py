# SPDX-License-Identifier: Apache-2.0
"""What a margin of a share is good for, in words; the limits are ours and stand beside the words."""

from typing import Final

_LIMITS: Final = ((0.03, "precise"), (0.07, "fair"), (0.15, "rough"))
_ABOVE: Final = "very rough"
MEANINGS: Final = (
    "precise: off by at most 3 percentage points; fair: at most 7; rough: at most 15, enough for large "
    "differences only; very rough: more than 15, hardly more than a guess"
)
"""The words of `verdict`, for the help beside a table."""


def verdict(margin: float) -> str:
    """Return the word for a margin of a share. margin : half-width at 95%, a share (0.05 for 5 points)."""
    # Compared as shown, to a tenth of a point.
    return next((word for limit, word in _LIMITS if round(margin, 3) <= limit), _ABOVE)
