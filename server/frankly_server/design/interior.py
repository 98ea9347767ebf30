# SPDX-License-Identifier: Apache-2.0
"""A-optimal designs: the convex programme behind the variance objective, by a primal-dual interior-point method."""

from dataclasses import dataclass

import numpy as np

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
    """An iterate with what the next step needs: f, z ≥ 0, UZ = U·A⁻¹Wᵀ, and L⁻¹ for A = LLᵀ."""

    x: FloatArray
    dual: FloatArray
    z: FloatArray
    value: float
    UZ: FloatArray
    L_inverse: FloatArray


class _Programme:
    """The data of one programme, and the pieces of its Newton system."""

    def __init__(self, U: FloatArray, C: FloatArray, d: FloatArray, W: FloatArray) -> None:
        self.U, self.C, self.d, self.W = U, C, d, W

    def at(self, x: FloatArray, dual: FloatArray, z: FloatArray) -> _Point:
        """Evaluate a point. Raises LinAlgError where A(x) is not positive definite."""
        L_inverse = np.linalg.inv(np.linalg.cholesky((self.U.T * x) @ self.U))
        Z = L_inverse.T @ (L_inverse @ self.W.T)
        return _Point(x, dual, z, float(np.sum(self.W * Z.T)), self.U @ Z, L_inverse)

    def start(self, x: FloatArray) -> _Point:
        """Begin at x > 0 with x∘z = μ and multipliers that fit the gradient there."""
        n, m = len(self.U), len(self.d)
        point = self.at(x, np.zeros(m), np.ones(n))
        z = _FIRST_GAP * point.value / n / x
        gradient = -np.sum(point.UZ**2, axis=1)
        dual = np.linalg.lstsq(self.C.T, z - gradient, rcond=None)[0]
        return _Point(point.x, dual, z, point.value, point.UZ, point.L_inverse)

    def residuals(self, at: _Point) -> tuple[FloatArray, FloatArray]:
        """Return (gradient + Cᵀ·dual − z, C·x − d): both vanish at the optimum."""
        return -np.sum(at.UZ**2, axis=1) + self.C.T @ at.dual - at.z, self.C @ at.x - self.d

    def newton(self, at: _Point) -> "_Newton":
        """Factor the Newton system at a point.

        The Hessian is 2KKᵀ with K of rank ≤ a·t (row v: L⁻¹v ⊗ Zᵀv), so the n×n system shrinks to one of size a·t + m.
        """
        K = ((self.U @ at.L_inverse.T)[:, :, None] * at.UZ[:, None, :]).reshape(len(self.U), -1)
        G = np.hstack([K, self.C.T])
        return _Newton(at, G, K.shape[1], *self.residuals(at))


class _Newton:
    """Newton steps from one point, for several right-hand sides."""

    def __init__(self, at: _Point, G: FloatArray, k: int, stationarity: FloatArray, rows: FloatArray) -> None:
        self._at, self._G, self._k = at, G, k
        self._stationarity, self._rows = stationarity, rows
        self._scale = at.x / at.z
        self._system = (G.T * self._scale) @ G
        self._system[np.arange(k), np.arange(k)] += 0.5

    def step(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (dx, d dual, dz) that remove the residuals and leave x∘z − complementarity = 0, to first order."""
        r = -self._stationarity - complementarity / self._at.x
        rhs = self._G.T @ (self._scale * r)
        rhs[self._k :] += self._rows
        s: FloatArray = np.asarray(np.linalg.solve(self._system, rhs), dtype=np.float64)
        dx = self._scale * (r - self._G @ s)
        return dx, s[self._k :], (-complementarity - self._at.z * dx) / self._at.x


def minimise_trace(
    U: FloatArray,
    C: FloatArray,
    d: FloatArray,
    W: FloatArray,
    *,
    start: FloatArray | None = None,
    tolerance: float = _TOLERANCE,
) -> TraceOptimum:
    """Minimise f(x) = tr(W A(x)⁻¹ Wᵀ), A(x) = Σ_j x_j u_j u_jᵀ, subject to C·x = d and x ≥ 0.

    Optimality: gradient_j = −|W A⁻¹u_j|²; gradient + Cᵀ·dual = z ≥ 0 and x∘z = 0. The method follows x∘z = μ → 0 from
    an infeasible start, with a predictor that chooses μ and a line search on the residuals.

    Parameters
    ----------
    U : shape (n, a), one column of a mechanism per row, zero rows for slack variables. C : shape (m, n).
    d : shape (m,). W : shape (t, a), the targets, of rank a (else A would be singular at the optimum); the identity for
    all shares. start : shape (n,), positive; default equal weights. tolerance : duality gap relative to f to stop at.

    Returns
    -------
    TraceOptimum; not `converged` where there is no positive feasible point or the numbers are too extreme.
    """
    programme = _Programme(U, C, d, W)
    point = programme.start(np.full(len(U), 1.0 / len(U)) if start is None else start)
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
