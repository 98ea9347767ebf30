# SPDX-License-Identifier: Apache-2.0
"""Sources of reports that have more random answers than the others (docs/maths/validity.md).

Sources differ in what is true of their people, so a test on the answers would flag that. The share of
people who answer at random, by an instructed item or by anchors, does not depend on it. Each source is
compared with all others together, one-sided: only more random answers are a reason to look at it.
"""

from collections.abc import Sequence
from math import exp, lgamma, sqrt
from statistics import NormalDist
from typing import Final

from frankly_design.estimate.anchors import Anchored
from frankly_design.estimate.validity import Attention, Item

LEVEL: Final = 0.05
"""Largest chance that any source is flagged if equally many people answer at random in all of them."""
_NEGLIGIBLE: Final = 1e-17


def source_tests(sources: Sequence[Attention]) -> list[float] | None:
    """Return of each source the p-value of the test that it has no more random answers than the others.

    A source is flagged if its own is at most `LEVEL` / len(sources). By an instructed item the test is
    Fisher's and keeps its level for every number of reports; by anchors it is the normal approximation,
    with the variances at the common share. None for fewer than two sources, or if they cannot be
    compared: their items differ, or some have an item and others anchors.
    """
    if len(sources) < 2:
        return None
    if items := [one for one in sources if isinstance(one, Item)]:
        is_alike = len(items) == len(sources) and len({one.choices for one in items}) == 1
        return _by_items(items) if is_alike else None
    return _by_anchors([one for one in sources if isinstance(one, Anchored)])


def is_flagged(p: float, sources: int) -> bool:
    """Return True for a p-value that flags one of so many sources."""
    return p <= LEVEL / sources


def _by_items(items: Sequence[Item]) -> list[float]:
    n, failed = sum(item.n for item in items), sum(item.failed for item in items)
    return [at_least(item.failed, item.n, failed, n) for item in items]


def at_least(k: int, drawn: int, marked: int, total: int) -> float:
    """Return P(X ≥ k), X the number of marked ones among `drawn` of `total`, of which `marked` are."""
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    # The shorter tail is summed, from its largest term outwards.
    if k * total > drawn * marked:
        return _tail(k, high, 1, drawn, marked, total) if k <= high else 0.0
    return 1 - _tail(k - 1, low, -1, drawn, marked, total) if k > low else 1.0


def _tail(k: int, last: int, step: int, drawn: int, marked: int, total: int) -> float:
    """Return the sum of the chances from k to `last`, which decrease."""
    chance = exp(_choose(marked, k) + _choose(total - marked, drawn - k) - _choose(total, drawn))
    tail = chance
    while k != last and chance > _NEGLIGIBLE * tail:
        j = k if step > 0 else k - 1
        ratio = (marked - j) * (drawn - j) / ((j + 1) * (total - marked - drawn + j + 1))
        chance, k = chance * (ratio if step > 0 else 1 / ratio), k + step
        tail += chance
    return min(1.0, tail)


def _choose(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _by_anchors(anchors: Sequence[Anchored]) -> list[float] | None:
    common = min(1.0, max(0.0, Anchored.together(anchors).attentive))
    found = []
    for i, own in enumerate(anchors):
        others = Anchored.together([one for j, one in enumerate(anchors) if j != i])
        variance = own.variance_at(common) + others.variance_at(common)
        if variance <= 0:
            return None
        found.append(1 - NormalDist().cdf((own.random - others.random) / sqrt(variance)))
    return found
