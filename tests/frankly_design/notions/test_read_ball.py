# SPDX-License-Identifier: Apache-2.0
"""Bad requests for a robust design, which are refused by field (bad input 16)."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.notions.ball_bounds import is_vacuous, lower_bounds
from frankly_design.notions.balls import confidence_ball
from frankly_protocol.errors import InvalidInput

GOOD: dict[str, Any] = {"joint": [[7, 10], [26, 57]], "order": 2, "n": 100, "beta": "0.05"}

BAD = {
    "order zero": ({"order": 0}, "robust.order"),
    "order negative": ({"order": -1}, "robust.order"),
    "order NaN": ({"order": math.nan}, "robust.order"),
    "order infinite": ({"order": math.inf}, "robust.order"),
    "order Decimal NaN": ({"order": Decimal("NaN")}, "robust.order"),
    "order huge": ({"order": Decimal("1e999999")}, "robust.order"),
    "order beyond the range": ({"order": 101}, "robust.order"),
    "order too close to 1": ({"order": Decimal("1.0000001")}, "robust.order"),
    "order a text": ({"order": "2"}, "robust.order"),
    "order a truth value": ({"order": True}, "robust.order"),
    "n zero": ({"n": 0}, "robust.n"),
    "n negative": ({"n": -5}, "robust.n"),
    "n a float": ({"n": 100.0}, "robust.n"),
    "n NaN": ({"n": math.nan}, "robust.n"),
    "n beyond a document": ({"n": 2**53}, "robust.n"),
    "beta zero": ({"beta": "0.0"}, "robust.beta"),
    "beta one": ({"beta": "1.0"}, "robust.beta"),
    "beta above one": ({"beta": "5.0"}, "robust.beta"),
    "beta negative": ({"beta": "-0.05"}, "robust.beta"),
    "beta NaN": ({"beta": "NaN"}, "robust.beta"),
    "beta a float": ({"beta": 0.05}, "robust.beta"),
    "beta NaN as a Decimal": ({"beta": Decimal("NaN")}, "robust.beta"),
    "beta with an exponent": ({"beta": "5e-2"}, "robust.beta"),
    "beta with foreign digits": ({"beta": "0.٠٥"}, "robust.beta"),
    "one secret": ({"joint": [[1, 2]]}, "prior.joint"),
    "ragged": ({"joint": [[1, 2], [1]]}, "prior.joint"),
    "no people": ({"joint": [[0, 0], [0, 0]]}, "prior.joint"),
    "too many cells": ({"joint": [[1] * 129] * 2}, "prior.joint"),
    "a negative count": ({"joint": [[1, 2], [3, -1]]}, "prior.joint[1][1]"),
    "a float count": ({"joint": [[1, 2.0], [3, 1]]}, "prior.joint[0][1]"),
}


@pytest.mark.parametrize(("change", "field"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_by_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        lower_bounds(**{**GOOD, **change})
    assert refusal.value.field == field
    assert refusal.value.problem.status == 422


def test_a_decimal_is_read_exactly() -> None:
    ball = confidence_ball(**{**GOOD, "order": 0.1, "beta": Decimal("0.050")})
    assert ball.order == Fraction(1, 10)
    assert ball.threshold == confidence_ball(**GOOD).threshold


def test_a_vacuous_radius_is_recognised() -> None:
    # With one respondent the Hellinger ball (order 1/2) is the whole simplex.
    assert is_vacuous(lower_bounds(**{**GOOD, "order": 0.5, "n": 1}))
    assert not is_vacuous(lower_bounds(**GOOD))
