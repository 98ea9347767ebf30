# SPDX-License-Identifier: Apache-2.0
"""Linear models of a scale's scores by moment equations of decoded scores.

With B_z and T_z the decoded scores of "score of the outcome in cell z" and "cell z" of the noisy
covariates (one cell without any), E[B_z | x] − x_zᵀβ E[T_z | x] = 0 under the model, so that
Σ x_z (B_z − T_z x_zᵀβ) = 0 over reports is unbiased at every n; without noisy covariates it is least squares
of decoded scores. No distribution of the scores is assumed; errors are sandwich errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.model import Model
from frankly_analyst.models.outcome import Outcome
from frankly_analyst.models.sample import FloatArray, Sample, Version
from frankly_analyst.models.scored import version_weights
from frankly_analyst.models.scoring import Block, Piece, Predictor, score_variance
from frankly_analyst.models.setup import Rows
from frankly_analyst.models.weighted import single_strata


@dataclass(frozen=True)
class _Reports:
    """Reports of a version as a channel without a likelihood."""

    n: FloatArray


def fit(
    sample: Sample,
    rows: Rows,
    outcome: Outcome,
    scores: FloatArray,
    weights: Sequence[FloatArray],
    sampling: str,
    calibration: Sequence[tuple[FloatArray, FloatArray]] | None,
    level: float,
    formula: str,
) -> Model:
    """Fit a linear model. Raises InvalidRequest(unsupported) if the counts do not determine it."""
    targets = _targets(sample.versions[0], rows, scores)
    cells, m = len(rows.cells), len(rows.design.names)
    within = version_weights(sample, targets)
    # The weight of a stratum must not depend on its own noise; it may depend on the versions'
    # mechanisms.
    blocks = [
        Block(
            _Reports(version.n),  # type: ignore[arg-type]  # only n is used
            [Predictor(X, np.arange(m, dtype=np.int64)) for X in matrices],
            w * own,
        )
        for version, matrices, w, own in zip(
            sample.versions, rows.matrices, weights, within, strict=True
        )
    ]
    moments = [_moments(version, targets, cells) for version in sample.versions]
    A, b = np.zeros((m, m)), np.zeros(m)
    for block, (means, _) in zip(blocks, moments, strict=True):
        scale = block.weights * block.channel.n
        for z, part in enumerate(block.predictors):
            A += (part.X * (scale * means[:, cells + z])[:, None]).T @ part.X
            b += part.X.T @ (scale * means[:, z])
    _require_positive(A, rows.design.names)
    beta = np.asarray(np.linalg.solve(A, b), dtype=float)
    scored = [
        _piece(block, means, spread, beta, cells)
        for block, (means, spread) in zip(blocks, moments, strict=True)
    ]
    inverse = np.linalg.inv(A)
    middle = score_variance(scored, m, sampling, calibration)
    return Model(
        formula=formula,
        outcome=outcome,
        terms=tuple(("", name) for name in rows.design.names),
        beta=beta,
        covariance=inverse @ middle @ inverse,
        model_covariance=None,
        sampling=sampling,
        level=level,
        n=sample.n,
        strata=sum(len(v.n) for v in sample.versions),
        rows=rows,
        reports=tuple(v.n * w for v, w in zip(sample.versions, weights, strict=True)),
        cell_shares=tuple(means[:, cells:] for means, _ in moments),
        fit=None,
        notes=(*sample.notes(), *single_strata(sample, sampling)),
        iterations=1,
    )


def _targets(version: Version, rows: Rows, scores: FloatArray) -> FloatArray:
    """Return weights over the states, shape (2 · cells, S): scores in each cell, then the cells."""
    cells = len(rows.cells)
    of_score = np.einsum("k,zy->zky", scores, np.eye(cells)).reshape(cells, -1)
    of_cell = np.einsum("k,zy->zky", np.ones(len(scores)), np.eye(cells)).reshape(cells, -1)
    if not np.isfinite(version.decoder).all():
        raise InvalidRequest(
            "the mechanism does not determine the share of every answer: use kind='multinomial'",
            code="unsupported",
            field="kind",
        )
    return np.vstack([of_score, of_cell])


def _moments(version: Version, targets: FloatArray, cells: int) -> tuple[FloatArray, FloatArray]:
    means, spread = version.score_moments(targets)
    if cells == 1:
        # Without noisy covariates, the only cell has the share 1, but decoding it from sets would
        # add noise.
        means[:, 1], spread[:, 1, :], spread[:, :, 1] = 1.0, 0.0, 0.0
    return means, spread


def _piece(
    block: Block, means: FloatArray, spread: FloatArray, beta: FloatArray, cells: int
) -> Piece:
    fitted = block.eta(beta)
    R = np.zeros((len(means), cells, 2 * cells))
    z = np.arange(cells)
    R[:, z, z] = 1.0
    R[:, z, cells + z] = -fitted
    mean = means[:, :cells] - fitted * means[:, cells:]
    return Piece(block, mean, R @ spread @ R.transpose(0, 2, 1))


def _require_positive(A: FloatArray, names: Sequence[str]) -> None:
    scale = np.sqrt(np.maximum(np.diagonal(A), 0))
    values = np.linalg.eigvalsh(A / np.outer(scale, scale)) if (scale > 0).all() else np.zeros(1)
    if values[0] <= 1e-9:
        raise InvalidRequest(
            f"the decoded covariates have no positive variance ({', '.join(names)}): too few reports for a noisy "
            "covariate. Leave it out, or collect more",
            code="unsupported",
            field="formula",
        )
