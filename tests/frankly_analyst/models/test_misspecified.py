# SPDX-License-Identifier: Apache-2.0
"""Standard errors of misspecified models: the bread is the derivative of the score, and intervals cover."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.families import Family, latent_family, multinomial, ordinal
from frankly_analyst.models.fitting import fit_rows, fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.outcome import outcome
from frankly_analyst.models.sample import SIMPLE, STRATA, Sample, Version, table
from frankly_analyst.models.scoring import Equations, inverted
from frankly_analyst.models.setup import equations_of, rows_of

from tests.frankly_analyst.models.survey_case import ANSWERS
from tests.frankly_analyst.models.survey_case import LAW as PAIRS
from tests.frankly_analyst.models.test_models import CASES, CHOICES, Q2, Q3, ROWS, unary

WRONG = np.array([[7, 1, 2], [1, 6, 3], [2, 6, 2], [5, 4, 1], [2, 2, 6], [8, 1, 1]]) / 10
"""Shares in the strata of ROWS that no model with main effects has."""


def equations(version: Version, kind: str, success: str | None = None) -> Equations:
    """Return the score equations of 1 + g + x."""
    names = ("q", "c")[: len(version.answers)]
    sample = Sample(names, (version,))
    result = outcome("q", sample.answers[0], kind, success, None)
    sides = split("q ~ g + x" if len(names) == 1 else "q ~ g + c", [*sample.covariates, "c"])
    rows = rows_of(sample, sides, {}, list(sample.covariates))
    return equations_of(sample, rows, result, (np.linspace(0.5, 2, len(version.n)),), None)[0]


def counted(law: np.ndarray, choices: tuple[str, ...] = CHOICES) -> Version:
    return table(law, ROWS, 300 * WRONG[:, : len(law)] @ law, choices)


PAIR_COUNTS = np.array([[900, 150, 300, 250, 800, 90], [100, 700, 200, 600, 50, 300]])
WEIGHTED = {
    "logistic table": (counted(Q2, ("yes", "no")), "logistic", None),
    "multinomial table": (counted(Q3), "multinomial", None),
    "ordinal table": (counted(Q3), "ordinal", None),
    "multinomial sets": (unary(WRONG, 500.0, pairs=True), "multinomial", None),
    "ordinal sets": (unary(WRONG, 500.0, pairs=True), "ordinal", None),
    "group of choices": (counted(Q3), "logistic", "mid"),
    "noisy covariate": (
        table(PAIRS, [{"g": "a"}, {"g": "b"}], PAIR_COUNTS, ANSWERS), "logistic", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WEIGHTED)
def test_the_bread_is_the_derivative_of_the_score(case: str) -> None:
    made = equations(*WEIGHTED[case])
    rng = np.random.default_rng(1)
    beta = rng.normal(size=made.parameters) / 3
    beta[:2] = (-0.5, 0.7)  # the thresholds must increase
    steps = 1e-5 * np.eye(made.parameters)
    jacobian = [(made.at(beta + s)[0] - made.at(beta - s)[0]) / 2e-5 for s in steps]
    observed = made.observed(beta)
    size = np.abs(observed).max()
    assert observed == pytest.approx(-np.array(jacobian).T, abs=1e-7 * size)
    # Away from the truth, the bread differs from the expected information; otherwise the test would
    # prove nothing.
    assert np.abs(observed - made.at(beta)[1]).max() > 1e-3 * size


@pytest.mark.parametrize(
    ("family", "predictors"),
    [(multinomial, 3), (ordinal, 3), (latent_family(ordinal, 2, 3), 8)],
    ids=["multinomial", "ordinal", "latent"],
)
def test_curvature_is_the_second_derivative(family: Family, predictors: int) -> None:
    rng = np.random.default_rng(2)
    eta = np.sort(rng.normal(size=(4, predictors)), axis=1)
    v = rng.normal(size=family(eta)[0].shape)
    for f, step in enumerate(1e-5 * np.eye(predictors)):
        slopes = [np.einsum("hes,hs->he", family(eta + s)[1], v) for s in (step, -step)]
        second = (slopes[0] - slopes[1]) / 2e-5
        assert family.curvature(eta, v)[:, :, f] == pytest.approx(second, abs=1e-8)


# The model leaves out an interaction; with the expected information, one standard error would be
# half its true value.
CROSSED = np.array([0.04, 0.61, 0.75, 0.77])
CELLS = [{"g": g, "h": h} for g, h in product("ab", repeat=2)]
SIZES = np.array([0.2, 0.1, 0.4, 0.3])


@pytest.mark.parametrize("sampling", [SIMPLE, STRATA])
def test_intervals_of_a_wrong_model_cover_the_nearest_model(sampling: str, full: bool) -> None:
    """The default of 100 surveys is enough to detect that the model is wrong; --full uses 1,000."""
    law, surveys, n = Q2, 1000 if full else 100, 20_000
    shares = np.column_stack([CROSSED, 1 - CROSSED])

    result = outcome("q", ("yes", "no"), None, None, None)
    reports = Sample(("q",), (table(law, CELLS, np.ones((4, 2)), ("yes", "no")),))
    rows = rows_of(reports, split("q ~ g + h", reports.covariates), {}, ["g", "h"])

    def fitted(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        version = replace(reports.versions[0], counts=counts, n=counts.sum(axis=1))
        drawn = replace(reports, versions=(version,))
        model = fit_rows(drawn, rows, result, formula="q ~ g + h", sampling=sampling)
        return model.beta, model.errors(), model.errors("model")

    nearest = fitted(1e9 * SIZES[:, None] * (shares @ law))[0]
    rng = np.random.default_rng(3)
    inside, model_based = [], []
    for _ in range(surveys):
        sizes = rng.multinomial(n, SIZES) if sampling == SIMPLE else np.rint(n * SIZES).astype(int)
        counts = np.array([rng.multinomial(m, p @ law) for m, p in zip(sizes, shares, strict=True)])
        beta, sandwich, model = fitted(counts)
        z = np.abs(beta - nearest)
        inside.append(z <= 1.96 * sandwich)
        model_based.append(z <= 1.96 * model)
    error = math.sqrt(0.95 * 0.05 / surveys)
    coverage = np.mean(inside, axis=0)
    assert (np.abs(coverage - 0.95) < 3.5 * error).all(), coverage
    # Model-based errors do not cover, so the model is wrong enough for the test to detect.
    assert np.abs(np.mean(model_based, axis=0) - 0.95).max() > 3.5 * error


def test_a_root_that_is_no_maximum_is_refused() -> None:
    assert inverted(np.diag([1.0, -0.5]), np.eye(2)) is None
    assert inverted(np.diag([2.0, 4.0]), np.eye(2)) == pytest.approx(np.diag([0.5, 0.25]))


def test_a_model_without_an_isolated_maximum_names_its_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, choices, shares, truth = CASES["logistic"]
    reports = Sample(("q",), (table(Q2, ROWS, 500 * shares(truth) @ Q2, choices),))
    monkeypatch.setattr(Equations, "observed", lambda *_: np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(InvalidRequest, match=r"do not determine all coefficients \(x\)"):
        fit_sample(
            reports, split("q ~ g + x", reports.covariates), outcome("q", choices, None, None, None)
        )


def test_intervals_of_wrong_quasi_scores_cover_too(full: bool) -> None:
    """The models use decoded scores of one of three choices, with main effects although there are
    interactions.

    The default of 80 surveys is enough to distinguish 78 % from 95 %; --full uses 1,000.
    """
    surveys, n = 1000 if full else 80, 8000
    base = table(Q3, ROWS, np.ones((6, 4)), CHOICES)
    reports = Sample(("q",), (base,))
    rows = rows_of(reports, split("q ~ g + x", reports.covariates), {}, ["g", "x"])
    result = outcome("q", CHOICES, None, "mid", None)
    sizes = np.array([0.1, 0.3, 0.1, 0.1, 0.1, 0.3])
    shares = np.array([[3, 3, 4], [1, 8, 1], [3, 6, 1], [2, 7, 1], [2, 6, 2], [7, 2, 1]]) / 10

    def fitted(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drawn = replace(reports, versions=(replace(base, counts=counts, n=counts.sum(axis=1)),))
        model = fit_rows(drawn, rows, result, formula="q ~ g + x")
        return model.beta, model.errors()

    nearest, _ = fitted(1e8 * sizes[:, None] * (shares @ Q3))
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(surveys):
        drawn = rng.multinomial(n, sizes)
        beta, se = fitted(
            np.array([rng.multinomial(m, p @ Q3) for m, p in zip(drawn, shares, strict=True)])
        )
        inside.append(np.abs(beta - nearest) <= 1.96 * se)
    # With the expected information as bread, the first coefficient's intervals cover only 78 %.
    error = math.sqrt(0.95 * 0.05 / surveys)
    assert (np.abs(np.mean(inside, axis=0) - 0.95) < 3.5 * error).all()
