# SPDX-License-Identifier: Apache-2.0
"""Tables from lists, arrays and pandas: the same exact numbers, their labels, and refusals."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest
from frankly_design.interface.tables import exact, table
from frankly_design.notions.prior import Prior
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.interface.given import JOINT
from tests.refusals import refusal

SHARES = [[0.05, 0.15, 0.1], [0.3, 0.1, 0.3]]
COUNTS = [[1, 3, 2], [6, 2, 6]]
"""The same distribution: sums of these floats in binary are not 1."""
AS_TEXT = [[str(v) for v in row] for row in SHARES]
CONTAINERS: list[tuple[str, Any]] = [
    ("lists", COUNTS),
    ("tuples", tuple(map(tuple, COUNTS))),
    ("list of tuples", [tuple(row) for row in COUNTS]),
    ("integers", np.array(COUNTS)),
    ("small integers", np.array(COUNTS, dtype=np.uint8)),
    ("numbers of numpy", [[np.int32(v) for v in row] for row in COUNTS]),
    ("column-major", np.asfortranarray(COUNTS)),
    ("transposed", np.array(COUNTS).T.copy().T),
    ("objects", np.array(COUNTS, dtype=object)),
    ("frame", pd.DataFrame(COUNTS)),
    ("nullable frame", pd.DataFrame(COUNTS, dtype="Int64")),
    ("prior", Prior.from_rows(COUNTS)),
    ("floats", SHARES),
    ("array of floats", np.array(SHARES)),
    ("frame of floats", pd.DataFrame(SHARES)),
    ("decimals", [[Decimal(v) for v in row] for row in AS_TEXT]),
    ("frame of decimals", pd.DataFrame([[Decimal(v) for v in row] for row in AS_TEXT])),
    ("fractions", [[Fraction(v) for v in row] for row in AS_TEXT]),
    ("other fractions", [[Fraction(v, 20) for v in row] for row in COUNTS]),
    ("mixed", [[0.05, Fraction(3, 20), Decimal("0.1")], [np.float64(0.3), 0.1, 0.3]]),
]


@pytest.mark.parametrize(
    "given", [case[1] for case in CONTAINERS], ids=[case[0] for case in CONTAINERS]
)
def test_every_container_has_the_same_numbers(given: Any) -> None:
    assert Prior.from_rows(table(given, "prior.joint").rows).joint == tuple(map(tuple, COUNTS))


@pytest.mark.parametrize("name", ["lists", "integers", "frame", "floats", "fractions", "prior"])
def test_every_container_gives_the_same_design(name: str) -> None:
    made, expected = (
        fd.design(dict(CONTAINERS)[name], fd.LIP("0.2")),
        fd.design(COUNTS, fd.LIP("0.2")),
    )
    assert made.to_json() == expected.to_json()


def test_thirds_are_exact() -> None:
    thirds = fd.design([[Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)]], fd.LDP(1))
    assert thirds.to_json() == fd.design([[2, 1, 3]], fd.LDP(1)).to_json()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.1, Decimal("0.1")), (1e-7, Decimal("1E-7")), (0.1 + 0.2, Decimal("0.30000000000000004")), (-2.5,
         Decimal("-2.5")),
        (1e22, Decimal("1E+22")), (np.float64(0.1), Decimal("0.1")), (np.array(0.25), Decimal("0.25")),
        (Fraction(1, 8), Decimal("0.125")), (Fraction(-3, 4), Decimal("-0.75")), (Fraction(0), 0),
        (Fraction(12345678901234567890123456789012345, 10**20), Decimal("123456789012345.67890123456789012345")),
        (Fraction(1, 3), Fraction(1, 3)), (Fraction(1, 10**31), Fraction(1, 10**31)), (7, 7), ("0.10", "0.10"), (None,
         None),
        (Decimal("0.10"), Decimal("0.10")), (float("inf"), "inf"), (float("-inf"), "-inf"), (np.int64(7), 7),
        ((1, (0.5, [np.int8(2)])), [1, [Decimal("0.5"), [2]]]), (np.array([[1, 2]]), [[1, 2]]),
    ],
)  # fmt: skip
def test_numbers_are_exact(given: Any, expected: Any) -> None:
    found = exact(given, "x")
    assert (found, type(found)) == (expected, type(expected))
    if isinstance(found, Decimal) and isinstance(given, Fraction):
        assert Fraction(found) == given


# -- labels ----------------------------------------------------------------------------------------


def crosstab() -> pd.DataFrame:
    """Return the counts of `COUNTS` from a table of people, as a user would."""
    people = [
        (row, column)
        for row, counts in zip(("ill", "well"), COUNTS, strict=True)
        for column, n in zip(("never", "often", "rarely"), counts, strict=True)
        for _ in range(n)
    ]
    frame = pd.DataFrame(people, columns=["health", "smoking"])
    return pd.crosstab(frame["health"], frame["smoking"])


def test_labels_of_a_cross_table_are_kept() -> None:
    made = fd.design(crosstab(), fd.LIP("0.2"))
    assert made.answers == ("never", "often", "rarely")
    assert made.secrets == ("ill", "well")
    assert list(made.to_frame().index) == ["never", "often", "rarely"]
    assert made.to_json() == fd.design(COUNTS, fd.LIP("0.2")).to_json()
    estimates = made.estimate(counts=[10] * made.reports)
    assert estimates.labels == made.answers
    assert list(estimates.to_frame().index) == list(made.answers)


def test_labels_of_a_series_are_answers_and_secrets() -> None:
    for given in (
        pd.Series([1, 2, 3], index=list("abc")),
        pd.DataFrame([[1, 2, 3]], columns=list("abc")),
    ):
        made = fd.design(given, fd.LDP(1))
        assert made.answers == made.secrets == ("a", "b", "c")
        assert made.to_json() == fd.design([[1, 2, 3]], fd.LDP(1)).to_json()
    assert fd.design(np.array([1, 2, 3]), fd.LDP(1)).answers == (0, 1, 2)


@pytest.mark.parametrize("notion", [fd.RLDP(1, 75), fd.SecretLDP(1)], ids=["rldp", "secret-ldp"])
def test_mechanisms_over_pairs_have_pairs_as_answers(notion: fd.Notion) -> None:
    frame = pd.DataFrame([[10, 20], [30, 15]], index=["ill", "well"], columns=["no", "yes"])
    made = fd.design(frame, notion, mechanism="secret-rr")
    pairs = (("ill", "no"), ("ill", "yes"), ("well", "no"), ("well", "yes"))
    assert (made.answers, made.secrets) == (pairs, ("ill", "well"))
    assert list(made.to_frame().index) == list(pairs)
    assert made.estimate(counts=[5] * made.reports).labels == pairs
    numbered = fd.design([[10, 20], [30, 15]], notion, mechanism="secret-rr")
    assert numbered.answers == ((0, 0), (0, 1), (1, 0), (1, 1))


def test_labels_of_several_levels_and_of_numpy_are_plain() -> None:
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    assert fd.design(pd.DataFrame(COUNTS, columns=columns), fd.LIP("0.2")).answers == (
        ("a", 1),
        ("a", 2),
        ("b", 1),
    )
    made = fd.design(pd.DataFrame(COUNTS, columns=np.array([10, 20, 30])), fd.LIP("0.2"))
    assert [type(label) for label in made.answers] == [int] * 3


def test_a_table_without_labels_has_none() -> None:
    assert (table(COUNTS, "x").row_labels, table(np.array(COUNTS), "x").column_labels) == (
        None,
        None,
    )


# -- refusals --------------------------------------------------------------------------------------

BAD: list[tuple[str, Callable[[], Any], str, str, str]] = [
    ("nothing", list, "prior_shape", "prior.joint", "rows of numbers"),
    ("an empty row", lambda: [[]], "prior_shape", "prior.joint[0]", "2 to"),
    ("no columns", lambda: np.zeros((2, 0), dtype=int), "prior_shape", "prior.joint[0]", "2 to"),
    ("no rows", lambda: np.zeros((0, 2), dtype=int), "prior_shape", "prior.joint", "rows of numbers"),
    ("an empty frame", pd.DataFrame, "prior_shape", "prior.joint", "rows of numbers"),
    ("none", lambda: None, "prior_shape", "prior.joint", "rows of numbers"),
    ("a number", lambda: 5, "prior_shape", "prior.joint", "rows of numbers"),
    ("an array without dimensions", lambda: np.array(5), "prior_shape", "prior.joint", "rows of numbers"),
    ("text", lambda: "1, 2", "prior_shape", "prior.joint", "rows of numbers"),
    ("bytes", lambda: b"12", "prior_shape", "prior.joint", "rows of numbers"),
    ("a dict", lambda: {"joint": COUNTS}, "prior_shape", "prior.joint", "rows of numbers"),
    ("a set", lambda: {1, 2}, "prior_shape", "prior.joint", "rows of numbers"),
    ("a generator", lambda: (row for row in COUNTS), "prior_shape", "prior.joint", "rows of numbers"),
    ("ragged", lambda: [[1, 2], [3]], "prior_shape", "prior.joint[1]", "same number"),
    ("one answer", lambda: [[1], [2]], "prior_shape", "prior.joint[0]", "2 to"),
    ("three dimensions", lambda: np.ones((2, 2, 2), dtype=int), "prior_value", "prior.joint[0][0]", "numbers"),
    ("nested lists", lambda: [[[1, 2], [3, 4]]], "prior_value", "prior.joint[0][0]", "numbers"),
    ("a row of text", lambda: [[1, 2], "34"], "prior_shape", "prior.joint", "numbers"),
    ("words", lambda: [["a", "b"]], "prior_value", "prior.joint[0][0]", "numbers"),
    ("numbers as text", lambda: [["1", "2"]], "prior_value", "prior.joint[0][0]", "numbers"),
    ("array of text", lambda: np.array([["1", "2"]]), "prior_value", "prior.joint[0][0]", "numbers"),
    ("nan", lambda: [[1, 2], [3, float("nan")]], "field_type", "prior.joint[1]", "nan"),
    ("nan in an array", lambda: np.array([[0.5, np.nan]]), "field_type", "prior.joint[0]", "nan"),
    ("nan in a frame", lambda: pd.DataFrame([[1, None], [2, 3]]), "field_type", "prior.joint[0]", "nan"),
    ("nan in a series", lambda: pd.Series([1.0, np.nan]), "field_type", "prior.joint", "nan"),
    ("missing", lambda: pd.DataFrame([[1, None], [2, 3]], dtype="Int64"), "prior_value", "prior.joint[0][1]",
     "numbers"),
    ("none in a row", lambda: [[1, None]], "prior_value", "prior.joint[0][1]", "numbers"),
    ("infinite", lambda: [[1, float("inf")]], "prior_value", "prior.joint[0][1]", "finite"),
    ("infinite in an array", lambda: np.array([[np.inf, 1]]), "prior_value", "prior.joint[0][0]", "finite"),
    ("decimal nan", lambda: [[Decimal("NaN"), 1]], "prior_value", "prior.joint[0][0]", "finite"),
    ("negative", lambda: [[3, -1]], "prior_value", "prior.joint[0][1]", "zero or more"),
    ("negative share", lambda: np.array([[1.5, -0.5]]), "prior_value", "prior.joint[0][1]", "zero or more"),
    ("negative fraction", lambda: [[Fraction(4, 3), Fraction(-1, 3)]], "prior_value", "prior.joint[0][1]",
     "zero or more"),
    ("true", lambda: [[True, False]], "prior_value", "prior.joint[0][0]", "numbers"),
    ("array of truth values", lambda: np.array([[True, False]]), "prior_value", "prior.joint[0][0]", "numbers"),
    ("frame of truth values", lambda: pd.DataFrame([[True, True]]), "prior_value", "prior.joint[0][0]", "numbers"),
    ("complex", lambda: np.array([[1j, 1]]), "prior_value", "prior.joint[0][0]", "numbers"),
    ("all zero", lambda: [[0, 0]], "prior_sum", "prior.joint", "sums to 0"),
    ("sum of 1.3", lambda: [[0.8, 0.5]], "prior_sum", "prior.joint", "sums to 1.3"),
    ("counts of 2^53", lambda: [[2**53, 1]], "prior_value", "prior.joint[0][0]", "2^53"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "code", "field", "said"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_tables(given: Callable[[], Any], code: str, field: str, said: str) -> None:
    error = refusal(InvalidInput, fd.design, given(), fd.LDP(1))
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


@pytest.mark.parametrize(
    ("name", "given"),
    [("prior.joint", None), ("priors[0].joint", [None]), ("targets", 3), ("matrix", 3)],
)
def test_a_bad_table_is_named_by_its_argument(name: str, given: Any) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "prior.joint": lambda: fd.design(given, fd.LIP(1)),
        "priors[0].joint": lambda: fd.design(JOINT, fd.LIP(1), priors=given),
        "targets": lambda: fd.design(JOINT, fd.LIP(1), targets=given),
        "matrix": lambda: fd.measure(given, JOINT),
    }
    error = refusal(InvalidInput, calls[name])
    assert (error.code, error.field) == ("prior_shape", name)
