# SPDX-License-Identifier: Apache-2.0
"""Feasible mechanisms found by a random local search that shares nothing with the engine, to hold its bounds against.

The rows of a claim are written down again from the definitions, columns are vertices found by scipy, a programme puts
them together, and what rounding broke is mended by mixing in a constant mechanism. The values are this module's own.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np
from frankly_protocol.audit import Claim
from scipy.optimize import linprog

from _design import families
from _design.enumeration import FloatArray

_FIRST, _ROUNDS, _STARTS, _STEPS, _DESCENTS = 24, 4, 5, 4, 12
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_MOST_REPAIR = 1e-4
_LEAST = 1e-12


class NoRivalError(Exception):
    """Floats went wrong: no mechanism was found that keeps its claims."""


def rows(claims: Sequence[Claim], answers: int) -> FloatArray:
    """Return r, shape (m, answers), with r·q ≥ 0 for every report's column q, straight from the definitions."""
    found = np.vstack([row for claim in claims for row in _RULES[claim.notion](claim, answers)])
    size = np.max(np.abs(found), axis=1, keepdims=True)
    return np.asarray(found / np.where(size > 0, size, 1.0))


def _ldp(claim: Claim, answers: int) -> Iterator[FloatArray]:
    unit = np.eye(answers)
    yield np.array([_ratio(claim.level) * unit[x] - unit[z] for x, z in permutations(range(answers), 2)])


def _secret_ldp(claim: Claim, _: int) -> Iterator[FloatArray]:
    own = _conditional(_joint(claim))[0]
    yield np.array([_ratio(claim.level) * own[s] - own[t] for s, t in permutations(range(len(own)), 2)])


def _lip(claim: Claim, _: int) -> Iterator[FloatArray]:
    yield from _near(_joint(claim), _ratio(claim.level), _ratio(claim.level))


def _alip(claim: Claim, _: int) -> Iterator[FloatArray]:
    yield from _near(_joint(claim), _ratio(claim.low_level), _ratio(claim.level))


def _srlip(claim: Claim, _: int) -> Iterator[FloatArray]:
    """Every attribute is known, by its value, or unknown (None): x_J for all J."""
    joint, sizes = _joint(claim), claim.attributes or ()
    places = np.array(list(product(*(range(size) for size in sizes))))
    for known in product(*((None, *range(size)) for size in sizes)):
        fits = np.all([(places[:, i] == v) | (v is None) for i, v in enumerate(known)], axis=0)
        present = joint * fits
        present = present[present.sum(axis=1) > 0]
        if len(present) > 1:
            yield from _near(present, _ratio(claim.level), _ratio(claim.level))


def _rldp(claim: Claim, answers: int) -> Iterator[FloatArray]:
    """The vertices of D_s are L_s with all that is left at one value."""
    bounds = np.array([[n / d for n, d in row] for row in claim.lower_bounds or ()])
    size = bounds.shape[1]
    corners = []
    for s, row in enumerate(bounds):
        block = np.zeros((size, answers))
        block[:, s * size : (s + 1) * size] = row + (1 - row.sum()) * np.eye(size)
        corners.append(block)
    E = _ratio(claim.level)
    for s, t in product(range(len(bounds)), repeat=2):
        if s != t or claim.diagonal:
            yield (E * corners[t][None, :] - corners[s][:, None]).reshape(-1, answers)


def _dpv(claim: Claim, _: int) -> Iterator[FloatArray]:
    joint = _joint(claim)
    yield (_ratio(claim.level) * joint.sum(axis=0) - joint[claim.sensitive or 0])[None]


_RULES = {
    "ldp": _ldp,
    "secret-ldp": _secret_ldp,
    "lip": _lip,
    "alip": _alip,
    "srlip": _srlip,
    "rldp": _rldp,
    "dpv": _dpv,
}


def _joint(claim: Claim) -> FloatArray:
    return np.array(claim.joint, dtype=np.float64)


def _ratio(level: tuple[int, int] | None) -> float:
    return float("inf") if level is None else level[0] / level[1]


def _conditional(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    return joint / joint.sum(axis=1, keepdims=True), joint.sum(axis=0) / joint.sum()


def _near(joint: FloatArray, low: float, high: float) -> Iterator[FloatArray]:
    own, average = _conditional(joint)
    if np.isfinite(high):
        yield high * average - own
    if np.isfinite(low):
        yield low * own - average


def hamming(Q: FloatArray, p: FloatArray) -> float:
    """How often the best guess from the report is wrong."""
    return float(1 - np.max(p[:, None] * Q, axis=0).sum())


VALUES = {"information": families.information, "variance": families.variance, "hamming": hamming}


class Search:
    """Columns v of the cone with p·v = 1, shape (n, a), and mechanisms made of them."""

    def __init__(self, claims: Sequence[Claim], shares: FloatArray, seed: Sequence[int]) -> None:
        self._p = shares
        self._rows = rows(claims, len(shares))
        self._generator = np.random.default_rng(list(seed))
        self._scale = np.where(shares > 0, np.maximum(shares, 1e-6), 1 / len(shares))
        self._columns = np.ones((1, len(shares)))

    def best(self, objective: str) -> float:
        """Return the best value of a mechanism that certainly keeps its claims. Raises NoRivalError."""
        for direction in self._directions():
            self._add(direction)
        found = [self._value(theta, objective) for theta in self._random_mixtures(3)]
        for _ in range(_ROUNDS):
            theta = self._mixed(objective)
            found.append(self._value(theta, objective))
            if not self._improve(theta, objective):
                break
        known = [value for value in found if value is not None]
        if not known:
            raise NoRivalError(objective)
        return max(known) if objective == "information" else min(known)

    def _directions(self) -> FloatArray:
        a = len(self._p)
        return np.vstack([np.eye(a), self._generator.standard_normal((_FIRST, a)) ** 3])

    def _add(self, direction: FloatArray) -> bool:
        """Add the vertex farthest in a direction (in t = σ∘v) if it is new."""
        found = linprog(
            -direction,
            A_ub=-self._rows / self._scale,
            b_ub=np.zeros(len(self._rows)),
            A_eq=(self._p / self._scale)[None],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options=_OPTIONS,
        )
        if found.status != 0:
            return False
        v = found.x / self._scale
        if np.min(np.max(np.abs(self._columns - v) * self._scale, axis=1)) < 1e-7:
            return False
        self._columns = np.vstack([self._columns, v])
        return True

    def _programme(self, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Maximise gains·θ over Σ θ v = 1, θ ≥ 0; return θ and the prices of the answers."""
        v = self._columns * self._scale
        size = max(float(np.max(np.abs(gains))), 1e-300)
        found = linprog(-gains / size, A_eq=v.T, b_eq=self._scale, bounds=(0, None), method="highs", options=_OPTIONS)
        if found.status != 0:
            return np.eye(1, len(v))[0], np.zeros(len(self._p))  # the constant column alone is always a mechanism
        prices = -found.eqlin.marginals * self._scale * size
        return np.asarray(found.x.clip(0)), np.asarray(prices)

    def _random_mixtures(self, count: int) -> list[FloatArray]:
        return [self._programme(self._generator.random(len(self._columns)))[0] for _ in range(count)]

    def _mixed(self, objective: str) -> FloatArray:
        """Return how often each column is sent in the best mechanism made of the columns."""
        if objective == "variance":
            return self._least_variance()
        return self._programme(self._gains(self._columns, objective))[0]

    def _gains(self, v: FloatArray, objective: str) -> FloatArray:
        if objective == "hamming":
            return np.asarray(np.max(v * self._p, axis=1))
        return np.asarray((self._p * v * np.log(np.maximum(v, 1e-300))).sum(axis=1))

    def _least_variance(self) -> FloatArray:
        """Descend from a random mixture towards the best programme of the slope, as far as pays."""
        theta = np.asarray(np.mean(self._random_mixtures(8), axis=0))
        for _ in range(_DESCENTS):
            slope = self._slope(theta)
            if slope is None:
                return theta
            other = self._programme(slope)[0]
            steps = [0.0, *np.geomspace(1e-3, 0.9, 12)]
            theta = np.asarray(min(((1 - s) * theta + s * other for s in steps), key=self._trace))
        return theta

    def _trace(self, theta: FloatArray) -> float:
        A = (self._columns.T * theta) @ self._columns
        with np.errstate(all="ignore"):
            return float(np.trace(np.linalg.pinv(A))) if np.linalg.cond(A) < 1e13 else float("inf")

    def _slope(self, theta: FloatArray) -> FloatArray | None:
        """Return |A⁻¹v|² of every column, by how much more of it lowers tr A⁻¹; None where A has no inverse."""
        A = (self._columns.T * theta) @ self._columns
        if np.linalg.cond(A) > 1e13:
            return None
        return np.asarray((np.linalg.solve(A, self._columns.T) ** 2).sum(axis=0))

    def _improve(self, theta: FloatArray, objective: str) -> bool:
        """Look for columns worth more than they cost, by climbing along slopes from random mixtures of columns."""
        if objective == "variance":
            gains = self._slope(theta)
            A = (self._columns.T * theta) @ self._columns
            if gains is None:
                return False
            M = np.linalg.inv(A) @ np.linalg.inv(A)
        else:
            gains, M = self._gains(self._columns, objective), None
        prices = self._programme(gains)[1]
        added = 0
        for _ in range(_STARTS):
            v = self._generator.dirichlet(np.full(len(self._columns), 0.3)) @ self._columns
            for _ in range(_STEPS):
                if not self._add((self._gradient(v, objective, M) - prices) / self._scale):
                    break
                added += 1
                v = self._columns[-1]
        return added > 0

    def _gradient(self, v: FloatArray, objective: str, M: FloatArray | None) -> FloatArray:
        if M is not None:
            return np.asarray(2 * M @ v)
        if objective == "hamming":
            return np.asarray(np.eye(len(v))[np.argmax(v * self._p)] * self._p)
        return np.asarray(self._p * (np.log(np.maximum(v, 1e-9)) + 1))

    def _value(self, theta: FloatArray, objective: str) -> float | None:
        """Return the value once the mechanism is mended; None where that takes too much."""
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
