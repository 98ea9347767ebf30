# SPDX-License-Identifier: Apache-2.0
"""Requests of `frankly design --json`: a JSON object in, a JSON object out (spec 1.9).

Objects come from `parse_json(..., decimals=True)`, which reads decimals exactly. Unknown keys are
refused; infinite figures are written as the string "inf" or "-inf".
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.problems import Problem
from pydantic import Field, Strict

from frankly_design.engine import measured
from frankly_design.engine.engine import DesignRequest, DesignResult, design, frontier
from frankly_design.engine.read_truths import read_truths
from frankly_design.engine.regret import regret
from frankly_design.kinds.kind import Rows
from frankly_design.kinds.registry import kind_of
from frankly_design.notions.ball_bounds import is_vacuous
from frankly_design.notions.declared.registry import notion_of
from frankly_design.notions.prior import Prior
from frankly_design.optimum.solver import METHODS
from frankly_design.requests.claims import RequestedClaims
from frankly_design.requests.design_fields import (
    DesignFields,
    never_stopped,
    no_time,
    search_limits,
)
from frankly_design.requests.design_form import FormFields, design_form_json
from frankly_design.requests.fields import OneOf, require_only
from frankly_design.requests.levels import ONE_SIDED
from frankly_design.requests.measure import finite
from frankly_design.requests.targets import read_targets
from frankly_design.tables.limits import Progress, TimeExceeded

MAX_POINTS = 200
# Largest number of reports for which the response includes the matrix of a non-dense mechanism.
_MAX_COLUMNS = 1024


class DesignInput(DesignFields):
    """A request of `frankly design --json`."""

    method: Annotated[str, OneOf("methods", METHODS)] = "auto"
    frontier: Annotated[int, Strict(), Field(ge=2, le=MAX_POINTS)] | None = None
    form: FormFields | None = None


def design_json(
    obj: Any,
    timer: Callable[[], float] = no_time,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = never_stopped,
) -> dict[str, Any]:
    """Design a mechanism from a JSON request.

    timer : a monotonic clock in seconds, for limits.seconds.
    progress : see `limits.Progress`.
    stopped : once it returns True, the best result so far is returned, as at the time limit.

    Keys of the request (for a form, see `design_form_json`):

    - prior: {"joint": counts or probabilities}. Required.
    - notion with its levels: epsilon; epsilon_low and epsilon_high (null for none); delta;
      attributes; epsilons (nats of each answer, a row, against each other; null for none);
      robust {"order", "n", "beta"}, its "polyhedra" simplex or box, and diagonal; dpv, sensitive.
      Or notions, a list of such objects, all of which must hold.
    - priors: further priors; every prior-based notion holds under each of them too.
    - ceiling_cap: nats; ε-LDP of the answer as a further claim.
    - mechanism with its own parameters: p00, p11, alpha in nats (with one of these, levels may be
      omitted, and the response states those that hold); region, lift_measure, lift_order.
    - objective: variance, information or hamming.
    - targets: rows of numbers, one per answer, or "shares". criterion: "total" or "worst".
    - truths: minimise the largest variance over these counts; see `read_truths`.
    - variance_cap: largest variance allowed, with the objective information.
    - frontier: 2 to 200 points between least variance and most information.
    - method: "auto", or "vertices" to list every ray exactly.
    - limits: {"seconds": 60, "gap": 1e-6, "memory": 1024 megabytes}.
    - accept_identity: false refuses a mechanism that sends answers unchanged.
      accept_unidentifiable: false gives up at most 1% of the objective to make every share
      estimable. Both default to true, because nothing is published here and the response reports
      both properties.

    Keys of the response: kind, bits, weights (params for kinds other than dense), matrix (null
    beyond 1024 reports of another kind, whose columns are listed in symbols), information,
    information_bound (null unless it was the objective), normalised_information, variance, gap,
    certified, rank, identifiable, measures, parameters, warnings (sentences), and regret: the cost
    if all answers are equally common (null if the ratio is at most `regret.LEAST_RATIO`, if some
    share cannot be estimated, and for targets other than the shares). Figures are null if the
    mechanism has too many reports to compute them. The search ends after limits.seconds, and the
    response is complete `limits.FINISH_S` seconds later: left_out names the keys that are null or
    empty because they would have taken longer ("search" if the mechanism is randomised response,
    because the search had none in time). Without a verified mechanism by then, the request is
    refused (optimiser_limit).

    Raises InvalidInput, naming the field.
    """
    fields = DesignInput.from_json(obj)
    if fields.form is not None:
        require_only(fields, {"form", "limits"}, "form")
        return design_form_json(fields.form, search_limits(fields.limits, timer, progress, stopped))
    # Checked before the design, so that no search is wasted on a refused frontier.
    if fields.frontier is not None and fields.truths is not None:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a frontier is computed at the prior's shares: leave out truths",
            "truths",
        )
    promised, request = design_request(fields, timer, progress, stopped, method=fields.method)
    body = design_body(design(request), promised, request)
    if fields.frontier is None:
        return body
    with _or_left_out("frontier", body["left_out"]):
        return body | _frontier(fields.frontier, request)
    return body | {"frontier": []}


@contextmanager
def _or_left_out(name: str, left_out: list[str]) -> Iterator[None]:
    """Run a block; if it raises TimeExceeded, add `name` to the list instead."""
    try:
        yield
    except TimeExceeded:
        left_out.append(name)


def design_request(
    fields: DesignFields,
    timer: Callable[[], float],
    progress: Progress | None = None,
    stopped: Callable[[], bool] = never_stopped,
    *,
    method: str = "auto",
) -> tuple[RequestedClaims, DesignRequest]:
    """Return the claims and the engine's request; the time limit starts at this call.

    Raises InvalidInput, naming the field.
    """
    if fields.prior is None:
        raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", "prior")
    others = [Prior.from_rows(rows, f"priors[{i}].joint") for i, rows in enumerate(fields.priors)]
    promised = RequestedClaims(fields, Prior.from_rows(fields.prior), others)
    request = DesignRequest(
        prior=promised.prior,
        claims=promised.claims,
        mechanism=fields.mechanism,
        explicit=fields.explicit,
        objective=fields.objective,
        targets=read_targets(fields.targets, promised.prior.answers),
        criterion=fields.criterion,
        truths=read_truths(fields.truths, promised.prior),
        variance_cap=fields.variance_cap,
        method=method,
        accept_identity=fields.accept_identity,
        accept_unidentifiable=fields.accept_unidentifiable,
        limits=search_limits(fields.limits, timer, progress, stopped),
    )
    return promised, request


def _frontier(points: int, request: DesignRequest) -> dict[str, Any]:
    """Return the frontier; empty if the raw answer is best at both ends."""
    try:
        frontier_points = frontier(request, points)
    except InvalidInput as error:
        # There is no trade-off to show, but the request is valid.
        if error.problem is not Problem.IDENTITY_MECHANISM:
            raise
        frontier_points = []
    figures = ("information", "variance", "information_bound", "variance_bound")
    return {
        "frontier": [
            finite({name: getattr(point, name) for name in figures}) for point in frontier_points
        ]
    }


def design_body(
    designed: DesignResult, promised: RequestedClaims, request: DesignRequest
) -> dict[str, Any]:
    """Return a design as JSON, with measures, parameters, warnings and regret."""
    rows, prior = kind_of(designed.mechanism).rows, promised.prior
    informative = designed.objective == "information"
    body = {
        **_mechanism_body(designed.mechanism, rows),
        "information": designed.information,
        "information_bound": designed.bound if informative else None,
        "normalised_information": designed.normalised_information,
        "variance": designed.variance,
        "gap": designed.gap,
        "certified": designed.certified,
        "rank": designed.rank,
        "identifiable": designed.identifiable,
    }
    parameters = {
        "mechanism": designed.mechanism_name,
        "claims": [_claim_body(claim, promised) for claim in designed.claims],
        "objective": designed.objective,
        "value": designed.value,
        "bound": designed.bound,
        "exact": designed.exact,
        "target_variances": list(designed.target_variances),
        "criterion": request.criterion,
        "eta": float(designed.eta),
        "identity": designed.identity,
        "estimable": list(designed.estimable),
        **{
            key: value
            for key, value in designed.parameters.items()
            if key not in ("answers", "reports")
        },
    }
    left_out = list(designed.left_out)
    measures: dict[str, Any] = {}
    with _or_left_out("measures", left_out):
        measures = measured.measures(designed.mechanism, prior, request.limits.require_time)
    cost: dict[str, str] | None = None
    with _or_left_out("regret", left_out):
        cost = regret_of(designed, request)
    return {
        **finite(body),
        "measures": finite(measures),
        "parameters": finite(parameters),
        "warnings": warnings_of(designed),
        "regret": cost,
        "left_out": left_out,
    }


def regret_of(designed: DesignResult, request: DesignRequest) -> dict[str, str] | None:
    """Return the regret of a design in JSON; None for targets other than the shares.

    Raises TimeExceeded.
    """
    # The regret compares mechanisms only by the variance of the shares.
    if request.targets is not None:
        return None
    cost = regret(designed.mechanism, designed.claims, designed.decoder_prior, request.limits)
    return None if cost is None else cost.to_json()


def warnings_of(designed: DesignResult) -> list[str]:
    """Return warnings about a design as sentences (bad inputs 9, 16)."""
    unbounded = any(
        claim.lower_bounds is not None and is_vacuous(claim.lower_bounds)
        for claim in designed.claims
    )
    # The backstop is an LDP claim; without it, the other side has no limit.
    one_sided = (
        designed.ceiling is None
        and any(claim.name in ONE_SIDED for claim in designed.claims)
        and all(claim.notion not in ("ldp", "dp") for claim in designed.claims)
    )
    conditions = {
        "answers are sent unchanged: the claims allow this only if the prior "
        "is true": designed.identity,
        "the counts are too few for this beta: every lower bound is 0, so the design protects "
        "under any distribution and is as noisy as under LDP; use counts of more people, or a "
        "larger beta": unbounded,
        "the time limit was over before the search had a mechanism, so this is randomised response: "
        "allow more seconds": "search" in designed.left_out,
        "one side only: belief in a secret may fall to nothing (pml), or grow without limit (pmc), "
        "and a report may rule answers out; add a ceiling_cap, which limits both under any "
        "prior": one_sided,
    }
    return [message for message, holds in conditions.items() if holds]


def _mechanism_body(mechanism: Mechanism, rows: Rows | None) -> dict[str, Any]:
    """Return the mechanism as JSON: weights of a table, else params; with a matrix if small."""
    # Rounded for reading; the signed document contains the integer weights.
    matrix = [[w / sum(row) for w in row] for row in rows] if rows is not None else None
    if isinstance(mechanism, DenseMechanism):
        weights = [list(row) for row in mechanism.weights]
        return {
            "kind": mechanism.kind,
            "bits": mechanism.bits,
            "weights": weights,
            "matrix": matrix,
        }
    body = {
        "kind": mechanism.kind,
        "bits": mechanism.bits,
        "params": mechanism.params_json(),
        "matrix": None,
    }
    if matrix is None or mechanism.reports > _MAX_COLUMNS:
        return body
    symbols = [mechanism.symbol_json(y) for y in mechanism.symbols()]  # type: ignore[arg-type]
    return body | {"matrix": matrix, "symbols": symbols}


def _claim_body(claim: Claim, promised: RequestedClaims) -> dict[str, Any]:
    """Return a claim as JSON; with the request's priors it suffices to verify the weights."""
    notion = notion_of(claim)
    body: dict[str, Any] = {"notion": claim.notion, "level": _pair(claim.level)}
    if notion.has_sides:
        body["low_level"] = _pair(claim.low_level)
    for name in ("attributes", "lower_bounds", "sensitive", "delta", "levels"):
        value = getattr(claim, name)
        if value is not None:
            body[name] = value
    if claim.joint is not None and claim.joint not in promised.joints:
        body["joint"] = [list(row) for row in claim.joint]
    return body | ({"diagonal": claim.diagonal} if "diagonal" in notion.optional else {})


def _pair(level: tuple[int, int] | None) -> list[int] | None:
    return None if level is None else list(level)
