# SPDX-License-Identifier: Apache-2.0
"""Dual of the master programme, for targets of deficient rank.

With such targets A may be singular at the optimum, so that Z = A⁻¹Wᵀ does not exist. The dual
avoids the inverse: maximise 2 tr(WZ) − Σν subject to |Zᵀv_j|² ≤ ν·v_j + cost_j, with Z and ν free.
Its logarithmic barrier is self-concordant (second-order cones), so Newton's method follows the
central path from Z = 0 as the barrier weight κ decreases; the primal weights are x_j = κ/slack_j.
"""

from dataclasses import dataclass, replace

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Poll, no_poll

# Largest number of Newton steps.
_STEPS = 300
# Relative duality gap to reach.
_TOLERANCE = 1e-7
# Relative duality gap that is acceptable if rounding prevents a smaller one.
_STALLED_TOLERANCE = 2e-6
# Factor of κ from one central point to the next.
_SHRINK = 0.2
# An iterate with a Newton decrement below this is treated as central.
_NEAR = 0.1
# Added to the unit diagonal of the Newton system.
_RIDGE = 1e-13


@dataclass(frozen=True)
class DualOptimum:
    """Optimum of the dual programme.

    x : weights, shape (n,); Σ x_j v_j = 1 up to rounding.
    Z : shape (a, t).
    nu : shape (a,).
    """

    x: FloatArray
    Z: FloatArray
    nu: FloatArray
    converged: bool


def maximise_dual(
    V: FloatArray, W: FloatArray, cost: FloatArray, A: FloatArray, poll: Poll = no_poll
) -> DualOptimum:
    """Maximise 2 tr(WZ) − Σν subject to |Zᵀv_j|² ≤ ν·v_j + cost_j for every column.

    The method uses coordinates in which A is the identity and tr(W A⁻¹ Wᵀ) is 1. At small levels
    all columns are nearly equal, and rounding in the original coordinates would hide the
    differences.

    Parameters
    ----------
    V : shape (n, a), v ≥ 0 and not 0.
    W : shape (t, a).
    cost : shape (n,).
    A : shape (a, a), positive definite, for some mechanism made of the columns.
    poll : called before each step; an exception that it raises ends the method.
    """
    root: FloatArray = np.linalg.cholesky(A).astype(np.float64)
    inverse: FloatArray = np.linalg.inv(root).astype(np.float64)
    unit = float(np.sqrt(np.sum((W @ inverse.T) ** 2)))
    found = _maximise(
        V @ inverse.T, W @ inverse.T / unit, cost / unit**2, inverse @ np.ones(len(A)), root, poll
    )
    return replace(found, Z=unit * inverse.T @ found.Z, nu=unit**2 * inverse.T @ found.nu)


def _maximise(
    V: FloatArray, W: FloatArray, cost: FloatArray, ones: FloatArray, root: FloatArray, poll: Poll
) -> DualOptimum:
    a, t = V.shape[1], len(W)
    size = max(float(np.sum(W**2)), float(np.abs(cost).max()))
    # Z = 0 with a large ν is strictly feasible for any costs.
    Z = np.zeros((a, t))
    even = root.T @ np.ones(a)
    nu = even * (size + float(np.abs(cost).max())) / float((V @ even).min())
    kappa = size
    slack = V @ nu + cost
    best = DualOptimum(kappa / slack, Z, nu, converged=False)
    for _ in range(_STEPS):
        poll()
        x = kappa / slack
        try:
            dZ, d_nu, decrement = _newton(V, W, Z, x, slack, ones)
        except np.linalg.LinAlgError:
            break
        Z, nu, slack = _line_search(V, W, cost, kappa, ones, (Z, nu, slack), (dZ, d_nu), decrement)
        decrement /= kappa
        if decrement < _NEAR:
            value = abs(2 * float(np.sum(W.T * Z)) - float(ones @ nu)) + 1e-3 * size
            # On the central path the duality gap is κ per constraint.
            gap = kappa * len(V) / value
            best = DualOptimum(kappa / slack, Z, nu, gap <= _STALLED_TOLERANCE)
            if gap <= _TOLERANCE:
                break
            kappa = max(_SHRINK * kappa, 0.9 * _TOLERANCE * value / len(V))
    return best


def _newton(
    V: FloatArray, W: FloatArray, Z: FloatArray, x: FloatArray, slack: FloatArray, ones: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the Newton step (dZ, dν) of objective plus barrier, and the increase along it."""
    n, a = V.shape
    t = len(W)
    # Gradients of the slacks with respect to ν and Z.
    slopes = np.hstack([V, -2 * (V[:, :, None] * (V @ Z)[:, None, :]).reshape(n, a * t)])
    A = (V.T * x) @ V
    M = (slopes.T * (x / slack)) @ slopes
    M[a:, a:] += 2 * np.kron(A, np.eye(t))
    gradient = np.concatenate([-ones, 2 * W.T.ravel()]) + slopes.T @ x
    # The unknowns ν and Z have different units; a unit diagonal improves the condition of M.
    scale = 1 / np.sqrt(np.diag(M))
    system = M * scale[:, None] * scale
    # Near the optimum, unused columns make the system numerically singular in some directions.
    system[np.diag_indices_from(system)] += _RIDGE
    step = scale * np.linalg.solve(system, scale * gradient)
    return step[a:].reshape(a, t), step[:a], float(gradient @ step)


def _line_search(
    V: FloatArray,
    W: FloatArray,
    cost: FloatArray,
    kappa: float,
    ones: FloatArray,
    at: tuple[FloatArray, FloatArray, FloatArray],
    step: tuple[FloatArray, FloatArray],
    rise: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (Z, ν, slack) after a step that is halved until it is feasible and an improvement.

    Returns the same point if there is no such step.
    """
    Z, nu, slack = at
    before = 2 * float(np.sum(W.T * Z)) - float(ones @ nu) + kappa * float(np.sum(np.log(slack)))
    length = 1.0
    while length > 1e-10:
        Z_next, nu_next = Z + length * step[0], nu + length * step[1]
        slack_next = V @ nu_next + cost - np.sum((V @ Z_next) ** 2, axis=1)
        if slack_next.min() > 0:
            after = (
                2 * float(np.sum(W.T * Z_next))
                - float(ones @ nu_next)
                + kappa * float(np.sum(np.log(slack_next)))
            )
            if after >= before + 0.1 * length * rise - 1e-12 * abs(before):
                return Z_next, nu_next, slack_next
        length /= 2
    return at
