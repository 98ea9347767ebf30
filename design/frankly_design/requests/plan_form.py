# SPDX-License-Identifier: Apache-2.0
"""Margins of a form's questions at any number of reports.

A question is estimated from the reports that show it, which are a random sample of all reports. So
its plan is the plan of its part's table, at n times the share of reports that show the question.
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from frankly_protocol.asking import mean_drawn, most_drawn
from frankly_protocol.mechanisms.radix import number_of

from frankly_design.estimate.planner import Margins, Plan, Setting
from frankly_design.form import FormRequest, design_form
from frankly_design.form.comparisons import few_questions
from frankly_design.kinds.decoder import Targets, shares
from frankly_design.kinds.parts import PartTable, part_table
from frankly_design.requests.design_form import compared_in_words, parts_about, shown_share


class FormPlan:
    """The precision of a form's questions at any number of reports."""

    def __init__(self, request: FormRequest, setting: Setting) -> None:
        self._request, self._setting = request, setting
        self._designed = design_form(request)
        # Equal questions share a plan, because each plan computes a decoder.
        self._plans: dict[tuple[Any, ...], Plan] = {}
        questions = range(len(request.questions))
        self.shown = [shown_share(self._designed, (i,)) for i in questions]
        self._of_questions = [self._plan((i,)) for i in questions]

    def margins(self, n: int) -> list[float]:
        """Return the widest half-width of every question's targets at n reports, for all shares."""
        of_questions = zip(self._of_questions, self.shown, strict=True)
        return [plan.margin(n * share) for plan, share in of_questions]

    def at_guess(self, guess: Sequence[Sequence[float]]) -> Margins:
        """Return the `margins` if each question's choices have these shares, independently."""
        layouts = [self._layout((i,)) for i in range(len(self.shown))]
        joint = [np.array(_products(order, cells, guess)) for _, order, cells in layouts]
        of_questions = list(zip(self._of_questions, self.shown, joint, strict=True))
        return lambda n: [max(plan.margins_at(p, n * share)) for plan, share, p in of_questions]

    @property
    def notes(self) -> list[str]:
        """Remarks as sentences: what the form gains over the best known method."""
        return compared_in_words(self._designed, few_questions(self._request))

    @property
    def asked(self) -> dict[str, float | int]:
        """Numbers of questions that a person is asked if only those drawn are: mean, most, and of how many."""
        parts = [frozenset(map(str, part)) for part in self._designed.mechanism.parts]
        forms, questions = [(parts, self._designed.mechanism)], frozenset().union(*parts)
        return {
            "mean": float(mean_drawn(forms, questions)),
            "most": most_drawn(forms, questions),
            "of": len(questions),
        }

    def cross_tables(self, n: int) -> list[dict[str, Any]]:
        """Return the widest half-width of every requested pair's cells at n reports."""
        return [
            {
                "questions": list(pair),
                "margin": self._plan(pair).margin(n * shown_share(self._designed, pair)),
            }
            for pair in self._request.cross_tables
        ]

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
        prior = _products(order, cells, [question.prior for question in self._request.questions])
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
        rows = chosen[0].figures if len(chosen) == 1 else shares(prod(sizes))
        numbers = [number_of([cell[place] for place in places], sizes) for cell in cells]
        return tuple(tuple(row[number] for number in numbers) for row in rows)


def _products(
    order: list[int], cells: list[tuple[int, ...]], numbers: Sequence[Sequence[Any]]
) -> tuple[Any, ...]:
    """Return each joint answer's product of the `numbers` of its choices, listed by question."""
    return tuple(prod(numbers[i][x] for i, x in zip(order, cell, strict=True)) for cell in cells)
