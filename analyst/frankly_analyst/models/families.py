# SPDX-License-Identifier: Apache-2.0
"""Families: shares of the states from linear predictors, with their derivatives.

A family maps predictors η, shape (H, E), to shares π, shape (H, S), and ∂π/∂η, shape (H, E, S). Its curvature
is Σ_s v_s ∂²π_s/∂η∂η, shape (H, E, E), for any v, shape (H, S).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from frankly_analyst.models.sample import FloatArray


@dataclass(frozen=True)
class Family:
    """Shares with their first derivatives, from η; and their curvature, from η and v."""

    shares: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    curvature: Callable[[FloatArray, FloatArray], FloatArray]

    def __call__(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return shares and first derivatives."""
        return self.shares(eta)


def _softmax(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return softmax shares; the first state is the reference. One predictor: the logistic model."""
    full = np.concatenate([np.zeros((len(eta), 1)), eta], axis=1)
    odds = np.exp(full - full.max(axis=1, keepdims=True))
    pi = odds / odds.sum(axis=1, keepdims=True)
    chosen = pi[:, 1:]
    steps = -chosen[:, :, None] * pi[:, None, :]
    e = np.arange(eta.shape[1])
    steps[:, e, e + 1] += chosen
    return pi, steps


def _softmax_curvature(eta: FloatArray, v: FloatArray) -> FloatArray:
    """Return the second derivatives of Σ π_s v_s; with slopes g they are δ_ef g_e − π_e g_f − π_f g_e."""
    pi, steps = _softmax(eta)
    slopes = np.einsum("hes,hs->he", steps, v)
    crossed = pi[:, 1:, None] * slopes[:, None, :]
    diagonal = np.eye(eta.shape[1]) * slopes[:, None, :]
    return np.asarray(diagonal - crossed - crossed.transpose(0, 2, 1))


multinomial = Family(_softmax, _softmax_curvature)
"""Softmax shares; the first state is the reference."""


def _cumulative(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return shares of proportional odds: P(state ≤ j) = 1/(1 + exp(−η_j)); negative if η decreases."""
    below = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
    ends = np.concatenate([np.zeros((len(eta), 1)), below, np.ones((len(eta), 1))], axis=1)
    slope = below * (1 - below)
    e = np.arange(eta.shape[1])
    steps = np.zeros((*eta.shape, eta.shape[1] + 1))
    steps[:, e, e] = slope
    steps[:, e, e + 1] = -slope
    return np.diff(ends, axis=1), steps


def _cumulative_curvature(eta: FloatArray, v: FloatArray) -> FloatArray:
    """Return the second derivatives of Σ π_s v_s, a sum over thresholds of F(η_e)(v_e − v_{e+1})."""
    below = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
    second = below * (1 - below) * (1 - 2 * below) * -np.diff(v, axis=1)
    return np.asarray(np.eye(eta.shape[1]) * second[:, None, :])


ordinal = Family(_cumulative, _cumulative_curvature)
"""Proportional odds."""


def _latent(
    eta: FloatArray, outcome: Family, predictors: int, cells: int
) -> tuple[FloatArray, FloatArray]:
    """Return shares of (covariate, outcome), outcome fastest, for a covariate that is itself noisy.

    The first `predictors` × `cells` predictors belong to the outcome given each cell of the
    covariates; the others belong to the multinomial law of the covariates' cells.
    """
    conditional = [outcome(eta[:, z * predictors : (z + 1) * predictors]) for z in range(cells)]
    tau, tau_steps = multinomial(eta[:, predictors * cells :])
    pi = np.stack([share for share, _ in conditional], axis=1)
    steps = np.zeros((*eta.shape, *pi.shape[1:]))
    for z, (_, slopes) in enumerate(conditional):
        steps[:, z * predictors : (z + 1) * predictors, z] = slopes * tau[:, z, None, None]
    steps[:, predictors * cells :] = tau_steps[:, :, :, None] * pi[:, None]
    joint = pi * tau[:, :, None]
    return joint.reshape(len(eta), -1), steps.reshape(*eta.shape, -1)


def _latent_curvature(
    eta: FloatArray, v: FloatArray, outcome: Family, predictors: int, cells: int
) -> FloatArray:
    """Return the second derivatives of Σ_z τ_z a_z with a_z = Σ_y π_y|z v_zy."""
    total = np.zeros((*eta.shape, eta.shape[1]))
    tau, tau_steps = multinomial(eta[:, predictors * cells :])
    within = v.reshape(len(v), cells, -1)
    means = np.empty_like(tau)
    rest = slice(predictors * cells, None)
    for z in range(cells):
        at = slice(z * predictors, (z + 1) * predictors)
        pi, steps = outcome(eta[:, at])
        means[:, z] = (pi * within[:, z]).sum(axis=1)
        total[:, at, at] = tau[:, z, None, None] * outcome.curvature(eta[:, at], within[:, z])
        slopes = np.einsum("hes,hs->he", steps, within[:, z])
        total[:, at, rest] = slopes[:, :, None] * tau_steps[:, None, :, z]
        total[:, rest, at] = total[:, at, rest].transpose(0, 2, 1)
    total[:, rest, rest] = multinomial.curvature(eta[:, rest], means)
    return total


def latent_family(outcome: Family, predictors: int, cells: int) -> Family:
    """Return the family of an outcome given noisy covariates with this number of cells."""
    return Family(
        partial(_latent, outcome=outcome, predictors=predictors, cells=cells),
        partial(_latent_curvature, outcome=outcome, predictors=predictors, cells=cells),
    )
