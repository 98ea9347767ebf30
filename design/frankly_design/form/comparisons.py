# SPDX-License-Identifier: Apache-2.0
"""Values of known methods for the same questions, at the same total level and objective.

Known are: a few questions drawn and randomised together, one question drawn, and a block for each
question. All are optimised over the same covers as forms (docs/maths/forms.md). No method was known
for questions that are asked twice, so requests with such ones are refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import comb, exp, log, prod, sqrt
from typing import Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.form.allocation import allocate
from frankly_design.form.components import Draw, Sketch
from frankly_design.form.problem import FormProblem, Pairs
from frankly_design.form.request import FormRequest, check
from frankly_design.form.search import CELLS, best_cover, cover_choices, known_method, one_bit
from frankly_design.form.units import PartClass, pair_classes, question_classes
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Limits

_STEPS: Final = (0.1, 0.02, 0.004, 0.0008)
"""Fractions of a group's level that the search moves to another group, in descending order."""


@dataclass(frozen=True, slots=True)
class SeparateBlocks:
    """The objective with a block per question, and the level of each in nats; the sum is ε."""

    value: float
    levels: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class OneQuestion:
    """The objective if one question, or one requested pair, is drawn and asked at the full level.

    chances : the probability that each question is asked.
    """

    value: float
    chances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FewQuestions:
    """The objective if a few questions are drawn and their answers are randomised together.

    drawn : the mean number of questions that a report is about.
    """

    value: float
    drawn: float


def few_questions(request: FormRequest) -> FewQuestions:
    """Return the least value of the known methods that draw questions, and randomise them together.

    A report is about some questions, drawn at random with the best chances. It names their joint
    answer by randomised response, as the marginals of yes/no questions of Cormode, Kulkarni and
    Srivastava (2018); or it is a vector of bits, likelier if at least t agree with the true answers
    (a Hamming cap; with t at the middle in Duchi, Jordan and Wainwright 2018); or it is about one
    question, with the best cover. Questions that differ are also drawn with equal chances.
    Raises InvalidInput, naming the field, if the request is not valid.
    """
    _check(request)
    ratio = exp(float(request.epsilon))
    classes = tuple(question_classes(request))
    problems = [FormProblem(classes, Pairs.of(classes, request.cross_tables), ratio)]
    if request.cross_tables:
        problems.append(_grouped(request))
    found = [known_method(problem, request.limits) for problem in problems]
    best = min(found, key=lambda one: one.value)
    numbers = [
        sum(draw.pick * len(best.problem.classes[g].members[0]) for g, draw in sketch.structure)
        for sketch in best.sketches
    ]
    drawn = float(best.allocation.chances @ np.array(numbers))
    # Estimates of pairs would need the chance that a report shows both.
    evenly = (
        []
        if request.cross_tables
        else [*_marginals(problems[0]), *_caps(problems[0]), *_subsets(problems[0])]
    )
    return min([FewQuestions(best.value, drawn), *evenly], key=lambda few: few.value)


def _marginals(problem: FormProblem) -> Iterator[FewQuestions]:
    """Yield the values if m of all questions are drawn, and all of their sets agree or not.

    Every set of m questions is equally likely.
    """
    classes, most = problem.classes, CELLS * problem.ratio
    for covers in cover_choices(problem):
        inside = [one.covers[c].inside for one, c in zip(classes, covers, strict=True)]
        number = sum(one.size for one in classes)
        largest = sorted(p for one, p in zip(classes, inside, strict=True) for _ in one.members)
        # By number of questions: how many sets of them have a chance of agreeing, as its logarithm.
        chances: list[Counter[float]] = [Counter({0.0: 1})]
        for one, p in zip(classes, inside, strict=True):
            for _ in one.members:
                chances = _with(chances, log(p))
        for drawn in range(1, number + 1):
            if prod(largest[-drawn:]) * most < 1:
                break
            share = drawn / number
            infos = {}
            for g, (one, p) in enumerate(zip(classes, inside, strict=True)):
                others = _without(chances, log(p))[drawn - 1]
                shown = np.zeros((len(one.unit.shares),) * 2)
                for chance, sets in others.items():
                    mean = 1 + (problem.ratio - 1) * exp(chance) * p
                    agree = (1 + (problem.ratio - 1) * exp(chance)) / mean
                    cover = one.covers[covers[g]]
                    shown += sets * cover.information(one.unit.shares, agree, 1 / mean)
                infos[g] = share * shown / others.total() + (1 - share)
            yield FewQuestions(_value(problem, infos), drawn)


def _with(chances: Sequence[Counter[float]], logarithm: float) -> list[Counter[float]]:
    """Return the numbers of sets, by size, if there is one more question."""
    result = [Counter(one) for one in chances] + [Counter[float]()]
    for size, one in enumerate(chances):
        for chance, sets in one.items():
            result[size + 1][round(chance + logarithm, 9)] += sets
    return result


def _without(chances: Sequence[Counter[float]], logarithm: float) -> list[Counter[float]]:
    """Return the numbers of sets, by size, that do not contain a question: `_with`, undone."""
    result = [Counter({0.0: 1})]
    for one in chances[1:-1]:
        rest = Counter(one)
        for chance, sets in result[-1].items():
            rest[round(chance + logarithm, 9)] -= sets
        result.append(+rest)
    return result


def _caps(problem: FormProblem) -> Iterator[FewQuestions]:
    """Yield the values if m of all questions are drawn, and a report is a bit of each of them.

    Vectors that agree in at least t places are likelier. Nothing if some question has no cover of
    one bit.
    """
    bits = [one_bit(one) for one in problem.classes]
    if not all(bits):
        return
    number = sum(one.size for one in problem.classes)
    covers = [
        best_cover(one, problem.ratio, c) for one, c in zip(problem.classes, bits, strict=True)
    ]
    for drawn in range(2, number + 1):
        for least in range(1, drawn + 1):
            rest = [comb(drawn - 1, i) / 2 ** (drawn - 1) for i in range(drawn)]
            hit, miss = sum(rest[least - 1 :]), sum(rest[least:])
            agree, other = (1 + (problem.ratio - 1) * chance for chance in (hit, miss))
            mean = (agree + other) / 2
            share = drawn / number
            infos = {
                g: share * one.covers[c].information(one.unit.shares, agree / mean, other / mean)
                + (1 - share)
                for g, (one, c) in enumerate(zip(problem.classes, covers, strict=True))
            }
            yield FewQuestions(_value(problem, infos), drawn)


def _subsets(problem: FormProblem) -> Iterator[FewQuestions]:
    """Yield the value if one question is drawn and answered by a set of the best size (Ye and Barg 2018).

    There may be too many sets for a cover. Nothing unless the shares of even questions are wanted.
    """
    roots = 0.0
    for one in problem.classes:
        k = len(one.unit.shares)
        if np.ptp(one.unit.shares) or not np.array_equal(one.unit.targets, np.eye(k)):
            return
        variances = (
            (k - 1) ** 2 * k * (1 + (problem.ratio - 1) * size / k) ** 2 / (size * (k - size))
            for size in range(1, k)
        )
        # A class has the weight of all of its questions, and all are drawn equally often.
        roots += sqrt(one.size * one.unit.weight * min(variances)) / (problem.ratio - 1)
    yield FewQuestions(roots**2, 1.0)


def _value(problem: FormProblem, infos: Mapping[int, FloatArray]) -> float:
    """Return the objective if reports have this information about each class."""
    return sum(
        one.unit.value(one.unit.inverse(infos[g])) + one.unit.constant
        for g, one in enumerate(problem.classes)
    )


def _grouped(request: FormRequest) -> FormProblem:
    """Return the problem in which requested pairs are parts, and their questions are no others."""
    paired = frozenset(i for pair in request.cross_tables for i in pair)
    classes = (*question_classes(request, paired), *pair_classes(request))
    return FormProblem(classes, Pairs({}), exp(float(request.epsilon)))


def _check(request: FormRequest) -> None:
    """Raise InvalidInput, naming the field, if the request is not valid, or has repeated questions."""
    check(request)
    if request.repeats:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "no other method is known for questions that are asked twice: leave them out",
            "repeats",
        )


def separate_blocks(request: FormRequest) -> SeparateBlocks:
    """Return the value of separate blocks at the best split of the level.

    A requested pair is estimated from two independent reports, by the product of their tables.
    Raises InvalidInput, naming the field, if the request is not valid.
    """
    _check(request)
    number = len(request.questions)
    # Candidate covers are those for the level of a single question, not of the whole form.
    at_their_level = replace(request, epsilon=request.epsilon / number, cross_tables=())
    blocks = _Blocks.of(request, question_classes(at_their_level))
    best = min(
        (blocks.split(start) for start in (np.ones(number), blocks.proportional())),
        key=lambda split: split[0],
    )
    return SeparateBlocks(best[0], tuple(float(level) for level in best[1]))


def one_question(request: FormRequest) -> OneQuestion:
    """Return the value of drawing one question with the best chances (Neyman allocation).

    A requested pair is drawn as one question; otherwise its joint table could not be estimated.
    Raises InvalidInput, naming the field, if the request is not valid.
    """
    _check(request)
    problem = _grouped(request)
    sketches = [
        Sketch(((g, Draw(1, c)),), 1)
        for g, entry in enumerate(problem.classes)
        for c in range(len(entry.covers))
    ]
    infos = [problem.information(sketch) for sketch in sketches]
    allocation = allocate(problem.units, infos, request.limits)
    chances = np.zeros(len(request.questions))
    for sketch, chance in zip(sketches, allocation.chances, strict=True):
        ((g, _),) = sketch.structure
        for members in problem.classes[g].members:
            chances[list(members)] += chance / problem.classes[g].size
    value = allocation.value + sum(unit.constant for unit in problem.units)
    return OneQuestion(value, tuple(float(chance) for chance in chances))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Questions as separate blocks, in groups with equal levels, and requested pairs of questions.

    class_of : class of every group. group : group of every question; the questions of a group are
    equal, and occur in equally many requested pairs. pairs : number of requested pairs by their
    groups. memo : results of `_best`; a step of the search changes the levels of only two groups.
    """

    classes: tuple[PartClass, ...]
    class_of: tuple[int, ...]
    group: tuple[int, ...]
    pairs: Mapping[tuple[int, int], int]
    epsilon: Fraction
    limits: Limits
    memo: dict[tuple[int, float], tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, request: FormRequest, classes: Sequence[PartClass]) -> "_Blocks":
        """Return the blocks of a request whose questions have these classes."""
        number = len(request.questions)
        place = {members[0]: g for g, entry in enumerate(classes) for members in entry.members}
        pairs_of = [sum(i in pair for pair in request.cross_tables) for i in range(number)]
        keys = [(place[i], pairs_of[i]) for i in range(number)]
        names = sorted(set(keys))
        group = tuple(names.index(key) for key in keys)
        numbers: dict[tuple[int, int], int] = {}
        for a, b in request.cross_tables:
            pair = (min(group[a], group[b]), max(group[a], group[b]))
            numbers[pair] = numbers.get(pair, 0) + 1
        class_of = tuple(g for g, _ in names)
        return cls(tuple(classes), class_of, group, numbers, request.epsilon, request.limits)

    def proportional(self) -> FloatArray:
        """Return the split that is best if each variance is proportional to 1/level²."""
        # Minimising Σ v_g/level_g² at Σ level_g = ε gives levels in proportion to the cube root of
        # v_g.
        value = self._parts(np.full(len(self.class_of), float(self.epsilon) / len(self.group)))
        return np.array([np.cbrt(value[g]) for g in self.group])

    def split(self, start: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and all levels of a local search that moves level between groups.

        If time is up, returns the best split so far.
        """
        counts = np.bincount(self.group).astype(np.float64)
        sums = np.bincount(self.group, weights=start)
        shares = sums / sums.sum()  # one share for all questions of a group together
        value = self._value(shares, counts)
        # Large steps come first, to cross flat regions; small steps then refine the levels.
        for step in _STEPS:
            is_better = True
            while is_better and not self.limits.out_of_time():
                is_better = False
                for g in range(len(shares)):
                    if self.limits.out_of_time():
                        break
                    for h in range(len(shares)):
                        moved = shares.copy()
                        moved[g] += step * shares[h]
                        moved[h] -= step * shares[h]
                        tried = self._value(moved, counts) if g != h else value
                        if tried < value * (1 - 1e-9):
                            shares, value, is_better = moved, tried, True
        levels = shares * float(self.epsilon) / counts
        return value, levels[list(self.group)]

    def _value(self, shares: FloatArray, counts: FloatArray) -> float:
        levels = shares * float(self.epsilon) / counts
        total = float(self._parts(levels) @ counts)
        traces = [self._best(g, level)[1] for g, level in enumerate(levels)]
        for (g, h), number in self.pairs.items():
            # Variances of a product of independent estimates: the second moment minus the squared
            # means.
            squares = (
                float((self.classes[self.class_of[i]].unit.shares ** 2).sum()) for i in (g, h)
            )
            total += number * (traces[g] * traces[h] - next(squares) * next(squares))
        return total

    def _parts(self, levels: FloatArray) -> FloatArray:
        """Return importance · variance of one question of every group."""
        return np.array([self._best(g, level)[0] for g, level in enumerate(levels)])

    def _best(self, g: int, level: float) -> tuple[float, float]:
        """Return the least variance of a group's question at a level, and tr I⁻¹ of its table."""
        if (g, level) in self.memo:
            return self.memo[g, level]
        entry, ratio = self.classes[self.class_of[g]], exp(level)
        by_cover = []
        for cover in entry.covers:
            # The mean weight of a set; agreeing sets have `ratio` times the weight of the others.
            mean = 1 + (ratio - 1) * cover.inside
            inverse = entry.unit.inverse(
                cover.information(entry.unit.shares, ratio / mean, 1 / mean)
            )
            value = (entry.unit.value(inverse) + entry.unit.constant) / entry.size
            by_cover.append((value, float(np.trace(inverse))))
        self.memo[g, level] = min(by_cover)
        return self.memo[g, level]
