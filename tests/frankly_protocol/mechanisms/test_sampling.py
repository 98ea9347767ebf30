# SPDX-License-Identifier: Apache-2.0
"""Samplers of every kind draw exactly the promised law, tested by enumerating all random bits."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput, RandomnessError
from frankly_protocol.mechanisms import (
    Mechanism,
    SubsetMechanism,
    Symbol,
    UnaryMechanism,
    as_dense,
    columns,
)

from tests.frankly_protocol.audit.definitions import table
from tests.frankly_protocol.samples import SMALL


class _Stop(Exception):
    pass


def draws(mechanism: Mechanism, truth: int, least: Fraction) -> Iterator[tuple[Fraction, Symbol]]:
    """Return every run of the sampler whose random bits have probability `least` or more, with its symbol."""
    pending: list[list[tuple[int, int]]] = [[]]
    while pending:
        prefix = pending.pop()
        unread = list(prefix)
        requested: list[int] = []

        def bits(
            count: int, unread: list[tuple[int, int]] = unread, requested: list[int] = requested
        ) -> int:
            if not unread:
                requested.append(count)
                raise _Stop
            size, value = unread.pop(0)
            assert size == count
            return value

        chance = Fraction(1, 2 ** sum(size for size, _ in prefix))
        try:
            symbol = mechanism.sample(truth, bits)
        except _Stop:
            if chance / 2 ** requested[0] >= least:
                pending += [[*prefix, (requested[0], value)] for value in range(1 << requested[0])]
            continue
        assert not unread
        yield chance, symbol


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_all_random_bits_together_draw_the_promised_chances(mechanism: Mechanism) -> None:
    rejecting = isinstance(mechanism, SubsetMechanism)
    for truth in range(mechanism.answers):
        drawn: dict[Symbol, Fraction] = defaultdict(Fraction)
        for chance, symbol in draws(mechanism, truth, Fraction(1, 2**13 if rejecting else 2**60)):
            drawn[symbol] += chance
        promised = {y: column[truth] for y, column in table(mechanism).items() if column[truth]}
        assert set(drawn) == set(promised)
        missing = 1 - sum(drawn.values())
        if not rejecting:
            assert not missing
            assert drawn == promised
        for symbol, chance in promised.items():  # unfinished runs can only lower a probability
            assert chance - missing <= drawn[symbol] <= chance


@pytest.mark.parametrize("truth", range(4))
def test_without_the_rejected_draws_every_set_has_the_same_chance(truth: int) -> None:
    """If no draw is rejected, all sets with the truth are equally likely, and so are all sets without it."""
    mechanism = SubsetMechanism(4, 4, 2, 5)
    drawn: dict[Symbol, Fraction] = defaultdict(Fraction)
    for chance, symbol in draws(mechanism, truth, Fraction(1, 2 ** (4 + 2 + 1))):
        drawn[symbol] += chance
    for inside in (True, False):
        chances = {c for y, c in drawn.items() if bool(y >> truth & 1) == inside}  # type: ignore[operator]
        assert len(chances) == 1
    assert len(drawn) == comb(4, 2)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_chances_symbols_and_counts_match_the_definition(mechanism: Mechanism) -> None:
    expected = table(mechanism)
    assert list(mechanism.symbols()) == list(expected) or set(mechanism.symbols()) == set(expected)
    assert mechanism.reports == len(expected)
    assert columns(mechanism) == {y: tuple(column) for y, column in expected.items()}
    assert mechanism.sends_unchanged == all(
        sum(map(bool, column)) == 1 for column in expected.values()
    )
    if isinstance(mechanism, UnaryMechanism | SubsetMechanism):
        for mask in set(range(1 << mechanism.answers)) - set(expected):
            assert not any(mechanism.probability(mask, x) for x in range(mechanism.answers))


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_the_best_guess_takes_the_likeliest_answer_of_every_report(mechanism: Mechanism) -> None:
    best = sum((max(column) for column in table(mechanism).values()), Fraction(0))
    assert mechanism.guess == best / mechanism.answers


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_the_table_of_a_small_mechanism_is_the_mechanism(mechanism: Mechanism) -> None:
    dense = as_dense(mechanism)
    if dense is None:
        # Thirds and tenths are not multiples of 2^-48.
        assert any(
            c.denominator & (c.denominator - 1)
            for column in table(mechanism).values()
            for c in column
        )
        return
    # The table uses the fewest bits possible: those of the mechanism, or fewer with some odd
    # weight.
    assert dense.bits == mechanism.bits or any(w % 2 for row in dense.weights for w in row)
    for y, column in enumerate(columns(mechanism).values()):
        assert tuple(dense.probability(y, x) for x in range(dense.answers)) == column


def test_a_mechanism_that_is_too_large_is_not_listed() -> None:
    large = UnaryMechanism(48, 1000, 1 << 47, 3)
    assert large.reports == 2**1000
    assert as_dense(large) is None
    assert as_dense(UnaryMechanism(48, 3, 1 << 47, 3)) is None
    with pytest.raises(InvalidInput):
        columns(large)
    assert large.check_symbol(large.symbol_json(large.sample(7))) < 2**1000


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_without_randomness_nothing_is_drawn(mechanism: Mechanism) -> None:
    for error in (OSError("no entropy"), NotImplementedError()):

        def broken(_bits: int, error: Exception = error) -> int:
            raise error

        with pytest.raises(RandomnessError):
            mechanism.sample(0, broken)


@pytest.mark.parametrize(
    "mechanism", [m for m in SMALL if not isinstance(m, SubsetMechanism)], ids=repr
)
def test_the_random_bits_drawn_do_not_depend_on_the_answer(mechanism: Mechanism) -> None:
    def sizes_requested(truth: int, fill: Callable[[int], int]) -> list[int]:
        sizes: list[int] = []
        mechanism.sample(truth, lambda bits: sizes.append(bits) or fill(bits))
        return sizes

    for fill in (lambda _bits: 0, lambda bits: (1 << bits) - 1):
        assert len({tuple(sizes_requested(truth, fill)) for truth in range(mechanism.answers)}) == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_rejections_of_a_subset_do_not_depend_on_the_answer(seed: int) -> None:
    mechanism = SubsetMechanism(8, 11, 4, 100)
    runs = set()
    for truth in range(mechanism.answers):
        sizes: list[Any] = []
        state = seed * 2654435761 + 1

        def bits(count: int, sizes: list[int] = sizes) -> int:
            nonlocal state
            state = state * 6364136223846793005 + 1442695040888963407 & 2**64 - 1
            sizes.append(count)
            return state >> 64 - count if count else 0

        mechanism.sample(truth, bits)
        runs.add(tuple(sizes))
    assert len(runs) == 1


def test_the_symbols_of_a_subset_are_all_sets_of_its_size() -> None:
    mechanism = SubsetMechanism(4, 5, 2, 8)
    assert {sum(1 << x for x in B) for B in combinations(range(5), 2)} == set(mechanism.symbols())
