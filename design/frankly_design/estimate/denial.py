# SPDX-License-Identifier: Apache-2.0
"""Denial: the largest share of a choice if some of the people whom it concerns answer another one.

Spec 8.17; docs/maths/validity.md, claims 22 to 25.
"""

from collections.abc import Mapping
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST


def checked_denial(value: Any, field: str) -> float:
    """Return a share from 0 to below 1. Raises InvalidInput(field_type)."""
    share = REQUEST.number(value, field)
    # 1 − denial divides, so a number below 1 that rounds to 1 is refused too.
    if share < 0 or float(share) >= 1:
        raise InvalidInput(
            Problem.FIELD_TYPE, "the share is from 0 to below 1: for 20% use 0.2", field
        )
    return float(share)


def denied(row: Mapping[str, Any], denial: float) -> dict[str, float | None]:
    """Return the columns `denied_estimate` and `denied_high` of the row of a share.

    denial : largest share of the people whom it concerns who deny it, in [0, 1). Both are of the corrected
    figure, if there is one. None if it, or its upper end, is unknown.
    """
    is_corrected = row.get("corrected") is not None
    names = ("corrected", "corrected_high") if is_corrected else ("estimate", "high")
    value, high = (row[name] for name in names)
    return {
        # Not cut, as no estimate is: without bias for the share if exactly `denial` deny (claim 23). So
        # it is below a negative estimate, and above 1 if hardly as many can deny.
        "denied_estimate": None if value is None else value / (1 - denial),
        "denied_high": None if high is None else highest(high, denial),
    }


def highest(high: float, denial: float) -> float:
    """Return the upper end of the interval if at most `denial` deny (claim 24).

    min(1, high/(1 − denial)), but never below `high`, as that would be for a negative end, and for one above
    1: the interval then is as far from every possible share as it was.
    """
    return max(high, min(1.0, high / (1 - denial)))
