# SPDX-License-Identifier: Apache-2.0
"""Small worlds, documents for these worlds, and the true leakage of a report by brute force.

A world lists groups of people: their count, stratum, secrets, and answer to each block. The tables
of the documents are margins of the world. `frankly_protocol.audit` is used only to compute a
block's ceiling.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from math import prod

from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism, columns

from tests.frankly_protocol.samples import question, survey


@dataclass(frozen=True)
class Person:
    """People with equal data: their count, stratum, secrets by name, and answer to each block."""

    count: int
    stratum: int
    secrets: Mapping[str, int]
    answers: tuple[int, ...]


World = Sequence[Person]
ATTRIBUTES = (2, 2)
"""Sizes of the attributes that make up an answer under srlip."""
Chances = list[list[Fraction]]
"""P(y|x): for every symbol, a list over the answers."""


def chances(mechanism: Mechanism) -> Chances:
    """Return P(y|x) for every symbol of positive probability."""
    return [column for column in map(list, columns(mechanism).values()) if any(column)]


def results(mechanisms: Iterable[Mechanism]) -> Iterator[Callable[[tuple[int, ...]], Fraction]]:
    """Yield, for every joint result of several blocks, a function from answers to the result's
    probability."""
    for rows in product(*map(chances, mechanisms)):
        yield lambda answers, rows=rows: prod(
            (row[x] for row, x in zip(rows, answers, strict=True)), start=Fraction(1)
        )


def groups(world: World, by_stratum: bool) -> list[World]:
    """Return the people of each stratum, or all people as one group."""
    if not by_stratum:
        return [world]
    return [
        [p for p in world if p.stratum == z and p.count] for z in sorted({p.stratum for p in world})
    ]


def leakage(
    world: World, secret: str, mechanisms: Sequence[Mechanism], blocks: Sequence[int]
) -> tuple[Fraction, Fraction]:
    """Return the largest lift of a secret's value, up or down, and the largest change of odds."""
    lift = odds = Fraction(1)
    values = sorted({p.secrets[secret] for p in world if p.count})
    for chance in results(mechanisms):
        overall = _mean(world, chance, blocks)
        per_value = [
            _mean([p for p in world if p.secrets[secret] == s], chance, blocks) for s in values
        ]
        if overall:
            assert min(per_value), "a world with a zero probability has no finite leakage"
            lift = max(lift, max(per_value) / overall, overall / min(per_value))
            odds = max(odds, max(per_value) / min(per_value))
    return lift, odds


def one_side(world: World, secret: str, mechanism: Mechanism, block: int) -> dict[str, Fraction]:
    """Return the largest P(y|s)/P(y), named pml, and the largest P(y)/P(y|s), named pmc."""
    sides = {"pml": Fraction(1), "pmc": Fraction(1)}
    for chance in results([mechanism]):
        overall = _mean(world, chance, [block])
        for s in {p.secrets[secret] for p in world if p.count}:
            likelihood = _mean([p for p in world if p.secrets[secret] == s], chance, [block])
            sides["pml"] = max(sides["pml"], likelihood / overall)
            sides["pmc"] = max(sides["pmc"], overall / likelihood)
    return sides


def sureness(world: World, secret: str, value: int, mechanisms: Sequence[Mechanism]) -> Fraction:
    """Return the largest P(secret = value | result)."""
    blocks, largest = range(len(mechanisms)), Fraction(0)
    for chance in results(mechanisms):
        holders = [p for p in world if p.secrets[secret] == value]
        if weight := _mean(world, chance, blocks) * sum(p.count for p in world):
            largest = max(
                largest, _mean(holders, chance, blocks) * sum(p.count for p in holders) / weight
            )
    return largest


def excess(world: World, secret: str, mechanisms: Sequence[Mechanism], ratio: Fraction) -> Fraction:
    """Return the least δ with P(R | s) ≤ ratio · P(R | t) + δ for all sets R of results."""
    values, blocks = sorted({p.secrets[secret] for p in world}), range(len(mechanisms))
    result_rows = [
        [_mean([p for p in world if p.secrets[secret] == s], chance, blocks) for s in values]
        for chance in results(mechanisms)
    ]
    pairs = product(range(len(values)), repeat=2)
    return max(
        sum((max(Fraction(0), row[s] - ratio * row[t]) for row in result_rows), Fraction(0))
        for s, t in pairs
    )


def answer_odds(mechanisms: Sequence[Mechanism]) -> Fraction | None:
    """Return the largest P(y|x)/P(y|x') over all results and answers, which bounds the odds under any prior."""
    if any(0 in column for mechanism in mechanisms for column in chances(mechanism)):
        return None
    return prod((max(max(c) / min(c) for c in chances(m)) for m in mechanisms), start=Fraction(1))


def strata_leakage(world: World, secret: str) -> tuple[Fraction, Fraction]:
    """Return the largest lift and change of odds of a secret that the stratum alone causes."""
    values = sorted({p.secrets[secret] for p in world})
    before = [Fraction(sum(p.count for p in world if p.secrets[secret] == s)) for s in values]
    lift = odds = Fraction(1)
    for group in groups(world, True):
        after = [Fraction(sum(p.count for p in group if p.secrets[secret] == s)) for s in values]
        lifts = [(a / sum(after)) / (b / sum(before)) for a, b in zip(after, before, strict=True)]
        lift, odds = max(lift, *lifts, 1 / min(lifts)), max(odds, max(lifts) / min(lifts))
    return lift, odds


def table(
    world: World, secret: str, block: int, answers: int, values: range
) -> tuple[tuple[int, ...], ...]:
    """Return the counts [s][x] of a secret and a block's answers in a world."""
    return tuple(
        tuple(
            sum(p.count for p in world if p.secrets[secret] == s and p.answers[block] == x)
            for x in range(answers)
        )
        for s in values
    )


def pair_levels(mechanism: Mechanism) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """Return the largest Q(y|x)/Q(y|z) of every pair of answers, or None if it is infinite."""
    a = mechanism.answers
    levels: list[list[tuple[int, int] | None]] = [[None] * a for _ in range(a)]
    for x, z in permutations(range(a), 2):
        columns = chances(mechanism)
        if all(column[z] or not column[x] for column in columns):
            ratio = max(column[x] / column[z] for column in columns if column[z])
            levels[x][z] = ratio.as_integer_ratio()
    return tuple(map(tuple, levels))


def promise(
    world: World, notion: str, secret: str, block: int, mechanism: Mechanism, *, stratified: bool
) -> Promise:
    """Return a promise at the mechanism's true level, over all people or within every stratum."""
    if notion == "metric-ldp":
        return Promise(Claim(notion, (1, 1), levels=pair_levels(mechanism)))
    values = range(1 + max(p.secrets[secret] for p in world))
    tables = tuple(
        table(group, secret, block, mechanism.answers, values)
        for group in groups(world, stratified)
    )
    prior = Prior(secret, tuple(f"s{i}" for i in range(len(tables[0]))), tables, "a census")
    leakages = [leakage(group, secret, [mechanism], [block]) for group in groups(world, stratified)]
    lift, odds = max(lift for lift, _ in leakages), max(odds for _, odds in leakages)
    level = odds if notion == "secret-ldp" else lift
    if notion == "srlip":
        level = max(
            lift_beside(group, secret, mechanism, block) for group in groups(world, stratified)
        )
    if notion in ("pml", "pmc"):
        level = max(
            one_side(group, secret, mechanism, block)[notion] for group in groups(world, stratified)
        )
    claim_fields: dict[str, object] = {"level": level.as_integer_ratio()}
    if notion in ("pml", "pmc"):
        side = {"pml": "level", "pmc": "low_level"}[notion]
        claim = Claim("alip", None, joint=prior.table)
        return Promise.under(replace(claim, **{side: level.as_integer_ratio()}), prior)  # type: ignore[arg-type]
    if notion == "alip":
        claim_fields["low_level"] = level.as_integer_ratio()
    if notion == "srlip":
        claim_fields["attributes"] = ATTRIBUTES
    if notion == "dpv":
        largest_posterior = max(
            sureness_of_block(group, secret, 1, mechanism, block)
            for group in groups(world, stratified)
        )
        claim_fields = {"level": largest_posterior.as_integer_ratio(), "sensitive": 1}
    return Promise.under(Claim(notion, joint=prior.table, **claim_fields), prior)  # type: ignore[arg-type]


def lift_beside(world: World, secret: str, mechanism: Mechanism, block: int) -> Fraction:
    """Return the largest lift for a reader who knows any subset of the attributes that make up an answer."""
    largest = Fraction(1)
    for known_attributes in ((), (0,), (1,), (0, 1)):
        for values in product(*(range(ATTRIBUTES[j]) for j in known_attributes)):
            matching = [
                p
                for p in world
                if all(
                    _attributes_of(p.answers[block])[j] == v
                    for j, v in zip(known_attributes, values, strict=True)
                )
            ]
            largest = max(largest, leakage(matching, secret, [mechanism], [block])[0])
    return largest


def _attributes_of(answer: int) -> tuple[int, int]:
    return divmod(answer, ATTRIBUTES[1])


def sureness_of_block(
    world: World, secret: str, value: int, mechanism: Mechanism, block: int
) -> Fraction:
    """Return the largest P(secret = value | symbol of one block)."""
    return sureness(
        [replace(p, answers=(p.answers[block],)) for p in world], secret, value, [mechanism]
    )


def block_of(name: str, mechanism: Mechanism, *promises: Promise) -> Block:
    """Return a block with one question."""
    one_question = question(name, *(f"c{x}" for x in range(mechanism.answers)))
    prior = (1,) * mechanism.answers
    return Block(
        name,
        (one_question,),
        mechanism,
        promises,
        prior,
        stated_ceiling(mechanism),
        "optimal",
        None,
    )


def document_of(*blocks: Block, strata: int = 1) -> SurveyDocument:
    """Return a survey with a public question of `strata` choices, or without a public question if
    `strata` is 1."""
    public = (question("region", *(f"r{z}" for z in range(strata))),) if strata > 1 else ()
    document = replace(survey(), blocks=blocks, strata=public)
    document.require_private()
    return document


def _mean(
    world: World, chance: Callable[[tuple[int, ...]], Fraction], blocks: Iterable[int]
) -> Fraction:
    """Return the probability of a result among these people."""
    chosen = tuple(blocks)
    total = sum((p.count * chance(tuple(p.answers[b] for b in chosen)) for p in world), Fraction(0))
    return total / sum(p.count for p in world)
