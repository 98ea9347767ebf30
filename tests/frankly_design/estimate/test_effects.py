# SPDX-License-Identifier: Apache-2.0
"""Effect sizes and tests, compared with brute force: closed testing, bisection, minimisers, search."""

import math
from itertools import combinations

import numpy as np
import pytest
from frankly_design.estimate.effects import (
    cohens_h,
    common_ratio,
    holm,
    length_ends,
    ratio_ends,
    two_sided,
    wald,
)
from scipy import optimize, stats


def test_holm_is_closed_testing_with_bonferroni() -> None:
    """The adjusted p-value is the largest Bonferroni p-value of all families that contain the test."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 7):
        p = [float(v) for v in rng.uniform(0, 0.3, size)]
        for i, adjusted in enumerate(holm(p)):
            families = [
                family
                for m in range(1, size + 1)
                for family in combinations(range(size), m)
                if i in family
            ]
            largest = max(min(1.0, len(f) * min(p[j] for j in f)) for f in families)
            assert adjusted == pytest.approx(largest)
    assert holm([None, 0.01, None, 0.04]) == [None, 0.02, None, 0.04]
    assert holm([]) == []


@pytest.mark.parametrize("z", [0.0, 0.3, -1.96, 8.0])
def test_two_sided_p_values(z: float) -> None:
    assert two_sided(z) == pytest.approx(2 * stats.norm.sf(abs(z)))


RATIOS: dict[str, tuple[float, tuple[float, float], float, tuple[float, float]]] = {
    "ordinary": (0.3, (0.22, 0.39), 0.5, (0.41, 0.6)),
    "rare numerator": (0.01, (-0.02, 0.05), 0.2, (0.15, 0.26)),
    "unsure denominator": (0.3, (0.2, 0.4), 0.1, (0.01, 0.35)),
    "wide": (0.9, (0.1, 1.0), 0.4, (0.05, 0.9)),
}


@pytest.mark.parametrize("name", RATIOS)
def test_a_ratios_interval_is_where_the_difference_may_be_zero(name: str) -> None:
    a, a_ends, b, b_ends = RATIOS[name]

    def may_be_zero(r: float) -> bool:
        below = math.hypot(a - a_ends[0], r * (b_ends[1] - b))
        above = math.hypot(a_ends[1] - a, r * (b - b_ends[0]))
        return a - r * b - below <= 0 <= a - r * b + above

    ends = ratio_ends(a, a_ends, b, b_ends)
    assert ends is not None
    low, high = ends
    grid = np.geomspace(1e-4, 1e3, 4001)
    inside = [may_be_zero(r) for r in grid]
    assert [low <= r <= high for r in grid] == inside


def test_a_ratio_to_a_share_that_may_be_zero_is_unbounded() -> None:
    assert ratio_ends(0.3, (0.2, 0.4), 0.1, (-0.01, 0.2)) is None
    assert ratio_ends(0.3, (0.2, 0.4), 0.1, (0.0, 0.2)) is None
    assert ratio_ends(-0.01, (-0.1, 0.1), 0.3, (0.2, 0.4)) is None


def test_cohens_h_and_its_interval() -> None:
    h, low, high = cohens_h(0.5, (0.4, 0.6), 0.2, (0.1, 0.35))
    phi = {v: 2 * math.asin(math.sqrt(v)) for v in (0.5, 0.4, 0.6, 0.2, 0.1, 0.35)}
    assert h == pytest.approx(phi[0.5] - phi[0.2])
    assert low == pytest.approx(h - math.hypot(phi[0.5] - phi[0.4], phi[0.35] - phi[0.2]))
    assert high == pytest.approx(h + math.hypot(phi[0.6] - phi[0.5], phi[0.2] - phi[0.1]))
    assert cohens_h(-0.1, (-0.1, 0.1), 1.2, (0.9, 1.2))[0] == pytest.approx(-math.pi)


@pytest.mark.parametrize("seed", range(5))
def test_the_common_ratio_minimises_the_statistic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 5))
    values = [rng.uniform(-0.2, 1, 2) for _ in range(groups)]
    covariances = []
    for _ in range(groups):
        M = rng.normal(size=(2, 3)) * 0.1
        covariances.append(M @ M.T)
    found = common_ratio(values, covariances)
    assert found is not None

    def statistic(angle: float) -> float:
        v = np.array([math.cos(angle), -math.sin(angle)])
        return sum(
            float((v @ x) ** 2 / (v @ C @ v)) for x, C in zip(values, covariances, strict=True)
        )

    least = min(
        optimize.minimize_scalar(
            statistic, bounds=(start, start + 0.04), method="bounded", options={"xatol": 1e-12}
        ).fun
        for start in np.arange(0, math.pi, 0.04)
    )
    assert found == (pytest.approx(least, rel=1e-6, abs=1e-9), groups - 1)
    assert common_ratio(values[:1], covariances[:1]) is None


@pytest.mark.slow
def test_equal_ratios_of_imprecise_denominators_are_rejected_at_most_at_the_level() -> None:
    """The delta method rejects far too often if a denominator may be 0."""
    rng, runs, rejected = np.random.default_rng(8), 600, 0
    covariances = [np.diag([0.01, 0.01]), np.array([[0.02, 0.01], [0.01, 0.03]])]
    for _ in range(runs):
        truths = np.array([0.15, 0.3]), np.array([0.2, 0.4])
        values = [rng.multivariate_normal(x, C) for x, C in zip(truths, covariances, strict=True)]
        found = common_ratio(values, covariances)
        assert found is not None
        rejected += stats.chi2.sf(*found) < 0.05
    assert rejected / runs <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("seed", range(6))
def test_the_length_is_between_the_ends_over_the_ellipsoid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 1 + seed % 4
    M = rng.normal(size=(size, size)) * 0.3
    vector = rng.normal(size=size) * (seed % 3) / 2
    low, high = length_ends(vector, M @ M.T, 0.9)
    radius = math.sqrt(stats.chi2.ppf(0.9, size))
    step = rng.normal(size=(50_000, size))
    step *= radius / np.linalg.norm(step, axis=1)[:, None]
    lengths = np.linalg.norm(vector + step @ M.T, axis=1)
    rejects = stats.chi2.sf(vector @ np.linalg.solve(M @ M.T, vector), size) < 0.1
    assert (low > 0) == rejects
    assert lengths.max() <= high + 1e-9
    assert high == pytest.approx(lengths.max(), rel=0.02)
    assert low == pytest.approx(lengths.min() if rejects else 0, rel=0.05)


def test_a_wald_test_uses_the_rank_of_the_covariance() -> None:
    centre = np.eye(3) - 1 / 3
    found = wald(np.array([0.1, -0.05, -0.05]), 0.01 * centre)
    assert found is not None
    assert found[1] == 2
    assert found[0] == pytest.approx((0.1**2 + 2 * 0.05**2) / 0.01)
    assert wald(np.zeros(2), np.zeros((2, 2))) is None
