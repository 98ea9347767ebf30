# SPDX-License-Identifier: Apache-2.0
"""One line of the design bench's table."""

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]
"""Called with a description of the current measurement."""


@dataclass(frozen=True)
class Row:
    """Measurements of one case.

    item : number of the demand that the case tests. value, bound, gap : of the engine's mechanism, in the unit of its
    objective (information and its gap in nats, unless the case says otherwise). seconds : what the engine needed.
    baseline, baseline_value, baseline_seconds : what it is compared with ("" if nothing). limit : the demand in words.
    holds : whether the demand is met, None where there is none. capped : whether the baseline was stopped at its cap
    and counts as it.
    """

    item: int
    case: str
    value: float | None
    bound: float | None
    gap: float | None
    seconds: float
    baseline: str
    baseline_value: float | None
    baseline_seconds: float | None
    limit: str
    holds: bool | None
    capped: bool = False

    @property
    def ratio(self) -> float | None:
        """Time of the baseline over the engine's; a lower bound if the baseline was capped."""
        if self.baseline_seconds is None or self.seconds <= 0:
            return None
        return self.baseline_seconds / self.seconds
