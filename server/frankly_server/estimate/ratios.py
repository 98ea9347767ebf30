# SPDX-License-Identifier: Apache-2.0
"""Ratios of two targets a/b, over one or several mechanisms, by Fieller's method [Fieller 1954]."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan, cos, hypot, pi, sin, sqrt, tan

import numpy as np
from numpy.typing import NDArray

from frankly_server.estimate.chernoff import Ends
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.margins import normal_quantile
from frankly_server.estimate.projection import onto_simplex
from frankly_server.estimate.target_ends import VANISHED, Local, reaches
from frankly_server.estimate.worst_case import linear_part, worst_case_variance

FloatArray = NDArray[np.float64]

_ANGLES, _HALVINGS = 32, 52  # grid of the search, then bisection to the last bit of a float
_NEXT_TO = (-1e-9, 1e-9)  # radians on either side of an angle at which the score interval may begin


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio with its standard error by the delta method.

    ends : the ends of its interval, None if that is unbounded.
    """

    value: float
    se: float
    ends: Ends | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two targets a and b as estimated from one mechanism's reports; θ are their true values.

    n : number of reports.
    values : unbiased estimates, shape (2,).
    covariance : covariance of `values`, shape (2, 2).
    weights : weights of the targets, shape (2, answers).
    linear : shape (2, 2, answers), with n·covariance = Σ_x p_x linear_x − sampling·θθᵀ.
    mean : an unbiased estimate of Σ_x p_x linear_x, shape (2, 2).
    sampling : share of the sampling variance that remains.
    local : None if not all shares are identifiable.
    """

    n: int
    values: FloatArray
    covariance: FloatArray
    weights: FloatArray
    linear: FloatArray
    mean: FloatArray
    sampling: float
    local: Local | None

    def reach(self, v: FloatArray, z: float, *, is_score: bool) -> Ends:
        """Return the distances of the ends of an interval of v·(a, b) below and above its estimate.

        These are the distances of the normal interval or, if `is_score`, at each end the larger of
        the distances of the normal and the score interval.
        """
        normal = z * sqrt(max(0.0, float(v @ self.covariance @ v)))
        if not is_score:
            return normal, normal
        value = float(v @ self.values)
        w = v @ self.weights
        c = np.einsum("i,j,ijx->x", v, v, self.linear)
        total = float(v @ self.mean @ v)
        below, above = reaches(value, self.n, total, w, c, self.local, self.sampling, z)
        below, above = max(below, normal), max(above, normal)
        if below + above <= VANISHED * z * sqrt(max(0.0, float(c.max())) / self.n):
            # As in `TargetEnds.score`, the worst-case variance replaces estimated variances that
            # all vanish. It is at most the largest c.
            worst = z * sqrt(max(0.0, worst_case_variance(c, w, self.sampling)) / self.n)
            return worst, worst
        return below, above


def pairs_of(
    evidence: Evidence,
    covariances: Sequence[FloatArray],
    scales: Sequence[FloatArray],
    sampling: float,
    level: float,
) -> list[Pair | None]:
    """Return pairs from evidence whose targets are a, b and a + b of each pair in turn.

    A pair is None if one of its targets is not identifiable, or if `sampling` is below 1 and not
    all shares are identifiable.

    covariances : covariance of a and b, per pair.
    scales : factors on a and b, shape (2,) per pair.
    sampling : the share of the sampling variance that remains.
    level : confidence level of the interval.
    """
    index = {t: i for i, t in enumerate(evidence.known)}
    second, observed = evidence.truth_moments(), evidence.moment()
    shares = None if evidence.shares is None else np.array([float(p or 0) for p in evidence.shares])
    local = (
        None if shares is None else Local.of(evidence, onto_simplex(shares), normal_quantile(level))
    )
    pairs: list[Pair | None] = []
    for k, (covariance, scale) in enumerate(zip(covariances, scales, strict=True)):
        targets = (3 * k, 3 * k + 1, 3 * k + 2)
        if not all(t in index for t in targets) or (shares is None and sampling < 1):
            pairs.append(None)
            continue
        i, j, both = (index[t] for t in targets)
        square, w = np.outer(scale, scale), evidence.W[[i, j]] * scale[:, None]
        # E[d_a d_b|x] by polarisation, from the second moments of d_a, d_b and their sum.
        linear_parts = [linear_part(second[at], evidence.W[at], sampling) for at in (i, j, both)]
        cross = (linear_parts[2] - linear_parts[0] - linear_parts[1]) / 2
        linear = np.array([[linear_parts[0], cross], [cross, linear_parts[1]]]) * square[:, :, None]
        mean = linear @ shares if shares is not None else observed[np.ix_((i, j), (i, j))] * square
        values = np.array([float(evidence.exact[t] or 0) for t in targets[:2]]) * scale
        pairs.append(
            Pair(evidence.n, values, covariance * square, w, linear, mean, sampling, local),
        )
    return pairs


def ratio(parts: Sequence[Pair], level: float, *, is_score: bool) -> Ratio:
    """Return a/b with the interval of all ρ for which the interval of a − ρb contains 0.

    a and b are sums over the parts, whose reports come from different people, so the squares of the
    distances of the ends from the estimates add up [Zou and Donner 2008]. With normal intervals the
    result is Fieller's. With score intervals no end is closer to the estimate than Fieller's; a ρ
    that no shares can give is included only if Fieller's interval contains it. The result is
    unbounded if and only if the interval of b contains 0.

    Raises ZeroDivisionError if the estimate of b is 0.
    """
    a, b = (float(v) for v in sum((part.values for part in parts), np.zeros(2)))
    covariance = sum((part.covariance for part in parts), np.zeros((2, 2)))
    value, z = a / b, normal_quantile(level)
    difference = np.array([1.0, -value])
    se = sqrt(max(0.0, float(difference @ covariance @ difference))) / abs(b)
    # The search is over angles, because ρ may be arbitrarily large. With ρ = value + unit·tan φ,
    # a − ρb is zero iff cos φ·(a − value·b) − unit·sin φ·b is zero. `unit` makes the angles
    # independent of the scales of the targets.
    largest = [max(float(np.abs(part.weights[side]).max()) for part in parts) for side in (0, 1)]
    unit = largest[0] / largest[1] if min(largest) > 0 else 1.0
    weights = np.concatenate([part.weights for part in parts], axis=1)
    counted = weights[:, (weights != 0).any(axis=0)]

    def holds(v: FloatArray, *, is_score: bool) -> bool:
        estimate = float(v @ (a, b))
        reaches = [part.reach(v, z, is_score=is_score) for part in parts]
        return (
            estimate - hypot(*(below for below, _ in reaches))
            <= 0
            <= estimate + hypot(*(up for _, up in reaches))
        )

    def holds_at(angle: float) -> bool:
        v = np.array([cos(angle), -value * cos(angle) - unit * sin(angle)])
        of_answers = v @ counted
        return holds(v, is_score=is_score and bool(of_answers.min() <= 0 <= of_answers.max()))

    if holds(np.array([0.0, 1.0]), is_score=is_score):
        return Ratio(value, se, None)
    # No shares give ratios beyond those of single answers. Near the ratio of a single answer the
    # set of ρ may be too narrow for the grid, so the angles of these ratios are tried too.
    corners = [
        atan((float(top / over) - value) / unit) + turn
        for top, over in counted.T
        if over
        for turn in _NEXT_TO
    ]
    low, high = (value + unit * tan(_last(holds_at, side, corners)) for side in (-1, 1))
    return Ratio(value, se, (low, high))


def _last(holds: Callable[[float], bool], side: int, more: Sequence[float]) -> float:
    """Return the angle farthest from 0 on one side at which the interval contains 0.

    more : angles that are tried in addition to the grid.
    """
    # The search begins outside, because the set may have gaps, which the interval must cover.
    steps = [*np.linspace(pi / 2, 0, _ANGLES, endpoint=False), *(pi / 2 * 0.5 ** np.arange(6, 40))]
    angles = sorted(
        {*map(float, steps), *(side * angle for angle in more if side * angle > 0)},
        reverse=True,
    )
    outside = pi / 2
    for angle in angles:
        if holds(side * angle):
            break
        outside = angle
    else:
        return 0.0
    inside = angle
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if holds(side * middle):
            inside = middle
        else:
            outside = middle
    return side * outside
