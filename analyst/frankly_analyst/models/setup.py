# SPDX-License-Identifier: Apache-2.0
"""Score equations of a model: the strata's model matrices, channels and latent covariates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.channels import Channel, MomentChannel, TableChannel
from frankly_analyst.models.families import latent_family
from frankly_analyst.models.formulas import Design, Numbers, Sides, design, frame_of
from frankly_analyst.models.outcome import Outcome
from frankly_analyst.models.sample import FloatArray, Sample, Version
from frankly_analyst.models.scoring import Block, Equations, Predictor

MOST_LATENT = 400


@dataclass(frozen=True)
class Rows:
    """Model matrix at every stratum of every version, for each cell of the noisy covariates.

    matrices : per version and cell, shape (H, m). cells : combinations of the noisy covariates'
    choices; one empty combination if there are no such covariates. public : per version, the
    covariates as the formula sees them.
    """

    design: Design
    matrices: tuple[tuple[FloatArray, ...], ...]
    cells: tuple[tuple[str, ...], ...]
    noisy: tuple[str, ...]
    public: tuple[pd.DataFrame, ...]


def collapsed(sample: Sample, variables: Sequence[str]) -> Sample:
    """Return the sample with strata merged that have equal values of the variables."""
    return replace(sample, versions=tuple(_collapse(v, list(variables)) for v in sample.versions))


def _collapse(version: Version, variables: list[str]) -> Version:
    if variables:
        grouped = version.strata.groupby(variables, sort=True, observed=True)
        place = grouped.ngroup().to_numpy()
        strata = version.strata[variables].assign(place=place).drop_duplicates("place")
        strata = strata.sort_values("place").drop(columns="place").reset_index(drop=True)
    else:
        place, strata = np.zeros(len(version.strata), dtype=int), pd.DataFrame(index=[0])

    def added(values: FloatArray) -> FloatArray:
        total = np.zeros((len(strata), *values.shape[1:]))
        np.add.at(total, place, values)
        return total

    pairs = None if version.pairs is None else added(version.pairs)
    return replace(
        version, strata=strata, counts=added(version.counts), n=added(version.n), pairs=pairs
    )


def rows_of(sample: Sample, sides: Sides, numeric: Numbers, variables: Sequence[str]) -> Rows:
    """Return the model matrices at the values of the public `variables`.

    The questions of the sample after the first are the noisy covariates.
    """
    noisy = sample.questions[1:]
    cells = _cells(sample)
    sizes = [len(version.strata) for version in sample.versions]
    public = frame_of(
        sample.strata()[list(variables)], {k: v for k, v in numeric.items() if k not in noisy}
    )
    stacked = pd.concat(
        [public.assign(**dict(zip(noisy, cell, strict=True))) for cell in cells], ignore_index=True
    )
    for i, name in enumerate(noisy):
        if name in numeric:
            stacked[name] = frame_of(stacked[[name]], {name: numeric[name]})[name]
        else:
            stacked[name] = pd.Categorical(stacked[name], categories=list(sample.answers[i + 1]))
    made = design(sides.right, stacked)
    parts = np.split(made.matrix, len(cells))
    bounds = np.cumsum(sizes)[:-1]
    by_cell = [np.split(part, bounds) for part in parts]
    matrices = tuple(tuple(by_cell[z][v] for z in range(len(cells))) for v in range(len(sizes)))
    starts = np.concatenate([[0], bounds])
    frames = tuple(
        public.iloc[start : start + size].reset_index(drop=True)
        for start, size in zip(starts, sizes, strict=True)
    )
    return Rows(made, matrices, cells, noisy, frames)


def _cells(sample: Sample) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(state[1:] for state in sample.versions[0].states))


def equations_of(
    sample: Sample, rows: Rows, outcome: Outcome, weights: Sequence[FloatArray], latent: str | None
) -> tuple[Equations, list[tuple[str, str]], int]:
    """Return the score equations, the terms of the outcome's parameters, and the number of all parameters."""
    names = rows.design.names
    terms = outcome.terms(names)
    cells = len(rows.cells)
    outcomes = [[p for X in matrices for p in outcome.at(X, names)] for matrices in rows.matrices]
    channels = [channel_of(version, outcome, cells) for version in sample.versions]
    if cells == 1:
        blocks = [Block(c, p, w) for c, p, w in zip(channels, outcomes, weights, strict=True)]
        return Equations(blocks, outcome.family, len(terms)), terms, len(terms)
    covariates = _latent_matrices(rows, latent)
    m = covariates[0].shape[1]
    total = len(terms) + (cells - 1) * m
    if total - len(terms) > MOST_LATENT:
        raise InvalidRequest(
            f"the noisy covariates would need {total - len(terms)} parameters in these strata: give a smaller "
            "formula for them, such as latent='1'",
            code="unsupported",
            field="latent",
        )
    blocks = []
    for channel, predictors, T, w in zip(channels, outcomes, covariates, weights, strict=True):
        extra = [
            Predictor(T, len(terms) + z * m + np.arange(m, dtype=np.int64))
            for z in range(cells - 1)
        ]
        blocks.append(Block(channel, [*predictors, *extra], w))
    family = latent_family(outcome.family, outcome.predictors, cells)
    return Equations(blocks, family, total), terms, total


def _latent_matrices(rows: Rows, latent: str | None) -> list[FloatArray]:
    """Return model matrices of the noisy covariates' law: by default one parameter per public pattern."""
    everything = pd.concat(rows.public, ignore_index=True)
    if latent is not None:
        matrix = design(latent, everything).matrix
    elif everything.shape[1] == 0:
        matrix = np.ones((len(everything), 1))
    else:
        place = everything.groupby(list(everything.columns), observed=True).ngroup().to_numpy()
        matrix = np.eye(place.max() + 1)[place]
    return np.split(matrix, np.cumsum([len(frame) for frame in rows.public])[:-1])


def channel_of(version: Version, outcome: Outcome, cells: int) -> Channel:
    """Return the channel of a version: its table, the bits of its sets, or decoded scores of grouped answers."""
    if cells > 1:
        if version.sets or not outcome.single:
            raise InvalidRequest(
                "noisy covariates need a table of reports and an outcome whose answers are single choices",
                code="unsupported",
                field="formula",
            )
        return TableChannel(_joint_law(version, outcome), version.counts, version.n)
    if not outcome.single:
        return _scores_channel(version, outcome)
    if version.moments is None:
        used = version.law.max(axis=0) > 0
        return TableChannel(
            outcome.groups @ version.law[:, used], version.counts[:, used], version.n
        )
    moments = np.einsum("ks,sij->kij", outcome.groups, version.moments)
    means = version.counts / version.n[:, None]
    return MomentChannel(
        outcome.groups @ version.law, moments, means, version.bit_covariance(), version.n
    )


def _joint_law(version: Version, outcome: Outcome) -> FloatArray:
    """Return the law with the outcome's answers in the model's order, outcome fastest."""
    choices = len(version.answers[0])
    law = version.law.reshape(choices, -1, version.law.shape[1])
    return (
        np.tensordot(law, outcome.groups.T, axes=([0], [0]))
        .transpose(0, 2, 1)
        .reshape(version.law.shape)
    )


def _scores_channel(version: Version, outcome: Outcome) -> MomentChannel:
    """Return the decoded score of the last group of answers: its mean is the group's share."""
    target = outcome.groups[-1:]
    means, covariances = version.score_moments(target)
    law = version.score_law(target)[0]
    # The working moments are those of the design prior; the sandwich errors are valid for any
    # working moments.
    prior = outcome.groups * np.maximum(version.prior, 1e-9)
    moments = (prior @ law) / prior.sum(axis=1)
    return MomentChannel(
        np.array([[0.0], [1.0]]), moments[:, None, None], means, covariances, version.n
    )
