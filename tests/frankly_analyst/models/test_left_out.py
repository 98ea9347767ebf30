# SPDX-License-Identifier: Apache-2.0
"""Reports left out for want of public answers: what they do to estimates, by hand."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Counts, InvalidRequest, models
from scipy import stats

from tests.refusals import refusal

LAW = np.array([[3, 1], [1, 3]]) / 4
DECODER = [[1.5, -0.5], [-0.5, 1.5]]
PART: dict[str, Any] = {
    "document": "sha256:a", "version": 1, "release": 1, "block": "q", "kind": "table", "n": 5000, "minimum": 100,
    "questions": [{"id": "q", "text": {"en": "?"}, "choices": [
        {"id": i, "label": {"en": i}} for i in ("yes", "no")]}],
    "factors": [{"name": "dense", "denominator": 4, "weights": [[3, 1], [1, 3]], "design_prior": [1, 1],
                 "decoder": DECODER}],
}  # fmt: skip


def _counts(known: dict[str, tuple[int, float]], rest: tuple[int, float]) -> Counts:
    """Return expected counts of groups, and of the reports left out: (number, true share of yes)."""

    def expected(n: int, share: float) -> list[int]:
        return [round(float(c)) for c in n * np.array([share, 1 - share]) @ LAW]

    strata = [{"by": {"g": g}, "n": n, "counts": expected(n, p)} for g, (n, p) in known.items()]
    left = {"n": rest[0], "counts": expected(*rest)} if rest[0] else None
    part = deepcopy(PART) | {
        "strata": strata, "withheld": {"strata": 2, "reports": min(rest[0], 150)},
        "without_stratum": max(rest[0] - 150, 0), "rest": left,
    }  # fmt: skip
    return Counts.from_json({
        "survey": "s", "title": {"en": "S"}, "languages": ["en"], "n": 5000, "by": ["g"],
        "strata_questions": [], "parts": [part],
    })  # fmt: skip


KNOWN = {"a": (3200, 0.25), "b": (1600, 0.5)}


def test_the_bias_of_leaving_reports_out_is_shown() -> None:
    """Small groups hold 800 of 5,600 reports, and yes is commoner there: 70 % instead of a third.

    Without them the share is 1/3, of all reports it is (1600 + 560) / 5600: the shift is the bias of
    the known ones as an estimate of all, whatever model or weight describes the known groups.
    """
    counts = _counts(KNOWN, (800, 0.7))
    found = models.left_out(counts, "q")
    assert (found.n, found.left_out, found.withheld) == (4800, 800, 150)
    yes = found.rows[0]
    assert (yes.known, yes.left_out) == pytest.approx((1 / 3, 0.7), abs=1e-12)
    assert yes.shift == pytest.approx(1 / 3 - 2160 / 5600, abs=1e-12)
    everyone = counts.table("q").columns
    known = counts.table("q", complete=True).columns
    means = [next(c.mean or 0 for c in table if c.name == "q_yes") for table in (known, everyone)]
    assert yes.shift == pytest.approx(means[0] - means[1], abs=1e-12)
    # The model of the known groups is right for them, and its average over the respondents has the bias.
    predicted = models.fit("q ~ g", counts, success="yes").predict([{"g": "a"}, {"g": "b"}])
    shares = [row.estimate for row in predicted.rows if "yes" in row.answer]
    assert shares == pytest.approx([0.25, 0.5], abs=1e-9)
    assert np.dot(shares, [2 / 3, 1 / 3]) - 2160 / 5600 == pytest.approx(yes.shift, abs=1e-9)
    assert found.p < 1e-6
    assert "models.left_out compares" in str(models.fit("q ~ g", counts, success="yes"))


def test_the_test_is_that_of_two_independent_shares() -> None:
    found = models.left_out(_counts(KNOWN, (400, 0.4)), "q", level=0.9)
    rates = [np.array([p, 1 - p]) @ LAW for p in (1 / 3, 0.4)]
    variance = sum(
        4 * r[0] * r[1] / (n - 1) for r, n in zip(rates, (4800, 400), strict=True)
    )  # scores differ by 2
    yes = found.rows[0]
    assert yes.se == pytest.approx(np.sqrt(variance), rel=1e-12)
    z = (0.4 - 1 / 3) / np.sqrt(variance)
    assert (found.df, found.chi2) == (1, pytest.approx(z**2, rel=1e-9))
    assert found.p == pytest.approx(2 * stats.norm.sf(z), rel=1e-9)
    half = stats.norm.ppf(0.95) * yes.se
    assert (yes.low, yes.high) == pytest.approx((0.4 - 1 / 3 - half, 0.4 - 1 / 3 + half), abs=1e-9)
    assert list(found.to_pandas()["choice"]) == ["yes", "no"]
    assert "4800 reports with public answers, 400 without (150 in strata below" in str(found)
    assert "<td>yes</td>" in found._repr_html_()


def test_bad_input_is_named() -> None:
    for known, rest in ((KNOWN, (0, 0.0)), (KNOWN, (1, 0.0)), ({}, (800, 0.5))):
        error = refusal(InvalidRequest, models.left_out, _counts(known, rest), "q")
        assert (error.code, error.field) == ("counts_invalid", "counts")
    counts = _counts(KNOWN, (800, 0.5))
    error = refusal(InvalidRequest, models.left_out, counts, "q", level=95)
    assert (error.code, error.field) == ("targets_invalid", "level")
    error = refusal(InvalidRequest, models.left_out, counts, "age")
    assert (error.code, error.field) == ("targets_invalid", "questions")
