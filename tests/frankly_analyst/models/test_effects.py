# SPDX-License-Identifier: Apache-2.0
"""Average marginal effects and predictions, compared with explicit formulas."""

import numpy as np
import pytest
from frankly_analyst.models.effects import _ends
from frankly_analyst.models.fitting import fit_sample
from frankly_analyst.models.formulas import split
from frankly_analyst.models.model import Model
from frankly_analyst.models.outcome import outcome
from frankly_analyst.models.sample import Sample, table
from scipy import stats

LAW = np.array([[0.8, 0.2], [0.3, 0.7]])
ROWS = [{"g": g, "x": x} for g in "ab" for x in ("0", "1", "3")]
COUNTS = np.array([[150, 250], [130, 90], [180, 120], [160, 260], [210, 190], [170, 130]])


def fit(kind: str = "logistic", **more: object) -> Model:
    reports = Sample(("q",), (table(LAW, ROWS, COUNTS, ("yes", "no")),))
    result = outcome("q", ("yes", "no"), kind, None, None)
    return fit_sample(reports, split("q ~ g + x", ["g", "x"]), result, **more)  # type: ignore[arg-type]


def test_average_marginal_effects_have_their_closed_form_and_delta_method_errors() -> None:
    model = fit()
    n = COUNTS.sum(axis=1) / COUNTS.sum()
    X = np.array([[1.0, row["g"] == "b", float(row["x"])] for row in ROWS])

    def slope(b: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-X @ b))
        return float(n @ (p * (1 - p)) * b[2])

    def difference(b: np.ndarray) -> float:
        with_b, with_a = X.copy(), X.copy()
        with_b[:, 1], with_a[:, 1] = 1, 0
        return float(n @ (1 / (1 + np.exp(-with_b @ b)) - 1 / (1 + np.exp(-with_a @ b))))

    for variable, function in (("x", slope), ("g", difference)):
        (row,) = [row for row in model.effects(variable).rows if row.answer == "yes"]
        h = 1e-6 * np.eye(3)
        gradient = np.array(
            [(function(model.beta + s) - function(model.beta - s)) / 2e-6 for s in h]
        )
        assert row.estimate == pytest.approx(function(model.beta), rel=1e-7)
        assert row.se == pytest.approx(np.sqrt(gradient @ model.covariance @ gradient), rel=1e-6)
        z = stats.norm.ppf(0.975)
        assert (row.low, row.high) == pytest.approx(
            (row.estimate - z * row.se, row.estimate + z * row.se)
        )


def test_the_saturated_prediction_is_the_decoded_share_with_its_error() -> None:
    reports = Sample(("q",), (table(LAW, ROWS, COUNTS, ("yes", "no")),))
    model = fit_sample(
        reports, split("q ~ g * C(x)", ["g", "x"]), outcome("q", ("yes", "no"), None, None, None)
    )
    rate, n = COUNTS[:, 0] / COUNTS.sum(axis=1), COUNTS.sum(axis=1)
    rows = model.predict([dict(row) for row in ROWS]).rows[1::2]
    assert [row.estimate for row in rows] == pytest.approx((rate - 0.3) / 0.5, abs=1e-9)
    total = n.sum()
    expected = np.sqrt(rate * (1 - rate) / n) / 0.5 * np.sqrt(total / (total - 1))
    assert [row.se for row in rows] == pytest.approx(expected, rel=1e-8)
    assert all(0 < row.low < row.estimate < row.high < 1 for row in rows)


def test_linear_effects_are_the_coefficients() -> None:
    model = fit("linear", scores=np.array([1.0, 0.0]))
    (row,) = model.effects("x").rows
    assert row.estimate == pytest.approx(model.beta[2], rel=1e-9)
    assert row.se == pytest.approx(model.errors()[2], rel=1e-9)
    (mean,) = model.predict([{"g": "b", "x": 2}]).rows
    assert mean.estimate == pytest.approx(model.beta @ [1, 1, 2])


def test_effects_print_export_and_plot() -> None:
    effects = fit().effects("g")
    assert "g: a → b" in str(effects)
    assert effects._repr_html_().count("<tr>") == 3
    assert list(effects.to_pandas().columns) == ["answer", "at", "estimate", "se", "low", "high"]
    assert "%" in effects.plot()


def test_a_predicted_share_near_zero_keeps_an_interval() -> None:
    """A standard error many times as large as the share must not cause an overflow."""
    assert _ends(1e-8, 0.5, 1.96, shares=True) == pytest.approx((0.0, 1.0))
    assert _ends(0.3, 0.02, 1.96, shares=True) == pytest.approx((0.262316, 0.340598), abs=1e-6)
