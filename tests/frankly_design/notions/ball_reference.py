# SPDX-License-Identifier: Apache-2.0
"""Balls computed from their definition with a general optimiser, without the closed forms under
test.

Definition: D_α(P̂‖P) = ln(Σ P̂^α P^(1−α))/(α−1)  [Robust (7)].
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Vector = NDArray[np.float64]


def renyi(p: Vector, q: Vector, order: float) -> float:
    p, q = p.ravel(), q.ravel()
    positive = p > 0
    p, q = p[positive], q[positive]
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


def minimum_over_ball(
    p: Vector,
    radius: float,
    order: float,
    f: Callable[[Vector], float],
    seed: int = 0,
    starts: int = 4,
) -> tuple[float, Vector]:
    """Return the least f(P) over {P : D(p‖P) ≤ radius} that SLSQP finds from several starts, with its P."""
    rng = np.random.default_rng(seed)
    best, at = f(p), p
    for _ in range(starts):
        start = 0.8 * p + 0.2 * rng.dirichlet(np.ones(p.size)).reshape(p.shape)
        while renyi(p, start, order) > radius:
            start = (start + p) / 2
        solution = minimize(
            lambda v: f(v.reshape(p.shape)),
            start.ravel(),
            method="SLSQP",
            bounds=[(1e-12, 1.0)] * p.size,
            constraints=[
                {"type": "eq", "fun": lambda v: v.sum() - 1},
                {"type": "ineq", "fun": lambda v: radius - renyi(p, v.reshape(p.shape), order)},
            ],
            options={"maxiter": 400, "ftol": 1e-13},
        )
        point = np.abs(solution.x.reshape(p.shape)) / np.abs(solution.x).sum()
        # SLSQP may violate the constraint, so the point is moved back until it is in the ball.
        pull = 1.0
        while renyi(p, point, order) > radius and pull > 1e-12:
            point, pull = point + (p - point) * 1e-7, pull / 2
        if renyi(p, point, order) <= radius and f(point) < best:
            best, at = f(point), point
    return best, at


def boundary_point(p: Vector, radius: float, order: float, direction: Vector) -> Vector:
    """Return the last point of the ball on the ray from p in this direction."""
    low, high = 0.0, 1.0
    with np.errstate(divide="ignore", over="ignore"):
        while (
            np.all(p + 2 * high * direction > 0) and renyi(p, p + high * direction, order) < radius
        ):
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            q = p + middle * direction
            inside = bool(np.all(q > 0)) and renyi(p, q, order) <= radius
            low, high = (middle, high) if inside else (low, middle)
    return p + low * direction


def random_counts(
    rng: np.random.Generator, secrets: int, values: int, top: int = 60
) -> list[list[int]]:
    return [[int(n) for n in row] for row in rng.integers(1, top, size=(secrets, values))]
