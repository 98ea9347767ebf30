# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood on the simplex, with a certificate of how close it is; and what it says of the fit (DESIGN §6).

The mean log-likelihood L(p) = Σ_y λ̂_y ln (Qp)_y is concave. Its gradient g_x = Σ_y λ̂_y Q(y|x)/(Qp)_y has the mean
Σ_x p_x g_x = 1, hence L(p*) − L(p) ≤ max_x g_x − 1: this gap, in nats per report, says when to stop and what is left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from frankly_server.estimate.kronecker import Kronecker, Law
from frankly_server.estimate.projection import onto_simplex

FloatArray = NDArray[np.float64]

GAP = 1e-9
MAX_STEPS = 5_000


@dataclass(frozen=True, slots=True)
class Likeliest:
    """shares : on the simplex. gap : nats per report that no other shares can exceed. closed_form : not iterated."""

    shares: FloatArray
    gap: float
    closed_form: bool

    @property
    def converged(self) -> bool:
        """Whether the gap is within 1e-9 nats per report."""
        return self.gap <= GAP


def likeliest(Q: Law, counts: FloatArray, unbiased: FloatArray | None) -> Likeliest:
    """Return the maximum-likelihood shares from counts per report; Q has row = truth, unbiased are W = I, if known.

    Closed forms, where valid, are tried first and certified by their gap: the unbiased shares where a square mechanism
    leaves them on the simplex [Thesis (6.5), (6.34) with its condition N₁ ≤ N_j]; for two answers these clamped; for
    randomised response with equal chances off the diagonal, a share of zero for the answers reported least often.
    Otherwise expectation-maximisation from the projected shares, in squared steps [Varadhan and Roland 2008].
    """
    rates = counts / counts.sum()
    # Columns that nobody sent only cost time; taking some out would take a product's structure away.
    sent, how_often = (Q, rates) if isinstance(Q, Kronecker) else (Q[:, rates > 0], rates[rates > 0])
    for p in _closed_forms(Q, rates, unbiased):
        gap = _gap(sent, how_often, p)
        if gap <= GAP:
            return Likeliest(p, gap, closed_form=True)
    answers = len(Q)
    start = np.full(answers, 1 / answers) if unbiased is None else onto_simplex(unbiased)
    p = 0.9 * start + 0.1 / answers  # EM never leaves zero
    return _iterated(sent, how_often, p)


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


def _iterated(Q: Law, rates: FloatArray, p: FloatArray) -> Likeliest:
    """Run EM steps p ← p·g, two at a time, extrapolated wherever that does not lose likelihood."""
    for _ in range(MAX_STEPS):
        g = _gradient(Q, rates, p)
        gap = max(0.0, float(g.max()) - 1)
        if gap <= GAP:
            return Likeliest(p, gap, closed_form=False)
        once = p * g
        twice = once * _gradient(Q, rates, once)
        first, second = once - p, twice - 2 * once + p
        length = float(np.linalg.norm(second))
        far = p + 2 * (s := float(np.linalg.norm(first)) / length) * first + s**2 * second if length > 0 else twice
        far = np.maximum(far, 1e-3 * twice)  # stays inside, but for shares that go to zero, which go there fast
        far /= far.sum()
        far = far * _gradient(Q, rates, far)
        p = far if _objective(Q, rates, far) >= _objective(Q, rates, twice) else twice
    return Likeliest(p, _gap(Q, rates, p), closed_form=False)
