# SPDX-License-Identifier: Apache-2.0
"""`frankly design --json`: a JSON object in, a JSON object out (DESIGN §7).

Objects come from `parse_json(..., decimals=True)`, so that decimals are read exactly. Only the keys that exist now are
taken; infinite figures travel as the string "inf".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.problems import Problem

from frankly_server.design import kinds
from frankly_server.design.asked import EXPLICIT, LEVELS, Asked
from frankly_server.design.engine import Design, DesignRequest, design, frontier
from frankly_server.design.limits import Limits, Progress
from frankly_server.design.measuring import finite, read_targets
from frankly_server.design.regret import regret
from frankly_server.design.robust import is_vacuous
from frankly_server.records import flag, number, record, whole

_REQUIRED = frozenset({"prior"})
_OPTIONAL = (
    LEVELS
    | EXPLICIT
    | frozenset(
        (
            "notion notions priors ceiling_cap mechanism objective targets criterion truths variance_cap frontier "
            "method limits accept_identity accept_unidentifiable"
        ).split()
    )
)
_SECONDS, _MEMORY = 60, 1024
_MOST_POINTS = 200
_MOST_COLUMNS = 1024


def _no_time() -> float:
    return 0.0


def _go_on() -> bool:
    return False


def design_json(
    obj: Any,
    timer: Callable[[], float] = _no_time,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = _go_on,
) -> dict[str, Any]:
    """Design a mechanism from a JSON request.

    In: prior {"joint"}; notion with its levels (epsilon; epsilon_low and epsilon_high, null for none; delta;
    attributes; robust {"order", "n", "beta"}, its "polyhedra" simplex or box, and diagonal; dpv and sensitive), or
    notions, a list of such objects that must all be kept; optional priors (every prior-based notion holds under each of
    them too), ceiling_cap (nats: ε-LDP of the answer beside the rest), mechanism with its own parameters (p00, p11,
    alpha in nats: with one of these no level need be given, and the levels that hold are told; region, lift_measure,
    lift_order), objective (variance, information, hamming), targets (rows of numbers, one per answer, or "shares"),
    criterion ("total" or "worst"), truths (the largest variance over these counts; see `read_truths`), variance_cap
    (with the objective information), frontier (2 to 200 points between least variance and most information), method
    ("auto", or "vertices" to list every ray exactly), limits {"seconds": 60, "gap": 1e-6, "memory": 1024 megabytes},
    and two that default to true because nothing is published here and the answer says so: accept_identity (false
    refuses a mechanism that sends answers unchanged) and accept_unidentifiable
    (false gives up at most 1% of the objective to make every share estimable).
    timer : seconds from a clock that never runs backwards, for limits.seconds. progress : see `limits.Progress`.
    stopped : once true, the best so far is returned, as when time is up.

    Out: kind, bits, weights (params for other kinds than dense), matrix (null beyond 1024 reports of another kind,
    whose columns are listed in symbols), information, information_bound (null unless it was the objective),
    normalised_information, variance, gap, certified, rank, identifiable, measures, parameters, warnings in words, and
    regret: what it costs if all answers are equally common (null where that is no more than 0.5%, where some share
    cannot be estimated, and for targets other than the shares). What cannot be computed for very many reports is null.

    Raises InvalidInput, naming the field.
    """
    given = record(obj, _REQUIRED, _OPTIONAL)
    asked = Asked(given)
    request = DesignRequest(
        prior=asked.prior,
        claims=asked.claims,
        mechanism=given.get("mechanism", "optimal"),
        explicit=asked.explicit,
        objective=given.get("objective", "variance"),
        targets=read_targets(given.get("targets", "shares"), asked.prior.answers),
        criterion=given.get("criterion", "total"),
        truths=asked.truths,
        variance_cap=_cap(given),
        method=given.get("method", "auto"),
        accept_identity=flag(given.get("accept_identity", True), "accept_identity"),
        accept_unidentifiable=flag(given.get("accept_unidentifiable", True), "accept_unidentifiable"),
        limits=_limits(given.get("limits", {}), timer, progress, stopped),
    )
    points = _points(given)
    if points is not None and asked.truths is not None:
        raise InvalidInput(Problem.UNSUPPORTED, "a frontier is at the prior's shares: leave out truths", "truths")
    body = _design_body(design(request), asked, request)
    return body | ({} if points is None else _frontier(points, request))


def _cap(given: Mapping[str, Any]) -> float | None:
    if given.get("variance_cap") is None:
        return None
    cap = number(given["variance_cap"], "variance_cap")
    if cap <= 0 or abs(cap.adjusted()) > 100:
        raise InvalidInput(Problem.FIELD_TYPE, "give a positive variance, in shares squared at n = 1", "variance_cap")
    return float(cap)


def _points(given: Mapping[str, Any]) -> int | None:
    """Read how many points of the frontier are wanted; None for no frontier."""
    if "frontier" not in given:
        return None
    points = whole(given["frontier"], "frontier")
    if not 2 <= points <= _MOST_POINTS:
        raise InvalidInput(Problem.FIELD_TYPE, f"give a number of points from 2 to {_MOST_POINTS}", "frontier")
    return points


def _frontier(points: int, request: DesignRequest) -> dict[str, Any]:
    """Return the frontier; empty where the raw answer is best at everything."""
    try:
        found = frontier(request, points)
    except InvalidInput as error:
        if error.problem is not Problem.IDENTITY_MECHANISM:
            raise
        found = []
    figures = ("information", "variance", "information_bound", "variance_bound")
    return {"frontier": [finite({name: getattr(point, name) for name in figures}) for point in found]}


def _limits(value: Any, timer: Callable[[], float], progress: Progress | None, stopped: Callable[[], bool]) -> Limits:
    """Read limits; the time begins now."""
    given = record(value, frozenset(), frozenset({"seconds", "gap", "memory"}), "limits")
    seconds = number(given.get("seconds", _SECONDS), "limits.seconds")
    gap = number(given.get("gap", Decimal("1e-6")), "limits.gap")
    memory = whole(given.get("memory", _MEMORY), "limits.memory")
    if seconds <= 0:
        raise InvalidInput(Problem.FIELD_TYPE, "give a positive number of seconds", "limits.seconds")
    if not Decimal("1e-12") <= gap <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give a gap from 1e-12 to 1", "limits.gap")
    if memory < 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give a positive number of megabytes", "limits.memory")
    deadline = timer() + float(seconds)
    limits = Limits(gap=float(gap), out_of_time=lambda: stopped() or timer() > deadline, memory=memory)
    return limits if progress is None else replace(limits, progress=progress)


def _design_body(found: Design, asked: Asked, request: DesignRequest) -> dict[str, Any]:
    rows, prior = kinds.rows_of(found.mechanism), asked.prior
    informative = found.objective == "information"
    body = {
        **_mechanism_body(found.mechanism, rows),
        "information": found.information,
        "information_bound": found.bound if informative else None,
        "normalised_information": found.normalised_information,
        "variance": found.variance,
        "gap": found.gap,
        "certified": found.certified,
        "rank": found.rank,
        "identifiable": found.identifiable,
    }
    parameters = {
        "mechanism": found.mechanism_name,
        "claims": [_claim_body(claim, asked) for claim in found.claims],
        "objective": found.objective,
        "value": found.value,
        "bound": found.bound,
        "exact": found.exact,
        "target_variances": list(found.target_variances),
        "criterion": request.criterion,
        "eta": float(found.eta),
        "identity": found.identity,
        "estimable": list(found.estimable),
        **{key: value for key, value in found.parameters.items() if key not in ("answers", "reports")},
    }
    measures = kinds.measures(found.mechanism, prior)
    cost = regret(found.mechanism, found.claims, found.decoder_prior) if request.targets is None else None
    return {
        **_known(body),
        "measures": finite(measures),
        "parameters": _known(parameters),
        "warnings": _warnings(found),
        "regret": None if cost is None else cost.to_json(),
    }


def _warnings(found: Design) -> list[str]:
    """Return what a person should know before using this design (BAD_INPUTS 9, 16)."""
    empty = any(claim.lower_bounds is not None and is_vacuous(claim.lower_bounds) for claim in found.claims)
    told = {
        "answers are sent unchanged: the claims allow it under the prior, not under a false one": found.identity,
        "the counts are too few for this beta: every lower bound is 0, which protects under any distribution, at the "
        "price of LDP; take counts of more people, or a larger beta": empty,
    }
    return [words for words, true in told.items() if true]


def _mechanism_body(mechanism: Mechanism, rows: kinds.Rows | None) -> dict[str, Any]:
    """Return the mechanism itself: weights of a table, else params, with a matrix while it can be read."""
    matrix = [[w / sum(row) for w in row] for row in rows] if rows is not None else None
    if isinstance(mechanism, DenseMechanism):
        weights = [list(row) for row in mechanism.weights]
        return {"kind": mechanism.kind, "bits": mechanism.bits, "weights": weights, "matrix": matrix}
    body = {"kind": mechanism.kind, "bits": mechanism.bits, "params": mechanism.params_json(), "matrix": None}
    if matrix is None or mechanism.reports > _MOST_COLUMNS:
        return body
    return body | {"matrix": matrix, "symbols": [mechanism.symbol_json(y) for y in mechanism.symbols()]}  # type: ignore[arg-type]


def _known(body: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with those that are not known as null, infinite ones as "inf"."""
    return finite({key: _or_null(value) for key, value in body.items()})


def _or_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_or_null(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _claim_body(claim: Claim, asked: Asked) -> dict[str, Any]:
    """Return what is promised, but for priors that the request holds: enough to verify the weights again."""
    kept: dict[str, Any] = {"notion": claim.notion, "level": _pair(claim.level)}
    if claim.notion == "alip":
        kept["low_level"] = _pair(claim.low_level)
    for name in ("attributes", "lower_bounds", "sensitive", "delta"):
        value = getattr(claim, name)
        if value is not None:
            kept[name] = value
    if claim.joint is not None and claim.joint not in asked.joints:
        kept["joint"] = [list(row) for row in claim.joint]
    return kept | ({"diagonal": claim.diagonal} if claim.notion == "rldp" else {})


def _pair(level: tuple[int, int] | None) -> list[int] | None:
    return None if level is None else list(level)
