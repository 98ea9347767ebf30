# SPDX-License-Identifier: Apache-2.0
"""Relative completion: law of the plans, size and power of the test, and the lower bounds."""

from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_server.estimate.completion import completion, plan_moments
from scipy import stats

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.mechanisms.laws import plans_of as published_plans
from tests.frankly_protocol.mechanisms.test_agreement import EQUAL, FORM

FORMS = [FORM, EQUAL, *(random_form(Random(seed), (2, 3, 2)) for seed in range(6))]
_YES_NO = Cover(2, 1)


def form(questions: int, *pools: tuple[int, int]) -> AgreementMechanism:
    """Return a form of yes/no questions with a component for each (number of first parts, pick)."""
    components = tuple(
        Component(16 // len(pools), 1, (Pool(tuple(range(size)), pick, _YES_NO),))
        for size, pick in pools
    )
    parts = tuple((i,) for i in range(questions))
    return AgreementMechanism(4, 3, 1, (2,) * questions, parts, components)


ONE_OF_TEN = form(10, (10, 1))
UNEVEN = form(6, (6, 3), (2, 1))
FOUR_OF_FIFTEEN = form(15, (15, 4))


def plans_of(mechanism: AgreementMechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return which parts every plan has (one row each), and the chances of the plans."""
    law = published_plans(mechanism)
    parts = range(len(mechanism.parts))
    rows = np.array([[int(i in plan.parts) for i in parts] for plan in law])
    return rows, np.array([float(chance) for chance in law.values()])


def reports(
    mechanism: AgreementMechanism, drawn: int, surveys: int, finish: np.ndarray, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reports of simulated surveys and how many of these show each part.

    finish : the chance that a person who is asked about a part does not give up there.
    """
    rows, chances = plans_of(mechanism)
    complete = np.prod(np.where(rows == 1, finish, 1.0), axis=1)
    law = [*(chances * complete), max(0.0, 1 - float(chances @ complete))]
    counts = np.random.default_rng(seed).multinomial(drawn, law, size=surveys)[:, :-1]
    return counts.sum(axis=1), counts @ rows


@pytest.mark.parametrize("mechanism", FORMS, ids=range(len(FORMS)))
def test_chances_and_covariances_are_those_of_the_published_law(
    mechanism: AgreementMechanism,
) -> None:
    chances, covariance = plan_moments(mechanism)
    parts = range(len(mechanism.parts))
    # A symbol is (component, part, set, part, set, …); its chance is summed over the sets.
    law = {y: column[0] for y, column in agreement_table(mechanism).items()}
    for i, j in product(parts, parts):
        both = sum((p for y, p in law.items() if {i, j} <= set(y[1::2])), Fraction(0))
        assert covariance[i, j] == pytest.approx(float(both) - chances[i] * chances[j], abs=1e-12)
        if i == j:
            assert chances[i] == pytest.approx(float(both), abs=1e-12)


def test_with_one_question_a_report_it_is_pearsons_test() -> None:
    shown = [131, 96, 104, 88, 90, 101, 97, 99, 108, 86]
    found = completion(ONE_OF_TEN, shown, 1000, 0.95, 0.975)
    pearson = stats.chisquare(shown)
    assert found.statistic == pytest.approx(pearson.statistic, rel=1e-9)
    assert (found.freedom, found.p) == (9, pytest.approx(pearson.pvalue, rel=1e-9))
    first = found.parts[0]
    assert (first.relative, first.chance) == (pytest.approx(1.31), pytest.approx(0.1))
    wilson = stats.binomtest(131, 1000).proportion_ci(0.95, "wilson")
    assert first.ends == pytest.approx((wilson.low / 0.1, wilson.high / 0.1), rel=1e-9)


@pytest.mark.parametrize("mechanism", [ONE_OF_TEN, UNEVEN, FOUR_OF_FIFTEEN])
@pytest.mark.parametrize("n", [60, 300, 5000])
def test_its_size_is_nominal(mechanism: AgreementMechanism, n: int) -> None:
    """20,000 surveys in which giving up does not depend on the plan."""
    _, shown = reports(mechanism, n, 20_000, np.ones(len(mechanism.parts)))
    chances, covariance = plan_moments(mechanism)
    # All surveys at once, held to the product's statistic in one of them.
    inverse, away = np.linalg.pinv(covariance, rcond=1e-9), shown - n * chances
    statistics = np.einsum("si,ij,sj->s", away, inverse, away) / n
    freedom = int(np.linalg.matrix_rank(covariance, tol=1e-9))
    assert 0.043 <= (stats.chi2.sf(statistics, freedom) < 0.05).mean() <= 0.057
    found = completion(mechanism, shown[0].tolist(), n, 0.95, 0.975)
    assert found.statistic == pytest.approx(statistics[0], rel=1e-6)
    assert found.freedom == freedom


@pytest.mark.parametrize(
    ("n", "gap"), [(1000, 0.27), (5000, 0.12), (20_000, 0.06)], ids=["27%", "12%", "6%"]
)
def test_one_gap_is_found_with_the_stated_power(n: int, gap: float) -> None:
    """With 80 % power a gap of 2.8·√((1 − h)/(n·h)) below the mean is found, for h = 0.1."""
    exact_gap = 2.8 * np.sqrt(0.9 / (0.1 * n))
    assert exact_gap == pytest.approx(gap, abs=0.005)
    power = 0.0
    for count in range(n):
        chance = float(stats.binom.pmf(count, n, 0.1 * (1 - exact_gap)))
        if chance > 1e-9:
            others = [(n - count) // 9] * 9
            part = completion(ONE_OF_TEN, [count, *others], n, 0.95, 0.975).parts[0]
            power += chance * (part.ends[1] < 1)
    assert 0.78 <= power <= 0.84  # the formula has the variance without the gap, which is larger


@pytest.mark.parametrize("mechanism", [form(2, (2, 1)), ONE_OF_TEN, UNEVEN, FOUR_OF_FIFTEEN])
def test_lower_bounds_are_above_the_truth_as_rarely_as_stated(
    mechanism: AgreementMechanism,
) -> None:
    """1,000 surveys in which half of the people who are asked about the first part give up."""
    finish = np.ones(len(mechanism.parts))
    finish[0] = 0.5
    rows, chances = plans_of(mechanism)
    done = (chances * np.prod(np.where(rows == 1, finish, 1.0), axis=1)) @ rows / (chances @ rows)
    totals, shown = reports(mechanism, 400, 1000, finish)
    above = 0
    for n, counts in zip(totals.tolist(), shown.tolist(), strict=True):
        kept = completion(mechanism, counts, n, 0.95, 0.95).parts[0].kept
        above += kept > done[0] / done.max()
    assert above <= 65  # 50 are expected at most
    # With two parts there is one pair, so that the bound is not above the truth more rarely.
    assert len(finish) > 2 or above >= 35


def test_without_enough_reports_or_another_plan_nothing_is_tested() -> None:
    few = completion(ONE_OF_TEN, [5, *[4] * 9], 41, 0.95, 0.975)
    assert (few.statistic, few.freedom, few.p) == (None, None, None)
    always = completion(form(3, (3, 3)), [100] * 3, 100, 0.95, 0.975)
    assert (always.p, always.parts[0].relative) == (None, 1.0)
    none = completion(ONE_OF_TEN, [0, *[100] * 9], 900, 0.95, 0.975)
    assert (none.parts[0].relative, none.parts[0].kept) == (0.0, 0.0)
    assert none.p is not None
    assert none.p < 1e-9
