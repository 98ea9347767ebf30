# SPDX-License-Identifier: Apache-2.0
"""JSON interface of `frankly measure --json`: an object in, an object out (spec 1.9).

The object comes from `parse_json(..., decimals=True)`, so that decimals are read exactly.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.design.api.read_request import read_prior
from frankly_server.design.measures import MeasureOptions, measure
from frankly_server.design.measures.lift import require_order
from frankly_server.design.notions.prior import SUM_TOLERANCE, Prior
from frankly_server.design.notions.promises import pairs, require_attributes

_OPTIONAL = frozenset("weights matrix attributes sensitive orders breaches targets".split())
_DECIMAL = re.compile(r"[0-9]?\.[0-9]{1,40}|[01]", re.ASCII)

_MAX_ENTRIES = 64
"""Largest number of orders or event probabilities in one request."""


def measure_json(obj: Any) -> dict[str, Any]:
    """Measure a mechanism from a JSON request.

    Keys of the request:

    - prior: {"joint": counts or probabilities}. Required.
    - weights: whole numbers, equal row sums. Or matrix: probabilities, each row within 1e-9 of 1 and
      then rescaled. Row = truth. A prior of s × u counts beside s·u rows is one of answers (s, u),
      row-major.
    - attributes: sizes, for srlip. sensitive: a row of the prior, for dpv.
    - orders: numbers from 1e-6 to 1e6, or "inf"; default [2].
    - breaches: probabilities of events, numbers or decimal strings.
    - targets: rows of numbers, or "shares", for target_variances.

    Keys of the response: those of `measures.measure`, and over answers (s, u) realised_epsilon, which
    is their secret_ldp.

    Raises InvalidInput, naming the field.
    """
    fields = REQUEST.record(obj, None, {"prior"}, _OPTIONAL)
    if ("weights" in fields) == ("matrix" in fields):
        raise InvalidInput(Problem.FIELD_MISSING, "give either weights or matrix", "weights")
    weights = _weights(fields["weights"]) if "weights" in fields else _matrix(fields["matrix"])
    prior, paired = _prior(fields["prior"], len(weights))
    figures = measure(weights, prior, _options(fields, prior))
    return finite(figures | ({"realised_epsilon": figures["secret_ldp"]} if paired else {}))


def finite(body: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with the infinite ones, at any depth, as the string "inf"."""
    return {key: _finite(value) for key, value in body.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def read_targets(value: Any, answers: int) -> tuple[tuple[Fraction, ...], ...] | None:
    """Read the workload W: None for all shares. Raises InvalidInput(targets_invalid)."""
    if value == "shares":
        return None
    rows = REQUEST.table(value, "targets")
    if len(rows) > MAX_REPORTS or len(rows[0]) != answers:
        message = f'give rows of {answers} numbers, one per answer, or "shares"'
        raise InvalidInput(Problem.TARGETS_INVALID, message, "targets")
    places = [[f"targets[{t}][{x}]" for x in range(answers)] for t in range(len(rows))]
    targets = tuple(tuple(map(_exact, row, place)) for row, place in zip(rows, places, strict=True))
    for t, row in enumerate(targets):
        if not any(row):
            raise InvalidInput(
                Problem.TARGETS_INVALID,
                "a target needs a number other than zero",
                f"targets[{t}]",
            )
    return targets


def _exact(value: Any, field: str) -> Fraction:
    decimal = REQUEST.number(value, field)
    # Exact arithmetic on numbers of very different sizes takes long, and no target needs them.
    if decimal and abs(decimal.adjusted()) > 12:
        raise InvalidInput(Problem.TARGETS_INVALID, "give numbers of ordinary size", field)
    return Fraction(decimal)


def _prior(value: Any, answers: int) -> tuple[Prior, bool]:
    """Return (prior of the mechanism's answers, True if these are pairs (s, u))."""
    prior = read_prior(value)
    if prior.answers == answers:
        return prior, False
    # A prior of one row became a diagonal matrix; its answers are not pairs.
    if prior.secrets * prior.answers == answers and len(value["joint"]) > 1:
        return pairs(prior), True
    message = f"the prior has {prior.answers} answers, the mechanism {answers}"
    raise InvalidInput(Problem.PRIOR_SHAPE, message, "prior.joint")


def _options(fields: Mapping[str, Any], prior: Prior) -> MeasureOptions:
    attributes, sensitive = fields.get("attributes"), fields.get("sensitive")
    if attributes is not None:
        sizes = [
            REQUEST.whole(size, f"attributes[{i}]")
            for i, size in enumerate(_list(attributes, "attributes"))
        ]
        attributes = require_attributes(sizes, prior.answers)
    if sensitive is not None and not 0 <= REQUEST.whole(sensitive, "sensitive") < prior.secrets:
        message = f"the secrets are counted from 0 to {prior.secrets - 1}"
        raise InvalidInput(Problem.FIELD_TYPE, message, "sensitive")
    orders = _list(fields.get("orders", [2]), "orders")
    breaches = _list(fields.get("breaches", []), "breaches")
    return MeasureOptions(
        orders=tuple(_order(v, f"orders[{i}]") for i, v in enumerate(orders)),
        attributes=attributes,
        sensitive=sensitive,
        breaches=tuple(_event(v, f"breaches[{i}]") for i, v in enumerate(breaches)),
        targets=read_targets(fields.get("targets", "shares"), prior.answers),
    )


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > _MAX_ENTRIES:
        raise InvalidInput(Problem.FIELD_TYPE, f"give a list of at most {_MAX_ENTRIES}", field)
    return list(value)


def _order(value: Any, field: str) -> float:
    decimal = REQUEST.number(value, field) if value != "inf" else Decimal("Infinity")
    return require_order(float(decimal), field)


def _event(value: Any, field: str) -> Fraction:
    """Read the probability of an event."""
    text = isinstance(value, str) and _DECIMAL.fullmatch(value)
    decimal = REQUEST.number(Decimal(value) if text else value, field)
    if not 0 <= decimal <= 1 or decimal.adjusted() < -_MAX_ENTRIES:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "the probability of an event lies between 0 and 1",
            field,
        )
    return Fraction(decimal)


def _weights(value: Any) -> list[list[int]]:
    rows = REQUEST.table(value, "weights")
    _check_size(rows, "weights")
    weights = [
        [REQUEST.whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row)]
        for x, row in enumerate(rows)
    ]
    for x, row in enumerate(weights):
        if min(row) < 0 or sum(row) != sum(weights[0]) or not sum(row):
            message = "weights are zero or more and every row has the same positive sum"
            raise InvalidInput(Problem.WEIGHTS_INVALID, message, f"weights[{x}]")
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
            message = f"the row sums to {float(sum(row)):.12g}, not to 1"
            raise InvalidInput(Problem.WEIGHTS_INVALID, message, f"matrix[{x}]")
    # Decimals such as 0.333 cannot sum to 1 exactly, so rows near 1 are rescaled.
    return _equal_sums(exact)


def _probability(value: Any, field: str) -> Fraction:
    decimal = REQUEST.number(value, field)
    # The exponent is bounded, because an exact fraction has as many digits.
    if decimal < 0 or abs(decimal.adjusted()) > 400:
        raise InvalidInput(Problem.WEIGHTS_INVALID, "a probability lies between 0 and 1", field)
    return Fraction(decimal)


def _equal_sums(rows: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """Return whole numbers with equal row sums, each row in the proportions of `rows`."""
    shares = [[v / sum(row, Fraction(0)) for v in row] for row in rows]
    common = math.lcm(*(v.denominator for row in shares for v in row))
    return [[v.numerator * (common // v.denominator) for v in row] for row in shares]


def _check_size(rows: list[list[Any]], field: str) -> None:
    if not 2 <= len(rows) <= MAX_ANSWERS or len(rows[0]) > MAX_REPORTS:
        message = f"a mechanism has 2 to {MAX_ANSWERS} rows and at most {MAX_REPORTS} columns"
        raise InvalidInput(Problem.WEIGHTS_INVALID, message, field)
