# SPDX-License-Identifier: Apache-2.0
"""Mechanism that minimises the maximum variance over plausible truths, with a proof.

The method is that of `generation`, except that the price of a column depends on the least
favourable mixture q̄ of the truths q_i, which differs between rounds. (1) The saddle point over the
current columns gives their weights θ, the weights π of the truths, and the prices ν. (2) Pricing
over the base at q̄ = Σ π_i q_i finds columns and proves a bound at these π. (3) Repeat until value
and bound meet, no new column is found, or time is up.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from frankly_design.notions.truths import Truths, WorstTruth
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.generation import NEGLIGIBLE, VarianceOptimum
from frankly_design.optimum.variance.master import (
    RESERVED,
    VarianceMaster,
    inverse_times,
    moments,
    not_solved,
)
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.pricing import VariancePricer, pricer_for
from frankly_design.optimum.variance.proof import (
    VarianceCertificate,
    exact_certificate,
    relaxed_certificate,
)
from frankly_design.optimum.variance.reports import balanced
from frankly_design.optimum.variance.saddle import SaddlePoint, saddle_point
from frankly_design.tables.limits import Limits

_ROUNDS = 200
_GAP_SHARE = 0.5
_MIN_WEIGHT = 1e-9
"""Smallest weight of a truth, which gives every answer mass under the decoder's prior."""

BaseAt = Callable[[FloatArray], ColumnBase]
"""Base of the cone with columns scaled to q̄·v = 1, for a distribution q̄ of shape (a,).

Its `prior` may be q̄ rounded to 1e-12.
"""


@dataclass(frozen=True)
class Minimax:
    """Best mechanism found, with columns scaled to q̄·v = 1.

    optimum : the value is the largest variance over the truths with the decoder for q̄; the bound
        holds for all mechanisms and unbiased decoders.
    weights : π, shape (m,).
    decoder_prior : q̄ = Σ π_i q_i, as rounded by the base, shape (a,).
    """

    optimum: VarianceOptimum
    weights: FloatArray
    decoder_prior: FloatArray


@dataclass(frozen=True)
class _Round:
    """Saddle point over the current columns, with V and θ scaled to q̄·v = 1."""

    base: ColumnBase
    V: FloatArray
    theta: FloatArray
    pi: FloatArray
    value: float
    prices: Prices


def least_variance_over(
    base_at: BaseAt,
    W: FloatArray,
    truths: Truths,
    starts: FloatArray | None = None,
    limits: Limits | None = None,
) -> Minimax:
    """Minimise the largest total variance of W·q over plausible truths q.

    The minimum is over mechanisms and unbiased decoders.

    Parameters
    ----------
    W : shape (t, a).
    starts : initial columns of the cone, shape (k, a), of any scale.

    Raises
    ------
    InvalidInput(optimiser_limit) if the targets cannot be estimated, or the numbers are too
        extreme.
    """
    limits = limits or Limits()
    # The master scales its columns by this centre which, unlike q̄, is the same in all rounds.
    centre = truths.points.mean(axis=0)
    master = VarianceMaster(
        base_at(centre), None if starts is None else starts / (starts @ centre)[:, None], limits
    )
    current = _saddle(
        master, base_at, W, truths, np.full(len(truths.points), 1 / len(truths.points))
    )
    best: tuple[float, VarianceCertificate | None] = (-np.inf, None)
    for _ in range(_ROUNDS):
        pricer = pricer_for(current.base, limits)
        columns, largest_worth = pricer.price(current.prices, current.V[current.theta > NEGLIGIBLE])
        certificate = _certificate(pricer, current, largest_worth, limits)
        bound = certificate.bound - truths.sampling(W, current.pi)
        # Bounds of all rounds hold for the same problem, so only the best one is needed.
        best = max(best, (bound, certificate), key=lambda one: one[0])
        limits.progress("variance", current.value, best[0])
        converged = (
            current.value - best[0] <= _GAP_SHARE * limits.gap * current.value
            or limits.out_of_time()
        )
        if converged or not master.add(columns / (columns @ centre)[:, None]):
            break
        current = _saddle(master, base_at, W, truths, current.pi)
    used = current.theta > NEGLIGIBLE
    # Columns of negligible weight can still be needed to estimate every target.
    if np.linalg.matrix_rank(current.V[used]) < np.linalg.matrix_rank(current.V):
        used = current.theta > 0
    assert best[1] is not None  # noqa: S101 - the loop runs at least once
    optimum = VarianceOptimum(
        current.V[used],
        balanced(current.V[used], current.theta[used]),
        current.value,
        best[0],
        best[1],
    )
    return Minimax(optimum, current.pi, current.base.prior)


def _saddle(
    master: VarianceMaster,
    base_at: BaseAt,
    W: FloatArray,
    truths: Truths,
    start_weights: FloatArray,
) -> _Round:
    V = master.V
    for share in RESERVED:
        reserved = master.reserved(share)
        payoff = WorstTruth(V, W, truths, reserved)
        # The previous weights are usually close to the new ones; uniform weights are the fallback.
        for weights in (
            0.5 * start_weights + 0.5 / len(start_weights),
            np.full(len(start_weights), 1 / len(start_weights)),
        ):
            saddle = saddle_point(payoff, V, 1 - reserved @ V, master.start(), weights)
            if saddle.converged:
                return _at(master, base_at, W, truths, saddle, reserved)
    raise not_solved()


def _at(
    master: VarianceMaster,
    base_at: BaseAt,
    W: FloatArray,
    truths: Truths,
    saddle: SaddlePoint,
    reserved: FloatArray,
) -> _Round:
    # Positive weights keep the decoder defined for every answer.
    pi = np.maximum(saddle.weights, _MIN_WEIGHT)
    pi = pi / pi.sum()
    base = base_at(pi @ truths.points)
    theta = master.keep(saddle.x + reserved)
    mass = master.V @ base.prior
    V, theta = master.V / mass[:, None], theta * mass
    Z = inverse_times(moments(V, theta), W)
    squares = V.T @ (theta * np.sum((V @ Z) ** 2, axis=1))  # E[|d|²|x] of the decoder
    prices = Prices(Objective(W, base.prior), Z, saddle.dual)
    return _Round(base, V, theta, pi, truths.largest(squares, W), prices)


def _certificate(
    pricer: VariancePricer, current: _Round, largest_worth: float, limits: Limits
) -> VarianceCertificate:
    if pricer.exact:
        return exact_certificate(current.prices, largest_worth, pricer)
    return relaxed_certificate(
        current.base, current.prices, moments(current.V, current.theta), limits
    )
