# SPDX-License-Identifier: Apache-2.0
"""The best mechanism of a cone: by listing its rays where that takes a moment, by generating columns elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_protocol.audit import require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.design import programme
from frankly_server.design.base import Base
from frankly_server.design.cones import Cone
from frankly_server.design.families import grr
from frankly_server.design.gains import Guessing, Information
from frankly_server.design.generation import generate
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.prior import Prior
from frankly_server.design.programme import Optimum
from frankly_server.design.variance import base as variance_base
from frankly_server.design.variance import criteria, minimax
from frankly_server.design.variance.frontier import frontier, information_under_cap
from frankly_server.design.variance.reports import thinned
from frankly_server.design.variance.truths import Truths
from frankly_server.design.vertices import Ray

METHODS = ("auto", "vertices")
REPAIR_LOSS = 0.01
"""The share of the objective given up, at most, to make every share estimable."""
_REPAIRED_ANSWERS = 40
_THINNED = 2000
_DECODER_TOTAL = 2**48
CRITERIA = ("total", "worst")
_GAINS: dict[str, type[Information] | type[Guessing]] = {"information": Information, "hamming": Guessing}


@dataclass(frozen=True, slots=True)
class OnCurve:
    """A mechanism on the frontier.

    information_bound : no other has more information at its variance. variance_bound : nor less variance at its
    information.
    """

    optimum: Optimum
    information_bound: float
    variance_bound: float


@dataclass(frozen=True, slots=True)
class Found:
    """An optimum, and whether its bound covers every ray of the cone one by one (`exact`) or bounds them together."""

    optimum: Optimum
    exact: bool


def most_gain(cone: Cone, prior: Prior, objective: str, limits: Limits, method: str, *, deficient: bool) -> Found:
    """Maximise the information or the chance of guessing right; see `programme.most_gain` and `generation.generate`.

    deficient : whether a mechanism that does not identify every share will do. If not, ties are broken, then at most
    REPAIR_LOSS is given up.

    Raises InvalidInput: optimiser_limit, not_identifiable.
    """
    if method == "vertices" or (cone.is_small() and not limits.out_of_time()):
        rays: Sequence[Ray] = cone.rays()
        best, exact = programme.most_gain(rays, prior, objective), True
    else:
        base = Base(cone, prior)
        gain = _GAINS[objective](base)
        made = generate(base, gain, limits, _known_columns(cone, prior))
        best, exact = programme.generated(made.columns, made.theta, made.bound, made.multipliers), False
        rays = _spread(made.columns)
    return Found(_identifying(rays, prior, best, objective, deficient=deficient), exact)


def least_variance(cone: Cone, prior: Prior, targets: FloatArray, criterion: str, limits: Limits, method: str) -> Found:
    """Minimise the total variance of the targets, or the worst one; see `variance.criteria`.

    targets : W, shape (t, a). criterion : total or worst. Raises InvalidInput(optimiser_limit).
    """
    minimise = {"total": criteria.least_variance, "worst": criteria.least_worst_variance}[criterion]
    made = minimise(_base(cone, prior, limits, method), targets, _known_columns(cone, prior), limits)
    return Found(_whole(made.columns, made.theta, made.bound), exact=made.certificate.exact)


def least_variance_over(
    cone: Cone, truths: Truths, targets: FloatArray, limits: Limits, method: str
) -> tuple[Found, Prior]:
    """Minimise the largest total variance of the targets over plausible truths; see `variance.minimax`.

    Returns
    -------
    (the optimum, the prior that its decoder is made for and its columns are scaled to).

    Raises InvalidInput(optimiser_limit).
    """
    tried: list[Prior] = []

    def base_at(shares: FloatArray) -> variance_base.ColumnBase:
        tried.append(_prior_of(shares))
        return _base(cone, tried[-1], limits, method)

    starts = _known_columns(cone, _prior_of(truths.points.mean(axis=0)))
    made = minimax.least_variance_over(base_at, targets, truths, starts, limits).optimum
    # E[|d|²|x] for the scores d, beside A: the same variance at every truth
    A = (made.columns.T * made.theta) @ made.columns
    squares = made.columns * np.sum((made.columns @ np.linalg.solve(A, targets.T)) ** 2, axis=1)[:, None]
    return Found(_whole(made.columns, made.theta, made.bound, squares.T), exact=made.certificate.exact), tried[-1]


def _prior_of(shares: FloatArray) -> Prior:
    """Return shares as whole numbers, none of them 0 where the share is not."""
    return Prior.from_rows([[max(1, round(float(v) * _DECODER_TOTAL)) if v > 0 else 0 for v in shares]])


def capped_information(cone: Cone, prior: Prior, targets: FloatArray, cap: float, limits: Limits, method: str) -> Found:
    """Maximise the information with at most `cap` of total variance; see `variance.frontier`."""
    starts = _known_columns(cone, prior)
    point = information_under_cap(_base(cone, prior, limits, method), targets, cap, starts, limits)
    return Found(_whole(point.columns, point.theta, point.information_bound), exact=point.exact)


def curve(cone: Cone, prior: Prior, targets: FloatArray, points: int, limits: Limits, method: str) -> list[OnCurve]:
    """Return mechanisms from the least variance to the most information; see `variance.frontier.frontier`."""
    found = frontier(_base(cone, prior, limits, method), targets, points, _known_columns(cone, prior), limits)
    return [
        OnCurve(_whole(p.columns, p.theta, p.information_bound), p.information_bound, p.variance_bound) for p in found
    ]


def _known_columns(cone: Cone, prior: Prior) -> FloatArray | None:
    """Return the columns of generalised randomised response if it keeps every claim, shape (answers, answers).

    A search that begins there always has a complete mechanism that identifies every share. ε-LDP implies every notion
    at level ε but for the degree of privacy violation; the exact verifier has the say.
    """
    levels = [level for claim in cone.claims for level in (claim.level, claim.low_level) if level is not None]
    least = min(levels, key=lambda level: Fraction(*level))
    if Fraction(*least) <= 1:
        return None
    mechanism = grr(cone.answers, least)
    try:
        require_private(mechanism, *cone.claims)
    except DocumentRejected:
        return None
    columns = np.array(mechanism.weights, dtype=np.float64).T
    return np.asarray(columns / (columns @ prior.probabilities())[:, None], dtype=np.float64)


def _base(cone: Cone, prior: Prior, limits: Limits, method: str) -> variance_base.ColumnBase:
    if method == "vertices" or (cone.is_small() and not limits.out_of_time()):
        return variance_base.Listed(programme.scaled(cone.rays(), prior), prior.probabilities())
    return Base(cone, prior)


def _whole(columns: FloatArray, theta: FloatArray, bound: float, also: FloatArray | None = None) -> Optimum:
    """Return few reports with the same moments as whole-number columns; also : further features kept, (k, reports)."""
    a = columns.shape[1]
    if len(columns) > a and len(columns) <= _THINNED and a <= _REPAIRED_ANSWERS:
        features = np.array([columns[:, i] * columns[:, j] for i in range(a) for j in range(i + 1)])
        features = features if also is None else np.vstack([features, also])
        kept, theta = thinned(features, np.arange(len(columns)), theta)
        columns = columns[kept]
    return programme.generated(columns, theta, bound, np.zeros(a))


def _identifying(rays: Sequence[Ray], prior: Prior, best: Optimum, objective: str, *, deficient: bool) -> Optimum:
    if rational.rank(best.rays) == prior.answers:
        return best
    for loss in (0.0,) if deficient else (0.0, REPAIR_LOSS):
        better = programme.repaired(rays, prior, best, loss, objective) if rays else None
        if better is not None:
            return better
    if not deficient:
        words = f"the optimum of {objective} does not let every share be estimated"
        words += ": use variance, or set accept_unidentifiable"
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    return best


def _spread(columns: FloatArray) -> list[Ray]:
    """Return generated columns for repair, none where there are too many answers to optimise a variance over them."""
    return programme.whole_columns(columns) if columns.shape[1] <= _REPAIRED_ANSWERS else []
