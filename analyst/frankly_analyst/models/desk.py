# SPDX-License-Identifier: Apache-2.0
"""Public functions for weighted estimates and models of a survey's released counts."""

from collections.abc import Mapping, Sequence

import numpy as np

from frankly_analyst.counts import Counts
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models import weights as weighting
from frankly_analyst.models.combined import Combined, median
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import Numbers, split
from frankly_analyst.models.model import Model
from frankly_analyst.models.observed import sample_of
from frankly_analyst.models.outcome import LINEAR, outcome, scores_of
from frankly_analyst.models.sample import SIMPLE, Sample
from frankly_analyst.models.weighted import Weighted, estimate
from frankly_analyst.models.weights import RAKING, Amounts, Cell, Totals, Weights
from frankly_analyst.plots import NUMBER, SHARE


def fit(
    formula: str,
    counts: Counts,
    kind: str | None = None,
    *,
    success: str | Sequence[str] | None = None,
    reference: str | None = None,
    scores: Mapping[str, float] | None = None,
    numeric: Numbers | None = None,
    weights: Weights | None = None,
    sampling: str = SIMPLE,
    latent: str | None = None,
    documents: Sequence[str] = (),
    level: float = 0.95,
) -> Model:
    """Fit a model of a noisy answer on public covariates, and on other noisy answers counted together with it.

    formula : ``"drinks ~ region + age"``: a question, and covariates by which the counts were requested, or
        questions of the same part. kind : "logistic" (default with two choices or `success`), "multinomial" (default
        otherwise), "ordinal" (proportional odds, choices in their order) or "linear" (of the choices' scores).
    success : for logistic models, the choices that count as yes; the first choice by default.
    reference : for multinomial models, the choice to compare with; the last one by default.
    scores : for linear models, the number of each choice; the survey's scores by default.
    numeric : numbers for the values of covariates, by covariate.
    weights : weights of the reports to this question (`rake`, `poststratify`, `given`); the fit
        then uses a pseudo-likelihood.
    sampling : "simple", respondents are a simple random sample; or "strata", samples of fixed sizes in the strata.
    latent : right side of the model of the noisy covariates' law; by default, the law is free in
        each public stratum.
    documents : digests of the documents to use, or `CountedPart.key` of single arms; by default all, pooled by their
        likelihoods.

    Raises InvalidRequest, naming the argument, if it cannot be read or the counts do not determine the model.
    """
    noisy_names = {q.id for part in counts.parts for q in part.questions}
    sides = split(formula, (*counts.by, *sorted(noisy_names - {formula.partition("~")[0].strip()})))
    if sides.outcome not in noisy_names:
        raise InvalidRequest(
            f"{sides.outcome} is not a question of these counts: they have {', '.join(sorted(noisy_names))}",
            code="targets_invalid",
            field="formula",
        )
    noisy = [name for name in sides.variables if name in noisy_names]
    sample = sample_of(counts, (sides.outcome, *noisy), documents)
    result = outcome(sides.outcome, sample.answers[0], kind, success, reference)
    values = None
    if result.kind == LINEAR:
        values = scores_of(sample.answers[0], scores, _scores(counts, sides.outcome))
    elif scores is not None:
        raise InvalidRequest("only a linear model has them", code="targets_invalid", field="scores")
    return fit_sample(
        sample,
        sides,
        result,
        weights=weights,
        sampling=sampling,
        numeric=numeric,
        scores=values,
        latent=latent,
        level=level,
    )


def weighted_shares(
    counts: Counts,
    question: str,
    weights: Weights | None = None,
    *,
    by: str | None = None,
    sampling: str = SIMPLE,
    documents: Sequence[str] = (),
    level: float = 0.95,
) -> Weighted:
    """Return the weighted share of every choice of a question; raises like `fit`.

    weights : weights of the reports to this question; None for equal weights. by : public
        covariate, or period, whose values are groups with estimates of their own. The other
        arguments are those of `fit`.
    """
    sample = _decoded(counts, question, documents)
    names = sample.answers[0]
    return estimate(sample, np.eye(len(names)), names, weights, sampling, level, SHARE, by)


def weighted_mean(
    counts: Counts,
    question: str,
    weights: Weights | None = None,
    *,
    scores: Mapping[str, float] | None = None,
    by: str | None = None,
    sampling: str = SIMPLE,
    documents: Sequence[str] = (),
    level: float = 0.95,
) -> Weighted:
    """Return the weighted mean of the choices' scores, the survey's by default; like `weighted_shares`."""
    sample = _decoded(counts, question, documents)
    values = scores_of(sample.answers[0], scores, _scores(counts, question))
    return estimate(sample, values[None], ["mean"], weights, sampling, level, NUMBER, by)


def weighted_median(
    counts: Counts,
    question: str,
    weights: Weights | None = None,
    *,
    scores: Mapping[str, float] | None = None,
    sampling: str = SIMPLE,
    documents: Sequence[str] = (),
    level: float = 0.95,
) -> Combined:
    """Return the weighted median of the choices' scores with its interval; raises like `fit`."""
    sample = _decoded(counts, question, documents)
    values = scores_of(sample.answers[0], scores, _scores(counts, question))
    names = sample.answers[0]
    shares = estimate(sample, np.eye(len(names)), names, weights, sampling, level)
    return median(values, np.array([row.estimate for row in shares.rows]), shares.covariance, level)


def given(
    counts: Counts, question: str, by: Cell, weights: Amounts, documents: Sequence[str] = ()
) -> Weights:
    """Return weights of reports from given weights of covariate values; see `weights.given`."""
    return weighting.given(sample_of(counts, (question,), documents), weights, by)


def poststratify(
    counts: Counts,
    question: str,
    by: Cell,
    totals: Amounts,
    base: Weights | None = None,
    documents: Sequence[str] = (),
) -> Weights:
    """Return weights whose sums in the cells of `by` equal known totals; see `weights.poststratify`."""
    return weighting.poststratify(sample_of(counts, (question,), documents), by, totals, base)


def rake(
    counts: Counts,
    question: str,
    totals: Totals,
    base: Weights | None = None,
    method: str = RAKING,
    documents: Sequence[str] = (),
) -> Weights:
    """Return weights whose sums equal known totals in every margin; see `weights.rake`."""
    return weighting.rake(sample_of(counts, (question,), documents), totals, base, method)


def _decoded(counts: Counts, question: str, documents: Sequence[str]) -> Sample:
    sample = sample_of(counts, (question,), documents)
    if not all(np.isfinite(version.decoder).all() for version in sample.versions):
        raise InvalidRequest(
            "the mechanism does not determine the share of every choice",
            code="unsupported",
            field="question",
        )
    return sample


def _scores(counts: Counts, question: str) -> dict[str, float | None]:
    questions = (q for part in counts.of(question) for q in part.questions if q.id == question)
    return {choice.id: choice.score for q in questions for choice in q.choices}
