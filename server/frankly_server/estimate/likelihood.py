# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood on the simplex, with a certificate of how close it is; and what it says of the fit (DESIGN §6).

The mean log-likelihood L(p) = Σ_y λ̂_y ln (Qp)_y is concave. Its gradient g_x = Σ_y λ̂_y Q(y|x)/(Qp)_y has the mean
Σ_x p_x g_x = 1, hence L(p*) − L(p) ≤ max_x g_x − 1: this gap, in nats per report, says when to stop and what is left.
Squared EM steps go most of the way; Newton steps, which converge fast where the likelihood is flat, finish.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from frankly_server.estimate.kronecker import Kronecker, Law
from frankly_server.estimate.projection import onto_simplex

FloatArray = NDArray[np.float64]

GAP = 1e-3
"""Nats of log-likelihood over all reports that may be left; a statistic of χ² then is off by 2e-3 at most."""
_SOUGHT = 1e-9
"""Nats per report that are sought at small n, where it costs nothing."""
_ROUNDING = 1e-13
"""Nats per report that floats cannot tell from 0."""
_EM_STEPS, _NEWTON_STEPS = 20, 100
_MAX_STEPS = 5_000
_MOST_CURVED = 1 << 27
"""Operations of a matrix of second derivatives; beyond that, EM steps alone are faster."""


@dataclass(frozen=True, slots=True)
class Likeliest:
    """shares : on the simplex. gap : nats over all reports by which other shares can be likelier, at most.

    closed_form : not iterated. converged : the gap is within 1e-3, or within rounding.
    """

    shares: FloatArray
    gap: float
    closed_form: bool
    converged: bool


def likeliest(Q: Law, counts: FloatArray, unbiased: FloatArray | None) -> Likeliest:
    """Return the maximum-likelihood shares from counts per report; Q has row = truth, unbiased are W = I, if known.

    Closed forms, where valid, are tried first and certified by their gap: the unbiased shares where a square mechanism
    leaves them on the simplex [Thesis (6.5), (6.34) with its condition N₁ ≤ N_j]; for two answers these clamped; for
    randomised response with equal chances off the diagonal, a share of zero for the answers reported least often.
    Otherwise expectation-maximisation from the projected shares, in squared steps [Varadhan and Roland 2008], and
    Newton steps [Kim et al. 2020].
    """
    n = float(counts.sum())
    rates, enough = counts / n, max(min(GAP / n, _SOUGHT), _ROUNDING)
    # Columns that nobody sent only cost time; taking some out would take a product's structure away.
    sent, how_often = (Q, rates) if isinstance(Q, Kronecker) else (Q[:, rates > 0], rates[rates > 0])
    for p in _closed_forms(Q, rates, unbiased):
        gap = _gap(sent, how_often, p)
        if gap <= enough:
            return Likeliest(p, n * gap, closed_form=True, converged=True)
    answers = len(Q)
    start = np.full(answers, 1 / answers) if unbiased is None else onto_simplex(unbiased)
    p = 0.9 * start + 0.1 / answers  # EM never leaves zero
    p, gap = _iterated(sent, how_often, p, enough)
    return Likeliest(p, n * gap, closed_form=False, converged=gap <= max(GAP / n, _ROUNDING))


def fit_p(Q: Law, counts: FloatArray, best: FloatArray, rank: int) -> float | None:
    """Return the p-value of Pearson's test of the counts against the mechanism at its likeliest shares.

    A mechanism of rank r leaves b − r dimensions of the frequencies that no shares reach, and every share at zero one
    more, into which frequencies outside {Qp} were moved; given which shares are zero the statistic is χ² with as many
    degrees of freedom (the χ̄² law of order-restricted inference, one face at a time). None without any. Reports
    expected less than once are counted together, so that a rare one does not alarm by itself.
    """
    n = counts.sum()
    expected = n * (best @ Q)
    freedom = len(counts) - rank + min(int(np.sum(best < 1e-9)), rank - 1)
    rare = expected < 1
    seen = np.append(counts[~rare], counts[rare].sum())
    mean = np.append(expected[~rare], expected[rare].sum())
    freedom = min(freedom, int(np.sum(mean > 0)) - 1)
    if freedom < 1:
        return None
    if np.any((mean <= 0) & (seen > 0)):
        return 0.0
    used = mean > 0
    statistic = float(np.sum((seen[used] - mean[used]) ** 2 / mean[used]))
    return float(stats.chi2.sf(statistic, freedom))


def fisher_bound(Q: FloatArray, W: FloatArray, p: FloatArray) -> FloatArray | None:
    """Return the Cramér-Rao bound on each target's variance at n = 1 and shares p; None if Q is deficient there.

    The information in the shares, with their sum free, is QᵀD⁻¹Q; its inverse less p pᵀ is that of shares that sum to
    one (usual orientation; DESIGN §7, `variance`).
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
    found: list[FloatArray] = []
    if unbiased is not None and Q.shape[0] == Q.shape[1]:
        if unbiased.min() >= 0:
            found.append(unbiased / unbiased.sum())
        elif len(Q) == 2:
            found.append(onto_simplex(unbiased))
        if not isinstance(Q, Kronecker):
            found += _even_response(Q, rates)
    return found


def _even_response(Q: FloatArray, rates: FloatArray) -> list[FloatArray]:
    """Return the likeliest shares, by themselves, of a table with equal chances off the diagonal; else nothing."""
    off = Q[~np.eye(len(Q), dtype=bool)]
    if np.ptp(off) <= 1e-12 and np.ptp(np.diagonal(Q)) <= 1e-12 and Q[0, 0] > off[0]:
        return [_randomised_response(float(Q[0, 0]), float(off[0]), rates)]
    return []


def _randomised_response(on: float, off: float, rates: FloatArray) -> FloatArray:
    """Return max(off, rates/ν) on the frequencies, ν so that they sum to one; the answers at `off` have share zero."""
    descending = np.sort(rates)[::-1]
    held, total = np.arange(1, len(rates) + 1), np.cumsum(descending)
    # With the first j answers above: Σ rates/ν + (a − j) off = 1.
    level = total / np.maximum(1 - (len(rates) - held) * off, 1e-300)
    positive = int(np.flatnonzero(descending / level > off)[-1]) if np.any(descending / level > off) else 0
    p = np.maximum(rates / level[positive] - off, 0.0) / (on - off)
    return np.asarray(p / p.sum(), dtype=np.float64)


def _gradient(Q: Law, rates: FloatArray, p: FloatArray) -> FloatArray:
    return np.asarray(Q @ (rates / np.maximum(p @ Q, 1e-300)), dtype=np.float64)


def _gap(Q: Law, rates: FloatArray, p: FloatArray) -> float:
    # rounding: at the optimum the largest entry is 1 up to floats
    return max(0.0, float(_gradient(Q, rates, p).max()) - 1)


def _objective(Q: Law, rates: FloatArray, p: FloatArray) -> float:
    return float(rates @ np.log(np.maximum(p @ Q, 1e-300)))


def _iterated(Q: Law, rates: FloatArray, p: FloatArray, enough: float) -> tuple[FloatArray, float]:
    """Return shares and their gap, which is at most `enough` unless the steps were used up."""
    if Q.shape[0] ** 2 * Q.shape[1] > _MOST_CURVED:
        return _expectation_maximisation(Q, rates, p, enough, _MAX_STEPS)
    dense = Q.dense if isinstance(Q, Kronecker) else Q
    p, gap = _expectation_maximisation(dense, rates, p, enough, _EM_STEPS)
    for _ in range(_NEWTON_STEPS):
        if gap <= enough or (nearer := _newton(dense, rates, p)) is None:
            break
        p, gap = nearer, _gap(dense, rates, nearer)
    return p, gap


def _expectation_maximisation(
    Q: Law, rates: FloatArray, p: FloatArray, enough: float, steps: int
) -> tuple[FloatArray, float]:
    """Run EM steps p ← p·g, two at a time, extrapolated wherever that does not lose likelihood."""
    for _ in range(steps):
        g = _gradient(Q, rates, p)
        gap = max(0.0, float(g.max()) - 1)
        if gap <= enough:
            return p, gap
        once = p * g
        twice = once * _gradient(Q, rates, once)
        first, second = once - p, twice - 2 * once + p
        length = float(np.linalg.norm(second))
        far = p + 2 * (s := float(np.linalg.norm(first)) / length) * first + s**2 * second if length > 0 else twice
        far = np.maximum(far, 1e-3 * twice)  # stays inside, but for shares that go to zero, which go there fast
        far /= far.sum()
        far = far * _gradient(Q, rates, far)
        p = far if _objective(Q, rates, far) >= _objective(Q, rates, twice) else twice
    return p, _gap(Q, rates, p)


def _newton(Q: FloatArray, rates: FloatArray, p: FloatArray) -> FloatArray | None:
    """Return shares after a Newton step on L(p) − Σp over p ≥ 0, which is largest at Σp = 1; None if stuck.

    With the gradient g and H = RᵀR minus the second derivatives, the quadratic model at p is largest where
    |Rq − R⁻ᵀ(Hp + g − 1)| is least over q ≥ 0 [Kim et al. 2020].
    """
    slope = _gradient(Q, rates, p) - 1
    scaled = Q * (np.sqrt(rates) / np.maximum(p @ Q, 1e-300))
    curved = scaled @ scaled.T
    # Shares that cannot be told apart make it singular; the ridge is far below what moves any other.
    curved[np.diag_indices_from(curved)] += 1e-11 * np.trace(curved) / len(curved)
    root = np.linalg.cholesky(curved)
    model = np.linalg.solve(root, curved @ p + slope)
    step = optimize.nnls(root.T, model)[0] - p
    here = _objective(Q, rates, p)
    for halvings in range(30):
        nearer = p + step / 2**halvings
        nearer = np.maximum(nearer, 0.0) / nearer.sum()
        if _objective(Q, rates, nearer) > here:
            return np.asarray(nearer, dtype=np.float64)
    # rounding: next to the optimum the objective cannot tell; the gradient may
    nearer = np.maximum(p + step, 0.0)
    nearer /= nearer.sum()
    return nearer if _gap(Q, rates, nearer) < _gap(Q, rates, p) else None
