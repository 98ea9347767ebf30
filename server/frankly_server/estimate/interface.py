# SPDX-License-Identifier: Apache-2.0
"""JSON interface of `frankly estimate --json`: one JSON object in, one out (spec 1.9)."""

from collections.abc import Mapping, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import KINDS, DenseMechanism, Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server import rational
from frankly_server.estimate.estimator import estimate
from frankly_server.estimate.inputs import Tally
from frankly_server.estimate.sets import SetCounts

_OPTIONAL = frozenset({"design_prior", "targets", "population", "census", "level", "beta"})
# 1e999999999 is a short text, but its exact fraction would fill the memory.
_MAX_EXPONENT = 60


def estimate_json(obj: Any) -> dict[str, Any]:
    """Estimate from a JSON request, parsed by `parse_json(..., decimals=True)`: exact decimals.

    In: weights, bits, counts; or, for the other kinds, kind ("unary", "subset", "product") and
    params as in a document, with counts {"n", "pairs"} for sets (pairs[x][z]: reports that held
    both) and a list in row-major order for a product. Optional: design_prior (null, counts or
    decimals), targets ("shares" or rows), population (null or N), census (default false), level
    (default 0.95), beta (default 0.01). Out: `Estimate.to_json`.

    Raises InvalidInput with the name of the field.
    """
    mechanism, fields = read_mechanism(obj, frozenset({"counts"}), _OPTIONAL)
    targets = fields.get("targets", "shares")
    population = fields.get("population")
    return estimate(
        mechanism,
        _counts(fields["counts"]),
        design_prior=_design_prior(fields.get("design_prior")),
        targets="shares" if targets == "shares" else _targets(targets),
        population=None if population is None else REQUEST.whole(population, "population"),
        census=REQUEST.flag(fields.get("census", False), "census"),
        level=fields.get("level", 0.95),
        beta=_fraction(fields.get("beta", Decimal("0.01")), "beta"),
    ).to_json()


def read_mechanism(
    obj: Any,
    needed: Set[str],
    optional: Set[str],
) -> tuple[Mechanism, dict[str, Any]]:
    """Return the mechanism of a request (weights and bits, or kind and params) and its fields.

    Raises InvalidInput with the name of the field.
    """
    kind = obj.get("kind", "dense") if isinstance(obj, Mapping) else "dense"
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the kinds are {', '.join(KINDS)}", "kind")
    fields = REQUEST.record(
        obj,
        None,
        needed | ({"weights", "bits"} if kind == "dense" else {"params"}),
        optional | {"kind"},
    )
    if kind != "dense":
        return KINDS[kind].from_params(fields["params"], "params"), fields
    rows = REQUEST.table(fields["weights"], "weights")
    weights = tuple(
        tuple(REQUEST.whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row))
        for x, row in enumerate(rows)
    )
    return DenseMechanism(REQUEST.whole(fields["bits"], "bits"), weights), fields


def _counts(value: Any) -> Tally:
    if not isinstance(value, Mapping):
        tally: Tally = value  # `checked_counts` checks it with the mechanism
        return tally
    counts = REQUEST.record(value, "counts", {"n", "pairs"})
    pairs = tuple(map(tuple, REQUEST.table(counts["pairs"], "counts.pairs")))
    return SetCounts(REQUEST.whole(counts["n"], "counts.n"), pairs)


def _targets(value: Any) -> list[list[Fraction]]:
    if not isinstance(value, list):
        raise InvalidInput(Problem.TARGETS_INVALID, 'give "shares" or a list of rows', "targets")
    rows = REQUEST.table(value, "targets")
    return [
        [_fraction(v, f"targets[{t}][{x}]") for x, v in enumerate(row)]
        for t, row in enumerate(rows)
    ]


def _design_prior(value: Any) -> list[int] | None:
    """Return integers in the same proportions.

    `checked_prior` checks them against the mechanism.
    """
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise InvalidInput(Problem.PRIOR_SHAPE, "give null or a list of numbers", "design_prior")
    exact = [_fraction(v, f"design_prior[{x}]") for x, v in enumerate(value)]
    return rational.whole(exact)


def _fraction(value: Any, field: str) -> Fraction:
    decimal = REQUEST.number(value, field)
    if decimal and abs(decimal.adjusted()) > _MAX_EXPONENT:
        raise InvalidInput(Problem.FIELD_TYPE, "the number is too large or too small", field)
    return Fraction(decimal)
