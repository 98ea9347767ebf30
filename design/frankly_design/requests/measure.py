# SPDX-License-Identifier: Apache-2.0
"""Requests of `frankly measure --json`: a JSON object in, a JSON object out (spec 1.9).

The object comes from `parse_json(..., decimals=True)`, which reads decimals exactly.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import Field, PlainValidator, Strict

from frankly_design.measures import MeasureOptions, measure
from frankly_design.measures.lift import require_order
from frankly_design.notions.declared.belief import require_attributes
from frankly_design.notions.prior import SUM_TOLERANCE, Prior, pairs
from frankly_design.requests.fields import (
    JointRows,
    Probability,
    RequestModel,
    Whole,
    errors_at_the_path,
    fraction,
)
from frankly_design.requests.targets import Targets, read_targets

_MAX_ENTRIES = 64
"""Largest number of orders or event probabilities in one request."""


def measure_json(obj: Any) -> dict[str, Any]:
    """Measure a mechanism from a JSON request.

    Keys of the request:

    - prior: {"joint": counts or probabilities}. Required.
    - weights: whole numbers, equal row sums. Or matrix: probabilities; each row sums to 1 within
      1e-9 and is then rescaled. Row = truth. If a prior of s × u counts is given with s·u rows, the
      answers are pairs (s, u), row-major.
    - attributes: sizes, for srlip. sensitive: a row of the prior, for dpv.
    - orders: numbers from 1e-6 to 1e6, or "inf"; default [2].
    - breaches: probabilities of events, numbers or decimal strings.
    - targets: rows of numbers, or "shares", for target_variances.

    Keys of the response: those of `measures.measure`; for pairs (s, u) also realised_epsilon, which
    equals secret_ldp.

    Raises InvalidInput, naming the field.
    """
    return finite(measured(MeasureRequest.from_json(obj)))


def measured(request: "MeasureRequest") -> dict[str, Any]:
    """Return the measures of a request; see `measure_json`. Infinite figures are `math.inf`."""
    if (request.weights is None) == (request.matrix is None):
        raise InvalidInput(Problem.FIELD_MISSING, "give either weights or matrix", "weights")
    weights = _sent(request.weights or request.matrix or [])
    # The number of rows determines whether the answers are pairs.
    prior, paired = _prior(request.prior, len(weights))
    figures = measure(weights, prior, _options(request, prior))
    return figures | ({"realised_epsilon": figures["secret_ldp"]} if paired else {})


def finite(body: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with infinity, at any depth, as "inf" or "-inf", and nan as null."""
    return {key: _finite(value) for key, value in body.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    # JSON has neither. Unknown figures are nan.
    return None if math.isnan(value) else str(value)


def _prior(rows: Any, answers: int) -> tuple[Prior, bool]:
    """Return the prior over the mechanism's answers, and True if these are pairs (s, u)."""
    prior = Prior.from_rows(rows)
    if prior.answers == answers:
        return prior, False
    # For a single row, `from_rows` returns a diagonal matrix, whose answers are not pairs.
    if prior.secrets * prior.answers == answers and len(rows) > 1:
        return pairs(prior), True
    raise InvalidInput(
        Problem.PRIOR_SHAPE,
        f"the prior has {prior.answers} answers, but the mechanism has {answers}",
        "prior.joint",
    )


def _options(request: "MeasureRequest", prior: Prior) -> MeasureOptions:
    sizes, sensitive = request.attributes, request.sensitive
    if sensitive is not None and not 0 <= sensitive < prior.secrets:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"the secrets are numbered from 0 to {prior.secrets - 1}",
            "sensitive",
        )
    return MeasureOptions(
        orders=request.orders,
        attributes=None if sizes is None else require_attributes(sizes, prior.answers),
        sensitive=sensitive,
        breaches=tuple(map(Fraction, request.breaches)),
        targets=read_targets(request.targets, prior.answers),
    )


def _sent(rows: list[list[int]]) -> list[list[int]]:
    """Return the rows without the columns of reports that are never sent."""
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    return [list(row) for row in zip(*columns, strict=True)]


def _order(value: Any) -> float:
    with errors_at_the_path():
        decimal = REQUEST.number(value, "") if value != "inf" else Decimal("Infinity")
        return require_order(float(decimal), "")


def _weights(value: Any) -> list[list[int]]:
    rows = REQUEST.table(value, "weights")
    _check_size(rows, "weights")
    weights = [
        [REQUEST.whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row)]
        for x, row in enumerate(rows)
    ]
    for x, row in enumerate(weights):
        if min(row) < 0 or sum(row) != sum(weights[0]) or not sum(row):
            raise InvalidInput(
                Problem.WEIGHTS_INVALID,
                "weights must be zero or more, and every row must have the same positive sum",
                f"weights[{x}]",
            )
    return weights


def _matrix(value: Any) -> list[list[int]]:
    rows = REQUEST.table(value, "matrix")
    _check_size(rows, "matrix")
    exact = [
        [_probability(v, f"matrix[{x}][{y}]") for y, v in enumerate(row)]
        for x, row in enumerate(rows)
    ]
    for x, row in enumerate(exact):
        if abs(sum(row, Fraction(0)) - 1) > SUM_TOLERANCE:
            raise InvalidInput(
                Problem.WEIGHTS_INVALID,
                f"the row sums to {float(sum(row)):.12g}, not to 1",
                f"matrix[{x}]",
            )
    # Decimals such as 0.333 cannot sum to 1 exactly, so rows near 1 are rescaled.
    return _equal_sums(exact)


def _probability(value: Any, field: str) -> Fraction:
    # The exponent is limited, because the exact fraction has that many digits.
    probability = fraction(value, field, 400, Problem.WEIGHTS_INVALID)
    if probability < 0:
        raise InvalidInput(Problem.WEIGHTS_INVALID, "a probability lies between 0 and 1", field)
    return probability


def _equal_sums(rows: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """Return integers with equal row sums, each row in the proportions of `rows`."""
    shares = [[v / sum(row, Fraction(0)) for v in row] for row in rows]
    common = math.lcm(*(v.denominator for row in shares for v in row))
    return [[v.numerator * (common // v.denominator) for v in row] for row in shares]


def _check_size(rows: list[list[Any]], field: str) -> None:
    if not 2 <= len(rows) <= MAX_ANSWERS or len(rows[0]) > MAX_REPORTS:
        raise InvalidInput(
            Problem.WEIGHTS_INVALID,
            f"a mechanism has 2 to {MAX_ANSWERS} rows and at most {MAX_REPORTS} columns",
            field,
        )


class MeasureRequest(RequestModel):
    """A request of `frankly measure --json`; see `measure_json`."""

    prior: JointRows
    weights: Annotated[list[list[int]] | None, PlainValidator(_weights)] = None
    matrix: Annotated[list[list[int]] | None, PlainValidator(_matrix)] = None
    attributes: Annotated[tuple[Whole, ...], Field(max_length=_MAX_ENTRIES)] | None = None
    sensitive: Annotated[int, Strict()] | None = None
    orders: Annotated[
        tuple[Annotated[float, PlainValidator(_order)], ...], Field(max_length=_MAX_ENTRIES)
    ] = (2.0,)
    breaches: Annotated[tuple[Probability, ...], Field(max_length=_MAX_ENTRIES)] = ()
    targets: Targets = "shares"
