# SPDX-License-Identifier: Apache-2.0
"""Surveys with every mechanism kind, their reports, and the counts that follow from the definitions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

from frankly_protocol.audit import Claim, level_for, stated_ceiling
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.report import Report
from frankly_server.store import CountKey, Database, DayKey, PairKey, ReportRow, Transaction

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.samples import put

D = 1 << 48
REGIONS = ("north", "south")
SMALL = 10  # largest number of answers for which a set is counted as one symbol


def dense(answers: int, reports: int, rng: Random) -> DenseMechanism:
    """Draw a table without zeros."""
    rows = []
    for _ in range(answers):
        cuts = sorted(rng.sample(range(1, D), reports - 1))
        rows.append(tuple(b - a for a, b in zip([0, *cuts], [*cuts, D], strict=True)))
    return DenseMechanism(48, tuple(rows))


def mechanisms(rng: Random) -> list[Mechanism]:
    """Draw one mechanism of every kind in random order, with small and large sets."""
    few, many = rng.randint(2, SMALL), rng.randint(SMALL + 1, 16)
    keep, flip = rng.randint(D // 2, D), rng.randint(1, D // 3)
    product = ProductMechanism((dense(2, 3, rng), dense(3, 2, rng)))
    found: list[Mechanism] = [
        dense(3, 4, rng),
        dense(2, 2, rng),
        product,
        UnaryMechanism(48, few, keep, flip),
        UnaryMechanism(48, many, keep, flip),
        SubsetMechanism(48, many, rng.randint(1, many - 1), D // 4),
        SubsetMechanism(48, few, rng.randint(1, few - 1), D // 8),
    ]
    rng.shuffle(found)
    return found


def block(name: str, mechanism: Mechanism) -> Block:
    """Return a block with one question, two questions above 64 answers, or one question per factor
    of a product."""
    sizes = [mechanism.answers] if mechanism.answers <= 64 else [2, mechanism.answers // 2]
    if isinstance(mechanism, ProductMechanism):
        sizes = [factor.answers for factor in mechanism.factors]
    asked = tuple(
        question(f"{name}-{j}", *(f"c{x}" for x in range(size))) for j, size in enumerate(sizes)
    )
    promise = Promise(Claim("ldp", level_for(Fraction(5))))
    prior = (1,) * mechanism.answers
    return Block(
        name, asked, mechanism, (promise,), prior, stated_ceiling(mechanism), "made-up", None
    )


def symbols(drawn: Sequence[Any], rng: Random) -> tuple[Any, ...]:
    """Draw the symbols of a report in JSON form, for random truths."""
    truths = [min(rng.randrange(m.answers), rng.randrange(m.answers)) for m in drawn]
    return tuple(
        m.symbol_json(m.sample(x, rng.getrandbits)) for m, x in zip(drawn, truths, strict=True)
    )


def singles(drawn: Sequence[Mechanism], rows: Iterable[ReportRow]) -> Counter[CountKey]:
    """Count every symbol by the definitions; -1 for large sets."""
    return Counter(
        CountKey(row.document, b, row.strata, number(m, row.symbols[b]))
        for row in rows
        for b, m in enumerate(drawn)
    )


def pairs(drawn: Sequence[Mechanism], rows: Iterable[ReportRow]) -> Counter[PairKey]:
    """Count pairs by the definitions: positions of large sets, symbols of blocks without sets."""
    found: Counter[PairKey] = Counter()
    for row in rows:
        for b, m in enumerate(drawn):
            if isinstance(m, UnaryMechanism | SubsetMechanism) and m.answers > SMALL:
                bits = bin(int(str(row.symbols[b]), 16))[:1:-1]
                held = [x for x, bit in enumerate(bits) if bit == "1"]
                found.update(
                    PairKey(row.document, b, b, row.strata, x, z)
                    for x in held
                    for z in held
                    if x <= z
                )
        tables = [
            b for b, m in enumerate(drawn) if isinstance(m, DenseMechanism | ProductMechanism)
        ]
        for b, c in combinations(tables, 2):
            numbers = number(drawn[b], row.symbols[b]), number(drawn[c], row.symbols[c])
            found[PairKey(row.document, b, c, row.strata, *numbers)] += 1
    return found


def by_day(
    drawn: Sequence[Mechanism], rows: Iterable[ReportRow], days: Mapping[str, str]
) -> Counter[DayKey]:
    """Count by day, by the definitions: single symbols, and pairs of positions of large sets."""
    found: Counter[DayKey] = Counter()
    for row in rows:
        day = days[row.id]
        for key, n in singles(drawn, [row]).items():
            found[DayKey(key.document, key.block, key.stratum, day, key.symbol, -1)] += n
        for pair, n in pairs(drawn, [row]).items():
            if pair.block == pair.other:
                found[
                    DayKey(
                        pair.document, pair.block, pair.stratum, day, pair.symbol, pair.other_symbol
                    )
                ] += n
    return found


def number(mechanism: Mechanism, symbol: Any) -> int:
    """Return a symbol's index among all symbols of its mechanism; -1 for large sets."""
    if isinstance(mechanism, ProductMechanism):
        return list(mechanism.symbols()).index(tuple(symbol))
    if isinstance(mechanism, DenseMechanism):
        return int(symbol)
    return int(symbol, 16) if mechanism.answers <= SMALL else -1


def kept(
    tx: Transaction, digest: str, blocks: int
) -> tuple[dict[CountKey, int], dict[PairKey, int]]:
    """Return all counts of a document."""
    found: dict[PairKey, int] = {}
    for b in range(blocks):
        for c in range(blocks):
            found.update(tx.counts.pairs(digest, b, c))
    return dict(tx.counts.of_document(digest)), found


def drawn_survey(database: Database, rng: Random) -> tuple[SurveyDocument, list[Mechanism]]:
    """Publish a survey in two regions with a random mechanism of every kind."""
    drawn = mechanisms(rng)
    blocks = [block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)]
    return put(database, replace(survey(*blocks), strata=(question("region", *REGIONS),))), drawn


def reports(document: SurveyDocument, drawn: list[Mechanism], rng: Random, n: int) -> list[Report]:
    """Return n reports with random symbols and regions."""
    return [
        Report(
            document.digest,
            f"{rng.getrandbits(128):032x}",
            symbols(drawn, rng),
            {"region": rng.choice(REGIONS)},
        )
        for _ in range(n)
    ]
