# SPDX-License-Identifier: Apache-2.0
"""Feasible mechanisms by a random local search, independent of the engine, to check its bounds.

scipy finds vertices as columns, a linear programme combines them, and mixing in a constant
mechanism repairs rounding errors. The values are computed without the engine, too.
"""

from collections.abc import Sequence

import numpy as np
from frankly_protocol.audit import Claim
from scipy.optimize import linprog

from _design.definitions import FloatArray, rows

_FIRST, _MORE, _ROUNDS, _STARTS, _STEPS, _DESCENTS, _WEIGHINGS = 24, 8, 6, 8, 3, 25, 25
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_MOST_REPAIR, _MOST_CONDITION = 1e-4, 1e12
_LEAST, _SAME, _PAYS = 1e-12, 1e-7, 1e-6
_LEAST_SHARE, _LEAST_EIGENVALUE = 1e-12, 1e-9


class NoRivalError(Exception):
    """Rounding errors: no mechanism that keeps its claims was found."""


def variance(Q: FloatArray, p: FloatArray) -> float:
    """Return the total variance at n = 1 of the best unbiased estimator; inf if not identifiable.

    Q : Q(y|x), shape (answers, reports). p : shares of the answers. The variance is
    Σ_x [A⁻¹ − p pᵀ]_xx with A = Q D⁻¹ Qᵀ, D = diag(Qᵀp). The inverse is that of √p A √p: its
    eigenvalues are the squared canonical correlations of answer and report, between 0 and 1.
    """
    sent, root = p @ Q, np.sqrt(np.maximum(p, _LEAST_SHARE))
    scaled = root[:, None] * Q[:, sent > 0] / np.sqrt(sent[sent > 0])
    correlation = scaled @ scaled.T
    if np.linalg.eigvalsh(correlation)[0] < _LEAST_EIGENVALUE:
        return float("inf")
    return float(np.sum(root**2 * np.diag(np.linalg.inv(correlation))) - p @ p)


def information(Q: FloatArray, p: FloatArray) -> float:
    """Return I(X; Y) = Σ p_x Q(y|x) ln(Q(y|x)/P(y)) in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(Q > 0, Q * np.log(Q / (p @ Q)), 0.0)
    return float(p @ terms.sum(axis=1))


def hamming(Q: FloatArray, p: FloatArray) -> float:
    """Return the error probability of the best guess from the report."""
    return float(1 - np.max(p[:, None] * Q, axis=0).sum())


VALUES = {"information": information, "variance": variance, "hamming": hamming}


class Search:
    """Columns v of the cone with p·v = 1, shape (n, a), and mechanisms made of them."""

    def __init__(self, claims: Sequence[Claim], shares: FloatArray, seed: Sequence[int]) -> None:
        self._p = shares
        self._rows = rows(claims, len(shares))
        self._generator = np.random.default_rng(list(seed))
        self._scale = np.where(shares > 0, np.maximum(shares, 1e-6), 1 / len(shares))
        self._columns = np.ones((1, len(shares)))
        self._mechanisms: list[FloatArray] = []  # their mixture has the least variance so far

    def best(self, objective: str) -> float:
        """Return the best value of the private mechanisms found. Raises NoRivalError."""
        self._explore(np.eye(len(self._p)))
        self._explore(self._directions(_FIRST))
        values = [self._value(theta, objective) for theta in self._random_mixtures(3)]
        for _ in range(_ROUNDS):
            theta = self._mixed(objective)
            values.append(self._value(theta, objective))
            if not self._improve(theta, objective):
                break
        finite = [value for value in values if value is not None]
        if not finite:
            raise NoRivalError(objective)
        return max(finite) if objective == "information" else min(finite)

    def _directions(self, count: int) -> FloatArray:
        return np.asarray(self._generator.standard_normal((count, len(self._p))) ** 3)

    def _explore(self, directions: FloatArray) -> int:
        """Add the vertices farthest in these directions; return the number of new vertices."""
        vertices = [self._vertex(direction) for direction in directions]
        return sum(self._add(v) for v in vertices if v is not None)

    def _vertex(self, direction: FloatArray) -> FloatArray | None:
        """Return the vertex farthest in a direction, in t = σ∘v."""
        solution = linprog(
            -direction,
            A_ub=-self._rows / self._scale,
            b_ub=np.zeros(len(self._rows)),
            A_eq=(self._p / self._scale)[None],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=_OPTIONS,
        )
        return np.asarray(solution.x.clip(0) / self._scale) if solution.status == 0 else None

    def _add(self, v: FloatArray) -> bool:
        """Add a column and its complement; return False if the column is known."""
        if np.min(np.max(np.abs(self._columns - v) * self._scale, axis=1)) < _SAME:
            return False
        self._columns = np.vstack([self._columns, v, *self._complement(v)])
        return True

    def _complement(self, v: FloatArray) -> list[FloatArray]:
        """Return the other column of the two-report mechanism that sends v most often."""
        products = self._rows @ v
        often = min(
            1 / np.max(v),
            *(self._rows.sum(axis=1)[products > 0] / products[products > 0]),
            1 - _SAME,
        )
        remaining = (1 - often * v).clip(0)
        return [remaining / (self._p @ remaining)] if self._p @ remaining > 0 else []

    def _programme(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Maximise gains·θ over Σ θ v = 1, θ ≥ 0; return θ and the prices of the answers."""
        v = self._columns * self._scale
        size = max(float(np.max(np.abs(gains))), 1e-300)
        solution = linprog(
            -gains / size,
            A_eq=v.T,
            b_eq=self._scale,
            bounds=(0, None),
            method="highs",
            options=_OPTIONS,
        )
        if solution.status != 0:
            return np.eye(1, len(v))[0], np.zeros(
                len(self._p)
            )  # the constant column alone is a valid mechanism
        prices = -solution.eqlin.marginals * self._scale * size
        return np.asarray(solution.x.clip(0)), np.asarray(prices)

    def _random_mixtures(self, count: int) -> list[FloatArray]:
        return [
            self._programme(self._generator.random(len(self._columns)))[0] for _ in range(count)
        ]

    def _mixed(self, objective: str) -> FloatArray:
        """Return the frequency of each column in the best mechanism made of the columns."""
        if objective == "variance":
            return self._least_variance()
        return self._programme(self._gains(self._columns, objective))[0]

    def _gains(self, v: FloatArray, objective: str) -> FloatArray:
        if objective == "hamming":
            return np.asarray(np.max(v * self._p, axis=1))
        return np.asarray((self._p * v * np.log(np.maximum(v, 1e-300))).sum(axis=1))

    def _least_variance(self) -> FloatArray:
        """Minimise by Frank-Wolfe: optimise weights, add the mechanism of best slope, repeat."""
        n = len(self._columns)
        mixtures = [np.pad(theta, (0, n - len(theta))) for theta in self._mechanisms]
        mechanisms = np.array([*mixtures, self._spread()])
        weights = np.full(len(mechanisms), 1 / len(mechanisms))
        for _ in range(_DESCENTS):
            weights = self._weighed(mechanisms, weights)
            theta = weights @ mechanisms
            slope = self._slope(theta)
            if slope is None:
                break
            target = self._programme(slope)[0]
            if slope @ target <= (1 + _PAYS) * (slope @ theta):
                break
            mechanisms, weights = np.vstack([mechanisms, target]), np.append(0.9 * weights, 0.1)
        self._mechanisms = list(mechanisms[weights > _PAYS])
        return np.asarray(weights @ mechanisms)

    def _weighed(self, mechanisms: FloatArray, weights: FloatArray) -> FloatArray:
        """Multiply each weight by √slope (multiplicative algorithm); the trace never increases."""
        for _ in range(_WEIGHINGS):
            slope = self._slope(weights @ mechanisms)
            if slope is None:
                break
            weights = weights * np.sqrt(mechanisms @ slope)
            weights = weights / weights.sum()
        return weights

    def _spread(self) -> FloatArray:
        """Return the mechanism that maximises the frequency of its rarest column."""
        v = self._columns * self._scale
        columns = np.column_stack([v.T, v.sum(axis=0)])
        cost = np.append(np.zeros(len(v)), -1.0)
        solution = linprog(
            cost, A_eq=columns, b_eq=self._scale, bounds=(0, None), method="highs", options=_OPTIONS
        )
        if solution.status != 0:
            return self._random_mixtures(1)[0]
        return np.asarray((solution.x[:-1] + solution.x[-1]).clip(0))

    def _inverse(self, theta: FloatArray) -> FloatArray | None:
        """Return A⁻¹ of A = Σ θ v vᵀ, inverted in √σ∘v for accuracy; None if nearly singular."""
        root = np.sqrt(self._scale)
        t = self._columns * root
        A = (t.T * theta) @ t
        if not np.linalg.cond(A) < _MOST_CONDITION:
            return None
        return np.asarray(np.linalg.inv(A) * np.outer(root, root))

    def _slope(self, theta: FloatArray) -> FloatArray | None:
        """Return |A⁻¹v|², the slope of −tr A⁻¹ in each column's weight; None if nearly singular."""
        inverse = self._inverse(theta)
        return None if inverse is None else np.asarray(((self._columns @ inverse) ** 2).sum(axis=1))

    def _improve(self, theta: FloatArray, objective: str) -> bool:
        """Add random vertices, and columns from ascents of the reduced cost at random mixtures."""
        if objective == "variance":
            gains, inverse = self._slope(theta), self._inverse(theta)
            if gains is None or inverse is None:
                return False
            M = inverse @ inverse
        else:
            gains, M = self._gains(self._columns, objective), None
        prices = self._programme(gains)[1]
        added = self._explore(self._directions(_MORE))
        for start in (
            self._generator.dirichlet(np.full(len(self._columns), 0.3), size=_STARTS)
            @ self._columns
        ):
            v = start
            for _ in range(_STEPS):
                vertex = self._vertex((self._gradient(v, objective, M) - prices) / self._scale)
                if vertex is None:
                    break
                v = vertex
                added += self._add(v)
        return added > 0

    def _gradient(self, v: FloatArray, objective: str, M: FloatArray | None) -> FloatArray:
        if M is not None:
            return np.asarray(2 * M @ v)
        if objective == "hamming":
            return np.asarray(np.eye(len(v))[np.argmax(v * self._p)] * self._p)
        return np.asarray(self._p * (np.log(np.maximum(v, 1e-9)) + 1))

    def _value(self, theta: FloatArray, objective: str) -> float | None:
        """Return the value of the repaired mechanism; None if the repair needs too much mixing."""
        used = theta > _LEAST
        Q = (self._columns[used] * theta[used, None]).T
        Q = Q / Q.sum(axis=1, keepdims=True)
        sent = self._p @ Q
        lacking = -np.minimum(self._rows @ Q, 0.0)  # (rows, reports)
        slack = self._rows.sum(axis=1)[:, None] * sent
        eta = float(np.max(lacking / (lacking + slack + 1e-300)) * (1 + 1e-6)) + 1e-15
        if eta > _MOST_REPAIR or np.min(sent) <= 0:
            return None
        return VALUES[objective]((1 - eta) * Q + eta * sent, self._p)
