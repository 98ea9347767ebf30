# SPDX-License-Identifier: Apache-2.0
"""Every number of an explanation is true: random documents, compared with the law of their reports."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count, cycle
from math import floor
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.arms import Arm, Arms
from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation import label, promised
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.figures import percent
from frankly_protocol.explanation.fits import fits
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
)
from frankly_protocol.tokens import TokenRule
from frankly_sdk import Policy, PolicyRefused

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.audit.worlds import Case, Shape, Source, World
from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.frankly_sdk.fakes import FakeServer
from tests.frankly_sdk.sentences import require_true
from tests.frankly_sdk.texts import ENGLISH
from tests.frankly_sdk.told import Told

COUNT = 500


DP = Claim("dp", (4, 1), delta=(0, 1))


def told_of(mechanism: AnyMechanism, *claims: Claim, sizes: tuple[int, ...] = ()) -> Told:
    """Return a document with one block that promises claims at their least levels, by default DP.

    sizes : number of choices of each question; by default there is one question.
    """
    a, sizes = mechanism.answers, sizes or (mechanism.answers,)
    promises = list[Promise]()
    for claim in claims or (DP,):
        levels = needed(mechanism, claim)
        least: dict[str, Any] = {n: one.as_integer_ratio() for n, one in levels.items() if one}
        promises.append(Promise(replace(claim, **least)))
    asked = [
        question(f"q{j}" if j else "q", *(f"c{x}" for x in range(size)))
        for j, size in enumerate(sizes)
    ]
    block = Block(
        "q",
        tuple(asked),
        mechanism,
        tuple(promises),
        (1,) * a,
        stated_ceiling(mechanism),
        "made-up",
        None,
    )
    world: World = {((s,), (x,), 0): 1 for s in range(2) for x in range(a)}
    drawn = Case(
        0, Shape((2,), (sizes,), (), {}), survey(block), (world,), tuple(map(Source, promises))
    )
    return Told(drawn, drawn.document, Policy(delta_cap="0.9"), ())


def in_an_arm(told: Told) -> Told:
    """Return the same, asked by one of two arms; the other one tells more."""
    document = told.document
    (block,) = document.blocks
    arms = (Arm("a", 1 << 15, (), (block.id,)), Arm("b", 1 << 15, (), ("other",)))
    whole = replace(
        document,
        blocks=(block, replace(ldp_block(epsilon="3"), id="other")),
        arms=Arms("arm", arms),
    )
    return replace(told, document=whole.views["a"])


def of_two_sources(told: Told) -> Told:
    """Return the same, where the first public answer decides whether a token is an invite or blind."""
    first = told.document.strata[0]
    kinds = cycle((TokenRule("invite"), TokenRule("rsa-pss", "A" * 64)))
    rules = {choice.id: rule for choice, rule in zip(first.choices, kinds, strict=False)}
    rule = TokenRule("sources", question=first.id, rules=rules)
    return replace(told, document=replace(told.document, token=rule))


def with_sources() -> Told:
    """Return a random document with public answers whose tokens are of two kinds."""
    return of_two_sources(next(one for one in map(Told.of, count()) if one.document.strata))


def pairs(answers: int, **levels: tuple[int, int]) -> Claim:
    """Return the claim of some pairs: `x1z0` is the level of answer 1 against answer 0."""
    rows = [tuple(levels.get(f"x{x}z{z}") for z in range(answers)) for x in range(answers)]
    return Claim("metric-ldp", (1, 1), levels=tuple(rows))


FIVE = DenseMechanism(
    4, ((8, 2, 2, 2, 2), (2, 8, 2, 2, 2), (2, 2, 8, 2, 2), (3, 3, 3, 4, 3), (2, 2, 2, 2, 8))
)
ONE_SIDED: list[Callable[[], Told]] = [
    lambda: told_of(DenseMechanism(4, ((8, 8), (15, 1))), pairs(2, x1z0=(15, 8))),
    # The last answer has a larger level than the ceiling of 2.
    lambda: told_of(
        DenseMechanism(4, ((8, 4, 4), (4, 8, 4), (7, 7, 2))), pairs(3, x2z0=(3, 2), x2z1=(1, 1))
    ),
    lambda: told_of(
        FIVE, pairs(5, x3z0=(2, 1), x3z1=(2, 1), x3z2=(3, 2), x3z4=(2, 1), x0z1=(4, 1))
    ),
    # Two claims on the same answer, and one on another.
    lambda: told_of(
        DenseMechanism(4, ((14, 1, 1), (12, 2, 2), (1, 14, 1))),
        pairs(3, x0z1=(7, 6), x0z2=(14, 1)),
        pairs(3, x0z1=(7, 3), x0z2=(28, 1)),
        pairs(3, x1z0=(2, 1), x1z2=(12, 1)),
    ),
    # A level above 99 says nothing that is worth a sentence.
    lambda: told_of(DenseMechanism(8, ((1, 255), (120, 136))), pairs(2, x1z0=(120, 1))),
]
"""Tables that protect some answers from all others, but not all answers."""
D = 1 << 48
MADE: list[Callable[[], Told]] = [
    lambda: told_of(DenseMechanism(4, ((10, 3, 3), (3, 10, 3), (3, 3, 10)))),
    lambda: told_of(
        DenseMechanism(4, ((10, 6), (6, 10))),
        Claim("metric-ldp", (1, 1), levels=((None, (1, 1)), ((1, 1), None))),
    ),
    lambda: told_of(DenseMechanism(4, ((0, 16, 0), (0, 0, 16), (16, 0, 0)))),
    lambda: told_of(DenseMechanism(8, ((1, *(1,) * 39, 216), (0, *(1,) * 39, 217)))),
    lambda: told_of(DenseMechanism(48, ((D - 1, 1), (D // 2, D // 2)))),
    lambda: told_of(DenseMechanism(48, ((D - (1 << 24) - 1, (1 << 24) + 1), (0, D)))),
    lambda: told_of(DenseMechanism(48, ((1, D - 1), (D - 1, 1)))),
    # Both questions together are sent exactly, neither alone.
    lambda: told_of(DenseMechanism(4, ((16, 0), (0, 16), (0, 16), (16, 0))), sizes=(2, 2)),
    # The first question is sent as it is, or the first half of its choices as one.
    lambda: told_of(
        ProductMechanism(
            (DenseMechanism(4, ((16, 0), (0, 16))), DenseMechanism(4, ((12, 4), (4, 12))))
        ),
        sizes=(2, 2),
    ),
    lambda: told_of(DenseMechanism(4, ((16, 0), (16, 0), (0, 16)))),
    lambda: told_of(DenseMechanism(4, ((12, 4), (12, 4), (4, 12), (4, 12))), sizes=(2, 2)),
    lambda: in_an_arm(told_of(DenseMechanism(4, ((12, 4), (4, 12))))),
    with_sources,
    *ONE_SIDED,
]


def test_every_number_of_an_explanation_is_true(
    full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--full tests 10,000 documents of all kinds and notions, with public answers, boxes and rules."""
    said = _recorded(monkeypatch)
    for seed in range(10_000 if full else COUNT):
        require_true(Told.of(seed))
    for made in MADE:
        require_true(made())
    parts = ("label", "explanation", "promises", "whole", "budget")
    known = {(part, name) for part in parts for name in ENGLISH[part]}
    assert known - said == set(), "no document makes these sentences"


def _recorded(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return the part and the name of every text, as it is said."""
    said, say = set(), Texts.say

    def recording(self: Texts, name: str, **values: object) -> str:
        said.add((self._part, name))
        return say(self, name, **values)

    monkeypatch.setattr(Texts, "say", recording)
    return said


def _easiest_by_ratio(form: AgreementMechanism) -> int:
    gains = [chance * n for chance, n in zip(form.guesses, form.choices, strict=True)]
    return gains.index(max(gains))


def _down(ratio: Fraction | None) -> str:
    assert ratio is not None
    return f"{ratio.numerator * 100 // ratio.denominator / 100:.2f}"


def _of_another(told: str, text: str) -> Callable[[Texts, str], str]:
    """Return `Texts.say` that uses another text in place of one."""
    say = Texts.say
    return lambda self, name, **values: say(self, text if name == told else name, **values)


def _with_number(name: str) -> Callable[..., str]:
    """Return `Texts.say` that ends a text with a number."""
    say = Texts.say
    return lambda self, one, **values: say(self, one, **values) + " Of 9 in 10." * (one == name)


def _alone_of(change: Callable[[Claim], Claim]) -> Callable[..., Iterator[str]]:
    """Return `of_answers` that reads other claims."""
    true = label.of_answers
    return lambda asked, promises, *rest: true(
        asked, [replace(one, claim=change(one.claim)) for one in promises], *rest
    )


def _transposed(claim: Claim) -> Claim:
    return replace(claim, levels=claim.levels and tuple(zip(*claim.levels, strict=True)))


def _anchors_of_others(document: SurveyDocument, language: str, texts: Texts) -> list[str]:
    """Return the sentences on anchors with the text of the last question, whatever they are about."""
    questions = list(document.questions.values())
    *_, last = (one.text[language] for one in questions)
    return [
        texts.say(
            "repeated" if one.anchor.repeats else "anchor", question=last, source=one.anchor.source
        )
        for one in questions
        if one.anchor
    ]


FAULTS: dict[str, tuple[str, Any]] = {
    # The page said of all questions what held for the one with the largest ratio.
    "largest ratio": (
        "frankly_protocol.mechanisms.AgreementMechanism.easiest",
        property(_easiest_by_ratio),
    ),
    "all answers at once as one": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("guess_of_all", "guess"),
    ),
    "anchors unsaid": ("frankly_protocol.explanation.explain._anchors", lambda *_: ()),
    "blind tokens as invites": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("invite_some", "invite"),
    ),
    "people with blind tokens told that they were invited": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("invited_some", "invited"),
    ),
    "an anchor of another question": (
        "frankly_protocol.explanation.explain._anchors",
        _anchors_of_others,
    ),
    "a repeated question as one with known shares": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("repeated", "anchor"),
    ),
    "ratios rounded down": ("frankly_protocol.explanation.promised.times", _down),
    "chances rounded down": ("frankly_protocol.explanation.promised.percent_up", percent),
    "fewest questions only": (
        "frankly_protocol.mechanisms.AgreementMechanism.questions_drawn",
        property(lambda form, true=AgreementMechanism.questions_drawn: (true.fget(form)[0],) * 2),
    ),
    "public answers forgotten": (
        "frankly_protocol.explanation.explain.block_promises",
        lambda block, _, texts, true=promised.block_promises: true(block, False, texts),
    ),
    "people rounded down": ("frankly_protocol.explanation.label.Fraction", lambda *_: Fraction(0)),
    "suspicions rounded down": ("frankly_protocol.explanation.label.ceil", floor),
    "another answer as one's own": (
        "frankly_protocol.explanation.fits.fits",
        lambda block, true=fits: [fit and replace(fit, own=fit.other) for fit in true(block)],
    ),
    "reports that say nothing forgotten": (
        "frankly_protocol.explanation.fits.fits",
        lambda block, true=fits: [
            fit and replace(fit, silent=(Fraction(0), Fraction(0))) for fit in true(block)
        ],
    ),
    "sure of nothing though some answers are sent unchanged": (
        "frankly_protocol.explanation.label._is_bounded",
        lambda level: True,
    ),
    "what is known only together forgotten": (
        "frankly_protocol.explanation.fits.fits",
        lambda block, true=fits: [fit and replace(fit, is_joint=False) for fit in true(block)],
    ),
    "columns of levels as rows": (
        "frankly_protocol.explanation.label.of_answers",
        _alone_of(_transposed),
    ),
    "a common factor of levels forgotten": (
        "frankly_protocol.explanation.label.of_answers",
        _alone_of(lambda claim: replace(claim, level=(1, 1))),
    ),
    "no ceiling of an answer's level": (
        "frankly_protocol.explanation.label.of_answers",
        lambda asked, promises, _, *rest, true=label.of_answers: true(asked, promises, None, *rest),
    ),
    "protected answers forgotten": (
        "frankly_protocol.explanation.label.of_answers",
        lambda *_: iter(()),
    ),
    "no rule": ("frankly_protocol.explanation.label._sources", lambda document: set()),
    "everything is random": ("frankly_protocol.mechanisms.DenseMechanism.is_random", True),
    "boxes counted one by one": (
        "frankly_protocol.explanation.label._number_asked",
        lambda block: len(block.questions),
    ),
    "always": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("if_true", "always"),
    ),
    "ceiling as promise": (
        "frankly_protocol.explanation.catalogue.Texts.say",
        _of_another("by_dp", "by_ceiling"),
    ),
    **{
        f"a number after {name}": (
            "frankly_protocol.explanation.catalogue.Texts.say",
            _with_number(name),
        )
        for name in ("made_here", "skipped", "limits", "sets", "guess_of_many", "sent", "unlimited")
    },
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_false_sentence_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, fault = FAULTS[name]
    monkeypatch.setattr(place, fault)
    with pytest.raises(AssertionError):
        for told in (*(made() for made in MADE), *map(Told.of, range(COUNT))):
            require_true(told)


def test_the_cost_shown_is_the_cost_charged(tmp_path: Path) -> None:
    tried = 0
    for seed in range(12):
        document = Told.of(seed).case.document
        policy = Policy(cap="64", delta_cap="0.9", final_surveys=(document.survey,))
        try:
            client = FakeServer(document=document).open(tmp_path / f"{seed}.db", policy=policy)
        except PolicyRefused:
            continue
        with client:
            explanation, before = client.survey.explain(), client.budget()
            answers = {q: choices[0] for q, choices in client.survey.questions.items()}
            client.answer(answers, strata={q.id: q.choices[0].id for q in document.strata})
            after = client.budget()
        assert explanation.form_nats == before.cost == after.spent
        assert (before.left_after, before.spent) == (after.left, "0.0000")
        tried += 1
    assert tried >= 8
