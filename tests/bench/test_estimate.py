# SPDX-License-Identifier: Apache-2.0
"""Coverage of margins of error in simulated surveys with twelve designs that cover every mechanism kind."""

import importlib
import sys
from bisect import bisect_left
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.chernoff import sequence
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.figures import Figures
from frankly_design.estimate.intervals import sequence_of_two
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.scores import Score, TwoValues
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
coverage = importlib.import_module("_estimate.coverage")
designs = importlib.import_module("_estimate.designs")
sys.path.pop(0)
GUARANTEED, cases = coverage.GUARANTEED, designs.cases
SIZES, TRUTHS = designs.SIZES, designs.TRUTHS
LEVEL = 0.95
_FULL = [(c, n, t) for c, (n, t) in product(range(12), product(SIZES, TRUTHS))]
# Every design occurs once; every n and every truth occur four times.
_SMALL = [(c, SIZES[c % 3], TRUTHS[(c + c // 3) % 3]) for c in range(12)]


def cell(index: int, n: int, truth: str, runs: int) -> Any:
    return coverage.measure(cases()[index], truth, n, runs, seed=1000 * index + n)


def judge(figures: Any, cells: list[Any]) -> None:
    """Check a cell, allowing 3 standard errors corrected for the number of comparisons."""
    compared = sum(cases()[index].mechanism.answers for index, *_ in cells)
    for method in GUARANTEED:
        assert figures.below(method, LEVEL) <= coverage.corrected(3, compared * len(GUARANTEED)), (
            method,
            figures,
        )
    assert figures.variance_z <= coverage.corrected(3, compared), figures


def test_the_correction_keeps_the_error_rate_of_one_comparison() -> None:
    assert coverage.corrected(3, 1) == pytest.approx(3)
    assert 100 * stats.norm.cdf(-coverage.corrected(3, 100)) == pytest.approx(stats.norm.cdf(-3))


@pytest.mark.parametrize(("index", "n", "truth"), _SMALL)
def test_margins_hold_and_variances_are_true(index: int, n: int, truth: str) -> None:
    judge(cell(index, n, truth, 60), _SMALL)


@pytest.mark.full_only
@pytest.mark.parametrize(("index", "n", "truth"), _FULL)
def test_margins_hold_and_variances_are_true_in_2000_runs(index: int, n: int, truth: str) -> None:
    judge(cell(index, n, truth, 2000), _FULL)


def test_the_plugin_form_undercovers_at_its_documented_cell() -> None:
    """At n = 50, ε = 4 and a true share of 0, coverage is about 60% instead of 95%."""
    row = cell(1, 50, "corner", 120)
    assert (row.coverage["chebyshev_plugin"] or 0) < 0.8


def held_from_to(
    ends: Callable[[int, int], tuple[float, float]], n: int, q: float, truth: float
) -> tuple[int, int]:
    """Return the smallest and largest count whose interval contains the truth; interval ends
    increase with the count."""
    middle = round(q * n)

    def holds(k: int) -> bool:
        low, high = ends(k, n)
        return low <= truth <= high

    assert holds(middle)
    least = bisect_left(range(middle), x=True, key=holds)
    return least, middle + bisect_left(range(middle + 1, n + 1), x=True, key=lambda k: not holds(k))


def test_sequences_hold_at_a_hundred_looks() -> None:
    low, high, q = (-0.5, -0.5), (1.5, 1.5), 0.3  # Warner with ¾: truth ¼·… = −½ + 2q
    truth, w = -0.5 + 2 * q, np.array([0.0, 1.0])
    paths, looks = 2000, np.unique(np.geomspace(2, 4000, 100).astype(int))
    sums = (
        np.random.default_rng(5)
        .binomial(np.diff(looks, prepend=0), q, size=(paths, len(looks)))
        .cumsum(axis=1)
    )

    def of_two(k: int, n: int) -> tuple[float, float]:
        return sequence_of_two(TwoValues(low, high, k), n, LEVEL)

    def plain(k: int, n: int) -> tuple[float, float]:
        return sequence(Score(-0.5 + 2 * k / n, (-0.5, 1.5)), w, n, LEVEL)

    for ends in (of_two, plain):
        smallest, largest = np.array([held_from_to(ends, int(n), q, truth) for n in looks]).T
        held = ((smallest <= sums) & (sums <= largest)).all(axis=1).mean()
        assert held >= LEVEL - 2 * (LEVEL * (1 - LEVEL) / paths) ** 0.5


def test_the_fit_test_rarely_raises_false_alarms_and_detects_attacks(full: bool) -> None:
    """At most 1% of honest surveys raise an alarm; at least 95% do if 5% of reports are fakes of
    the most effective kind."""
    case = cases()[7]  # 3 answers, 5 reports: two spare dimensions
    rng, runs, n = np.random.default_rng(8), 2000 if full else 100, 20_000
    alarms = detected = 0
    p = case.truth("skewed")
    best = int(
        np.argmax(
            [
                float(estimate(case.mechanism, [int(y == z) for z in range(5)]).unbiased[1] or 0)
                for y in range(5)
            ]
        )
    )
    for _ in range(runs):
        honest = rng.multinomial(n, p @ case.law)
        alarms += "reports_do_not_fit" in estimate(case.mechanism, [int(c) for c in honest]).flags
        attacked = rng.multinomial(n - n // 20, p @ case.law)
        attacked[best] += n // 20
        detected += (
            "reports_do_not_fit" in estimate(case.mechanism, [int(c) for c in attacked]).flags
        )
    assert alarms / runs <= 0.01
    assert detected / runs >= 0.95


@pytest.mark.parametrize("census", [False, True])
def test_parts_and_finite_populations_are_true_in_simulated_surveys(
    full: bool, census: bool
) -> None:
    """Check total, privacy and sampling variance for samples without replacement and for censuses.

    The privacy variance is the variance over repeated randomisations of the same answers; the
    sampling variance is the remainder.
    """
    rng, runs, people = np.random.default_rng(21), 4000 if full else 100, 400
    compared = 0
    surveys = []
    for case in (
        cases()[3],
        cases()[7],
        cases()[9],
        cases()[11],
    ):  # randomised response, a table, unary, subset
        a = case.mechanism.answers
        n = people if census else people // 2
        answers = np.arange(people) % a
        answers[: people // 2] = 0
        p = np.bincount(answers, minlength=a) / people
        values, inner, wholes, privacies = [], [], [], []
        for _ in range(runs):
            sample = np.bincount(rng.permutation(answers)[:n], minlength=a)
            drawn = np.sum(
                [rng.multinomial(k, law) for k, law in zip(sample, case.law, strict=True)], axis=0
            )
            figures = Figures(
                evidence_of(case.mechanism, case.counts(drawn), shares(a), None), a, None if census else people,
                census=census, are_shares=True,
            )  # fmt: skip
            total, privacy, _ = figures._covariances()
            assert total is not None
            assert privacy is not None
            value = np.array([float(v or 0) for v in figures.evidence.exact])
            values.append(value)
            inner.append(value - sample / n)
            wholes.append(np.diagonal(total))
            privacies.append(np.diagonal(privacy))
        for deviations, estimated in (
            (np.array(values) - p, np.array(wholes)),
            (np.array(inner), np.array(privacies)),
            (np.array(values) - np.array(inner) - p, np.array(wholes) - np.array(privacies)),
        ):
            terms = deviations**2 - estimated
            error = np.sqrt(
                np.maximum(terms.var(axis=0, ddof=1), 2 * estimated.mean(axis=0) ** 2) / runs
            )
            # A census has no sampling variance, only rounding errors: 1e-17 in variances of 1e-3.
            surveys.append(np.abs(terms.mean(axis=0)) / np.maximum(error, 1e-12))
            compared += a
    assert np.concatenate(surveys).max() <= coverage.corrected(3, compared)
