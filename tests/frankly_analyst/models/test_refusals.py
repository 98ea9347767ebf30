# SPDX-License-Identifier: Apache-2.0
"""Refusals of models that the counts cannot determine and of bad arguments; each error names the
field and the remedy."""

from typing import Any

import numpy as np
import pytest
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.outcome import outcome, scores_of
from frankly_analyst.models.sample import STRATA, Sample, table

LAW = np.array([[0.75, 0.25], [0.25, 0.75]])
ROWS = [
    {"g": g, "h": h, "age": a} for g, h, a in (("a", "x", "1"), ("b", "y", "2"), ("a", "x", "3"))
]
COUNTS = np.array([[60, 50], [40, 70], [55, 45]])
YES_NO = ("yes", "no")


def fit(
    formula: str, law: Any = LAW, counts: Any = COUNTS, choices: Any = YES_NO, **more: Any
) -> Any:
    reports = Sample(("q",), (table(np.asarray(law), ROWS, np.asarray(counts), choices),))
    names = {name: more.pop(name, None) for name in ("kind", "success", "reference")}
    return fit_sample(
        reports, split(formula, reports.covariates), outcome("q", choices, **names), **more
    )


THREE = ("a", "b", "c")
LAW3 = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
COUNTS3 = np.array([[50, 40, 60], [40, 50, 45], [41, 44, 48]])
BAD: dict[str, tuple[Any, str, str]] = {
    "collinear": (lambda: fit("q ~ g + h"), "formula", "h[y] cannot be distinguished"),
    "too many terms": (lambda: fit("q ~ g + age + g:age"), "formula", "cannot be distinguished"),
    "indistinguishable answers": (
        lambda: fit("q ~ g", law=np.full((2, 2), 0.5)), "formula", "do not determine"),
    "two of three answers are indistinguishable": (
        lambda: fit("q ~ 1", law=[[0.6, 0.4], [0.2, 0.8], [0.2, 0.8]], counts=COUNTS, choices=THREE),
        "formula", "do not determine"),
    "infinite": (lambda: fit("q ~ g", counts=[[60, 50], [10, 140], [50, 60]]), "formula", "g[b]"),
    "infinite for all": (lambda: fit("q ~ 1", counts=[[0, 50]] * 3), "formula", "infinite"),
    "no tilde": (lambda: fit("q + g"), "formula", "form"),
    "no outcome": (lambda: fit("~ g"), "formula", "form"),
    "unknown covariate": (lambda: fit("q ~ colour"), "formula", "colour is unknown"),
    "syntax": (lambda: fit("q ~ g +* h"), "formula", "cannot be read"),
    "brackets": (lambda: fit("q ~ (g"), "formula", "cannot be read"),
    "function": (lambda: fit("q ~ nothing(g)"), "formula", "nothing is unknown"),
    "one value": (
        lambda: fit_sample(
            Sample(("q",), (table(LAW, [{"g": "a"}], COUNTS[:1], YES_NO),)), split("q ~ g", ["g"]),
            outcome("q", YES_NO, None, None, None)),
        "formula", "g has one value"),
    "one report": (
        lambda: fit_sample(
            Sample(("q",), (table(LAW, [{"g": "a"}], np.array([[1, 0]]), YES_NO),)), split("q ~ 1", ["g"]),
            outcome("q", YES_NO, "linear", None, None), scores=np.array([1.0, 0.0])),
        "counts", "two reports"),
    "two parts": (lambda: fit("q ~ g | h"), "formula", "several parts"),
    "kind": (lambda: fit("q ~ g", kind="probit"), "kind", "logistic"),
    "success": (lambda: fit("q ~ g", success="maybe"), "success", "yes, no"),
    "no success": (lambda: fit("q ~ g", success=()), "success", "yes, no"),
    "all succeed": (lambda: fit("q ~ g", success=YES_NO), "success", "at least one"),
    "success is needed": (
        lambda: fit("q ~ g", kind="logistic", law=LAW3, counts=COUNTS3, choices=THREE), "success", "count as yes"),
    "reference": (
        lambda: fit("q ~ g", law=LAW3, counts=COUNTS3, choices=THREE, reference="d"), "reference", "a, b, c"),
    "reference of logistic": (lambda: fit("q ~ g", reference="yes"), "reference", "multinomial"),
    "sampling": (lambda: fit("q ~ g", sampling="quota"), "sampling", "simple, strata"),
    "level": (lambda: fit("q ~ g", level=1.0), "level", "between 0 and 1"),
    "numeric: covariate": (lambda: fit("q ~ g", numeric={"colour": {"red": 1.0}}), "numeric", "colour"),
    "numeric: value": (lambda: fit("q ~ g", numeric={"g": {"a": 1.0}}), "numeric", "no number for b"),
    "scores": (lambda: fit("q ~ g", kind="linear"), "scores", "needs them"),
    "score missing": (lambda: scores_of(THREE, {"a": 1.0, "b": 2.0}, {}), "scores", "no number for c"),
    "predict: covariate": (lambda: fit("q ~ g").predict([{"h": "x"}]), "at", "no value of g"),
    "predict: value": (lambda: fit("q ~ g").predict([{"g": "z"}]), "at", "z is not a value of g"),
    "predict: number": (lambda: fit("q ~ age").predict([{"age": "old"}]), "at", "missing or unknown"),
    "predict: nothing": (lambda: fit("q ~ g").predict([]), "at", "at least one"),
    "effects": (lambda: fit("q ~ g").effects("h"), "variable", "not a covariate"),
    "wald": (lambda: fit("q ~ g").wald("h"), "terms", "not a term of this model: it has 1, g"),
    "wald: nothing": (lambda: fit("q ~ g").wald(), "terms", "at least one"),
    "level: text": (lambda: fit("q ~ g", level="0.9"), "level", "finite numbers"),
    "numeric: text": (lambda: fit("q ~ g", numeric={"g": {"a": "1", "b": "c"}}), "numeric", "finite numbers"),
    "score: text": (lambda: scores_of(THREE, {"a": 1.0, "b": 2.0, "c": "x"}, {}), "scores", "finite numbers"),  # type: ignore[dict-item]
    "predict: one row": (lambda: fit("q ~ g").predict({"g": "a"}), "at", "list of at least one row"),
    "errors": (lambda: fit("q ~ g").errors("robust"), "errors", "sandwich or model"),
    "negative counts": (lambda: fit("q ~ g", counts=[[60, -5], [3, 4], [3, 4]]), "counts", "negative"),
    "an empty stratum": (lambda: fit("q ~ g", counts=[[0, 0], [3, 4], [3, 4]]), "counts", "needs reports"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_each_refusal_names_its_field_and_the_remedy(name: str) -> None:
    call, field, said = BAD[name]
    with pytest.raises(InvalidRequest) as caught:
        call()
    assert caught.value.field == field
    assert said in str(caught.value)


def test_a_linear_model_stays_finite_where_the_logistic_one_does_not() -> None:
    model = fit(
        "q ~ g", counts=[[60, 50], [10, 140], [50, 60]], kind="linear", scores=np.array([1.0, 0.0])
    )
    assert np.isfinite(model.errors()).all()
    assert model.beta.sum() < 0  # a decoded share below 0


def test_strata_with_one_report_are_reported() -> None:
    counts = [[60, 50], [40, 70], [1, 0]]
    model = fit("q ~ g", counts=counts, kind="linear", scores=np.array([1.0, 0.0]), sampling=STRATA)
    assert "1 strata have one report" in str(model)


def test_withheld_strata_are_reported() -> None:
    version = table(LAW, ROWS, COUNTS, YES_NO)
    reports = Sample(("q",), (version,), withheld=(2, 7), without_stratum=3)
    model = fit_sample(reports, split("q ~ g", ["g"]), outcome("q", YES_NO, None, None, None))
    assert "2 strata with 7 reports were withheld" in str(model)
    assert "3 reports without public answers" in str(model)


def test_numbers_are_numeric_unless_the_formula_says_categories() -> None:
    assert [t for _, t in fit("q ~ age").terms] == ["Intercept", "age"]
    assert len(fit("q ~ C(age)").terms) == 3
    coded = fit("q ~ g", numeric={"g": {"a": 0.0, "b": 2.0}})
    assert coded.beta[1] * 2 == pytest.approx(fit("q ~ g").beta[1])
