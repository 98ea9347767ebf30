# SPDX-License-Identifier: Apache-2.0
"""Privacy notions as the papers define them, computed by brute force with Fractions, and random
claims.

This module shares no code with the verifier: it sums every conditional probability from the joint
law of (S, X, Y), compares all pairs, and lists the vertices of the robust notion's sets.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, pairwise, permutations, product
from math import prod

from frankly_protocol.audit import AVERAGE, NOTIONS, Claim
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    Symbol,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from hypothesis import strategies as st

Condition = tuple[int | None, ...]
Place = tuple[Symbol, tuple[int, int], Condition | None]
Levels = dict[str, Fraction | None]

ONE = (1, 1)


@lru_cache(maxsize=64)
def table(mechanism: AnyMechanism) -> dict[Symbol, list[Fraction]]:
    """Return Q(y|·) of every symbol that can be sent, computed from the definition of each kind."""
    columns: dict[Symbol, list[Fraction]] = {}
    if isinstance(mechanism, AgreementMechanism):
        return dict(agreement_table(mechanism).items())
    D, a = 1 << mechanism.bits, mechanism.answers
    if isinstance(mechanism, DenseMechanism):
        columns = {
            y: [Fraction(row[y], D) for row in mechanism.weights] for y in range(mechanism.reports)
        }
    elif isinstance(mechanism, UnaryMechanism):
        for word in product((0, 1), repeat=a):
            ones = [
                [mechanism.keep if x == z else mechanism.flip for z in range(a)] for x in range(a)
            ]
            columns[sum(bit << x for x, bit in enumerate(word))] = [
                Fraction(prod(n if bit else D - n for n, bit in zip(row, word, strict=True)), D**a)
                for row in ones
            ]
    elif isinstance(mechanism, SubsetMechanism):
        sets = list(combinations(range(a), mechanism.size))
        chance = Fraction(mechanism.inside, D)
        for B in sets:
            with_x = [sum(x in C for C in sets) for x in range(a)]
            columns[sum(1 << x for x in B)] = [
                chance / with_x[x] if x in B else (1 - chance) / (len(sets) - with_x[x])
                for x in range(a)
            ]
    else:
        for y in product(*(range(f.reports) for f in mechanism.factors)):
            factor_columns = [
                [Fraction(row[v], D) for row in f.weights]
                for f, v in zip(mechanism.factors, y, strict=True)
            ]
            columns[y] = [prod(chances, start=Fraction(1)) for chances in product(*factor_columns)]
    return {y: column for y, column in columns.items() if any(column)}


def agreement_table(mechanism: AgreementMechanism) -> dict[tuple[int, ...], list[Fraction]]:
    """Return Q(y|·) by joint answer in row-major order: for each truth, the weights divided by their sum."""
    truths = list(product(*map(range, mechanism.choices)))
    columns: dict[tuple[int, ...], list[Fraction]] = {}
    for c, component in enumerate(mechanism.components):
        picks = [list(combinations(pool.parts, pool.pick)) for pool in component.pools]
        pools = [pool for pool in component.pools for _ in range(pool.pick)]
        sets = [_sets(pool.cover.answers, pool.cover.to_json()) for pool in pools]
        chance = Fraction(component.chance, 2**mechanism.bits * prod(map(len, picks)))
        for parts in (tuple(chain.from_iterable(pick)) for pick in product(*picks)):
            weights: dict[tuple[int, ...], list[int]] = {}
            for drawn in product(*(range(len(cover)) for cover in sets)):
                members = [cover[number] for cover, number in zip(sets, drawn, strict=True)]
                base = prod(weight for _, weight in members)
                scores = [
                    sum(
                        pool.score * (_joint(mechanism, part, truth) in held)
                        for pool, part, (held, _) in zip(pools, parts, members, strict=True)
                    )
                    for truth in truths
                ]
                symbol = (c, *chain.from_iterable(zip(parts, drawn, strict=True)))
                weights[symbol] = [
                    base * (mechanism.disagree, mechanism.agree)[score >= component.threshold]
                    for score in scores
                ]
            sums = [sum(column) for column in zip(*weights.values(), strict=True)]
            for symbol, row in weights.items():
                columns[symbol] = [
                    chance * Fraction(w, total) for w, total in zip(row, sums, strict=True)
                ]
    return columns


def _sets(answers: int, cover: int | list[list[str | int]]) -> list[tuple[set[int], int]]:
    if isinstance(cover, int):
        return [(set(chosen), 1) for chosen in combinations(range(answers), cover)]
    return [
        ({x for x in range(answers) if int(str(mask), 16) >> x & 1}, int(weight))
        for mask, weight in cover
    ]


def _joint(mechanism: AgreementMechanism, part: int, truth: tuple[int, ...]) -> int:
    sizes = [mechanism.choices[question] for question in mechanism.parts[part]]
    answers = [truth[question] for question in mechanism.parts[part]]
    return list(product(*map(range, sizes))).index(tuple(answers))


def needed(mechanism: AnyMechanism, claim: Claim) -> Levels:
    """Return the largest ratio of each side, or None if it is infinite."""
    if claim.notion == "dp":
        return {
            "delta": max(
                excess(mechanism, claim, pair) for pair in permutations(range(mechanism.answers), 2)
            )
        }
    start = Fraction(claim.notion != "dpv")
    levels: Levels = (
        {"level": start, "low_level": start} if claim.notion == "alip" else {"level": start}
    )
    for field, place in places(mechanism, claim):
        value = ratio_at(mechanism, claim, place)
        largest = levels[field]
        if value == "endless" or largest is None:
            levels[field] = None
        elif isinstance(value, Fraction):
            levels[field] = max(largest, value)
    return levels


def excess(mechanism: AnyMechanism, claim: Claim, pair: tuple[int, int]) -> Fraction:
    """Return the largest Q(T|x) − E·Q(T|z) over sets T of reports, attained by all y with Q(y|x) >
    E·Q(y|z)."""
    x, z = pair
    E = Fraction(*(claim.level or ONE))
    return sum((max(Fraction(0), q[x] - E * q[z]) for q in table(mechanism).values()), Fraction(0))


def places(mechanism: AnyMechanism, claim: Claim) -> Iterator[tuple[str, Place]]:
    """Yield every pair in every column that the definition compares, with the level for this pair."""
    low_field = "low_level" if claim.notion == "alip" else "level"
    secrets = range(len(claim.joint or claim.lower_bounds or ()))
    pairs: list[tuple[str, tuple[int, int]]]
    if claim.notion == "ldp":
        pairs = [("level", (x, z)) for x, z in product(range(mechanism.answers), repeat=2)]
    elif claim.notion == "metric-ldp":
        answers = range(mechanism.answers)
        pairs = [
            ("level", (x, z)) for x, z in product(answers, answers) if (claim.levels or ())[x][z]
        ]
    elif claim.notion == "secret-ldp":
        pairs = [("level", (s, t)) for s, t in product(secrets, repeat=2)]
    elif claim.notion == "rldp":
        pairs = [
            ("level", (s, t)) for s, t in product(secrets, repeat=2) if claim.diagonal or s != t
        ]
    elif claim.notion == "dpv":
        pairs = [("level", (claim.sensitive or 0, AVERAGE))]
    else:
        pairs = [("level", (s, AVERAGE)) for s in secrets] + [
            (low_field, (AVERAGE, s)) for s in secrets
        ]
    for y, condition, (field, pair) in product(table(mechanism), conditions(claim), pairs):
        yield field, (y, pair, condition)


def conditions(claim: Claim) -> list[Condition | None]:
    """Return every x_J of every subset J, or [None] for notions without attributes."""
    if claim.attributes is None:
        return [None]
    places = range(len(claim.attributes))
    every_condition: list[Condition | None] = []
    for J in chain.from_iterable(combinations(places, k) for k in range(len(places) + 1)):
        for values in product(*(range(claim.attributes[j]) for j in J)):
            fixed = dict(zip(J, values, strict=True))
            every_condition.append(tuple(fixed.get(j) for j in places))
    return every_condition


def ratio_at(mechanism: AnyMechanism, claim: Claim, place: Place) -> Fraction | str | None:
    """Return the ratio of one pair, "endless" for a positive number over zero, or None if it is undefined."""
    y, (a, b), condition = place
    if claim.notion == "ldp":
        up, down = table(mechanism)[y][a], table(mechanism)[y][b]
    elif claim.notion == "metric-ldp":
        limit = Fraction(*((claim.levels or ())[a][b] or ONE))
        up, down = table(mechanism)[y][a], limit * table(mechanism)[y][b]
    elif claim.notion == "rldp":
        up = max(average(mechanism, y, a, R) for R in vertices(claim, a))
        down = min(average(mechanism, y, b, R) for R in vertices(claim, b))
    elif claim.notion == "dpv":
        up, down = (
            probability(mechanism, claim, y, a, None)[1],
            probability(mechanism, claim, y, AVERAGE, None)[1],
        )
    else:
        sides = [probability(mechanism, claim, y, s, condition) for s in (a, b)]
        if not all(mass for mass, _ in sides):
            return None  # P(·|s, x_J) is undefined
        up, down = (reported / mass for mass, reported in sides)
    if down:
        return up / down
    return "endless" if up else None


def probability(
    mechanism: AnyMechanism, claim: Claim, y: Symbol, s: int, condition: Condition | None
) -> tuple[Fraction, Fraction]:
    """Return P(s, x_J) and P(s, x_J, y); s = AVERAGE sums over every s."""
    joint = claim.joint or ()
    sizes = claim.attributes or (mechanism.answers,)
    fixed = condition or (None,) * len(sizes)
    total, column = sum(map(sum, joint)), table(mechanism)[y]
    prior_weight, joint_weight = 0, Fraction(0)
    for t, row in enumerate(joint):
        for x, values in enumerate(product(*map(range, sizes))):
            if s in (t, AVERAGE) and all(
                k in (None, v) for k, v in zip(fixed, values, strict=True)
            ):
                prior_weight += row[x]
                joint_weight += row[x] * column[x]
    return Fraction(prior_weight, total), joint_weight / total


def vertices(claim: Claim, s: int) -> list[list[Fraction]]:
    """Return the vertices of D_s = {R ≥ L[s]}: L[s] with the whole slack on one u."""
    L = [Fraction(*bound) for bound in (claim.lower_bounds or ())[s]]
    slack = 1 - sum(L)
    return [[bound + slack * (u == v) for v, bound in enumerate(L)] for u in range(len(L))]


def average(mechanism: AnyMechanism, y: Symbol, s: int, R: list[Fraction]) -> Fraction:
    """Return P(y|s) if U has the distribution R; answers are pairs (s, u)."""
    return sum((r * table(mechanism)[y][s * len(R) + u] for u, r in enumerate(R)), Fraction(0))


@st.composite
def mechanisms_over(draw: st.DrawFn, answers: int, bits: int = 5) -> DenseMechanism:
    """Draw a table over this many answers; weights may be zero and columns may be equal."""
    reports = draw(st.integers(2, 4))
    rows = []
    for _ in range(answers):
        cuts = sorted(
            draw(st.lists(st.integers(0, 1 << bits), min_size=reports - 1, max_size=reports - 1))
        )
        rows.append([after - before for before, after in pairwise([0, *cuts, 1 << bits])])
    used = [y for y in range(reports) if any(row[y] for row in rows)]
    return DenseMechanism(bits, tuple(tuple(row[y] for y in used) for row in rows))


@st.composite
def structured_over(draw: st.DrawFn, sizes: tuple[int, ...]) -> Mechanism:
    """Draw a mechanism without a table for answers of these sizes; probabilities may be 0 or 1."""
    a, weight = prod(sizes), st.integers(0, 16)
    kinds = ["unary", "subset", *(["product"] if len(sizes) > 1 else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "unary":
        keep, flip = draw(st.tuples(weight, weight).filter(lambda pair: pair[0] != pair[1]))
        return UnaryMechanism(4, a, keep, flip)
    if kind == "subset":
        return SubsetMechanism(4, a, draw(st.integers(1, a - 1)), draw(weight))
    return ProductMechanism(tuple(draw(mechanisms_over(size)) for size in sizes))


@st.composite
def structured_cases(draw: st.DrawFn) -> tuple[Mechanism, Claim]:
    """Draw a mechanism without a table, and a claim at the least level with the data of its notion."""
    sizes = draw(st.sampled_from([(2,), (3,), (4,), (2, 2)]))  # test_kinds has larger sizes
    return draw(structured_over(sizes)), draw(claims(sizes))


@st.composite
def cases(draw: st.DrawFn) -> tuple[DenseMechanism, Claim]:
    """Draw a table, and a claim at the least level with the data that its notion needs."""
    sizes = draw(st.sampled_from([(2,), (5,), (2, 2), (2, 3), (3, 2), (2, 2, 2)]))
    return draw(mechanisms_over(prod(sizes))), draw(claims(sizes))


@st.composite
def claims(draw: st.DrawFn, sizes: tuple[int, ...]) -> Claim:
    """Draw a claim of any notion at the least level, for answers that consist of attributes of
    these sizes."""
    notion = draw(st.sampled_from(NOTIONS))
    if notion == "ldp":
        return Claim(notion, ONE)
    if notion == "dp":
        return Claim(notion, draw(st.sampled_from([ONE, (6, 5), (2, 1), (9, 1)])), delta=(0, 1))
    if notion == "metric-ldp":
        a = prod(sizes)
        some = st.sampled_from([None, None, (3, 2), (5, 2), (7, 1)])
        drawn = [[draw(some) if x != z else None for z in range(a)] for x in range(a)]
        drawn[0][1] = drawn[0][1] or (2, 1)
        return Claim(notion, ONE, levels=tuple(map(tuple, drawn)))
    if notion == "rldp":
        secrets = draw(
            st.sampled_from([s for s in range(2, prod(sizes) + 1) if prod(sizes) % s == 0])
        )
        width = prod(sizes) // secrets
        row = st.lists(st.integers(0, 6), min_size=width, max_size=width)
        bounds = []
        for counts in draw(st.lists(row, min_size=secrets, max_size=secrets)):
            d = max(1, sum(counts)) + draw(st.integers(0, 5))  # d = Σ: the bounds leave no slack
            bounds.append(tuple((2 * n, 2 * d) if n % 2 else (n, d) for n in counts))
        return Claim(notion, ONE, lower_bounds=tuple(bounds), diagonal=draw(st.booleans()))
    row = st.lists(st.integers(0, 3), min_size=prod(sizes), max_size=prod(sizes)).filter(any)
    joint = tuple(map(tuple, draw(st.lists(row, min_size=2, max_size=3))))
    return Claim(
        notion,
        ONE,
        joint,
        low_level=ONE if notion == "alip" else None,
        attributes=sizes if notion == "srlip" else None,
        sensitive=draw(st.integers(0, len(joint) - 1)) if notion == "dpv" else None,
    )


def form(
    components: int, pools: tuple[Pool, ...], threshold: int, choices: int = 4, together: int = 1
) -> AgreementMechanism:
    """Return a form with the pools' questions and equal components; each part has `together` questions."""
    parts = max(max(pool.parts) for pool in pools) + 1
    chances = [(1 << 48) // components] * components
    chances[0] += (1 << 48) - sum(chances)
    return AgreementMechanism(
        48,
        3,
        1,
        (choices,) * (parts * together),
        tuple(tuple(range(i * together, (i + 1) * together)) for i in range(parts)),
        tuple(Component(chance, threshold, pools) for chance in chances),
    )


def singles(cover: Cover, score: int = 1) -> tuple[Pool, ...]:
    """Return 100 pools with one question each."""
    return tuple(Pool((i,), 1, cover, score) for i in range(100))


def pairs_of(count: int) -> Cover:
    """Return sets of joint answers, out of 256, and their complements, with large weights."""
    full = (1 << 256) - 1
    return Cover(
        256, None, tuple((mask, 1 << 40) for m in range(1, count + 1) for mask in (m, full ^ m))
    )


HEAVY = Cover(4, None, tuple((1 << x, (1 << 51) - 1) for x in range(4)))
LARGE_FORMS: dict[str, AgreementMechanism] = {
    "long numbers, one pool": form(3, (Pool(tuple(range(100)), 100, HEAVY, 8),), 400),
    "long numbers, 100 pools": form(24, singles(HEAVY, 8), 50),
    "most components": form(256, singles(Cover(2, 1)), 1, choices=2),
    "joint answers": form(
        1, tuple(Pool((i,), 1, pairs_of(26)) for i in range(50)), 1, choices=16, together=2
    ),
    "sets of a size": form(2, (Pool((0, 1), 2, Cover(81, 2)),), 2, choices=9, together=2),
}
"""Forms near the limit of cells or of the document's size."""
