# SPDX-License-Identifier: Apache-2.0
"""Small cones with all their rays, larger cones as rows, and independently computed figures."""

import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.objective import Prices
from frankly_protocol.audit import Claim, level_for
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import xlogy

from tests.frankly_design.maths import random_epsilon, random_prior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AnswerLdp:
    """The base of LDP of the answer.

    Each v is a multiple of a column with entries 1 and E in any pattern  [docs/maths/cones.md].
    """

    ratio: float
    prior: Floats
    rays: None = None

    @property
    def answers(self) -> int:
        """See `ColumnBase`."""
        return len(self.prior)

    @property
    def rows(self) -> Floats:
        """E·v_x ≥ v_x' for all x ≠ x', shape (a(a−1), a)."""
        a = self.answers
        x, x_prime = np.nonzero(~np.eye(a, dtype=bool))
        rows = np.zeros((len(x), a))
        rows[np.arange(len(x)), x] = self.ratio
        rows[np.arange(len(x)), x_prime] = -1.0
        return rows

    @property
    def lifted(self) -> Floats:
        """See `ColumnBase`: 2u ≤ (E+1)·v_x ≤ 2E·u for all x."""
        E, a = self.ratio, self.answers
        sides = [(np.eye(a), -2 / (1 + E)), (-np.eye(a), 2 * E / (1 + E))]
        return np.vstack([np.hstack([unit, np.full((a, 1), u)]) for unit, u in sides])

    def maximise(self, c: Floats) -> Floats:
        """See `ColumnBase`. Entries are E where c_x > λ p_x, λ the maximum, by Newton's method."""
        u = np.where(c > c @ np.ones(len(c)) * self.prior, self.ratio, 1.0)
        # Newton's method increases monotonically and ends after a few steps.
        for _ in range(100):
            level = float(c @ u) / float(self.prior @ u)
            better = np.where(c > level * self.prior, self.ratio, 1.0)
            if float(c @ better) / float(self.prior @ better) <= level:
                break
            u = better
        return np.asarray(u / (self.prior @ u), dtype=np.float64)

    def with_coordinates(self, _: Floats, /) -> None:
        """See `ColumnBase`."""

    def highest(self, c: Floats) -> float:
        """See `ColumnBase`: the maximum, plus a bound of its rounding error."""
        return float(c @ self.maximise(c)) + 1e-12 * float(np.abs(c).sum())


@dataclass(frozen=True)
class ByRows:
    """A base given by its rows alone, maximised by scipy."""

    rows: Floats
    prior: Floats
    rays: None = None
    ratio: None = None

    @property
    def answers(self) -> int:
        return len(self.prior)

    @property
    def lifted(self) -> Floats:
        return self.rows

    def maximise(self, c: Floats) -> Floats:
        solution = linprog(
            -c / np.abs(c).max(),
            A_ub=-self.rows,
            b_ub=np.zeros(len(self.rows)),
            A_eq=self.prior[None],
            b_eq=[1.0],
        )
        assert solution.status == 0
        return np.asarray(solution.x, dtype=np.float64)

    def with_coordinates(self, _: Floats, /) -> None:
        """Return self, because only rows are known."""

    def highest(self, c: Floats) -> float:
        return float(c @ self.maximise(c)) + 1e-6 * float(np.abs(c).max())


def lip_base(seed: int, answers: int, secrets: int, epsilon: float) -> ByRows:
    """Return the base of ε-LIP under a random joint distribution, row by row from the definition
    [Funnel Def 2]."""
    rng = random.Random(seed)
    joint = np.array([[rng.expovariate(1.0) for _ in range(answers)] for _ in range(secrets)])
    joint /= joint.sum()
    p, E = joint.sum(axis=0), np.exp(epsilon)
    conditional = joint / joint.sum(axis=1, keepdims=True)
    return ByRows(np.vstack([E * p - conditional, E * conditional - p]), p)


def cone_of(prior: Prior, notion: str, epsilon: Fraction) -> Cone:
    joint = None if notion == "ldp" else prior.joint
    return Cone((Claim(notion, level_for(epsilon), joint),), prior.answers)


def listed(seed: int, count: int, max_answers: int = 6) -> list[Listed]:
    """Yield random priors with scaled rays of a random notion and level that exclude the identity."""
    rng = random.Random(seed)
    cases: list[Listed] = []
    while len(cases) < count:
        prior = random_prior(rng, rng.randint(2, max_answers), rng.randint(1, 4))
        cone = cone_of(
            prior, rng.choice(["ldp", "lip", "secret-ldp"]), random_epsilon(rng, 0.1, 3.0)
        )
        if not cone.admits_identity():
            rays = np.array(cone.rays(), dtype=np.float64)
            p = prior.probabilities()
            cases.append(Listed(rays / (rays @ p)[:, None], p))
    return cases


def level(epsilon: str) -> float:
    return float(Fraction(*level_for(Fraction(epsilon))))


def random_mechanisms(V: Floats, rng: random.Random, count: int) -> list[Floats]:
    """Return weights θ ≥ 0 with Σ θ_j v_j = 1: random vertices, and mixtures of a few vertices."""
    costs = [[rng.gauss(0, 1) for _ in V] for _ in range(12)]
    corners = [linprog(cost, A_eq=V.T, b_eq=np.ones(V.shape[1])).x for cost in costs]
    mechanisms = list(corners)
    while len(mechanisms) < count:
        chosen = rng.sample(corners, rng.randint(2, 8))
        shares = np.array([rng.expovariate(1.0) for _ in chosen])
        mechanisms.append(np.asarray(shares @ np.array(chosen) / shares.sum()))
    return mechanisms


def variances(V: Floats, theta: Floats, W: Floats, p: Floats) -> Floats:
    """Return every target's variance at n = 1, by definition w(A⁻¹ − ppᵀ)wᵀ; infinite for singular A."""
    A = (V.T * theta) @ V
    if np.linalg.cond(A) > 1e12:
        return np.full(len(W), np.inf)
    return np.array([w @ np.linalg.inv(A) @ w - (w @ p) ** 2 for w in W])


def information(V: Floats, theta: Floats, p: Floats) -> float:
    """Return I(X; Y) in nats, from the joint distribution of answers and reports."""
    joint = p * V * theta[:, None]
    joint /= joint.sum()
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float(np.sum(joint[positive] * np.log(joint[positive] / product[positive])))


def patterns(E: float, p: Floats) -> Floats:
    """Return all columns of LDP of the answer, one by one."""
    U = np.array(
        [[E if mask >> x & 1 else 1.0 for x in range(len(p))] for mask in range(1, 2 ** len(p) - 1)]
    )
    return np.asarray(U / (U @ p)[:, None])


def worth(V: Floats, prices: Prices) -> Floats:
    """Return g(v) + |Zᵀv|² − ν·v, column by column."""
    values = []
    for v in V:
        g = float(prices.objective.prior @ xlogy(v, v)) if prices.objective.informative else 0.0
        values.append(g + float(np.sum((prices.Z.T @ v) ** 2)) - float(prices.nu @ v))
    return np.array(values)
