# SPDX-License-Identifier: Apache-2.0
"""Solvers for the optimum over a cone: with listed rays if it is small, else column generation.

For information and Hamming error, `programme` uses listed rays and `information.generation` needs
no list. For the variance, the frontier and plausible truths, the package `variance` handles both
cases (docs/maths/optimum.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_protocol.audit import require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.families import grr
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior
from frankly_design.notions.truths import Truths
from frankly_design.numeric import rational
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.rays import Ray
from frankly_design.optimum import programme, robust_rays
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_design.optimum.information.generation import generate
from frankly_design.optimum.programme import Optimum
from frankly_design.optimum.variance import column_base as variance_base
from frankly_design.optimum.variance import criteria, minimax, symmetric
from frankly_design.optimum.variance.frontier import frontier, information_under_cap
from frankly_design.optimum.variance.objective import Objective
from frankly_design.optimum.variance.reports import thinned
from frankly_design.tables.limits import Limits, TimeExceeded
from frankly_design.tables.objectives import entropy

METHODS = ("auto", "vertices")
REPAIR_LOSS = 0.01
"""Largest fraction of the objective that may be sacrificed to make every share estimable."""
# For larger sizes, thinning and repairs with a(a + 1)/2 moments per report take too long.
_MAX_REPAIR_ANSWERS = 40
_MAX_THINNED_REPORTS = 2000
# Up to this many answers, a symmetric optimum is computed as a table.
_MOST_TABLE_ANSWERS = 16
# A decoder prior is rounded to counts with about this total; document integers are below 2^53.
_DECODER_TOTAL = 2**48
CRITERIA = ("total", "worst")
_GAINS: dict[str, type[Information] | type[Guessing]] = {
    "information": Information,
    "hamming": Guessing,
}


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Mechanism on or near the frontier.

    information_bound : upper bound of the information at its variance.
    variance_bound : lower bound of the variance at its information.
    """

    optimum: Optimum
    information_bound: float
    variance_bound: float


@dataclass(frozen=True, slots=True)
class SolverResult:
    """Optimum; `exact` is True if its bound was checked on every ray of the cone.

    searched : False if time ran out before the search had a mechanism; the mechanism is then
    randomised response.
    """

    optimum: Optimum
    exact: bool
    searched: bool = True


def most_gain(
    cone: Cone, prior: Prior, objective: str, limits: Limits, method: str, *, deficient: bool
) -> SolverResult:
    """Maximise information or P(right guess); see `programme.most_gain` and `generation.generate`.

    deficient : True to accept a mechanism that does not identify every share.

    An optimum that does not identify every share is replaced by another optimum that does. If there
    is none and `deficient` is False, up to REPAIR_LOSS of the objective is sacrificed for a
    mechanism that does.

    Raises InvalidInput: optimiser_limit, not_identifiable.
    """
    if method == "vertices" or (cone.is_small() and not limits.out_of_time()):
        V = None if method == "vertices" else cone.vertices(prior.probabilities())
        rays: Sequence[Ray] | FloatArray = cone.rays() if V is None else V
        best, exact = programme.most_gain(rays, prior, objective), True
    else:
        known = _known_columns(cone, prior)
        try:
            base = ConeBase(cone, prior, limits)
            generated = generate(base, _GAINS[objective](base), limits, known)
        except TimeExceeded:
            if known is None:
                raise
            trivial = {"information": entropy(prior.shares), "hamming": 1.0}[objective]
            return _randomised_response(known, prior, trivial)
        columns, theta = generated.columns, generated.theta
        best = programme.generated(columns, theta, generated.bound, generated.multipliers)
        exact = False
        # A repair uses the generated columns, because the rays are not listed.
        rays = columns if columns.shape[1] <= _MAX_REPAIR_ANSWERS else ()
    return SolverResult(_identifying(rays, prior, best, objective, deficient=deficient), exact)


def least_variance(
    cone: Cone, prior: Prior, targets: FloatArray, criterion: str, limits: Limits, method: str
) -> SolverResult:
    """Minimise the total variance of the targets, or the worst one; see `variance.criteria`.

    targets : W, shape (t, a).
    criterion : total or worst.

    Raises InvalidInput(optimiser_limit).
    """
    minimise = {"total": criteria.least_variance, "worst": criteria.least_worst_variance}[criterion]
    known = _known_columns(cone, prior)
    try:
        solution = minimise(_base(cone, prior, limits, method), targets, known, limits)
    except TimeExceeded:
        if known is None:
            raise
        # Its bound is 0, the least variance that any mechanism could have.
        return _randomised_response(known, prior, 0.0)
    optimum = _thinned_optimum(solution.columns, solution.theta, solution.bound)
    return SolverResult(optimum, exact=solution.certificate.exact)


def _randomised_response(columns: FloatArray, prior: Prior, bound: float) -> SolverResult:
    """Return the mechanism of `_known_columns`, for a search that found none in time."""
    # Randomised response sends each report y with the weight θ_y that makes its rows sum to 1.
    theta: FloatArray = np.asarray(
        np.linalg.solve(columns.T, np.ones(prior.answers)), dtype=np.float64
    )
    optimum = programme.generated(columns, theta, bound, np.zeros(prior.answers))
    return SolverResult(optimum, exact=False, searched=False)


def subset_selection(
    cone: Cone, prior: Prior, objective: str, targets: FloatArray
) -> tuple[int, float] | None:
    """Return (size, bound) if a subset selection, which needs no table, is optimal by symmetry.

    objective : variance (the total of the targets) or information.

    Returns None unless the only claim is LDP of the answer, all answers are equally likely, and the
    objective treats them alike (docs/maths/optimum.md, claim 14). Also returns None for up to 16
    answers, because their table is small.
    """
    if cone.answers <= _MOST_TABLE_ANSWERS or len(set(prior.shares)) > 1:
        return None
    only = cone.claims[0]
    if len(cone.claims) > 1 or only.notion != "ldp" or only.level is None:
        return None
    ratio = only.level[0] / only.level[1]
    if ratio <= 1:
        return None
    # This base is used only for its prior and ratio, so no columns are listed.
    base = variance_base.Listed(np.empty((0, cone.answers)), prior.probabilities(), ratio=ratio)
    if objective == "information":
        return symmetric.most_informative_size(cone.answers, ratio)
    goal = Objective(targets, base.prior)
    return symmetric.best_size(base, goal) if symmetric.applies(base, goal) else None


def least_variance_over(
    cone: Cone, truths: Truths, targets: FloatArray, limits: Limits, method: str
) -> tuple[SolverResult, Prior]:
    """Minimise the largest total variance over plausible truths; see `variance.minimax`.

    Returns
    -------
    (the optimum, the prior that determines its decoder and column scale).

    Raises InvalidInput(optimiser_limit).
    """
    priors: list[Prior] = []

    def base_at(shares: FloatArray) -> variance_base.ColumnBase:
        priors.append(_prior_of(shares))
        return _base(cone, priors[-1], limits, method)

    starts = _known_columns(cone, _prior_of(truths.points.mean(axis=0)))
    solution = minimax.least_variance_over(base_at, targets, truths, starts, limits).optimum
    # Thinning also preserves E[|d|²|x] of the scores d, so the variance is unchanged at every
    # truth.
    A = (solution.columns.T * solution.theta) @ solution.columns
    scores = solution.columns @ np.linalg.solve(A, targets.T)
    squares = solution.columns * np.sum(scores**2, axis=1)[:, None]
    optimum = _thinned_optimum(solution.columns, solution.theta, solution.bound, squares.T)
    return SolverResult(optimum, exact=solution.certificate.exact), priors[-1]


def _prior_of(shares: FloatArray) -> Prior:
    """Return shares as counts; every positive share gets a positive count."""
    return Prior.from_rows(
        [[max(1, round(float(v) * _DECODER_TOTAL)) if v > 0 else 0 for v in shares]]
    )


def capped_information(
    cone: Cone, prior: Prior, targets: FloatArray, cap: float, limits: Limits, method: str
) -> SolverResult:
    """Maximise the information with total variance at most `cap`; see `variance.frontier`."""
    starts = _known_columns(cone, prior)
    point = information_under_cap(_base(cone, prior, limits, method), targets, cap, starts, limits)
    optimum = _thinned_optimum(point.columns, point.theta, point.information_bound)
    return SolverResult(optimum, exact=point.exact)


def curve(
    cone: Cone, prior: Prior, targets: FloatArray, count: int, limits: Limits, method: str
) -> list[CurvePoint]:
    """Return mechanisms from least variance to most information; see `variance.frontier`."""
    points = frontier(
        _base(cone, prior, limits, method), targets, count, _known_columns(cone, prior), limits
    )
    return [
        CurvePoint(
            _thinned_optimum(p.columns, p.theta, p.information_bound),
            p.information_bound,
            p.variance_bound,
        )
        for p in points
    ]


def _known_columns(cone: Cone, prior: Prior) -> FloatArray | None:
    """Return the columns of randomised response, shape (a, a); None if it breaks some claim.

    A search that starts from these columns always has a complete mechanism that identifies every
    share. ε-LDP implies every notion at level ε except the degree of privacy violation (dpv), so
    the verifier decides.
    """
    both_levels = [level for claim in cone.claims for level in (claim.level, claim.low_level)]
    levels = [level for level in both_levels if level is not None]
    lowest = min(levels, key=lambda level: Fraction(*level))
    # At level 1 randomised response is constant and identifies no share.
    if Fraction(*lowest) <= 1:
        return None
    mechanism = grr(cone.answers, lowest)
    try:
        require_private(mechanism, *cone.claims)
    except DocumentRejected:
        return None
    columns = np.array(mechanism.weights, dtype=np.float64).T
    return np.asarray(columns / (columns @ prior.probabilities())[:, None], dtype=np.float64)


def _base(cone: Cone, prior: Prior, limits: Limits, method: str) -> variance_base.ColumnBase:
    # Enumeration cannot be interrupted, so if time is up, column generation is used instead.
    if method == "vertices" or (cone.is_small() and not limits.out_of_time()):
        return variance_base.Listed(programme.scaled(cone.rays(), prior), prior.probabilities())
    rays = robust_rays.listed(cone, prior.probabilities(), limits)
    if rays is not None:
        return variance_base.Listed(rays, prior.probabilities())
    return ConeBase(cone, prior, limits)


def _thinned_optimum(
    columns: FloatArray, theta: FloatArray, bound: float, extra: FloatArray | None = None
) -> Optimum:
    """Return an optimum with fewer reports and the same moments, as integer columns.

    extra : additional sums over reports to preserve, shape (k, reports).
    """
    a = columns.shape[1]
    if len(columns) > a and len(columns) <= _MAX_THINNED_REPORTS and a <= _MAX_REPAIR_ANSWERS:
        features = np.array([columns[:, i] * columns[:, j] for i in range(a) for j in range(i + 1)])
        features = features if extra is None else np.vstack([features, extra])
        indices, theta = thinned(features, np.arange(len(columns)), theta)
        columns = columns[indices]
    return programme.generated(columns, theta, bound, np.zeros(a))


def _identifying(
    rays: Sequence[Ray] | FloatArray,
    prior: Prior,
    best: Optimum,
    objective: str,
    *,
    deficient: bool,
) -> Optimum:
    if rational.rank(best.rays) == prior.answers:
        return best
    for loss in (0.0,) if deficient else (0.0, REPAIR_LOSS):
        better = programme.repaired(rays, prior, best, loss, objective) if len(rays) else None
        if better is not None:
            return better
    if not deficient:
        message = f"the optimum of {objective} does not let every share be estimated"
        message += ": use variance, or set accept_unidentifiable"
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, message, "objective")
    return best
