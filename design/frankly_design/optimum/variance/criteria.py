# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of least variance: the total over the targets, or that of the worst target."""

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance import many_answers, symmetric
from frankly_design.optimum.variance.column_base import ColumnBase, Listed
from frankly_design.optimum.variance.generation import VarianceOptimum, generate
from frankly_design.optimum.variance.master import (
    RESERVED,
    VarianceMaster,
    VarianceMasterOptimum,
    inverse_times,
    moments,
    not_solved,
)
from frankly_design.optimum.variance.objective import Objective, Prices, centred
from frankly_design.optimum.variance.patterns import FEW_ANSWERS, intervals
from frankly_design.optimum.variance.pricing import pricer_for
from frankly_design.optimum.variance.saddle import saddle_point
from frankly_design.optimum.variance.worst_target import WorstTarget
from frankly_design.tables.limits import Limits

_MOST_INTERVALS = 64
"""Largest number of answers for which a search for one target starts with all intervals."""


def least_variance(
    base: ColumnBase, W: FloatArray, starts: FloatArray | None = None, limits: Limits | None = None
) -> VarianceOptimum:
    """Minimise Σ_t [w_tᵀA(θ)⁻¹w_t − (w_t·p)²], the total variance at n = 1 and truth p.

    Parameters
    ----------
    W : shape (t, a), of any rank; the targets are W·p, so the identity means all shares.
    starts : initial columns v of the base, shape (k, a), such as those of an explicit mechanism.

    Returns
    -------
    VarianceOptimum, whose value and bound are variances. `certificate.exact` is True if pricing
    covered every vertex.

    Raises
    ------
    InvalidInput(optimiser_limit) if the targets cannot be estimated, or the numbers are too
        extreme.
    """
    limits = limits or Limits()
    objective = Objective(W, base.prior)
    if symmetric.applies(base, objective):
        return symmetric.optimum(base, objective)
    objective = Objective(centred(many_answers.complete(W), base.prior), base.prior)
    if many_answers.applies(base, objective):
        return many_answers.optimum(base, objective, limits)
    if len(W) == 1 and base.ratio and FEW_ANSWERS < base.answers <= _MOST_INTERVALS:
        # The optimum over the intervals, which is nearly always the optimum over all columns.
        listed = Listed(intervals(W[0], base.prior, base.ratio), base.prior)
        known = least_variance(listed, W, None, limits).columns
        starts = known if starts is None else np.vstack([starts, known])
    pricer = pricer_for(base, limits, targets=len(W))
    return generate(
        base,
        lambda master: master.solve(objective),
        limits,
        VarianceMaster(base, starts, limits),
        pricer,
    )


def least_worst_variance(
    base: ColumnBase, W: FloatArray, starts: FloatArray | None = None, limits: Limits | None = None
) -> VarianceOptimum:
    """Minimise max_t [w_tᵀA(θ)⁻¹w_t − (w_t·p)²]; arguments and result as for `least_variance`.

    The worst variance is at least any weighted mean of the variances. So the certificate is that
    of the total variance with targets √π_t·w_t, where π are the weights at a saddle point.
    """
    limits, W = limits or Limits(), centred(W, base.prior)
    pricer = pricer_for(base, limits)
    return generate(
        base,
        lambda master: _worst_over(master, W, base.prior),
        limits,
        VarianceMaster(base, starts, limits),
        pricer,
    )


def variances(A: FloatArray, W: FloatArray, prior: FloatArray) -> FloatArray:
    """Return w_tᵀA⁺w_t − (w_t·p)² for every target, shape (t,); all targets must be estimable.

    A may be singular if the targets have low rank, because reports that no target needs are
    dropped.
    """
    if np.linalg.matrix_rank(W) == len(prior):
        Z = inverse_times(A, W)
    else:
        Z = np.linalg.lstsq(A, W.T, rcond=1e-12)[0].astype(np.float64)
    return np.asarray(np.sum(W.T * Z, axis=0) - (W @ prior) ** 2, dtype=np.float64)


def _worst_over(master: VarianceMaster, W: FloatArray, prior: FloatArray) -> VarianceMasterOptimum:
    V, constants = master.V, (W @ prior) ** 2
    for share in RESERVED:
        reserved = master.reserved(share)
        payoff = WorstTarget(V, W, constants, moments(V, reserved))
        saddle = saddle_point(
            payoff, V, 1 - reserved @ V, master.start(), np.full(len(W), 1 / len(W))
        )
        if saddle.converged:
            break
    else:
        raise not_solved()
    theta = master.keep(saddle.x + reserved)
    A = moments(V, theta)
    value = float(np.max(variances(A, W, prior)))
    # The mean of the variances with weights π is the total variance of the targets √π_t·w_t.
    weighted = np.sqrt(saddle.weights)[:, None] * W
    prices = Prices(Objective(weighted, prior), inverse_times(A, weighted), saddle.dual)
    return VarianceMasterOptimum(theta, value, prices, float(saddle.weights @ constants), value)
