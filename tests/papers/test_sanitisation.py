# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapters 3 and 4: composition, sufficient sets and bounds, compared with brute force over
all sets of reports."""

import random
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations

import pytest
from frankly_design.families.sanitisation import error_bound_discrete
from frankly_protocol.audit import Claim
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism, columns

from papers import sanitisation as theory
from tests.frankly_design.maths import random_mechanism


def subsets(reports: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(reports), k) for k in range(reports + 1)))


def needed(row: list[Fraction], reference: list[Fraction], E: Fraction) -> Fraction:
    """Return the least δ over all sets of reports."""
    return max(sum((row[y] - E * reference[y] for y in T), Fraction(0)) for T in subsets(len(row)))


def test_the_delta_of_a_mechanism_equals_that_of_its_worst_set() -> None:
    rng = random.Random(5)
    for _ in range(20):
        mechanism = random_mechanism(rng, 3, 5, bits=6)
        rows = [[Fraction(w, 64) for w in row] for row in mechanism.weights]
        E = Fraction(rng.randint(8, 24), 8)
        pairs = [(r, o) for r in rows for o in rows if r is not o]
        assert theory.delta_needed(mechanism, E) == max(needed(r, o, E) for r, o in pairs)


def test_the_sufficient_set_decides_and_is_minimal() -> None:
    """The test checks Theorem 4.1 and the minimality of its set: reports outside never increase the
    difference."""
    rng = random.Random(6)
    for _ in range(60):
        row, second = random_mechanism(rng, 2, 6, bits=6).weights
        E, delta = Fraction(rng.randint(8, 20), 8), Fraction(rng.randint(0, 16), 64)
        S = set(theory.sufficient_set(row, second))
        broken = [T for T in subsets(6) if theory.breaks(row, second, T, E, delta)]
        assert bool(broken) == any(set(T) <= S for T in broken)


def test_classes_decide_their_subsets_and_for_delta_0_all_sets() -> None:
    """The test checks Theorem 4.2 and Corollary 4.1."""
    rng = random.Random(7)
    for _ in range(60):
        ratios = [rng.choice([1, 2, 3, 4]) for _ in range(6)]
        second = [rng.randint(1, 4) for _ in range(6)]
        row = [r * v for r, v in zip(ratios, second, strict=True)]
        row.append(max(0, sum(second) + 60 - sum(row)))
        second.append(sum(row) - sum(second))
        classes = theory.ratio_classes(row, second)
        assert sorted(chain.from_iterable(classes)) == list(theory.sufficient_set(row, second))
        E, delta = Fraction(rng.randint(8, 30), 8), Fraction(rng.randint(0, 20), 100)
        for group in classes:
            inner = [T for T in subsets(7) if set(T) <= set(group)]
            broken = any(theory.breaks(row, second, T, E, delta) for T in inner)
            assert broken == theory.breaks(row, second, group, E, delta)
        pure = any(theory.breaks(row, second, T, E, Fraction(0)) for T in subsets(7))
        assert pure == any(theory.breaks(row, second, group, E, Fraction(0)) for group in classes)


def test_equal_exact_ratios_that_differ_as_floats_are_one_class() -> None:
    """As in Example 4.2, ratios are equal although the quotients of floats differ."""
    row, second = (3, 9, 27, 61), (1, 3, 9, 87)
    assert theory.ratio_classes(row, second) == ((0, 1, 2),)
    assert theory.ratio_classes((5, 1, 4), (0, 2, 8)) == ((0,),)


@pytest.mark.parametrize("n", [2, 3])
def test_a_product_is_private_for_neighbours_iff_its_parent_is(n: int) -> None:
    """The test checks Theorem 3.5 and Corollary 4.3 with all sets of reports of a database, for
    neighbours in one row."""
    rng = random.Random(8)
    for _ in range(4 // n):
        parent = random_mechanism(rng, 2, 2, bits=5)
        E, mechanism = Fraction(rng.randint(8, 24), 8), theory.sanitised(parent, n)
        delta = theory.delta_needed(parent, E)
        table = list(zip(*columns(mechanism).values(), strict=True))
        largest = max(
            needed(list(table[d]), list(table[d ^ 1 << i]), E)
            for d in range(2**n)
            for i in range(n)
        )
        assert largest == delta  # for n = 3, all 2^8 sets of each of 24 pairs
        claim = Claim("dp", E.as_integer_ratio(), delta=delta.as_integer_ratio())
        theory.require_private_for_neighbours(mechanism, claim)
        if delta:
            less = (delta.numerator * 1000 - 1, delta.denominator * 1000)
            with pytest.raises(DocumentRejected):
                theory.require_private_for_neighbours(mechanism, replace(claim, delta=less))


def test_no_mechanism_has_less_error_than_the_bounds() -> None:
    """The test checks (3.14) and (3.17) on random mechanisms at their least δ."""
    rng = random.Random(9)
    for _ in range(200):
        m = rng.randint(2, 5)
        mechanism = random_mechanism(rng, m, m, bits=10)
        if rng.random() < 0.5:  # mostly truthful, and so near the bound
            rows = [
                [(w + (7 << 10 if x == y else 0)) // 8 for y, w in enumerate(r)]
                for x, r in enumerate(mechanism.weights)
            ]
            rows = [
                [w + (1024 - sum(r) if x == y else 0) for y, w in enumerate(r)]
                for x, r in enumerate(rows)
            ]
            mechanism = DenseMechanism(10, tuple(map(tuple, rows)))
        E = Fraction(rng.randint(9, 40), 8)
        delta, error = theory.delta_needed(mechanism, E), theory.max_mean_error(mechanism)
        assert error >= error_bound_discrete(E, delta, m) >= theory.error_bound(E, delta)
