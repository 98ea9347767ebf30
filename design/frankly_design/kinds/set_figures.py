# SPDX-License-Identifier: Apache-2.0
"""Information and Hamming error of mechanisms that report sets, without listing a table.

The probability of a set of size k is inside(k) if the set contains the truth, otherwise outside(k).
So a set's contribution depends on its share of the prior and on the largest share of an answer
inside and outside the set; with equal shares it depends only on the size.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from frankly_design.kinds.set_law import SetLaw, log
from frankly_design.numeric.arrays import FloatArray

MOST_ANSWERS = 16
"""Largest number of answers for which all sets are listed."""


def information_and_hamming(law: SetLaw, counts: Sequence[int]) -> tuple[float, float]:
    """Return (I(X; Y) in nats, Hamming error); nan for uneven counts of more than 16 answers."""
    if len(set(counts)) == 1:
        groups = _by_size(law)
    elif len(counts) <= MOST_ANSWERS:
        groups = _by_set(law, np.array([n / sum(counts) for n in counts]))
    else:
        return math.nan, math.nan
    gains, guesses = [], []
    for number, inside, outside, within, best_within, best_without in groups:
        chance = within * inside + (1 - within) * outside
        for share, likelihood in ((within, inside), (1 - within, outside)):
            if share > 0 and likelihood > 0:
                gains.append(number * share * likelihood * math.log(likelihood / chance))
        guesses.append(number * max(best_within * inside, best_without * outside))
    return max(0.0, math.fsum(gains)), 1 - math.fsum(guesses)


_Group = tuple[float, float, float, float, float, float]
"""Number of sets, inside, outside, prior share of a set, largest share inside and outside it."""


def _by_size(law: SetLaw) -> Iterator[_Group]:
    a: int = law.mechanism.answers
    for size in range(a + 1):
        inside, outside = law.log_chances(size)
        scale = max(inside, outside)
        if scale > -math.inf:
            yield (
                # The number of sets may exceed the range of floats; their total probability does
                # not.
                math.exp(log(math.comb(a, size)) + scale),
                math.exp(inside - scale),
                math.exp(outside - scale),
                size / a,
                1 / a if size else 0.0,
                1 / a if size < a else 0.0,
            )


def _by_set(law: SetLaw, p: FloatArray) -> Iterator[_Group]:
    a = len(p)
    within, best_within, best_without, sizes = (np.zeros(1) for _ in range(4))
    for share in p:
        # Sets without this answer come first, then the same sets with it.
        best_within = np.concatenate([best_within, np.maximum(best_within, share)])
        best_without = np.concatenate([np.maximum(best_without, share), best_without])
        within = np.concatenate([within, within + share])
        sizes = np.concatenate([sizes, sizes + 1])
    chances = [tuple(map(math.exp, law.log_chances(size))) for size in range(a + 1)]
    for size, of_set, best, rest in zip(sizes, within, best_within, best_without, strict=True):
        inside, outside = chances[int(size)]
        if inside or outside:
            yield 1.0, inside, outside, float(of_set), float(best), float(rest)
