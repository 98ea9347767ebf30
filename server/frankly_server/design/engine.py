# SPDX-License-Identifier: Apache-2.0
"""One engine for every mechanism: from a prior, a notion and a level to whole numbers that keep the promise.

(1) the family asked for, see `families`, or: (2) refuse the identity unless wanted (3) the optimum and its bound
(4) rank, with repair (5) quantise and verify (6) compute every figure from the whole numbers.
"""

import math
from fractions import Fraction
from typing import Final

import numpy as np
from frankly_protocol.audit import ceiling
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.mechanisms.base import MAX_REPORTS
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.design import kinds, objectives, solver
from frankly_server.design.cones import Cone
from frankly_server.design.decoded import at_truths
from frankly_server.design.families import FAMILIES, Built, FamilyRequest, best_point, variance_at
from frankly_server.design.prior import Prior
from frankly_server.design.programme import Optimum
from frankly_server.design.quantise import BITS, quantise
from frankly_server.design.request import MECHANISMS, DesignRequest, check
from frankly_server.design.result import Design, FrontierPoint

INSTEAD: Final = "use subset-selection, oue or grr, or put the questions in blocks of their own"
"""The way out of a table that is too large."""

__all__ = ["MECHANISMS", "Design", "DesignRequest", "FrontierPoint", "design", "frontier", "targets_of"]


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
        mechanism = quantise(_rows(on.optimum, prior), request.claims, shares).mechanism
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
    check(request)
    if request.mechanism in FAMILIES:
        made = FAMILIES[request.mechanism](
            FamilyRequest(request.mechanism, request.prior, request.claims, request.explicit)
        )  # (1)
        return _described(request, made, None)
    if any(claim.notion == "dp" for claim in request.claims):
        return _described(request, _binary(request), None)
    cone = Cone(request.claims, request.prior.answers)
    if cone.admits_identity():
        return _described(request, Built(_unchanged(request.prior.answers), request.claims, {}), None)  # (2)
    found, decoder_prior = _optimum(request, cone)  # (3) (4)
    rounded = quantise(_rows(found.optimum, decoder_prior), request.claims, decoder_prior.shares)  # (5)
    return _described(request, Built(rounded.mechanism, request.claims, {}, rounded.eta), found, decoder_prior)


def _rows(optimum: Optimum, prior: Prior) -> list[list[int]]:
    """Return an optimum as whole numbers; a table that no document can hold is refused before it is rounded."""
    if len(optimum.rays) > MAX_REPORTS:
        words = f"the best mechanism found for {prior.answers} answers has more than {MAX_REPORTS} reports"
        raise InvalidInput(Problem.OPTIMISER_LIMIT, f"{words}: {INSTEAD}", "mechanism")
    return optimum.rows(prior)


def _binary(request: DesignRequest) -> Built:
    """Return the optimum under (ε, δ)-DP, which is known for the shares of two answers  [Thesis Thm 6.3]."""
    if request.prior.answers != 2 or request.objective != "variance" or len(request.claims) != 1:
        words = "the optimum under dp is known for the variance of two answers: use product-sanitisation, binary or grr"
        raise InvalidInput(Problem.UNSUPPORTED, words, "mechanism")
    return FAMILIES["binary"](FamilyRequest(request.mechanism, request.prior, request.claims, request.explicit))


def _unchanged(answers: int) -> DenseMechanism:
    D = 1 << BITS
    return DenseMechanism(BITS, tuple(tuple(D if x == y else 0 for y in range(answers)) for x in range(answers)))


def _require_accepted(request: DesignRequest) -> None:
    if not request.accept_identity:
        words = (
            "the raw answer already keeps this level under the prior, so this mechanism sends answers unchanged, and "
            "the ceiling is infinite: lower epsilon, choose ldp, or accept the identity explicitly"
        )
        raise InvalidInput(Problem.IDENTITY_MECHANISM, words, "epsilon")


def _optimum(request: DesignRequest, cone: Cone) -> tuple[solver.Found, Prior]:
    """Return the optimum, and the prior that its columns are scaled to and its decoder is made for."""
    prior, limits, method = request.prior, request.limits, request.method
    if request.truths is not None:
        return solver.least_variance_over(cone, request.truths, targets_of(request), limits, method)
    if request.objective == "variance":
        return solver.least_variance(cone, prior, targets_of(request), request.criterion, limits, method), prior
    if request.variance_cap is not None:
        cap = request.variance_cap
        return solver.capped_information(cone, prior, targets_of(request), cap, limits, method), prior
    deficient = request.accept_unidentifiable
    return solver.most_gain(cone, prior, request.objective, limits, method, deficient=deficient), prior


def targets_of(request: DesignRequest) -> NDArray[np.float64]:
    """Return the targets as floats, shape (t, answers)."""
    if request.targets is None:
        return np.eye(request.prior.answers)
    return np.array([[float(v) for v in row] for row in request.targets])


def _described(
    request: DesignRequest, made: Built, found: solver.Found | None, decoder_prior: Prior | None = None
) -> Design:
    """Compute every figure from the published whole numbers (6); decoder_prior : None for the design prior."""
    mechanism, shares = made.mechanism, request.prior.shares
    decoded_by = (decoder_prior or request.prior).shares
    if mechanism.sends_unchanged:
        _require_accepted(request)
    size = kinds.rank_of(mechanism)
    estimable = kinds.words_of(mechanism, size)
    if size < mechanism.answers and not request.accept_unidentifiable:
        words = "only these can be estimated: " + "; ".join(estimable)
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE, words, "mechanism" if request.mechanism in FAMILIES else "objective"
        )
    identity = mechanism.sends_unchanged
    figures, of_targets, variance = _worth(request, mechanism)
    parameters = made.parameters
    if request.truths is not None:
        at = at_truths(mechanism, decoded_by, request.truths, targets_of(request), request.prior.probabilities())
        figures["variance"], of_targets, variance = at.largest, at.target_variances, at.variance
        parameters = parameters | {"decoder_prior": list(decoded_by), "truth_variances": list(at.variances)}
    value = figures[request.objective]
    bound = value if identity else _bound(request, made, found)
    gap = None if bound is None else abs(value - bound)
    return Design(
        mechanism=mechanism,
        mechanism_name=request.mechanism,
        claims=made.claims,
        objective=request.objective,
        ceiling=ceiling(mechanism),
        information=figures["information"],
        normalised_information=objectives.normalised(figures["information"], shares),
        variance=variance,
        target_variances=of_targets,
        hamming=figures["hamming"],
        value=value,
        bound=bound,
        gap=gap,
        certified=gap is not None and gap <= _allowed(request, value),
        exact=identity or (bound is not None and (found is None or found.exact)),
        rank=size,
        identifiable=size == mechanism.answers,
        estimable=estimable,
        eta=made.eta,
        identity=identity,
        decoder_prior=decoded_by,
        parameters={"answers": mechanism.answers, "reports": mechanism.reports, **parameters},
    )


def _worth(request: DesignRequest, mechanism: Mechanism) -> tuple[dict[str, float], tuple[float, ...], float]:
    """Return the objectives, the targets' variances and the total variance of the shares."""
    shares, rows = request.prior.shares, kinds.rows_of(mechanism)
    of_targets = tuple(kinds.variances(mechanism, request.prior, request.targets))
    figures = {
        "variance": max(of_targets) if request.criterion == "worst" else math.fsum(of_targets),
        "information": math.nan if rows is None else objectives.information(rows, shares),
        "hamming": math.nan if rows is None else objectives.hamming(rows, shares),
    }
    of_shares = of_targets if request.targets is None else kinds.variances(mechanism, request.prior, None)
    return figures, of_targets, math.fsum(of_shares)


def _allowed(request: DesignRequest, value: float) -> float:
    """Return the largest gap that counts as none: relative to a variance, absolute for nats and error rates."""
    return request.limits.gap * (abs(value) if request.objective == "variance" else 1.0)


def _bound(request: DesignRequest, made: Built, found: solver.Found | None) -> float | None:
    """Return what no mechanism that keeps the claims is better than, None for a family; exact for two answers."""
    if found is not None:
        return 1 - found.optimum.bound if request.objective == "hamming" else found.optimum.bound
    if request.mechanism in FAMILIES:
        return None
    point = best_point(made.claims[0], request.prior, request.explicit.region)
    least = variance_at(point, Fraction(request.prior.shares[1], request.prior.total))
    # W·p = W_0 + (W_1 − W_0)·π varies as π does.
    scales = [(row[1] - row[0]) ** 2 for row in request.targets or ((Fraction(1), Fraction(0)),) * 2]
    return float(least * (max(scales) if request.criterion == "worst" else sum(scales)))
