# SPDX-License-Identifier: Apache-2.0
"""`frankly measure --json`: a JSON object in, a JSON object out (DESIGN §7).

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

from frankly_server.design.asked import read_prior
from frankly_server.design.lift.measures import require_order
from frankly_server.design.measures import Wanted, measure
from frankly_server.design.prior import SUM_TOLERANCE, Prior
from frankly_server.design.promises import pairs, require_attributes
from frankly_server.records import number, record, table, whole

_OPTIONAL = frozenset("weights matrix attributes sensitive orders breaches targets".split())
_DECIMAL = re.compile(r"[0-9]?\.[0-9]{1,40}|[01]", re.ASCII)

_MOST = 64
"""How many orders or probabilities of events one request may ask for."""


def measure_json(obj: Any) -> dict[str, Any]:
    """Measure a mechanism from a JSON request.

    In: prior {"joint"}, and either weights (whole numbers, equal row sums) or matrix (probabilities, each row within
    1e-9 of 1 and then rescaled); row = truth. A prior of s × u counts beside s·u rows is one of answers (s, u),
    row-major. Optional: attributes (sizes) for srlip; sensitive (a row of the prior) for dpv; orders (numbers from 1e-6
    to 1e6, or "inf"; default [2]); breaches (probabilities of events, numbers or decimal strings); targets (rows of
    numbers, or "shares") for target_variances.

    Out: the figures of `measures.measure`, and over answers (s, u) realised_epsilon, which is their secret_ldp.

    Raises InvalidInput, naming the field.
    """
    given = record(obj, frozenset({"prior"}), _OPTIONAL)
    if ("weights" in given) == ("matrix" in given):
        raise InvalidInput(Problem.FIELD_MISSING, "give either weights or matrix", "weights")
    weights = _weights(given["weights"]) if "weights" in given else _matrix(given["matrix"])
    prior, paired = _prior(given["prior"], len(weights))
    found = measure(weights, prior, _wanted(given, prior))
    return finite(found | ({"realised_epsilon": found["secret_ldp"]} if paired else {}))


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
    rows = table(value, "targets")
    if len(rows) > MAX_REPORTS or len(rows[0]) != answers:
        words = f'give rows of {answers} numbers, one per answer, or "shares"'
        raise InvalidInput(Problem.TARGETS_INVALID, words, "targets")
    read = tuple(tuple(_exact(v, f"targets[{t}][{x}]") for x, v in enumerate(row)) for t, row in enumerate(rows))
    for t, row in enumerate(read):
        if not any(row):
            raise InvalidInput(Problem.TARGETS_INVALID, "a target needs a number other than zero", f"targets[{t}]")
    return read


def _exact(value: Any, field: str) -> Fraction:
    read = number(value, field)
    if read and abs(read.adjusted()) > 12:
        raise InvalidInput(Problem.TARGETS_INVALID, "give numbers of ordinary size", field)
    return Fraction(read)


def _prior(value: Any, answers: int) -> tuple[Prior, bool]:
    """Return the prior of the mechanism's answers, and whether these are pairs (s, u)."""
    prior = read_prior(value)
    if prior.answers == answers:
        return prior, False
    # One row was made a diagonal: its answers are no pairs.
    if prior.secrets * prior.answers == answers and len(value["joint"]) > 1:
        return pairs(prior), True
    words = f"the prior has {prior.answers} answers, the mechanism {answers}"
    raise InvalidInput(Problem.PRIOR_SHAPE, words, "prior.joint")


def _wanted(given: Mapping[str, Any], prior: Prior) -> Wanted:
    attributes, sensitive = given.get("attributes"), given.get("sensitive")
    if attributes is not None:
        sizes = [whole(size, f"attributes[{i}]") for i, size in enumerate(_list(attributes, "attributes"))]
        attributes = require_attributes(sizes, prior.answers)
    if sensitive is not None and not 0 <= whole(sensitive, "sensitive") < prior.secrets:
        words = f"the secrets are counted from 0 to {prior.secrets - 1}"
        raise InvalidInput(Problem.FIELD_TYPE, words, "sensitive")
    return Wanted(
        orders=tuple(_order(v, f"orders[{i}]") for i, v in enumerate(_list(given.get("orders", [2]), "orders"))),
        attributes=attributes,
        sensitive=sensitive,
        breaches=tuple(_event(v, f"breaches[{i}]") for i, v in enumerate(_list(given.get("breaches", []), "breaches"))),
        targets=read_targets(given.get("targets", "shares"), prior.answers),
    )


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        raise InvalidInput(Problem.FIELD_TYPE, f"give a list of at most {_MOST}", field)
    return list(value)


def _order(value: Any, field: str) -> float:
    read = number(value, field) if value != "inf" else Decimal("Infinity")
    return require_order(float(read), field)


def _event(value: Any, field: str) -> Fraction:
    """Read the probability of an event."""
    text = isinstance(value, str) and _DECIMAL.fullmatch(value)
    read = number(Decimal(value) if text else value, field)
    if not 0 <= read <= 1 or read.adjusted() < -_MOST:
        raise InvalidInput(Problem.FIELD_TYPE, "the probability of an event lies between 0 and 1", field)
    return Fraction(read)


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
