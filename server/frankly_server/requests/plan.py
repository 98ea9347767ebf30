# SPDX-License-Identifier: Apache-2.0
"""Survey planning (`frankly plan --json`): one of ε, n and margin from the others (spec 1.9)."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.design.api.engine import design
from frankly_server.design.tables.limits import TimeExceeded
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.inputs import checked_prior, checked_targets
from frankly_server.estimate.planner import Plan, least_level
from frankly_server.requests.design import design_request, regret_of
from frankly_server.requests.design_fields import never_stopped
from frankly_server.requests.plan_blocks import plan_blocks
from frankly_server.requests.plan_form import plan_form
from frankly_server.requests.plan_pairs import factor_range, no_factor, scaled
from frankly_server.requests.plan_parts import (
    LEVELS,
    Timer,
    nats,
    no_level,
    require_reports,
    require_the_others,
    solved,
)
from frankly_server.requests.plan_request import PlanRequest


def plan_json(
    obj: Any, timer: Timer, stopped: Callable[[], bool] = never_stopped
) -> dict[str, Any]:
    """Plan a survey from a JSON request.

    In: a design input (prior, notion, mechanism, …; see `design_json`) or a mechanism (weights and bits, or kind and
    params; optional design_prior); solve_for "n", "epsilon" or "margin" and the other two of n, epsilon, margin. With a
    mechanism, or a notion that has other levels, there is no epsilon, so n or margin is solved for; for metric-ldp
    "epsilon" solves for a factor on all levels. Optional level (0.95), method ("clt", "chebyshev" or "simultaneous"),
    power (margin is then the difference that a test detects) and against, guess (of the shares), population, subgroup
    (share of respondents), response_rate, targets ("shares" or rows), frontier (number of levels, 2 to 50, at
    which margin and information are computed; with a design input that has an epsilon).
    Out: solve_for, n, epsilon (null if the request has none), margin, margins (per target), invited,
    level, method, curve (margin at n/4 to 4n), regret (of the design, see `design_json`; null for a
    mechanism); with a guess, at_guess (margin, margins, and n if it was solved for); of metric-ldp, if epsilon was
    solved for, factor (in thousandths) and epsilons (the levels times it); and, if requested, frontier. For a form see
    `plan_form`, for several blocks `plan_blocks`.
    stopped : once it returns True, each search returns its best design so far.

    Raises InvalidInput, naming the field.
    """
    request = PlanRequest.from_json(obj)
    request.require_one_source()
    request.require_coherent()
    if request.form is not None:
        return plan_form(request, request.form, timer, stopped)
    if request.blocks is not None:
        return plan_blocks(request, request.blocks, timer, stopped)
    solve_for, present, fixed = request.solve_for, request.model_fields_set, request.has_mechanism
    source: _Source = _MechanismSource(request) if fixed else _DesignSource(request, timer, stopped)
    # epsilon may be absent, because some notions have other levels; the design checks this.
    require_the_others(request, *(name for name in ("n", "margin") if name != solve_for))
    if solve_for in present or (fixed and ("epsilon" in present or solve_for == "epsilon")):
        name = solve_for if solve_for in present else "epsilon"
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a mechanism already has a level"
            if fixed and name == "epsilon"
            else "leave out the quantity to solve for",
            name,
        )
    # The levels of pairs are not a single number that could be an axis.
    if request.frontier is not None and _has_pairs(request):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a frontier is over epsilon, and metric-ldp has levels of pairs: plan at several of them",
            "frontier",
        )
    solution = _solved(request, source)
    if request.guess is not None:
        solution["at_guess"] = _at_guess(request, source, solution)
    if request.frontier is not None:
        solution["frontier"] = source.frontier(request.frontier, solution["n"])
    return {"solve_for": solve_for} | solution


class _Source:
    """Mechanisms for plans. Levels are ε in nats as texts; None is the level of the request."""

    def __init__(self, request: PlanRequest) -> None:
        self.request, self.setting = request, request.setting

    def at(self, level: str | None) -> Plan:
        mechanism, prior, _ = self.mechanism(level)
        return Plan(
            mechanism,
            _targets(self.request.targets, mechanism),
            prior,
            self.setting,
        )

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        """Return the mechanism at a level, its design prior and its information."""
        raise InvalidInput(Problem.UNSUPPORTED, "this needs a design input", level or "epsilon")

    def regret(self, level: str | None) -> dict[str, str] | None:  # noqa: ARG002 - see _DesignSource
        """Return the regret of the design at a level, None for a fixed mechanism."""
        return None

    def frontier(self, points: int, n: int) -> list[dict[str, Any]]:
        """Return margin and information at levels from 0.1 to 8 nats, spaced logarithmically."""
        rows = []
        for i in range(points):
            # From 0.1 to 8 nats: a factor of 80 in steps of equal ratio.
            level = nats(round(100 * 80 ** (i / (points - 1))))
            _, _, information = self.mechanism(level)
            rows.append(
                {"epsilon": level, "margin": self.at(level).margin(n), "information": information}
            )
        return rows


class _MechanismSource(_Source):
    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        if level is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "a mechanism already has a level: give a design input",
                "frontier",
            )
        mechanism, prior = self.request.source(), self.request.design_prior
        return mechanism, None if prior is None else checked_prior(mechanism, prior), 0.0


class _DesignSource(_Source):
    """Designs of a request. Under metric-ldp a level is a factor on the levels of all pairs."""

    def __init__(self, request: PlanRequest, timer: Timer, stopped: Callable[[], bool]) -> None:
        super().__init__(request)
        self._timer, self._stopped = timer, stopped
        self._cache: dict[str | None, tuple[Mechanism, tuple[int, ...] | None, float]] = {}
        self._regrets: dict[str | None, dict[str, str] | None] = {}

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        # Cached, because `at` and `regret` need the same design, and its search may take long.
        if level not in self._cache:
            # If `level` is None, the levels of the request apply.
            at_level: dict[str, Any] = {} if level is None else {"epsilon": level}
            if level is not None and _has_pairs(self.request):
                at_level = {"epsilons": scaled(self.request.epsilons, level)}
            _, request = design_request(
                self.request.model_copy(update=at_level), self._timer, stopped=self._stopped
            )
            designed = design(request)
            self._cache[level] = designed.mechanism, designed.decoder_prior, designed.information
            try:
                self._regrets[level] = regret_of(designed, request)
            except TimeExceeded:
                self._regrets[level] = None
        return self._cache[level]

    def regret(self, level: str | None) -> dict[str, str] | None:
        self.mechanism(level)
        return self._regrets[level]


def _solved(request: PlanRequest, source: _Source) -> dict[str, Any]:
    level = request.epsilon
    # `plan_json` has checked that n and margin are present unless they are solved for; the 0 is
    # then not used.
    n, margin = request.n or 0, request.margin or 0.0
    if request.solve_for != "n":
        require_reports(n, source.setting)
    factors: dict[str, Any] = {}
    if request.solve_for == "epsilon":
        pairs = _has_pairs(request)
        low, high = factor_range(request.epsilons) if pairs else LEVELS
        thousandths = least_level(lambda e: source.at(nats(e)).margin(n) <= margin, low, high)
        if thousandths is None:
            raise no_factor(n, high) if pairs else no_level(n)
        level = nats(thousandths)
        if pairs:
            factors = {
                "epsilon": None,
                "factor": level,
                "epsilons": scaled(request.epsilons, level),
            }
    plan = source.at(level)
    if request.solve_for == "n":
        n = plan.reports(margin)
    figures = solved(n, level, plan.margins, source.setting)
    return figures | {"regret": source.regret(level)} | factors


def _at_guess(request: PlanRequest, source: _Source, solution: Mapping[str, Any]) -> dict[str, Any]:
    """Return the margins at the guessed shares, and the reports that the margin needs at them."""
    level = solution.get("factor") or solution["epsilon"]
    mechanism, _, _ = source.mechanism(level)
    guess = np.array(request.guess, dtype=np.float64)
    if len(guess) != mechanism.answers:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"guess a share for each of the {mechanism.answers} answers",
            "guess",
        )
    plan = source.at(level)
    margins = plan.margins_at(guess, solution["n"])
    n = (
        plan.reports_at(guess, request.margin)
        if request.solve_for == "n" and request.margin
        else None
    )
    return {"margin": max(margins), "margins": margins, "n": n}


def _has_pairs(request: PlanRequest) -> bool:
    """Return True if the plan has a factor on the levels of pairs instead of ε."""
    return request.notion == "metric-ldp"


def _targets(value: Any, mechanism: Mechanism) -> Targets:
    if value == "shares":
        return shares(mechanism.answers)
    rows = [
        [Fraction(REQUEST.number(v, "targets")) for v in row]
        for row in REQUEST.table(value, "targets")
    ]
    return checked_targets(mechanism, rows)
