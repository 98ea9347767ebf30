# SPDX-License-Identifier: Apache-2.0
"""One engine for every mechanism: from a prior, a notion and a level to whole numbers that keep the promise.

(1) the family asked for, or: (2) refuse the identity unless wanted (3) the optimum and its bound (4) rank, with repair
(5) quantise and verify (6) compute every figure from the whole numbers.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from frankly_protocol.audit import Claim, ceiling, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.design import objectives, solver
from frankly_server.design.cones import Cone, Level
from frankly_server.design.families import FAMILIES
from frankly_server.design.limits import Limits
from frankly_server.design.prior import Prior
from frankly_server.design.programme import Optimum
from frankly_server.design.quantise import BITS, Quantised, quantise
from frankly_server.design.rank import estimable, rank

MECHANISMS = ("optimal", *FAMILIES)


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """What is wanted.

    prior : public counts; the objective is taken at its shares of the answers. claims : what must hold, all of it;
    see `promises` for how they are made. mechanism : optimal, grr or warner. objective : what `optimal` optimises,
    variance, information or hamming. targets : rows W of exact numbers, one per answer: the estimates W·p whose
    variance counts; None for all shares. criterion : total or worst variance of the targets. variance_cap : with the
    objective information, the largest total variance allowed. method : auto, or vertices to list every ray exactly.
    accept_identity : take an optimum that sends answers unchanged. accept_unidentifiable : take the optimum as it is,
    even if some shares cannot be estimated from it. limits : see `Limits`.
    """

    prior: Prior
    claims: tuple[Claim, ...]
    mechanism: str = "optimal"
    objective: str = "variance"
    targets: tuple[tuple[Fraction, ...], ...] | None = None
    criterion: str = "total"
    variance_cap: float | None = None
    method: str = "auto"
    accept_identity: bool = False
    accept_unidentifiable: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Design:
    """A mechanism that keeps its claims, with figures computed from its whole numbers.

    ceiling : leakage under every prior as a ratio, None if infinite. information, normalised_information : nats, share
    of H(X). variance : total of the unbiased shares at n = 1 under the prior, inf if not identifiable.
    target_variances : of each target, or of each share. hamming : how often the best guess from a report is wrong.
    value, bound, gap : the objective reached, the proven bound of any mechanism that keeps the claims, their distance;
    bound and gap are None for families. certified : gap within the limit. exact : every ray of the cone was looked at
    one by one (else the bound comes from branch and bound or a relaxation). rank : exact; identifiable : rank equals
    the number of answers; estimable : in words, what can be estimated. eta : share of constant noise mixed in by
    rounding. identity : every report reveals the answer.
    """

    mechanism: DenseMechanism
    mechanism_name: str
    claims: tuple[Claim, ...]
    objective: str
    ceiling: Fraction | None
    information: float
    normalised_information: float
    variance: float
    target_variances: tuple[float, ...]
    hamming: float
    value: float
    bound: float | None
    gap: float | None
    certified: bool
    exact: bool
    rank: int
    identifiable: bool
    estimable: tuple[str, ...]
    eta: Fraction
    identity: bool
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """(p, q) of the first promise: what a document of one notion with one level states."""
        return self.claims[0].level or (1, 1)


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A verified mechanism on the frontier, with figures computed from its whole numbers, and bounds.

    information : nats. variance : total of the targets. information_bound : no mechanism that keeps the claims has more
    at this variance. variance_bound : nor less variance at this information.
    """

    mechanism: DenseMechanism
    information: float
    variance: float
    information_bound: float
    variance_bound: float


def frontier(request: DesignRequest, points: int) -> list[FrontierPoint]:
    """Return mechanisms from the least variance to the most information, evenly spread in information.

    Only prior, claims, targets, method and limits of the request are looked at. points : 2 or more.

    Raises InvalidInput: identity_mechanism where the raw answer is best at both, optimiser_limit,
    mechanism_not_certified.
    """
    prior, shares = request.prior, request.prior.shares
    cone = Cone(request.claims, prior.answers)
    if cone.admits_identity():
        words = "the raw answer already keeps these levels, and is best at both: there is no frontier"
        raise InvalidInput(Problem.IDENTITY_MECHANISM, words, "frontier")
    found = []
    for on in solver.curve(cone, prior, targets_of(request), points, request.limits, request.method):
        mechanism = quantise(on.optimum.rows(prior), request.claims, shares).mechanism
        information = objectives.information(mechanism.weights, shares)
        variance = math.fsum(objectives.target_variances(mechanism.weights, shares, request.targets))
        found.append(FrontierPoint(mechanism, information, variance, on.information_bound, on.variance_bound))
    return found


def design(request: DesignRequest) -> Design:
    """Return the mechanism asked for.

    Raises
    ------
    InvalidInput : unsupported (no such notion, mechanism, objective or combination), choice_unprotected, secret_empty,
        identity_mechanism, optimiser_limit, not_identifiable, mechanism_not_certified.
    """
    _check(request)
    cone = Cone(request.claims, request.prior.answers)
    if request.mechanism in FAMILIES:
        mechanism = FAMILIES[request.mechanism](request.prior.answers, _answer_level(request))  # (1)
        require_private(mechanism, *request.claims)
        return _described(request, Quantised(mechanism, Fraction(0)), None)
    if cone.admits_identity():
        return _described(request, Quantised(_identity(request), Fraction(0)), None)  # (2)
    found = _optimum(request, cone)  # (3) (4)
    rows = found.optimum.rows(request.prior)
    return _described(request, quantise(rows, request.claims, request.prior.shares), found)  # (5)


def _check(request: DesignRequest) -> None:
    if not request.claims:
        raise InvalidInput(Problem.FIELD_MISSING, "a mechanism needs something to promise", "notion")
    if request.mechanism not in MECHANISMS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the mechanisms are {', '.join(MECHANISMS)}", "mechanism")
    if request.objective not in objectives.OBJECTIVES:
        raise InvalidInput(Problem.UNSUPPORTED, f"the objectives are {', '.join(objectives.OBJECTIVES)}", "objective")
    if request.criterion not in solver.CRITERIA:
        raise InvalidInput(Problem.UNSUPPORTED, f"the criteria are {', '.join(solver.CRITERIA)}", "criterion")
    if request.criterion != "total" and request.objective != "variance":
        raise InvalidInput(Problem.UNSUPPORTED, "a criterion belongs to the objective variance", "criterion")
    if request.variance_cap is not None and request.objective != "information":
        raise InvalidInput(Problem.UNSUPPORTED, "a variance cap belongs to the objective information", "variance_cap")
    if request.method not in solver.METHODS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the methods are {', '.join(solver.METHODS)}", "method")


def _answer_level(request: DesignRequest) -> Level:
    """Return the level of ε-LDP of the answer, the only promise the families here make."""
    claim = request.claims[0]
    if len(request.claims) != 1 or claim.notion != "ldp" or claim.level is None:
        words = f"{request.mechanism} promises the notion ldp, which covers every secret: ask for ldp, or for optimal"
        raise InvalidInput(Problem.UNSUPPORTED, words, "notion")
    return claim.level


def _identity(request: DesignRequest) -> DenseMechanism:
    if not request.accept_identity:
        words = (
            "the raw answer already keeps this level under the prior, so the optimum sends answers unchanged, and the "
            "ceiling is infinite: lower epsilon, choose ldp, or accept the identity explicitly"
        )
        raise InvalidInput(Problem.IDENTITY_MECHANISM, words, "epsilon")
    a = request.prior.answers
    return DenseMechanism(BITS, tuple(tuple(1 << BITS if x == y else 0 for y in range(a)) for x in range(a)))


def _optimum(request: DesignRequest, cone: Cone) -> solver.Found:
    prior, limits, method = request.prior, request.limits, request.method
    if request.objective == "variance":
        return solver.least_variance(cone, prior, targets_of(request), request.criterion, limits, method)
    if request.variance_cap is not None:
        return solver.capped_information(cone, prior, targets_of(request), request.variance_cap, limits, method)
    deficient = request.accept_unidentifiable
    return solver.most_gain(cone, prior, request.objective, limits, method, deficient=deficient)


def targets_of(request: DesignRequest) -> NDArray[np.float64]:
    """Return the targets as floats, shape (t, answers)."""
    if request.targets is None:
        return np.eye(request.prior.answers)
    return np.array([[float(v) for v in row] for row in request.targets])


def _described(request: DesignRequest, quantised: Quantised, found: solver.Found | None) -> Design:
    """Compute every figure from the published whole numbers (6)."""
    mechanism, shares = quantised.mechanism, request.prior.shares
    size = rank(mechanism)
    if size < mechanism.answers and not request.accept_unidentifiable:
        words = "only these can be estimated: " + "; ".join(estimable(mechanism))
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    identity = mechanism.sends_unchanged
    information = objectives.information(mechanism.weights, shares)
    of_targets = tuple(objectives.target_variances(mechanism.weights, shares, request.targets))
    figures = {
        "variance": max(of_targets) if request.criterion == "worst" else math.fsum(of_targets),
        "information": information,
        "hamming": objectives.hamming(mechanism.weights, shares),
    }
    value = figures[request.objective]
    bound = value if identity else _bound(request, None if found is None else found.optimum)
    gap = None if bound is None else abs(value - bound)
    return Design(
        mechanism=mechanism,
        mechanism_name=request.mechanism,
        claims=request.claims,
        objective=request.objective,
        ceiling=ceiling(mechanism),
        information=information,
        normalised_information=objectives.normalised(information, shares),
        variance=objectives.variance(mechanism.weights, shares) if request.targets else math.fsum(of_targets),
        target_variances=of_targets,
        hamming=figures["hamming"],
        value=value,
        bound=bound,
        gap=gap,
        certified=gap is not None and gap <= _allowed(request, value),
        exact=identity or (found is not None and found.exact),
        rank=size,
        identifiable=size == mechanism.answers,
        estimable=estimable(mechanism),
        eta=quantised.eta,
        identity=identity,
        parameters={"answers": mechanism.answers, "reports": mechanism.reports},
    )


def _allowed(request: DesignRequest, value: float) -> float:
    """Return the largest gap that counts as none: relative to a variance, absolute for nats and error rates."""
    return request.limits.gap * (abs(value) if request.objective == "variance" else 1.0)


def _bound(request: DesignRequest, optimum: Optimum | None) -> float | None:
    if optimum is None:
        return None
    return 1 - optimum.bound if request.objective == "hamming" else optimum.bound
