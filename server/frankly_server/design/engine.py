# SPDX-License-Identifier: Apache-2.0
"""One engine for every mechanism: from a prior, a notion and a level to whole numbers that keep the promise.

(1) read the level (2) the family, or: (3) refuse the identity unless wanted (4) extreme rays (5) optimum and its bound
(6) rank, with repair (7) quantise and verify (8) compute every figure from the whole numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, ceiling, level_for, require_private
from frankly_protocol.audit.claims import PRIOR_BASED
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_server.design import objectives, programme
from frankly_server.design.cones import Level, admits_identity, rays_of, require_notion
from frankly_server.design.families import FAMILIES
from frankly_server.design.prior import Prior
from frankly_server.design.quantise import BITS, Quantised, quantise
from frankly_server.design.rank import estimable, rank

MECHANISMS = ("optimal", *FAMILIES)
REPAIR_LOSS = 0.01
"""The share of the information given up, at most, to make every share estimable."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """How far to go.

    gap : relative distance from the proven bound up to which a design is called certified, in (0, 1].
    out_of_time : asked between the steps; once it says so, no further step is begun.
    """

    gap: float = 1e-6
    out_of_time: Callable[[], bool] = _never


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """What is wanted.

    prior : public counts. notion : ldp, secret-ldp or lip. epsilon : nats, from `parse_epsilon`.
    mechanism : optimal, grr or warner. objective : what `optimal` optimises, variance or information.
    accept_identity : take an optimum that sends answers unchanged. accept_unidentifiable : take the most informative
    mechanism as it is, even if some shares cannot be estimated from it. limits : see `Limits`.
    """

    prior: Prior
    notion: str
    epsilon: Fraction
    mechanism: str = "optimal"
    objective: str = "variance"
    accept_identity: bool = False
    accept_unidentifiable: bool = False
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Design:
    """A mechanism that keeps its claim, with figures computed from its whole numbers.

    level : (p, q), the promise E = p/q ≤ e^ε. joint : the prior's counts (None if the notion needs no prior).
    ceiling : leakage under every prior as a ratio, None if infinite. information, normalised_information : nats, share
    of H(X). variance : total of the unbiased shares at n = 1 under the prior, inf if not identifiable.
    value, bound, gap : the objective reached, the proven bound of any mechanism of the notion, their distance; bound
    and gap are None for families. certified : gap within the limit, relative to the value. rank : exact;
    identifiable : rank equals the number of answers; estimable : in words, what can be estimated. eta : share of
    constant noise mixed in by rounding. identity : every report reveals the answer.
    """

    mechanism: DenseMechanism
    mechanism_name: str
    notion: str
    objective: str
    level: Level
    joint: tuple[tuple[int, ...], ...] | None
    ceiling: Fraction | None
    information: float
    normalised_information: float
    variance: float
    value: float
    bound: float | None
    gap: float | None
    certified: bool
    rank: int
    identifiable: bool
    estimable: tuple[str, ...]
    eta: Fraction
    identity: bool
    parameters: dict[str, Any] = field(default_factory=dict)


def design(request: DesignRequest) -> Design:
    """Return the mechanism asked for.

    Raises
    ------
    InvalidInput : unsupported (no such notion, mechanism, objective or combination), choice_unprotected, secret_empty,
        identity_mechanism, optimiser_limit, not_identifiable, mechanism_not_certified.
    """
    _check(request)
    level = level_for(request.epsilon)  # (1)
    joint = request.prior.joint if request.notion in PRIOR_BASED else None
    claim = Claim(request.notion, level, joint)
    if request.mechanism in FAMILIES:
        mechanism = FAMILIES[request.mechanism](request.prior.answers, level)  # (2)
        require_private(mechanism, claim)
        return _described(request, claim, Quantised(mechanism, Fraction(0)), None)
    if admits_identity(request.notion, level, request.prior):
        return _described(request, claim, Quantised(_identity(request), Fraction(0)), None)  # (3)
    optimum = _optimum(request, level)  # (4) (5) (6)
    return _described(
        request, claim, quantise(optimum.rows(request.prior), claim, request.prior.shares), optimum
    )  # (7)


def _check(request: DesignRequest) -> None:
    require_notion(request.notion)
    if request.mechanism not in MECHANISMS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the mechanisms are {', '.join(MECHANISMS)}", "mechanism")
    if request.objective not in objectives.OBJECTIVES:
        raise InvalidInput(Problem.UNSUPPORTED, f"the objectives are {', '.join(objectives.OBJECTIVES)}", "objective")
    if request.mechanism in FAMILIES and request.notion != "ldp":
        words = f"{request.mechanism} promises the notion ldp, which covers every secret: ask for ldp, or for optimal"
        raise InvalidInput(Problem.UNSUPPORTED, words, "notion")
    if request.notion in PRIOR_BASED:
        request.prior.require_protection()


def _identity(request: DesignRequest) -> DenseMechanism:
    if not request.accept_identity:
        words = (
            "the raw answer already keeps this level under the prior, so the optimum sends answers unchanged, and the "
            "ceiling is infinite: lower epsilon, choose ldp, or accept the identity explicitly"
        )
        raise InvalidInput(Problem.IDENTITY_MECHANISM, words, "epsilon")
    a = request.prior.answers
    return DenseMechanism(BITS, tuple(tuple(1 << BITS if x == y else 0 for y in range(a)) for x in range(a)))


def _optimum(request: DesignRequest, level: Level) -> programme.Optimum:
    prior = request.prior
    _require_time(request)
    rays = rays_of(request.notion, level, prior)
    _require_time(request)
    if request.objective == "variance":
        return programme.least_variance(rays, prior)
    best = programme.most_informative(rays, prior)
    # A basic optimum has linearly independent columns: fewer reports than answers means a deficient rank.
    if len(best.rays) == prior.answers:
        return best
    for loss in (0.0,) if request.accept_unidentifiable else (0.0, REPAIR_LOSS):
        better = programme.repaired(rays, prior, best, loss)
        if better is not None:
            return better
    if not request.accept_unidentifiable:
        words = "the most informative mechanism does not let every share be estimated: use the objective variance"
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    return best


def _require_time(request: DesignRequest) -> None:
    if request.limits.out_of_time():
        words = "the time is up before there is a mechanism: allow more seconds, or use the mechanism grr"
        raise InvalidInput(Problem.OPTIMISER_LIMIT, words, "limits.seconds")


def _described(request: DesignRequest, claim: Claim, quantised: Quantised, optimum: programme.Optimum | None) -> Design:
    """Compute every figure from the published whole numbers (8)."""
    mechanism, shares = quantised.mechanism, request.prior.shares
    size = rank(mechanism)
    if size < mechanism.answers and not request.accept_unidentifiable:
        words = "only these can be estimated: " + "; ".join(estimable(mechanism))
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    identity = mechanism.sends_unchanged
    information = objectives.information(mechanism.weights, shares)
    variance = objectives.variance(mechanism.weights, shares)
    value = variance if request.objective == "variance" else information
    bound = value if identity else _bound(request, optimum)
    gap = None if bound is None else abs(value - bound)
    return Design(
        mechanism=mechanism,
        mechanism_name=request.mechanism,
        notion=request.notion,
        objective=request.objective,
        level=claim.level,
        joint=claim.joint,
        ceiling=ceiling(mechanism),
        information=information,
        normalised_information=objectives.normalised(information, shares),
        variance=variance,
        value=value,
        bound=bound,
        gap=gap,
        certified=gap is not None and gap <= request.limits.gap * abs(value),
        rank=size,
        identifiable=size == mechanism.answers,
        estimable=estimable(mechanism),
        eta=quantised.eta,
        identity=identity,
        parameters={"answers": mechanism.answers, "reports": mechanism.reports},
    )


def _bound(request: DesignRequest, optimum: programme.Optimum | None) -> float | None:
    if optimum is None:
        return None
    if request.objective == "information":
        return optimum.bound
    # The programme's objective is tr(A⁻¹); the total variance subtracts p·p (DESIGN §7).
    total = request.prior.total
    return optimum.bound - math.fsum((n / total) ** 2 for n in request.prior.shares)
