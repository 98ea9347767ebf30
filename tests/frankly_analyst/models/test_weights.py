# SPDX-License-Identifier: Apache-2.0
"""Weights and weighted estimates, compared with R's survey package and with hand calculations."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models import weights as weighting
from frankly_analyst.models.sample import SIMPLE, STRATA, Sample, table
from frankly_analyst.models.weighted import estimate

from tests.frankly_analyst.models import survey_case as case

HERE = Path(__file__).resolve().parent / "r"


def test_every_number_equals_that_of_r_survey_to_6_digits() -> None:
    """The R output comes from survey 4.1-1 under R 4.2.2; `survey.R` reproduces it."""
    reference, found = case.read((HERE / "survey.csv").read_text()), case.computed()
    assert len(reference) == 153
    assert found.keys() == reference.keys()
    for name, value in reference.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@pytest.mark.full_only
def test_r_survey_gives_these_numbers(tmp_path: Path) -> None:
    reports, out = tmp_path / "reports.csv", tmp_path / "out.csv"
    reports.write_text(case.reports_csv(case.sample()))
    subprocess.run(["Rscript", HERE / "survey.R", reports, out], check=True, timeout=300)
    found = case.computed()
    for name, value in case.read(out.read_text()).items():
        assert found[name] == pytest.approx(value, rel=1e-6), name


def test_equal_weights_give_the_server_s_variance() -> None:
    reports = case.sample()
    made = estimate(reports, np.eye(3), case.CHOICES, None)
    version = reports.versions[0]
    rate = version.counts.sum(axis=0) / version.n.sum()
    V = version.decoder
    variance = V @ (np.diag(rate) - np.outer(rate, rate)) @ V.T / (version.n.sum() - 1)
    assert made.covariance == pytest.approx(variance, rel=1e-12)


def test_the_factors_of_the_design_effect_have_their_definitions() -> None:
    """The privacy factor comes from the mechanism alone, a simple sample has the sampling factor 1,
    and the product is the total."""
    reports = case.sample()
    for weights, sampling in case.designs(reports).values():
        for row in estimate(reports, np.eye(3), case.CHOICES, weights, sampling).rows:
            product = (row.deff_privacy or 0) * row.deff_sampling * (row.deff_weighting or 0)
            direct = row.estimate * (1 - row.estimate) / row.n
            assert product == pytest.approx(row.deff, rel=1e-12)
            assert row.deff == pytest.approx(row.se**2 / direct, rel=1e-9)
            assert row.effective_n == pytest.approx(row.n / product, rel=1e-9)
            if weights is None and sampling == SIMPLE:
                assert row.deff_sampling == 1
                assert row.deff_weighting == pytest.approx(row.n / (row.n - 1), rel=1e-9)


def test_warners_privacy_factor_is_in_closed_form() -> None:
    p, counts = 0.8, np.array([[300, 700]])
    law = np.array([[p, 1 - p], [1 - p, p]])
    reports = Sample(("q",), (table(law, [{"g": "a"}], counts, ("yes", "no")),))
    row = estimate(reports, np.eye(2), ("yes", "no"), None).rows[0]
    share = (0.3 - 0.2) / 0.6
    assert row.deff_privacy == pytest.approx(0.3 * 0.7 / 0.36 / (share * (1 - share)), rel=1e-12)


def test_trimmed_weights_keep_the_sum_and_say_what_moved() -> None:
    reports = case.sample()
    raked = weighting.rake(
        reports, {"region": {"n": 10000, "m": 500, "s": 1000}, "sex": {"f": 9000, "w": 2500}}
    )
    cut = raked.trimmed(2.0, 0.25)
    mean = raked.n @ raked.weights / raked.n.sum()
    assert cut.n @ cut.weights == pytest.approx(raked.n @ raked.weights)
    assert cut.weights.max() <= 2.0 * mean * (1 + 1e-12)
    assert cut.weights.min() >= 0.25 * mean * (1 - 1e-12)
    changed = (raked.weights > 2.0 * mean) | (raked.weights < 0.25 * mean)
    assert cut.trimmed_strata >= changed.sum() > 0
    assert 0 < cut.moved < 1
    assert cut.gap > 0.01
    assert cut.calibrated is None
    assert cut.kish < raked.kish
    assert "trimmed:" in str(cut)
    same = raked.trimmed(100.0)
    assert same.trimmed_strata == 0
    assert same.calibrated is not None


def test_raked_weights_meet_every_total() -> None:
    reports = case.sample()
    for method in weighting.METHODS:
        frame = weighting.rake(
            reports, {"region": case.REGION, "sex": case.SEX}, method=method
        ).to_pandas()
        for name, totals in (("region", case.REGION), ("sex", case.SEX)):
            sums = (frame.weight * frame.n).groupby(frame[name]).sum()
            assert dict(sums) == pytest.approx(totals, rel=1e-9)


REGION, SEX = case.REGION, case.SEX
TEXT: Any = "many"
LIST: Any = [REGION]
NUMBER: Any = 12000
BAD: dict[str, tuple[Any, str, str]] = {
    "unknown covariate": (lambda s: weighting.rake(s, {"colour": {"red": 1.0}}), "by", "public covariate"),
    "no margin": (lambda s: weighting.rake(s, {}), "totals", "at least one"),
    "a cell is missing": (lambda s: weighting.rake(s, {"region": {"n": 1, "m": 2}}), "totals", "s has no known"),
    "a cell is empty": (lambda s: weighting.rake(s, {"region": REGION | {"x": 3}}), "totals", "x has a known total"),
    "negative": (lambda s: weighting.rake(s, {"sex": {"f": -1, "w": 2}}), "totals", "positive"),
    "not a number": (lambda s: weighting.rake(s, {"sex": {"f": float("nan"), "w": 2}}), "totals", "finite numbers"),
    "a text": (lambda s: weighting.rake(s, {"sex": {"f": TEXT, "w": 2}}), "totals", "finite numbers"),
    "not by margin": (lambda s: weighting.rake(s, LIST), "totals", "at least one margin"),
    "not by cell": (lambda s: weighting.poststratify(s, "sex", NUMBER), "totals", "a number for each cell"),
    "given: a text": (lambda s: weighting.given(s, dict.fromkeys("nms", TEXT), "region"), "weights", "finite numbers"),
    "limit: a text": (lambda s: weighting.equal(s).trimmed(TEXT), "most", "finite numbers"),
    "contrast": (lambda s: estimate(s, np.eye(3), case.CHOICES, None).contrast({"a": TEXT}), "of", "finite numbers"),
    "contradiction": (lambda s: weighting.rake(s, {"region": REGION, "sex": {"f": 1, "w": 2}}), "totals", "agree"),
    "method": (lambda s: weighting.rake(s, {"sex": SEX}, method="logit"), "method", "raking"),
    "given: missing": (lambda s: weighting.given(s, {"n": 1.0}, "region"), "weights", "no weight"),
    "given: zero": (lambda s: weighting.given(s, {"n": 1.0, "m": 0, "s": 1}, "region"), "weights", "positive"),
    "limit": (lambda s: weighting.rake(s, {"sex": SEX}).trimmed(0.9), "most", "above 1"),
    "sampling": (lambda s: estimate(s, np.eye(3), case.CHOICES, None, "cluster"), "sampling", SIMPLE),
    "level": (lambda s: estimate(s, np.eye(3), case.CHOICES, None, STRATA, 95), "level", "between"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    call, field, said = BAD[name]
    with pytest.raises(InvalidRequest) as caught:
        call(case.sample())
    assert caught.value.field == field
    assert said in str(caught.value)


def test_cells_may_be_named_by_numbers() -> None:
    rows = [{"age": "18"}, {"age": "40"}]
    reports = Sample(("q",), (table(np.eye(2), rows, np.array([[3, 4], [5, 6]]), ("a", "b")),))
    made = weighting.rake(reports, {"age": {18: 10, 40: 22}})
    assert made.weights == pytest.approx([10 / 7, 2])


def test_weights_of_other_strata_are_refused() -> None:
    reports = case.sample()
    other = Sample(("q",), (table(np.eye(3), [{"region": "n"}], np.ones((1, 3)), case.CHOICES),))
    with pytest.raises(InvalidRequest, match="other strata"):
        estimate(reports, np.eye(3), case.CHOICES, weighting.equal(other))
