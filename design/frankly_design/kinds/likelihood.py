# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood on the simplex with a certified gap, and the test of fit (spec 8.2).

The mean log-likelihood L(p) = Σ_y λ̂_y ln (Qp)_y is concave. Its gradient g_x = Σ_y λ̂_y
Q(y|x)/(Qp)_y has mean Σ_x p_x g_x = 1, hence L(p*) − L(p) ≤ max_x g_x − 1. This duality gap, in
nats per report, is the stopping rule and the certificate. The method begins with accelerated
expectation-maximisation (EM) steps (SQUAREM), followed by Newton steps, which converge fast where
the likelihood is flat.
"""

from dataclasses import dataclass

import numpy as np

from frankly_design.kinds.kronecker import Kronecker, Law
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import optimize, special

GAP = 1e-3
"""Largest gap in nats over all reports: a likelihood-ratio statistic is off by at most 2e-3."""
_TARGET_GAP = 1e-9
"""Target gap in nats per report for small n, where it takes hardly longer to reach."""
_ROUNDING = 1e-13
"""Gap in nats per report that floats cannot distinguish from 0."""
# EM needs thousands of steps where the likelihood is flat, so Newton steps take over early.
_EM_STEPS, _NEWTON_STEPS = 20, 100
_MAX_STEPS = 5_000
_MAX_HESSIAN_OPERATIONS = 1 << 27
"""Largest number of operations for the matrix of second derivatives; beyond it, EM is faster."""


@dataclass(frozen=True, slots=True)
class Likeliest:
    """Maximum-likelihood shares on the simplex, with their certificate.

    gap : upper bound, in nats over all reports, on how much other shares can raise the
        log-likelihood.
    closed_form : True if no iteration was needed.
    converged : True if the gap is within 1e-3 or within rounding.
    """

    shares: FloatArray
    gap: float
    closed_form: bool
    converged: bool


def likeliest(Q: Law, counts: FloatArray, unbiased: FloatArray | None) -> Likeliest:
    """Return the maximum-likelihood shares from counts per report.

    Q : row = truth.
    unbiased : the unbiased shares, None if they are not known.

    Closed forms are tried first and returned if their gap certifies them. For square mechanisms
    they are the unbiased shares, if these lie on the simplex [Thesis (6.5), (6.34) with its
    condition N₁ ≤ N_j]; for two answers the unbiased shares clamped to [0, 1]; for randomised
    response with equal probabilities off the diagonal, shares of zero for the answers reported
    least often. Otherwise the method is SQUAREM from the projected shares [Varadhan and Roland
    2008], followed by Newton steps [Kim et al. 2020].
    """
    n = float(counts.sum())
    rates, tolerance = counts / n, max(min(GAP / n, _TARGET_GAP), _ROUNDING)
    # Columns without reports only cost time, so they are dropped. Products keep them, because the
    # remaining columns would not be a Kronecker product.
    sent = rates > 0
    columns, column_rates = (Q, rates) if isinstance(Q, Kronecker) else (Q[:, sent], rates[sent])
    for p in _closed_forms(Q, rates, unbiased):
        gap = _gap(columns, column_rates, p)
        if gap <= tolerance:
            return Likeliest(p, n * gap, closed_form=True, converged=True)
    answers = len(Q)
    start = np.full(answers, 1 / answers) if unbiased is None else onto_simplex(unbiased)
    # EM multiplies shares, so a share of zero would stay zero.
    p = 0.9 * start + 0.1 / answers
    p, gap = _iterated(columns, column_rates, p, tolerance)
    return Likeliest(p, n * gap, closed_form=False, converged=gap <= max(GAP / n, _ROUNDING))


def fit_p(Q: Law, counts: FloatArray, best: FloatArray, rank: int) -> float | None:
    """Return the p-value of Pearson's test of the counts at the likeliest shares.

    With b symbols and a mechanism of rank r, no shares can fit b − r dimensions of the frequencies.
    Every share of zero adds a dimension, along which only a negative share would fit better. Given
    the set of zero shares, the statistic is approximately χ² with that many degrees of freedom (the
    χ̄² distribution of order-restricted inference, on one face). Symbols with an expected count
    below 1 are pooled, so that a single rare report does not decide the test.

    Returns None if there are no degrees of freedom.
    """
    expected = counts.sum() * (best @ Q)
    freedom = len(counts) - rank + min(int(np.sum(best < 1e-9)), rank - 1)
    rare = expected < 1
    observed = np.append(counts[~rare], counts[rare].sum())
    mean = np.append(expected[~rare], expected[rare].sum())
    freedom = min(freedom, int(np.sum(mean > 0)) - 1)
    if freedom < 1:
        return None
    # Some of the observed reports have probability 0 at these shares.
    if np.any((mean <= 0) & (observed > 0)):
        return 0.0
    used = mean > 0
    statistic = float(np.sum((observed[used] - mean[used]) ** 2 / mean[used]))
    return float(special.chdtrc(freedom, statistic))


def fisher_bound(Q: FloatArray, W: FloatArray, p: FloatArray) -> FloatArray | None:
    """Return the Cramér-Rao bound on each target's variance at n = 1 and shares p.

    Q : shape (answers, reports).

    Returns None if some report has probability 0, or if the information matrix is singular.

    The Fisher information about shares with an arbitrary sum is QD⁻¹Qᵀ, where D is the diagonal of
    the reports' probabilities. Its inverse minus p pᵀ is the bound for shares that sum to 1 (spec
    1.8, `variance`).
    """
    frequencies = p @ Q
    if np.any(frequencies <= 0):
        return None
    information = (Q / frequencies) @ Q.T
    if np.linalg.matrix_rank(information, hermitian=True) < len(p):
        return None
    covariance = np.linalg.inv(information) - np.outer(p, p)
    return np.asarray(np.maximum(0.0, np.sum(W @ covariance * W, axis=1)), dtype=np.float64)


def _closed_forms(Q: Law, rates: FloatArray, unbiased: FloatArray | None) -> list[FloatArray]:
    candidates: list[FloatArray] = []
    if unbiased is not None and Q.shape[0] == Q.shape[1]:
        if unbiased.min() >= 0:
            candidates.append(unbiased / unbiased.sum())
        elif len(Q) == 2:
            candidates.append(onto_simplex(unbiased))
        if not isinstance(Q, Kronecker):
            candidates += _even_response(Q, rates)
    return candidates


def _even_response(Q: FloatArray, rates: FloatArray) -> list[FloatArray]:
    """Return [closed form] if the probabilities on and off the diagonal are equal, else []."""
    off = Q[~np.eye(len(Q), dtype=bool)]
    if np.ptp(off) <= 1e-12 and np.ptp(np.diagonal(Q)) <= 1e-12 and Q[0, 0] > off[0]:
        return [_randomised_response(float(Q[0, 0]), float(off[0]), rates)]
    return []


def _randomised_response(on: float, off: float, rates: FloatArray) -> FloatArray:
    """Return the shares whose report frequencies are max(off, rates/ν), with ν such that Σ = 1.

    Answers with the frequency `off` have share zero.
    """
    descending = np.sort(rates)[::-1]
    j, total = np.arange(1, len(rates) + 1), np.cumsum(descending)
    # This is ν if the j most frequent answers are above `off`: Σ rates/ν + (a − j) off = 1.
    level = total / np.maximum(1 - (len(rates) - j) * off, 1e-300)
    positive = (
        int(np.flatnonzero(descending / level > off)[-1]) if np.any(descending / level > off) else 0
    )
    p = np.maximum(rates / level[positive] - off, 0.0) / (on - off)
    return np.asarray(p / p.sum(), dtype=np.float64)


def _gradient(Q: Law, rates: FloatArray, p: FloatArray) -> FloatArray:
    return np.asarray(Q @ (rates / np.maximum(p @ Q, 1e-300)), dtype=np.float64)


def _gap(Q: Law, rates: FloatArray, p: FloatArray) -> float:
    # rounding: at the optimum the largest entry is 1 up to float errors
    return max(0.0, float(_gradient(Q, rates, p).max()) - 1)


def _objective(Q: Law, rates: FloatArray, p: FloatArray) -> float:
    return float(rates @ np.log(np.maximum(p @ Q, 1e-300)))


def _iterated(
    Q: Law, rates: FloatArray, p: FloatArray, tolerance: float
) -> tuple[FloatArray, float]:
    """Return (shares, gap); the gap is at most `tolerance` unless the steps ran out or stalled."""
    if Q.shape[0] ** 2 * Q.shape[1] > _MAX_HESSIAN_OPERATIONS:
        return _expectation_maximisation(Q, rates, p, tolerance, _MAX_STEPS)
    dense = Q.dense if isinstance(Q, Kronecker) else Q
    p, gap = _expectation_maximisation(dense, rates, p, tolerance, _EM_STEPS)
    for _ in range(_NEWTON_STEPS):
        if gap <= tolerance or (nearer := _newton(dense, rates, p)) is None:
            break
        p, gap = nearer, _gap(dense, rates, nearer)
    return p, gap


def _expectation_maximisation(
    Q: Law, rates: FloatArray, p: FloatArray, tolerance: float, steps: int
) -> tuple[FloatArray, float]:
    """Return (shares, gap) after EM steps p ← p·g, with extrapolation unless it lowers L."""
    for _ in range(steps):
        g = _gradient(Q, rates, p)
        gap = max(0.0, float(g.max()) - 1)
        if gap <= tolerance:
            return p, gap
        once = p * g
        twice = once * _gradient(Q, rates, once)
        first, second = once - p, twice - 2 * once + p
        length = float(np.linalg.norm(second))
        far = (
            p + 2 * (s := float(np.linalg.norm(first)) / length) * first + s**2 * second
            if length > 0
            else twice
        )
        # This keeps the shares positive, but a share that tends to zero can still shrink 1,000-fold
        # per step.
        far = np.maximum(far, 1e-3 * twice)
        far /= far.sum()
        far = far * _gradient(Q, rates, far)
        p = far if _objective(Q, rates, far) >= _objective(Q, rates, twice) else twice
    return p, _gap(Q, rates, p)


def _newton(Q: FloatArray, rates: FloatArray, p: FloatArray) -> FloatArray | None:
    """Return shares after a Newton step on L(p) − Σp over p ≥ 0, whose maximum has Σp = 1.

    With the gradient g and the negative Hessian H = RᵀR, the quadratic model at p is largest at the
    q ≥ 0 for which |Rq − R⁻ᵀ(Hp + g − 1)| is smallest: a non-negative least squares problem [Kim et
    al. 2020].

    Returns None if no step improves the likelihood or the gap.
    """
    slope = _gradient(Q, rates, p) - 1
    scaled = Q * (np.sqrt(rates) / np.maximum(p @ Q, 1e-300))
    curved = scaled @ scaled.T
    # Unidentifiable shares make the matrix singular; the ridge is too small to affect other shares.
    curved[np.diag_indices_from(curved)] += 1e-11 * np.trace(curved) / len(curved)
    root = np.linalg.cholesky(curved)
    model = np.linalg.solve(root, curved @ p + slope)
    step = optimize.nnls(root.T, model)[0] - p
    current = _objective(Q, rates, p)
    # Backtracking: far from the optimum the full step may lower the likelihood.
    for halvings in range(30):
        nearer = p + step / 2**halvings
        nearer = np.maximum(nearer, 0.0) / nearer.sum()
        if _objective(Q, rates, nearer) > current:
            return np.asarray(nearer, dtype=np.float64)
    # rounding: near the optimum the objective is flat in floats, but the gap may still improve
    nearer = np.maximum(p + step, 0.0)
    nearer /= nearer.sum()
    return nearer if _gap(Q, rates, nearer) < _gap(Q, rates, p) else None
