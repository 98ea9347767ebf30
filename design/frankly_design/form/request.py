# SPDX-License-Identifier: Apache-2.0
"""Request to the form designer: questions with the requested estimates, and one common level."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isqrt

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_CHOICES, MAX_QUESTIONS
from frankly_protocol.mechanisms.base import MAX_ANSWERS
from frankly_protocol.problems import Problem

from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Limits

Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """One question of a form.

    prior : positive counts of its 2 to 64 choices; the design is optimised for these shares.
    rows : weights of the wanted sums of shares, one for each choice, at least two of them different;
    None for the share of every choice. importance : weight of the question's variance in the
    objective, greater than 0. denominators : further rows whose variances count in the objective,
    because the wanted figures are divided by these sums.
    """

    prior: tuple[int, ...]
    rows: Rows | None = None
    importance: Fraction = Fraction(1)
    denominators: Rows = ()

    @property
    def choices(self) -> int:
        """The number of choices."""
        return len(self.prior)

    @property
    def targets(self) -> Rows:
        """Rows W of weights for the choices; the design minimises the sum of their variances."""
        return (*self.figures, *self.denominators)

    @property
    def figures(self) -> Rows:
        """The rows of what is wanted."""
        if self.rows is not None:
            return self.rows
        size = self.choices
        return tuple(tuple(Fraction(int(x == z)) for x in range(size)) for z in range(size))

    @property
    def target_matrix(self) -> FloatArray:
        """The targets in floats, shape (targets, choices)."""
        return np.array([[float(v) for v in row] for row in self.targets])


@dataclass(frozen=True, slots=True)
class FormRequest:
    """Questions that share one level.

    epsilon : nats, for all answers together. cross_tables : pairs of positions of questions whose
    joint shares are requested too, each with importance 1. repeats : positions (first, second) of
    questions that are asked twice. Of the second copy, the share of equal answers is wanted, instead
    of its own figures.
    """

    questions: tuple[FormQuestion, ...]
    epsilon: Fraction
    cross_tables: tuple[tuple[int, int], ...] = ()
    limits: Limits = field(default_factory=Limits)
    repeats: tuple[tuple[int, int], ...] = ()

    @property
    def seconds(self) -> frozenset[int]:
        """The positions of the second copies."""
        return frozenset(second for _, second in self.repeats)

    def equality(self, repeat: tuple[int, int]) -> FormQuestion:
        """Return whether both copies have equal answers as a yes/no question, yes being first.

        Nine of ten people repeat their answer and the others choose both by chance, so that the
        answers are equal with probability 9/10 + 1/(10 k), whatever the shares of the k choices.
        """
        k = self.questions[repeat[0]].choices
        importance = self.questions[repeat[1]].importance
        return FormQuestion((9 * k + 1, k - 1), ((Fraction(1), Fraction(0)),), importance)

    def without_repeats(self) -> "FormRequest":
        """Return the request without the second copies."""
        kept = [i for i in range(len(self.questions)) if i not in self.seconds]
        return replace(
            self,
            questions=tuple(self.questions[i] for i in kept),
            cross_tables=tuple((kept.index(a), kept.index(b)) for a, b in self.cross_tables),
            repeats=(),
        )


def check(request: FormRequest) -> None:
    """Raise InvalidInput, naming the field, if the request is not valid."""
    if not 1 <= len(request.questions) <= MAX_QUESTIONS:
        raise _invalid(f"a form has 1 to {MAX_QUESTIONS} questions", "questions")
    for i, question in enumerate(request.questions):
        _check_question(question, f"questions[{i}]")
    total = sum(question.choices for question in request.questions)
    if total > MAX_CHOICES:
        detail = f"a form has at most {MAX_CHOICES} choices in all, this one has {total}"
        raise _invalid(f"{detail}: ask fewer questions, or merge choices", "questions")
    for j, pair in enumerate(request.cross_tables):
        where, places = f"cross_tables[{j}]", range(len(request.questions))
        # Positions, because a request of the machine interface contains no ids.
        if len(set(pair)) != 2 or not all(i in places for i in pair):
            raise _invalid("name two different questions", where)
        first, second = (request.questions[i].choices for i in pair)
        if first * second > MAX_ANSWERS:
            raise _invalid(f"a joint table has at most {MAX_ANSWERS} cells", where)
    if len({frozenset(pair) for pair in request.cross_tables}) < len(request.cross_tables):
        raise _invalid("name a pair once", "cross_tables")
    for j, repeat in enumerate(request.repeats):
        _check_repeat(request, repeat, f"repeats[{j}]")


def _check_repeat(request: FormRequest, repeat: tuple[int, int], where: str) -> None:
    places = range(len(request.questions))
    if len(set(repeat)) != 2 or not all(i in places for i in repeat):
        raise _invalid("name two different questions", where)
    first, second = (request.questions[i].choices for i in repeat)
    if first != second:
        raise _invalid("a question that is asked twice has the same choices both times", where)
    if first**2 > MAX_ANSWERS:
        most = isqrt(MAX_ANSWERS)
        raise _invalid(f"a question that is asked twice has at most {most} choices", where)
    if any(repeat[1] in pair for pair in request.cross_tables):
        raise _invalid("the second copy is in no cross table: name the first one there", where)
    # A second copy is read only together with its first one, which must therefore be read alone.
    if repeat[0] in request.seconds or [two for _, two in request.repeats].count(repeat[1]) > 1:
        raise _invalid("a second copy repeats one question, and is not repeated itself", where)


def _check_question(question: FormQuestion, where: str) -> None:
    if not 2 <= question.choices <= 64 or not all(type(n) is int and n > 0 for n in question.prior):
        raise _invalid("give 2 to 64 positive counts, one for each choice", f"{where}.prior")
    if question.rows == ():
        raise _invalid("give a row, or none for all shares", f"{where}.rows")
    for j, row in enumerate((*(question.rows or ()), *question.denominators)):
        if len(row) != question.choices:
            raise _invalid("give one number for each choice", f"{where}.rows[{j}]")
        # With equal numbers the sum does not depend on the answers.
        if len(set(row)) < 2:
            raise _invalid("give different numbers for the choices", f"{where}.rows[{j}]")
    if question.importance <= 0:
        raise _invalid("the importance must be above 0", f"{where}.importance")


def shares_of(prior: tuple[int, ...]) -> FloatArray:
    """Return the prior as shares."""
    return np.array([n / sum(prior) for n in prior])


def _invalid(detail: str, field_name: str) -> InvalidInput:
    return InvalidInput(Problem.FIELD_TYPE, detail, field_name)
