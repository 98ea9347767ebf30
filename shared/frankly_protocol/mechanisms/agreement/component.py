# SPDX-License-Identifier: Apache-2.0
"""The parts that a report of a form shows, and the scores of the sets drawn for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from frankly_protocol.mechanisms.agreement.cover import Cover
from frankly_protocol.mechanisms.base import RandomBits, draw_below


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """First step of a draw, which needs no answer: the component and the parts of a report.

    component : its position. parts : positions, in the order of the component's pools. The repr
    shows neither: together with the report they would tell whose it is.
    """

    component: int
    parts: tuple[int, ...]

    def __repr__(self) -> str:
        return "Plan(…)"


@dataclass(frozen=True, slots=True)
class Pool:
    """Parts from which a component draws, with one cover and one score for all of them.

    parts : positions of the parts, increasing. pick : the number of parts drawn, 1 to all. score :
    the score that a set adds if it contains the true answer, 1 to 8.
    """

    parts: tuple[int, ...]
    pick: int
    cover: Cover
    score: int = 1


@dataclass(frozen=True)
class Component:
    """One way of drawing a report, with its published chance.

    chance : whole number; the chances of all components sum to 2^bits. threshold : 1 to the largest
    possible score.
    """

    chance: int
    threshold: int
    pools: tuple[Pool, ...]

    @cached_property
    def slots(self) -> tuple[Pool, ...]:
        """The pool of each part that is drawn, in the order of the report."""
        return tuple(pool for pool in self.pools for _ in range(pool.pick))

    @cached_property
    def tails(self) -> tuple[tuple[int, ...], ...]:
        """tails[j][s]: total weight of the outcomes of slots j, j+1, … that raise s to the threshold.

        The weight of an outcome is the product of the weights of its sets. s runs from 0 to the
        threshold, and larger scores count as the threshold.
        """
        rows = [tuple(int(s == self.threshold) for s in range(self.threshold + 1))]
        for pool in reversed(self.slots):
            following = rows[-1]
            rows.append(
                tuple(
                    pool.cover.inside * following[min(s + pool.score, self.threshold)]
                    + pool.cover.outside * following[s]
                    for s in range(self.threshold + 1)
                )
            )
        return tuple(reversed(rows))

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """totals[j]: total weight of all outcomes of slots j, j+1, …."""
        weights = (pool.cover.inside + pool.cover.outside for pool in reversed(self.slots))
        return tuple(reversed(list(accumulate(weights, lambda a, b: a * b, initial=1))))

    @cached_property
    def others(self) -> tuple[tuple[int, int], ...]:
        """For each pool, two weights of the outcomes of all slots except one of the pool's.

        The first is the weight of the outcomes that reach the threshold if the slot adds its score,
        the second the weight of those that reach it if the slot adds nothing.
        """
        weights, slot, law = [], 0, [1] + [0] * self.threshold
        for pool in self.pools:
            after = self.tails[slot + 1]
            with_score = (after[min(s + pool.score, self.threshold)] for s in range(len(law)))
            weights.append(
                (
                    sum(n * tail for n, tail in zip(law, with_score, strict=True)),
                    sum(n * tail for n, tail in zip(law, after, strict=True)),
                )
            )
            slot += pool.pick
            for _ in range(pool.pick):
                moved = [n * pool.cover.outside for n in law]
                for s, n in enumerate(law):
                    moved[min(s + pool.score, self.threshold)] += n * pool.cover.inside
                law = moved
        return tuple(weights)

    def reaching(self, slots: Sequence[int], score: int) -> Fraction:
        """Return the chance that the other slots raise `score`, the score of `slots`, to the threshold.

        The sets are drawn from their covers, without the weights `agree` and `disagree`. The chance
        does not depend on the true answers.
        """
        law = {min(score, self.threshold): Fraction(1)}
        for j, pool in enumerate(self.slots):
            if j in slots:
                continue
            inside = Fraction(pool.cover.inside, pool.cover.inside + pool.cover.outside)
            moved: dict[int, Fraction] = {}
            for s, chance in law.items():
                higher = min(s + pool.score, self.threshold)
                moved[higher] = moved.get(higher, Fraction(0)) + chance * inside
                moved[s] = moved.get(s, Fraction(0)) + chance * (1 - inside)
            law = moved
        return law.get(self.threshold, Fraction(0))


def pick_of(pool: Pool, randbits: RandomBits) -> list[int]:
    """Draw `pick` of the pool's parts uniformly, in increasing order (Fisher-Yates)."""
    parts = list(pool.parts)
    # If all parts are drawn, no randomness is spent on their order.
    for i in range(pool.pick if pool.pick < len(parts) else 0):
        j = i + draw_below(len(parts) - i, randbits)
        parts[i], parts[j] = parts[j], parts[i]
    return sorted(parts[: pool.pick])
