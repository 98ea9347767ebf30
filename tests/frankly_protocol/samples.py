# SPDX-License-Identifier: Apache-2.0
"""Small valid documents and keys for tests to alter."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

from frankly_protocol.arms import Arm, Arms
from frankly_protocol.audit import Claim, ceiling, level_for, require_private
from frankly_protocol.blocks import Block, Certificate, Choice, Prior, Promise, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, SURVEY_TYPE, Envelope, SigningKey
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.questions import Instructed
from frankly_protocol.trust import KeysDocument, Role
from hypothesis import strategies as st

from tests.narrowing import present

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ROOT = SigningKey.from_raw(bytes(range(32)))
PUBLISHER = SigningKey.from_raw(bytes(range(1, 33)))
STRANGER = SigningKey.from_raw(bytes(range(2, 34)))


def question(name: str, *choices: str) -> Question:
    """Return an English question whose labels are its ids."""
    return Question(name, {"en": f"{name}?"}, tuple(Choice(c, {"en": c}) for c in choices))


def warner(epsilon: str, bits: int = 48) -> tuple[DenseMechanism, tuple[int, int]]:
    """Return the binary mechanism of a level, rounded so that it satisfies the level: on / off ≤ E."""
    level = level_for(Fraction(epsilon))
    off = -(-(level[1] << bits) // (level[0] + level[1]))
    on = (1 << bits) - off
    return DenseMechanism(bits, ((on, off), (off, on))), level


def ldp_block(name: str = "affair", epsilon: str = "1") -> Block:
    """Return a yes/no question under LDP of the answer."""
    mechanism, level = warner(epsilon)
    certificate = Certificate("variance", "0.92", "0.92")
    questions = (question(name, "no", "yes"),)
    return Block(
        name,
        questions,
        mechanism,
        (Promise(Claim("ldp", level)),),
        (1, 1),
        ceiling(mechanism),
        "warner",
        certificate,
    )


def lip_block(name: str = "marriage", secret: str = "affair", epsilon: str = "0.5") -> Block:
    """Return a question that correlates with a secret outside the survey; only "bad" can send report 1."""
    mechanism = DenseMechanism(48, ((1 << 48, 0), (1 << 47, 1 << 47)))
    prior = Prior(secret, ("no", "yes"), (((60, 40), (50, 50)),), "a made-up table")
    questions = (question(name, "good", "bad"),)
    level = level_for(Fraction(epsilon))
    promise = Promise.under(Claim("lip", level, prior.table), prior)
    return Block(name, questions, mechanism, (promise,), (110, 90), None, "optimal", None)


def dp_block(
    name: str = "affair", epsilon: str = "1", delta: Fraction = Fraction(1, 1 << 20)
) -> Block:
    """Return a yes/no question under (ε, δ)-DP that reveals the answer with probability δ; its
    ceiling is infinite."""
    D, clear = 1 << 48, int(delta * (1 << 48))
    off = warner(epsilon)[0].weights[0][1] * (D - clear) // D
    on = D - clear - off
    # The mechanism sends the answer itself with probability δ, as one of two further symbols, and
    # otherwise uses Warner's mechanism.
    mechanism = DenseMechanism(48, ((on, off, clear, 0), (off, on, 0, clear)))
    level = level_for(Fraction(epsilon) + Fraction(1, 10**6))  # covers the rounding of the table
    promise = Promise(Claim("dp", level, delta=delta.as_integer_ratio()))
    questions = (question(name, "no", "yes"),)
    return Block(name, questions, mechanism, (promise,), (1, 1), ceiling(mechanism), "binary", None)


def at(block: Block, level: tuple[int, int], notion: str | None = None) -> tuple[Promise, ...]:
    """Return the block's promise at another level, or of another notion with the same data."""
    (promise,) = block.promises
    return (
        replace(
            promise,
            claim=replace(promise.claim, level=level, notion=notion or promise.claim.notion),
        ),
    )


def with_item(
    document: SurveyDocument, *, choices: int = 4, regions: Question | None = None
) -> SurveyDocument:
    """Return a document without priors, with an instructed item "check" whose answer is b.

    No anchor may stand beside an item, so those of the questions are removed.
    """
    item = Instructed(question("check", *"abcdefgh"[:choices]), "b")
    strata = document.strata if regions is None else (regions,)
    return replace(without_anchors(document), instructed=item, strata=strata)


def without_anchors(document: SurveyDocument) -> SurveyDocument:
    """Return the document with questions of which nothing is known beforehand."""
    blocks = (
        replace(block, questions=tuple(replace(one, anchor=None) for one in block.questions))
        for block in document.blocks
    )
    return replace(document, blocks=tuple(blocks))


def survey(
    *blocks: Block, version: int = 1, prev: str | None = None, survey_id: str = "ab" * 16
) -> SurveyDocument:
    """Return a survey document that is open at NOW."""
    return SurveyDocument(
        survey=survey_id,
        version=version,
        prev=prev,
        issued=NOW - timedelta(days=2),
        opens=NOW - timedelta(days=1),
        closes=NOW + timedelta(days=30),
        expires=NOW + timedelta(days=60),
        languages=("en",),
        title={"en": "A survey"},
        consent=None,
        collect_url=f"https://collect.example/v1/surveys/{survey_id}/reports",
        min_reports=50,
        strata=(),
        blocks=blocks or (ldp_block(), lip_block()),
    )


def armed() -> SurveyDocument:
    """Return a survey with three arms: a question asked in the clear, at ε = 1, and at ε = 2 after another."""
    plain, other = question("affair", "no", "yes"), question("region", "north", "south")
    strong = replace(ldp_block(), id="strong")
    weak = replace(ldp_block(epsilon="2"), id="weak")
    arms = (
        Arm("clear", 1 << 14, ("affair", "region"), ()),
        Arm("strong", 1 << 14, ("region",), ("strong",)),
        Arm("weak", 1 << 15, ("region",), ("work", "weak")),
    )
    return replace(
        survey(),
        blocks=(strong, weak, ldp_block("work")),
        strata=(plain, other),
        arms=Arms("arm", arms),
    )


def in_strata(*tables: tuple[tuple[int, ...], ...]) -> SurveyDocument:
    """Return a survey with a public question of two choices and one block, which has a table for
    each choice."""
    block = lip_block()
    (promise,) = block.promises
    assert promise.prior is not None
    promise = Promise.under(promise.claim, replace(promise.prior, tables=tables))
    block = replace(
        block,
        promises=(
            replace(promise, claim=replace(promise.claim, joint=present(promise.prior).table)),
        ),
    )
    return replace(survey(), blocks=(block,), strata=(question("region", "north", "south"),))


def sealed(payload: bytes, *signers: SigningKey) -> bytes:
    """Return a survey payload in an envelope, signed by `signers` or by default by the publisher."""
    return Envelope.seal(SURVEY_TYPE, payload, signers or (PUBLISHER,)).to_bytes()


def keys_document(
    version: int = 1, root: SigningKey = ROOT, publisher: SigningKey = PUBLISHER
) -> KeysDocument:
    """Return a keys document with one root key and one publisher key."""
    issued = NOW - timedelta(days=10)
    root_role, publisher_role = Role((root.public,), 1), Role((publisher.public,), 1)
    return KeysDocument(version, issued, NOW + timedelta(days=300), root_role, publisher_role)


def sealed_keys(document: KeysDocument, *signers: SigningKey) -> bytes:
    """Return a keys document in an envelope, signed by `signers` or by default by the root."""
    return Envelope.seal(KEYS_TYPE, document.payload(), signers or (ROOT,)).to_bytes()


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set a value at a path such as blocks.0.level.1; `...` removes it."""

    def edit(body: dict[str, Any]) -> None:
        *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
        target: Any = body
        for part in parents:
            target = target[part]
        if value is ...:
            del target[last]
        else:
            # A copy, because later edits of the document may change parts of the value.
            target[last] = deepcopy(value)

    return edit


@st.composite
def mechanisms(draw: st.DrawFn, bits: int) -> DenseMechanism:
    answers, reports = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    rows = []
    for _ in range(answers):
        cuts = sorted(
            draw(st.lists(st.integers(0, 1 << bits), min_size=reports - 1, max_size=reports - 1))
        )
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, 1 << bits], strict=True)])
    used = [y for y in range(reports) if any(row[y] for row in rows)]
    return DenseMechanism(bits, tuple(tuple(row[y] for y in used) for row in rows))


Joint = tuple[tuple[int, ...], ...]


@st.composite
def joints(draw: st.DrawFn, answers: int) -> Joint:
    row = st.lists(st.integers(0, 9), min_size=answers, max_size=answers).filter(any)
    return tuple(tuple(r) for r in draw(st.lists(row, min_size=2, max_size=4)))


def oracle(mechanism: DenseMechanism, notion: str, joint: Joint) -> Fraction | None:
    """Check every pair of every column from the definitions, with Fractions."""
    total = sum(map(sum, joint))
    conditional = [[Fraction(n, sum(row)) for n in row] for row in joint]
    average = [Fraction(sum(column), total) for column in zip(*joint, strict=True)]
    points = [
        [Fraction(x == i) for x in range(mechanism.answers)] for i in range(mechanism.answers)
    ]
    pairs = {
        "ldp": list(product(points, points)),
        "secret-ldp": list(product(conditional, conditional)),
        "lip": [p for c in conditional for p in ((c, average), (average, c))],
    }[notion]
    ratio: Fraction | None = Fraction(1)
    for y in range(mechanism.reports):
        column = [mechanism.probability(y, x) for x in range(mechanism.answers)]
        for a, b in pairs:
            up, down = (sum(m * w for m, w in zip(side, column, strict=True)) for side in (a, b))
            if up > 0 == down:
                return None
            if down and ratio is not None:
                ratio = max(ratio, Fraction(up) / Fraction(down))
    return ratio


WARNER = DenseMechanism(4, ((12, 4), (4, 12)))
SKEWED = DenseMechanism(4, ((9, 7, 0), (1, 2, 13), (5, 5, 6)))
SMALL: list[Mechanism] = [
    WARNER,
    SKEWED,
    UnaryMechanism(4, 2, 8, 3),
    UnaryMechanism(4, 3, 2, 9),
    UnaryMechanism(4, 3, 16, 0),
    UnaryMechanism(4, 3, 0, 5),
    UnaryMechanism(4, 3, 5, 0),
    UnaryMechanism(4, 3, 5, 16),
    SubsetMechanism(4, 2, 1, 11),
    SubsetMechanism(4, 4, 2, 11),
    SubsetMechanism(4, 4, 3, 3),
    SubsetMechanism(4, 5, 2, 16),
    SubsetMechanism(4, 5, 3, 0),
    ProductMechanism((WARNER, SKEWED)),
]


def is_private(mechanism: Mechanism, *claims: Claim) -> bool:
    """Return True if the exact verifier accepts these claims about a mechanism."""
    try:
        require_private(mechanism, *claims)
    except DocumentRejected:
        return False
    return True
