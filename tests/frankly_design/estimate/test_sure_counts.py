# SPDX-License-Identifier: Apache-2.0
"""Reports with which parts are large enough: against sums of binomial chances, and simulations."""

from math import comb

import numpy as np
import pytest
from frankly_design.estimate.sure_counts import SURE, Part, chance_of_fewer, is_sure, sure_reports


@pytest.mark.parametrize(("chance", "least", "n"), [
    (0.25, 10, 30), (0.25, 10, 60), (0.5, 1, 1), (0.9, 20, 20), (0.01, 3, 700), (1.0, 5, 5), (1.0, 5, 4), (0.3, 9, 8),
])  # fmt: skip
def test_the_tail_is_the_sum_of_binomial_chances(chance: float, least: int, n: int) -> None:
    tail = sum(comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(min(least, n + 1)))
    assert chance_of_fewer(Part(chance, least), n) == pytest.approx(tail, abs=1e-12)


@pytest.mark.parametrize("parts", [
    [Part(0.25, 10)], [Part(0.25, 10), Part(0.75, 10)], [Part(1.0, 500)], [Part(0.2, 100)] * 5, [Part(1e-6, 10**5)],
    [Part(0.5, 1)],
])  # fmt: skip
def test_it_is_the_least_number_of_reports(parts: list[Part]) -> None:
    n = sure_reports(parts)
    assert is_sure(parts, n)
    assert not is_sure(parts, n - 1)


def test_without_parts_one_report_is_enough() -> None:
    assert sure_reports([]) == 1


def test_simulated_surveys_have_all_parts() -> None:
    chances = np.array([0.1, 0.2, 0.7])
    n = sure_reports([Part(float(chance), 30) for chance in chances])
    drawn = np.random.default_rng(5).multinomial(n, chances, size=40_000)
    assert (drawn >= 30).all(axis=1).mean() == pytest.approx(SURE, abs=0.01)
