# SPDX-License-Identifier: Apache-2.0
"""`frankly estimate --json`: a JSON object in, a JSON object out (DESIGN §7)."""

from collections.abc import Mapping, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import KINDS, DenseMechanism, Mechanism
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.estimate.estimator import estimate
from frankly_server.estimate.inputs import Tally
from frankly_server.estimate.sets import SetCounts
from frankly_server.records import flag, number, record, table, whole

_OPTIONAL = frozenset({"design_prior", "targets", "population", "census", "level", "beta"})
_MAX_EXPONENT = 60


def estimate_json(obj: Any) -> dict[str, Any]:
    """Estimate from a JSON request; objects come from `parse_json(..., decimals=True)`, so decimals are read exactly.

    In: weights, bits, counts; or, for the other kinds, kind ("unary", "subset", "product") and params as they stand in
    a document, with counts {"n", "pairs"} for sets (pairs[x][z]: reports that held both) and a list in row-major order
    for a product; optional design_prior (null, counts or decimals), targets ("shares" or rows), population
    (null or N), census (default false), level (default 0.95), beta (default 0.01). Out: `Estimate.to_json`.

    Raises InvalidInput, naming the field.
    """
    mechanism, given = read_mechanism(obj, frozenset({"counts"}), _OPTIONAL)
    targets = given.get("targets", "shares")
    population = given.get("population")
    return estimate(
        mechanism,
        _counts(given["counts"]),
        design_prior=_design_prior(given.get("design_prior")),
        targets="shares" if targets == "shares" else _targets(targets),
        population=None if population is None else whole(population, "population"),
        census=flag(given.get("census", False), "census"),
        level=given.get("level", 0.95),
        beta=_fraction(given.get("beta", Decimal("0.01")), "beta"),
    ).to_json()


def read_mechanism(obj: Any, needed: Set[str], optional: Set[str]) -> tuple[Mechanism, dict[str, Any]]:
    """Return the mechanism of a request, by weights and bits or by kind and params, and the whole request.

    Raises InvalidInput, naming the field.
    """
    kind = obj.get("kind", "dense") if isinstance(obj, Mapping) else "dense"
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the kinds are {', '.join(KINDS)}", "kind")
    given = record(obj, needed | ({"weights", "bits"} if kind == "dense" else {"params"}), optional | {"kind"})
    if kind != "dense":
        return KINDS[kind].from_params(given["params"], "params"), given
    rows = table(given["weights"], "weights")
    weights = tuple(tuple(whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row)) for x, row in enumerate(rows))
    return DenseMechanism(whole(given["bits"], "bits"), weights), given


def _counts(value: Any) -> Tally:
    if not isinstance(value, Mapping):
        tally: Tally = value  # checked with the mechanism
        return tally
    parts = record(value, frozenset({"n", "pairs"}), field="counts")
    return SetCounts(whole(parts["n"], "counts.n"), tuple(map(tuple, table(parts["pairs"], "counts.pairs"))))


def _targets(value: Any) -> list[list[Fraction]]:
    if not isinstance(value, list):
        raise InvalidInput(Problem.TARGETS_INVALID, 'give "shares" or a list of rows', "targets")
    rows = table(value, "targets")
    return [[_fraction(v, f"targets[{t}][{x}]") for x, v in enumerate(row)] for t, row in enumerate(rows)]


def _design_prior(value: Any) -> list[int] | None:
    """Return whole numbers in the same proportions; what they must satisfy is checked with the mechanism."""
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise InvalidInput(Problem.PRIOR_SHAPE, "give null or a list of numbers", "design_prior")
    exact = [_fraction(v, f"design_prior[{x}]") for x, v in enumerate(value)]
    return rational.whole(exact)


def _fraction(value: Any, field: str) -> Fraction:
    read = number(value, field)
    if read and abs(read.adjusted()) > _MAX_EXPONENT:
        raise InvalidInput(Problem.FIELD_TYPE, "the number is too large or too small", field)
    return Fraction(read)
