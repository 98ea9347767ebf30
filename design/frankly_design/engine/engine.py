# SPDX-License-Identifier: Apache-2.0
"""Design engine: builds a verified integer mechanism from a prior, notions and levels.

(1) Build a named family directly (see `families`). For an optimum: (2) publish the raw answer if
the claims allow it and the request accepts it; otherwise (3) find the optimum and its bound, (4)
repair a deficient rank, (5) quantise and verify. In all cases (6) compute every figure from the
integer weights.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from frankly_protocol.audit import ceiling
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.engine.decoded import at_truths
from frankly_design.engine.measured import estimable_in_words
from frankly_design.engine.request import MECHANISMS, DesignRequest, check, long_list_error
from frankly_design.engine.result import DesignResult, FrontierPoint
from frankly_design.families import FAMILIES, Built, FamilyRequest, best_point, variance_at
from frankly_design.families.sets import ldp_subsets
from frankly_design.kinds.kind import Kind
from frankly_design.kinds.registry import kind_of
from frankly_design.notions.cones import Cone, have_cone
from frankly_design.notions.interior import interior_table
from frankly_design.notions.prior import Prior
from frankly_design.numeric import rational
from frankly_design.optimum import solver
from frankly_design.optimum.programme import Optimum
from frankly_design.tables import objectives
from frankly_design.tables.limits import TimeExceeded, no_poll
from frankly_design.tables.quantise import BITS, equalised, quantise, quantise_by_columns

SMALLER_TABLES: Final = "use subset-selection, oue or grr, or put each question in its own block"
"""Advice for the error message about a table that is too large."""

__all__ = [
    "MECHANISMS",
    "DesignRequest",
    "DesignResult",
    "FrontierPoint",
    "design",
    "frontier",
    "targets_of",
]


def frontier(request: DesignRequest, points: int) -> list[FrontierPoint]:
    """Return mechanisms from least variance to most information, evenly spaced in information.

    points : 2 or more.

    Only the prior, claims, targets, method and limits of the request are used.

    Raises InvalidInput: identity_mechanism if the raw answer satisfies the claims, optimiser_limit,
    mechanism_not_certified.
    """
    prior, shares = request.prior, request.prior.shares
    if not have_cone(request.claims):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a frontier is computed under the other notions, such as ldp",
            "notion",
        )
    cone = Cone.of(request.claims, prior.answers)
    if cone.admits_identity():
        raise InvalidInput(
            Problem.IDENTITY_MECHANISM,
            "the raw answer already keeps these levels, and has the least variance and the most "
            "information: there is no frontier",
            "frontier",
        )
    frontier_points = []
    for point in solver.curve(
        cone, prior, targets_of(request), points, request.limits, request.method
    ):
        rows, poll = _rows(point.optimum, prior), request.limits.require_time
        mechanism = quantise(
            rows, request.claims, shares, poll=poll, interior=partial(interior_table, cone)
        ).mechanism
        information = objectives.information(mechanism.weights, shares)
        variance = math.fsum(
            objectives.target_variances(mechanism.weights, shares, request.targets)
        )
        frontier_points.append(
            FrontierPoint(
                mechanism, information, variance, point.information_bound, point.variance_bound
            )
        )
    return frontier_points


def design(request: DesignRequest) -> DesignResult:
    """Return the verified mechanism of a request, with its figures.

    Raises
    ------
    InvalidInput : field_missing, unsupported (no such mechanism, objective or combination),
        identity_mechanism, optimiser_limit (also TimeExceeded), not_identifiable,
        mechanism_not_certified, or an error of the requested family.
    """
    check(request)
    if request.mechanism in FAMILIES:
        built = FAMILIES[request.mechanism](_family_request(request))  # (1)
        return _design_of(request, built, None)
    # (ε, δ)-DP couples reports, so it is not a cone of columns and has no rays.
    if not have_cone(request.claims):
        return _design_of(request, _binary_mechanism(request), None)
    cone = Cone.of(request.claims, request.prior.answers)
    if cone.admits_identity():
        return _design_of(
            request, Built(_identity(request.prior.answers), request.claims, {}), None
        )  # (2)
    by_symmetry = _by_symmetry(request, cone)
    if by_symmetry is not None:
        return _design_of(request, *by_symmetry)
    if request.prior.answers > MAX_ANSWERS:
        raise long_list_error(request.prior.answers)
    solved, decoder_prior = _optimum(request, cone)  # (3) (4)
    rows = _rows(solved.optimum, decoder_prior)
    is_low = request.targets is not None and rational.least_rank(rows) < len(rows)
    rounding = (
        quantise_by_columns
        if is_low and len(rows[0]) < MAX_REPORTS
        else partial(quantise, interior=partial(interior_table, cone))
    )
    rounded = rounding(
        rows, request.claims, decoder_prior.shares, poll=request.limits.require_time
    )  # (5)
    parameters = {"filled_zeros": rounded.filled_zeros}
    return _design_of(
        request,
        Built(rounded.mechanism, request.claims, parameters, rounded.eta),
        solved,
        decoder_prior,
    )


def _by_symmetry(request: DesignRequest, cone: Cone) -> tuple[Built, solver.SolverResult] | None:
    """Return subset selection if it is the optimum by symmetry, with its bound."""
    if (
        request.objective not in ("variance", "information")
        or request.criterion != "total"
        or request.truths is not None
        or request.variance_cap is not None
        or request.method != "auto"
    ):
        return None
    selection = solver.subset_selection(cone, request.prior, request.objective, targets_of(request))
    level = cone.claims[0].level
    if selection is None or level is None:
        return None
    size, bound = selection
    mechanism = ldp_subsets(cone.answers, size, Fraction(*level))
    optimum = Optimum((), np.zeros(0), bound, np.zeros(cone.answers))
    return Built(mechanism, request.claims, {"size": size}), solver.SolverResult(
        optimum, exact=True
    )


def _rows(optimum: Optimum, prior: Prior) -> list[list[int]]:
    """Return the rows of an optimum as integers, with equal entries where it has them.

    Raises InvalidInput(optimiser_limit) if it has more reports than a document can hold.
    """
    if len(optimum.rays) > MAX_REPORTS:
        message = f"the best mechanism found for {prior.answers} answers has more than {MAX_REPORTS} reports"
        raise InvalidInput(Problem.OPTIMISER_LIMIT, f"{message}: {SMALLER_TABLES}", "mechanism")
    return equalised(optimum.rows(prior))


def _binary_mechanism(request: DesignRequest) -> Built:
    """Return the best table of two reports under (ε, δ)-DP of two answers  [Thesis Thm 6.3]."""
    if request.prior.answers != 2 or request.objective != "variance" or len(request.claims) != 1:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "under dp an optimum is known for the variance of two answers: use "
            "product-sanitisation, binary or grr",
            "mechanism",
        )
    return FAMILIES["binary"](_family_request(request))


def _family_request(request: DesignRequest) -> FamilyRequest:
    return FamilyRequest(
        request.mechanism, request.prior, request.claims, request.explicit, request.limits
    )


def _identity(answers: int) -> DenseMechanism:
    D = 1 << BITS
    return DenseMechanism(
        BITS, tuple(tuple(D if x == y else 0 for y in range(answers)) for x in range(answers))
    )


def _require_identity_accepted(request: DesignRequest) -> None:
    if not request.accept_identity:
        raise InvalidInput(
            Problem.IDENTITY_MECHANISM,
            "the raw answer already keeps this level under the prior, so this mechanism sends answers unchanged, and "
            "the ceiling is infinite: lower epsilon, choose ldp, or accept the identity explicitly",
            "epsilon",
        )


def _optimum(request: DesignRequest, cone: Cone) -> tuple[solver.SolverResult, Prior]:
    """Return the optimum, and the prior that scales its columns and determines its decoder."""
    prior, limits, method = request.prior, request.limits, request.method
    if request.truths is not None:
        return solver.least_variance_over(cone, request.truths, targets_of(request), limits, method)
    if request.objective == "variance":
        return solver.least_variance(
            cone, prior, targets_of(request), request.criterion, limits, method
        ), prior
    if request.variance_cap is not None:
        return solver.capped_information(
            cone, prior, targets_of(request), request.variance_cap, limits, method
        ), prior
    return solver.most_gain(
        cone, prior, request.objective, limits, method, deficient=request.accept_unidentifiable
    ), prior


def targets_of(request: DesignRequest) -> NDArray[np.float64]:
    """Return the targets as floats, shape (t, answers)."""
    if request.targets is None:
        return np.eye(request.prior.answers)
    return np.array([[float(v) for v in row] for row in request.targets])


def _design_of(
    request: DesignRequest,
    built: Built,
    solved: solver.SolverResult | None,
    decoder_prior: Prior | None = None,
) -> DesignResult:
    """Return the design, with every figure computed from the integer weights (6).

    decoder_prior : the prior that determines the decoder; None for the design prior.

    Raises InvalidInput: identity_mechanism or not_identifiable, unless the request accepts these.
    """
    mechanism, shares = built.mechanism, request.prior.shares
    decoded_by = (decoder_prior or request.prior).shares
    # A family may send answers unchanged too, so the check looks at the mechanism.
    if mechanism.sends_unchanged:
        _require_identity_accepted(request)
    kind = kind_of(mechanism)
    rank = kind.rank
    estimable = estimable_in_words(mechanism, rank)
    if rank < mechanism.answers and not request.accept_unidentifiable:
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            "only these can be estimated: " + "; ".join(estimable),
            "mechanism" if request.mechanism in FAMILIES else "objective",
        )
    identity = mechanism.sends_unchanged
    figures, of_targets, variance, left_out = _figures(request, kind)
    parameters = built.parameters
    if request.truths is not None:
        at_truth = at_truths(
            mechanism,
            decoded_by,
            request.truths,
            targets_of(request),
            request.prior.probabilities(),
        )
        figures["variance"] = at_truth.largest
        of_targets, variance = at_truth.target_variances, at_truth.variance
        parameters = parameters | {
            "decoder_prior": list(decoded_by),
            "truth_variances": list(at_truth.variances),
        }
    value = figures[request.objective]
    bound = value if identity else _bound(request, built, solved)
    # This is the value of the rounded mechanism; it may be on either side of a bound in floats.
    gap = None if bound is None else abs(value - bound)
    return DesignResult(
        mechanism=mechanism,
        mechanism_name=request.mechanism,
        claims=built.claims,
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
        certified=gap is not None and gap <= _gap_limit(request, value),
        exact=identity or (bound is not None and (solved is None or solved.exact)),
        rank=rank,
        identifiable=rank == mechanism.answers,
        estimable=estimable,
        eta=built.eta,
        identity=identity,
        decoder_prior=decoded_by,
        left_out=left_out if solved is None or solved.searched else ("search", *left_out),
        parameters={"answers": mechanism.answers, "reports": mechanism.reports, **parameters},
    )


def _figures(
    request: DesignRequest, kind: Kind
) -> tuple[dict[str, float], tuple[float, ...], float, tuple[str, ...]]:
    """Return (values of the objectives, variance of each target, total variance of the shares).

    The last entry lists the figures that are nan because time is up; the objective is never nan.
    """
    poll = no_poll if request.objective != "variance" else request.limits.require_time
    left_out: tuple[str, ...] = ()
    try:
        information, hamming = kind.information_and_hamming(request.prior, poll)
    except TimeExceeded:
        information = hamming = math.nan
        left_out = ("information", "normalised_information")
    of_targets = tuple(kind.variances(request.prior, request.targets))
    figures = {
        "variance": max(of_targets) if request.criterion == "worst" else math.fsum(of_targets),
        "information": information,
        "hamming": hamming,
    }
    if request.targets is None:
        return figures, of_targets, math.fsum(of_targets), left_out
    if request.limits.overdue():
        return figures, of_targets, math.nan, (*left_out, "variance")
    of_shares = kind.variances(request.prior, None)
    return figures, of_targets, math.fsum(of_shares), left_out


def _gap_limit(request: DesignRequest, value: float) -> float:
    """Return the largest gap of a certified design: relative for variances, otherwise absolute."""
    return request.limits.gap * (abs(value) if request.objective == "variance" else 1.0)


def _bound(
    request: DesignRequest, built: Built, solved: solver.SolverResult | None
) -> float | None:
    """Return the proven bound of the objective over all mechanisms that satisfy the claims.

    Under (ε, 0)-DP of two answers the bound is the optimum itself. For δ > 0 the optimum is that of
    mechanisms with two reports  [Thesis Thm 6.3], and more reports can be better: the bound is None,
    as for a family.
    """
    if solved is not None:
        # The solver maximises the probability of a right guess, 1 − the Hamming error.
        bound = solved.optimum.bound
        # Rounding can make a bound negative, but no variance is.
        return {"hamming": 1 - bound, "variance": max(bound, 0.0)}.get(request.objective, bound)
    delta, _ = built.claims[0].delta or (0, 1)
    if request.mechanism in FAMILIES or delta:
        return None
    point = best_point(built.claims[0], request.prior, request.explicit.region)
    least = variance_at(point, Fraction(request.prior.shares[1], request.prior.total))
    # With p = (1 − π, π), W·p = W_0 + (W_1 − W_0)·π: its variance is (W_1 − W_0)² times that of π.
    scales = [
        (row[1] - row[0]) ** 2 for row in request.targets or ((Fraction(1), Fraction(0)),) * 2
    ]
    return float(least * (max(scales) if request.criterion == "worst" else sum(scales)))
