# SPDX-License-Identifier: Apache-2.0
"""Fits of models to counts: checks, score equations, errors and model fit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models import linear
from frankly_analyst.models.channels import TableChannel
from frankly_analyst.models.families import multinomial
from frankly_analyst.models.formulas import Numbers, Sides, require_full_rank, split
from frankly_analyst.models.model import Fit, Model
from frankly_analyst.models.outcome import LINEAR, Outcome
from frankly_analyst.models.sample import SIMPLE, FloatArray, Sample
from frankly_analyst.models.scoring import (
    Block,
    Equations,
    Predictor,
    Solution,
    inverted,
    pieces,
    score_variance,
    undetermined,
)
from frankly_analyst.models.setup import Rows, collapsed, equations_of, rows_of
from frankly_analyst.models.weighted import check, single_strata
from frankly_analyst.models.weights import Weights

_FEW = 5
"""Cochran's rule: χ² needs expected counts of 5 in four fifths of the cells, and of 1 in all."""


def fit_sample(
    sample: Sample,
    sides: Sides,
    result: Outcome,
    *,
    weights: Weights | None = None,
    sampling: str = SIMPLE,
    numeric: Numbers | None = None,
    scores: FloatArray | None = None,
    latent: str | None = None,
    level: float = 0.95,
) -> Model:
    """Fit a model to the counts of a part whose first question is the outcome; see `frankly_analyst.models.fit`."""
    check(sample, weights, sampling, level)
    also = split(f"y ~ {latent}", sample.covariates).variables if latent else ()
    public = [n for n in sample.covariates if n in {*sides.variables, *also}]
    used = collapsed(sample, public) if weights is None and sampling == SIMPLE else sample
    rows = rows_of(used, sides, numeric or {}, public)
    require_full_rank(
        np.concatenate([X for by_cell in rows.matrices for X in by_cell]), rows.design.names
    )
    return fit_rows(
        used,
        rows,
        result,
        formula=f"{sides.outcome} ~ {sides.right}",
        weights=weights,
        sampling=sampling,
        scores=scores,
        latent=latent,
        level=level,
    )


def fit_rows(
    used: Sample,
    rows: Rows,
    result: Outcome,
    *,
    formula: str,
    weights: Weights | None = None,
    sampling: str = SIMPLE,
    scores: FloatArray | None = None,
    latent: str | None = None,
    level: float = 0.95,
) -> Model:
    """Fit a model whose model matrix is known; raises like `fit_sample`."""
    split_weights = _by_version(used, None if weights is None else weights.weights)
    calibration = _calibration(used, weights)
    if result.kind == LINEAR:
        if scores is None:
            raise InvalidRequest(
                "a linear model needs them", code="targets_invalid", field="scores"
            )
        return linear.fit(
            used, rows, result, scores, split_weights, sampling, calibration, level, formula
        )
    equations, terms, parameters = equations_of(used, rows, result, split_weights, latent)
    start = np.zeros(parameters)
    start[: len(terms)] = result.start(len(terms))
    solution = equations.solve(start)
    if solution.problem:
        raise _refusal(solution, terms)
    inverse = np.asarray(np.linalg.inv(solution.information), dtype=float)
    observed = equations.observed(solution.beta)
    bread = inverted(observed, solution.information)
    if bread is None:
        solution = replace(solution, problem="singular", information=(observed + observed.T) / 2)
        raise _refusal(solution, terms)
    middle = score_variance(pieces(equations, solution.beta), parameters, sampling, calibration)
    outer = slice(0, len(terms))
    return Model(
        formula=formula,
        outcome=result,
        terms=tuple(terms),
        beta=solution.beta[outer],
        covariance=(bread @ middle @ bread.T)[outer, outer],
        model_covariance=inverse[outer, outer] if weights is None else None,
        sampling=sampling,
        level=level,
        n=used.n,
        strata=sum(len(v.n) for v in used.versions),
        rows=rows,
        reports=tuple(v.n * w for v, w in zip(used.versions, split_weights, strict=True)),
        cell_shares=_cell_shares(equations, solution.beta, len(rows.cells)),
        fit=None if weights is not None else _fit(equations, solution, len(terms)),
        notes=tuple(_notes(used, sampling)),
        iterations=solution.iterations,
    )


def _by_version(sample: Sample, values: FloatArray | None) -> list[FloatArray]:
    sizes = [len(version.n) for version in sample.versions]
    total = np.ones(sum(sizes)) if values is None else values
    return np.split(total, np.cumsum(sizes)[:-1])


def _calibration(
    sample: Sample, weights: Weights | None
) -> list[tuple[FloatArray, FloatArray]] | None:
    if weights is None or weights.calibrated is None:
        return None
    return list(
        zip(_by_version(sample, weights.calibrated), _by_version(sample, weights.base), strict=True)
    )


def _refusal(solution: Solution, terms: Sequence[tuple[str, str]]) -> InvalidRequest:
    """Return the error for counts that do not determine finite estimates."""
    names = [f"{equation}: {term}" if equation else term for equation, term in terms]
    names += ["the distribution of the noisy covariates"] * (len(solution.beta) - len(terms))
    if solution.problem == "infinite":
        weak = np.abs(solution.beta) > 0.5 * np.abs(solution.beta).max()
        reason = "the counts fit best where a share is 0 or 1, so that an estimate is infinite"
        advice = (
            "Merge groups, leave out terms, or fit kind='linear', which stays finite (its choices "
            "need scores: those of the survey, or scores={…})"
        )
    elif solution.problem == "singular":
        weak = undetermined(solution.information) > 0.1
        reason = "the mechanism and these strata do not determine all coefficients"
        advice = (
            "Leave out terms, or collect reports with a mechanism that distinguishes these answers"
        )
    else:
        weak = np.zeros(len(names), dtype=bool)
        reason = f"no solution of the score equations was reached in {solution.iterations} steps"
        advice = "Leave out terms, or merge groups"
    involved = list(dict.fromkeys(n for n, w in zip(names, weak, strict=True) if w))
    where = f" ({', '.join(involved[:6])})" if involved else ""
    return InvalidRequest(f"{reason}{where}. {advice}", code="unsupported", field="formula")


def _cell_shares(equations: Equations, beta: FloatArray, cells: int) -> tuple[FloatArray, ...]:
    """Return the fitted shares of the noisy covariates' cells, shape (H, cells) per version."""
    shares = []
    for block in equations.blocks:
        pi, _ = equations.family(block.eta(beta))
        shares.append(pi.reshape(len(pi), cells, -1).sum(axis=2))
    return tuple(shares)


def _fit(equations: Equations, solution: Solution, outcome_terms: int) -> Fit | None:
    """Return the fit of a likelihood; None for quasi-scores and weighted counts, which have none."""
    channels = [b.channel for b in equations.blocks if isinstance(b.channel, TableChannel)]
    if len(channels) < len(equations.blocks):
        return None
    deviance = pearson = 0.0
    cells, few, tiny, saturated = 0, 0, False, 0
    for channel, block in zip(channels, equations.blocks, strict=True):
        law = channel.law(equations.family(block.eta(solution.beta))[0])
        expected = law * channel.n[:, None]
        positive = channel.counts > 0
        ratio = np.where(positive, channel.counts / expected, 1.0)
        deviance += 2 * float((channel.counts * np.log(ratio)).sum())
        pearson += float(((channel.counts - expected) ** 2 / expected).sum())
        cells += expected.size
        few += int((expected < _FEW).sum())
        tiny |= bool((expected < 1).any())
        saturated += expected.size - len(expected)
    df = saturated - equations.parameters
    return Fit(
        log_likelihood=solution.objective,
        # With noisy covariates, equal shares in all strata are not a special case of the model.
        null_log_likelihood=_null(channels) if outcome_terms == equations.parameters else None,
        parameters=equations.parameters,
        deviance=deviance,
        pearson=pearson,
        df=df,
        p=float(special.chdtrc(df, pearson)) if df > 0 else None,
        sparse=tiny or few > cells / 5,
    )


def _null(channels: Sequence[TableChannel]) -> float:
    """Return the largest log-likelihood of equal shares in all strata."""
    states, ones = len(channels[0].Q), np.ones(1)
    totals = [
        TableChannel(c.Q, c.counts.sum(axis=0)[None], np.array([c.n.sum()])) for c in channels
    ]
    intercepts = [Predictor(np.ones((1, 1)), np.array([e])) for e in range(states - 1)]
    blocks = [Block(total, intercepts, ones) for total in totals]
    solution = Equations(blocks, multinomial, states - 1).solve(np.zeros(states - 1))
    if not solution.problem:
        return solution.objective
    # The maximum is at shares of 0, or is not unique. EM converges in both cases.
    pi = np.full((1, states), 1 / states)
    for _ in range(5000):
        new = [pi * ((t.counts / t.law(pi)) @ t.Q.T) for t in totals]
        pi = np.asarray(sum(new) / sum(t.n.sum() for t in totals))
    return sum(t.objective(pi, pi, ones) for t in totals)


def _notes(sample: Sample, sampling: str) -> list[str]:
    notes = sample.notes() + single_strata(sample, sampling)
    if len(sample.versions) > 1:
        has_arms = any(version.arm is not None for version in sample.versions)
        what = "documents or arms" if has_arms else "documents"
        notes.append(f"{len(sample.versions)} {what} were pooled by their likelihoods")
    return notes
