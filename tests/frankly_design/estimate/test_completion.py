# SPDX-License-Identifier: Apache-2.0
"""Relative completion: law of the plans, size and power of the test, and the lower bounds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import pytest
from frankly_design.estimate.completion import completion, kept
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Plan, Pool
from scipy import stats

from tests.frankly_protocol.mechanisms.laws import plans_of
from tests.frankly_protocol.mechanisms.test_agreement import EQUAL, FORM

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
_PAIR = Pool((0, 1), 1, _YES_NO)
RARE = AgreementMechanism(
    16, 3, 1, (2,) * 3, ((0,), (1,), (2,)),
    (Component(65_526, 1, (_PAIR,)), Component(10, 1, (Pool((2,), 1, _YES_NO),))),
)  # fmt: skip
"""A component with a chance of 0.00015, as designs have them."""
RARE_ONES = AgreementMechanism(
    10, 3, 1, (2,) * 3, ((0,), (1,), (2,)),
    (Component(1000, 1, (Pool((1,), 1, _YES_NO),)), Component(24, 1, (Pool((0, 2), 1, _YES_NO),))),
)  # fmt: skip


def shown_by(
    mechanism: AgreementMechanism, counts: Sequence[int], plans: Sequence[Plan]
) -> list[Counter[int]]:
    """Return for each part how many reports of each component show it, from the counts of plans."""
    shown = [Counter[int]() for _ in mechanism.parts]
    for plan, number in zip(plans, counts, strict=True):
        for part in plan.parts if number else ():
            shown[part][plan.component] += number
    return shown


def simulated(
    mechanism: AgreementMechanism, drawn: int, surveys: int, finish: Sequence[float], seed: int = 1
) -> Iterator[tuple[int, list[Counter[int]]]]:
    """Yield the number of reports of simulated surveys, and those of each component about each part.

    finish : the chance that a person who is asked about a part does not give up there.
    """
    plans = plans_of(mechanism)
    complete = [float(p) * prod(finish[part] for part in plan.parts) for plan, p in plans.items()]
    law = [*complete, max(0.0, 1 - sum(complete))]
    for counts in np.random.default_rng(seed).multinomial(drawn, law, size=surveys)[:, :-1]:
        yield int(counts.sum()), shown_by(mechanism, counts.tolist(), list(plans))


@pytest.mark.parametrize("mechanism", [FORM, EQUAL, UNEVEN, FOUR_OF_FIFTEEN])
def test_the_statistic_is_that_of_the_covariance_of_all_plans(
    mechanism: AgreementMechanism,
) -> None:
    """vᵀC⁺v for the components and then, given their numbers, for their parts, with C by enumeration."""
    n, shown = next(simulated(mechanism, 4000, 1, [0.8] + [1.0] * (len(mechanism.parts) - 1)))
    plans = plans_of(mechanism)
    components = range(len(mechanism.components))
    expected = freedom = 0.0
    for given in (None, *components):
        law = {
            plan: float(p) for plan, p in plans.items() if given is None or plan.component == given
        }
        # Columns: the components, or the parts of one of them.
        size = len(components) if given is None else len(mechanism.parts)
        rows = np.array(
            [
                [
                    int(plan.component == k if given is None else k in plan.parts)
                    for k in range(size)
                ]
                for plan in law
            ]
        )
        p = np.array(list(law.values())) / sum(law.values())
        mean = p @ rows
        covariance = (rows.T * p) @ rows - np.outer(mean, mean)
        sizes = [
            sum(counts[c] for counts in shown) / len(mechanism.components[c].slots)
            for c in components
        ]
        found = sizes if given is None else [counts[given] for counts in shown]
        away = np.array(found) - sum(sizes if given is None else [sizes[given]]) * mean
        number = n if given is None else sizes[given]
        expected += float(away @ np.linalg.pinv(covariance, rcond=1e-9) @ away) / number
        freedom += int(np.linalg.matrix_rank(covariance, tol=1e-9))
    result = completion(mechanism, shown, n, 0.95)
    assert (result.statistic, result.freedom) == (pytest.approx(expected, rel=1e-9), freedom)
    assert result.p == pytest.approx(stats.chi2.sf(expected, freedom), rel=1e-6)


def test_with_one_question_a_report_it_is_pearsons_test() -> None:
    shown = [131, 96, 104, 88, 90, 101, 97, 99, 108, 86]
    found = completion(ONE_OF_TEN, [{0: number} for number in shown], 1000, 0.95)
    pearson = stats.chisquare(shown)
    assert found.statistic == pytest.approx(pearson.statistic, rel=1e-9)
    assert (found.freedom, found.p) == (9, pytest.approx(pearson.pvalue, rel=1e-9))
    first = found.parts[0]
    assert (first.n, first.chance) == (131, pytest.approx(0.1))
    assert first.relative == pytest.approx(1.31)
    wilson = stats.binomtest(131, 1000).proportion_ci(0.95, "wilson")
    assert first.ends == pytest.approx((wilson.low / 0.1, wilson.high / 0.1), rel=1e-9)


@pytest.mark.parametrize("mechanism", [ONE_OF_TEN, UNEVEN, FOUR_OF_FIFTEEN, RARE])
@pytest.mark.parametrize("n", [60, 300, 5000])
def test_its_size_is_nominal(mechanism: AgreementMechanism, n: int, full: bool) -> None:
    """Surveys in which giving up does not depend on the plan: 20,000 with --full, else 1,000."""
    surveys = 20_000 if full else 1000
    rejected = [0, 0]
    for number, shown in simulated(mechanism, n, surveys, [1.0] * len(mechanism.parts), seed=2):
        p = completion(mechanism, shown, number, 0.95).p
        assert p is not None
        rejected = [rejected[0] + (p < 0.05), rejected[1] + (p < 1e-4)]
    # 0.007 is 4.5 standard errors of 20,000 surveys, and 1 of 1,000.
    assert abs(rejected[0] / surveys - 0.05) <= (0.007 if full else 0.022)
    assert rejected[1] / surveys <= (0.0005 if full else 0.003)


@pytest.mark.parametrize(
    ("n", "gap"), [(1000, 0.27), (5000, 0.12), (20_000, 0.06)], ids=["27%", "12%", "6%"]
)
def test_one_gap_is_found_with_the_stated_power(n: int, gap: float) -> None:
    """With 80 % power a gap of 2.8·√((1 − h)/(n·h)) below 1 is found, for h = 0.1."""
    exact_gap = 2.8 * np.sqrt(0.9 / (0.1 * n))
    assert exact_gap == pytest.approx(gap, abs=0.005)
    counts = np.arange(n + 1)
    chances = stats.binom.pmf(counts, n, 0.1 * (1 - exact_gap))

    def is_found(count: int) -> bool:
        shown = [{0: count}, {0: n - count}, *[Counter[int]()] * 8]
        return completion(ONE_OF_TEN, shown, n, 0.95).parts[0].ends[1] < 1

    # The end rises with the count, so the largest count that is found decides.
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_found(middle) else (low, middle - 1)
    power = float(chances[: low + 1].sum())
    assert 0.78 <= power <= 0.84  # the formula has the variance without the gap, which is larger


@pytest.mark.parametrize("mechanism", [form(2, (2, 1)), ONE_OF_TEN, RARE_ONES])
@pytest.mark.parametrize("drawn", [60, 400])
def test_lower_bounds_are_above_the_truth_as_rarely_as_stated(
    mechanism: AgreementMechanism, drawn: int
) -> None:
    """1,000 surveys in which half of the people who are asked about the first part give up."""
    finish = [0.5, *[1.0] * (len(mechanism.parts) - 1)]
    above = [
        kept(mechanism, shown, 0.95)[0] > 0.5
        for _, shown in simulated(mechanism, drawn, 1000, finish)
    ]
    assert sum(above) <= 65  # 50 are expected at most
    # With two parts there is one pair, so that the bound is not above the truth much more rarely.
    assert len(finish) > 2 or sum(above) >= 15


def test_without_enough_reports_or_another_plan_nothing_is_tested() -> None:
    few = completion(ONE_OF_TEN, [{0: 5}, *[{0: 4}] * 9], 41, 0.95)
    assert (few.statistic, few.freedom, few.p) == (None, None, None)
    always = completion(form(3, (3, 3)), [{0: 100}] * 3, 100, 0.95)
    assert (always.p, always.parts[0].relative, always.parts[0].ends) == (None, 1.0, (1.0, 1.0))
    none = [Counter[int](), *[{0: 100}] * 9]
    found = completion(ONE_OF_TEN, none, 900, 0.95)
    assert (found.parts[0].relative, kept(ONE_OF_TEN, none, 0.975)[0]) == (0.0, 0.0)
    assert found.p is not None
    assert found.p < 1e-9
    # Reports of components that hardly ever occur alone tell nothing.
    only_rare = [Counter[int](), Counter[int](), Counter({1: 40})]
    assert completion(RARE, only_rare, 40, 0.95).p is None
