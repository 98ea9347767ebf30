# SPDX-License-Identifier: Apache-2.0
"""Chances that a symbol fits an answer to one question, exactly.

A symbol *fits* an answer to a question if no other answer to it makes the symbol more likely, where
all answers to the block's other questions are equally likely. A symbol that fits every answer says
nothing about the question on its own, and nothing at all if that holds for all answers to the other
questions. The browser SDK has the same in fits.js and agreement.js.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import Cover

_MAX_WORK = 1 << 18
"""Largest number of additions for one question; larger tables have no `Fit`."""

Range = tuple[Fraction, Fraction]
"""Least and largest chance over all answers to the block."""
_ALL, _NONE = Fraction(1), Fraction(0)


@dataclass(frozen=True, slots=True)
class Fit:
    """Chances of what is sent about one question.

    own : the symbol fits the true answer, but not every answer. other : it fits a given other
    answer, but not every answer. silent : it says nothing about the question, whatever the answers
    to others are. is_joint : some symbol says something only together with other answers.
    """

    own: Range
    other: Range
    silent: Range
    is_joint: bool = False

    @property
    def is_plain(self) -> bool:
        """True if every symbol has a single possible answer to the question."""
        return self.own[0] == 1 and self.other[1] == 0


def fits(block: Block) -> list[Fit | None]:
    """Return the Fit of every question of a block; None where it would take too long to compute."""
    mechanism, sizes = block.mechanism, [len(question.choices) for question in block.questions]
    if mechanism.sends_unchanged:
        return [Fit((_ALL, _ALL), (_NONE, _NONE), (_NONE, _NONE)) for _ in sizes]
    if isinstance(mechanism, AgreementMechanism):
        return _form(mechanism)
    if isinstance(mechanism, ProductMechanism):
        return _factors(mechanism, sizes)
    return _numbered(mechanism, sizes)


def is_random(mechanism: AnyMechanism) -> bool:
    """Return True if chance decides the symbol of some answer."""
    if isinstance(mechanism, DenseMechanism):
        return any(sum(map(bool, row)) > 1 for row in mechanism.weights)
    if isinstance(mechanism, ProductMechanism):
        return any(map(is_random, mechanism.factors))
    return not mechanism.sends_unchanged


def _numbered(mechanism: AnyMechanism, sizes: Sequence[int]) -> list[Fit | None]:
    if isinstance(mechanism, DenseMechanism):
        columns, D = list(zip(*mechanism.weights, strict=True)), mechanism.denominator
        return [_enumerated(columns, size, prod(sizes[q + 1 :]), D) for q, size in enumerate(sizes)]
    if len(sizes) > 1:
        return [None] * len(sizes)
    if isinstance(mechanism, SubsetMechanism):
        k, s, inside = sizes[0], mechanism.size, Fraction(mechanism.inside, mechanism.denominator)
        return [_symmetric(k, s, inside)]
    assert isinstance(mechanism, UnaryMechanism)  # noqa: S101 - the last kind
    return [_unary(mechanism)]


def _factors(mechanism: ProductMechanism, sizes: Sequence[int]) -> list[Fit | None]:
    """Return the Fit of every question; None from where a factor has parts of a question."""
    found: list[Fit | None] = []
    for factor in mechanism.factors:
        start = end = len(found)
        while end < len(sizes) and prod(sizes[start:end]) < factor.answers:
            end += 1
        if prod(sizes[start:end]) != factor.answers:
            break
        found += _numbered(factor, sizes[start:end])
    return found + [None] * (len(sizes) - len(found))


def _enumerated(
    columns: Iterable[Sequence[int]], choices: int, after: int, denominator: int
) -> Fit | None:
    """Return the Fit of one question from the weight of every symbol given every answer.

    choices : number of the question's choices. after : number of joint answers to later questions.
    """
    hits: list[list[int]] = [[] for _ in range(choices)]
    silent: list[int] = []
    work, is_joint = 0, False
    for column in columns:
        if not silent:
            silent, hits = [0] * len(column), [[0] * len(column) for _ in hits]
        sums = [0] * choices
        for x, weight in enumerate(column):
            sums[x // after % choices] += weight
        most = max(sums)
        best = [a for a, total in enumerate(sums) if total == most]
        work += len(column) * (1 + len(best))
        if work > _MAX_WORK:
            return None
        rows = [hits[a] for a in best]
        if len(best) == choices:
            is_constant = all(
                weight == column[x - x // after % choices * after]
                for x, weight in enumerate(column)
            )
            rows, is_joint = [silent] * is_constant, is_joint or not is_constant
        for row in rows:
            for x, weight in enumerate(column):
                row[x] += weight
    own = [hits[x // after % choices][x] for x in range(len(silent))]
    other = [
        row[x] for a, row in enumerate(hits) for x in range(len(row)) if x // after % choices != a
    ]
    a, b, c = (_range(weights, denominator) for weights in (own, other, silent))
    return Fit(a, b, c, is_joint)


def _range(weights: Sequence[int], denominator: int) -> Range:
    return Fraction(min(weights), denominator), Fraction(max(weights), denominator)


def _symmetric(answers: int, size: int, inside: Fraction) -> Fit:
    """Return the Fit of a random set of one size that contains the truth with a given chance."""
    if inside * answers == size:
        return Fit((_NONE, _NONE), (_NONE, _NONE), (_ALL, _ALL))
    # A given other answer is in the set.
    beside = (inside * (size - 1) + (1 - inside) * size) / (answers - 1)
    if inside * answers < size:  # then the set's complement fits
        inside, beside = 1 - inside, 1 - beside
    return Fit((inside, inside), (beside, beside), (_NONE, _NONE))


def _unary(mechanism: UnaryMechanism) -> Fit:
    D, k = mechanism.denominator, mechanism.answers
    keep, flip = Fraction(mechanism.keep, D), Fraction(mechanism.flip, D)
    full, empty = keep * flip ** (k - 1), (1 - keep) * (1 - flip) ** (k - 1)
    if keep < flip:  # then the bits that are off fit
        keep, flip, full, empty = 1 - keep, 1 - flip, empty, full
    own, other, silent = keep - full, flip - full, full + empty
    return Fit((own, own), (other, other), (silent, silent))


def _form(mechanism: AgreementMechanism) -> list[Fit | None]:
    found: list[Fit | None] = [
        Fit((_NONE, _NONE), (_NONE, _NONE), (_ALL, _ALL)) for _ in mechanism.choices
    ]
    for component in mechanism.components:
        others, mean = component.totals[0], mechanism.mean_weight(component)
        for pool, (agreeing, other) in zip(component.pools, component.others, strict=True):
            rest = others // (pool.cover.inside + pool.cover.outside)
            # Weight of one set per unit of its own weight, if it holds the truth and if not.
            held, missed = (
                mechanism.agree * n + mechanism.disagree * (rest - n) for n in (agreeing, other)
            )
            drawn = Fraction(component.chance * pool.pick, len(pool.parts) << mechanism.bits)
            of_place: dict[tuple[int, int], Fit | None] = {}
            for part in pool.parts:
                questions = mechanism.parts[part]
                for q in questions:
                    later = prod(mechanism.choices[p] for p in questions if p > q)
                    place = mechanism.choices[q], later
                    if place not in of_place:
                        of_place[place] = _slot(pool.cover, place, held, missed, mean)
                    found[q] = _added(found[q], of_place[place], drawn)
    return found


def _slot(cover: Cover, place: tuple[int, int], held: int, missed: int, mean: int) -> Fit | None:
    """Return the Fit of one drawn part with the given cover."""
    choices, later = place
    if cover.size is not None and choices == cover.answers:
        return _symmetric(choices, cover.size, Fraction(cover.inside * held, mean))
    columns = (
        [weight * (held if mask >> x & 1 else missed) for x in range(cover.answers)]
        for mask, weight in zip(cover.masks, cover.weights, strict=True)
    )
    return _enumerated(columns, choices, later, mean)


def _added(fit: Fit | None, slot: Fit | None, drawn: Fraction) -> Fit | None:
    """Return a Fit with that of one part that is drawn with a given chance."""
    if fit is None or slot is None:
        return None

    def plus(total: Range, own: Range) -> Range:
        return total[0] + drawn * own[0], total[1] + drawn * own[1]

    silent = plus(fit.silent, (slot.silent[0] - 1, slot.silent[1] - 1))
    is_joint = fit.is_joint or slot.is_joint
    return Fit(plus(fit.own, slot.own), plus(fit.other, slot.other), silent, is_joint)
