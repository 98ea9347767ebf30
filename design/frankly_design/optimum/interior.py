# SPDX-License-Identifier: Apache-2.0
"""Primal-dual interior-point method for A-optimal designs (the variance objective).

This is a textbook path-following method with Mehrotra's choice of the centring parameter and a
line search on the residuals. Its convergence proves no bound: the callers compute bounds of the
optimum from the multipliers (docs/maths/optimum.md, claims 4 and 5).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import linalg
from frankly_design.tables.limits import Poll, no_poll

_TOLERANCE = 1e-10
# If float precision ends the search early, a point this close is still used, and the caller's bound
# shows the gap.
_STALLED_TOLERANCE = 1e-8
_ROW_TOLERANCE = 1e-10
_STALLED_ROW_TOLERANCE = 1e-7
_MAX_STEPS = 200
# The start has x∘z = μ, with a duality gap n·μ equal to this share of the objective.
_START_GAP = 0.1
# Largest step as a share of the way to the boundary: at 1, x or z would no longer be positive.
_TO_BOUNDARY = 0.98
_MIN_CENTRING = 0.02
# Smallest x_j z_j relative to the mean. With smaller ones, single variables reach the boundary
# early and steps become short.
_CENTRAL = 1e-3


@dataclass(frozen=True, slots=True)
class TraceOptimum:
    """Last iterate: `x` ≥ 0, shape (n,); `dual`, shape (m,); `converged` within the tolerances."""

    x: FloatArray
    dual: FloatArray
    converged: bool


@dataclass(frozen=True, slots=True)
class _Iterate:
    """Iterate with the data of the next step.

    z : slacks of the dual constraints, shape (n,), positive.
    value : size of the objective, for relative tolerances.
    UZ : U·A⁻¹Wᵀ.
    L_inverse : L⁻¹ for A = L·Lᵀ.
    """

    x: FloatArray
    dual: FloatArray
    z: FloatArray
    value: float
    UZ: FloatArray
    L_inverse: FloatArray


class _Programme:
    """Data of one programme, with the components of its Newton system."""

    def __init__(
        self,
        U: FloatArray,
        C: FloatArray,
        d: FloatArray,
        W: FloatArray,
        cost: FloatArray,
        fixed: FloatArray,
    ) -> None:
        self.U, self.C, self.d, self.W, self.cost, self.fixed = U, C, d, W, cost, fixed

    def at(self, x: FloatArray, dual: FloatArray, z: FloatArray) -> _Iterate:
        """Evaluate a point. Raises LinAlgError where A(x) is not positive definite."""
        A = self.fixed + (self.U.T * x) @ self.U
        L_inverse: FloatArray = np.asarray(np.linalg.inv(np.linalg.cholesky(A)), dtype=np.float64)
        Z: FloatArray = np.asarray(L_inverse.T @ (L_inverse @ self.W.T), dtype=np.float64)
        value = float(np.sum(self.W * Z.T) + np.abs(self.cost) @ x)
        UZ: FloatArray = np.asarray(self.U @ Z, dtype=np.float64)
        return _Iterate(x, dual, z, value, UZ, L_inverse)

    def start(self, x: FloatArray) -> _Iterate:
        """Return the start at x > 0, with x∘z = μ and multipliers fitted to the gradient."""
        n, m = len(self.U), len(self.d)
        point = self.at(x, np.zeros(m), np.ones(n))
        z = _START_GAP * point.value / n / x
        # An infeasible method may start from any multipliers; least squares makes the residuals
        # small.
        fitted = np.linalg.lstsq(self.C.T, z - self._gradient(point), rcond=None)[0]
        dual: FloatArray = np.asarray(fitted, dtype=np.float64)
        return _Iterate(point.x, dual, z, point.value, point.UZ, point.L_inverse)

    def residuals(self, at: _Iterate) -> tuple[FloatArray, FloatArray]:
        """Return (gradient + Cᵀ·dual − z, C·x − d), both of which vanish at the optimum."""
        return self._gradient(at) + self.C.T @ at.dual - at.z, self.C @ at.x - self.d

    def newton(self, at: _Iterate) -> "_Newton":
        """Return the factored Newton system at a point, in the smaller of its two forms."""
        m, n = self.C.shape
        # Both forms give the same step, at a cost that is cubic in the size of the system.
        by_targets = self.U.shape[1] * len(self.W) + m < n
        return _ByTargets(self, at) if by_targets else _ByColumns(self, at)

    def _gradient(self, at: _Iterate) -> FloatArray:
        return np.asarray(self.cost - np.sum(at.UZ**2, axis=1), dtype=np.float64)


class _Newton(ABC):
    """Newton steps from one point, for several right-hand sides."""

    def __init__(self, programme: _Programme, at: _Iterate) -> None:
        self._at, self._C = at, programme.C
        self._stationarity, self._rows = programme.residuals(at)
        self._scale = at.x / at.z

    def step(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (dx, d_dual, dz) that remove the residuals to first order.

        complementarity : shape (n,), the decrease of x∘z.
        """
        dx, d_dual = self._solve(-self._stationarity - complementarity / self._at.x)
        return dx, d_dual, (-complementarity - self._at.z * dx) / self._at.x

    @abstractmethod
    def _solve(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve (Hessian + z/x)·dx + Cᵀ·d_dual = r, C·dx = −rows."""


class _ByTargets(_Newton):
    """Newton system of size a·t + m: the Hessian is 2KKᵀ, rank K ≤ a·t (row v: L⁻¹v ⊗ Zᵀv)."""

    def __init__(self, programme: _Programme, at: _Iterate) -> None:
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
    """Newton systems of size n and m: the Hessian 2(U A⁻¹Uᵀ)∘(UZ ZᵀUᵀ), scaled by (x/z)^½."""

    def __init__(self, programme: _Programme, at: _Iterate) -> None:
        super().__init__(programme, at)
        whitened = programme.U @ at.L_inverse.T
        # Scaled on both sides, the matrix is the identity plus a semidefinite matrix, so the
        # Cholesky factorisation is stable.
        self._root = np.sqrt(self._scale)
        M = 2 * (whitened @ whitened.T) * (at.UZ @ at.UZ.T) * self._root[:, None] * self._root
        M[np.arange(len(M)), np.arange(len(M))] += 1.0
        self._factor = linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        self._CM = self._inverse(self._C.T)
        self._system = self._C @ self._CM

    def _inverse(self, r: FloatArray) -> FloatArray:
        root = self._root if r.ndim == 1 else self._root[:, None]
        return np.asarray(
            root * linalg.cho_solve(self._factor, root * r, check_finite=False), dtype=np.float64
        )

    def _solve(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        free = self._inverse(r)
        d_dual: FloatArray = np.asarray(
            np.linalg.solve(self._system, self._C @ free + self._rows), dtype=np.float64
        )
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
    poll: Poll = no_poll,
) -> TraceOptimum:
    """Minimise cost·x + tr(W A(x)⁻¹ Wᵀ), A(x) = fixed + Σ_j x_j u_j u_jᵀ, s.t. C·x = d, x ≥ 0.

    At the optimum gradient + Cᵀ·dual = z ≥ 0 and x∘z = 0, where gradient_j = cost_j − |W A⁻¹u_j|².
    The method follows x∘z = μ → 0 from an infeasible start, with a predictor step that determines μ
    and a line search on the residuals.

    Parameters
    ----------
    U : shape (n, a), one column of a mechanism per row, zero rows for slack variables.
    C : shape (m, n).
    d : shape (m,).
    W : shape (t, a), the targets; the identity for all shares. Unless `fixed` is positive definite,
    W must have rank a, because otherwise A might be singular at the optimum.
    cost : shape (n,), default 0.
    fixed : shape (a, a), default 0.
    start : shape (n,), positive; default equal weights.
    tolerance : duality gap, relative to the objective, at which to stop.
    poll : called before each step; an exception that it raises ends the method.

    Returns
    -------
    TraceOptimum; not `converged` if there is no positive feasible point or the numbers are too
    extreme.
    """
    n, a = U.shape
    cost = np.zeros(n) if cost is None else cost
    fixed = np.zeros((a, a)) if fixed is None else fixed
    programme = _Programme(U, C, d, W, cost, fixed)
    x = np.full(n, 1.0 / n) if start is None else start
    try:
        point = programme.start(x)
    except np.linalg.LinAlgError:  # no x makes A positive definite
        return TraceOptimum(x, np.zeros(len(d)), converged=False)
    with np.errstate(all="ignore"):  # a step with inf or nan fails the line search and is shortened
        for _ in range(_MAX_STEPS):
            poll()
            if _is_optimal(programme, point, tolerance):
                return TraceOptimum(point.x, point.dual, converged=True)
            following = _advance(programme, point, tolerance)
            if following is None:
                break
            point = following
    # A step can fail at the limit of float precision; the caller's bound shows the remaining gap.
    close_enough = _is_optimal(
        programme, point, max(tolerance, _STALLED_TOLERANCE), _STALLED_ROW_TOLERANCE
    )
    return TraceOptimum(point.x, point.dual, close_enough)


def _is_optimal(
    programme: _Programme, at: _Iterate, tolerance: float, row_tolerance: float = _ROW_TOLERANCE
) -> bool:
    stationarity, rows = programme.residuals(at)
    return bool(
        at.x @ at.z <= tolerance * at.value
        and np.abs(rows).max() <= row_tolerance
        and np.abs(stationarity).max() <= 1e2 * tolerance * at.value
    )


def _advance(programme: _Programme, at: _Iterate, tolerance: float) -> _Iterate | None:
    """Return the iterate after one predictor-corrector step; None if it makes no progress."""
    n = len(at.x)
    mu = float(at.x @ at.z) / n
    try:
        newton = programme.newton(at)
        dx, _, dz = newton.step(at.x * at.z)
        x_ahead = at.x + min(1.0, _longest(at.x, dx)) * dx
        z_ahead = at.z + min(1.0, _longest(at.z, dz)) * dz
        predicted = float(x_ahead @ z_ahead) / n
        # Mehrotra's rule: the more the pure Newton step reduces the gap, the less the step is
        # centred.
        centring = min(1.0, max((predicted / mu) ** 3, _MIN_CENTRING))
        # A target below half of the requested gap would only make the system ill-conditioned.
        target = max(centring * mu, 0.5 * tolerance * at.value / n)
        dx, d_dual, dz = newton.step(at.x * at.z - target)
    except np.linalg.LinAlgError:
        return None
    length = min(1.0, _TO_BOUNDARY * _longest(at.x, dx), _TO_BOUNDARY * _longest(at.z, dz))
    before = _merit(programme, at, target, at.value)
    # Backtracking: a step is accepted if it stays central and reduces the residuals by 1% of its
    # length, unless the residuals are already at float precision.
    while length > 1e-9:
        try:
            following = programme.at(
                at.x + length * dx, at.dual + length * d_dual, at.z + length * dz
            )
            mean = float(following.x @ following.z) / n
            central = np.min(following.x * following.z) >= _CENTRAL * mean
            largest = max((1 - 0.01 * length) * before, 1e-13)
            if central and _merit(programme, following, target, at.value) <= largest:
                return following
        except np.linalg.LinAlgError:
            pass  # A is not positive definite at this step length
        length /= 2
    return None


def _longest(v: FloatArray, dv: FloatArray) -> float:
    """Return the largest length with v + length·dv ≥ 0; 1/_TO_BOUNDARY if it is unbounded."""
    shrinking = dv < 0
    return float(np.min(-v[shrinking] / dv[shrinking])) if shrinking.any() else 1.0 / _TO_BOUNDARY


def _merit(programme: _Programme, at: _Iterate, target: float, scale: float) -> float:
    stationarity, rows = programme.residuals(at)
    terms = (stationarity / scale, rows, (at.x * at.z - target) / scale)
    return float(np.sqrt(sum(np.sum(term**2) for term in terms)))
