# SPDX-License-Identifier: Apache-2.0
"""Documents whose promises are true but worthless, because an adversary chose the prior.

The families are: the identity under a prior that makes secret and answer independent; answers
without mass, each with a separate report; two questions whose exclusive or is the secret. The
verifier must accept these documents, because their promises hold; the policy, the explanation and
the ledger protect people (spec 2.6).
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import PRIOR_BASED, Claim, exp_lower, stated_ceiling, total_charge
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.explain import explain
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import Policy, PolicyRefused

from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.frankly_sdk.fakes import FakeServer
from tests.narrowing import dense_of

D = 1 << 48
ONE = (1, 1)


def leaky(rng: Random, a: int, *, endless: bool) -> DenseMechanism:
    """Return a mechanism that sends the answer under shuffled names, unchanged or nearly unchanged
    with a large finite ceiling."""
    off = 0 if endless else D // (a * 2 ** rng.randint(1, 12))
    rows = [[D - (a - 1) * off if x == y else off for y in range(a)] for x in range(a)]
    names = rng.sample(range(a), a)
    return DenseMechanism(48, tuple(tuple(row[names[y]] for y in range(a)) for row in rows))


def block_of(name: str, a: int, mechanism: DenseMechanism, promise: Promise) -> Block:
    questions = (question(name, *(f"c{i}" for i in range(a))),)
    return Block(
        name, questions, mechanism, (promise,), (1,) * a, stated_ceiling(mechanism), "optimal", None
    )


def under(notion: str, joint: Any, **claim_fields: Any) -> Promise:
    prior = Prior(
        "secret",
        tuple(f"s{i}" for i in range(len(joint))),
        (tuple(map(tuple, joint)),),
        "a table made to fit",
    )
    claim = Claim(notion, claim_fields.pop("level", ONE), prior.table, **claim_fields)
    return Promise.under(claim, prior)


def independent(rng: Random, notion: str) -> list[Block]:
    """Return the identity, which is 0-LIP under a prior that makes answer and secret independent."""
    a, s = rng.randint(2, 6), rng.randint(2, 4)
    endless = rng.random() < 0.7
    if notion == "rldp":
        weights = [rng.randint(1, 9) for _ in range(a)]
        row = tuple((n, sum(weights)) for n in weights)
        leaky_rows = leaky(rng, a, endless=endless).weights
        mechanism = DenseMechanism(48, tuple(leaky_rows[u] for _ in range(2) for u in range(a)))
        claim = Claim("rldp", ONE, lower_bounds=(row, row))
        return [
            block_of("q", 2 * a, mechanism, Promise(claim, None, "secret", "a table made to fit"))
        ]
    rows, columns = ([rng.randint(1, 9) for _ in range(size)] for size in (s, a))
    joint = [[n * m for m in columns] for n in rows]
    claim_fields: dict[str, Any] = {}
    if notion == "alip":
        claim_fields = {"low_level": ONE}
    elif notion == "srlip":
        claim_fields = {"attributes": (a,)}
    elif notion == "dpv":
        claim_fields = {"sensitive": 0, "level": Fraction(rows[0], sum(rows)).as_integer_ratio()}
    return [block_of("q", a, leaky(rng, a, endless=endless), under(notion, joint, **claim_fields))]


def massless(rng: Random, notion: str) -> list[Block]:
    """Return a block in which each answer of prior mass zero has a separate report, and all others
    have the same law."""
    a, hidden = rng.randint(3, 6), rng.randint(1, 2)
    joint = [[0 if x < hidden else rng.randint(1, 5) for x in range(a)] for _ in range(2)]
    shared_row = [0] * hidden + [D // 4, D - D // 4]
    rows = [
        [D * (x == y) for y in range(hidden + 2)] if x < hidden else shared_row for x in range(a)
    ]
    mechanism = DenseMechanism(48, tuple(map(tuple, rows)))
    claim_fields: dict[str, Any] = {"low_level": ONE} if notion == "alip" else {}
    return [block_of("q", a, mechanism, under(notion, joint, **claim_fields))]


def exclusive_or(rng: Random, notion: str) -> list[Block]:
    """Return two fair bits, sent nearly unchanged; each is independent of their XOR, but both
    determine it."""
    endless = rng.random() < 0.5
    claim_fields: dict[str, Any] = {"low_level": ONE} if notion == "alip" else {}
    return [
        block_of(n, 2, leaky(rng, 2, endless=endless), under(notion, [[1, 1]] * 2, **claim_fields))
        for n in ("p", "q")
    ]


FAMILIES = [
    *((independent, notion) for notion in PRIOR_BASED),
    *(
        (family, notion)
        for family in (massless, exclusive_or)
        for notion in ("lip", "secret-ldp", "alip")
    ),
]


def documents(count: int) -> list[tuple[str, SurveyDocument]]:
    rng = Random(500)
    generated = []
    for i in range(count):
        family, notion = FAMILIES[i % len(FAMILIES)]
        blocks = family(rng, notion)
        if rng.random() < 0.3:
            blocks.insert(
                rng.randrange(len(blocks) + 1), ldp_block("free", rng.choice(["0.1", "0.5", "1"]))
            )
        generated.append((family.__name__, survey(*blocks, survey_id=f"{i:032x}")))
    return generated


def true_ceiling(block: Block) -> Fraction | None:
    """Return the largest ratio of any column of the table, or None if it is infinite."""
    assert isinstance(block.mechanism, DenseMechanism)
    columns = list(zip(*block.mechanism.weights, strict=True))
    return None if any(0 in q for q in columns) else max(Fraction(max(q), min(q)) for q in columns)


def multiplied(values: list[Fraction | None]) -> Fraction | None:
    finite = [v for v in values if v is not None]
    return prod(finite, start=Fraction(1)) if len(finite) == len(values) else None


def ledger(document: SurveyDocument) -> Fraction | None:
    """Compute spec 2.6 by brute force: at most one block counts its level (not DPV), others count
    their ceilings."""
    ceilings = [true_ceiling(block) for block in document.blocks]
    totals = [multiplied(ceilings)]
    for i, block in enumerate(document.blocks):
        (promise,) = block.promises
        if promise.secret is not None and promise.claim.notion != "dpv":
            totals.append(multiplied([Fraction(1), *ceilings[:i], *ceilings[i + 1 :]]))
    return min((t for t in totals if t is not None), default=None)


def check(family: str, document: SurveyDocument, folder: Path | None) -> str:
    """Check one document as a device does; return the outcome for a pinned survey that the app
    names as final."""
    document = SurveyDocument.parse(document.payload())
    document.require_private()  # the attack succeeds here: every promise is true
    level = document.report_level
    for logged in (False, True):
        with pytest.raises(PolicyRefused) as caught:
            Policy(cap="64", allow_unpinned=True).check(
                document, level, pinned=False, logged=logged, spent=[]
            )
        assert caught.value.reason == "ceiling"
    explanation = explain(document, level, ["ab" * 32])
    for block, shown in zip(document.blocks, explanation.blocks, strict=True):
        assert shown.ceiling == block.ceiling == true_ceiling(block)
        if block.promises[0].secret is not None:
            assert "as long as this published table is true: a table made to fit" in shown.words
            endless = shown.ceiling is None
            assert ("more than ×16 million" in shown.words) == endless
            assert ("changes odds by at most ×" in shown.words) != endless
    expected, cost = (
        ledger(document),
        multiplied([true_ceiling(block) for block in document.blocks]),
    )
    assert (level.odds, level.cost.odds) == (expected, cost)
    if folder is not None:
        server = FakeServer(document=document)
        with pytest.raises(PolicyRefused):
            server.open(
                folder / "unpinned.db",
                link=server.link.partition("#")[0],
                policy=Policy(allow_unpinned=True),
            )
        assert server.posted == []
    final = Policy(cap="5", final_surveys=(document.survey,))
    assert outcome_of(Policy(cap="5"), document) == expected_outcome(family, expected, cost)
    if outcome_of(final, document) is not None:
        assert outcome_of(final, document) == expected_outcome(family, expected, expected)
        return "refused"
    if family == "exclusive_or":
        assert expected is not None
        assert true_lift(document) <= expected
    # With any second document, every block counts its ceiling.
    second_cost = survey(ldp_block()).report_level.cost
    assert total_charge([level.cost, second_cost]).odds == multiplied([cost, second_cost.odds])
    return "pinned"


def outcome_of(policy: Policy, document: SurveyDocument) -> str | None:
    """Return the reason why a policy refuses a pinned document, or None if it accepts."""
    try:
        policy.check(document, document.report_level, pinned=True, spent=[])
    except PolicyRefused as refused:
        return refused.reason
    return None


def expected_outcome(family: str, odds: Fraction | None, cost: Fraction | None) -> str | None:
    cap = exp_lower(Fraction(5))
    if odds is None or odds > cap:
        return "composition" if family == "exclusive_or" else "cap"
    return "final" if cost is None or cost > cap else None


def true_lift(document: SurveyDocument) -> Fraction:
    """Return the largest lift, up or down, of S = X1 xor X2 for fair bits, by sums over answers."""
    tables = [b.numbered_mechanism for b in document.blocks if b.promises[0].secret is not None]
    best = Fraction(1)
    for y in product(*(range(m.reports) for m in tables)):
        chance = [Fraction(0), Fraction(0)]
        for x in product((0, 1), repeat=2):
            chance[x[0] ^ x[1]] += Fraction(
                prod(dense_of(m).weights[v][w] for m, v, w in zip(tables, x, y, strict=True)),
                4 * D**2,
            )
        for part in chance:
            lift = 2 * part / sum(chance)
            best = max(best, lift, 1 / lift if lift else Fraction(10**9))
    return best


def judged(count: int, folder: Path) -> None:
    tally: dict[tuple[str, str], int] = {}
    for i, (family, document) in enumerate(documents(count)):
        outcome = check(family, document, folder if i % 20 == 0 else None)
        tally[family, outcome] = tally.get((family, outcome), 0) + 1
    assert sum(tally.values()) == count
    # Every family and both outcomes occur.
    assert {family for family, _ in tally} == {"independent", "massless", "exclusive_or"}
    assert {outcome for _, outcome in tally} == {"pinned", "refused"}
    assert tally["exclusive_or", "refused"] > 0


def test_true_promises_under_a_false_prior_are_refused_without_a_pin(tmp_path: Path) -> None:
    judged(72, tmp_path)


@pytest.mark.full_only
def test_five_hundred_adversarial_priors(tmp_path: Path) -> None:
    judged(500, tmp_path)


def test_the_oracle_separates_the_families() -> None:
    """Two bits sent unchanged determine their exclusive or, although each block promises lift 1."""
    blocks = exclusive_or(Random(1), "lip")
    identity = DenseMechanism(48, ((D, 0), (0, D)))
    document = survey(*(replace(b, mechanism=identity, ceiling=None) for b in blocks))
    assert true_lift(document) == 10**9
    assert document.report_level.odds is ledger(document) is None
