# SPDX-License-Identifier: Apache-2.0
"""Components of a form in floats: the information of their reports about every unit.

A structure states how many parts of each class are drawn, with which cover and score; all thresholds
are tried. The set of a shown part is s with probability q(s)·α if s contains the truth and q(s)·β
if not, whatever the answers to other parts (docs/maths/forms.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from frankly_design.form.covers import FloatCover
from frankly_design.form.units import PartClass
from frankly_design.numeric.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Draw:
    """Parts of one class in a component: number, cover (index in the class) and score."""

    pick: int
    cover: int
    score: int = 1


Structure = tuple[tuple[int, Draw], ...]
"""(class, draw) of every class that is drawn, in the order of classes."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A component without its probability, which the allocation determines."""

    structure: Structure
    threshold: int


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """Distributions of a structure's reports for every threshold t = 1, 2, … (last axis).

    agree, other : α and β by class. mean : 1 + (E−1)·P(score ≥ t). tails : by class, P(all slots
    except one of the class score at least 0, 1, …).
    """

    agree: Mapping[int, FloatArray]
    other: Mapping[int, FloatArray]
    mean: FloatArray
    tails: Mapping[int, FloatArray]


def laws(classes: Sequence[PartClass], structure: Structure, ratio: float) -> Laws:
    """Return the laws of a structure for every threshold.

    ratio : agree/disagree.
    """
    # (class, score, probability that a set contains the truth, number of parts)
    slots = [
        (g, draw.score, classes[g].covers[draw.cover].inside, draw.pick) for g, draw in structure
    ]
    max_score = sum(score * pick for _, score, _, pick in slots)
    mean = (
        1 + (ratio - 1) * _reaching(_law(tuple((s, p, n) for _, s, p, n in slots)), max_score)[1:]
    )
    agree, other, tails = {}, {}, {}
    for place, (g, score, _, _) in enumerate(slots):
        # A report shows this part's set, so only the other slots are random.
        remaining = tuple((s, p, n - (i == place)) for i, (_, s, p, n) in enumerate(slots))
        tail = _reaching(_law(remaining), max_score)
        thresholds = np.arange(1, max_score + 1)
        agree[g] = (1 + (ratio - 1) * tail[np.maximum(thresholds - score, 0)]) / mean
        other[g] = (1 + (ratio - 1) * tail[thresholds]) / mean
        tails[g] = tail
    return Laws(agree, other, mean, tails)


def pair_factors(
    classes: Sequence[PartClass], structure: Structure, ratio: float, pair: tuple[int, int]
) -> FloatArray:
    """Return the factors of the probability of a pair's sets, shape (4, thresholds).

    The rows are, in order: both sets contain the truth, only the first, only the second, neither.
    """
    draws = dict(structure)
    slots = tuple(
        (draw.score, classes[g].covers[draw.cover].inside, draw.pick) for g, draw in structure
    )
    # If both parts are in the same class, they occupy two of its slots.
    others = tuple(
        (score, inside, pick - pair.count(g))
        for (g, _), (score, inside, pick) in zip(structure, slots, strict=True)
    )
    max_score = sum(score * pick for score, _, pick in slots)
    tail, mean = (
        _reaching(_law(others), max_score),
        1 + (ratio - 1) * _reaching(_law(slots), max_score)[1:],
    )
    first, second = (draws[g].score for g in pair)
    thresholds = np.arange(1, max_score + 1)
    return np.array(
        [
            (1 + (ratio - 1) * tail[np.maximum(thresholds - score, 0)]) / mean
            for score in (first + second, first, second, 0)
        ]
    )


def pair_information(
    first: FloatCover, second: FloatCover, factors: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return QᵀD⁻¹Q over the joint answers of two parts that a report shows together.

    factors : the four of `pair_factors` at one threshold.
    """
    # The factor on a pair of sets is bilinear in their indicators of agreement.
    both, one, other, none = factors
    a, b = first.member[:, None, :, None], second.member[None, :, None, :]
    law = none + (one - none) * a + (other - none) * b + (both - one - other + none) * a * b
    law = law.reshape(len(first.chance) * len(second.chance), -1)
    weights = np.outer(first.chance, second.chance).reshape(-1) / (law @ shares)
    result: FloatArray = (law * weights[:, None]).T @ law
    return result


@lru_cache(maxsize=65536)
def _law(slots: tuple[tuple[int, float, int], ...]) -> tuple[float, ...]:
    """Return the probability of each total score of slots (score, P(truth in set), number)."""
    # Slots are independent given the truth, so the total score is a convolution.
    law = np.ones(1)
    for score, inside, number in slots:
        step = np.zeros(score + 1)
        step[0], step[score] = 1 - inside, inside
        for _ in range(number):
            law = np.convolve(law, step)
    return tuple(law.tolist())


def _reaching(law: tuple[float, ...], most: int) -> FloatArray:
    """Return the probabilities of a score of at least 0, 1, …, most."""
    tail = np.zeros(most + 2)
    tail[: len(law)] = np.cumsum(np.array(law)[::-1])[::-1]
    return tail[: most + 1]
