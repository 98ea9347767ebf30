# SPDX-License-Identifier: Apache-2.0
"""Bound without a list of rays, from products of a cone's inequalities on A(θ) = Σ θ_v v vᵀ.

Let the rows r_k satisfy r_k·v ≥ 0 on the cone (v ≥ 0 included). Then every mechanism has A·p = 1
and r_kᵀA r_l ≥ 0. Minimising tr(W A⁻¹ Wᵀ) − information over *all* such matrices A is a convex
programme with a(a+1)/2 variables, for any number of rays. Its multipliers Y ≥ 0 prove a bound: for
Z = A⁻¹Wᵀ they give |Zᵀv|² + Σ Y_kl (r_k·v)(r_l·v) = (ν·v)(p·v), hence |Zᵀv|² ≤ ν·v on the base. In
floats this equation has a remainder, which is added to ν, so the bound holds at every iterate.

The information enters through a quadratic upper bound of each p_x v ln v: see `_Curves`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import linalg, special

# Largest number of primal-dual steps.
_STEPS = 80
_TO_BOUNDARY = 0.95
# The method stops at this gap between value and bound, relative to the value.
_RELATIVE_GAP = 1e-7
# Largest number of entries of the matrix of products, which then takes 12 MB.
_MAX_ENTRIES = 1_500_000


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Z and ν with g(v) + |Zᵀv|² ≤ ν·v on the base (g = 0 without the information).

    Z : shape (a, t).
    nu : shape (a,).
    bound : lower bound of tr(W A⁻¹ Wᵀ) − information over all mechanisms.
    """

    Z: FloatArray
    nu: FloatArray
    bound: float


@dataclass(frozen=True, slots=True)
class _Curves:
    """Quadratics α + βv + γv² ≥ v ln v for v ≥ l, equal at l and tangent at c.

    v ln v has a negative third derivative, so Hermite interpolation at l, c, c is above it for
    every v ≥ l ≥ 0. Among all distributions of v ≥ l with mean 1 and second moment s, the
    distribution on {l, c} with c = (s − l)/(1 − l) has the largest mean of v ln v. The quadratic
    tangent at this c attains that mean, so c is computed from the second moment s = A_xx.
    """

    low: FloatArray

    def at(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (α, β, γ), each of shape (a,), for second moments s > 1."""
        low, c = self.low, self.touching(s)
        at_low = np.asarray(special.xlogy(low, low), dtype=np.float64)
        chord = (c * np.log(c) - at_low) / (c - low)
        gamma = (np.log(c) + 1 - chord) / (c - low)
        # Newton's form: φ(l) + chord·(v − l) + γ·(v − l)(v − c)
        return at_low - chord * low + gamma * low * c, chord - gamma * (low + c), gamma

    def touching(self, s: FloatArray) -> FloatArray:
        return np.maximum((s - self.low) / (1 - self.low), self.low + 1e-9)

    def second(self, s: FloatArray) -> FloatArray:
        """Return dγ/ds by a central difference; its error affects the steps but not the bound."""
        h = 1e-5 * s
        return (self.at(s + h)[2] - self.at(s - h)[2]) / (2 * h)


class _MomentProgramme:
    """Convex programme over symmetric A; the vector x is its upper triangle."""

    def __init__(
        self, rows: FloatArray, p: FloatArray, W: FloatArray, curves: _Curves | None
    ) -> None:
        self.p, self.W, self.curves = p, W, curves
        a = len(p)
        self.i, self.j = np.triu_indices(a)
        self.diagonal = np.flatnonzero(self.i == self.j)
        self.rows = _scaled_rows(rows, a)
        self.row_k, self.row_l = _pairs(self.rows, a)
        R, twice = self.rows, self.i != self.j
        self.H = R[self.row_k][:, self.i] * R[self.row_l][:, self.j]
        self.H += np.where(twice, R[self.row_k][:, self.j] * R[self.row_l][:, self.i], 0.0)
        self.C = np.zeros((a, len(self.i)))
        entries = np.arange(len(self.i))
        self.C[self.i, entries] += p[self.j]
        self.C[self.j[twice], entries[twice]] += p[self.i[twice]]

    def matrix(self, x: FloatArray) -> FloatArray:
        A = np.empty((len(self.p), len(self.p)))
        A[self.i, self.j] = x
        A[self.j, self.i] = x
        return A

    def value(self, x: FloatArray) -> float:
        """Return the objective; infinity if A is not positive definite."""
        try:
            L = np.linalg.cholesky(self.matrix(x))
        except np.linalg.LinAlgError:
            return np.inf
        f = float(np.sum(np.linalg.solve(L, self.W.T) ** 2))
        if self.curves is None:
            return f
        s = x[self.diagonal]
        alpha, beta, gamma = self.curves.at(s)
        return f - float(self.p @ (alpha + beta + gamma * s))

    def derivatives(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian in the entries x."""
        inverse = np.linalg.inv(self.matrix(x))
        Z = inverse @ self.W.T
        K, i, j = Z @ Z.T, self.i, self.j
        size = np.where(i == j, 1.0, 2.0)
        gradient = -size * K[i, j]
        # d²f[B, B'] = 2 tr(K B A⁻¹ B'), symmetrised; B has ones at (i, j) and (j, i)
        hessian = K[i][:, i] * inverse[j][:, j] + K[j][:, j] * inverse[i][:, i]
        hessian += K[i][:, j] * inverse[j][:, i] + K[j][:, i] * inverse[i][:, j]
        hessian *= 0.5 * np.outer(size, size)
        if self.curves is not None:
            s, d = x[self.diagonal], self.diagonal
            gradient[d] -= self.p * self.curves.at(s)[2]
            # Only the convex part of the curvature is used, because a Cholesky factorisation needs
            # a positive definite Newton matrix.
            hessian[d, d] -= np.minimum(self.p * self.curves.second(s), 0.0)
        return gradient, hessian

    def proof(self, x: FloatArray, y: FloatArray, high: FloatArray) -> Relaxed:
        """Return the bound that any x and multipliers y ≥ 0 prove."""
        A = self.matrix(x)
        Z: FloatArray = np.asarray(np.linalg.solve(A, self.W.T), dtype=np.float64)
        Y = np.zeros((len(self.rows), len(self.rows)))
        Y[self.row_k, self.row_l] = y
        N = Z @ Z.T + 0.5 * self.rows.T @ (Y + Y.T) @ self.rows
        linear = np.zeros(len(self.p))
        if self.curves is not None:
            alpha, beta, gamma = self.curves.at(np.diag(A))
            N[np.diag_indices(len(N))] += self.p * gamma
            linear = float(self.p @ alpha) * self.p + self.p * beta
        # N = ½(νpᵀ + pνᵀ) up to a remainder. On the base v ≥ 0, so vᵀ·remainder·v is at most the
        # sum over the positive entries at the largest v.
        sums = N.sum(axis=1)
        nu = 2 * sums - self.p * sums.sum()
        remainder = N - 0.5 * (np.outer(nu, self.p) + np.outer(self.p, nu))
        nu = nu + linear + float(high @ np.maximum(remainder, 0.0) @ high) * self.p
        trace, total = float(np.sum(self.W * Z.T)), float(np.sum(nu))
        return Relaxed(Z, nu, 2 * trace - total)


def relax(
    rows: FloatArray,
    p: FloatArray,
    W: FloatArray,
    start: FloatArray,
    high: FloatArray,
    low: FloatArray | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Relaxed:
    """Return the bound of tr(W A⁻¹ Wᵀ) − information over all A that the products allow.

    Parameters
    ----------
    rows : shape (m, a), r·v ≥ 0 on the cone, in addition to v ≥ 0.
    p : shape (a,).
    W : shape (t, a).
    start : shape (a, a), the A of some mechanism, positive definite.
    high : shape (a,), upper bounds of v_x on the base.
    low : shape (a,), lower bounds of v_x on the base; None leaves out the information.
    out_of_time : called between steps.
    """
    curves = None if low is None else _Curves(np.clip(low, 0.0, 0.999))
    moments = _MomentProgramme(rows, p, W, curves)
    # The constant mechanism has A = 1 everywhere and satisfies every product strictly. After
    # mixing, `start` does too, which the barrier needs.
    A = 0.9 * start + 0.1
    x = A[moments.i, moments.j]
    s = moments.H @ x
    size = abs(moments.value(x))
    # Initially the products s∘y sum to a tenth of the objective.
    kappa = 0.1 * size / len(s)
    y, dual = kappa / s, np.zeros(len(p))
    best = moments.proof(x, y, high)
    for _ in range(_STEPS):
        step_result = _step(moments, x, s, y, dual, kappa)
        if step_result is None:
            break
        x, y, dual, length = step_result
        s = moments.H @ x
        proof = moments.proof(x, y, high)
        best = proof if proof.bound > best.bound else best
        value = moments.value(x)
        # The information can make the value zero; the gap is then relative to the initial value.
        if value - best.bound <= _RELATIVE_GAP * max(abs(value), 1e-3 * size) or out_of_time():
            break
        # After a long step the iterate is near the central path, and κ may decrease tenfold. After
        # a short step κ is only halved, so that the iterate can catch up.
        kappa = (0.1 if length > 0.7 else 0.5) * float(s @ y) / len(s)
    return best


def _step(
    moments: _MomentProgramme,
    x: FloatArray,
    s: FloatArray,
    y: FloatArray,
    dual: FloatArray,
    kappa: float,
) -> tuple[FloatArray, FloatArray, FloatArray, float] | None:
    """Return (x, y, dual, length) after one Newton step towards y∘s = κ; None if it fails.

    The direction is a descent direction of value − κ Σ ln s, which measures progress.
    """
    H, C = moments.H, moments.C
    gradient, hessian = moments.derivatives(x)
    try:
        factor = linalg.cho_factor(hessian + (H.T * (y / s)) @ H, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    r = -gradient - C.T @ dual + H.T @ (kappa / s)
    MC, Mr = (
        linalg.cho_solve(factor, C.T, check_finite=False),
        linalg.cho_solve(factor, r, check_finite=False),
    )
    d_dual = np.linalg.solve(C @ MC, C @ Mr)
    dx = Mr - MC @ d_dual
    ds = H @ dx
    dy = (kappa - y * s - y * ds) / s
    length = min(1.0, _TO_BOUNDARY * _longest(s, ds))
    before = moments.value(x) - kappa * float(np.sum(np.log(s)))
    downhill = float((gradient - H.T @ (kappa / s)) @ dx)
    while length > 1e-8:
        after = moments.value(x + length * dx) - kappa * float(np.sum(np.log(s + length * ds)))
        # Armijo's rule; the last term allows for rounding when the gain is below float precision.
        if after <= before + 1e-4 * length * downhill + 1e-12 * abs(before):
            up = min(1.0, _TO_BOUNDARY * _longest(y, dy))
            return x + length * dx, y + up * dy, dual + up * d_dual, min(length, up)
        length /= 2
    return None


def _longest(v: FloatArray, dv: FloatArray) -> float:
    shrinking = dv < 0
    return float(np.min(-v[shrinking] / dv[shrinking])) if shrinking.any() else 2.0


def affordable(rows: int, answers: int) -> bool:
    """Return True if the products of all rows with the rows v ≥ 0 are few enough to compute."""
    return answers * (answers + rows) * answers * (answers + 1) // 2 <= _MAX_ENTRIES


def _scaled_rows(rows: FloatArray, a: int) -> FloatArray:
    """Return v ≥ 0 and the rows that are positive at the constant column, scaled to 1 there."""
    at_constant = rows.sum(axis=1)
    strict = at_constant > 1e-9 * np.abs(rows).sum(axis=1)
    return np.vstack([np.eye(a), rows[strict] / at_constant[strict, None]])


def _pairs(rows: FloatArray, a: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs of rows to multiply: all, or only those with v ≥ 0 if there are too many."""
    row_k, row_l = np.triu_indices(len(rows))
    if len(row_k) * a * (a + 1) // 2 > _MAX_ENTRIES:
        with_entry = row_k < a
        row_k, row_l = row_k[with_entry], row_l[with_entry]
    return row_k, row_l
