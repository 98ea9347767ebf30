# SPDX-License-Identifier: Apache-2.0
"""Test of fit compared with scipy, the Cramér-Rao bound, and the likeliest shares."""

import numpy as np
import pytest
from frankly_design.estimate import SetCounts, estimate
from frankly_design.kinds import likelihood
from frankly_design.kinds.likelihood import fisher_bound, fit_p
from frankly_protocol.mechanisms import DenseMechanism, UnaryMechanism
from scipy import optimize, stats

from tests.frankly_design.maths import grid

WIDE = np.array([[70, 20, 9, 0.7, 0.3], [50, 40, 9, 0.4, 0.6], [20, 30, 48, 1.5, 0.5]]) / 100
INSIDE, EDGE, CORNER = (0.5, 0.3, 0.2), (0.7, 0.3, 0.0), (1.0, 0.0, 0.0)


@pytest.mark.parametrize(("p", "freedom"), [(INSIDE, 2), (EDGE, 3), (CORNER, 4)])
def test_the_fit_is_pearsons(p: tuple[float, ...], freedom: int) -> None:
    """The degrees of freedom are five frequencies minus three answers, plus one for each share of zero."""
    expected = 10_000 * (np.array(p) @ WIDE)
    counts = expected + np.array([60, -50, -20, 3, 7])
    statistic = stats.chisquare(counts, expected).statistic
    assert fit_p(WIDE, counts, np.array(p), 3) == pytest.approx(stats.chi2.sf(statistic, freedom))


@pytest.mark.parametrize(("p", "freedom"), [(INSIDE, 2), (EDGE, 3), (CORNER, 3)])
def test_reports_expected_less_than_once_are_counted_together(
    p: tuple[float, ...], freedom: int
) -> None:
    """Two of five reports are merged, which leaves at most 3 degrees of freedom.

    The shares were fitted to all five, so no further degree is subtracted [Chernoff and
    Lehmann 1954].
    """
    expected = 100 * (np.array(p) @ WIDE)
    counts = expected + np.array([6, -5, -2, 0.3, 0.7])
    merged = [np.append(tally[:3], tally[3:].sum()) for tally in (counts, expected)]
    p_value = fit_p(WIDE, counts, np.array(p), 3)
    assert p_value == pytest.approx(stats.chi2.sf(stats.chisquare(*merged).statistic, freedom))
    assert p_value != pytest.approx(
        stats.chi2.sf(stats.chisquare(counts, expected).statistic, freedom)
    )


def test_a_deficient_mechanism_leaves_more_to_the_fit() -> None:
    """Two of three answers have equal rows, so a line search fits one parameter to 4 frequencies."""
    table, counts = (
        DenseMechanism(4, ((9, 4, 2, 1), (2, 5, 4, 5), (2, 5, 4, 5))),
        np.array([100, 95, 60, 45]),
    )
    lines = np.array(table.weights)[:2] / 16

    def cost(p: float) -> float:
        return -float(counts @ np.log(np.array([p, 1 - p]) @ lines))

    p = optimize.minimize_scalar(cost, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    expected = stats.chisquare(counts, counts.sum() * (np.array([p, 1 - p]) @ lines), ddof=1).pvalue
    assert estimate(table, [int(c) for c in counts]).fit_p == pytest.approx(expected, rel=1e-3)


def test_the_bound_equals_that_of_free_coordinates() -> None:
    """The last share is 1 minus the others, so the bound is W_free I⁻¹ W_freeᵀ with the others'
    information I."""
    p, W = np.array(INSIDE), np.array([[1.0, 0, 0], [0, 0, 1], [1, -1, 0], [2, 1, 0.5]])
    free, targets = WIDE[:-1] - WIDE[-1], W[:, :-1] - W[:, -1:]
    expected = np.diagonal(targets @ np.linalg.inv((free / (p @ WIDE)) @ free.T) @ targets.T)
    assert fisher_bound(WIDE, W, p) == pytest.approx(expected)


def test_equal_numbers_of_sets_and_answers_give_no_closed_form() -> None:
    """Three of eight sets occur; the unbiased shares are possible, but they are not the likeliest shares."""
    mechanism, symbol_counts = UnaryMechanism(4, 3, 12, 4), {0b001: 30, 0b011: 30, 0b100: 40}
    result = estimate(mechanism, SetCounts.of_symbols(3, symbol_counts))
    unbiased, mle = np.array(result.unbiased, dtype=float), np.array(result.mle, dtype=float)
    chances = np.array(
        [[float(mechanism.probability(y, x)) for y in symbol_counts] for x in range(3)]
    )
    points = np.vstack([grid(3, 100), unbiased])
    likelihoods = np.log(points @ chances) @ list(symbol_counts.values())
    best = float(np.log(mle @ chances) @ list(symbol_counts.values()))
    assert unbiased.min() > 0.05
    assert likelihoods.max() <= best + 1e-3
    assert likelihoods[-1] < best - 1


def test_extrapolated_steps_converge_faster_and_never_lose_likelihood() -> None:
    """The cases are a flat table, on which plain EM is slow, and shares where an extrapolation overshoots."""
    flat = 0.9 * np.full((3, 4), 0.25) + 0.1 * np.eye(3, 4)
    flat[:, 3] += 1 - flat.sum(axis=1)
    plain_gaps, gaps = [], []
    for share in (INSIDE, (0.98, 0.01, 0.01), (0.34, 0.33, 0.33)):
        rates = np.array(share) @ flat
        plain = p = np.full(3, 1 / 3)
        before = -np.inf
        for _ in range(30):
            p, gap = likelihood._expectation_maximisation(flat, rates, p, 0.0, 1)
            now = likelihood._objective(flat, rates, p)
            assert now >= before - 1e-15
            before = now
            for _ in range(2):
                plain = plain * likelihood._gradient(flat, rates, plain)
        gaps.append(gap)
        plain_gaps.append(likelihood._gap(flat, rates, plain))
    assert max(gaps) < max(plain_gaps) / 100
