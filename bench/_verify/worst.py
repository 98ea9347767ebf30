# SPDX-License-Identifier: Apache-2.0
"""The largest documents within the work budget by kind and notion, and some that are too large."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random

from frankly_protocol import canonical
from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.audit.work import require_affordable
from frankly_protocol.blocks import Block, Choice, Prior, Promise, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool

MOST = (2**53 - 1, 1)
BITS = 48
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Joint = tuple[tuple[int, ...], ...]
Made = tuple[AnyMechanism, Sequence[Claim]]


def document(*blocks: Block, strata: int = 1) -> SurveyDocument:
    """Return a survey of these blocks, with public questions of 8 choices for `strata` strata."""
    questions = (
        () if strata == 1 else tuple(_question(f"z{i}", 8) for i in range(strata.bit_length() // 3))
    )
    later = NOW + timedelta(days=30)
    return SurveyDocument(
        survey="ab" * 16,
        version=1,
        prev=None,
        issued=NOW,
        opens=NOW,
        closes=later,
        expires=later,
        languages=("en",),
        title={"en": "Worst"},
        consent=None,
        collect_url="https://collect.example/v1/surveys/x/reports",
        min_reports=10,
        strata=questions,
        blocks=blocks,
    )


def block(
    mechanism: AnyMechanism,
    claims: Sequence[Claim],
    name: str = "b",
    *,
    tables: tuple[Joint, ...] = (),
) -> Block:
    """Return a block with one promise per claim, each about a different secret."""
    if isinstance(mechanism, AgreementMechanism):
        sizes = list(mechanism.choices)
    else:
        sizes, answers = [], mechanism.answers
        while answers > 1:
            sizes.append(next(k for k in range(min(64, answers), 1, -1) if answers % k == 0))
            answers //= sizes[-1]
    counted = sum(sizes) if isinstance(mechanism, AgreementMechanism) else mechanism.answers
    promises = []
    for i, claim in enumerate(claims):
        secret = f"{name}-s{i}"
        if claim.joint is None:
            secret_fields = (secret, "made up") if claim.notion == "rldp" else (None, None)
            promises.append(Promise(claim, None, *secret_fields))
        else:
            names = tuple(f"s{k}" for k in range(len(claim.joint)))
            prior = Prior(secret, names, tables or (claim.joint,), "made up")
            promises.append(Promise(replace(claim, joint=prior.table), prior, secret, "made up"))
    return Block(
        id=name,
        questions=tuple(_question(f"{name}-q{i}", size) for i, size in enumerate(sizes)),
        mechanism=mechanism,
        promises=tuple(promises),
        design_prior=(1,) * counted,
        ceiling=stated_ceiling(mechanism),
        mechanism_name="made-up",
        certificate=None,
    )


def largest(make: Callable[[int], SurveyDocument], limit: int) -> tuple[int, SurveyDocument]:
    """Return the largest size up to `limit` that `fits`, to within 1/16, and its document."""
    low, high = 1, 2
    while high <= limit and fits(make(high)):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(make(middle)) else (low, middle)
    return low, make(low)


def fits(document: SurveyDocument) -> bool:
    """Return True if a document is within the budget and the size limit."""
    try:
        require_affordable(document.blocks)
    except DocumentRejected:
        return False
    return len(document.payload()) <= canonical.MAX_BYTES


def families() -> Iterator[tuple[str, Callable[[int], SurveyDocument], int]]:
    """Yield the name of a kind and notion, its maker of documents by size, and the largest size."""
    for name, (make, limit) in _CASES.items():
        yield name, _alone(make), limit
    yield "level: n blocks of 16 secrets", many_secrets, 100
    yield "lip, 16 secrets, 8^n strata", in_strata, 4


def _alone(make: Callable[[int], Made]) -> Callable[[int], SurveyDocument]:
    return lambda n: document(block(*make(n)))


def many_secrets(blocks: int) -> SurveyDocument:
    """Return a document whose main cost is the level of the whole report."""
    claim = Claim("lip", MOST, _joint(2, 2))
    return document(*(block(_table(2, 2), (claim,) * 16, f"b{i}") for i in range(blocks)))


def in_strata(digits: int) -> SurveyDocument:
    """Return a document with a table for each of 8^digits strata."""
    small = tuple(tuple(n >> 13 for n in row) for row in _joint(16, 4))
    stratified = block(_table(4, 16), (Claim("lip", MOST, small),), tables=(small,) * 8**digits)
    return document(stratified, strata=8**digits)


def too_large() -> dict[str, SurveyDocument]:
    """Return documents that took up to a minute (JavaScript: ten) before the work budget."""
    return {
        "srlip 2^8, 1000 reports, 15 secrets": document(block(*_srlip(2, 8, 1000, 15))),
        "srlip 2^8, 128 reports, 2 secrets": document(block(*_srlip(2, 8, 128, 2))),
        "secret-ldp, unary 256, 218 secrets": document(
            block(
                UnaryMechanism(BITS, 256, 2**47, 2**46),
                (Claim("secret-ldp", MOST, _joint(218, 256)),),
            )
        ),
        "100 blocks of 16 secrets": many_secrets(100),
        "20 blocks of 16 secrets": many_secrets(20),
    }


def honest() -> SurveyDocument:
    """Return eight yes-or-no questions with 16 reports under SRLIP about a secret of two values."""
    return document(block(*_srlip(2, 8, 16, 2)))


@cache
def _table(answers: int, reports: int) -> DenseMechanism:
    random, rows = Random(answers * 7919 + reports), []
    for x in range(answers):
        row = [1 + random.randrange(2 ** (BITS + 1) // (3 * reports)) for _ in range(reports)]
        row[x % reports] += (1 << BITS) - sum(row)
        rows.append(tuple(row))
    return DenseMechanism(BITS, tuple(rows))


@cache
def _joint(secrets: int, answers: int) -> Joint:
    random = Random(secrets * 7919 + answers)
    return tuple(
        tuple(random.randrange(2**52, 2**53) for _ in range(answers)) for _ in range(secrets)
    )


def _product(answers: int, reports: int, factors: int) -> ProductMechanism:
    return ProductMechanism(
        (_table(answers, reports),) * (factors - 1) + (_table(answers, reports + 1),)
    )


def _bounds(secrets: int, width: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(
        tuple((1, MOST[0] - 2 * (s * width + u)) for u in range(width)) for s in range(secrets)
    )


def _srlip(values: int, count: int, reports: int, secrets: int) -> Made:
    claim = Claim("srlip", MOST, _joint(secrets, values**count), attributes=(values,) * count)
    return _table(values**count, reports), (claim,)


def _rising(secrets: int, answers: int) -> Joint:
    """Return counts with wider spread for later secrets, so that searches take many steps."""
    answer_indices = range(answers)
    return tuple(
        tuple(
            int(2 ** (26 + 26 * (s + 1) / secrets * (2 * x / answers - 1))) for x in answer_indices
        )
        for s in range(secrets)
    )


def _sets(kind: str, answers: int) -> Mechanism:
    if kind == "unary":
        return UnaryMechanism(BITS, answers, 2**BITS - 1, 1)
    return SubsetMechanism(BITS, answers, answers // 2, 2**BITS - 1)


def _repeated(notion: str, joint: Joint) -> Sequence[Claim]:
    claim = Claim(notion, MOST, joint)
    if notion == "dpv":
        claim = replace(claim, level=(1, 1), sensitive=0)
    return (replace(claim, low_level=MOST) if notion == "alip" else claim,) * 16


def _of_sets(
    kind: str, notion: str, answers: int, joint: Callable[[int, int], Joint]
) -> Callable[[int], Made]:
    return lambda n: (_sets(kind, answers), _repeated(notion, joint(1 + n, answers)))


def _srlip_of_sets(kind: str) -> Callable[[int], Made]:
    return lambda n: (
        _sets(kind, 128),
        (Claim("srlip", MOST, _joint(1 + n, 128), attributes=(2,) * 7),),
    )


def _rldp_of_sets(kind: str) -> Callable[[int], Made]:
    def make(n: int) -> Made:
        return _sets(kind, 16 * n), (
            Claim("rldp", MOST, lower_bounds=_bounds(8 * n, 2), diagonal=True),
        ) * 16

    return make


def _form(cover: Cover, threshold: int) -> Callable[[int], Made]:
    """Return a maker of forms of 100 questions, each in a separate pool, with n components."""

    def make(n: int) -> Made:
        pools = tuple(Pool((i,), 1, cover, 8) for i in range(100))
        chances = [2**BITS - (n - 1), *[1] * (n - 1)]
        form = AgreementMechanism(
            BITS,
            3,
            1,
            (cover.answers,) * 100,
            tuple((i,) for i in range(100)),
            tuple(Component(chance, threshold, pools) for chance in chances),
        )
        return form, (Claim("ldp", MOST),)

    return make


_HEAVY = Cover(4, None, tuple((1 << x, 2**51 - 1) for x in range(4)))
_CASES: dict[str, tuple[Callable[[int], Made], int]] = {
    "dense ldp, 16 claims, 4 × n": (lambda n: (_table(4, n), (Claim("ldp", MOST),) * 16), 4096),
    "dense dp, n × 16": (
        lambda n: (_table(2 * n, 16), (Claim("dp", MOST, delta=(1, 2)),) * 8),
        128,
    ),
    "dense dp, 16 × n": (lambda n: (_table(16, n), (Claim("dp", MOST, delta=(1, 2)),) * 16), 4096),
    "dense secret-ldp, 256 × 64, n secrets": (
        lambda n: (_table(256, 64), _repeated("secret-ldp", _joint(1 + n, 256))),
        255,
    ),
    "dense lip, 4 × n, 64 secrets": (
        lambda n: (_table(4, n), _repeated("lip", _joint(64, 4))),
        4096,
    ),
    "dense alip, 16 × 1000, n secrets": (
        lambda n: (_table(16, 1000), _repeated("alip", _joint(1 + n, 16))),
        255,
    ),
    "dense dpv, 64 × n": (lambda n: (_table(64, n), _repeated("dpv", _joint(4, 64))), 4096),
    "dense srlip 2^8, n reports": (lambda n: _srlip(2, 8, n, 2), 4096),
    "dense srlip 2^8, 2 reports, n secrets": (lambda n: _srlip(2, 8, 2, 1 + n), 255),
    "dense srlip 16^2, n reports": (lambda n: _srlip(16, 2, n, 2), 4096),
    "dense rldp 128 × 2, n reports": (
        lambda n: (
            _table(256, n),
            (Claim("rldp", MOST, lower_bounds=_bounds(128, 2), diagonal=True),) * 4,
        ),
        1000,
    ),
    "dense rldp 2 × 128, n reports": (
        lambda n: (
            _table(256, n),
            (Claim("rldp", MOST, lower_bounds=_bounds(2, 128), diagonal=True),) * 4,
        ),
        1000,
    ),
    **{
        f"{kind} {notion}, {answers}, n secrets": (_of_sets(kind, notion, answers, joint), 255)
        for kind in ("unary", "subset")
        for notion, answers, joint in (
            ("secret-ldp", 256, _rising),
            ("secret-ldp", 16, _joint),
            ("lip", 256, _rising),
            ("dpv", 256, _rising),
        )
    },
    **{f"{kind} srlip 2^7, n secrets": (_srlip_of_sets(kind), 255) for kind in ("unary", "subset")},
    **{
        f"{kind} rldp, 8n × 2, 16 claims": (_rldp_of_sets(kind), 16) for kind in ("unary", "subset")
    },
    "product ldp, 2^8, 16 claims, n reports each": (
        lambda n: (_product(2, n, 8), (Claim("ldp", MOST),) * 16),
        4000,
    ),
    "product lip 2^8, 384 reports, n secrets": (
        lambda n: (_product(2, 2, 8), _repeated("lip", _joint(1 + n, 256))[:1]),
        255,
    ),
    "product srlip 2^n": (
        lambda n: (
            _product(2, 2, 1 + n),
            (Claim("srlip", MOST, _joint(2, 2 ** (1 + n)), attributes=(2,) * (1 + n)),),
        ),
        7,
    ),
    "product dp, 2^n": (lambda n: (_product(2, 3, 1 + n), (Claim("dp", MOST, delta=(1, 2)),)), 7),
    "product dp, 16^2, n reports": (
        lambda n: (_product(16, n, 2), (Claim("dp", MOST, delta=(1, 2)),)),
        1000,
    ),
    "agreement, 100 slots, n components": (_form(Cover(2, 1), 1), 256),
    "agreement, long numbers, n components": (_form(_HEAVY, 50), 24),
    "product dp, 2 × 2, n reports": (
        lambda n: (_product(2, n, 2), (Claim("dp", MOST, delta=(1, 2)),)),
        4000,
    ),
}


def _question(name: str, choices: int) -> Question:
    return Question(
        name, {"en": name}, tuple(Choice(f"c{i}", {"en": f"c{i}"}) for i in range(choices))
    )
