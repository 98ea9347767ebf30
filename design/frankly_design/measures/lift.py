# SPDX-License-Identifier: Apache-2.0
"""Lift measures of a mechanism, per report and on average (spec 1.8, natural logarithms).

The lift of a secret in a report is l(s, y) = P(s|y)/P(s) = P(y|s)/P(y)  [Lift eq. 1]. It is
computed exactly, as a ratio of integers. The measures derived from it are floats, for display;
only `frankly_protocol.audit` decides whether a promise holds.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Poll, no_poll

Weights = Sequence[Sequence[int]]
LiftTable = tuple[tuple[Fraction, ...], ...]

MIN_ORDER, MAX_ORDER = 1e-6, 1e6
# Within this distance of 1, log1p and expm1 preserve digits that log and exp would lose.
_NEAR_ONE = 0.5


def lift_table(weights: Weights, prior: Prior, poll: Poll = no_poll) -> LiftTable:
    """Return l(s, y), one row per secret; 1 for secrets without mass and impossible reports.

    weights : integers with equal row sums, row = truth, one row per answer of the prior.
    poll : called for every secret; an exception that it raises ends the computation.
    """
    columns, total = list(zip(*weights, strict=True)), prior.total
    # Skip empty cells: if the answer is the secret itself, only one cell per row has mass.
    cells = [[(x, n) for x, n in enumerate(row) if n] for row in prior.joint]
    sums = []
    for row in cells:
        poll()
        sums.append([sum(n * column[x] for x, n in row) for column in columns])
    expected = [sum(column) for column in zip(*sums, strict=True)]
    return tuple(
        tuple(
            Fraction(t * total, e * mass) if e and mass else Fraction(1)
            for t, e in zip(row, expected, strict=True)
        )
        for row, mass in zip(sums, prior.masses, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Lifts:
    """Lifts as floats.

    table : l(s, y), shape (secrets, reports).
    excess : l(s, y) − 1, subtracted before rounding, so that tiny deviations from 1 keep their
        precision.
    secrets : P(s), all positive.
    reports : P(y).
    """

    table: FloatArray
    excess: FloatArray
    secrets: FloatArray
    reports: FloatArray

    @classmethod
    def of(cls, weights: Weights, prior: Prior) -> "Lifts":
        """Return the lifts of a mechanism, without secrets and reports of probability 0."""
        return cls.from_table(lift_table(weights, prior), weights, prior)

    @classmethod
    def from_table(cls, lifts: LiftTable, weights: Weights, prior: Prior) -> "Lifts":
        """Return the lifts of a mechanism from its exact lift table."""
        counts, total = prior.shares, prior.total * sum(weights[0])
        expected = [
            sum(n * w for n, w in zip(counts, column, strict=True)) / total
            for column in zip(*weights, strict=True)
        ]
        secrets = np.array([mass / prior.total for mass in prior.masses])
        reports = np.array(expected)
        # Subtracting 1 from the exact lift preserves the digits of a lift near 1.
        table, excess = (np.array([[float(v - k) for v in row] for row in lifts]) for k in (0, 1))
        keep = np.ix_(secrets > 0, reports > 0)
        return cls(table[keep], excess[keep], secrets[secrets > 0], reports[reports > 0])

    def inverse(self) -> "Lifts":
        """Return a copy with 1/l instead of l, infinite where l = 0  [Lift Def 6]."""
        infinite, positive = np.full_like(self.table, np.inf), self.table > 0
        with np.errstate(over="ignore"):
            table = np.divide(1.0, self.table, out=infinite.copy(), where=positive)
            excess = np.divide(-self.excess, self.table, out=infinite, where=positive)
        return Lifts(table, excess, self.secrets, self.reports)

    def l1(self) -> FloatArray:
        """Return Σ_s P(s)|l(s,y) − 1| per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ np.abs(self.excess))

    def chi2(self) -> FloatArray:
        """Return Σ_s P(s)(l(s,y) − 1)² per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ self.excess**2)

    def alpha(self, order: float) -> FloatArray:
        """Return (Σ_s P(s) l(s,y)^α)^(1/α) per report, α in (0, ∞]  [Lift Def 5].

        For α = ∞ this is the largest lift; for α → 0 it tends to the geometric mean of the lifts.
        """
        return np.asarray(np.exp(_log_power_mean(self._logs(), self.secrets, order)))

    def total_variation(self) -> float:
        """Return T(S;Y) = ½ E[l1], in [0, 1)  [Lift Def 5]."""
        return float(self.reports @ self.l1()) / 2

    def chi2_divergence(self) -> float:
        """Return χ²(S;Y) = E[chi2]  [Lift Def 5]."""
        return float(self.reports @ self.chi2())

    def information(self) -> float:
        """Return I(S;Y) = E[log l], in nats."""
        logs = np.where(self.table > 0, self._logs(), 0)
        return max(0.0, float(self.secrets @ (self.table * logs) @ self.reports))

    def sibson(self, order: float) -> float:
        """Return Sibson's information α/(α−1)·log E[α-lift] in nats, α in (0, ∞]  [Lift Def 5].

        This is I(S;Y) for α = 1 and maximal leakage for α = ∞.
        """
        if order == 1:
            return self.information()
        logs = self._logs()
        if abs(order - 1) < _NEAR_ONE:
            # Σ P(s) l = 1, so the α-lift tends to 1 as α tends to 1. Its difference from 1 is
            # summed directly: subtracting 1 afterwards would cancel all digits, and the factor
            # 1/(α−1) would magnify the error.
            power = np.expm1((order - 1) * np.where(self.table > 0, logs, 0))
            means = np.log1p(self.secrets @ (self.table * power)) / order
        else:
            means = _log_power_mean(logs, self.secrets, order)
        value = _log_mean(means, self.reports)
        # Rounding can produce a tiny negative number, but information is never negative.
        return max(0.0, value if math.isinf(order) else order / (order - 1) * value)

    def arimoto(self, order: float) -> float:
        """Return Arimoto's information in nats  [Lift App. B].

        This is Sibson's information with secrets weighted by P(s)^α / Σ P^α. It equals the amount
        by which Y reduces the Arimoto-Rényi entropy of S: I(S;Y) for α = 1, and for α = ∞ the
        logarithm of the factor by which Y raises the probability of guessing S.
        """
        if math.isinf(order):
            best = np.max(self.table * self.secrets[:, None], axis=0)
            return max(0.0, math.log(float(self.reports @ best) / float(np.max(self.secrets))))
        if order == 1:
            return self.information()
        # The largest weight is scaled to 1, so that not every P(s)^α underflows.
        return self._weighted((self.secrets / self.secrets.max()) ** order).sibson(order)

    def _weighted(self, weights: FloatArray) -> "Lifts":
        """Return the lifts of the same channel P(y|s) under secrets proportional to `weights`."""
        secrets, positive = weights / weights.sum(), weights > 0
        mean_excess = secrets @ self.excess
        sent = mean_excess > -1
        keep, mean = np.ix_(positive, sent), (1 + mean_excess)[sent]
        excess = (self.excess - mean_excess)[keep] / mean
        return Lifts(
            self.table[keep] / mean,
            excess,
            secrets[positive],
            (self.reports * (1 + mean_excess))[sent],
        )

    def _logs(self) -> FloatArray:
        """Return log l, −∞ where l = 0, without cancellation near l = 1."""
        near, infinite = np.abs(self.excess) < _NEAR_ONE, np.full_like(self.table, -np.inf)
        logs = np.log(self.table, out=infinite, where=self.table > 0)
        return np.where(near, np.log1p(np.where(near, self.excess, 0)), logs)


def _log_power_mean(logs: FloatArray, secrets: FloatArray, order: float) -> FloatArray:
    """Return (1/α) log Σ_s secrets_s l^α per column, from log l."""
    top = logs.max(axis=0)
    if math.isinf(order) or math.isinf(top.max()):
        # The inverse of a lift of 0 is infinite, and so is the mean of its report; inf − inf
        # below would be NaN.
        finite = np.isfinite(top)
        means = top.copy()
        if not math.isinf(order):
            means[finite] = _log_power_mean(logs[:, finite], secrets, order) if finite.any() else 0
        return np.asarray(means)
    if order < _NEAR_ONE:
        return np.asarray(np.log1p(secrets @ np.expm1(order * logs)) / order)
    # Scaled by the largest lift, so that no power overflows.
    return np.asarray(top + np.log(secrets @ np.exp(order * (logs - top))) / order)


def _log_mean(logs: FloatArray, reports: FloatArray) -> float:
    """Return log Σ_y reports_y e^logs_y, without cancellation near 0, overflow or underflow."""
    if np.abs(logs).max() < _NEAR_ONE:
        return math.log1p(float(reports @ np.expm1(logs)))
    top = float(logs.max())
    return top + math.log(float(reports @ np.exp(logs - top)))


def measure_lift(
    weights: Weights, prior: Prior, orders: Iterable[float] = (2,), poll: Poll = no_poll
) -> dict[str, Any]:
    """Return the measures of lift by their names in spec 1.8; math.inf where infinite.

    `lift` has a row per secret and a column per report. `max_lift` and `min_lift` contain one
    number per report. The averaged lifts, such as `l1_lift` and `l1_lift_inverse`, are maxima over
    the reports. `alpha_lift`, `alpha_lift_inverse`, `sibson` and `arimoto` map each order, as text,
    to its value.

    orders : α in [1e-6, 1e6], or math.inf. poll : as for `lift_table`.

    Raises InvalidInput(eps_out_of_range) for another order.
    """
    orders_by_name = {order_name(order): float(order) for order in map(require_order, orders)}
    exact = lift_table(weights, prior, poll)
    table = np.array([[float(v) for v in row] for row in exact])
    lifts = Lifts.from_table(exact, weights, prior)
    inverse = lifts.inverse()
    # Lifts of secrets without mass are placeholders (1) and must not count as extremes.
    occurring = table[np.array(prior.masses) > 0]
    return {
        "lift": table.tolist(),
        "max_lift": occurring.max(axis=0).tolist(),
        "min_lift": occurring.min(axis=0).tolist(),
        "l1_lift": float(lifts.l1().max()),
        "l1_lift_inverse": float(inverse.l1().max()),
        "chi2_lift": float(lifts.chi2().max()),
        "chi2_lift_inverse": float(inverse.chi2().max()),
        "alpha_lift": {
            name: float(lifts.alpha(order).max()) for name, order in orders_by_name.items()
        },
        "alpha_lift_inverse": {
            name: float(inverse.alpha(order).max()) for name, order in orders_by_name.items()
        },
        "total_variation": lifts.total_variation(),
        "chi2": lifts.chi2_divergence(),
        "sibson": {name: lifts.sibson(order) for name, order in orders_by_name.items()},
        "arimoto": {name: lifts.arimoto(order) for name, order in orders_by_name.items()},
    }


def require_order(order: Any, field: str = "orders") -> float:
    """Return the order if it is valid. Raises InvalidInput(eps_out_of_range) otherwise."""
    if type(order) not in (int, float) or not (
        MIN_ORDER <= order <= MAX_ORDER or order == math.inf
    ):
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE,
            f"an order is a number from {MIN_ORDER:g} to {MAX_ORDER:g}, or infinite",
            field,
        )
    return float(order)


def order_name(order: float) -> str:
    """Return the order as text, for use as a key: "2", "0.5", "inf"."""
    # Six significant digits are easier to read, unless they denote a different order.
    short = f"{order:g}"
    return short if float(short) == order else repr(order)
