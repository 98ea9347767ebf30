# SPDX-License-Identifier: Apache-2.0
"""The mechanism whose largest variance over plausible truths is least, with its proof.

As in `generation`, but the price of a column depends on the least favourable mixture q̄ of the truths, and that moves:
(1) the saddle point over the present columns gives θ, the weights π and ν (2) the base at q̄ = Σ π_i q_i prices columns
and proves a bound at these weights (3) until value and bound meet, no column is left, or time is up.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.base import Base
from frankly_server.design.variance.criteria import RESERVED
from frankly_server.design.variance.generation import NEGLIGIBLE, Generated, Master, inverse_times, moments, not_solved
from frankly_server.design.variance.objective import Objective, Prices
from frankly_server.design.variance.pricing import Pricer, pricer_for
from frankly_server.design.variance.proof import Certificate, proven, relaxed
from frankly_server.design.variance.reports import balanced
from frankly_server.design.variance.saddle import SaddlePoint, saddle_point
from frankly_server.design.variance.truths import Truths, WorstTruth

_ROUNDS = 200
_WITHIN = 0.5
_LEAST_WEIGHT = 1e-9
"""Every truth keeps some weight, so that the decoder's prior has mass on every answer."""

BaseAt = Callable[[FloatArray], Base]
"""The base of the cone, its columns scaled to q̄·v = 1, for a distribution q̄ of shape (a,); its `prior` may be q̄ rounded
to 1e-12."""


@dataclass(frozen=True)
class Minimax:
    """The best mechanism found, its columns scaled to q̄·v = 1.

    made : value and bound are the largest variance over the truths; the decoder is the one for q̄. weights : π, shape
    (m,). decoder_prior : q̄ = Σ π_i q_i as the base at it has it, shape (a,).
    """

    made: Generated
    weights: FloatArray
    decoder_prior: FloatArray


@dataclass(frozen=True)
class _Round:
    """The saddle point over the present columns; V and θ scaled to q̄·v = 1."""

    base: Base
    V: FloatArray
    theta: FloatArray
    pi: FloatArray
    value: float
    prices: Prices


def least_variance_over(
    base_at: BaseAt, W: FloatArray, truths: Truths, starts: FloatArray | None = None, limits: Limits | None = None
) -> Minimax:
    """Minimise, over mechanisms and unbiased decoders, the largest total variance of W·q over the plausible truths q.

    Parameters
    ----------
    W : shape (t, a). starts : columns of the cone to begin with, shape (k, a), of any scale.

    Raises
    ------
    InvalidInput(optimiser_limit) where the targets cannot be estimated, or the numbers are too extreme.
    """
    limits = limits or Limits()
    centre = truths.points.mean(axis=0)
    master = Master(base_at(centre), None if starts is None else starts / (starts @ centre)[:, None])
    now = _saddle(master, base_at, W, truths, np.full(len(truths.points), 1 / len(truths.points)))
    best: tuple[float, Certificate | None] = (-np.inf, None)
    for _ in range(_ROUNDS):
        pricer = pricer_for(now.base, limits)
        columns, most = pricer.price(now.prices, now.V[now.theta > NEGLIGIBLE])
        certificate = _certificate(pricer, now, most, limits)
        bound = certificate.bound - truths.sampling(W, now.pi)
        best = max(best, (bound, certificate), key=lambda one: one[0])
        limits.progress("variance", now.value, best[0])
        done = now.value - best[0] <= _WITHIN * limits.gap * now.value or limits.out_of_time()
        if done or not master.add(columns / (columns @ centre)[:, None]):
            break
        now = _saddle(master, base_at, W, truths, now.pi)
    kept = now.theta > NEGLIGIBLE
    if np.linalg.matrix_rank(now.V[kept]) < np.linalg.matrix_rank(now.V):
        kept = now.theta > 0
    assert best[1] is not None  # noqa: S101 - a first round was had
    made = Generated(now.V[kept], balanced(now.V[kept], now.theta[kept]), now.value, best[0], best[1])
    return Minimax(made, now.pi, now.base.prior)


def _saddle(master: Master, base_at: BaseAt, W: FloatArray, truths: Truths, near: FloatArray) -> _Round:
    V = master.V
    for share in RESERVED:
        reserved = master.reserved(share)
        payoff = WorstTruth(V, W, truths, reserved)
        for weights in (0.5 * near + 0.5 / len(near), np.full(len(near), 1 / len(near))):
            found = saddle_point(payoff, V, 1 - reserved @ V, master.start(), weights)
            if found.converged:
                return _at(master, base_at, W, truths, found, reserved)
    raise not_solved()


def _at(
    master: Master, base_at: BaseAt, W: FloatArray, truths: Truths, found: SaddlePoint, reserved: FloatArray
) -> _Round:
    pi = np.maximum(found.weights, _LEAST_WEIGHT)
    pi = pi / pi.sum()
    base = base_at(pi @ truths.points)
    theta = master.keep(found.x + reserved)
    mass = master.V @ base.prior
    V, theta = master.V / mass[:, None], theta * mass
    Z = inverse_times(moments(V, theta), W)
    squares = V.T @ (theta * np.sum((V @ Z) ** 2, axis=1))  # E[|d|²|x]
    prices = Prices(Objective(W, base.prior), Z, found.dual)
    return _Round(base, V, theta, pi, truths.largest(squares, W), prices)


def _certificate(pricer: Pricer, now: _Round, most: float, limits: Limits) -> Certificate:
    if pricer.exact:
        return proven(now.prices, most, pricer)
    return relaxed(now.base, now.prices, moments(now.V, now.theta), limits)
