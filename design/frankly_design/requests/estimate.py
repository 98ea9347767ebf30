# SPDX-License-Identifier: Apache-2.0
"""Requests of `frankly estimate --json`: a JSON object in, a JSON object out (spec 1.9)."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import Strict

from frankly_design.estimate.denial import checked_denial, denied
from frankly_design.estimate.estimator import estimate
from frankly_design.kinds.kind import Tally
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.numeric import rational
from frankly_design.requests.fields import Flag, fraction
from frankly_design.requests.mechanism import MechanismFields
from frankly_design.requests.targets import Targets


def estimate_json(obj: Any) -> dict[str, Any]:
    """Estimate from a JSON request of `parse_json(..., decimals=True)`, with exact decimals.

    In: weights, bits, counts; or, for the other kinds, kind ("unary", "subset", "product") and
    params as in a document, with counts {"n", "pairs"} for sets (pairs[x][z]: number of reports
    with both) and a list in row-major order for a product. Optional: design_prior (null, counts or
    decimals), targets ("shares" or rows), population (null or N), census (default false), level
    (default 0.95), beta (default 0.01), denial (a share from 0 to below 1, for shares only). Out:
    `Estimate.to_json`; with a denial also denied, a list of {denied_estimate, denied_high} for each
    share, by its score interval: `estimate.denial`.

    Raises InvalidInput with the name of the field.
    """
    request = EstimateRequest.from_json(obj)
    targets, denial = request.targets, None
    if request.denial is not None:
        denial = checked_denial(request.denial, "denial")
        if targets != "shares":
            raise InvalidInput(
                Problem.UNSUPPORTED, "people can deny a single answer: leave targets out", "denial"
            )
    found = estimate(
        request.source(),
        _counts(request.counts),
        design_prior=decoder_prior(request.design_prior),
        targets="shares" if targets == "shares" else target_rows(targets),
        population=request.population,
        census=request.census,
        level=request.level,
        beta=fraction(request.beta, "beta"),
    )
    if denial is None:
        return found.to_json()
    ends = found.margins.ends("score", found.unbiased)
    rows = [
        {"estimate": share, "high": None if pair is None else pair[1]}
        for share, pair in zip(found.unbiased, ends, strict=True)
    ]
    return found.to_json() | {"denied": [denied(row, denial) for row in rows]}


def _counts(value: Any) -> Tally:
    if not isinstance(value, Mapping):
        tally: Tally = value  # `checked_counts` checks it with the mechanism
        return tally
    counts = REQUEST.record(value, "counts", {"n", "pairs"})
    pairs = tuple(map(tuple, REQUEST.table(counts["pairs"], "counts.pairs")))
    return SetCounts(REQUEST.whole(counts["n"], "counts.n"), pairs)


def target_rows(value: Any) -> list[list[Fraction]]:
    """Return rows of exact numbers, which `estimate` checks with the mechanism."""
    if not isinstance(value, list):
        raise InvalidInput(Problem.TARGETS_INVALID, 'give "shares" or a list of rows', "targets")
    rows = REQUEST.table(value, "targets")
    return [
        [fraction(v, f"targets[{t}][{x}]") for x, v in enumerate(row)] for t, row in enumerate(rows)
    ]


def decoder_prior(value: Any) -> list[int] | None:
    """Return integers in the same proportions, which `checked_prior` checks; None for null."""
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise InvalidInput(Problem.PRIOR_SHAPE, "give null or a list of numbers", "design_prior")
    return rational.whole([fraction(v, f"design_prior[{x}]") for x, v in enumerate(value)])


class EstimateRequest(MechanismFields):
    """A request of `frankly estimate --json`; see `estimate_json`."""

    counts: Any
    design_prior: Any = None
    targets: Targets = "shares"
    population: Annotated[int, Strict()] | None = None
    census: Flag = False
    level: Any = 0.95
    beta: Any = Decimal("0.01")
    denial: Any = None
