# SPDX-License-Identifier: Apache-2.0
"""Small worlds with documents whose tables are true in them, for the tests of the budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism

from tests.frankly_protocol.audit.definitions import ONE, needed
from tests.frankly_protocol.samples import question, survey


@dataclass(frozen=True)
class Person:
    """People with equal data: their count, stratum, secrets by name, and answer to each block."""

    count: int
    stratum: int
    secrets: Mapping[str, int]
    answers: tuple[int, ...]


World = Sequence[Person]


def promise(
    world: World, secret: str, block: int, mechanism: Mechanism, *, stratified: bool
) -> Promise:
    """Return a lip promise at the mechanism's true level, over all people or within every stratum."""
    strata = sorted({p.stratum for p in world}) if stratified else [None]
    tables = tuple(
        tuple(
            tuple(
                sum(
                    p.count
                    for p in world
                    if z in (None, p.stratum) and p.secrets[secret] == s and p.answers[block] == x
                )
                for x in range(mechanism.answers)
            )
            for s in range(1 + max(p.secrets[secret] for p in world))
        )
        for z in strata
    )
    prior = Prior(secret, tuple(f"s{i}" for i in range(len(tables[0]))), tables, "a census")
    levels = [needed(mechanism, Claim("lip", ONE, rows))["level"] for rows in tables]
    assert None not in levels, "a world with a zero probability has no finite leakage"
    level = max(level for level in levels if level is not None)
    return Promise.under(Claim("lip", level.as_integer_ratio(), prior.table), prior)


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
