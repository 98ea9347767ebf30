# SPDX-License-Identifier: Apache-2.0
"""Models with noisy covariates, compared with maximum likelihood on single pairs of reports."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.model import Model
from frankly_analyst.models.outcome import outcome
from frankly_analyst.models.sample import STRATA, Sample, table

from tests.frankly_analyst.models import brute
from tests.frankly_analyst.models.survey_case import ANSWERS, LAW, OUT

ROWS = [{"g": "a"}, {"g": "b"}]
TRUTH = np.array([-0.5, 0.6, 0.7, 1.1])
TAU = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])


def joint(beta: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return the shares of (outcome, covariate) in both strata under 1 + g + covariate; the
    covariate varies fastest."""
    eta = beta[0] + beta[1] * np.array([0, 1])[:, None] + np.array([0.0, beta[2], beta[3]])
    yes = 1 / (1 + np.exp(-eta))
    return np.concatenate([yes * tau, (1 - yes) * tau], axis=1)


def fit(
    counts: np.ndarray, formula: str = "q ~ g + c", kind: str | None = None, **more: Any
) -> Model:
    reports = Sample(("q", "c"), (table(LAW, ROWS, counts, ANSWERS),))
    result = outcome("q", ANSWERS[0], kind, None, None)
    return fit_sample(reports, split(formula, ["g", "c"]), result, **more)


def test_expected_counts_give_back_the_truth() -> None:
    model = fit(2000 * joint(TRUTH, TAU) @ LAW)
    assert [term for _, term in model.terms] == ["Intercept", "g[b]", "c[some]", "c[often]"]
    assert model.beta == pytest.approx(TRUTH, abs=1e-8)
    assert model.errors() == pytest.approx(model.errors("model") * np.sqrt(4000 / 3999), rel=1e-7)
    assert model.cell_shares[0] == pytest.approx(TAU, abs=1e-8)


def test_estimates_equal_those_of_maximum_likelihood_on_single_pairs() -> None:
    rng = np.random.default_rng(4)
    counts = np.array([rng.multinomial(3000, p @ LAW) for p in joint(TRUTH, TAU)])
    model = fit(counts)
    h, y = brute.expand(ROWS, counts)

    def of_reports(parameters: np.ndarray) -> np.ndarray:
        beta, eta = parameters[:4], parameters[4:].reshape(2, 2)
        tau = brute.softmax(np.column_stack([eta, np.zeros(2)]))
        return (joint(beta, tau) @ LAW)[h, y]

    start = np.concatenate([TRUTH, np.log(TAU[:, :2] / TAU[:, 2:]).ravel()])
    best, likelihood = brute.maximum(of_reports, start)
    assert model.beta == pytest.approx(best[:4], abs=1e-6)
    assert model.fit is not None
    assert model.fit.log_likelihood == pytest.approx(likelihood, abs=1e-6)
    assert model.fit.parameters == 8


def test_a_smaller_law_of_the_covariates_may_be_given() -> None:
    tau = np.tile(TAU[:1], (2, 1))
    model = fit(2000 * joint(TRUTH, tau) @ LAW, latent="1")
    assert model.beta == pytest.approx(TRUTH, abs=1e-8)
    assert model.fit is not None
    assert model.fit.parameters == 6


def test_a_linear_model_with_a_noisy_covariate_solves_the_moment_equations() -> None:
    """At expected counts, the model is the least-squares line of the true answers."""
    shares = joint(TRUTH, TAU)
    model = fit(2000 * shares @ LAW, kind="linear", scores=np.array([1.0, 0.0]))
    rows = [(g, c, s) for g, (s, c) in product((0, 1), product((1.0, 0.0), range(3)))]
    X = np.array([[1.0, g == 1, c == 1, c == 2] for g, c, _ in rows], dtype=float)
    w, d = shares.ravel(), np.array([s for *_, s in rows])
    expected = np.linalg.solve((X * w[:, None]).T @ X, X.T @ (w * d))
    assert model.beta == pytest.approx(expected, abs=1e-9)


def test_the_linear_sandwich_equals_that_of_single_pairs() -> None:
    rng = np.random.default_rng(14)
    counts = np.array([rng.multinomial(3000, p @ LAW) for p in joint(TRUTH, TAU)])
    reports = Sample(("q", "c"), (table(LAW, ROWS, counts, ANSWERS),))
    for sampling in ("simple", STRATA):
        model = fit(counts, kind="linear", scores=np.array([1.0, 0.0]), sampling=sampling)
        h, y = brute.expand(ROWS, counts)
        V = reports.versions[0].decoder
        states = list(product((1.0, 0.0), range(3)))
        u, A = np.zeros((len(h), 4)), np.zeros((4, 4))
        for s, (score, c) in enumerate(states):
            X = np.column_stack(
                [np.ones(len(h)), h == 1, np.full(len(h), c == 1), np.full(len(h), c == 2)]
            ).astype(float)
            u += X * (V[s][y] * (score - X @ model.beta))[:, None]
            A += (X * V[s][y][:, None]).T @ X
        assert u.sum(axis=0) == pytest.approx(np.zeros(4), abs=1e-7)
        middle = u.T @ u * len(u) / (len(u) - 1) if sampling == "simple" else sum(
            np.cov(u[h == k].T) * (h == k).sum() for k in (0, 1)
        )  # fmt: skip
        bread = np.linalg.inv(A)
        assert model.covariance == pytest.approx(bread @ middle @ bread.T, rel=1e-9)


def test_effects_average_over_the_fitted_covariates() -> None:
    model = fit(2000 * joint(TRUTH, TAU) @ LAW)
    yes = [row for row in model.effects("c").rows if row.answer == "yes"]
    shares = {c: 1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * np.array([0, 1]) + shift)))
              for c, shift in (("never", 0.0), ("some", TRUTH[2]), ("often", TRUTH[3]))}  # fmt: skip
    # Categories have the order of the choices.
    assert [row.at for row in yes] == ["c: never → some", "c: never → often"]
    for row, c in zip(yes, ("some", "often"), strict=True):
        assert row.estimate == pytest.approx((shares[c] - shares["never"]).mean(), abs=1e-8)


def test_models_that_pairs_cannot_determine_are_refused() -> None:
    counts = np.full((2, 6), 50.0)
    with pytest.raises(InvalidRequest, match="table of reports"):
        reports = Sample(("q", "c"), (table(LAW, ROWS, counts, ANSWERS),))
        three = outcome("q", ("yes", "no", "both"), None, ("yes",), None)
        fit_sample(reports, split("q ~ c", ["g", "c"]), three)
    blind = np.kron(OUT, np.full((3, 3), 1 / 3))
    reports = Sample(("q", "c"), (table(blind, ROWS, counts, ANSWERS),))
    with pytest.raises(InvalidRequest, match="do not determine"):
        fit_sample(reports, split("q ~ c", ["g", "c"]), outcome("q", ANSWERS[0], None, None, None))
