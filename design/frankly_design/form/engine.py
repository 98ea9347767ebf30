# SPDX-License-Identifier: Apache-2.0
"""Design of forms: least variance of the requested estimates, with one level for many questions."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from frankly_protocol.audit import level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Pool

from frankly_design.form.bounds import lower_bound
from frankly_design.form.problem import FormProblem, Pairs
from frankly_design.form.request import FormRequest, check
from frankly_design.form.search import Found, search
from frankly_design.form.units import lifted, pair_classes, question_classes, repeat_classes

BITS: Final = 48


@dataclass(frozen=True)  # no slots: the bound is stored in its `__dict__`
class FormDesign:
    """A form's mechanism and its figures, at n = 1 and the priors' shares.

    value : Σ importance · variance over questions and requested pairs. The variance of a question
    is the sum over its targets, that of a pair the sum over its cells, and that of a second copy is of
    the share of equal answers. variances, pair_variances : per question and per pair.
    """

    request: FormRequest
    mechanism: AgreementMechanism
    value: float
    variances: tuple[float, ...]
    pair_variances: tuple[float, ...]

    @cached_property
    def bound(self) -> float:
        """Lower bound on the value of any mechanism of this level, or 0.

        It mostly takes longer than the design; only certificates and `frankly design` state it.
        """
        ratio = self.mechanism.agree / self.mechanism.disagree
        return lower_bound(self.request, ratio, self.variances)

    @property
    def excess(self) -> float:
        """Upper bound of (value − least possible value) / least possible value."""
        return self.value / self.bound - 1


def design_form(request: FormRequest) -> FormDesign:
    """Return the best form found within the limits; its level is exact.

    Raises InvalidInput, naming the field, if the request is not valid.
    """
    check(request)
    level = level_for(request.epsilon)
    ratio = level[0] / level[1]  # rounding: only for the search; the mechanism consists of integers
    # Few requested pairs are better as one part each, many as separate questions; both are tried.
    alternatives = [_apart(request, ratio)]
    if request.cross_tables:
        alternatives.append(_grouped(request, ratio))
    alternatives.sort(key=lambda one: one.value)
    for found in alternatives[:-1]:
        # Many requested pairs may need larger tables than a device accepts.
        with suppress(InvalidInput):
            return _designed(request, level, found)
    return _designed(request, level, alternatives[-1])


def _apart(request: FormRequest, ratio: float) -> Found:
    """Return the best form whose parts are single questions, or both copies of one."""
    classes = (*question_classes(request), *repeat_classes(request))
    pairs = Pairs.of(classes, request.cross_tables)
    return search(FormProblem(classes, pairs, ratio), request.limits)


def _grouped(request: FormRequest, ratio: float) -> Found:
    """Return the best form in which every requested pair is one part."""
    paired = frozenset(i for pair in request.cross_tables for i in pair)
    classes = (*question_classes(request, paired), *pair_classes(request), *repeat_classes(request))
    return search(FormProblem(classes, Pairs({}), ratio), request.limits)


def _designed(request: FormRequest, level: tuple[int, int], found: Found) -> FormDesign:
    parts = tuple(members for entry in found.problem.classes for members in entry.members)
    firsts = np.cumsum([0, *(entry.size for entry in found.problem.classes)])
    chances = _whole(found.allocation.chances)
    components = tuple(
        Component(
            chance,
            sketch.threshold,
            tuple(
                Pool(
                    tuple(range(int(firsts[g]), int(firsts[g + 1]))),
                    draw.pick,
                    found.problem.classes[g].covers[draw.cover].cover,
                    draw.score,
                )
                for g, draw in sketch.structure
            ),
        )
        for chance, sketch in zip(chances, found.sketches, strict=True)
    )
    mechanism = AgreementMechanism(
        BITS,
        level[0],
        level[1],
        tuple(question.choices for question in request.questions),
        parts,
        components,
    )
    return FormDesign(
        request,
        mechanism,
        found.value,
        tuple(_variances(request, found)),
        tuple(_pair_variances(request, found)),
    )


def _whole(chances: Sequence[float] | np.ndarray) -> list[int]:
    """Return integers ≥ 1 that sum to 2^48 and are approximately proportional to `chances`."""
    total = 1 << BITS
    numbers = [max(1, int(Fraction(float(chance)) * total)) for chance in chances]
    # The largest number gets the rounding remainder, which changes it the least in relative terms.
    numbers[int(np.argmax(chances))] += total - sum(numbers)
    return numbers


def _variances(request: FormRequest, found: Found) -> list[float]:
    """Return the variance of each question's targets, from the first part with the question.

    Of a second copy, that of the share of equal answers.
    """
    values = [float("nan")] * len(request.questions)
    # The units of the classes come first.
    for entry, inverse in zip(found.problem.classes, found.allocation.inverses, strict=False):
        for members in entry.members:
            if members in request.repeats:
                value = entry.unit.value(inverse) + entry.unit.constant
                values[members[1]] = value / entry.unit.weight
                continue
            for place, number in enumerate(members):
                rows = request.questions[number].target_matrix
                if len(members) == 2:
                    other = request.questions[members[1 - place]].choices
                    rows = lifted(rows, other, first=place == 0)
                variance = float(np.einsum("tx,xz,tz->", rows, inverse, rows))
                variance -= float(((rows @ entry.unit.shares) ** 2).sum())
                # If a question is in several pairs, the estimator uses the first one too.
                if np.isnan(values[number]):
                    values[number] = variance
    return values


def _pair_variances(request: FormRequest, found: Found) -> list[float]:
    """Return the total variance of the cells of each requested pair."""
    by_pair: dict[frozenset[int], float] = {}
    place = {m: g for g, entry in enumerate(found.problem.classes) for m in entry.members}
    inverses = found.allocation.inverses
    for u, (pair, unit) in enumerate(found.problem.pairs.units.items(), len(found.problem.classes)):
        value = (unit.value(inverses[u]) + unit.constant) / unit.weight
        for a, b in request.cross_tables:
            if sorted((place[a,], place[b,])) == sorted(pair):
                by_pair[frozenset((a, b))] = value
    for entry, inverse in zip(found.problem.classes, inverses, strict=False):
        for members in entry.members:
            if len(members) == 2 and members not in request.repeats:
                by_pair[frozenset(members)] = float(
                    np.trace(inverse) - (entry.unit.shares**2).sum()
                )
    return [by_pair[frozenset(pair)] for pair in request.cross_tables]
