# SPDX-License-Identifier: Apache-2.0
"""The test of the arms' sizes: it allows for what may wait, and says no more than is known."""

from itertools import product
from math import comb

import pytest
from frankly_design.estimate.split_plan import sizes_test
from frankly_server.analysis.arms import largest_p


def binomial(counts: tuple[int, int], chances: tuple[int, int]) -> float:
    """Return the exact two-sided p-value, by enumeration in whole numbers."""
    n, whole = sum(counts), sum(chances)
    weights = [comb(n, k) * chances[0] ** k * chances[1] ** (n - k) for k in range(n + 1)]
    seen = weights[counts[0]]
    return sum(w for w in weights if w <= seen) / whole**n


@pytest.mark.parametrize("chances", [(1, 1), (1, 3), (1, 15)])
@pytest.mark.parametrize("counts", [(10, 10), (2, 18), (0, 20), (7, 3)])
def test_without_waiting_reports_it_is_the_plain_test(
    counts: tuple[int, int], chances: tuple[int, int]
) -> None:
    p = largest_p(counts, chances, (0, 0))
    assert p == pytest.approx(binomial(counts, chances), rel=1e-9)
    assert p == pytest.approx(sizes_test(counts, chances), rel=1e-12)


@pytest.mark.parametrize("chances", [(1, 1), (1, 3), (1, 15)])
@pytest.mark.parametrize("counts", [(10, 10), (2, 18), (0, 20), (14, 3), (3, 50)])
@pytest.mark.parametrize("waiting", [(3, 3), (9, 9), (0, 4), (18, 2)])
def test_it_is_nearly_the_largest_over_all_that_may_wait(
    counts: tuple[int, int], chances: tuple[int, int], waiting: tuple[int, int]
) -> None:
    every = [
        binomial((counts[0] + a, counts[1] + b), chances)
        for a, b in product(range(waiting[0] + 1), range(waiting[1] + 1))
    ]
    p = largest_p(counts, chances, waiting)
    assert min(every) - 1e-9 <= p <= max(every) + 1e-9
    # Totals are tried step by step, so that the largest one may be missed by a little.
    assert p >= 0.8 * max(every)


def test_a_rare_arm_whose_reports_wait_does_not_look_left() -> None:
    """Expected are 10 of 1,000 reports, of which 9 may wait."""
    assert sizes_test((1, 990), (1, 99)) < 0.05
    assert largest_p((1, 990), (1, 99), (9, 9)) > 0.5


@pytest.mark.parametrize(
    ("counts", "chances", "waiting"),
    [
        ((20_000, 0), (999, 1), (9000, 9000)),
        ((100_000, 0), (999, 1), (9000, 9000)),
        ((1000, 0), (200, 1), (900, 900)),
    ],
)
def test_many_cells_of_a_rare_arm_leave_everything_open(
    counts: tuple[int, int], chances: tuple[int, int], waiting: tuple[int, int]
) -> None:
    """Some numbers that may wait fit the chances exactly, far from every step of all totals."""
    assert largest_p(counts, chances, waiting) > 0.5


def test_three_arms_have_the_chi_squared_test() -> None:
    assert largest_p((250, 260, 490), (1, 1, 2), (0, 0, 0)) == pytest.approx(
        sizes_test((250, 260, 490), (1, 1, 2))
    )
    assert largest_p((150, 260, 490), (1, 1, 2), (9, 9, 9)) < 1e-4
