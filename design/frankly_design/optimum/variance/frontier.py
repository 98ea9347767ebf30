# SPDX-License-Identifier: Apache-2.0
"""Frontier of information against variance, with bounds on both.

For a price μ of the variance, I − μ·variance is maximised, and a certificate proves that
I − μ·variance ≤ B(μ) for every mechanism. Hence for every computed price μ, a mechanism whose
variance is at most a cap has I ≤ B(μ) + μ·cap, and a mechanism with information I has
variance ≥ (I − B(μ))/μ. Mixtures of two optima are also mechanisms: the information is linear in
the mixing share, the variance is convex. The next μ is the slope between the two optima next to the
target, until their mixture attains the bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance import symmetric
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.criteria import variances
from frankly_design.optimum.variance.generation import VarianceOptimum, generate
from frankly_design.optimum.variance.master import VarianceMaster, moments
from frankly_design.optimum.variance.objective import Objective, centred
from frankly_design.optimum.variance.pricing import pricer_for
from frankly_design.optimum.variance.reports import balanced
from frankly_design.tables.limits import Limits

# At each end of the curve one quantity has a millionth of the weight of the other, to break ties.
_LOW_PRICE = 1e-6
_HIGH_PRICE = 1e6
# Below this price, relative to that of the ends, the variance is lost in the information's rounding.
_LEAST_PRICE = 1e-12
# Share of the gap that a variance below the cap may cost the bound of the information.
_SPARE = 0.1
_REFINEMENTS = 40


@dataclass(frozen=True)
class FrontierMechanism:
    """Mechanism near the frontier; report j is θ_j times column j.

    information : nats.
    variance : total variance of the targets at n = 1 and truth p.
    information_bound : upper bound on the information of mechanisms with at most this variance (or
        at most the cap, if there is one).
    variance_bound : lower bound on the variance of mechanisms with at least this information.
    exact : as in `VarianceCertificate`.
    """

    columns: FloatArray
    theta: FloatArray
    information: float
    variance: float
    information_bound: float
    variance_bound: float
    exact: bool


@dataclass(frozen=True)
class _PricedOptimum:
    """Optimum at price μ: no mechanism has I − μ·variance above `bound`."""

    price: float
    columns: FloatArray
    theta: FloatArray
    information: float
    variance: float
    bound: float
    exact: bool


def information_under_cap(
    base: ColumnBase,
    W: FloatArray,
    cap: float,
    starts: FloatArray | None = None,
    limits: Limits | None = None,
) -> FrontierMechanism:
    """Maximise I(X; Y) over the mechanisms whose total variance of W·p is at most `cap`.

    Returns
    -------
    FrontierMechanism with variance ≤ cap. The variance is below the cap only if the most
    informative mechanism found is below it.

    Raises
    ------
    InvalidInput(unsupported) if every mechanism, or every one found in time, exceeds the cap.
    """
    curve = _Curve(base, W, starts, limits or Limits())
    curve.ends()
    least = curve.points[0].variance
    if least > cap:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"no mechanism has a variance below {curve.least_bound:.6g}: raise the cap"
            if cap < curve.least_bound
            else f"the least variance found in the time is {least:.6g}: raise the cap or limits.seconds",
            "variance_cap",
        )
    return curve.at_variance(cap)


def frontier(
    base: ColumnBase,
    W: FloatArray,
    points: int,
    starts: FloatArray | None = None,
    limits: Limits | None = None,
) -> list[FrontierMechanism]:
    """Return mechanisms from least variance to most information, evenly spaced in information.

    Parameters
    ----------
    points : number of points, at least 2. The last one maximises information with a tiny price on
        the variance, because the most informative mechanism may have infinite variance.

    Returns
    -------
    list of FrontierMechanism, by increasing information and variance; a single one if both ends
        have the same information.
    """
    curve = _Curve(base, W, starts, limits or Limits())
    curve.ends()
    low, high = curve.points[0].information, curve.points[-1].information
    # Equal up to rounding: the same mechanism is best at both ends, so there is no trade-off.
    if high - low <= 1e-9 * max(high, 1e-300):
        return [curve.at_information(low)]
    return [curve.at_information(float(target)) for target in np.linspace(low, high, points)]


class _Curve:
    """Curve of the optima found so far, ordered by increasing information and variance."""

    def __init__(
        self, base: ColumnBase, W: FloatArray, starts: FloatArray | None, limits: Limits
    ) -> None:
        self._base, self._limits = base, limits
        self._symmetric = symmetric.applies(base, Objective(W, base.prior))
        self._W = W if self._symmetric else centred(W, base.prior)
        if not self._symmetric:
            self._pricer = pricer_for(base, limits)
            self._master = VarianceMaster(base, starts, limits)
        self.points: list[_PricedOptimum] = []
        self.least_bound = 0.0

    def ends(self) -> None:
        """Add both ends, at prices where variance or information dominates."""
        first = self._optimum(Objective(self._W, self._base.prior))
        self.least_bound = first.bound
        variance = max(first.value, 1e-300)
        # The unit of prices is nats per variance, so the ends are relative to the problem's scale.
        unit = max(self._information(first), 1e-6) / variance
        for price in (_HIGH_PRICE * unit, _LOW_PRICE * unit):
            self._solve(price)
        # The curve begins exactly at the least variance. The price and the bound of the neighbour
        # remain valid, because the bound holds for every mechanism.
        end = self.points[0]
        information, variance = self._information(first), self._variance(first.columns, first.theta)
        if variance < end.variance:
            least = replace(
                end,
                columns=first.columns,
                theta=first.theta,
                information=information,
                variance=variance,
            )
            self.points.insert(0, least)

    def at_variance(self, cap: float) -> FrontierMechanism:
        """Return the most informative mechanism of variance ≤ cap."""
        while True:
            below, above = self._around(cap, lambda point: point.variance)
            columns, theta = self._mixed_to_variance(below, above, cap)
            optimum = self._point(columns, theta, cap=cap)
            gap = optimum.information_bound - optimum.information
            # A design is certified by its gap in nats; the other half is reserved for rounding.
            largest = 0.5 * self._limits.gap * min(optimum.information, 1.0)
            if gap <= largest or not (self._refined(below, above) or self._lowered(above, cap)):
                return optimum

    def at_information(self, target: float) -> FrontierMechanism:
        """Return the mechanism of least variance with information ≥ target."""
        while True:
            below, above = self._around(target, lambda point: point.information)
            share = _share(below.information, above.information, target)
            optimum = self._point(*_mixed(below, above, share))
            gap = optimum.variance - optimum.variance_bound
            if gap <= self._limits.gap * optimum.variance or not self._refined(below, above):
                return optimum

    def _optimum(self, objective: Objective) -> VarianceOptimum:
        if self._symmetric:
            return symmetric.optimum(self._base, objective)
        return generate(
            self._base, lambda m: m.solve(objective), self._limits, self._master, self._pricer
        )

    def _solve(self, price: float) -> None:
        """Add the optimum at a price."""
        optimum = self._optimum(
            Objective(np.sqrt(price) * self._W, self._base.prior, informative=True)
        )
        information = self._information(optimum)
        variance = self._variance(optimum.columns, optimum.theta)
        exact = optimum.certificate.exact
        new = _PricedOptimum(
            price, optimum.columns, optimum.theta, information, variance, -optimum.bound, exact
        )
        self.points = sorted([*self.points, new], key=lambda point: -point.price)
        self._limits.progress("frontier", information, -optimum.bound + price * variance)

    def _refined(self, below: _PricedOptimum, above: _PricedOptimum) -> bool:
        """Add the optimum between two neighbours; return False if there is none, or at a limit."""
        rise, gain = above.variance - below.variance, above.information - below.information
        if (
            self._limits.out_of_time()
            # Each refinement costs as much as a design, so their number is limited in addition to
            # the time.
            or len(self.points) > _REFINEMENTS * 4
            or rise <= 0
            or gain <= 0
        ):
            return False
        price = gain / rise
        # The price of a neighbour would only give the same optimum again.
        if not above.price * (1 + 1e-9) < price < below.price * (1 - 1e-9):
            return False
        self._solve(price)
        return True

    def _lowered(self, last: _PricedOptimum, cap: float) -> bool:
        """Add the optimum at a lower price than the last, if that proves a closer bound at the cap.

        Where the last optimum stays below the cap, its bound pays its price for the difference.
        """
        spare, information = cap - last.variance, last.information
        if self._limits.out_of_time() or last is not self.points[-1] or spare <= 0:
            return False
        price = _SPARE * self._limits.gap * min(information, 1.0) / spare
        if not _LEAST_PRICE * information / last.variance < price < last.price * (1 - 1e-9):
            return False
        self._solve(price)
        return True

    def _around(
        self, target: float, measure: Callable[[_PricedOptimum], float]
    ) -> tuple[_PricedOptimum, _PricedOptimum]:
        """Return the points on both sides of a target; beyond an end, the end point twice."""
        above = [point for point in self.points if measure(point) > target]
        below = [point for point in self.points if measure(point) <= target]
        first = below[-1] if below else above[0]
        return first, above[0] if above else first

    def _mixed_to_variance(
        self, below: _PricedOptimum, above: _PricedOptimum, cap: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mixture of two mechanisms with as much of the second as the cap allows."""
        low, high = 0.0, 1.0
        if self._variance(*_mixed(below, above, high)) <= cap:
            return _mixed(below, above, high)
        # The variance is convex in the share, so it reaches the cap once; 60 bisections exhaust the
        # precision of a float.
        for _ in range(60):
            share = 0.5 * (low + high)
            if self._variance(*_mixed(below, above, share)) <= cap:
                low = share
            else:
                high = share
        return _mixed(below, above, low)

    def _point(
        self, columns: FloatArray, theta: FloatArray, cap: float | None = None
    ) -> FrontierMechanism:
        information = float(theta @ self._gains(columns))
        variance = self._variance(columns, theta)
        allowed = variance if cap is None else cap
        return FrontierMechanism(
            columns,
            theta,
            information,
            variance,
            min(point.bound + point.price * allowed for point in self.points),
            max(0.0, *((information - point.bound) / point.price for point in self.points)),
            all(point.exact for point in self.points),
        )

    def _information(self, optimum: VarianceOptimum) -> float:
        return float(optimum.theta @ self._gains(optimum.columns))

    def _gains(self, columns: FloatArray) -> FloatArray:
        return Objective(self._W, self._base.prior, informative=True).gains(columns)

    def _variance(self, columns: FloatArray, theta: FloatArray) -> float:
        return float(np.sum(variances(moments(columns, theta), self._W, self._base.prior)))


def _share(low: float, high: float, target: float) -> float:
    return 0.0 if high <= low else min(1.0, max(0.0, (target - low) / (high - low)))


def _mixed(
    below: _PricedOptimum, above: _PricedOptimum, share: float
) -> tuple[FloatArray, FloatArray]:
    """Return (columns, θ) of the mechanism that uses `above` with probability `share`."""
    if share in (0.0, 1.0) or below is above:
        chosen = above if share == 1.0 else below
        return chosen.columns, chosen.theta
    # Drawing one mechanism or the other is equivalent to one table with the union of columns.
    columns = np.vstack([below.columns, above.columns])
    theta = np.concatenate([(1 - share) * below.theta, share * above.theta])
    # Equal columns are merged, because the number of reports in a document is limited.
    same, where = np.unique(columns, axis=0, return_inverse=True)
    merged = np.bincount(where.ravel(), weights=theta, minlength=len(same))
    return np.asarray(same, dtype=np.float64), balanced(same, np.asarray(merged, dtype=np.float64))
