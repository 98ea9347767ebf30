# SPDX-License-Identifier: Apache-2.0
"""Unary, subset and product mechanisms, compared with a list of all their reports, and work limits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import lcm, prod
from random import Random

import pytest
from frankly_protocol.audit import NOTIONS, Claim, ceiling, require_private, worst
from frankly_protocol.audit.work import MAX_WORK, work
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_protocol.audit.definitions import ONE, needed, table

Measure = list[Fraction]
SHAPES = [(6,), (7,), (2, 4), (9,), (3, 3), (10,), (2, 5)]


def largest(
    columns: Sequence[Sequence[int]], pairs: Sequence[tuple[Measure, Measure]]
) -> Fraction | None:
    """Return the largest ratio, at least 1, of two averages over all reports; None if it is infinite."""
    n, d = 1, 1
    for A, C in pairs:
        scale = lcm(*(m.denominator for m in (*A, *C)))
        a, c = ([int(m * scale) for m in measure] for measure in (A, C))
        for column in columns:
            up, down = (sum(m * w for m, w in zip(side, column, strict=True)) for side in (a, c))
            if up * d > n * down:
                n, d = up, down
    return Fraction(n, d) if d else None


def measures(claim: Claim, answers: int) -> Iterator[tuple[Measure, Measure]]:
    """Return the pairs of distributions over answers that a notion compares."""
    joint = claim.joint or ()
    if claim.notion == "rldp":
        for (s, A), (t, C) in product(corners(claim), repeat=2):
            if s != t or claim.diagonal:
                yield A, C
    elif claim.notion == "secret-ldp":
        for first, second in permutations(joint, 2):
            yield answer_law([first], [True] * answers), answer_law([second], [True] * answers)
    else:
        sizes = claim.attributes or ()
        values = list(product(*map(range, sizes))) if sizes else [()] * answers
        for fixed in product(*((*range(size), None) for size in sizes)):
            inside = [
                all(k in (None, v) for k, v in zip(fixed, value, strict=True)) for value in values
            ]
            average = answer_law(joint, inside)
            for conditional in filter(None, (answer_law([row], inside) for row in joint)):
                yield conditional, average
                yield average, conditional


def answer_law(rows: Sequence[Sequence[int]], inside: Sequence[bool]) -> Measure:
    """Return the law of the answer in these rows, given that it is `inside`; empty if that has no mass."""
    counts = [sum(row[x] for row in rows) * ok for x, ok in enumerate(inside)]
    return [Fraction(n, sum(counts)) for n in counts] if any(counts) else []


def corners(claim: Claim) -> Iterator[tuple[int, Measure]]:
    """Return the vertices of every D_s as distributions over the answers (s, u)."""
    bounds = [[Fraction(*pair) for pair in row] for row in claim.lower_bounds or ()]
    for s, row in enumerate(bounds):
        for u in range(len(row)):
            vertex = [bound + (1 - sum(row)) * (u == v) for v, bound in enumerate(row)]
            yield (
                s,
                [
                    m
                    for t in range(len(bounds))
                    for m in (vertex if t == s else [Fraction(0)] * len(row))
                ],
            )


def oracle(mechanism: Mechanism, claim: Claim) -> Fraction | None:
    columns = list(table(mechanism).values())
    scale = lcm(*(m.denominator for column in columns for m in column))
    weights = [[int(m * scale) for m in column] for column in columns]
    if claim.notion == "ldp":
        ratios = [(max(column), min(column)) for column in weights]
        return (
            None
            if any(not low for _, low in ratios)
            else max(Fraction(high, low) for high, low in ratios)
        )
    if claim.notion == "metric-ldp":
        ratios = [
            (column[x] * q, column[z] * p)
            for x, row in enumerate(claim.levels or ())
            for z, (p, q) in ((z, ratio) for z, ratio in enumerate(row) if ratio)
            for column in weights
        ]
        if any(up and not down for up, down in ratios):
            return None
        return max(Fraction(1), *(Fraction(up, down) for up, down in ratios if down))
    if claim.notion == "dp":
        p, q = claim.level or ONE
        excess = max(
            sum(max(0, q * column[x] - p * column[z]) for column in weights)
            for x, z in permutations(range(mechanism.answers), 2)
        )
        return Fraction(excess, q * scale)
    pairs = list(measures(claim, mechanism.answers))
    if claim.notion != "dpv":
        return largest(weights, pairs)
    share = Fraction(
        sum((claim.joint or ())[claim.sensitive or 0]), sum(map(sum, claim.joint or ()))
    )
    return share * (largest(weights, [pairs[2 * (claim.sensitive or 0)]]) or 0)


def random_case(number: int) -> tuple[Mechanism, Claim]:
    rng = Random(number)
    sizes = SHAPES[number % len(SHAPES)]
    a = prod(sizes)
    mechanism: Mechanism
    if number % 3 == 0:
        keep, flip = rng.sample([0, 3, 8, 11, 15, 16] if number % 2 else range(1, 16), 2)
        mechanism = UnaryMechanism(4, a, keep, flip)
    elif number % 3 == 1 or len(sizes) == 1:
        mechanism = SubsetMechanism(4, a, rng.randrange(1, a), rng.choice([0, 16, *range(17)]))
    else:
        rows = [
            [rng.sample([(9, 4, 3), (2, 13, 1), (6, 6, 4), (5, 5, 6), (16, 0, 0)], k=size)]
            for size in sizes
        ]
        mechanism = ProductMechanism(tuple(DenseMechanism(4, tuple(row)) for (row,) in rows))
    notion = NOTIONS[rng.randrange(len(NOTIONS))]
    return mechanism, random_claim(rng, notion, sizes)


def random_claim(rng: Random, notion: str, sizes: tuple[int, ...]) -> Claim:
    a = prod(sizes)
    if notion == "ldp":
        return Claim(notion, ONE)
    if notion == "dp":
        return Claim(notion, rng.choice([ONE, (5, 4), (3, 1), (40, 1)]), delta=(0, 1))
    if notion == "metric-ldp":
        levels = [
            [rng.choice([None, (3, 2), (9, 4), (5, 1)]) if x != z else None for z in range(a)]
            for x in range(a)
        ]
        levels[a - 1][0] = (2, 1)
        return Claim(notion, ONE, levels=tuple(map(tuple, levels)))
    if notion == "rldp":
        secrets = rng.choice([s for s in range(2, a + 1) if a % s == 0])
        width = a // secrets
        bounds = []
        for _ in range(secrets):
            counts = [rng.choice([0, rng.randrange(9)]) for _ in range(width)]
            bounds.append(tuple((n, max(1, sum(counts)) + rng.randrange(4)) for n in counts))
        return Claim(notion, ONE, lower_bounds=tuple(bounds), diagonal=rng.random() < 0.5)
    rows = rng.choice([2, 2, 3])
    joint = tuple(
        tuple(rng.choice([0, 1, rng.randrange(50)]) + (x == s) for x in range(a))
        for s in range(rows)
    )
    claim = Claim(notion, (1, 1), joint)
    if notion == "alip":
        claim = replace(claim, low_level=ONE)
    return replace(
        claim,
        attributes=sizes if notion == "srlip" else None,
        sensitive=rng.randrange(rows) if notion == "dpv" else None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_the_needed_level_equals_that_of_a_list_of_all_reports(part: int) -> None:
    covered = set()
    for number in range(part * 1000, part * 1000 + 30):
        mechanism, claim = random_case(number)
        verdict = worst(mechanism, claim)
        levels = list(verdict.needed.values())
        ratio = None if None in levels else max(level for level in levels if level is not None)
        assert ratio == oracle(mechanism, claim), (mechanism, claim)
        covered.add((mechanism.kind, claim.notion))
    assert len(covered) > 10


LOOSE, TIGHT = ((1, 10),) * 3, ((1, 3),) * 3


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("second", [LOOSE, TIGHT, ((0, 1), (1, 2), (1, 4))], ids=str)
def test_rldp_of_subset_and_unary_with_and_without_diagonal(
    second: tuple[tuple[int, int], ...], diagonal: bool
) -> None:
    """The test covers every subset size; some weights make the reports inside or outside impossible."""
    claim = Claim("rldp", ONE, lower_bounds=(LOOSE, second), diagonal=diagonal)
    shapes = [SubsetMechanism(4, 6, size, inside) for size in range(1, 6) for inside in (0, 7, 16)]
    shapes += [
        UnaryMechanism(4, 6, keep, flip) for keep, flip in ((12, 3), (3, 12), (8, 0), (8, 16))
    ]
    for mechanism in shapes:
        [needed_level] = worst(mechanism, claim).needed.values()
        assert needed_level == oracle(mechanism, claim), mechanism


@pytest.mark.full_only
@pytest.mark.parametrize("part", range(20))
def test_the_needed_level_in_thousands_of_cases(part: int) -> None:
    for number in range(10**6 + part * 1000, 10**6 + part * 1000 + 300):
        mechanism, claim = random_case(number)
        levels = list(worst(mechanism, claim).needed.values())
        ratio = None if None in levels else max(level for level in levels if level is not None)
        assert ratio == oracle(mechanism, claim), (mechanism, claim)


def test_an_unchanged_posterior_names_a_report_that_can_be_sent() -> None:
    """Only answer 2 has mass, and its bit is never 1: a report with that bit has probability 0."""
    claim = Claim("dpv", ONE, ((0, 0, 1), (0, 0, 1)), sensitive=0)
    verdict = worst(UnaryMechanism(4, 3, 0, 1), claim)
    assert verdict.ratio == Fraction(1, 2)
    assert table(UnaryMechanism(4, 3, 0, 1))[verdict.report][2] > 0


RR = DenseMechanism(4, ((12, 4), (4, 12)))


def test_levels_and_ceilings_multiply_for_products_too_large_to_list() -> None:
    nine_factors = ProductMechanism((RR,) * 9)
    assert ceiling(nine_factors) == 3**9
    assert worst(nine_factors, Claim("ldp", ONE)).report == (0,) * 9
    # For (ε, δ) of nine factors, C(9, k) reports with k flips have the likelihood ratio 3^(9 − 2k).
    chances = [Fraction(3**9, 4**9) * Fraction(1, 3) ** k for k in range(10)]
    ways = [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    E = Fraction(100)
    delta = sum(
        (
            w * max(Fraction(0), c - E * r)
            for w, c, r in zip(ways, chances, reversed(chances), strict=True)
        ),
        Fraction(0),
    )
    assert worst(nine_factors, Claim("dp", (100, 1), delta=(0, 1))).ratio == delta
    require_private(nine_factors, Claim("dp", (100, 1), delta=delta.as_integer_ratio()))


def test_composing_a_table_with_itself_needs_at_most_the_basic_rule() -> None:
    claim = Claim("dp", (2, 1), delta=(0, 1))
    single = worst(RR, claim).ratio
    both = worst(ProductMechanism((RR, RR)), Claim("dp", (4, 1), delta=(0, 1))).ratio
    assert single is not None
    assert both is not None
    assert single == Fraction(12 - 8, 16)
    assert 0 < both <= 2 * single  # Thesis, Theorem 3.5


def test_needed_levels_of_a_table_match_the_definition() -> None:
    mechanism = DenseMechanism(4, ((9, 4, 3), (2, 13, 1), (6, 6, 4)))
    for level in (ONE, (5, 4), (3, 1), (9, 2), (13, 1)):
        claim = Claim("dp", level, delta=(0, 1))
        assert worst(mechanism, claim).needed == needed(mechanism, claim)


LONG: list[tuple[Mechanism, Claim]] = [
    (
        ProductMechanism((DenseMechanism(4, ((1,) * 16, (1,) * 16)),) * 4),
        Claim("lip", ONE, ((1,) * 16, (2,) * 16)),
    ),
    (UnaryMechanism(4, 256, 8, 3), Claim("srlip", ONE, ((1,) * 256,) * 64, attributes=(2,) * 8)),
    (SubsetMechanism(4, 1000, 9, 3), Claim("secret-ldp", ONE, ((1,) * 1000,) * 200)),
    (
        ProductMechanism(
            (
                DenseMechanism(
                    12, tuple(tuple(1 + (x == y) * 4080 for y in range(16)) for x in range(16))
                ),
            )
            * 2
        ),
        Claim("dp", (2, 1), delta=(0, 1)),
    ),
]


@pytest.mark.parametrize(("mechanism", "claim"), LONG[:3], ids=["product", "unary", "subset"])
def test_claims_that_need_too_much_work_are_refused_at_once(
    mechanism: Mechanism, claim: Claim
) -> None:
    with pytest.raises(DocumentRejected) as caught:
        worst(mechanism, claim)
    reason = (
        "privacy" if mechanism.kind == "product" else "work_limit"
    )  # no product of this size can ever be verified
    assert (caught.value.reason, caught.value.field) == (reason, "notion")


def test_equal_likelihood_ratios_count_as_work_once() -> None:
    """All 240 pairs of answers of a factor have equal likelihood ratios, and only distinct ratios count."""
    mechanism, claim = LONG[3]
    assert work(mechanism, claim) < MAX_WORK // 20
