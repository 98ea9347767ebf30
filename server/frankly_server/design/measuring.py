# SPDX-License-Identifier: Apache-2.0
"""`frankly measure --json`: a JSON object in, a JSON object out (DESIGN §7).

The object comes from `parse_json(..., decimals=True)`, so that decimals are read exactly.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.problems import Problem

from frankly_server.design.asked import read_prior
from frankly_server.design.measures import measure
from frankly_server.design.prior import SUM_TOLERANCE
from frankly_server.records import number, record, table, whole


def measure_json(obj: Any) -> dict[str, Any]:
    """Measure a mechanism from a JSON request.

    In: prior {"joint"}, and either weights (whole numbers, equal row sums) or matrix (probabilities, each row within
    1e-9 of 1 and then rescaled); row = truth. Out: the figures of `measures.measure`.

    Raises InvalidInput, naming the field.
    """
    given = record(obj, frozenset({"prior"}), frozenset({"weights", "matrix"}))
    if ("weights" in given) == ("matrix" in given):
        raise InvalidInput(Problem.FIELD_MISSING, "give either weights or matrix", "weights")
    weights = _weights(given["weights"]) if "weights" in given else _matrix(given["matrix"])
    prior = read_prior(given["prior"])
    if prior.answers != len(weights):
        words = f"the prior has {prior.answers} answers, the mechanism {len(weights)}"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, "prior.joint")
    return finite(measure(weights, prior))


def finite(body: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with the infinite ones as the string "inf"."""
    return {key: "inf" if isinstance(value, float) and math.isinf(value) else value for key, value in body.items()}


def _weights(value: Any) -> list[list[int]]:
    rows = table(value, "weights")
    _check_size(rows, "weights")
    weights = [[whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row)] for x, row in enumerate(rows)]
    for x, row in enumerate(weights):
        if min(row) < 0 or sum(row) != sum(weights[0]) or not sum(row):
            words = "weights are zero or more and every row has the same positive sum"
            raise InvalidInput(Problem.WEIGHTS_INVALID, words, f"weights[{x}]")
    return weights


def _matrix(value: Any) -> list[list[int]]:
    rows = table(value, "matrix")
    _check_size(rows, "matrix")
    exact = [[_probability(v, f"matrix[{x}][{y}]") for y, v in enumerate(row)] for x, row in enumerate(rows)]
    for x, row in enumerate(exact):
        if abs(sum(row, Fraction(0)) - 1) > SUM_TOLERANCE:
            words = f"the row sums to {float(sum(row)):.12g}, not to 1"
            raise InvalidInput(Problem.WEIGHTS_INVALID, words, f"matrix[{x}]")
    return _equal_sums(exact)


def _probability(value: Any, field: str) -> Fraction:
    read = number(value, field)
    if read < 0 or abs(read.adjusted()) > 400:
        raise InvalidInput(Problem.WEIGHTS_INVALID, "a probability lies between 0 and 1", field)
    return Fraction(read)


def _equal_sums(rows: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """Return whole numbers with equal row sums, each row in the proportions given."""
    shares = [[v / sum(row, Fraction(0)) for v in row] for row in rows]
    common = math.lcm(*(v.denominator for row in shares for v in row))
    return [[v.numerator * (common // v.denominator) for v in row] for row in shares]


def _check_size(rows: list[list[Any]], field: str) -> None:
    if not 2 <= len(rows) <= MAX_ANSWERS or len(rows[0]) > MAX_REPORTS:
        words = f"a mechanism has 2 to {MAX_ANSWERS} rows and at most {MAX_REPORTS} columns"
        raise InvalidInput(Problem.WEIGHTS_INVALID, words, field)
