# SPDX-License-Identifier: Apache-2.0
"""Information against variance: the most informative mechanism at a given variance, and the whole frontier.

For a price μ of the variance, maximise I − μ·variance; with a certificate, I − μ·variance ≤ B(μ) for every mechanism.
So under a cap I ≤ min over the μ tried of B(μ) + μ·cap, and at information I the variance is ≥ max of (I − B(μ))/μ.
Between two optima every mixture is a mechanism as well: information is linear, variance convex. The next μ is the slope
between the neighbours of what is looked for, until mixture and bound meet.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.variance import symmetric
from frankly_server.design.variance.base import Base
from frankly_server.design.variance.criteria import variances
from frankly_server.design.variance.generation import Generated, Master, generate, moments
from frankly_server.design.variance.objective import Objective
from frankly_server.design.variance.pricing import pricer_for
from frankly_server.design.variance.reports import balanced

_LOW_PRICE = 1e-6
_HIGH_PRICE = 1e6
_REFINEMENTS = 40


@dataclass(frozen=True)
class Point:
    """A mechanism on the frontier, report j being θ_j times column j.

    information : nats. variance : total of the targets at n = 1 and truth p. information_bound : no mechanism with at
    most this variance tells more. variance_bound : no mechanism with at least this information has less. exact : as in
    `Certificate`.
    """

    columns: FloatArray
    theta: FloatArray
    information: float
    variance: float
    information_bound: float
    variance_bound: float
    exact: bool


@dataclass(frozen=True)
class _Priced:
    """The optimum at price μ: no mechanism has I − μ·variance above `bound`."""

    price: float
    columns: FloatArray
    theta: FloatArray
    information: float
    variance: float
    bound: float
    exact: bool


def information_under_cap(
    base: Base, W: FloatArray, cap: float, starts: FloatArray | None = None, limits: Limits | None = None
) -> Point:
    """Maximise I(X; Y) over the mechanisms whose total variance of the targets W·p is at most `cap`.

    Returns
    -------
    Point with variance ≤ cap, unless even the most informative mechanism stays below; `information_bound` is for the
    cap. Raises InvalidInput(unsupported) where the mechanism of least variance is above the cap.
    """
    curve = _Curve(base, W, starts, limits or Limits())
    curve.ends()
    if curve.points[0].variance > cap:
        least = f"the least variance is {curve.points[0].variance:.6g}"
        raise InvalidInput(Problem.UNSUPPORTED, f"{least}: raise the cap", "variance_cap")
    return curve.at_variance(cap)


def frontier(
    base: Base, W: FloatArray, points: int, starts: FloatArray | None = None, limits: Limits | None = None
) -> list[Point]:
    """Return mechanisms from the least variance to the most information, evenly spread in information.

    Parameters
    ----------
    points : how many, at least 2. The ends are where a unit of the one is worth a millionth of the other, in units of
    least variance and its information; the most informative mechanism itself may have infinite variance.

    Returns
    -------
    list of Point: information and variance increase; fewer points where the ends are the same or time is up.
    """
    curve = _Curve(base, W, starts, limits or Limits())
    curve.ends()
    low, high = curve.points[0].information, curve.points[-1].information
    if high - low <= 1e-9 * max(high, 1e-300):
        return [curve.at_information(low)]
    return [curve.at_information(float(target)) for target in np.linspace(low, high, points)]


class _Curve:
    """The optima found so far, by increasing information and variance."""

    def __init__(self, base: Base, W: FloatArray, starts: FloatArray | None, limits: Limits) -> None:
        self._base, self._W, self._limits = base, W, limits
        self._symmetric = symmetric.applies(base, Objective(W, base.prior))
        if not self._symmetric:
            self._pricer = pricer_for(base, limits)
            self._master = Master(base, starts)
        self.points: list[_Priced] = []

    def ends(self) -> None:
        """Find where the variance, and where the information is all but all that counts."""
        objective = Objective(self._W, self._base.prior)
        first = self._optimum(objective)
        variance = max(first.value, 1e-300)
        unit = max(self._information(first), 1e-6) / variance
        for price in (_HIGH_PRICE * unit, _LOW_PRICE * unit):
            self._solve(price)
        # the least variance itself is the end of the curve, with the bound of its neighbour
        end = self.points[0]
        information, variance = self._information(first), self._variance(first.columns, first.theta)
        if variance < end.variance:
            least = replace(end, columns=first.columns, theta=first.theta, information=information, variance=variance)
            self.points.insert(0, least)

    def at_variance(self, cap: float) -> Point:
        """Return the most informative mechanism of variance ≤ cap."""
        while True:
            below, above = self._around(cap, lambda point: point.variance)
            columns, theta = self._mixed_to_variance(below, above, cap)
            found = self._point(columns, theta, cap=cap)
            left = found.information_bound - found.information
            if left <= self._limits.gap * found.information or not self._refined(below, above):
                return found

    def at_information(self, target: float) -> Point:
        """Return the mechanism of least variance with information ≥ target."""
        while True:
            below, above = self._around(target, lambda point: point.information)
            share = _share(below.information, above.information, target)
            found = self._point(*_mixed(below, above, share))
            left = found.variance - found.variance_bound
            if left <= self._limits.gap * found.variance or not self._refined(below, above):
                return found

    def _optimum(self, objective: Objective) -> Generated:
        if self._symmetric:
            return symmetric.optimum(self._base, objective)
        return generate(self._base, lambda m: m.solve(objective), self._limits, self._master, self._pricer)

    def _solve(self, price: float) -> None:
        """Add the optimum at a price."""
        found = self._optimum(Objective(np.sqrt(price) * self._W, self._base.prior, informative=True))
        information = self._information(found)
        variance = self._variance(found.columns, found.theta)
        exact = found.certificate.exact
        new = _Priced(price, found.columns, found.theta, information, variance, -found.bound, exact)
        self.points = sorted([*self.points, new], key=lambda point: -point.price)
        self._limits.progress("frontier", information, -found.bound + price * variance)

    def _refined(self, below: _Priced, above: _Priced) -> bool:
        """Look between two neighbours; False if nothing is left to be found there, or time is up."""
        rise, more = above.variance - below.variance, above.information - below.information
        if self._limits.out_of_time() or len(self.points) > _REFINEMENTS * 4 or rise <= 0 or more <= 0:
            return False
        price = more / rise
        if not above.price * (1 + 1e-9) < price < below.price * (1 - 1e-9):
            return False
        self._solve(price)
        return True

    def _around(self, target: float, measure: Callable[[_Priced], float]) -> tuple[_Priced, _Priced]:
        """Return the neighbours of a target; the last point twice beyond the end."""
        above = [point for point in self.points if measure(point) > target]
        below = [point for point in self.points if measure(point) <= target]
        first = below[-1] if below else above[0]
        return first, above[0] if above else first

    def _mixed_to_variance(self, below: _Priced, above: _Priced, cap: float) -> tuple[FloatArray, FloatArray]:
        """Return the mixture of two mechanisms with as much of the second as the cap allows; convexity: bisection."""
        low, high = 0.0, 1.0
        if self._variance(*_mixed(below, above, high)) <= cap:
            return _mixed(below, above, high)
        for _ in range(60):
            share = 0.5 * (low + high)
            if self._variance(*_mixed(below, above, share)) <= cap:
                low = share
            else:
                high = share
        return _mixed(below, above, low)

    def _point(self, columns: FloatArray, theta: FloatArray, cap: float | None = None) -> Point:
        information = float(theta @ self._gains(columns))
        variance = self._variance(columns, theta)
        allowed = variance if cap is None else cap
        return Point(
            columns,
            theta,
            information,
            variance,
            min(point.bound + point.price * allowed for point in self.points),
            max(0.0, *((information - point.bound) / point.price for point in self.points)),
            all(point.exact for point in self.points),
        )

    def _information(self, found: Generated) -> float:
        return float(found.theta @ self._gains(found.columns))

    def _gains(self, columns: FloatArray) -> FloatArray:
        return Objective(self._W, self._base.prior, informative=True).gains(columns)

    def _variance(self, columns: FloatArray, theta: FloatArray) -> float:
        return float(np.sum(variances(moments(columns, theta), self._W, self._base.prior)))


def _share(low: float, high: float, target: float) -> float:
    return 0.0 if high <= low else min(1.0, max(0.0, (target - low) / (high - low)))


def _mixed(below: _Priced, above: _Priced, share: float) -> tuple[FloatArray, FloatArray]:
    """Return (columns, θ) of the mechanism that takes the second with probability `share`."""
    if share in (0.0, 1.0) or below is above:
        chosen = above if share == 1.0 else below
        return chosen.columns, chosen.theta
    columns = np.vstack([below.columns, above.columns])
    theta = np.concatenate([(1 - share) * below.theta, share * above.theta])
    same, where = np.unique(columns, axis=0, return_inverse=True)
    merged = np.bincount(where.ravel(), weights=theta, minlength=len(same))
    return np.asarray(same, dtype=np.float64), balanced(same, np.asarray(merged, dtype=np.float64))
