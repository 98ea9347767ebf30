# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the plans of mechanisms, design inputs and forms."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.tables.limits import FINISH_S, TimeExceeded
from frankly_server.estimate.planner import Setting, least_level
from frankly_server.requests.plan_request import PlanRequest

LEVELS: Final = (10, 10_000)
"""Allowed range of ε, in thousandths of a nat."""
_CURVE_FACTORS: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))

Timer = Callable[[], float]
Planner = Callable[[Any, Timer, Callable[[], bool]], dict[str, Any]]


def within(plan: Planner, obj: Any, timer: Timer, seconds: float) -> dict[str, Any]:
    """Return a plan whose design searches take at most `seconds` in total.

    After that, each search returns the best design so far. Raises InvalidInput, also if the request
    has `limits`, and TimeExceeded if the plan is not complete `FINISH_S` seconds later.
    """
    if isinstance(obj, Mapping) and "limits" in obj:
        raise InvalidInput(
            Problem.UNSUPPORTED, "the server sets the limits: leave them out", "limits"
        )
    deadline = timer() + seconds

    def limited() -> float:
        now = timer()
        if now > deadline + FINISH_S:
            raise TimeExceeded
        return now

    return plan(obj, limited, lambda: timer() > deadline)


def nats(thousandths: int) -> str:
    """Return a level in nats as a decimal text."""
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def require_the_others(request: PlanRequest, *needed: str) -> None:
    """Raise InvalidInput(field_missing) if a needed quantity is missing."""
    for name in needed:
        if getattr(request, name) is None:
            raise InvalidInput(
                Problem.FIELD_MISSING,
                f"to solve for {request.solve_for}, give {' and '.join(needed)}",
                name,
            )


def require_reports(n: int, setting: Setting) -> None:
    """Raise InvalidInput(counts_invalid) for 0 reports or more reports than people."""
    if not 1 <= n <= (setting.population or 10**12):
        raise InvalidInput(
            Problem.COUNTS_INVALID, "give 1 report or more, at most one per person", "n"
        )


def no_level(n: int) -> InvalidInput:
    """Return the error for a margin that no level reaches."""
    return InvalidInput(
        Problem.UNSUPPORTED,
        f"no level up to {LEVELS[1] // 1000} gives this margin with {n} reports: collect more",
        "margin",
    )


def guessed(
    margins: Callable[[int], list[float]] | None,
    goals: Sequence[float],
    n: int,
    request: PlanRequest,
) -> dict[str, Any]:
    """Return `at_guess`: the margins at guessed shares, and the least n if that is solved for.

    margins : margin of each question at n reports, None without a guess. goals : required margins.
    """
    if margins is None:
        return {}
    at_n = margins(n)
    # The plan's n suffices for all shares, so it also suffices for the guessed ones.
    least = least_level(
        lambda m: all(at <= goal for at, goal in zip(margins(m), goals, strict=True)), 1, n
    )
    return {
        "at_guess": {
            "margin": max(at_n),
            "margins": at_n,
            "n": least if request.solve_for == "n" else None,
        }
    }


def solved(
    n: int, level: str | None, margins: Callable[[int], list[float]], setting: Setting
) -> dict[str, Any]:
    """Return the figures of the solution, and the widest margin at n/4 to 4n reports."""
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
        "power": setting.power,
        "against": None if setting.power is None else setting.against,
        "curve": [
            {"n": m, "margin": max(margins(m))}
            for m in around
            if setting.population is None or m <= setting.population
        ],
    }
