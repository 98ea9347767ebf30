# SPDX-License-Identifier: Apache-2.0
"""Ratios of two targets a/b, over one or several mechanisms, by Fieller's method [Fieller 1954]."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import atan, cos, hypot, pi, sin, sqrt, tan
from typing import Literal, Self

import numpy as np

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.margins import chebyshev_factor, normal_quantile
from frankly_design.estimate.target_ends import VANISHED, Local, reaches
from frankly_design.estimate.worst_case import linear_part, worst_case_variance
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray

_ANGLES, _HALVINGS = 32, 52  # grid of the search; bisection steps to the last bit of a float
_NEXT_TO = (-1e-9, 1e-9)  # radians on either side of an angle at which the score interval may begin


@dataclass(frozen=True, slots=True)
class Margin:
    """Rule for the distance of an interval's ends: `factor` times a standard error.

    kind : "normal" for the estimated standard error; "worst" for the worst-case one; "score" for
        the normal interval or, at each end, the score interval if its end is farther out.
    """

    kind: Literal["score", "normal", "worst"]
    factor: float

    @classmethod
    def of(cls, method: str, level: float, targets: int) -> Self | None:
        """Return the margin of a ratio by a method; None for kl, exact and sequence.

        targets : number of ratios that `simultaneous` covers jointly (Bonferroni).
        """
        z, all_z, k = (
            normal_quantile(level),
            normal_quantile(level, targets),
            chebyshev_factor(level),
        )
        return {
            "score": cls("score", z),
            "clt": cls("normal", z),
            "chebyshev": cls("worst", k),
            "chebyshev_plugin": cls("normal", k),
            "simultaneous": cls("worst", all_z),
            "simultaneous_plugin": cls("normal", all_z),
        }.get(method)


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
    """Two targets a and b, estimated from one mechanism's reports; θ are their true values.

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

    def reach(self, v: FloatArray, margin: Margin) -> Ends:
        """Return how far an interval of v·(a, b) extends below and above the estimate."""
        z = margin.factor
        normal = z * sqrt(max(0.0, float(v @ self.covariance @ v)))
        if margin.kind == "normal":
            return normal, normal
        if margin.kind == "worst":
            return (self._worst(v, z),) * 2
        value = float(v @ self.values)
        w = v @ self.weights
        c = np.einsum("i,j,ijx->x", v, v, self.linear)
        total = float(v @ self.mean @ v)
        below, above = reaches(value, self.n, total, w, c, self.local, self.sampling, z)
        below, above = max(below, normal), max(above, normal)
        if below + above <= VANISHED * z * sqrt(max(0.0, float(c.max())) / self.n):
            # As in `TargetEnds.score`, the worst-case variance, which is at most the largest c,
            # replaces estimated variances that are all 0.
            return (self._worst(v, z),) * 2
        return below, above

    def _worst(self, v: FloatArray, factor: float) -> float:
        """Return `factor` times the worst-case standard error of v·(a, b)."""
        c = np.einsum("i,j,ijx->x", v, v, self.linear)
        variance = worst_case_variance(c, v @ self.weights, self.sampling)
        return factor * sqrt(max(0.0, variance) / self.n)


def pairs_of(
    evidence: Evidence,
    covariances: Sequence[FloatArray],
    scales: Sequence[FloatArray],
    sampling: float,
    level: float,
) -> list[Pair | None]:
    """Return pairs from evidence with the targets a, b and a + b of each pair in turn.

    A pair is None if one of its targets is not identifiable, or if `sampling` is below 1 and not
    all shares are identifiable.

    covariances : covariance of a and b, per pair.
    scales : factors of a and b, shape (2,) per pair.
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
            Pair(evidence.n, values, covariance * square, w, linear, mean, sampling, local)
        )
    return pairs


def ratio(parts: Sequence[Pair], margin: Margin) -> Ratio:
    """Return a/b with the interval of all ρ for which the interval of a − ρb contains 0.

    a and b are sums over the parts, whose reports come from different people, so the squares of the
    distances between ends and estimates are added [Zou and Donner 2008]. With normal intervals the
    result is Fieller's interval. With worst-case errors and Chebyshev's factor it is valid at every
    n and for all true shares, because the interval of a − ρb is valid at the true ρ. With score
    intervals no end is closer to the estimate than Fieller's; an impossible ρ is included only if
    Fieller's interval contains it. The result is unbounded if and only if the interval of b
    contains 0.

    Raises ZeroDivisionError if the estimate of b is 0.
    """
    a, b = (float(v) for v in sum((part.values for part in parts), np.zeros(2)))
    covariance = sum((part.covariance for part in parts), np.zeros((2, 2)))
    value = a / b
    difference = np.array([1.0, -value])
    se = sqrt(max(0.0, float(difference @ covariance @ difference))) / abs(b)
    # The search uses angles, because ρ may be arbitrarily large. With ρ = value + unit·tan φ,
    # a − ρb is zero iff cos φ·(a − value·b) − unit·sin φ·b is zero. `unit` makes the angles
    # independent of the scales of the targets.
    largest = [max(float(np.abs(part.weights[side]).max()) for part in parts) for side in (0, 1)]
    unit = largest[0] / largest[1] if min(largest) > 0 else 1.0
    weights = np.concatenate([part.weights for part in parts], axis=1)
    counted = weights[:, (weights != 0).any(axis=0)]

    def holds(v: FloatArray, margin: Margin) -> bool:
        estimate = float(v @ (a, b))
        reaches = [part.reach(v, margin) for part in parts]
        return (
            estimate - hypot(*(below for below, _ in reaches))
            <= 0
            <= estimate + hypot(*(up for _, up in reaches))
        )

    def holds_at(angle: float) -> bool:
        v = np.array([cos(angle), -value * cos(angle) - unit * sin(angle)])
        of_answers = v @ counted
        is_possible = bool(of_answers.min() <= 0 <= of_answers.max())
        is_normal = margin.kind == "score" and not is_possible
        return holds(v, Margin("normal", margin.factor) if is_normal else margin)

    if holds(np.array([0.0, 1.0]), margin):
        return Ratio(value, se, None)
    # All possible ratios are between the ratios of single answers. Near these the set of ρ may be
    # too narrow for the grid, so their angles are tried too.
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

    more : angles to try in addition to the grid.
    """
    # The search starts from outside, because the set may have gaps, which the interval must cover.
    steps = [*np.linspace(pi / 2, 0, _ANGLES, endpoint=False), *(pi / 2 * 0.5 ** np.arange(6, 40))]
    angles = sorted(
        {*map(float, steps), *(side * angle for angle in more if side * angle > 0)}, reverse=True
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
