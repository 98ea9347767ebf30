# SPDX-License-Identifier: Apache-2.0
"""How much a mechanism's reports tell of the secret, report by report and on average (DESIGN §7, natural logarithms).

The lift of a secret in a report is l(s, y) = P(s|y)/P(s) = P(y|s)/P(y)  [Lift eq. 1]. It is exact here, a ratio of
whole numbers; what is made of it is in floats, for people. Whether a promise is kept, `frankly_protocol.audit` decides.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.design.prior import Prior

FloatArray = NDArray[np.float64]
Weights = Sequence[Sequence[int]]
LiftTable = tuple[tuple[Fraction, ...], ...]

MIN_ORDER, MAX_ORDER = 1e-6, 1e6
_NEAR = 0.5


def lift_table(weights: Weights, prior: Prior) -> LiftTable:
    """Return l(s, y), one row per secret; 1 for a report that never occurs and for a secret without mass.

    weights : whole numbers with equal row sums, row = truth, as many rows as the prior has answers.
    """
    columns, total = list(zip(*weights, strict=True)), prior.total
    # Cells without mass are passed over: where the answer is the secret they are all but one.
    cells = [[(x, n) for x, n in enumerate(row) if n] for row in prior.joint]
    sums = [[sum(n * column[x] for x, n in row) for column in columns] for row in cells]
    expected = [sum(column) for column in zip(*sums, strict=True)]
    return tuple(
        tuple(Fraction(t * total, e * mass) if e and mass else Fraction(1) for t, e in zip(row, expected, strict=True))
        for row, mass in zip(sums, prior.masses, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Lifts:
    """Lifts as floats, each to the last bit.

    table : l(s, y), shape (secrets, reports). excess : l(s, y) − 1, taken before rounding, so that hardly anything told
    is still told apart from nothing. secrets : P(s), all positive. reports : P(y).
    """

    table: FloatArray
    excess: FloatArray
    secrets: FloatArray
    reports: FloatArray

    @classmethod
    def of(cls, weights: Weights, prior: Prior) -> "Lifts":
        """Read them off a mechanism; secrets without mass and reports that never occur are left out."""
        return cls.from_table(lift_table(weights, prior), weights, prior)

    @classmethod
    def from_table(cls, lifts: LiftTable, weights: Weights, prior: Prior) -> "Lifts":
        """Make them of the exact lifts of the same mechanism."""
        counts, total = prior.shares, prior.total * sum(weights[0])
        expected = [
            sum(n * w for n, w in zip(counts, column, strict=True)) / total for column in zip(*weights, strict=True)
        ]
        secrets, reports = np.array([mass / prior.total for mass in prior.masses]), np.array(expected)
        table, excess = (np.array([[float(v - k) for v in row] for row in lifts]) for k in (0, 1))
        keep = np.ix_(secrets > 0, reports > 0)
        return cls(table[keep], excess[keep], secrets[secrets > 0], reports[reports > 0])

    def inverse(self) -> "Lifts":
        """Return the same with 1/l in the place of l, infinite where l = 0  [Lift Def 6]."""
        infinite, some = np.full_like(self.table, np.inf), self.table > 0
        with np.errstate(over="ignore"):
            table = np.divide(1.0, self.table, out=infinite.copy(), where=some)
            excess = np.divide(-self.excess, self.table, out=infinite, where=some)
        return Lifts(table, excess, self.secrets, self.reports)

    def l1(self) -> FloatArray:
        """Σ_s P(s)|l(s,y) − 1| per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ np.abs(self.excess))

    def chi2(self) -> FloatArray:
        """Σ_s P(s)(l(s,y) − 1)² per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ self.excess**2)

    def alpha(self, order: float) -> FloatArray:
        """(Σ_s P(s) l(s,y)^α)^(1/α) per report, α in (0, ∞]; the largest lift for α = ∞  [Lift Def 5].

        For α → 0 it tends to the geometric mean of the lifts.
        """
        return np.asarray(np.exp(_log_power_mean(self._logs(), self.secrets, order)))

    def total_variation(self) -> float:
        """T(S;Y) = ½ E[l1], in [0, 1)  [Lift Def 5]."""
        return float(self.reports @ self.l1()) / 2

    def chi2_divergence(self) -> float:
        """χ²(S;Y) = E[chi2]  [Lift Def 5]."""
        return float(self.reports @ self.chi2())

    def information(self) -> float:
        """I(S;Y) = E[log l], in nats."""
        logs = np.where(self.table > 0, self._logs(), 0)
        return max(0.0, float(self.secrets @ (self.table * logs) @ self.reports))

    def sibson(self, order: float) -> float:
        """α/(α−1)·log E[α-lift] in nats, α in (0, ∞]; I(S;Y) for α = 1, maximal leakage for α = ∞  [Lift Def 5]."""
        if order == 1:
            return self.information()
        logs = self._logs()
        if abs(order - 1) < _NEAR:
            # The α-lift lies as near to 1 as α does: as Σ P(s) l = 1, what it lacks of 1 is summed by itself.
            power = np.expm1((order - 1) * np.where(self.table > 0, logs, 0))
            means = np.log1p(self.secrets @ (self.table * power)) / order
        else:
            means = _log_power_mean(logs, self.secrets, order)
        value = _log_mean(means, self.reports)
        return max(0.0, value if math.isinf(order) else order / (order - 1) * value)

    def arimoto(self, order: float) -> float:
        """Sibson's information with the secrets weighted by P(s)^α / Σ P^α, in nats  [Lift App. B].

        What the Arimoto-Rényi entropy of S loses given Y; I(S;Y) for α = 1, what a guesser gains for α = ∞.
        """
        if math.isinf(order):
            best = np.max(self.table * self.secrets[:, None], axis=0)
            return max(0.0, math.log(float(self.reports @ best) / float(np.max(self.secrets))))
        if order == 1:
            return self.information()
        return self._weighted((self.secrets / self.secrets.max()) ** order).sibson(order)

    def _weighted(self, weights: FloatArray) -> "Lifts":
        """Return the lifts of the same channel P(y|s) where the secrets occur in proportion to `weights`."""
        secrets, some = weights / weights.sum(), weights > 0
        told = secrets @ self.excess
        occur = told > -1
        keep, mean = np.ix_(some, occur), (1 + told)[occur]
        excess = (self.excess - told)[keep] / mean
        return Lifts(self.table[keep] / mean, excess, secrets[some], (self.reports * (1 + told))[occur])

    def _logs(self) -> FloatArray:
        """Return log l, −∞ where l = 0, without loss where l is near 1."""
        near, infinite = np.abs(self.excess) < _NEAR, np.full_like(self.table, -np.inf)
        logs = np.log(self.table, out=infinite, where=self.table > 0)
        return np.where(near, np.log1p(np.where(near, self.excess, 0)), logs)


def _log_power_mean(logs: FloatArray, secrets: FloatArray, order: float) -> FloatArray:
    """Return (1/α) log Σ_s secrets_s l^α per column, from log l."""
    top = logs.max(axis=0)
    if math.isinf(order) or math.isinf(top.max()):
        # An infinite lift, in the inverse of one that is 0, makes every mean infinite.
        finite = np.isfinite(top)
        means = top.copy()
        if not math.isinf(order):
            means[finite] = _log_power_mean(logs[:, finite], secrets, order) if finite.any() else 0
        return np.asarray(means)
    if order < _NEAR:
        return np.asarray(np.log1p(secrets @ np.expm1(order * logs)) / order)
    # Scaled by the largest, so that no power overflows.
    return np.asarray(top + np.log(secrets @ np.exp(order * (logs - top))) / order)


def _log_mean(logs: FloatArray, reports: FloatArray) -> float:
    """Return log Σ_y reports_y e^logs_y, without loss near 0 and without underflow far below it."""
    if np.abs(logs).max() < _NEAR:
        return math.log1p(float(reports @ np.expm1(logs)))
    top = float(logs.max())
    return top + math.log(float(reports @ np.exp(logs - top)))


def measure_lift(weights: Weights, prior: Prior, orders: Iterable[float] = (2,)) -> dict[str, Any]:
    """Return the measures of lift by their names in DESIGN §7; math.inf where infinite.

    `lift` is s×y; `max_lift`, `min_lift` hold one number per report; the `…_lift` and `…_lift_inverse` are the largest
    over the reports; `alpha_lift`, `alpha_lift_inverse`, `sibson` and `arimoto` map each order, as text, to its value.

    orders : α in [1e-6, 1e6], or math.inf. Raises InvalidInput(eps_out_of_range) for another order.
    """
    wanted = {order_name(order): float(order) for order in map(require_order, orders)}
    exact = lift_table(weights, prior)
    table = np.array([[float(v) for v in row] for row in exact])
    lifts = Lifts.from_table(exact, weights, prior)
    inverse = lifts.inverse()
    massive = table[np.array(prior.masses) > 0]
    return {
        "lift": table.tolist(),
        "max_lift": massive.max(axis=0).tolist(),
        "min_lift": massive.min(axis=0).tolist(),
        "l1_lift": float(lifts.l1().max()),
        "l1_lift_inverse": float(inverse.l1().max()),
        "chi2_lift": float(lifts.chi2().max()),
        "chi2_lift_inverse": float(inverse.chi2().max()),
        "alpha_lift": {name: float(lifts.alpha(order).max()) for name, order in wanted.items()},
        "alpha_lift_inverse": {name: float(inverse.alpha(order).max()) for name, order in wanted.items()},
        "total_variation": lifts.total_variation(),
        "chi2": lifts.chi2_divergence(),
        "sibson": {name: lifts.sibson(order) for name, order in wanted.items()},
        "arimoto": {name: lifts.arimoto(order) for name, order in wanted.items()},
    }


def require_order(order: Any, field: str = "orders") -> float:
    """Return the order if it is one. Raises InvalidInput(eps_out_of_range)."""
    if type(order) not in (int, float) or not (MIN_ORDER <= order <= MAX_ORDER or order == math.inf):
        words = f"an order is a number from {MIN_ORDER:g} to {MAX_ORDER:g}, or infinite"
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, words, field)
    return float(order)


def order_name(order: float) -> str:
    """Return an order as the key of its figures: "2", "0.5", "inf"."""
    short = f"{order:g}"
    return short if float(short) == order else repr(order)
