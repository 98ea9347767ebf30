# SPDX-License-Identifier: Apache-2.0
"""Blocks of every kind with promises of every notion, at the least level that the definitions allow."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from frankly_protocol.audit import NOTIONS, Claim, stated_ceiling
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
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

from tests.frankly_protocol.audit.definitions import ONE, needed
from tests.frankly_protocol.samples import question, survey

UNIT = 1 << 44
DENSE = DenseMechanism(
    48, tuple(tuple(w * UNIT for w in row) for row in ((9, 4, 3), (2, 13, 1), (6, 6, 4), (5, 5, 6)))
)
HALF = DenseMechanism(48, tuple(tuple(w * UNIT for w in row) for row in ((11, 5), (3, 13))))
KINDS: dict[str, Mechanism] = {
    "dense": DENSE,
    "unary": UnaryMechanism(48, 4, 8 * UNIT, 3 * UNIT),
    "subset": SubsetMechanism(48, 4, 2, 11 * UNIT),
    "product": ProductMechanism((HALF, HALF)),
}
FORM = AgreementMechanism(
    48,
    7,
    2,
    (2, 3, 3),
    ((0,), (1,), (2,), (0, 2)),
    (
        Component(
            11 * UNIT + 1,
            2,
            (
                Pool((0,), 1, Cover(2, 1), 2),
                Pool((1, 2), 1, Cover(3, None, ((1, 3), (6, 3), (3, 2), (4, 2)))),
            ),
        ),
        Component(5 * UNIT - 1, 1, (Pool((1,), 1, Cover(3, 2)), Pool((3,), 1, Cover(6, 2)))),
    ),
)
"""A form of three questions; LDP is the only notion that it can promise."""
JOINT = ((5, 2, 1, 3), (1, 4, 2, 2), (2, 2, 6, 1))
PRIOR = Prior("secret", ("low", "mid", "top"), (JOINT,), "a made-up table")
BOUNDS = (((1, 5), (1, 3)), ((1, 2), (1, 7)))
PAIRS = (
    (None, (3, 2), (2, 1), None),
    ((3, 2), None, (3, 2), (9, 4)),
    ((2, 1), (5, 4), None, None),
    (None, (9, 4), (3, 2), None),
)
DATA: dict[str, dict[str, Any]] = {
    "ldp": {},
    "dp": {"level": (9, 8), "delta": (0, 1)},
    "secret-ldp": {"joint": JOINT},
    "lip": {"joint": JOINT},
    "alip": {"joint": JOINT, "low_level": ONE},
    "srlip": {"joint": JOINT, "attributes": (2, 2)},
    "rldp": {"lower_bounds": BOUNDS, "diagonal": True},
    "dpv": {"joint": JOINT, "sensitive": 1},
    "metric-ldp": {"levels": PAIRS},
}
assert set(DATA) == set(NOTIONS)


@cache  # a test process needs the same 36 promises hundreds of times
def promise(mechanism: AnyMechanism, notion: str) -> Promise:
    """Return the promise of a notion at exactly the level that the mechanism needs."""
    claim = Claim(notion, **{"level": ONE, **DATA[notion]})
    levels: dict[str, Any] = {}
    for name, ratio in needed(mechanism, claim).items():
        assert ratio is not None
        levels[name] = ratio.as_integer_ratio()
        assert max(levels[name]) < 2**53
    claim = replace(claim, **levels)
    if claim.joint is not None:
        return Promise.under(claim, PRIOR)
    return (
        Promise(claim, None, "secret", "counts of 100 people")
        if notion == "rldp"
        else Promise(claim)
    )


def block(kind: str, *notions: str, name: str = "") -> Block:
    """Return a block with two yes-or-no questions that promises each notion."""
    mechanism, name = KINDS[kind], name or f"{kind}-{'-'.join(notions)}"
    return Block(
        id=name,
        questions=(question(f"{name}-a", "no", "yes"), question(f"{name}-b", "no", "yes")),
        mechanism=mechanism,
        promises=tuple(promise(mechanism, notion) for notion in notions),
        design_prior=(1, 2, 3, 4),
        ceiling=stated_ceiling(mechanism),
        mechanism_name="made-up",
        certificate=None,
    )


def form_block(form: AgreementMechanism = FORM, name: str = "form") -> Block:
    """Return a block that consists of a form and promises the form's level."""
    return Block(
        id=name,
        questions=tuple(
            question(f"{name}-{i}", *map(str, range(n))) for i, n in enumerate(form.choices)
        ),
        mechanism=form,
        promises=(Promise(Claim("ldp", form.level.as_integer_ratio())),),
        design_prior=tuple(range(1, sum(form.choices) + 1)),
        ceiling=form.level,
        mechanism_name="made-up",
        certificate=None,
    )


@cache
def _documents() -> dict[str, SurveyDocument]:
    single = {
        f"{kind} {notion}": survey(block(kind, notion)) for kind in KINDS for notion in NOTIONS
    }
    together = survey(*(block(kind, *NOTIONS, name=kind) for kind in KINDS), form_block())
    single["agreement ldp"] = survey(form_block())
    return single | {"everything": together}


def documents() -> dict[str, SurveyDocument]:
    """Return a document for every kind and notion, and one document with all of them."""
    return dict(_documents())


def below(promise: Promise) -> list[Promise]:
    """Return copies of the promise, each with one level slightly lowered."""
    lowered = []
    for name in ("delta",) if promise.claim.notion == "dp" else ("level", "low_level"):
        pair = getattr(promise.claim, name)
        if pair is None:
            continue
        # The next lower ratio whose denominator is the largest multiple below 2^53.
        ratio = Fraction(*pair)
        scale = (2**53 - 1) // max(pair)
        lower = Fraction(pair[0] * scale - 1, pair[1] * scale)
        assert lower < ratio
        change: dict[str, Any] = {name: lower.as_integer_ratio()}
        lowered.append(replace(promise, claim=replace(promise.claim, **change)))
    return lowered
