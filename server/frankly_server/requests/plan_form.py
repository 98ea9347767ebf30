# SPDX-License-Identifier: Apache-2.0
"""Plans of forms: computes ε, the number of reports or the questions' margins from the other two.

A question is estimated from the reports that show it, which are a random sample of all reports. So
its plan is the plan of its part's table, at n times the share of reports that show the question.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.radix import number_of
from frankly_protocol.problems import Problem

from frankly_server.arrays import FloatArray
from frankly_server.design.form import FormRequest, design_form
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.planner import MOST, Plan, Setting, least_level
from frankly_server.forms import PartTable, part_table
from frankly_server.requests.design_fields import search_limits
from frankly_server.requests.design_form import parts_about, shown_share
from frankly_server.requests.plan_parts import (
    LEVELS,
    Timer,
    guessed,
    nats,
    no_level,
    require_reports,
    require_the_others,
    solved,
)
from frankly_server.requests.plan_request import PlannedForm, PlanRequest, guessed_shares


def plan_form(
    request: PlanRequest, form: PlannedForm, timer: Timer, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Plan a survey with a form.

    In: form (see `design_form_json`), without epsilon if that is solved for; a question may have
    its own margin, which replaces `margin`. The margin applies to the question's wanted estimates:
    the widest of its shares, its mean, and so on. If a question has a `guess`, at_guess has the
    margins at these shares, with independent answers and the expected shares (choices) of the other
    questions. The other fields are those of any plan.
    Out: as `plan_json`, with a margin for each question; shown, the share of reports that show each
    question; and cross_tables, each with the widest margin of its cells.

    Raises InvalidInput, naming the field.
    """
    _require_two(request, form)
    n, setting = request.n or 0, request.setting
    if request.solve_for != "n":
        require_reports(n, setting)

    def at(level: str | None) -> _FormPlan:
        limits = search_limits(request.limits, timer, None, stopped)
        return _FormPlan(form.request(level, limits), setting)

    goals = [question.margin or request.margin or 0.0 for question in form.questions]
    level = form.epsilon
    if request.solve_for == "epsilon":
        thousandths = least_level(lambda e: at(nats(e)).reaches(goals, n), *LEVELS)
        if thousandths is None:
            raise no_level(n)
        level = nats(thousandths)
    plan = at(level)
    if request.solve_for == "n":
        n = plan.reports(goals)
    guess = guessed_shares(form.questions)
    at_guess = None if guess is None else partial(plan.margins, guess=guess)
    return {
        "solve_for": request.solve_for,
        **solved(n, level, plan.margins, setting),
        **guessed(at_guess, goals, n, request),
        "regret": None,
        "shown": plan.shown,
        "cross_tables": plan.cross_tables(n),
    }


def _require_two(request: PlanRequest, form: PlannedForm) -> None:
    """Raise InvalidInput unless the request has exactly two of epsilon, n and margin."""
    solve_for = request.solve_for
    with_margin = [i for i, question in enumerate(form.questions) if question.margin is not None]
    field_of = {
        "epsilon": "form.epsilon" if form.epsilon is not None else None,
        "n": "n" if request.n is not None else None,
        "margin": "margin" if request.margin is not None else
        f"form.questions[{with_margin[0]}].margin" if with_margin else None,
    }  # fmt: skip
    field = field_of[solve_for]
    if field is not None:
        raise InvalidInput(Problem.UNSUPPORTED, "leave out the quantity to solve for", field)
    # `FormFields.request` reports a missing level. `margin` is needed only if a question has no
    # margin of its own.
    if solve_for != "n":
        require_the_others(request, "n")
    if solve_for != "margin" and len(with_margin) < len(form.questions):
        require_the_others(request, "margin")


class _FormPlan:
    """The worst-case precision of a form's questions at any number of reports."""

    def __init__(self, request: FormRequest, setting: Setting) -> None:
        self._request, self._setting = request, setting
        self._designed = design_form(request)
        # Equal questions share a plan, because each plan computes a decoder.
        self._plans: dict[tuple[Any, ...], Plan] = {}
        questions = range(len(request.questions))
        self.shown = [shown_share(self._designed, (i,)) for i in questions]
        self._of_questions = [self._plan((i,)) for i in questions]

    def margins(self, n: int, guess: Sequence[Sequence[float]] | None = None) -> list[float]:
        """Return the widest half-width of every question's targets at n reports.

        guess : shares of the choices of every question, whose answers are assumed independent. If
        None, the margins hold for all shares.
        """
        return [
            plan.margin(n * share)
            if guess is None
            else max(plan.margins_at(self._joint_shares((i,), guess), n * share))
            for i, (plan, share) in enumerate(zip(self._of_questions, self.shown, strict=True))
        ]

    def cross_tables(self, n: int) -> list[dict[str, Any]]:
        """Return the widest half-width of every requested pair's cells at n reports."""
        return [
            {
                "questions": list(pair),
                "margin": self._plan(pair).margin(n * shown_share(self._designed, pair)),
            }
            for pair in self._request.cross_tables
        ]

    def reaches(self, goals: list[float], n: int) -> bool:
        """Return True if n reports give every question its margin."""
        return all(margin <= goal for margin, goal in zip(self.margins(n), goals, strict=True))

    def reports(self, goals: list[float]) -> int:
        """Return the least n at which every question has its margin.

        Raises InvalidInput(unsupported) if even the largest possible number is not enough.
        """
        largest = self._setting.population or MOST
        # `least_level` finds the least integer with any monotone property, not only levels.
        n = least_level(lambda reports: self.reaches(goals, reports), 1, largest)
        if n is None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"{largest} reports do not suffice: use a larger epsilon or wider margins",
                "margin",
            )
        return n

    def _joint_shares(
        self, questions: tuple[int, ...], guess: Sequence[Sequence[float]]
    ) -> FloatArray:
        _, order, cells = self._layout(questions)
        return np.array(
            [prod(guess[i][x] for i, x in zip(order, cell, strict=True)) for cell in cells]
        )

    def _layout(
        self, questions: tuple[int, ...]
    ) -> tuple[PartTable, list[int], list[tuple[int, ...]]]:
        """Return the table about these questions, all questions that it shows, and its answers."""
        parts = parts_about(self._designed, questions)
        order = [i for part in parts for i in self._designed.mechanism.parts[part]]
        sizes = [self._request.questions[i].choices for i in order]
        table = part_table(self._designed.mechanism, parts)
        return table, order, list(product(*map(range, sizes)))

    def _plan(self, questions: tuple[int, ...]) -> Plan:
        """Return the plan of one question's targets, or of all cells of a pair."""
        table, order, cells = self._layout(questions)
        priors = [self._request.questions[i].prior for i in order]
        prior = tuple(
            prod(counts[x] for counts, x in zip(priors, cell, strict=True)) for cell in cells
        )
        targets = self._targets(questions, order, cells)
        key = (table.weights, table.total, targets, prior)
        if key not in self._plans:
            self._plans[key] = Plan(table, targets, prior, self._setting)
        return self._plans[key]

    def _targets(
        self, questions: tuple[int, ...], order: list[int], cells: list[tuple[int, ...]]
    ) -> Targets:
        """Return the targets over the joint answers `cells` of the questions in `order`."""
        chosen = [self._request.questions[i] for i in questions]
        places = [order.index(i) for i in questions]
        sizes = [question.choices for question in chosen]
        rows = chosen[0].targets if len(chosen) == 1 else shares(prod(sizes))
        numbers = [number_of([cell[place] for place in places], sizes) for cell in cells]
        return tuple(tuple(row[number] for number in numbers) for row in rows)
