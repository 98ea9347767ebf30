# SPDX-License-Identifier: Apache-2.0
"""A-optimal designs: the convex programme behind the variance objective, by a primal-dual interior-point method."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from frankly_server.design.linear import FloatArray

_TOLERANCE = 1e-10
_STALLED_TOLERANCE = 1e-8
_ROW_TOLERANCE = 1e-10
_STALLED_ROW_TOLERANCE = 1e-7
_MAX_STEPS = 200
_FIRST_GAP = 0.1
_TO_BOUNDARY = 0.98
_LEAST_CENTRING = 0.02
_CENTRAL = 1e-3


@dataclass(frozen=True, slots=True)
class TraceOptimum:
    """Where the method ended: `x` ≥ 0 of shape (n,), `dual` of shape (m,), and whether it met its tolerances."""

    x: FloatArray
    dual: FloatArray
    converged: bool


@dataclass(frozen=True, slots=True)
class _Point:
    """An iterate with what the next step needs: the size of the objective, z ≥ 0, UZ = U·A⁻¹Wᵀ, L⁻¹ for A = LLᵀ."""

    x: FloatArray
    dual: FloatArray
    z: FloatArray
    value: float
    UZ: FloatArray
    L_inverse: FloatArray


class _Programme:
    """The data of one programme, and the pieces of its Newton system."""

    def __init__(
        self, U: FloatArray, C: FloatArray, d: FloatArray, W: FloatArray, cost: FloatArray, fixed: FloatArray
    ) -> None:
        self.U, self.C, self.d, self.W, self.cost, self.fixed = U, C, d, W, cost, fixed

    def at(self, x: FloatArray, dual: FloatArray, z: FloatArray) -> _Point:
        """Evaluate a point. Raises LinAlgError where A(x) is not positive definite."""
        A = self.fixed + (self.U.T * x) @ self.U
        L_inverse: FloatArray = np.asarray(np.linalg.inv(np.linalg.cholesky(A)), dtype=np.float64)
        Z: FloatArray = np.asarray(L_inverse.T @ (L_inverse @ self.W.T), dtype=np.float64)
        value = float(np.sum(self.W * Z.T) + np.abs(self.cost) @ x)
        UZ: FloatArray = np.asarray(self.U @ Z, dtype=np.float64)
        return _Point(x, dual, z, value, UZ, L_inverse)

    def start(self, x: FloatArray) -> _Point:
        """Begin at x > 0 with x∘z = μ and multipliers that fit the gradient there."""
        n, m = len(self.U), len(self.d)
        point = self.at(x, np.zeros(m), np.ones(n))
        z = _FIRST_GAP * point.value / n / x
        fitted = np.linalg.lstsq(self.C.T, z - self._gradient(point), rcond=None)[0]
        dual: FloatArray = np.asarray(fitted, dtype=np.float64)
        return _Point(point.x, dual, z, point.value, point.UZ, point.L_inverse)

    def residuals(self, at: _Point) -> tuple[FloatArray, FloatArray]:
        """Return (gradient + Cᵀ·dual − z, C·x − d): both vanish at the optimum."""
        return self._gradient(at) + self.C.T @ at.dual - at.z, self.C @ at.x - self.d

    def newton(self, at: _Point) -> "_Newton":
        """Factor the Newton system at a point, in the smaller of its two forms."""
        m, n = self.C.shape
        by_targets = self.U.shape[1] * len(self.W) + m < n
        return _ByTargets(self, at) if by_targets else _ByColumns(self, at)

    def _gradient(self, at: _Point) -> FloatArray:
        return np.asarray(self.cost - np.sum(at.UZ**2, axis=1), dtype=np.float64)


class _Newton(ABC):
    """Newton steps from one point, for several right-hand sides."""

    def __init__(self, programme: _Programme, at: _Point) -> None:
        self._at, self._C = at, programme.C
        self._stationarity, self._rows = programme.residuals(at)
        self._scale = at.x / at.z

    def step(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (dx, d dual, dz) that remove the residuals and leave x∘z − complementarity = 0, to first order."""
        dx, d_dual = self._solve(-self._stationarity - complementarity / self._at.x)
        return dx, d_dual, (-complementarity - self._at.z * dx) / self._at.x

    @abstractmethod
    def _solve(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve (Hessian + z/x)·dx + Cᵀ·d_dual = r, C·dx = −rows."""


class _ByTargets(_Newton):
    """The Hessian is 2KKᵀ with K of rank ≤ a·t (row v: L⁻¹v ⊗ Zᵀv): a system of size a·t + m."""

    def __init__(self, programme: _Programme, at: _Point) -> None:
        super().__init__(programme, at)
        U = programme.U
        K = ((U @ at.L_inverse.T)[:, :, None] * at.UZ[:, None, :]).reshape(len(U), -1)
        self._G, self._k = np.hstack([K, self._C.T]), K.shape[1]
        self._system = (self._G.T * self._scale) @ self._G
        self._system[np.arange(self._k), np.arange(self._k)] += 0.5

    def _solve(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        rhs = self._G.T @ (self._scale * r)
        rhs[self._k :] += self._rows
        s: FloatArray = np.asarray(np.linalg.solve(self._system, rhs), dtype=np.float64)
        return self._scale * (r - self._G @ s), s[self._k :]


class _ByColumns(_Newton):
    """The Hessian itself, 2(U A⁻¹Uᵀ)∘(UZ ZᵀUᵀ), scaled by (x/z)^½ on both sides: systems of size n and m."""

    def __init__(self, programme: _Programme, at: _Point) -> None:
        super().__init__(programme, at)
        whitened = programme.U @ at.L_inverse.T
        self._root = np.sqrt(self._scale)
        M = 2 * (whitened @ whitened.T) * (at.UZ @ at.UZ.T) * self._root[:, None] * self._root
        M[np.arange(len(M)), np.arange(len(M))] += 1.0
        self._factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        self._CM = self._inverse(self._C.T)
        self._system = self._C @ self._CM

    def _inverse(self, r: FloatArray) -> FloatArray:
        root = self._root if r.ndim == 1 else self._root[:, None]
        return np.asarray(root * cho_solve(self._factor, root * r, check_finite=False), dtype=np.float64)

    def _solve(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        free = self._inverse(r)
        d_dual: FloatArray = np.asarray(np.linalg.solve(self._system, self._C @ free + self._rows), dtype=np.float64)
        return free - self._CM @ d_dual, d_dual


def minimise_trace(
    U: FloatArray,
    C: FloatArray,
    d: FloatArray,
    W: FloatArray,
    *,
    cost: FloatArray | None = None,
    fixed: FloatArray | None = None,
    start: FloatArray | None = None,
    tolerance: float = _TOLERANCE,
) -> TraceOptimum:
    """Minimise cost·x + tr(W A(x)⁻¹ Wᵀ), A(x) = fixed + Σ_j x_j u_j u_jᵀ, subject to C·x = d and x ≥ 0.

    Optimality: gradient_j = cost_j − |W A⁻¹u_j|²; gradient + Cᵀ·dual = z ≥ 0 and x∘z = 0. The method follows
    x∘z = μ → 0 from an infeasible start, with a predictor that chooses μ and a line search on the residuals.

    Parameters
    ----------
    U : shape (n, a), one column of a mechanism per row, zero rows for slack variables. C : shape (m, n).
    d : shape (m,). W : shape (t, a), the targets, of rank a unless `fixed` is positive definite (else A would be
    singular at the optimum); the identity for all shares. cost : shape (n,), default 0. fixed : shape (a, a),
    default 0. start : shape (n,), positive; default equal weights. tolerance : duality gap relative to the objective to
    stop at.

    Returns
    -------
    TraceOptimum; not `converged` where there is no positive feasible point or the numbers are too extreme.
    """
    n, a = U.shape
    cost, fixed = np.zeros(n) if cost is None else cost, np.zeros((a, a)) if fixed is None else fixed
    programme = _Programme(U, C, d, W, cost, fixed)
    x = np.full(n, 1.0 / n) if start is None else start
    try:
        point = programme.start(x)
    except np.linalg.LinAlgError:  # no x makes A positive definite
        return TraceOptimum(x, np.zeros(len(d)), converged=False)
    with np.errstate(all="ignore"):  # hopeless steps are shortened below, never used
        for _ in range(_MAX_STEPS):
            if _is_optimal(programme, point, tolerance):
                return TraceOptimum(point.x, point.dual, converged=True)
            following = _advance(programme, point, tolerance)
            if following is None:
                break
            point = following
    # At the end of float precision a step may fail; the caller's certificate then tells the gap that is left.
    close_enough = _is_optimal(programme, point, max(tolerance, _STALLED_TOLERANCE), _STALLED_ROW_TOLERANCE)
    return TraceOptimum(point.x, point.dual, close_enough)


def _is_optimal(programme: _Programme, at: _Point, tolerance: float, row_tolerance: float = _ROW_TOLERANCE) -> bool:
    stationarity, rows = programme.residuals(at)
    return bool(
        at.x @ at.z <= tolerance * at.value
        and np.abs(rows).max() <= row_tolerance
        and np.abs(stationarity).max() <= 1e2 * tolerance * at.value
    )


def _advance(programme: _Programme, at: _Point, tolerance: float) -> _Point | None:
    """Take one predictor-corrector step, towards half the gap asked for at the closest; None if none makes progress."""
    n = len(at.x)
    mu = float(at.x @ at.z) / n
    try:
        newton = programme.newton(at)
        dx, _, dz = newton.step(at.x * at.z)
        left = float((at.x + min(1.0, _longest(at.x, dx)) * dx) @ (at.z + min(1.0, _longest(at.z, dz)) * dz)) / n
        centring = min(1.0, max((left / mu) ** 3, _LEAST_CENTRING))
        target = max(centring * mu, 0.5 * tolerance * at.value / n)
        dx, d_dual, dz = newton.step(at.x * at.z - target)
    except np.linalg.LinAlgError:
        return None
    length = min(1.0, _TO_BOUNDARY * _longest(at.x, dx), _TO_BOUNDARY * _longest(at.z, dz))
    before = _merit(programme, at, target, at.value)
    while length > 1e-9:
        try:
            following = programme.at(at.x + length * dx, at.dual + length * d_dual, at.z + length * dz)
            central = np.min(following.x * following.z) >= _CENTRAL * float(following.x @ following.z) / n
            if central and _merit(programme, following, target, at.value) <= max((1 - 0.01 * length) * before, 1e-13):
                return following
        except np.linalg.LinAlgError:
            pass  # A is not positive definite that far out
        length /= 2
    return None


def _longest(v: FloatArray, dv: FloatArray) -> float:
    """Return how far v + length·dv stays ≥ 0; at least 1/0.98 if it always does."""
    shrinking = dv < 0
    return float(np.min(-v[shrinking] / dv[shrinking])) if shrinking.any() else 1.0 / _TO_BOUNDARY


def _merit(programme: _Programme, at: _Point, target: float, scale: float) -> float:
    stationarity, rows = programme.residuals(at)
    parts = (stationarity / scale, rows, (at.x * at.z - target) / scale)
    return float(np.sqrt(sum(np.sum(part**2) for part in parts)))
