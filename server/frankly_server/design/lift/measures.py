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


def lift_table(weights: Weights, prior: Prior) -> LiftTable:
    """Return l(s, y), one row per secret; 1 for a report that never occurs and for a secret without mass.

    weights : whole numbers with equal row sums, row = truth, as many rows as the prior has answers.
    """
    columns, total = list(zip(*weights, strict=True)), prior.total
    sums = [[sum(n * w for n, w in zip(row, column, strict=True)) for column in columns] for row in prior.joint]
    expected = [sum(column) for column in zip(*sums, strict=True)]
    return tuple(
        tuple(Fraction(t * total, e * mass) if e and mass else Fraction(1) for t, e in zip(row, expected, strict=True))
        for row, mass in zip(sums, prior.masses, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Lifts:
    """Lifts as floats. table : l(s, y), shape (secrets, reports). secrets : P(s), all positive. reports : P(y)."""

    table: FloatArray
    secrets: FloatArray
    reports: FloatArray

    @classmethod
    def of(cls, weights: Weights, prior: Prior) -> "Lifts":
        """Read them off a mechanism; secrets without mass and reports that never occur are left out."""
        counts, total = prior.shares, prior.total * sum(weights[0])
        expected = [
            sum(n * w for n, w in zip(counts, column, strict=True)) / total for column in zip(*weights, strict=True)
        ]
        table = np.array([[float(v) for v in row] for row in lift_table(weights, prior)])
        secrets, reports = np.array(prior.masses) / prior.total, np.array(expected)
        return cls(table[secrets > 0][:, reports > 0], secrets[secrets > 0], reports[reports > 0])

    def inverse(self) -> "Lifts":
        """Return the same with 1/l in the place of l, infinite where l = 0  [Lift Def 6]."""
        inverted = np.divide(1.0, self.table, out=np.full_like(self.table, np.inf), where=self.table > 0)
        return Lifts(inverted, self.secrets, self.reports)

    def l1(self) -> FloatArray:
        """Σ_s P(s)|l(s,y) − 1| per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ np.abs(self.table - 1))

    def chi2(self) -> FloatArray:
        """Σ_s P(s)(l(s,y) − 1)² per report  [Lift Def 5]."""
        return np.asarray(self.secrets @ (self.table - 1) ** 2)

    def alpha(self, order: float) -> FloatArray:
        """(Σ_s P(s) l(s,y)^α)^(1/α) per report, α in (0, ∞]; the largest lift for α = ∞  [Lift Def 5]."""
        return _power_mean(self.table, self.secrets, order)

    def total_variation(self) -> float:
        """T(S;Y) = ½ E[l1], in [0, 1)  [Lift Def 5]."""
        return float(self.reports @ self.l1()) / 2

    def chi2_divergence(self) -> float:
        """χ²(S;Y) = E[chi2]  [Lift Def 5]."""
        return float(self.reports @ self.chi2())

    def information(self) -> float:
        """I(S;Y) = E[log l], in nats."""
        logs = np.log(self.table, out=np.zeros_like(self.table), where=self.table > 0)
        return max(0.0, float(self.secrets @ (self.table * logs) @ self.reports))

    def sibson(self, order: float) -> float:
        """α/(α−1)·log E[α-lift] in nats, α in (0, ∞]; I(S;Y) for α = 1, maximal leakage for α = ∞  [Lift Def 5]."""
        return self._leakage(self.secrets, order)

    def arimoto(self, order: float) -> float:
        """As `sibson` with the secrets weighted by P(s)^α / Σ P^α  [Lift App. B]; for α = ∞ what a guesser gains."""
        if math.isinf(order):
            best = np.max(self.table * self.secrets[:, None], axis=0)
            return max(0.0, math.log(float(self.reports @ best) / float(np.max(self.secrets))))
        tilted = (self.secrets / self.secrets.max()) ** order
        return self._leakage(tilted / tilted.sum(), order)

    def _leakage(self, secrets: FloatArray, order: float) -> float:
        if order == 1:
            return self.information()
        expected = math.log(float(self.reports @ _power_mean(self.table, secrets, order)))
        return max(0.0, expected if math.isinf(order) else order / (order - 1) * expected)


def _power_mean(table: FloatArray, secrets: FloatArray, order: float) -> FloatArray:
    """(Σ_s secrets_s · l^α)^(1/α) per column, scaled by the largest l so that no power overflows."""
    top = table.max(axis=0)
    if math.isinf(order):
        return np.asarray(top)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isinf(top), 1.0, table / top)
    return np.asarray(top * (secrets @ relative**order) ** (1 / order))


def measure_lift(weights: Weights, prior: Prior, orders: Iterable[float] = (2,)) -> dict[str, Any]:
    """Return the measures of lift by their names in DESIGN §7; math.inf where infinite.

    `lift` is s×y; `max_lift`, `min_lift` hold one number per report; the `…_lift` and `…_lift_inverse` are the largest
    over the reports; `alpha_lift`, `alpha_lift_inverse`, `sibson` and `arimoto` map each order, as text, to its value.

    orders : α in (0, ∞]. Raises InvalidInput(eps_out_of_range) for another order.
    """
    wanted = list(orders)
    for order in wanted:
        if type(order) not in (int, float) or not order > 0:
            raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "an order is a number above 0, or infinite", "orders")
    table = np.array([[float(v) for v in row] for row in lift_table(weights, prior)])
    lifts = Lifts.of(weights, prior)
    inverse = lifts.inverse()
    massive = table[np.array(prior.masses) > 0]
    named = {f"{order:g}": float(order) for order in wanted}
    return {
        "lift": table.tolist(),
        "max_lift": massive.max(axis=0).tolist(),
        "min_lift": massive.min(axis=0).tolist(),
        "l1_lift": float(lifts.l1().max()),
        "l1_lift_inverse": float(inverse.l1().max()),
        "chi2_lift": float(lifts.chi2().max()),
        "chi2_lift_inverse": float(inverse.chi2().max()),
        "alpha_lift": {name: float(lifts.alpha(order).max()) for name, order in named.items()},
        "alpha_lift_inverse": {name: float(inverse.alpha(order).max()) for name, order in named.items()},
        "total_variation": lifts.total_variation(),
        "chi2": lifts.chi2_divergence(),
        "sibson": {name: lifts.sibson(order) for name, order in named.items()},
        "arimoto": {name: lifts.arimoto(order) for name, order in named.items()},
    }
