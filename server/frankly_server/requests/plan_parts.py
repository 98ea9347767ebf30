# SPDX-License-Identifier: Apache-2.0
"""Common parts of the plans of mechanisms, of design inputs and of forms."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.estimate.planner import Setting
from frankly_server.requests.plan_request import PlanRequest

LEVELS: Final = (10, 10_000)
"""Allowed range of ε, in thousandths of a nat."""
_CURVE_FACTORS: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))

Timer = Callable[[], float]


def never_stopped() -> bool:
    """Return False: the search is not stopped early."""
    return False


def nats(thousandths: int) -> str:
    """Return a level in nats as a decimal text."""
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def require_the_others(request: PlanRequest, *needed: str) -> None:
    """Raise InvalidInput(field_missing) for a quantity that is needed and not given."""
    for name in needed:
        if getattr(request, name) is None:
            detail = f"to solve for {request.solve_for}, give {' and '.join(needed)}"
            raise InvalidInput(Problem.FIELD_MISSING, detail, name)


def require_reports(n: int, setting: Setting) -> None:
    """Raise InvalidInput(counts_invalid) for 0 reports, or for more reports than people."""
    if not 1 <= n <= (setting.population or 10**12):
        raise InvalidInput(
            Problem.COUNTS_INVALID, "give 1 report or more, at most one per person", "n"
        )


def no_level(n: int) -> InvalidInput:
    """Return the error for a margin that no level reaches."""
    detail = f"no level up to {LEVELS[1] // 1000} gives this margin with {n} reports: collect more"
    return InvalidInput(Problem.UNSUPPORTED, detail, "margin")


def solved(
    n: int, level: str | None, margins: Callable[[int], list[float]], setting: Setting
) -> dict[str, Any]:
    """Return the solution's figures, and the widest margin at n/4 to 4n reports."""
    at_n = margins(n)
    around = sorted({max(1, int(n * f)) for f in _CURVE_FACTORS})
    return {
        "n": n,
        "epsilon": level,
        "margin": max(at_n),
        "margins": at_n,
        "invited": setting.invited(n),
        "level": setting.level,
        "method": setting.method,
        "curve": [
            {"n": m, "margin": max(margins(m))}
            for m in around
            if setting.population is None or m <= setting.population
        ],
    }
