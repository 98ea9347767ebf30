# SPDX-License-Identifier: Apache-2.0
"""Units of a form's objective: classes of equal questions, pairs of them, and repeated questions.

Equal questions have the same prior, targets and importance. They are drawn from one pool, so the
search treats them together.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_design.form.covers import FloatCover, candidates
from frankly_design.form.request import FormQuestion, FormRequest, shares_of
from frankly_design.numeric.arrays import FloatArray

_RIDGE: Final = 1e-13
"""Ridge added to an information matrix, relative to its mean eigenvalue.

With it, targets outside the range of the matrix have a huge variance instead of raising an error.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One term of the objective: the variance of targets over the answers of a part.

    shares : prior of the answers. targets : rows W. The term is weight · tr(W I⁻¹ Wᵀ) + `constant`,
    where I is the information about the answers.
    """

    shares: FloatArray
    targets: FloatArray
    weight: float

    @property
    def constant(self) -> float:
        """The summand of the term that does not depend on the design: −weight · Σ (W p)²."""
        return -self.weight * float(((self.targets @ self.shares) ** 2).sum())

    def inverse(self, information: FloatArray) -> FloatArray:
        """Return I⁻¹."""
        size = len(information)
        ridge = _RIDGE * np.trace(information) / size * np.eye(size)
        inverse: FloatArray = np.linalg.inv(information + ridge)
        return inverse

    def value(self, inverse: FloatArray) -> float:
        """Return weight · tr(W I⁻¹ Wᵀ)."""
        return self.weight * float(np.einsum("tx,xz,tz->", self.targets, inverse, self.targets))

    def price(self, inverse: FloatArray) -> FloatArray:
        """Return G = weight · I⁻¹WᵀW I⁻¹; a little information M lowers the value by tr(G M)."""
        spread = inverse @ self.targets.T
        return self.weight * spread @ spread.T


@dataclass(frozen=True, slots=True, eq=False)
class PartClass:
    """Equal parts: single questions, pairs of questions, or questions that are asked twice.

    members : the questions of each part. unit : the term of one part, with the weight of all parts.
    """

    members: tuple[tuple[int, ...], ...]
    unit: Unit
    covers: tuple[FloatCover, ...]

    @property
    def size(self) -> int:
        """The number of parts."""
        return len(self.members)

    @property
    def questions(self) -> frozenset[int]:
        """The questions of all parts."""
        return frozenset(question for part in self.members for question in part)

    @property
    def most(self) -> int:
        """Largest number of parts per component: 1 if parts share questions, else all."""
        return self.size if len(self.questions) == sum(map(len, self.members)) else 1


def question_classes(
    request: FormRequest, without: frozenset[int] = frozenset()
) -> list[PartClass]:
    """Return the classes of single questions, except second copies and those in `without`."""
    firsts = {first for first, _ in request.repeats}
    groups: dict[tuple[FormQuestion, bool], list[int]] = {}
    for i, question in enumerate(request.questions):
        if i not in without | request.seconds:
            # A component that draws both copies draws no other part of the first one's class.
            groups.setdefault((question, i in firsts), []).append(i)
    return [
        _class(tuple((i,) for i in places), *_own(question, len(places)), request)
        for (question, _), places in groups.items()
    ]


def repeat_classes(request: FormRequest) -> list[PartClass]:
    """Return the classes of questions that are asked twice, where both copies are one part.

    The answers of such a part count as equal or different, in this order; so the unit has two.
    """
    groups: dict[FormQuestion, list[tuple[int, int]]] = {}
    for repeat in request.repeats:
        groups.setdefault(request.equality(repeat), []).append(repeat)
    return [
        PartClass(
            tuple(members),
            _own(question, len(members))[0],
            (FloatCover.of_equality(request.questions[members[0][0]].choices),),
        )
        for question, members in groups.items()
    ]


def pair_classes(request: FormRequest) -> list[PartClass]:
    """Return the classes of requested pairs, where each pair is one part.

    The variance of a single question counts in the first pair that contains it.
    """
    groups: dict[tuple[FormQuestion | bool, ...], list[tuple[int, int]]] = {}
    counted: set[int] = set()
    # Sorted, so that the order of the request does not change the design.
    for a, b in sorted(sorted(pair) for pair in request.cross_tables):
        key = (request.questions[a], request.questions[b], a in counted, b in counted)
        groups.setdefault(key, []).append((a, b))
        counted |= {a, b}
    classes = []
    for (*_, skip_first, skip_second), members in groups.items():
        pair = tuple(request.questions[i] for i in members[0])
        # The joint prior of two questions is unknown, so their answers are assumed independent.
        prior = tuple(a * b for a in pair[0].prior for b in pair[1].prior)
        # The targets are the cells of the joint table, plus those of questions in no earlier pair.
        rows = [np.eye(len(prior))]
        for place, skipped in enumerate((skip_first, skip_second)):
            if not skipped:
                targets = lifted(
                    pair[place].target_matrix, pair[1 - place].choices, first=place == 0
                )
                rows.append(targets * np.sqrt(float(pair[place].importance)))
        unit = Unit(shares_of(prior), np.vstack(rows), float(len(members)))
        classes.append(_class(tuple(members), unit, prior, are_shares=True, request=request))
    return classes


def _own(question: FormQuestion, number: int) -> tuple[Unit, tuple[int, ...], bool]:
    unit = Unit(
        shares_of(question.prior), question.target_matrix, number * float(question.importance)
    )
    return unit, question.prior, question.rows is None


def _class(
    members: tuple[tuple[int, ...], ...],
    unit: Unit,
    prior: tuple[int, ...],
    are_shares: bool,
    request: FormRequest,
) -> PartClass:
    covers = candidates(
        len(prior),
        prior,
        unit.targets,
        float(request.epsilon),
        request.limits,
        are_shares=are_shares,
    )
    return PartClass(members, unit, tuple(covers))


def lifted(targets: FloatArray, other: int, *, first: bool) -> FloatArray:
    """Return rows over the joint answers of two questions, from rows over the answers of one."""
    return np.repeat(targets, other, axis=1) if first else np.tile(targets, (1, other))
