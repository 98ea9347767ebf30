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

_ANGLES, _HALVINGS = 32, 52
_NEXT_TO = (-1e-9, 1e-9)


@dataclass(frozen=True, slots=True)
class Ratio:
    """value, its standard error by the delta method, and the ends of its interval; None if that is unbounded."""

    value: float
    se: float
    ends: Ends | None


@dataclass(frozen=True, slots=True)
class Pair:
    """The two targets a and b as one mechanism's reports tell them; arrays are over the answers.

    n : reports. values : unbiased, shape (2,). covariance : of these, shape (2, 2). weights : shape (2, answers).
    linear : n times the covariance is Σ_x p_x linear_x − sampling·θθᵀ, shape (2, 2, answers). mean : an unbiased
    estimate of that sum, shape (2, 2). local : None if not all shares are identifiable.
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
        """Return how far an interval of v·(a, b) reaches below and above its estimate.

        The normal one, or for each end the wider one of that and of the score interval.
        """
        normal = z * sqrt(max(0.0, float(v @ self.covariance @ v)))
        if not is_score:
            return normal, normal
        value, w, c = float(v @ self.values), v @ self.weights, np.einsum("i,j,ijx->x", v, v, self.linear)
        below, above = reaches(value, self.n, float(v @ self.mean @ v), w, c, self.local, self.sampling, z)
        below, above = max(below, normal), max(above, normal)
        if below + above <= VANISHED * z * sqrt(max(0.0, float(c.max())) / self.n):
            # As for one target: the worst truth counts where all that was estimated vanishes. It varies by c at most.
            worst = z * sqrt(max(0.0, worst_case_variance(c, w, self.sampling)) / self.n)
            return worst, worst
        return below, above


def pairs_of(
    found: Evidence, covariances: Sequence[FloatArray], scales: Sequence[FloatArray], sampling: float, level: float
) -> list[Pair | None]:
    """Return pairs from the evidence of targets a, b, a + b and again; None where one is not identifiable.

    covariances : of a and b, per pair. scales : what to multiply a and b by, shape (2,) per pair. sampling : the share
    of the sampling variance that remains. level : of the interval.
    """
    places = {t: i for i, t in enumerate(found.known)}
    second, seen = found.truth_moments(), found.moment()
    shares = None if found.shares is None else np.array([float(p or 0) for p in found.shares])
    local = None if shares is None else Local.of(found, onto_simplex(shares), normal_quantile(level))
    pairs: list[Pair | None] = []
    for k, (covariance, scale) in enumerate(zip(covariances, scales, strict=True)):
        targets = (3 * k, 3 * k + 1, 3 * k + 2)
        if not all(t in places for t in targets) or (shares is None and sampling < 1):
            pairs.append(None)
            continue
        i, j, both = (places[t] for t in targets)
        square, w = np.outer(scale, scale), found.W[[i, j]] * scale[:, None]
        # E[d_a d_b|x] from the second moments of d_a, d_b and their sum.
        parts = [linear_part(second[at], found.W[at], sampling) for at in (i, j, both)]
        cross = (parts[2] - parts[0] - parts[1]) / 2
        linear = np.array([[parts[0], cross], [cross, parts[1]]]) * square[:, :, None]
        mean = linear @ shares if shares is not None else seen[np.ix_((i, j), (i, j))] * square
        values = np.array([float(found.exact[t] or 0) for t in targets[:2]]) * scale
        pairs.append(Pair(found.n, values, covariance * square, w, linear, mean, sampling, local))
    return pairs


def ratio(parts: Sequence[Pair], level: float, *, is_score: bool) -> Ratio:
    """Return a/b with the interval of every ρ for which the interval of a − ρb holds 0.

    a and b are sums over the parts, which are reports of different people: the distances of their ends from their
    estimates add in squares [Zou and Donner 2008]. With normal intervals it is Fieller's own. With score intervals
    none of its ends is nearer; a ρ that no shares give must be in the normal one. It is unbounded if and only if the
    interval of b holds 0.

    Raises ZeroDivisionError if the estimate of b is 0.
    """
    a, b = (float(v) for v in sum((part.values for part in parts), np.zeros(2)))
    covariance = sum((part.covariance for part in parts), np.zeros((2, 2)))
    value, z = a / b, normal_quantile(level)
    difference = np.array([1.0, -value])
    se = sqrt(max(0.0, float(difference @ covariance @ difference))) / abs(b)
    # ρ = value + unit·tan φ: a − ρb vanishes with cos φ·(a − value·b) − unit·sin φ·b.
    largest = [max(float(np.abs(part.weights[side]).max()) for part in parts) for side in (0, 1)]
    unit = largest[0] / largest[1] if min(largest) > 0 else 1.0
    weights = np.concatenate([part.weights for part in parts], axis=1)
    counted = weights[:, (weights != 0).any(axis=0)]

    def holds(v: FloatArray, *, is_score: bool) -> bool:
        estimate, reaches = float(v @ (a, b)), [part.reach(v, z, is_score=is_score) for part in parts]
        return estimate - hypot(*(below for below, _ in reaches)) <= 0 <= estimate + hypot(*(up for _, up in reaches))

    def holds_at(angle: float) -> bool:
        v = np.array([cos(angle), -value * cos(angle) - unit * sin(angle)])
        of_answers = v @ counted
        return holds(v, is_score=is_score and bool(of_answers.min() <= 0 <= of_answers.max()))

    if holds(np.array([0.0, 1.0]), is_score=is_score):
        return Ratio(value, se, None)
    # Next to the ratios that single answers give, beyond which no shares do, little of the score interval may be left.
    corners = [atan((float(top / over) - value) / unit) + turn for top, over in counted.T if over for turn in _NEXT_TO]
    low, high = (value + unit * tan(_last(holds_at, side, corners)) for side in (-1, 1))
    return Ratio(value, se, (low, high))


def _last(holds: Callable[[float], bool], side: int, more: Sequence[float]) -> float:
    """Return the angle farthest from 0 on one side at which the interval holds 0, found from outside.

    more : angles that are tried too.
    """
    steps = [*np.linspace(pi / 2, 0, _ANGLES, endpoint=False), *(pi / 2 * 0.5 ** np.arange(6, 40))]
    angles = sorted({*map(float, steps), *(side * angle for angle in more if side * angle > 0)}, reverse=True)
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
