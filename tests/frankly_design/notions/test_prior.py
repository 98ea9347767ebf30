# SPDX-License-Identifier: Apache-2.0
"""Priors, which are read exactly or refused with the row and column at fault (bad inputs 4-7)."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from frankly_design.notions.prior import Prior
from frankly_protocol.errors import InvalidInput

from tests.refusals import code_and_field

BAD: list[tuple[str, Any, str, str]] = [
    ("sums to 1.3", [[Decimal("0.8"), Decimal("0.5")]], "prior_sum", "prior.joint"),
    ("sums to 0.999", [[Decimal("0.5"), Decimal("0.499")]], "prior_sum", "prior.joint"),
    ("all zero", [[0, 0], [0, 0]], "prior_sum", "prior.joint"),
    ("negative count", [[3, 4], [5, -1]], "prior_value", "prior.joint[1][1]"),
    ("negative decimal", [[Decimal("1.5"), Decimal("-0.5")]], "prior_value", "prior.joint[0][1]"),
    ("not a number", [[float("nan"), 1.0]], "prior_value", "prior.joint[0][0]"),
    ("infinite", [[0.5, 0.5], [float("inf"), 0.0]], "prior_value", "prior.joint[1][0]"),
    ("decimal nan", [[Decimal("NaN"), Decimal(1)]], "prior_value", "prior.joint[0][0]"),
    ("absurdly small", [[Decimal("1e-999"), Decimal(1)]], "prior_value", "prior.joint[0][0]"),
    ("true", [[True, 2]], "prior_value", "prior.joint[0][0]"),
    ("text", [["1", 2]], "prior_value", "prior.joint[0][0]"),
    ("null", [[None, 2]], "prior_value", "prior.joint[0][0]"),
    ("count beyond 2^53", [[2**53, 2]], "prior_value", "prior.joint[0][0]"),
    ("ragged", [[1, 2], [3]], "prior_shape", "prior.joint[1]"),
    ("one answer", [[1], [2]], "prior_shape", "prior.joint[0]"),
    ("1001 answers", [[1] * 1001], "prior_shape", "prior.joint[0]"),
    ("257 answers of two secrets", [[1] * 257] * 2, "prior_shape", "prior.joint[0]"),
    ("257 secrets", [[1, 2]] * 257, "prior_shape", "prior.joint"),
    ("no rows", [], "prior_shape", "prior.joint"),
    ("no table", "0.5", "prior_shape", "prior.joint"),
    ("rows of text", ["12", "34"], "prior_shape", "prior.joint[0]"),
    ("missing", None, "prior_shape", "prior.joint"),
]


@pytest.mark.parametrize(
    ("rows", "code", "field"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_priors(rows: Any, code: str, field: str) -> None:
    assert code_and_field(InvalidInput, Prior.from_rows, rows) == (code, field)


def test_the_error_names_the_sum() -> None:
    with pytest.raises(InvalidInput, match=r"1\.3"):
        Prior.from_rows([[0.8, 0.5]])


def test_counts_are_not_changed() -> None:
    prior = Prior.from_rows([[10, 20, 30], [2, 4, 6]])
    assert prior.joint == ((10, 20, 30), (2, 4, 6))
    assert (prior.shares, prior.masses, prior.total) == ((12, 24, 36), (60, 12), 72)
    assert (prior.answers, prior.secrets) == (3, 2)
    np.testing.assert_allclose(prior.probabilities(), [1 / 6, 1 / 3, 1 / 2], rtol=1e-15)


def test_one_row_means_the_answer_is_the_secret() -> None:
    assert Prior.from_rows([[3, 0, 4]]).joint == ((3, 0, 0), (0, 0, 0), (0, 0, 4))


@pytest.mark.parametrize(
    ("rows", "joint"),
    [
        ([[Decimal("0.25"), Decimal("0.75")], [0, Decimal(0)]], ((1, 3), (0, 0))),
        ([[0.1, 0.2], [0.3, 0.4]], ((1, 2), (3, 4))),  # a float is read as its shortest decimal
        ([[Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 2), 0]], ((2, 1), (3, 0))),
        (
            [[Decimal("0.3333333333"), Decimal("0.6666666667")], [0, 0]],
            ((3333333333, 6666666667), (0, 0)),
        ),
    ],
)
def test_decimals_are_read_exactly(rows: Any, joint: tuple[tuple[int, ...], ...]) -> None:
    assert Prior.from_rows(rows).joint == joint


def test_a_sum_within_the_tolerance_is_rescaled() -> None:
    prior = Prior.from_rows([[Decimal("0.5"), Decimal("0.4999999995")], [0, 0]])
    assert Fraction(prior.shares[0], prior.total) == Fraction(10**10 // 2, 9999999995)


def test_long_decimals_are_rounded_to_counts_that_fit_a_document() -> None:
    values = [0.012345678901234567, 1e-30, 1 - 0.012345678901234567, 0.0]
    prior = Prior.from_rows([values, [0, 0, 0, 0]])
    assert max(prior.shares) < 2**53
    assert prior.shares[1] == 1  # never rounded to nothing
    assert prior.shares[3] == 0
    assert abs(Fraction(prior.shares[0], prior.total) - Fraction(values[0])) < Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("rows", "code", "field"),
    [
        ([[1, 0, 3], [2, 0, 5]], "choice_unprotected", "prior.joint[0][1]"),
        ([[1, 2, 3], [0, 0, 0]], "secret_empty", "prior.joint[1]"),
        ([[1, 0, 3]], "choice_unprotected", "prior.joint[0][1]"),
    ],
)
def test_empty_secrets_and_answers_are_refused(
    rows: list[list[int]], code: str, field: str
) -> None:
    prior = Prior.from_rows(rows)
    assert code_and_field(InvalidInput, prior.require_protection) == (code, field)
