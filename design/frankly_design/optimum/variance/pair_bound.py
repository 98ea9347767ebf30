# SPDX-License-Identifier: Apache-2.0
"""Bound of the variance under LDP of many answers, from moments of pairs of answers (spec 1.6).

An extreme column has entries m and E·m, so (v_x − m)(Em − v_x) = 0 and (v_x − m)(v_z − m) ≥ 0 for
all x and z. With d of any sign and Y ≥ 0, the quadratic form

    P(m, v) = (ν·v)(p·v) + Σ_x d_x (v_x − m)(v_x − Em) − Σ_{x<z} Y_xz (v_x − m)(v_z − m)

is at most (ν·v)(p·v) on these columns. Let S be the Schur complement of P, that is the form in v
that remains at the best m. If P ≥ 0 and ZZᵀ ≤ S, then |Zᵀv|² ≤ P ≤ ν·v at p·v = 1, and the best
such Z has tr(WZ) = tr((W S Wᵀ)^½). So every ν, d, Y proves a bound. The logarithm of tr²/Σν, which
is concave along rays of the scale, is maximised by a quasi-Newton method with a barrier
(docs/maths/variance.md, claim 15).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance.objective import Objective, Prices

MOST_ANSWERS: Final = 128
"""Largest number of answers; each of some hundred evaluations costs about 10·a³ operations."""
_BARRIERS: Final = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Successive weights of ln det P; without this barrier the search stops at the first boundary."""
_STEPS: Final = 400
_MEMORY: Final = 40
_WINDOW, _LEAST_RISE = 20, 1e-7
"""The search ends when that many steps gain less than this relative amount."""
_FLAT: Final = 1e-13
_START: Final = 1.5  # initial ν, relative to the least ν at which P is positive

_Value = tuple[float, FloatArray]


@dataclass(frozen=True, slots=True)
class _Form:
    """The form P and quantities derived from it.

    schur : S, shape (a, a). share : c with m = −c·v for the best m. corner : coefficient of m² in
    P.
    """

    nu: FloatArray
    schur: FloatArray
    share: FloatArray
    corner: float
    matrix: FloatArray


class _PairBound:
    """Bound as a function of the vector (ν/p, d/p, Y_xz/(p_x·p_z) for x < z)."""

    def __init__(self, W: FloatArray, prior: FloatArray, ratio: float) -> None:
        self._W, self._p, self._ratio = W, prior, ratio
        self._pairs = np.triu_indices(len(prior), 1)
        self._pair_scale = np.outer(prior, prior)[self._pairs]
        self.barrier = 0.0

    def start(self) -> FloatArray:
        """Return a point at which P is positive definite, without pairs."""
        a, ratio = len(self._p), self._ratio
        tau = _START * (ratio + 1) ** 2 / (4 * ratio)
        return np.concatenate([np.full(a, tau), np.ones(a), np.zeros(len(self._pair_scale))])

    def form(self, y: FloatArray) -> _Form | None:
        """Return P at a point; None if P is not positive definite or Σν ≤ 0."""
        a, p = len(self._p), self._p
        nu, d = p * y[:a], p * y[a : 2 * a]
        Y = np.zeros((a, a))
        Y[self._pairs] = self._pair_scale * y[2 * a :]
        Y += Y.T
        square = (np.outer(nu, p) + np.outer(p, nu) - Y) / 2
        square[np.diag_indices(a)] += d
        mixed = (Y.sum(axis=1) - (self._ratio + 1) * d) / 2
        corner = float(self._ratio * d.sum() - Y.sum() / 2)
        # The Schur complement divides by the corner, and the objective contains ln Σν.
        if corner <= 0 or nu.sum() <= 0:
            return None
        schur = square - np.outer(mixed, mixed) / corner
        matrix = np.block([[np.full((1, 1), corner), mixed[None]], [mixed[:, None], square]])
        return _Form(nu, schur, mixed / corner, corner, matrix)

    def __call__(self, y: FloatArray) -> _Value | None:
        """Return the negative logarithm of the bound, including the barrier, and the gradient."""
        form = self.form(y)
        if form is None:
            return None
        try:
            root = np.linalg.inv(np.linalg.cholesky(form.schur))
        except np.linalg.LinAlgError:
            return None
        a, total = len(self._p), float(form.nu.sum())
        values, vectors = np.linalg.eigh(self._W @ form.schur @ self._W.T)
        # Dependent targets give eigenvalues of 0, where the root has no derivative.
        used = values > _FLAT * values[-1]
        roots, H = np.sqrt(values[used]), self._W.T @ vectors[:, used]
        trace, barrier = float(roots.sum()), self.barrier
        determinant = np.log(form.corner) - 2 * float(np.log(np.diag(root)).sum())
        value = 2 * np.log(trace) - np.log(total)
        value += barrier * (determinant - (a + 1) * np.log(total))
        # Derivative with respect to S, and then to the entries of P for m², m·v and v·vᵀ.
        M = (H / roots) @ H.T / trace + barrier * (root.T @ root)
        Mc = M @ form.share
        of_corner = float(form.share @ Mc) + barrier / form.corner
        of_nu = self._p * (M @ self._p - (1 + barrier * (a + 1)) / total)
        of_d = self._p * (np.diag(M) + (self._ratio + 1) * Mc + self._ratio * of_corner)
        x, z = self._pairs
        of_pairs = -self._pair_scale * (M[x, z] + Mc[x] + Mc[z] + of_corner)
        return -value, -np.concatenate([of_nu, of_d, of_pairs])


def certified(
    objective: Objective, ratio: float, out_of_time: Callable[[], bool] = lambda: False
) -> Prices | None:
    """Return prices at which no column under LDP has a positive worth; None if the search fails.

    objective : without the information; its prior is positive. ratio : E > 1.
    """
    problem = _PairBound(objective.W, objective.prior, ratio)
    y, best = problem.start(), None
    for barrier in _BARRIERS:
        problem.barrier = barrier
        y = _minimised(problem, y, 2 * len(objective.prior), out_of_time)
        form = problem.form(y)
        if form is not None:
            prices = _proved(objective, form, ratio)
            # A smaller barrier usually gives a better bound, unless its search ends too early.
            best = prices if best is None or prices.bound() > best.bound() else best
    return best


def _proved(objective: Objective, form: _Form, ratio: float) -> Prices:
    """Return the best Z, and ν raised by the largest possible rounding error."""
    W, a = objective.W, len(objective.prior)
    values, vectors = np.linalg.eigh(W @ form.schur @ W.T)
    used = values > _FLAT * values[-1]
    U = vectors[:, used]
    Z = form.schur @ W.T @ (U / np.sqrt(values[used])) @ U.T
    # The proof needs P − ZZᵀ ≥ 0; rounding can leave it slightly negative, which ν absorbs.
    remainder = form.matrix.copy()
    remainder[1:, 1:] -= Z @ Z.T
    # m ≤ 1 and v_x ≤ E at p·v = 1; an eigenvalue is off by little more than the largest entry's ulp.
    largest = float(np.abs(form.matrix).max())
    least = float(np.linalg.eigvalsh(remainder)[0]) - 4 * a * np.finfo(float).eps * largest
    return Prices(objective, Z, form.nu).raised(max(0.0, -least) * (1 + a * ratio**2))


def _minimised(
    problem: Callable[[FloatArray], _Value | None],
    y: FloatArray,
    free: int,
    out_of_time: Callable[[], bool],
) -> FloatArray:
    """Minimise by L-BFGS, with all coordinates from index `free` on constrained to be ≥ 0.

    A step excludes coordinates at 0 that the gradient would make negative (two-metric projection).
    """
    current = problem(y)
    if current is None:
        return y
    (value, gradient), low = current, np.where(np.arange(len(y)) < free, -np.inf, 0.0)
    steps: list[tuple[FloatArray, FloatArray]] = []
    history = [value]
    while len(history) <= _STEPS and not out_of_time():
        direction = _direction(steps, gradient, (y > low) | (gradient < 0))
        following = _line_search(problem, y, (value, gradient), direction, low)
        if following is None:
            if not steps:
                break
            steps.clear()  # old curvature may mislead, so retry along the gradient
            continue
        at, (value, slope) = following
        steps.append((at - y, slope - gradient))
        del steps[:-_MEMORY]
        y, gradient = at, slope
        history.append(value)
        if len(history) > _WINDOW and history[-_WINDOW] - value < _LEAST_RISE:
            break
    return y


def _direction(
    steps: list[tuple[FloatArray, FloatArray]], gradient: FloatArray, moving: NDArray[np.bool_]
) -> FloatArray:
    """Return the quasi-Newton step in the free coordinates (two-loop recursion)."""
    q = np.where(moving, gradient, 0.0)
    recent = [(np.where(moving, s, 0.0), np.where(moving, t, 0.0)) for s, t in steps]
    # Without positive curvature the step could be an ascent direction.
    curved = [(s, t, float(s @ t)) for s, t in recent if s @ t > 1e-12 * np.sqrt((s @ s) * (t @ t))]
    weights = []
    for s, t, st in reversed(curved):
        weights.append(float(s @ q) / st)
        q -= weights[-1] * t
    if curved:
        # Standard scale of the initial inverse Hessian, from the latest step (Nocedal and Wright,
        # eq. 7.20).
        q *= curved[-1][2] / float(curved[-1][1] @ curved[-1][1])
    else:
        # Without curvature information, no coordinate moves by more than 0.01.
        q *= 0.01 / np.abs(gradient).max()
    for (s, t, st), weight in zip(curved, reversed(weights), strict=True):
        q += (weight - float(t @ q) / st) * s
    return -np.where(moving, q, 0.0)


def _line_search(
    problem: Callable[[FloatArray], _Value | None],
    y: FloatArray,
    here: _Value,
    direction: FloatArray,
    low: FloatArray,
) -> tuple[FloatArray, _Value] | None:
    """Return the first halved step that is feasible and decreases enough; None if there is none."""
    value, gradient = here
    # A quasi-Newton step of length 1 is accepted near the optimum, so it is tried first.
    length = 1.0
    while length > 1e-12:
        at = np.maximum(y + length * direction, low)
        candidate = problem(at)
        if candidate is not None and candidate[0] < value + 1e-4 * min(
            0.0, float(gradient @ (at - y))
        ):
            return at, candidate
        length /= 2
    return None
