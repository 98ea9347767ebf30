# SPDX-License-Identifier: Apache-2.0
"""Intervals of two-valued scores and the score interval, compared with libraries and enumeration."""

from math import comb, exp
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import estimate, intervals
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.figures import Figures
from frankly_design.estimate.intervals import Variance, exact, score, sequence_of_two, widest
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.scores import TwoValues
from frankly_protocol.mechanisms import DenseMechanism
from scipy import stats

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))
Z = 1.959963984540054


def test_clopper_pearson_is_scipys_through_the_map_with_either_slope() -> None:
    two = TwoValues((-0.5, -0.5), (1.5, 1.5), 7)
    reference = stats.binomtest(7, 20).proportion_ci(0.95, "exact")
    assert exact(two, 20, 0.95) == pytest.approx(
        (-0.5 + 2 * reference.low, -0.5 + 2 * reference.high)
    )
    result = estimate(WARNER, [13, 7])
    assert result.margins.exact is not None
    (low, high), (low_1, high_1) = result.margins.exact
    assert (low, high) == pytest.approx((1 - high_1, 1 - low_1))
    # The end is clipped to 0, because −½ + 2·low is negative.
    assert (low_1, high_1) == pytest.approx((0, -0.5 + 2 * reference.high))


def test_exact_covers_every_truth_by_enumeration() -> None:
    n = 12
    for q in np.linspace(0, 1, 41):
        chances = stats.binom.pmf(range(n + 1), n, q)
        held = sum(
            chance for k, chance in enumerate(chances)
            if (e := exact(TwoValues((0, 0), (1, 1), k), n, 0.9))[0] <= q <= e[1]
        )  # fmt: skip
        assert held >= 0.9 - 1e-9


def test_outer_values_cover_for_all_groups_by_enumeration() -> None:
    """The lower group scores −0.2 to 0.1, the upper group 0.8 to 1.3; all means in between are possible."""
    n, low, high = 12, (-0.2, 0.1), (0.8, 1.3)
    ends = [exact(TwoValues(low, high, k), n, 0.9) for k in range(n + 1)]
    for q in np.linspace(0, 1, 41):
        chances = stats.binom.pmf(range(n + 1), n, q)
        for mean in ((1 - q) * low[0] + q * high[0], (1 - q) * low[1] + q * high[1]):
            held = sum(
                c
                for c, e in zip(chances, ends, strict=True)
                if e[0] <= mean + 1e-12 and mean - 1e-12 <= e[1]
            )
            assert held >= 0.9 - 1e-9


def test_a_sequence_is_where_the_mixture_is_below_its_limit() -> None:
    low, high = sequence_of_two(TwoValues((0, 0), (1, 1), 30), 100, 0.95)
    assert low < 0.3 < high
    for q in (low, high):
        # ∫ u^30 (1−u)^70 du = 1/(101 · C(100, 30))
        assert stats.binom.pmf(30, 100, q) * 101 == pytest.approx(0.05, rel=1e-6)
    assert low < exact(TwoValues((0, 0), (1, 1), 30), 100, 0.95)[0]
    assert high > exact(TwoValues((0, 0), (1, 1), 30), 100, 0.95)[1]


def test_normals_are_those_of_haltons_points() -> None:
    points = stats.qmc.Halton(24, scramble=False).random(4097)[1:]
    assert intervals._normals(24) == pytest.approx(stats.norm.ppf(points), abs=1e-12)


def test_the_largest_of_correlated_normals() -> None:
    assert widest(np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.95) == pytest.approx(
        stats.norm.isf(0.025), rel=0.05
    )
    independent = stats.norm.isf((1 - 0.95 ** (1 / 3)) / 2)
    assert independent * 0.995 <= widest(np.eye(3), 0.95) <= stats.norm.isf(0.05 / 6) + 1e-12


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (50, 100), (100, 100), (7, 100_000)])
def test_the_score_interval_of_a_binomial_is_wilsons(count: int, n: int) -> None:
    wilson = stats.binomtest(count, n).proportion_ci(0.95, "wilson")
    assert score(count / n, n, Variance(0, 1, 1), Z) == pytest.approx(
        (wilson.low, wilson.high), abs=1e-15
    )
    # After the map, d = −½ + 2·(0 or 1) has the variance (3/2 − θ)(θ + ½).
    interval = score(-0.5 + 2 * count / n, n, Variance(0.75, 1, 1), Z)
    assert interval == pytest.approx((-0.5 + 2 * wilson.low, -0.5 + 2 * wilson.high), abs=1e-12)


def test_the_score_interval_satisfies_its_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, value = int(rng.integers(1, 500)), float(rng.normal())
        constant, slope, curve = (
            float(rng.exponential()),
            float(rng.normal()),
            float(rng.choice([0, 0.4, 1])),
        )
        low, high = score(value, n, Variance(constant, slope, curve), Z)
        variance_at_value = constant + slope * value - curve * value**2
        assert low <= value <= high
        for end in (low, high):
            # If the variance at the estimate is negative, the constant is raised to make it 0.
            variance = constant - min(variance_at_value, 0) + slope * end - curve * end**2
            assert (value - end) ** 2 == pytest.approx(Z**2 / n * variance, rel=1e-7, abs=1e-12)


def response(epsilon: float) -> DenseMechanism:
    off = int((1 << 48) / (exp(epsilon) + 1))
    on = (1 << 48) - off
    return DenseMechanism(48, ((on, off), (off, on)))


def margins(mechanism: DenseMechanism, counts: list[int]) -> dict[str, Any]:
    """Return the fields of `estimate` that the intervals need."""
    evidence = evidence_of(mechanism, counts, shares(mechanism.answers), None)
    figures = Figures(evidence, mechanism.answers, None, census=False, are_shares=True)
    return figures.spreads(0.95, ("kl", "exact"))


EPSILONS, SHARES = (0.1, 0.5, 1.0, 2.0, 4.0), (0.0, 0.002, 0.02, 0.3)


@pytest.mark.parametrize(
    "n", [50, 100, *(pytest.param(n, marks=pytest.mark.full_only) for n in (200, 500))]
)
def test_two_choices_at_every_level_are_covered_by_enumeration(n: int) -> None:
    """There are 20 cells per n, without Monte Carlo error. The coverage of clt shows that the cells
    are hard."""
    least = {"score": 1.0, "kl": 1.0, "exact": 1.0, "clt": 1.0}
    for epsilon in EPSILONS:
        mechanism = response(epsilon)
        results = [margins(mechanism, [n - k, k]) for k in range(n + 1)]
        for share in SHARES:
            q = (
                share * mechanism.weights[1][1] / 2**48
                + (1 - share) * mechanism.weights[0][1] / 2**48
            )
            chances = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
            for method, lowest in least.items():
                pairs = [
                    fields["margins"].ends(method, fields["unbiased"])[1] for fields in results
                ]
                held = sum(
                    c for c, e in zip(chances, pairs, strict=True) if e and e[0] <= share <= e[1]
                )
                least[method] = min(lowest, held)
    assert least["score"] >= 0.94
    assert least["exact"] >= 0.95
    assert least["kl"] >= 0.95
    assert least["clt"] < (0.9 if n < 500 else 0.93)


def test_a_census_of_unlike_people_is_covered_by_exact_by_enumeration() -> None:
    n, level = 12, 0.9
    intervals = [
        estimate(WARNER, [n - k, k], census=True, level=level, methods=("exact",))
        for k in range(n + 1)
    ]
    for yes in range(n + 1):
        chances = np.convolve(
            stats.binom.pmf(range(yes + 1), yes, 0.75),
            stats.binom.pmf(range(n - yes + 1), n - yes, 0.25),
        )
        held = 0.0
        for chance, interval in zip(chances, intervals, strict=True):
            assert interval.margins.exact is not None
            ends = interval.margins.exact[1]
            assert ends is not None
            held += chance * (ends[0] <= yes / n + 1e-12 and yes / n - 1e-12 <= ends[1])
        assert held >= level
