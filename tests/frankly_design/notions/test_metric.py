# SPDX-License-Identifier: Apache-2.0
"""Levels for each pair of answers: cone, chains, utility-optimised LDP (docs/maths/notions.md)."""

from fractions import Fraction
from itertools import permutations, product
from random import Random
from typing import Any

import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.cones import Cone, answer_rays
from frankly_design.notions.declared.answer import answer_ldp, between_pairs
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import Claim, require_private, worst
from frankly_protocol.audit.data import PairLevels
from frankly_protocol.errors import InvalidInput

Level = tuple[int, int]


def metric(levels: PairLevels) -> Claim:
    return Claim("metric-ldp", (1, 1), levels=levels)


def random_levels(random: Random, a: int, *, some_open: bool) -> PairLevels:
    ratios = [(3, 2), (2, 1), (5, 1), (8, 1), *([None] if some_open else [])]
    levels = [[random.choice(ratios) if x != z else None for z in range(a)] for x in range(a)]
    levels[0][1] = (4, 1)
    return tuple(map(tuple, levels))


def closed(levels: PairLevels) -> PairLevels:
    """Replace every level by the least product along a chain of pairs (Floyd and Warshall)."""
    a = len(levels)
    least = {(x, z): Fraction(*r) for x, row in enumerate(levels) for z, r in enumerate(row) if r}
    for w, x, z in product(range(a), repeat=3):
        if x != z and (x, w) in least and (w, z) in least:
            through = least[x, w] * least[w, z]
            least[x, z] = min(least.get((x, z), through), through)
    return tuple(
        tuple(least[x, z].as_integer_ratio() if (x, z) in least else None for z in range(a))
        for x in range(a)
    )


def high_low(E: Level, sensitive: set[int], a: int) -> PairLevels:
    """Return level E for a sensitive answer against every other answer, and no level for harmless answers."""
    return tuple(
        tuple(E if x in sensitive and x != z else None for z in range(a)) for x in range(a)
    )


def keeps(q: tuple[int, ...], levels: PairLevels) -> bool:
    return all(
        r[1] * q[x] <= r[0] * q[z]
        for x, row in enumerate(levels)
        for z, r in enumerate(row)
        if r is not None
    )


@pytest.mark.parametrize("seed", range(12))
def test_chains_of_levels_do_not_change_the_cone(seed: int) -> None:
    levels = random_levels(Random(seed), 4, some_open=seed % 2 == 1)
    chained = closed(levels)
    assert chained != levels
    rays = set(Cone((metric(levels),), 4).rays())
    assert rays == set(Cone((metric(chained),), 4).rays())
    assert all(keeps(ray, levels) for ray in rays)


@pytest.mark.parametrize("a", [2, 3, 5])
def test_equal_levels_are_ldp(a: int) -> None:
    levels = tuple(tuple((7, 3) if x != z else None for z in range(a)) for x in range(a))
    assert set(Cone((metric(levels),), a).rays()) == set(answer_rays((7, 3), a))


@pytest.mark.parametrize(("a", "sensitive"), [(3, {0}), (4, {0, 1}), (4, {2}), (5, {0, 3, 4})])
def test_rays_of_the_hull_are_protected_or_reveal_a_harmless_answer(
    a: int, sensitive: set[int]
) -> None:
    rays = Cone((metric(high_low((3, 1), sensitive, a)),), a).rays()
    said = {tuple(int(x == n) for x in range(a)) for n in range(a) if n not in sensitive}
    protected = [ray for ray in rays if max(ray) <= 3 * min(ray)]
    assert said <= set(rays)
    assert len(protected) + len(said) == len(rays)
    assert protected


@pytest.mark.parametrize("seed", range(20))
def test_a_column_of_the_hull_is_a_sum_of_both_kinds(seed: int) -> None:
    random = Random(seed)
    levels = high_low((3, 1), {0, 1}, 4)
    low = random.randint(1, 9)
    q = (
        *(random.randint(low, 3 * low) for _ in range(2)),
        *(random.randint(low, 40 * low) for _ in range(2)),
    )
    q = (low, *q[1:]) if random.random() < 0.5 else q
    least = min(q)
    if not keeps(q, levels):
        assert max(q[:2]) > 3 * least
        return
    protected = tuple(v if x < 2 else min(v, 3 * least) for x, v in enumerate(q))
    assert max(protected) <= 3 * min(protected)
    assert all(v >= w for v, w in zip(q, protected, strict=True))
    assert q[:2] == protected[:2]


def ordinal(a: int, epsilon: str) -> list[list[Fraction | None]]:
    return [
        [None if x == z else Fraction(epsilon) * abs(x - z) for z in range(a)] for x in range(a)
    ]


@pytest.mark.parametrize("objective", ["variance", "information", "hamming"])
@pytest.mark.parametrize("a", [3, 5])
def test_optima_are_certified_and_lie_between_those_of_ldp(a: int, objective: str) -> None:
    """With level ε between neighbours, the optimum lies between LDP at ε and LDP at the largest level."""
    prior = Prior.from_rows([[3 + x for x in range(a)]])
    claim = between_pairs(ordinal(a, "0.7"), a)
    levels = [Fraction("0.7"), Fraction("0.7") * (a - 1)]
    found = [
        design(DesignRequest(prior, (one,), objective=objective))
        for one in (answer_ldp(levels[0]), claim, answer_ldp(levels[1]))
    ]
    assert found[1].certified
    require_private(found[1].mechanism, claim)
    strict, between, loose = (one.value for one in found)
    assert (strict < between < loose) if objective == "information" else (loose < between < strict)


def test_columns_are_generated_where_rays_are_too_many() -> None:
    a = 9
    prior = Prior.from_rows([[2 + x % 3 for x in range(a)]])
    claim = between_pairs(ordinal(a, "0.5"), a)
    assert not Cone((claim,), a).is_small()
    found = design(DesignRequest(prior, (claim,), objective="information"))
    require_private(found.mechanism, claim)
    assert worst(found.mechanism, claim).ratio == 1
    at_epsilon = design(
        DesignRequest(prior, (answer_ldp(Fraction("0.5")),), objective="information")
    )
    assert found.value > 1.5 * at_epsilon.value


def test_the_hull_of_utility_optimised_ldp_is_designed() -> None:
    """With two sensitive answers out of four, the variance is less than half of that under LDP."""
    E = answer_ldp(Fraction(1)).level
    assert E is not None
    prior = Prior.from_rows([[10, 20, 30, 40]])
    claim = metric(high_low(E, {0, 1}, 4))
    found = design(DesignRequest(prior, (claim,)))
    assert found.certified
    require_private(found.mechanism, claim)
    plain = design(DesignRequest(prior, (answer_ldp(Fraction(1)),)))
    assert found.value < 0.5 * plain.value
    sensitive, harmless = (
        worst(found.mechanism, claim),
        worst(found.mechanism, Claim("ldp", (1, 1))),
    )
    assert sensitive.ratio == 1
    assert harmless.ratio is None or harmless.ratio > 1000


BAD: list[tuple[Any, str]] = [
    ([[None, 1], [1, None], [1, 1]], "field_type"),
    ([[None, 1, 1], [1, None], [1, 1, None]], "field_type"),
    ([[1, 1, 1], [1, None, 1], [1, 1, None]], "field_type"),
    ([[None] * 3] * 3, "eps_out_of_range"),
]


@pytest.mark.parametrize(("epsilons", "code"), BAD)
def test_levels_that_do_not_fit_are_refused(epsilons: Any, code: str) -> None:
    rows = [[None if e is None else Fraction(e) for e in row] for row in epsilons]
    with pytest.raises(InvalidInput) as refused:
        between_pairs(rows, 3)
    assert (refused.value.code, refused.value.field) == (code, "epsilons")


def test_the_order_of_a_pair_counts() -> None:
    """A level of x against z limits the odds of x, not the odds of z."""
    one_way = metric(((None, (2, 1)), (None, None)))
    rays = Cone((one_way,), 2).rays()
    assert set(rays) == {(0, 1), (2, 1)}
    for x, z in permutations(range(2)):
        assert keeps((x, z), one_way.levels or ()) == (x <= 2 * z)
