# SPDX-License-Identifier: Apache-2.0
"""How far a search may go, and how it tells where it is."""

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str, float, float], None]
"""Called with the stage, the best value so far and the best bound so far (nan where there is none yet)."""


def _never() -> bool:
    return False


def _silent(stage: str, value: float, bound: float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Limits:
    """How far to go.

    gap : distance from the proven bound up to which a design is called certified, in (0, 1]: relative to the value of
    a variance, absolute for information (nats) and error rates.
    out_of_time : asked all the time, also by a user who wants to stop; once it says so, the best so far is returned.
    memory : megabytes that open branches may take; beyond, the bound is what it is.
    progress : told of every improvement.
    """

    gap: float = 1e-6
    out_of_time: Callable[[], bool] = _never
    memory: int = 1024
    progress: Progress = _silent
