# SPDX-License-Identifier: Apache-2.0
"""Predictions and average marginal effects with margins by the delta method.

An average marginal effect is the change of a share, averaged over the strata by their (weighted) reports:
for a number, the derivative; for a category, the difference from the first category. The averages
are over the actual respondents; the numbers of respondents are not treated as random.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.outcome import LINEAR, Outcome
from frankly_analyst.models.plot import Dot, dot_plot
from frankly_analyst.models.sample import FloatArray
from frankly_analyst.models.weighted import aligned_rows

if TYPE_CHECKING:
    from frankly_analyst.models.model import Model

_H = 1e-4
"""Half the step of a central difference, relative to the covariate's spread; error about 1e-9."""


@dataclass(frozen=True)
class Effect:
    """One effect or prediction with its interval; a share of 1 is 100%."""

    answer: str
    at: str
    estimate: float
    se: float
    low: float
    high: float


@dataclass(frozen=True)
class Effects:
    """Average marginal effects, or predictions."""

    title: str
    rows: tuple[Effect, ...]
    covariance: FloatArray
    level: float
    shares: bool

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per effect."""
        return pd.DataFrame([vars(row) for row in self.rows])

    def plot(self) -> str:
        """Return dots with whiskers as SVG text, shares in percent."""
        dots = [Dot(_name(row), row.estimate, row.low, row.high) for row in self.rows]
        return dot_plot(self.title, dots, 100 if self.shares else 1, "%" if self.shares else "")

    def _table(self) -> list[list[str]]:
        factor, unit = (100, "%") if self.shares else (1, "")
        return [
            [
                _name(row),
                *(
                    f"{v * factor:.4g}{unit}".replace("-", "−")
                    for v in (row.estimate, row.se, row.low, row.high)
                ),
            ]
            for row in self.rows
        ]

    def __str__(self) -> str:
        head = ["", "estimate", "se", "low", "high"]
        title = f"{self.title}, level {self.level:g}"
        return "\n".join([title, *aligned_rows([head, *self._table()])])

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>"
            for row in self._table()
        )
        return (
            f"<table><caption>{escape(self.title)}</caption><tr><th></th><th>estimate</th><th>se</th><th>low</th>"
            f"<th>high</th></tr>{rows}</table>"
        )


def predict(model: "Model", at: Sequence[Mapping[str, str | float]]) -> Effects:
    """Return the predicted share of every answer (or the mean) at each row of covariates.

    Intervals of shares are symmetric on the log-odds scale, so that they stay between 0 and 1.

    Raises InvalidRequest(targets_invalid) for rows that lack a covariate or have an unknown value.
    """
    if not at or isinstance(at, Mapping) or not all(isinstance(row, Mapping) for row in at):
        raise InvalidRequest(
            "is a list of at least one row: [{'region': 'north'}]",
            code="targets_invalid",
            field="at",
        )
    frame = _typed(model, pd.DataFrame([dict(row) for row in at]))
    X = model.rows.design.at(frame)
    shares, slopes = _shares(model.outcome, model.beta, X, model.rows.design.names)
    if not np.isfinite(X).all() or len(X) != len(frame):
        raise InvalidRequest("has a missing or unknown value", code="targets_invalid", field="at")
    labels = [" ".join(f"{k}={v}" for k, v in row.items()) or "all" for row in at]
    answers = model.outcome.answers or ("mean",)
    flat = slopes.reshape(-1, slopes.shape[-1])
    V = flat @ model.covariance @ flat.T
    z = NormalDist().inv_cdf((1 + model.level) / 2)
    rows = []
    for i, (label, answer) in enumerate((label, answer) for label in labels for answer in answers):
        value, se = float(shares.reshape(-1)[i]), math.sqrt(max(float(V[i, i]), 0.0))
        low, high = _ends(value, se, z, shares=model.outcome.kind != LINEAR)
        rows.append(Effect(answer, label, value, se, low, high))
    return Effects(
        f"predictions of {model.formula}", tuple(rows), V, model.level, model.outcome.kind != LINEAR
    )


def average(model: "Model", variable: str) -> Effects:
    """Return the average marginal effect of a covariate on the share of every answer (or on the mean).

    Raises InvalidRequest(targets_invalid) for a variable that the formula does not name.
    """
    frame, weights = _population(model)
    if variable not in frame.columns:
        raise InvalidRequest(
            f"{variable} is not a covariate of this model: it has {', '.join(frame.columns) or 'none'}",
            code="targets_invalid",
            field="variable",
        )
    names = model.rows.design.names
    found, gradients, labels = [], [], []
    for label, low, high, scale in _contrasts(model, frame, variable):
        ends = [
            _shares(model.outcome, model.beta, model.rows.design.at(part), names)
            for part in (low, high)
        ]
        found.append(weights @ (ends[1][0] - ends[0][0]) / scale)
        gradients.append(np.tensordot(weights, ends[1][1] - ends[0][1], axes=1) / scale)
        labels.append(label)
    answers = model.outcome.answers or ("mean",)
    flat = np.concatenate(gradients)
    V = flat @ model.covariance @ flat.T
    z = NormalDist().inv_cdf((1 + model.level) / 2)
    rows = []
    for i, (label, answer) in enumerate((label, answer) for label in labels for answer in answers):
        value, se = float(np.concatenate(found)[i]), math.sqrt(max(float(V[i, i]), 0.0))
        rows.append(Effect(answer, label, value, se, value - z * se, value + z * se))
    title = f"average marginal effects of {variable} in {model.formula}"
    return Effects(title, tuple(rows), V, model.level, model.outcome.kind != LINEAR)


def _shares(
    outcome: Outcome, beta: FloatArray, X: FloatArray, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return the shares, shape (H, K), and their derivatives in the parameters, (H, K, P)."""
    if outcome.kind == LINEAR:
        return (X @ beta)[:, None], X[:, None, :]
    predictors = outcome.at(X, names)
    eta = np.stack([part.X @ beta[part.index] for part in predictors], axis=1)
    pi, steps = outcome.family(eta)
    slopes = np.zeros((*pi.shape, len(beta)))
    for e, part in enumerate(predictors):
        slopes[:, :, part.index] += steps[:, e, :, None] * part.X[:, None, :]
    return pi, slopes


def _population(model: "Model") -> tuple[pd.DataFrame, FloatArray]:
    """Return the covariates of every stratum and cell, with their fractions of all reports."""
    frames, weights = [], []
    for public, reports, shares in zip(
        model.rows.public, model.reports, model.cell_shares, strict=True
    ):
        for z, cell in enumerate(model.rows.cells):
            frames.append(public.assign(**dict(zip(model.rows.noisy, cell, strict=True))))
            weights.append(reports * shares[:, z])
    total = np.concatenate(weights)
    return pd.concat(frames, ignore_index=True), total / total.sum()


def _contrasts(
    model: "Model", frame: pd.DataFrame, variable: str
) -> list[tuple[str, pd.DataFrame, pd.DataFrame, float]]:
    """Return (label, from, to, divisor): a small step of a number, or first category to another."""
    values = frame[variable]
    if pd.api.types.is_numeric_dtype(values):
        step = _H * (float(values.std()) or 1.0)
        low, high = (frame.assign(**{variable: values + side * step}) for side in (-1, 1))
        return [(f"{variable} + 1", low, high, 2 * step)]
    noisy = model.rows.noisy
    # The first level is the formula's reference; texts are in alphabetical order, choices in their
    # own order.
    levels = (
        list(dict.fromkeys(cell[noisy.index(variable)] for cell in model.rows.cells))
        if variable in noisy
        else sorted(set(values))
    )
    first = frame.assign(**{variable: levels[0]})
    return [
        (f"{variable}: {levels[0]} → {level}", first, frame.assign(**{variable: level}), 1.0)
        for level in levels[1:]
    ]


def _typed(model: "Model", frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with numbers for the model's numeric covariates, texts for others."""
    known, _ = _population(model)
    missing = [name for name in known.columns if name not in frame.columns]
    if missing:
        raise InvalidRequest(
            f"has no value of {', '.join(missing)}", code="targets_invalid", field="at"
        )
    for name in known.columns:
        if pd.api.types.is_numeric_dtype(known[name]):
            frame[name] = pd.to_numeric(frame[name], errors="coerce")
        else:
            frame[name] = frame[name].astype(str)
            unknown = sorted(set(frame[name]) - set(known[name]))
            if unknown:
                raise InvalidRequest(
                    f"{unknown[0]} is not a value of {name}", code="targets_invalid", field="at"
                )
    return frame


def _ends(value: float, se: float, z: float, *, shares: bool) -> tuple[float, float]:
    if not shares or not 0 < value < 1:
        return value - z * se, value + z * se
    centre, width = math.log(value / (1 - value)), z * se / (value * (1 - value))
    # A share near 0 can have an error many times its own size, whose exponential overflows.
    return float(expit(centre - width)), float(expit(centre + width))


def _name(row: Effect) -> str:
    return f"{row.answer}, {row.at}"
