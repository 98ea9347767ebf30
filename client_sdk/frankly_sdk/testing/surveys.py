# SPDX-License-Identifier: Apache-2.0
"""Small surveys with their own keys, signed as a publisher would sign them."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from frankly_protocol.arms import BITS, Arm, Arms
from frankly_protocol.audit import Claim, ceiling, level_for, parse_epsilon, stated_ceiling
from frankly_protocol.blocks import Block, Choice, Promise, Question
from frankly_protocol.clock import Clock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, SURVEY_TYPE, Envelope, SigningKey
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.questions import Anchor, Instructed
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust import KeysDocument, Role
from frankly_protocol.trust.keys import MAX_VALIDITY

from frankly_sdk.testing.time import FakeClock

ORIGIN = "https://collect.example"
# As many bits as in published documents, so that weights are realistic.
_BITS = 48
Questions = Mapping[str, Sequence[str]]


def make_survey(
    questions: Questions,
    epsilon: str = "1",
    *,
    drawn: Questions | None = None,
    strata: Questions | None = None,
    instructed: Questions | None = None,
    anchors: Mapping[str, Sequence[int] | str] | None = None,
    arms: Mapping[str, Sequence[str]] | None = None,
    clock: Clock | None = None,
    survey_id: str | None = None,
    token: TokenRule | None = None,
) -> SurveyDocument:
    """Return a survey with one ε-LDP block (GRR) per question, open for 30 days from now.

    questions : id → ids of 2 to 64 choices, which are also the labels; may be empty if `drawn` is
        not.
    epsilon : nats per question, 0.01 to 10, a decimal string.
    drawn : more questions, in one form of ε nats: a device draws one of them, each with the same
        chance, and asks only that one.
    strata : public questions, answered in the clear.
    instructed : one item, which asks for the first of its choices.
    anchors : id of a question → known count of each of its choices, among all people, or the id of
        the earlier question that it asks a second time; not beside `instructed`.
    arms : id of each arm → ids of the `questions` and `strata` that it asks, and ``"form"`` for those
        of `drawn`; devices draw each arm with the same chance. Reports name it under ``"arm"``.
    survey_id : 32 hex digits, random by default.
    token : the token rule of the survey; with ``TokenRule("invite")`` any 32 bytes in base64url are
        a valid token, which can be used once.
    """
    now = (clock or FakeClock()).now()
    survey = survey_id or secrets.token_hex(16)
    blocks = (
        *(_block(name, choices, epsilon) for name, choices in questions.items()),
        *([_form(drawn, epsilon)] if drawn else []),
    )
    return SurveyDocument(
        survey=survey,
        version=1,
        prev=None,
        issued=now,
        opens=now,
        closes=now + timedelta(days=30),
        expires=now + timedelta(days=60),
        languages=("en",),
        title={"en": "A survey for tests"},
        consent=None,
        collect_url=f"{ORIGIN}/v1/surveys/{survey}/reports",
        min_reports=2,
        release_step=2,
        strata=tuple(_question(name, choices) for name, choices in (strata or {}).items()),
        blocks=tuple(_anchored(block, anchors or {}) for block in blocks),
        token=token,
        instructed=next(
            (Instructed(_question(*item), item[1][0]) for item in (instructed or {}).items()), None
        ),
        arms=_arms(arms, strata or {}) if arms else None,
    )


class Authority:
    """A root key and a publisher key, valid for 400 days from one day before the clock's time."""

    def __init__(self, clock: Clock | None = None) -> None:
        now = (clock or FakeClock()).now()
        self._root, self._publisher = SigningKey.generate(), SigningKey.generate()
        document = KeysDocument(
            version=1,
            issued=now - timedelta(days=1),
            expires=now - timedelta(days=1) + MAX_VALIDITY,
            root=Role((self._root.public,), 1),
            publisher=Role((self._publisher.public,), 1),
        )
        self.keys = Envelope.seal(KEYS_TYPE, document.payload(), (self._root,)).to_bytes()
        """The signed keys document, as an app may ship it."""

    def sign(self, document: SurveyDocument) -> bytes:
        """Return the signed envelope of a survey."""
        return Envelope.seal(SURVEY_TYPE, document.payload(), (self._publisher,)).to_bytes()


def _question(name: str, choices: Sequence[str]) -> Question:
    return Question(
        name, {"en": f"{name}?"}, tuple(Choice(choice, {"en": choice}) for choice in choices)
    )


def _arms(arms: Questions, strata: Questions) -> Arms:
    chance, left = divmod(1 << BITS, len(arms))
    return Arms(
        "arm",
        tuple(
            Arm(
                arm,
                chance + (i < left),
                tuple(name for name in names if name in strata),
                tuple(name for name in names if name not in strata),
            )
            for i, (arm, names) in enumerate(arms.items())
        ),
    )


def _anchored(block: Block, anchors: Mapping[str, Sequence[int] | str]) -> Block:
    questions = tuple(
        replace(one, anchor=_anchor(anchors[one.id])) if one.id in anchors else one
        for one in block.questions
    )
    return replace(block, questions=questions)


def _anchor(known: Sequence[int] | str) -> Anchor:
    if isinstance(known, str):
        return Anchor(repeats=known)
    return Anchor(tuple(known), "A source for tests")


def _block(name: str, choices: Sequence[str], epsilon: str) -> Block:
    p, q = level_for(parse_epsilon(epsilon))
    a, denominator = len(choices), 1 << _BITS
    off = -(-denominator * q // (p + (a - 1) * q))  # rounded up, so that on / off ≤ p / q exactly
    on = denominator - (a - 1) * off
    mechanism = DenseMechanism(
        _BITS, tuple(tuple(on if x == y else off for y in range(a)) for x in range(a))
    )
    return Block(
        id=name,
        questions=(_question(name, choices),),
        mechanism=mechanism,
        promises=(Promise(Claim("ldp", (p, q))),),
        design_prior=(1,) * a,
        ceiling=ceiling(mechanism),
        mechanism_name="grr",
        certificate=None,
    )


def _form(questions: Questions, epsilon: str) -> Block:
    level = level_for(parse_epsilon(epsilon))
    asked = tuple(_question(name, choices) for name, choices in questions.items())
    sizes = tuple(len(question.choices) for question in asked)
    chance, left = divmod(1 << _BITS, len(asked))
    mechanism = AgreementMechanism(
        _BITS,
        *level,
        sizes,
        tuple((i,) for i in range(len(asked))),
        tuple(
            Component(chance + (i < left), 1, (Pool((i,), 1, Cover(size, 1)),))
            for i, size in enumerate(sizes)
        ),
    )
    return Block(
        id="form",
        questions=asked,
        mechanism=mechanism,
        promises=(Promise(Claim("ldp", level)),),
        design_prior=(1,) * sum(sizes),
        ceiling=stated_ceiling(mechanism),
        mechanism_name="agreement",
        certificate=None,
        asks_drawn=True,
    )
