# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of least variance: in total over the targets, or of the worst target."""

import numpy as np

from frankly_server.design.optimum.variance import symmetric
from frankly_server.design.optimum.variance.column_base import ColumnBase
from frankly_server.design.optimum.variance.generation import (
    RESERVED,
    VarianceMaster,
    VarianceMasterOptimum,
    VarianceOptimum,
    generate,
    inverse_times,
    moments,
    not_solved,
)
from frankly_server.design.optimum.variance.objective import Objective, Prices
from frankly_server.design.optimum.variance.pricing import pricer_for
from frankly_server.design.optimum.variance.saddle import saddle_point
from frankly_server.design.optimum.variance.worst_target import WorstTarget
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray


def least_variance(
    base: ColumnBase, W: FloatArray, starts: FloatArray | None = None, limits: Limits | None = None
) -> VarianceOptimum:
    """Minimise Σ_t [w_tᵀA(θ)⁻¹w_t − (w_t·p)²], the total variance at n = 1 and truth p.

    Parameters
    ----------
    W : shape (t, a), of any rank; the targets are W·p, hence the identity for all shares.
    starts : columns v of the base to begin with, shape (k, a), such as those of an explicit
        mechanism.

    Returns
    -------
    VarianceOptimum: value and bound are variances. `certificate.exact` is True if pricing covered
        every vertex.

    Raises
    ------
    InvalidInput(optimiser_limit) if the targets cannot be estimated, or the numbers are too
        extreme.
    """
    limits = limits or Limits()
    objective = Objective(W, base.prior)
    if symmetric.applies(base, objective):
        return symmetric.optimum(base, objective)
    pricer = pricer_for(base, limits)
    return generate(
        base, lambda master: master.solve(objective), limits, VarianceMaster(base, starts), pricer
    )


def least_worst_variance(
    base: ColumnBase, W: FloatArray, starts: FloatArray | None = None, limits: Limits | None = None
) -> VarianceOptimum:
    """Minimise max_t [w_tᵀA(θ)⁻¹w_t − (w_t·p)²]; arguments and result as for `least_variance`.

    The worst variance is at least every weighted mean of the variances. So the certificate is that
    of the total variance with targets √π_t·w_t, where π are the weights of a saddle point.
    """
    limits = limits or Limits()
    pricer = pricer_for(base, limits)
    return generate(
        base,
        lambda master: _worst_over(master, W, base.prior),
        limits,
        VarianceMaster(base, starts),
        pricer,
    )


def variances(A: FloatArray, W: FloatArray, prior: FloatArray) -> FloatArray:
    """Return w_tᵀA⁻¹w_t − (w_t·p)² for every target, shape (t,)."""
    return np.asarray(
        np.sum(W.T * inverse_times(A, W), axis=0) - (W @ prior) ** 2, dtype=np.float64
    )


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
