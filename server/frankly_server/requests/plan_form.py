# SPDX-License-Identifier: Apache-2.0
"""Plans of forms: one of ε, the number of reports and the questions' margins, from the other two.

A question is estimated from the reports that show it, which are a random sample of all reports. Its
plan is therefore the plan of its part's table, at n times the share of reports that show it.
"""

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.form import FormRequest, design_form
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.planner import MOST, Plan, Setting, least_level
from frankly_server.forms import part_table
from frankly_server.requests.design_fields import search_limits
from frankly_server.requests.design_form import parts_about, shown_share
from frankly_server.requests.plan_parts import (
    LEVELS,
    Timer,
    nats,
    no_level,
    require_reports,
    require_the_others,
    solved,
)
from frankly_server.requests.plan_request import PlannedForm, PlanRequest


def plan_form(
    request: PlanRequest, form: PlannedForm, timer: Timer, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Plan a survey with a form.

    In: form (see `design_form_json`), without epsilon if that is solved for; a question may have
    its own margin, which replaces `margin`. The margin applies to the question's wanted estimates:
    the widest of its shares, its mean, and so on. The other fields are those of any plan.
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
    return {
        "solve_for": request.solve_for,
        **solved(n, level, plan.margins, setting),
        "regret": None,
        "shown": plan.shown,
        "cross_tables": plan.cross_tables(n),
    }


def _require_two(request: PlanRequest, form: PlannedForm) -> None:
    """Raise InvalidInput unless exactly two of epsilon, n and margin are given."""
    solve_for = request.solve_for
    own = [i for i, question in enumerate(form.questions) if question.margin is not None]
    given = {
        "epsilon": "form.epsilon" if form.epsilon is not None else None,
        "n": "n" if request.n is not None else None,
        "margin": "margin" if request.margin is not None else
        f"form.questions[{own[0]}].margin" if own else None,
    }  # fmt: skip
    field = given[solve_for]
    if field is not None:
        detail = "leave out the quantity to solve for"
        raise InvalidInput(Problem.UNSUPPORTED, detail, field)
    # A missing level is reported by `FormFields.request`. `margin` is needed only if a question has
    # no margin.
    if solve_for != "n":
        require_the_others(request, "n")
    if solve_for != "margin" and len(own) < len(form.questions):
        require_the_others(request, "margin")


class _FormPlan:
    """The worst-case precision of a form's questions at any number of reports."""

    def __init__(self, request: FormRequest, setting: Setting) -> None:
        self._request, self._setting = request, setting
        self._designed = design_form(request)
        # Equal questions share a plan, because each plan solves for a decoder.
        self._plans: dict[tuple[Any, ...], Plan] = {}
        questions = range(len(request.questions))
        self.shown = [shown_share(self._designed, (i,)) for i in questions]
        self._of_questions = [self._plan((i,)) for i in questions]

    def margins(self, n: int) -> list[float]:
        """Return the widest half-width of every question's targets at n reports."""
        return [
            plan.margin(n * share)
            for plan, share in zip(self._of_questions, self.shown, strict=True)
        ]

    def cross_tables(self, n: int) -> list[dict[str, Any]]:
        """Return the widest half-width of every wanted pair's cells at n reports."""
        return [
            {
                "questions": list(pair),
                "margin": self._plan(pair).margin(n * shown_share(self._designed, pair)),
            }
            for pair in self._request.cross_tables
        ]

    def reaches(self, goals: list[float], n: int) -> bool:
        """Return True if n reports give every question its margin."""
        return all(found <= goal for found, goal in zip(self.margins(n), goals, strict=True))

    def reports(self, goals: list[float]) -> int:
        """Return the least n at which every question has its margin.

        Raises InvalidInput(unsupported) if the largest possible number does not suffice.
        """
        most = self._setting.population or MOST
        # `least_level` searches whole numbers for any monotone property, not only levels.
        n = least_level(lambda reports: self.reaches(goals, reports), 1, most)
        if n is None:
            detail = f"{most} reports do not suffice: use a larger epsilon or wider margins"
            raise InvalidInput(Problem.UNSUPPORTED, detail, "margin")
        return n

    def _plan(self, questions: tuple[int, ...]) -> Plan:
        """Return the plan of one question's targets, or of all cells of a pair."""
        parts = parts_about(self._designed, questions)
        table = part_table(self._designed.mechanism, parts)
        order = [i for part in parts for i in self._designed.mechanism.parts[part]]
        sizes = [self._request.questions[i].choices for i in order]
        cells = list(product(*map(range, sizes)))
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
        asked = [self._request.questions[i] for i in questions]
        places = [order.index(i) for i in questions]
        sizes = [question.choices for question in asked]
        rows = asked[0].targets if len(asked) == 1 else shares(prod(sizes))
        numbers = [_row_major([cell[place] for place in places], sizes) for cell in cells]
        return tuple(tuple(row[number] for number in numbers) for row in rows)


def _row_major(cell: list[int], sizes: list[int]) -> int:
    number = 0
    for x, size in zip(cell, sizes, strict=True):
        number = number * size + x
    return number
