# SPDX-License-Identifier: Apache-2.0
"""Survey planning (`frankly plan --json`): one of ε, n and margin from the others (spec 1.9)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import repeat
from typing import Any, Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_design.engine.engine import DesignRequest, DesignResult, design
from frankly_design.estimate.inputs import checked_prior, checked_targets
from frankly_design.estimate.planner import Margins, Plan, least_level, least_reports, reaches
from frankly_design.kinds.decoder import Targets, shares
from frankly_design.requests.design import design_request, regret_of
from frankly_design.requests.design_fields import Stopped, Timer, never_stopped, search_limits
from frankly_design.requests.plan_form import FormPlan
from frankly_design.requests.plan_request import (
    PlannedBlock,
    PlannedForm,
    PlanRequest,
    factor_range,
    guessed_shares,
    nats,
    plain,
    scaled,
)
from frankly_design.tables.limits import TimeExceeded

LEVELS: Final = (10, 10_000)
"""Allowed range of ε, in thousandths of a nat."""
_CURVE_FACTORS: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_ROUNDS: Final = 16
"""Bisection steps of the margin's logarithm; they give more precision than levels have."""
_SOME_REPORTS: Final = 1000
_ByLevel = Callable[[int], Plan]
"""Plan of one block at a level, in thousandths of a nat."""


def plan_json(obj: Any, timer: Timer, stopped: Stopped = never_stopped) -> dict[str, Any]:
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
    `_plan_form`, for several blocks `_plan_blocks`.
    stopped : once it returns True, each search returns its best design so far.

    Raises InvalidInput, naming the field.
    """
    request = PlanRequest.from_json(obj)
    request.require_one_source()
    request.require_coherent()
    if request.form is not None:
        return _plan_form(request, request.form, timer, stopped)
    if request.blocks is not None:
        return _plan_blocks(request, request.blocks, timer, stopped)
    return _plan_table(request, timer, stopped)


def _plan_table(request: PlanRequest, timer: Timer, stopped: Stopped) -> dict[str, Any]:
    """Plan a survey with one mechanism, which is given or designed."""
    given, pairs = request.has_mechanism, request.has_pair_levels
    if given and "epsilon" in (request.solve_for, *request.model_fields_set):
        raise InvalidInput(Problem.UNSUPPORTED, "a mechanism already has a level", "epsilon")
    # epsilon may be absent, because some notions have other levels; the design checks this.
    request.require_two(("n", "margin"))
    if request.frontier is not None and (given or pairs):
        # The levels of pairs are not a single number that could be an axis.
        of_pairs = f"a frontier is over epsilon, and {request.notion} has levels of pairs: plan at several of them"
        of_given = "a mechanism already has a level: give a design input"
        raise InvalidInput(Problem.UNSUPPORTED, of_given if given else of_pairs, "frontier")

    # Cached, because a search for the mechanism at a level may take long.
    @cache
    def at(level: str | None) -> _Table:
        return _given(request) if given else _designed(request, level, timer, stopped)

    level, goals, factors = request.epsilon, repeat(request.margin or 0.0), dict[str, Any]()
    if request.solve_for == "epsilon":
        low, high = factor_range(request.epsilons) if pairs else LEVELS
        level = _solved_level(request, lambda e: at(e).plan.margins, goals, low, high)
        if pairs:
            epsilons = scaled(request.epsilons, level)
            factors = {"epsilon": None, "factor": level, "epsilons": epsilons}
    table, guessed = at(level), None
    if request.guess is not None:
        if len(request.guess) != table.answers:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"guess a share for each of the {table.answers} answers",
                "guess",
            )
        guessed = partial(table.plan.margins_at, np.array(request.guess, dtype=np.float64))
    body = _solution(request, level, table.plan.margins, goals, guessed)
    body |= {"regret": table.regret, **factors}
    if request.frontier is not None:
        # From 0.1 to 8 nats: a factor of 80 in steps of equal ratio.
        steps = (i / (request.frontier - 1) for i in range(request.frontier))
        rows = [(e, at(e)) for e in (nats(round(100 * 80**step)) for step in steps)]
        body["frontier"] = [
            {"epsilon": e, "margin": row.plan.margin(body["n"]), "information": row.information}
            for e, row in rows
        ]
    return body


@dataclass(frozen=True, slots=True)
class _Table:
    """A mechanism's plan and number of answers; information in nats and regret of a design."""

    plan: Plan
    answers: int
    information: float = 0.0
    regret: dict[str, str] | None = None


def _given(request: PlanRequest) -> _Table:
    mechanism, prior = request.source(), request.design_prior
    checked = None if prior is None else checked_prior(mechanism, prior)
    return _Table(_plan(request, mechanism, checked), mechanism.answers)


def _designed(request: PlanRequest, level: str | None, timer: Timer, stopped: Stopped) -> _Table:
    designed, design_input = _design(request, level, timer, stopped)
    # Computed here and not once at the end, because each design has its own time limit.
    try:
        regret = regret_of(designed, design_input)
    except TimeExceeded:
        regret = None
    plan = _plan(request, designed.mechanism, designed.decoder_prior)
    return _Table(plan, designed.mechanism.answers, designed.information, regret)


def _design(
    request: PlanRequest, level: str | None, timer: Timer, stopped: Stopped
) -> tuple[DesignResult, DesignRequest]:
    """Design a mechanism at a level in nats, under metric-ldp at a factor on all levels.

    If the level is None, the levels of the request apply.
    """
    if level is not None and request.has_pair_levels:
        request = request.model_copy(update={"epsilons": scaled(request.epsilons, level)})
    elif level is not None:
        request = request.model_copy(update={"epsilon": level})
    _, design_input = design_request(request, timer, stopped=stopped)
    return design(design_input), design_input


def _plan(request: PlanRequest, mechanism: Mechanism, prior: tuple[int, ...] | None) -> Plan:
    return Plan(mechanism, _targets(request.targets, mechanism), prior, request.setting)


def _targets(value: Any, mechanism: Mechanism) -> Targets:
    if value == "shares":
        return shares(mechanism.answers)
    rows = [
        [Fraction(REQUEST.number(v, "targets")) for v in row]
        for row in REQUEST.table(value, "targets")
    ]
    return checked_targets(mechanism, rows)


def _solved_level(
    request: PlanRequest,
    margins_at: Callable[[str], Margins],
    goals: Iterable[float],
    low: int = LEVELS[0],
    high: int = LEVELS[1],
) -> str:
    """Return the least level, or factor on levels of pairs, at which n reports reach the goals."""
    n = request.n or 0
    thousandths = least_level(lambda e: reaches(margins_at(nats(e))(n), goals), low, high)
    if thousandths is None:
        factor = f"factor up to {plain(Decimal(high) / 1000)} on the levels, which makes the largest 20 nats,"
        raise _unreachable(n, factor) if request.has_pair_levels else _unreachable(n)
    return nats(thousandths)


def _unreachable(n: int, what: str = f"level up to {LEVELS[1] // 1000}") -> InvalidInput:
    """Return the error for a margin that no level, or no factor on levels, reaches."""
    return InvalidInput(
        Problem.UNSUPPORTED, f"no {what} gives this margin with {n} reports: collect more", "margin"
    )


def _solution(
    request: PlanRequest,
    level: str | None,
    margins: Margins,
    goals: Iterable[float],
    guessed: Margins | None,
) -> dict[str, Any]:
    """Return n and the margins at a level, at n/4 to 4n reports, and at guessed shares (`at_guess`).

    margins, guessed : margins at n reports for all shares and for the guessed ones. goals : the
    largest margins allowed, if n is solved for.
    """
    setting, solves_n = request.setting, request.solve_for == "n"
    n = least_reports(margins, goals, setting) if solves_n else request.n or 0
    at_n = margins(n)
    around = sorted({max(1, int(n * f)) for f in _CURVE_FACTORS})
    body: dict[str, Any] = {
        "solve_for": request.solve_for,
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
        "regret": None,
    }
    if guessed is not None:
        at_n = guessed(n)
        body["at_guess"] = {
            "margin": max(at_n),
            "margins": at_n,
            "n": least_reports(guessed, goals, setting) if solves_n else None,
        }
    return body


def _plan_form(
    request: PlanRequest, form: PlannedForm, timer: Timer, stopped: Stopped
) -> dict[str, Any]:
    """Plan a survey with a form.

    In: form (see `design_form_json`), without epsilon if that is solved for; a question may have
    its own margin, which replaces `margin`. The margin applies to the question's wanted estimates:
    the widest of its shares, its mean, and so on. If a question has a `guess`, at_guess has the
    margins at these shares, with independent answers and the expected shares (choices) of the other
    questions. The other fields are those of any plan.
    Out: as `plan_json`, with a margin for each question; shown, the share of reports that show each
    question; asked (mean, most, of), how many questions a person is asked if only those drawn are, not
    counting those on which they depend; cross_tables, each with the widest margin of its cells; and
    notes, sentences.

    Raises InvalidInput, naming the field.
    """
    with_margin = [i for i, question in enumerate(form.questions) if question.margin is not None]
    # `FormFields.request` reports a missing level. `margin` is needed only if a question has no
    # margin of its own.
    needed = ("n",) if len(with_margin) == len(form.questions) else ("n", "margin")
    within = {
        "epsilon": None if form.epsilon is None else "form.epsilon",
        "margin": f"form.questions[{with_margin[0]}].margin" if with_margin else None,
    }
    request.require_two(needed, within.get(request.solve_for))

    def at(level: str | None) -> FormPlan:
        limits = search_limits(request.limits, timer, None, stopped)
        return FormPlan(form.request(level, limits), request.setting)

    goals = [question.margin or request.margin or 0.0 for question in form.questions]
    level = form.epsilon
    if request.solve_for == "epsilon":
        level = _solved_level(request, lambda e: at(e).margins, goals)
    plan, guess = at(level), guessed_shares(form.questions)
    guessed = None if guess is None else plan.at_guess(guess)
    body = _solution(request, level, plan.margins, goals, guessed)
    shown = {"shown": plan.shown, "asked": plan.asked}
    return body | shown | {"cross_tables": plan.cross_tables(body["n"]), "notes": plan.notes}


def _plan_blocks(
    request: PlanRequest, blocks: Sequence[PlannedBlock], timer: Timer, stopped: Stopped
) -> dict[str, Any]:
    """Plan a survey of several blocks under LDP, with ε divided so that their margins are equal.

    In: blocks, a list of {choices}; epsilon, the sum of their levels; mechanism; and the other
    fields of any plan, except targets and frontier. A block may have a `guess`.
    Out: as `plan_json`, with a margin for each block (also in at_guess); blocks, the level and the margin of each; and
    equal_split_margin, the widest margin if the levels were equal.

    Raises InvalidInput, naming the field.
    """
    request.require_two(("n", "epsilon", "margin"))
    n, goal = request.n or 0, request.margin or 0.0

    def by_level(block: PlannedBlock) -> _ByLevel:
        question = request.model_copy(update={"prior": [block.prior], "notion": "ldp"})

        # Cached, because a search revisits levels.
        @cache
        def at(level: int) -> Plan:
            designed, _ = _design(question, nats(level), timer, stopped)
            return _plan(question, designed.mechanism, designed.decoder_prior)

        return at

    plans = [by_level(block) for block in blocks]
    least = LEVELS[0] * len(plans)
    if request.solve_for == "epsilon":
        least_levels = _levels(plans, goal, n, LEVELS[1])
        if least_levels is None or sum(least_levels) > LEVELS[1]:
            raise _unreachable(n)
        levels, total = least_levels, sum(least_levels)
    else:
        # Exact decimals: as floats, 1.001 · 1000 is less than 1001.
        total = int(Decimal(str(request.epsilon)) * 1000)
        if total < least:
            raise InvalidInput(
                Problem.EPS_OUT_OF_RANGE,
                f"{len(plans)} blocks need a level of {nats(least)} or more",
                "epsilon",
            )
        # If n is solved for, any number works: the margins of all blocks decrease alike with n.
        levels = _split(plans, total, n or min(_SOME_REPORTS, request.population or _SOME_REPORTS))
    chosen = [at(level) for at, level in zip(plans, levels, strict=True)]
    guess = [np.array(block_shares) for block_shares in guessed_shares(blocks) or ()]

    def guessed(m: int) -> list[float]:
        return [max(plan.margins_at(p, m)) for plan, p in zip(chosen, guess, strict=True)]

    def margins(m: int) -> list[float]:
        return [plan.margin(m) for plan in chosen]

    body = _solution(request, nats(total), margins, repeat(goal), guessed if guess else None)
    # The gain of the division over equal levels.
    equal = [at(max(LEVELS[0], total // len(plans))).margin(body["n"]) for at in plans]
    return body | {
        "blocks": [
            {"epsilon": nats(level), "margin": margin}
            for level, margin in zip(levels, body["margins"], strict=True)
        ],
        "equal_split_margin": max(equal),
    }


def _levels(plans: Sequence[_ByLevel], margin: float, n: int, most: int) -> list[int] | None:
    """Return the least level of each block with this margin; None if a block has no such level."""
    levels = []
    for at in plans:
        # A margin decreases with the level, so bisection finds the least level.
        level = least_level(lambda e, at=at: at(e).margin(n) <= margin, LEVELS[0], most)  # type: ignore[misc]
        if level is None:
            return None
        levels.append(level)
    return levels


def _split(plans: Sequence[_ByLevel], total: int, n: int) -> list[int]:
    """Return levels that sum to `total` and minimise the widest margin, to a thousandth."""
    # With all of ε, every margin is at most `low`; with the smallest levels, at most `high`.
    low = max(at(total).margin(n) for at in plans)
    high = max(at(LEVELS[0]).margin(n) for at in plans)
    affordable = [LEVELS[0]] * len(plans)
    for _ in range(_ROUNDS):
        middle = (low * high) ** 0.5
        levels = _levels(plans, middle, n, total)
        if levels is not None and sum(levels) <= total:
            affordable, high = levels, middle
        else:
            low = middle
    # The remaining thousandths go to the widest blocks, so that all of ε is used.
    for _ in range(total - sum(affordable)):
        margins = [at(level).margin(n) for at, level in zip(plans, affordable, strict=True)]
        affordable[margins.index(max(margins))] += 1
    return affordable
