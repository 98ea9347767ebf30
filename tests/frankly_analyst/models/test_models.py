# SPDX-License-Identifier: Apache-2.0
"""Models of noisy answers, compared with maximum likelihood on single reports and with closed forms."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.model import Model
from frankly_analyst.models.outcome import outcome
from frankly_analyst.models.sample import SIMPLE, STRATA, Sample, Version, table
from frankly_analyst.models.weights import given

from tests.frankly_analyst.models import brute

Q2 = np.array([[0.75, 0.25], [0.2, 0.8]])
Q3 = np.array([[6, 1, 1, 2], [1, 6, 2, 1], [2, 1, 6, 1]]) / 10
ROWS = [{"g": g, "x": str(x)} for g, x in product("ab", (0, 1, 2))]
CHOICES = ("low", "mid", "high")


def fit(versions: Any, formula: str = "q ~ g + x", kind: str | None = None, **more: Any) -> Model:
    reports = Sample(("q",), versions if isinstance(versions, tuple) else (versions,))
    success, reference = more.pop("success", None), more.pop("reference", None)
    result = outcome("q", reports.answers[0], kind, success, reference)
    return fit_sample(reports, split(formula, reports.covariates), result, **more)


def drawn(law: np.ndarray, shares: np.ndarray, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(n, p @ law) for p in shares])


def matrix() -> np.ndarray:
    """Return the model matrix of 1 + g + x, written out."""
    return np.array([[1.0, row["g"] == "b", float(row["x"])] for row in ROWS])


def logistic_shares(beta: np.ndarray) -> np.ndarray:
    p = 1 / (1 + np.exp(-matrix() @ beta))
    return np.column_stack([p, 1 - p])  # "yes" comes first


def multinomial_shares(beta: np.ndarray) -> np.ndarray:
    eta = matrix() @ beta.reshape(2, 3).T
    # Columns: low, mid, and the reference high.
    return brute.softmax(np.column_stack([eta, np.zeros(len(eta))]))


def ordinal_shares(beta: np.ndarray) -> np.ndarray:
    eta = matrix()[:, 1:] @ beta[2:]
    below = 1 / (1 + np.exp(-(beta[:2] - eta[:, None])))
    return np.column_stack([below[:, 0], below[:, 1] - below[:, 0], 1 - below[:, 1]])


CASES = {
    "logistic": (Q2, ("yes", "no"), logistic_shares, np.array([-0.4, 0.8, 0.3])),
    "multinomial": (Q3, CHOICES, multinomial_shares, np.array([0.2, 0.5, -0.3, -0.4, 0.6, 0.4])),
    "ordinal": (Q3, CHOICES, ordinal_shares, np.array([-0.6, 0.9, 0.7, -0.3])),
}


@pytest.mark.parametrize("kind", CASES)
def test_estimates_and_errors_equal_those_of_maximum_likelihood_on_single_reports(
    kind: str,
) -> None:
    law, choices, shares, truth = CASES[kind]
    counts = drawn(law, shares(truth), 400, seed=3)
    model = fit(table(law, ROWS, counts, choices), kind=kind)
    h, y = brute.expand(ROWS, counts)

    def of_reports(beta: np.ndarray) -> np.ndarray:
        return (shares(beta) @ law)[h, y]

    beta, likelihood = brute.maximum(of_reports, truth)
    assert model.beta == pytest.approx(beta, abs=1e-6)
    assert model.fit is not None
    assert model.fit.log_likelihood == pytest.approx(likelihood, abs=1e-7)
    inverse, n = np.linalg.inv(brute.hessian(of_reports, beta)), len(h)
    u = brute.scores(of_reports, beta)
    middle = u.T @ u * n / (n - 1)
    expected = inverse @ middle @ inverse
    # Second differences of the likelihood are accurate to 1e-5 of the largest entry.
    assert model.covariance == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())
    # Model errors use the expected information; the observed information differs by sampling noise.
    assert model.errors("model") == pytest.approx(np.sqrt(np.diag(inverse)), rel=0.05)


@pytest.mark.parametrize("kind", CASES)
def test_expected_counts_give_back_the_truth_and_equal_errors(kind: str) -> None:
    """At the expected counts of a model, its parameters solve the equations, and both kinds of
    errors agree."""
    law, choices, shares, truth = CASES[kind]
    expected = 1000 * shares(truth) @ law
    model = fit(table(law, ROWS, expected, choices), kind=kind)
    assert model.beta == pytest.approx(truth, abs=1e-9)
    n = expected.sum()
    assert model.errors() == pytest.approx(model.errors("model") * math.sqrt(n / (n - 1)), rel=1e-8)
    assert model.fit is not None
    assert model.fit.deviance == pytest.approx(0, abs=1e-6)


def test_the_model_information_equals_that_of_a_finite_difference() -> None:
    law, choices, shares, truth = CASES["multinomial"]
    expected = 1000 * shares(truth) @ law
    h, y = np.indices(expected.shape).reshape(2, -1)

    def of_cells(beta: np.ndarray) -> np.ndarray:
        return (shares(beta) @ law)[h, y]

    u = brute.scores(of_cells, truth)
    information = (u * expected.ravel()[:, None]).T @ u
    model = fit(table(law, ROWS, expected, choices), kind="multinomial")
    assert model.model_covariance == pytest.approx(np.linalg.inv(information), rel=1e-6)


def test_warners_design_with_one_binary_covariate_has_its_closed_form() -> None:
    p, counts = 0.75, np.array([[180, 320], [290, 210]])
    law = np.array([[p, 1 - p], [1 - p, p]])
    model = fit(table(law, [{"g": "a"}, {"g": "b"}], counts, ("yes", "no")), "q ~ g")
    rate = counts[:, 0] / 500
    share = (rate - (1 - p)) / (2 * p - 1)
    logit = np.log(share / (1 - share))
    error = np.sqrt(rate * (1 - rate) / 500) / ((2 * p - 1) * share * (1 - share))
    assert model.beta == pytest.approx([logit[0], logit[1] - logit[0]], abs=1e-10)
    assert model.errors("model") == pytest.approx([error[0], np.hypot(*error)], rel=1e-9)
    strata = fit(
        table(law, [{"g": "a"}, {"g": "b"}], counts, ("yes", "no")), "q ~ g", sampling=STRATA
    )
    assert strata.errors() == pytest.approx(model.errors("model") * np.sqrt(500 / 499), rel=1e-9)


def test_two_versions_are_pooled_by_their_likelihoods() -> None:
    _, choices, shares, truth = CASES["logistic"]
    other = np.array([[0.9, 0.05, 0.05], [0.1, 0.2, 0.7]])
    first, second = drawn(Q2, shares(truth), 300, 5), drawn(other, shares(truth), 200, 6)
    versions = (
        table(Q2, ROWS, first, choices, document="1"),
        table(other, ROWS, second, choices, document="2"),
    )
    model = fit(versions)
    places = [brute.expand(ROWS, counts) for counts in (first, second)]

    def of_reports(beta: np.ndarray) -> np.ndarray:
        laws = (Q2, other)
        return np.concatenate(
            [(shares(beta) @ law)[h, y] for law, (h, y) in zip(laws, places, strict=True)]
        )

    beta, _ = brute.maximum(of_reports, truth)
    assert model.beta == pytest.approx(beta, abs=1e-6)
    assert "2 documents" in str(model)


@pytest.mark.parametrize("sampling", [SIMPLE, STRATA])
def test_a_linear_model_is_least_squares_of_decoded_scores(sampling: str) -> None:
    law, choices, shares, truth = CASES["ordinal"]
    counts = drawn(law, shares(truth), 300, seed=9)
    version, scores = table(law, ROWS, counts, choices), np.array([1.0, 2.0, 4.0])
    model = fit(version, kind="linear", scores=scores, sampling=sampling)
    h, y = brute.expand(ROWS, counts)
    X, d = matrix()[h], (scores @ version.decoder)[y]
    beta = np.linalg.lstsq(X, d, rcond=None)[0]
    u = X * (d - X @ beta)[:, None]
    if sampling == SIMPLE:
        middle = u.T @ u * len(u) / (len(u) - 1)
    else:
        middle = sum(np.cov(u[h == k].T) * (h == k).sum() for k in range(len(ROWS)))
    bread = np.linalg.inv(X.T @ X)
    assert model.beta == pytest.approx(beta, abs=1e-10)
    assert model.covariance == pytest.approx(bread @ middle @ bread, rel=1e-9)


def test_weights_make_the_sandwich_of_weighted_reports() -> None:
    law, choices, shares, truth = CASES["logistic"]
    counts = drawn(law, shares(truth), 300, seed=2)
    version = table(law, ROWS, counts, choices)
    weights = given(Sample(("q",), (version,)), {"a": 2.0, "b": 0.5}, "g")
    model = fit(version, weights=weights)
    h, y = brute.expand(ROWS, counts)
    w = np.where(np.array([row["g"] for row in ROWS])[h] == "a", 2.0, 0.5)

    def of_reports(beta: np.ndarray) -> np.ndarray:
        return ((shares(beta) @ law)[h, y]) ** w

    beta, _ = brute.maximum(of_reports, truth)
    assert model.beta == pytest.approx(beta, abs=1e-6)
    assert model.model_covariance is None
    assert model.fit is None
    u = brute.scores(of_reports, beta)
    n = len(u)
    M = u.T @ u * n / (n - 1)
    bread = np.linalg.inv(brute.hessian(of_reports, beta))
    assert model.covariance == pytest.approx(bread @ M @ bread, rel=1e-5)


def unary(shares: np.ndarray, n: float, *, pairs: bool) -> Version:
    """Return the expected counts of a unary mechanism, computed by enumerating its 8 reports."""
    inside, outside, a = 0.5, 0.2, 3
    masks = np.array(list(product((0, 1), repeat=a)))
    chance = np.where(np.eye(a, dtype=bool), inside, outside)
    law = np.array(
        [np.prod(np.where(masks == 1, chance[s], 1 - chance[s]), axis=1) for s in range(a)]
    )
    second = np.einsum("sm,mi,mj->sij", law, masks, masks)
    mix = np.einsum("hs,sij->hij", shares, second) * n
    return Version(
        "1", (CHOICES,), chance, np.eye(a) / (inside - outside), np.full(a, 1 / a),
        table(Q3, ROWS, np.ones((6, 4)), CHOICES).strata, np.einsum("hii->hi", mix), np.full(len(ROWS), n), second,
        mix if pairs else None, np.full(a, -outside / (inside - outside)),
    )  # fmt: skip


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("kind", ["multinomial", "ordinal"])
def test_sets_have_quasi_scores_with_equal_errors_at_the_truth(kind: str, *, pairs: bool) -> None:
    _, _, shares, truth = CASES[kind]
    version = unary(shares(truth), 500.0, pairs=pairs)
    model = fit(version, kind=kind)
    assert version.decoded(np.eye(3)) == pytest.approx(shares(truth))
    assert model.beta == pytest.approx(truth, abs=1e-7)
    n = version.n.sum()
    assert model.errors() == pytest.approx(model.errors("model") * math.sqrt(n / (n - 1)), rel=1e-6)
    assert model.fit is None


@pytest.mark.parametrize("kind", ["multinomial", "ordinal"])
def test_single_choices_and_groups_of_choices_are_modelled_by_decoded_scores(kind: str) -> None:
    """A logistic model of a group of choices does not depend on the shares of the other choices."""
    _, _, shares, truth = CASES[kind]
    expected = 1000 * shares(truth) @ Q3
    model = fit(table(Q3, ROWS, expected, CHOICES), "q ~ C(g)*C(x)", success=("low", "mid"))
    group = shares(truth)[:, :2].sum(axis=1)
    predicted = model.predict([{"g": row["g"], "x": row["x"]} for row in ROWS])
    assert [row.estimate for row in predicted.rows[1::2]] == pytest.approx(group, abs=1e-9)


def test_strata_are_added_up_unless_the_design_needs_them() -> None:
    law, choices, shares, truth = CASES["logistic"]
    counts = drawn(law, shares(truth), 300, seed=2)
    version = table(law, ROWS, counts, choices)
    model, separate = fit(version, "q ~ g"), fit(version, "q ~ g", sampling=STRATA)
    assert (model.strata, separate.strata) == (2, 6)
    assert model.beta == pytest.approx(separate.beta, abs=1e-9)
    assert not np.allclose(model.errors(), separate.errors(), rtol=1e-5)


def test_a_wald_test_is_of_the_terms_named() -> None:
    law, choices, shares, truth = CASES["logistic"]
    version = table(law, ROWS, drawn(law, shares(truth), 900, 4), choices)
    model = fit(version, "q ~ g * C(x)")
    names = [name for _, name in model.terms]

    def by_hand(*wanted: str) -> tuple[Any, int]:
        at = [names.index(name) for name in wanted]
        b, V = model.beta[at], model.covariance[np.ix_(at, at)]
        return pytest.approx(b @ np.linalg.inv(V) @ b), len(at)

    both = ("g[b]:C(x)[1.0]", "g[b]:C(x)[2.0]")
    assert model.wald("g")[:2] == by_hand("g[b]")
    assert model.wald("x")[:2] == model.wald("C(x)")[:2] == by_hand("C(x)[1.0]", "C(x)[2.0]")
    assert model.wald("g:C(x)")[:2] == model.wald("C(x):g")[:2] == by_hand(*both)
    assert model.wald("g", "g[b]", "g:C(x)")[:2] == by_hand("g[b]", *both)


def test_models_print_export_and_plot() -> None:
    law, choices, shares, truth = CASES["multinomial"]
    model = fit(table(law, ROWS, drawn(law, shares(truth), 500, 1), choices), reference="high")
    text = str(model)
    assert "log odds of low, mid against high" in text
    assert "low: g[b]" in text
    assert model._repr_html_().count("<tr>") == 7
    frame = model.to_pandas()
    assert list(frame.columns[:4]) == ["equation", "term", "estimate", "se"]
    assert frame.odds_ratio.iloc[1] == pytest.approx(math.exp(frame.estimate.iloc[1]))
    assert "<svg" in model.plot()
    chi2, df, p = model.wald("g")
    assert df == 2
    assert 0 < p < 1
    assert chi2 > 0
