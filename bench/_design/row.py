# SPDX-License-Identifier: Apache-2.0
"""One line of the design bench's table."""

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]
"""Called with a description of the current measurement."""


@dataclass(frozen=True)
class Row:
    """Measurements of one case.

    value, bound, gap : of the engine's mechanism, in the unit of its objective (information in
    nats, unless the case says otherwise). seconds : the engine's time. baseline : the method
    compared with it, "" if none. limit : the requirement as text. holds : True if it is met, None
    without a requirement.
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

    @property
    def ratio(self) -> float | None:
        """Time of the baseline over the engine's."""
        if self.baseline_seconds is None or self.seconds <= 0:
            return None
        return self.baseline_seconds / self.seconds
