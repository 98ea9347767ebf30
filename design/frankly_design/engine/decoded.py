# SPDX-License-Identifier: Apache-2.0
"""Variance of the published estimates at any true distribution of the answers.

The design prior fixes the decoder, but the truth may differ from the prior. The scores d of a
report are unbiased: given answer x, their mean is column x of the targets W. So the total variance
at n = 1 and truth q is c·q − |Wq|² with c_x = E[|d|²|x] (docs/maths/variance.md, claim 13).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from frankly_protocol.mechanisms import Mechanism

from frankly_design.kinds.registry import kind_of
from frankly_design.notions.truths import Truths
from frankly_design.numeric.arrays import FloatArray

# Eigenvalues below this share of the largest are treated as zero.
_RANK_TOLERANCE = 1e-11
# A target is estimable if the scores reproduce it to this relative error.
_BIAS_TOLERANCE = 1e-6


def total_variance(mechanism: Mechanism, decoder_prior: Sequence[int], truth: FloatArray) -> float:
    """Return the total variance of the estimated shares at n = 1 if the true shares are `truth`.

    truth : shape (answers,).

    decoder_prior : counts of the answers, which determine the published decoder.

    Returns inf if some share cannot be estimated, nan if the table is too large to build.
    """
    known = kind_of(mechanism).variance_at(truth)
    if known is not None:
        return known
    squares = mean_squares(mechanism, decoder_prior)
    return float("inf") if squares is None else float(squares.sum(axis=0) @ truth - truth @ truth)


def mean_squares(
    mechanism: Mechanism, decoder_prior: Sequence[int], targets: FloatArray | None = None
) -> FloatArray | None:
    """Return E[d_t²|x] for the scores d of the published decoder, shape (t, answers).

    mechanism : a table or a product; sets are decoded from counts of the answers instead.

    targets : W, shape (t, answers); None for the shares.

    Returns None if some target cannot be estimated, and an array of nan if the table is too large
    to build.
    """
    prior = np.array(decoder_prior, dtype=np.float64)
    factors = kind_of(mechanism).tables(prior)
    if not factors:
        return np.full(
            (mechanism.answers if targets is None else len(targets), mechanism.answers), np.nan
        )
    tables = [np.array([[w / sum(row) for w in row] for row in rows]) for rows, _ in factors]
    Q = reduce(_kron, tables)
    scores = reduce(
        _kron, [_decoder(table, share) for table, (_, share) in zip(tables, factors, strict=True)]
    )
    W = np.eye(len(Q)) if targets is None else targets
    scores = W @ scores
    # The pseudoinverse gives scores for every target; those of unestimable targets are biased.
    if np.abs(scores @ Q.T - W).max() > _BIAS_TOLERANCE * np.abs(W).max():
        return None
    return np.asarray(scores**2 @ Q.T, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class AtTruths:
    """Variances at n = 1 with the published decoder.

    largest : the largest total variance of the targets over all plausible truths.
    variances : the total variance of the targets at each truth; empty for a contamination ball.
    target_variances : variance of each target at the design prior.
    variance : total variance of the shares at the design prior.
    """

    largest: float
    variances: tuple[float, ...]
    target_variances: tuple[float, ...]
    variance: float


def at_truths(
    mechanism: Mechanism,
    decoder_prior: Sequence[int],
    truths: Truths,
    targets: FloatArray,
    prior: FloatArray,
) -> AtTruths:
    """Return a table's variances at plausible truths and at `prior`, shape (answers,)."""
    squares = mean_squares(mechanism, decoder_prior, targets)
    if squares is None:
        infinite = float("inf")
        return AtTruths(
            infinite, (infinite,) * len(truths.points), (infinite,) * len(targets), infinite
        )
    total = squares.sum(axis=0)
    return AtTruths(
        largest=truths.largest(total, targets),
        variances=() if truths.mixed else tuple(map(float, truths.variances(total, targets))),
        target_variances=tuple(map(float, squares @ prior - (targets @ prior) ** 2)),
        variance=total_variance(mechanism, decoder_prior, prior),
    )


def _decoder(Q: FloatArray, prior: FloatArray) -> FloatArray:
    """Return (Q D₀⁻¹ Qᵀ)⁺ Q D₀⁻¹, shape (answers, reports), row = truth in Q.

    It is unbiased for every estimable target. D₀ is the diagonal of the reports' probabilities
    under the prior, or under equal shares if the prior leaves some report without mass.
    """
    # `kinds.decoder` makes the same choice, so these are the variances of published estimates.
    masses = prior @ Q
    weighted = Q / (masses if np.all(masses > 0) else Q.sum(axis=0))
    gram = weighted @ Q.T
    # Scaled to a unit diagonal, so that the relative tolerance of the rank also suits rare answers.
    size = np.sqrt(np.diag(gram))
    scale = np.outer(size, size)
    inverse = np.linalg.pinv(gram / scale, rcond=_RANK_TOLERANCE, hermitian=True) / scale
    return np.asarray(inverse @ weighted, dtype=np.float64)


def _kron(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.kron(left, right), dtype=np.float64)
