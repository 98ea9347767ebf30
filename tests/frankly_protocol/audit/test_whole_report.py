# SPDX-License-Identifier: Apache-2.0
"""Claims of docs/maths/whole_report.md, checked in small worlds where every probability is a
Fraction.

A world is a joint distribution of a secret, a stratum and two answers; each block draws
independently from a table of weights. The tests do not call `report_level`, which relies on the
claims.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random
from typing import Final

import pytest

SIZES: Final = {"s": 2, "z": 2, "x": 2}
Table = tuple[tuple[int, ...], ...]
"""Weights by answer (row) and symbol (column); each row sums to 12."""


@dataclass(frozen=True)
class World:
    """Counts of (secret, stratum, first answer, second answer), and one mechanism per answer."""

    counts: dict[tuple[int, int, int, int], int]
    blocks: tuple[Table, Table]

    def chance(self, x: tuple[int, int], y: tuple[int, int]) -> Fraction:
        """Return the probability of both symbols given both answers."""
        return Fraction(self.blocks[0][x[0]][y[0]] * self.blocks[1][x[1]][y[1]], 144)

    def law(self, y: tuple[int, int], z: int, s: int | None) -> Fraction:
        """Return P(y | s, z), or P(y | z) if there is no secret."""
        weighted = [
            (n, self.chance((a, b), y))
            for (t, v, a, b), n in self.counts.items()
            if v == z and s in (t, None)
        ]
        return sum((n * q for n, q in weighted), Fraction(0)) / sum(n for n, _ in weighted)

    def law_of_first(self, y: int, z: int, s: int | None) -> Fraction:
        """Return P(y of the first block | s, z)."""
        return sum((self.law((y, y2), z, s) for y2 in range(len(self.blocks[1][0]))), Fraction(0))


def ceiling(table: Table) -> Fraction:
    return max(Fraction(max(column), min(column)) for column in zip(*table, strict=True))


def worlds(count: int) -> Iterator[World]:
    chance = Random(18)

    def table() -> Table:
        low, high = chance.randint(1, 6), chance.randint(1, 11)
        return ((low, 12 - low), (high, 12 - high))

    for _ in range(count):
        counts = {
            key: chance.choice((1, 1, 2, 9))
            for key in product(range(2), range(2), range(2), range(2))
        }
        yield World(counts, (table(), table()))


SYMBOLS: Final = tuple(product(range(2), range(2)))


@pytest.mark.slow
def test_one_block_counts_its_promise_and_the_others_their_ceilings_given_the_stratum() -> None:
    """Odds and both sides of the lift stay within the bound, and some odds come within 10% of the bound."""
    closest = Fraction(0)
    for world in worlds(400):
        C = ceiling(world.blocks[1])
        for z, y in product(range(2), SYMBOLS):
            alone = [world.law_of_first(y[0], z, s) for s in range(2)]
            together = [world.law(y, z, s) for s in range(2)]
            bound = max(alone) / min(alone) * C
            assert max(together) / min(together) <= bound
            closest = max(closest, max(together) / min(together) / bound)
            overall, overall_first = world.law(y, z, None), world.law_of_first(y[0], z, None)
            for s in range(2):
                assert together[s] / overall <= alone[s] / overall_first * C
                assert overall / together[s] <= overall_first / alone[s] * C
    assert closest > Fraction(9, 10)


def test_the_bound_is_attained() -> None:
    """If both answers are the secret and both mechanisms are Warner's at ratio 3, the odds change
    by a factor of 9."""
    warner = ((9, 3), (3, 9))
    world = World({(0, 0, 0, 0): 1, (1, 0, 1, 1): 1}, (warner, warner))
    assert world.law((0, 0), 0, 0) / world.law((0, 0), 0, 1) == 9


def test_units_convert_and_no_smaller_conversion_holds() -> None:
    """LIP at E implies odds of E², ALIP implies odds of the product of both sides, and odds of E
    imply LIP at E."""
    for world in worlds(400):
        for z, y in product(range(2), range(2)):
            lifts = [world.law_of_first(y, z, s) / world.law_of_first(y, z, None) for s in range(2)]
            up, down, odds = max(lifts), 1 / min(lifts), max(lifts) / min(lifts)
            assert odds == up * down <= max(up, down) ** 2
            assert max(up, down) <= odds
    # With shares 1 : E, E² is attained: the lift of one secret is E and that of the other is 1/E.
    E = 3
    shares, likelihoods = (Fraction(1, 4), Fraction(3, 4)), (Fraction(E), Fraction(1, E))
    assert sum(p * w for p, w in zip(shares, likelihoods, strict=True)) == 1
    assert likelihoods[0] / likelihoods[1] == E**2


def test_a_stratum_and_a_block_that_each_reveal_nothing_can_reveal_everything() -> None:
    """With S = X xor Z, the pooled table promises a lift of 1, but given the stratum the report
    determines S."""
    identity = ((12, 0), (0, 12))
    world = World(
        {(x ^ z, z, x, 0): 1 for x in range(2) for z in range(2)}, (identity, ((12, 0), (12, 0)))
    )
    margins = {
        (s, x): sum(n for (t, _, a, _), n in world.counts.items() if (t, a) == (s, x))
        for s, x in SYMBOLS
    }
    assert set(margins.values()) == {1}  # independent, so 0-LIP holds and the table is true
    assert (
        sum(n for (s, z, *_), n in world.counts.items() if s == z) == 2
    )  # the stratum is also independent of S
    for z, x in SYMBOLS:
        assert world.law((x, 0), z, x ^ z) == 1
        assert world.law((x, 0), z, 1 - (x ^ z)) == 0


def test_without_counts_per_stratum_nothing_below_the_ceiling_can_be_promised() -> None:
    """In the same world with Warner's mechanism, the ceiling is attained although the table promises 1."""
    warner = ((9, 3), (3, 9))
    world = World(
        {(x ^ z, z, x, 0): 1 for x in range(2) for z in range(2)}, (warner, ((12, 0), (12, 0)))
    )
    likelihoods = [world.law((0, 0), z, s) for z in range(2) for s in range(2)]
    assert max(likelihoods) / min(likelihoods) == ceiling(warner) == 3


def test_the_sum_over_documents_bounds_the_odds_of_anything() -> None:
    """The second of two documents is chosen after the first report; each world is tested with 30
    random events."""
    chance = Random(7)
    for world in worlds(100):
        second_document = (
            world.blocks[1],
            ((11, 1), (5, 7)),
        )  # the second document, indexed by the first report's symbol
        bound = ceiling(world.blocks[0]) * max(map(ceiling, second_document))
        people = list(world.counts.items())
        for y, _ in product(SYMBOLS, range(30)):
            chance.shuffle(people)
            size = chance.randint(1, len(people) - 1)
            likelihoods = []
            for side in (people[:size], people[size:]):
                masses = [
                    n * world.blocks[0][a][y[0]] * second_document[y[0]][b][y[1]]
                    for (_, _, a, b), n in side
                ]
                likelihoods.append(Fraction(sum(masses), sum(n for _, n in side)))
            assert max(likelihoods) / min(likelihoods) <= bound


def test_the_stratum_alone_and_the_rest_given_it_multiply() -> None:
    """P(s | y, z) / P(s) is the product of both lifts; the odds change by the ratio of the largest
    to the smallest lift."""
    for world in worlds(200):
        total = sum(world.counts.values())
        mass = {
            (s, z): sum(n for (t, v, *_), n in world.counts.items() if (t, v) == (s, z))
            for s, z in SYMBOLS
        }
        before = [Fraction(mass[s, 0] + mass[s, 1], total) for s in range(2)]
        for z in range(2):
            lifts = [Fraction(mass[s, z], mass[0, z] + mass[1, z]) / before[s] for s in range(2)]
            odds = Fraction(mass[0, z], mass[1, z]) / (before[0] / before[1])
            assert max(odds, 1 / odds) == max(lifts) / min(lifts)
            for y in SYMBOLS:
                joint = [Fraction(mass[s, z], total) * world.law(y, z, s) for s in range(2)]
                after = [value / sum(joint) for value in joint]
                for s in range(2):
                    assert after[s] / before[s] == lifts[s] * world.law(y, z, s) / world.law(
                        y, z, None
                    )


def least_delta(table: Table, E: Fraction) -> Fraction:
    """Return the δ at which a table is (ln E, δ)-DP."""
    pairs = product(range(len(table)), repeat=2)
    return max(
        sum(
            (max(Fraction(0), (p - E * q) / 12) for p, q in zip(table[a], table[b], strict=True)),
            Fraction(0),
        )
        for a, b in pairs
    )


def test_deltas_add_and_the_chosen_block_still_counts_its_promise() -> None:
    """For all T, P(T | s, z) ≤ E·E₂·P(T | t, z) + δ₂, with E of block 1 and (E₂, δ₂) of block 2."""
    for world in worlds(300):
        E2 = Fraction(3, 2)
        delta = least_delta(world.blocks[1], E2)
        for z in range(2):
            E = max(
                world.law_of_first(y, z, s) / world.law_of_first(y, z, 1 - s) for y, s in SYMBOLS
            )
            for s in range(2):
                over = [world.law(y, z, s) - E * E2 * world.law(y, z, 1 - s) for y in SYMBOLS]
                assert sum(max(Fraction(0), value) for value in over) <= delta


@pytest.mark.parametrize("factor", [Fraction(11, 10), Fraction(2), Fraction(10)])
def test_the_probability_of_a_ratio_beyond_the_level_times_a_factor_is_bounded(
    factor: Fraction,
) -> None:
    """P(ratio > c·E) ≤ δ·c/(c − 1). For c = 1 there is no bound, because P(ratio > E) can exceed δ."""
    chance = Random(5)
    for _ in range(500):
        low, high, E = (
            chance.randint(1, 11),
            chance.randint(1, 11),
            Fraction(chance.randint(10, 40), 10),
        )
        table = ((low, 12 - low), (high, 12 - high))
        delta = least_delta(table, E)
        for a, b in product(range(2), repeat=2):
            beyond = [p for p, q in zip(table[a], table[b], strict=True) if p > factor * E * q]
            assert Fraction(sum(beyond), 12) <= delta * factor / (factor - 1)


def test_with_a_small_delta_the_ratio_can_nearly_always_exceed_the_level() -> None:
    """Randomised response at 11 : 1 is (ln 10, 1/12)-DP, but the ratio exceeds 10 with probability 11/12."""
    table = ((11, 1), (1, 11))
    assert least_delta(table, Fraction(10)) == Fraction(1, 12)
    assert sum(p for p, q in zip(*table, strict=True) if p > 10 * q) == 11
