# SPDX-License-Identifier: Apache-2.0
"""Every number of an explanation is true: random documents, compared with the law of their reports."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.explanation import promised
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.figures import percent
from frankly_protocol.explanation.fits import fits
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
)
from frankly_sdk import Policy, PolicyRefused

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.audit.worlds import Case, Shape, Source, World
from tests.frankly_protocol.samples import question, survey
from tests.frankly_sdk.fakes import FakeServer
from tests.frankly_sdk.sentences import require_true
from tests.frankly_sdk.texts import ENGLISH
from tests.frankly_sdk.told import Told

COUNT = 500


DP = Claim("dp", (4, 1), delta=(0, 1))


def told_of(mechanism: AnyMechanism, claim: Claim = DP, sizes: tuple[int, ...] = ()) -> Told:
    """Return a document with one block that promises one claim at the least level.

    sizes : number of choices of each question; by default there is one question.
    """
    a, levels = mechanism.answers, needed(mechanism, claim)
    sizes = sizes or (a,)
    least: dict[str, Any] = {n: level.as_integer_ratio() for n, level in levels.items() if level}
    promise = Promise(replace(claim, **least))
    asked = [
        question(f"q{j}" if j else "q", *(f"c{x}" for x in range(size)))
        for j, size in enumerate(sizes)
    ]
    block = Block(
        "q",
        tuple(asked),
        mechanism,
        (promise,),
        (1,) * a,
        stated_ceiling(mechanism),
        "made-up",
        None,
    )
    world: World = {((s,), (x,), 0): 1 for s in range(2) for x in range(a)}
    drawn = Case(0, Shape((2,), (sizes,), (), {}), survey(block), (world,), (Source(promise),))
    return Told(drawn, drawn.document, Policy(delta_cap="0.9"), ())


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
    "no rule": ("frankly_protocol.explanation.label._sources", lambda document: set()),
    "everything is random": ("frankly_protocol.explanation.fits.is_random", lambda mechanism: True),
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
