# SPDX-License-Identifier: Apache-2.0
"""Surveys with fixed mechanisms (no designer), stored as published, and random reports on them."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from frankly_protocol.audit import Claim, level_for, stated_ceiling
from frankly_protocol.blocks import Block, Choice, Promise, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, SigningKey
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, UnaryMechanism
from frankly_server.store import Database, DocumentRow, ReportRow, SurveyRow

D = 1 << 48
DRAWN = 4_000
"""Number of reports that are drawn; further reports repeat them under other ids."""


def _table(answers: int) -> DenseMechanism:
    """Return randomised response: the truth is about e times as likely as each other answer."""
    off_diagonal = int(D / (answers - 1 + 2.71828))
    diagonal = D - (answers - 1) * off_diagonal
    return DenseMechanism(
        48,
        tuple(
            tuple(diagonal if x == y else off_diagonal for y in range(answers))
            for x in range(answers)
        ),
    )


def _unary(answers: int) -> UnaryMechanism:
    """Return OUE at ε = 1."""
    return UnaryMechanism(48, answers, D // 2, int(D / 3.71828))


CASES: dict[str, tuple[Mechanism, ...]] = {
    "two_tables": (_table(5), _table(5)),
    "two_of_16": (_table(16), _table(16)),
    "one_by_group": (_table(5),),
    "four_by_group": (_table(2), _table(5), _unary(8), _table(4)),
    "twelve_by_group": (_table(2), _table(5), _unary(8), _table(4)) * 3,
}
"""Name -> the mechanism of each block."""
STRATA: dict[str, tuple[int, ...]] = {name: (3, 2) for name in CASES if name.endswith("_by_group")}
"""Name -> number of choices of each stratum; the other cases have no strata."""


def published(
    database: Database, name: str, survey_id: str, now: datetime = datetime(2026, 6, 1, tzinfo=UTC)
) -> SurveyDocument:
    """Store the document of a case, open for thirty days from `now`, and return it."""
    document = made(name, survey_id, now)
    sealed = Envelope.seal(
        SURVEY_TYPE, document.payload(), (SigningKey.from_raw(bytes(32)),)
    ).to_bytes()
    with database.transaction("publish") as tx:
        tx.surveys.add(SurveyRow(survey_id, f"s-{survey_id}", "{}"))
        tx.documents.add(DocumentRow(document.digest, survey_id, 1, document.digest, sealed))
    return document


def made(name: str, survey_id: str, now: datetime) -> SurveyDocument:
    """Return the document of a case."""
    return SurveyDocument(
        survey=survey_id,
        version=1,
        prev=None,
        issued=now,
        opens=now,
        closes=now + timedelta(days=30),
        expires=now + timedelta(days=60),
        languages=("en",),
        title={"en": "A survey"},
        consent=None,
        collect_url=f"https://collect.example/v1/surveys/{survey_id}/reports",
        min_reports=50,
        strata=tuple(_question(f"z{i}", choices) for i, choices in enumerate(STRATA.get(name, ()))),
        blocks=tuple(_block(f"b{i}", mechanism) for i, mechanism in enumerate(CASES[name])),
    )


def rows_of(document: SurveyDocument, n: int, rng: Random) -> list[ReportRow]:
    """Return n reports of random truths."""
    mechanisms: list[Any] = [block.mechanism for block in document.blocks]
    drawn = [
        tuple(
            m.symbol_json(m.sample(rng.randrange(m.answers), rng.getrandbits)) for m in mechanisms
        )
        for _ in range(min(n, DRAWN))
    ]
    return [
        ReportRow(
            document.survey,
            f"{rng.getrandbits(128):032x}",
            document.digest,
            drawn[i % len(drawn)],
            "",
        )
        for i in range(n)
    ]


def _block(name: str, mechanism: Mechanism) -> Block:
    promise = Promise(Claim("ldp", level_for(Fraction(5))))
    prior = (1,) * mechanism.answers
    return Block(
        name,
        (_question(name, mechanism.answers),),
        mechanism,
        (promise,),
        prior,
        stated_ceiling(mechanism),
        "made-up",
        None,
    )


def _question(name: str, choices: int) -> Question:
    return Question(
        name, {"en": f"{name}?"}, tuple(Choice(f"c{x}", {"en": f"c{x}"}) for x in range(choices))
    )
