# SPDX-License-Identifier: Apache-2.0
"""Designs for fewer targets than answers, with a certificate of optimality."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from random import Random

import pytest
from frankly_design.engine.engine import DesignRequest, design
from frankly_design.notions.prior import Prior
from frankly_design.requests.design import design_json
from frankly_design.tables.limits import Limits
from frankly_design.tables.quantise import quantise_by_columns
from frankly_protocol.audit import Claim, level_for

LEVELS = ("0.01", "0.1", "0.3", "0.5", "1", "2", "4")
Targets = tuple[tuple[Fraction, ...], ...]


def targets(rng: Random, answers: int) -> Targets:
    """Return one share, the sum of two shares, some shares, a contrast, or rows of small whole numbers."""
    share = [tuple(Fraction(int(x == z)) for z in range(answers)) for x in range(answers)]
    pair = tuple(a + b for a, b in zip(share[0], share[1], strict=True))
    contrast = tuple(a - b for a, b in zip(share[0], share[1], strict=True))
    some = tuple(
        tuple(Fraction(rng.randint(-3, 3)) for _ in range(answers))
        for _ in range(rng.randint(1, answers))
    )
    rows: Targets = rng.choice(
        ((share[0],), (pair,), tuple(share[: max(1, answers // 2)]), (contrast,), some)
    )
    # A row of equal numbers is a constant, so a share replaces it.
    return tuple(row if len(set(row)) > 1 else share[0] for row in rows)


@pytest.mark.slow
def test_random_requests_are_designed_and_certified(full: bool) -> None:
    for seed in range(1000 if full else 60):
        rng = Random(seed)
        answers = rng.randint(2, 8)
        request = DesignRequest(
            prior=Prior.from_rows([[rng.randint(1, 9) for _ in range(answers)]]),
            claims=(Claim("ldp", level_for(Fraction(rng.choice(LEVELS)))),),
            targets=targets(rng, answers),
            accept_unidentifiable=True,
        )
        found = design(request)
        assert found.certified, seed
        assert found.bound is not None
        assert found.value == pytest.approx(found.bound, rel=1e-3), seed


def test_answers_of_very_different_shares_are_no_reason_to_refuse() -> None:
    """The reserved full-rank mechanism is also found if an answer rules out a secret."""
    request = {
        "prior": {
            "joint": [[3761, 368, 752, 39], [8539, 0, 11, 5406], [16122, 15587, 20744, 28672]]
        },
        "notion": "alip",
        "epsilon_low": "0.0712",
        "epsilon_high": "1.0883",
        "ceiling_cap": "2.9211",
    }
    one, other = [0, 0, 1, 0], [1, 0, 0, 0]
    both, *alone = [
        design_json(request | {"targets": targets}) for targets in ([one, other], [one], [other])
    ]
    assert both["certified"]
    assert all(design["certified"] for design in alone)
    shares = design_json(request)
    least = sum(design["parameters"]["value"] for design in alone)
    assert least < both["parameters"]["value"] < shares["parameters"]["value"]


def test_a_gap_below_the_reserved_share_may_be_out_of_reach() -> None:
    """A full-rank mechanism has a share of 1e-7, so designs are certified at 1e-6 with gaps below
    5e-7 of the value, but rarely below 1e-12."""
    reached = []
    for seed in range(30):
        rng = Random(seed)
        answers = rng.randint(2, 5)
        prior = Prior.from_rows([[rng.randint(1, 400) for _ in range(answers)]])
        share = (tuple(Fraction(int(x == 0)) for x in range(answers)),)
        claims = (Claim("ldp", level_for(Fraction(rng.choice(LEVELS)))),)
        request = DesignRequest(
            prior, claims, targets=share, accept_unidentifiable=True, limits=Limits(gap=1e-12)
        )
        found = design(request)
        assert found.gap is not None
        assert found.gap < 5e-7 * found.value
        reached.append(found.certified)
        assert design(replace(request, limits=Limits())).certified, seed
    assert not all(reached)


QUESTIONS: list[tuple[tuple[tuple[int, ...], ...], str, float]] = [
    (((1,) * 4, (1,) * 4), "1", 33.2249),
    (((1,) * 5, (1,) * 2), "1", 25.2733),
    (((1,) * 3, (1,) * 3), "2", 5.7589),
    (((1,) * 2,) * 3, "2", 5.9492),
    (((9, 1), (5, 5), (7, 3)), "0.5", 73.8135),
]


@pytest.mark.slow
@pytest.mark.parametrize(("priors", "epsilon", "value"), QUESTIONS)
def test_shares_of_several_questions_answered_together(
    priors: tuple[tuple[int, ...], ...], epsilon: str, value: float
) -> None:
    """The targets are the shares of each question, not their joint distribution."""
    joint = list(product(*(range(len(prior)) for prior in priors)))
    rows = tuple(
        tuple(Fraction(int(answer[i] == x)) for answer in joint)
        for i, prior in enumerate(priors)
        for x in range(len(prior))
    )
    together = [prod(p[x] for p, x in zip(priors, answer, strict=True)) for answer in joint]
    found = design(
        DesignRequest(
            prior=Prior.from_rows([together]),
            claims=(Claim("ldp", level_for(Fraction(epsilon))),),
            targets=rows,
            accept_unidentifiable=True,
        )
    )
    assert found.certified
    assert found.value == pytest.approx(value, rel=1e-4)


def test_columns_are_rounded_as_a_whole() -> None:
    """Equal entries of a column stay equal, except in the last column, which completes the rows."""
    level = level_for(Fraction(1))
    p, q = level
    rows = [[p, q, p], [q, p, p], [p, p, q], [q, q, q]]
    rows = [[*row, 3 * p - sum(row) + q] for row in rows]
    rounded = quantise_by_columns(rows, (Claim("ldp", level),), (1, 1, 1, 1))
    for before, after in zip(
        zip(*rows, strict=True),
        list(zip(*rounded.mechanism.weights, strict=True))[:-1],
        strict=True,
    ):
        by_entry: dict[int, set[int]] = {}
        for entry, weight in zip(before, after, strict=True):
            by_entry.setdefault(entry, set()).add(weight)
        assert all(len(weights) == 1 for weights in by_entry.values())
    assert all(sum(row) == 1 << rounded.mechanism.bits for row in rounded.mechanism.weights)


def test_a_variance_far_below_the_squared_targets_is_certified() -> None:
    """The reserved share costs 1e-7 of the variance, not of the variance plus |W p|², 57 times as much."""
    request = {
        "prior": {"joint": [[908, 18], [0, 74]]},
        "notion": "rldp",
        "epsilon": "5.6539",
        "robust": {"order": 1, "n": 1000, "beta": "0.05"},
        "targets": [[1, 1, 0, 2], [2, 2, 0, 2]],
    }
    assert design_json(request)["certified"]
