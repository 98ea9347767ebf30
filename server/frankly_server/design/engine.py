# SPDX-License-Identifier: Apache-2.0
"""One engine for every mechanism: from a prior, a notion and a level to whole numbers that keep the promise.

(1) the family asked for, or: (2) refuse the identity unless wanted (3) the optimum and its bound (4) rank, with repair
(5) quantise and verify (6) compute every figure from the whole numbers.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, ceiling, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

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
    variance, information or hamming. method : auto, or vertices to list every ray exactly. accept_identity : take an
    optimum that sends answers unchanged. accept_unidentifiable : take the optimum as it is, even if some shares cannot
    be estimated from it. limits : see `Limits`.
    """

    prior: Prior
    claims: tuple[Claim, ...]
    mechanism: str = "optimal"
    objective: str = "variance"
    method: str = "auto"
    accept_identity: bool = False
    accept_unidentifiable: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Design:
    """A mechanism that keeps its claims, with figures computed from its whole numbers.

    ceiling : leakage under every prior as a ratio, None if infinite. information, normalised_information : nats, share
    of H(X). variance : total of the unbiased shares at n = 1 under the prior, inf if not identifiable. hamming : how
    often the best guess from a report is wrong. value, bound, gap : the objective reached, the proven bound of any
    mechanism that keeps the claims, their distance; bound and gap are None for families. certified : gap within the
    limit. exact : every ray of the cone was looked at one by one (else the bound comes from branch and bound).
    rank : exact; identifiable : rank equals the number of answers; estimable : in words, what can be estimated.
    eta : share of constant noise mixed in by rounding. identity : every report reveals the answer.
    """

    mechanism: DenseMechanism
    mechanism_name: str
    claims: tuple[Claim, ...]
    objective: str
    ceiling: Fraction | None
    information: float
    normalised_information: float
    variance: float
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
    prior, limits = request.prior, request.limits
    if request.objective == "variance":
        return solver.least_variance(cone, prior, limits, request.method)
    deficient = request.accept_unidentifiable
    return solver.most_gain(cone, prior, request.objective, limits, request.method, deficient=deficient)


def _described(request: DesignRequest, quantised: Quantised, found: solver.Found | None) -> Design:
    """Compute every figure from the published whole numbers (6)."""
    mechanism, shares = quantised.mechanism, request.prior.shares
    size = rank(mechanism)
    if size < mechanism.answers and not request.accept_unidentifiable:
        words = "only these can be estimated: " + "; ".join(estimable(mechanism))
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    identity = mechanism.sends_unchanged
    information = objectives.information(mechanism.weights, shares)
    figures = {
        "variance": objectives.variance(mechanism.weights, shares),
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
        variance=figures["variance"],
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
    if request.objective == "information":
        return optimum.bound
    if request.objective == "hamming":
        return 1 - optimum.bound
    # The programme's objective is tr(A⁻¹); the total variance subtracts p·p (DESIGN §7).
    total = request.prior.total
    return optimum.bound - math.fsum((n / total) ** 2 for n in request.prior.shares)
