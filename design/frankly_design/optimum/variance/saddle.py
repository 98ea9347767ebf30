# SPDX-License-Identifier: Apache-2.0
"""Saddle points over given columns: min over θ of max over π of F(θ, π), Σπ = 1.

π are the weights of the cases (targets or truths) whose maximum is minimised; F is convex in θ and
concave in π. Any π proves a bound, because max_π F ≥ F(θ, π), and minimising F(θ, π) over θ is an
ordinary problem. A primal-dual Newton method finds θ and π together.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from frankly_design.numeric.arrays import FloatArray

# Largest number of Newton steps.
_STEPS = 150
# Relative tolerance to reach.
_TOLERANCE = 1e-9
# Relative tolerance that is acceptable if rounding prevents a smaller one.
_STALLED_TOLERANCE = 1e-7
# Largest step, as a share of the way to the boundary.
_TO_BOUNDARY = 0.95
# Factor by which a step reduces the complementarity gap, after a long step.
_CENTRING = 0.15
# Smallest ratio of a complementary product to the mean of all products.
_CENTRAL = 1e-3


class Payoff(Protocol):
    """F(x, π), homogeneous of degree 1 in π, so that F = π·∂F/∂π.

    The methods raise LinAlgError where F is infinite.
    """

    def slopes(self, x: FloatArray, pi: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return ∂F/∂x, shape (n,), and ∂F/∂π, shape (t,)."""
        ...

    def curvatures(
        self, x: FloatArray, pi: FloatArray, /
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ∂²F/∂x², shape (n, n), ∂²F/∂x∂π, shape (n, t), and ∂²F/∂π², shape (t, t)."""
        ...


@dataclass(frozen=True)
class SaddlePoint:
    """Saddle point over given columns.

    x : shape (n,).
    dual : ν, shape (a,).
    weights : π, shape (t,).
    converged : True if the tolerances are met.
    """

    x: FloatArray
    dual: FloatArray
    weights: FloatArray
    converged: bool


@dataclass(frozen=True)
class _SaddleIterate:
    """Primal-dual iterate.

    x, z : shape (n,), positive; z are the slacks of x.
    nu : ν, shape (a,).
    level : the maximum over the cases.
    pi, q : π and the gap between the level and ∂F/∂π, shape (t,), positive.
    """

    x: FloatArray
    z: FloatArray
    nu: FloatArray
    level: float
    pi: FloatArray
    q: FloatArray

    def moved(self, step: "_SaddleIterate", length: float) -> "_SaddleIterate":
        return _SaddleIterate(
            self.x + length * step.x,
            self.z + length * step.z,
            self.nu + length * step.nu,
            self.level + length * step.level,
            self.pi + length * step.pi,
            self.q + length * step.q,
        )

    def gap(self) -> float:
        return float(self.x @ self.z + self.pi @ self.q)


class _Saddle:
    """Saddle-point programme with its residuals and Newton steps."""

    def __init__(self, payoff: Payoff, V: FloatArray, rhs: FloatArray) -> None:
        self.payoff, self.V, self.rhs = payoff, V, rhs

    def start(self, x: FloatArray, pi: FloatArray) -> _SaddleIterate:
        """Return a first iterate, with ν fitted to the gradient by least squares.

        An arbitrary ν would leave a large gradient, which takes many steps to remove.
        """
        gradient, f = self.payoff.slopes(x, pi)
        level = float(f.max() + 0.1 * np.abs(f).max())
        mu = 0.1 * abs(level) / (len(x) + len(f))
        root = np.sqrt(x)
        nu = np.asarray(
            np.linalg.lstsq(self.V * root[:, None], -gradient * root, rcond=None)[0],
            dtype=np.float64,
        )
        return _SaddleIterate(
            x, np.maximum(self.V @ nu + gradient, mu / x), nu, level, pi, level - f
        )

    def residuals(self, at: _SaddleIterate) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return (gradient, row sums, levels, Σπ − 1), all zero at the saddle point."""
        gradient, f = self.payoff.slopes(at.x, at.pi)
        gradient = gradient + self.V @ at.nu - at.z
        return gradient, self.V.T @ at.x - self.rhs, f - at.level + at.q, float(at.pi.sum()) - 1

    def with_exact_gaps(self, at: _SaddleIterate) -> _SaddleIterate:
        """Return the iterate with q recomputed from the levels.

        F is curved, so the linearised q of a Newton step is slightly wrong.
        """
        return replace(at, q=at.level - self.payoff.slopes(at.x, at.pi)[1])

    def merit(self, at: _SaddleIterate, mu: float) -> float:
        size = abs(at.level) + 1e-300
        gradient, rows, levels, total = self.residuals(at)
        residuals = (
            gradient / size,
            rows,
            levels / size,
            total,
            (at.x * at.z - mu) / size,
            (at.pi * at.q - mu) / size,
        )
        return float(np.sqrt(sum(np.sum(np.square(part)) for part in residuals)))

    def step(self, at: _SaddleIterate, mu: float) -> _SaddleIterate:
        """Return the Newton step towards x∘z = π∘q = μ.

        The unknowns are dx, dν, dπ and the change of the level. Scaling x by (x/z)^½ keeps the
        system well conditioned.
        """
        xx, cross, curved = self.payoff.curvatures(at.x, at.pi)
        gradient, rows, levels, total = self.residuals(at)
        n, a, t = len(at.x), self.V.shape[1], len(at.pi)
        root = np.sqrt(at.x / at.z)
        M = np.zeros((n + a + t + 1, n + a + t + 1))
        M[:n, :n] = xx * root[:, None] * root + np.eye(n)
        M[:n, n : n + a] = self.V * root[:, None]
        M[:n, n + a : -1] = cross * root[:, None]
        M[n : n + a, :n] = M[:n, n : n + a].T
        M[n + a : -1, :n] = M[:n, n + a : -1].T
        M[n + a : -1, n + a : -1] = curved - np.diag(at.q / at.pi)
        M[n + a : -1, -1] = M[-1, n + a : -1] = -1.0
        first = root * (-gradient - at.z + mu / at.x)
        rhs = np.concatenate([first, -rows, -levels - mu / at.pi + at.q, [total]])
        s = np.linalg.solve(M, rhs)
        dx, d_pi = root * s[:n], s[n + a : -1]
        dz = mu / at.x - at.z - at.z / at.x * dx
        dq = mu / at.pi - at.q - at.q / at.pi * d_pi
        return _SaddleIterate(dx, dz, s[n : n + a], float(s[-1]), d_pi, dq)


def saddle_point(
    payoff: Payoff, V: FloatArray, rhs: FloatArray, start: FloatArray, weights: FloatArray
) -> SaddlePoint:
    """Minimise max over π of F(x, π) over x ≥ 0 with Σ x_j v_j = rhs, and π ≥ 0 with Σπ = 1.

    Parameters
    ----------
    V : shape (n, a).
    rhs : shape (a,).
    start : initial x, shape (n,), positive.
    weights : initial π, shape (t,), positive, of sum 1.
    """
    saddle = _Saddle(payoff, V, rhs)
    try:
        at = saddle.start(start, weights)
    except np.linalg.LinAlgError:
        return SaddlePoint(start, np.zeros(V.shape[1]), weights, converged=False)
    count = len(at.x) + len(at.pi)
    length = 0.0
    # Steps that overflow are shortened by the line search and never used.
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            if _is_optimal(saddle, at, _TOLERANCE):
                return SaddlePoint(at.x, at.nu, at.pi / at.pi.sum(), converged=True)
            # After a short step the iterate is far from the central path, so the gap is reduced
            # less.
            centring = _CENTRING if length > 0.5 else 0.6
            mu = max(centring * at.gap(), 0.5 * _TOLERANCE * abs(at.level)) / count
            next_iterate = _advance(saddle, at, mu)
            if next_iterate is None:
                break
            at, length = next_iterate
    return SaddlePoint(
        at.x, at.nu, at.pi / at.pi.sum(), _is_optimal(saddle, at, _STALLED_TOLERANCE)
    )


def _is_optimal(saddle: _Saddle, at: _SaddleIterate, tolerance: float) -> bool:
    gradient, rows, levels, _ = saddle.residuals(at)
    size = abs(at.level)
    return bool(
        at.gap() <= tolerance * size
        and np.abs(rows).max() <= tolerance
        and np.abs(levels).max() <= tolerance * size
        and np.abs(gradient).max() <= 1e2 * tolerance * size
    )


def _advance(saddle: _Saddle, at: _SaddleIterate, mu: float) -> tuple[_SaddleIterate, float] | None:
    try:
        step = saddle.step(at, mu)
    except np.linalg.LinAlgError:
        return None
    pairs = ((at.x, step.x), (at.z, step.z), (at.pi, step.pi), (at.q, step.q))
    length = min(1.0, *(_TO_BOUNDARY * _longest(v, dv) for v, dv in pairs))
    before = saddle.merit(at, mu)
    while length > 1e-9:
        try:
            next_iterate = saddle.with_exact_gaps(at.moved(step, length))
            if _central(next_iterate) and saddle.merit(next_iterate, mu) <= max(
                (1 - 0.01 * length) * before, 1e-13
            ):
                return next_iterate, length
        except np.linalg.LinAlgError:
            pass  # A is not positive definite at this step length
        length /= 2
    return None


def _central(at: _SaddleIterate) -> bool:
    # If a product is far below the mean, its coordinate reaches 0 too early and steps become tiny.
    products = np.concatenate([at.x * at.z, at.pi * at.q])
    return bool(products.min() >= _CENTRAL * products.mean())


def _longest(v: FloatArray, dv: FloatArray) -> float:
    shrinking = dv < 0
    return float(np.min(-v[shrinking] / dv[shrinking])) if shrinking.any() else 1.0 / _TO_BOUNDARY
