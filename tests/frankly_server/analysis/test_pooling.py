# SPDX-License-Identifier: Apache-2.0
"""Pooling of versions with the same question: the mean, and the test that shares are equal."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from frankly_analyst.request import INVERSE_VARIANCE
from frankly_design.estimate import Joint, estimate
from frankly_design.estimate.pooling import homogeneity
from frankly_design.kinds.decoder import decoder, shares
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism, UnaryMechanism
from frankly_server.analysis.part import Part
from frankly_server.analysis.pooling import Pooled, pool
from frankly_server.analysis.request import Request
from frankly_server.analysis.versions import homogeneity_of, inverse_variance_weights
from numpy.typing import NDArray
from scipy import stats

from tests.frankly_design.maths import random_mechanism
from tests.frankly_server.analysis.samples import LIP, block_of, grr, part

FloatArray = NDArray[np.float64]
FIRST, SECOND = (0.4, 0.3, 0.2, 0.1), (0.1, 0.3, 0.2, 0.4)
"""Shares in two versions; those of choices 2 and 3 are equal."""
PRIOR = (13, 19, 27, 16)


def law(mechanism: DenseMechanism) -> FloatArray:
    return np.array([[float(w) for w in row] for row in mechanism.weights]) / mechanism.denominator


def expected(mechanism: DenseMechanism, truth: Sequence[float], n: int) -> Part:
    """Return a part with the expected counts, rounded."""
    counts = [round(n * rate) for rate in np.array(truth) @ law(mechanism)]
    counts[0] += n - sum(counts)
    return part(mechanism, counts)


def test_a_joint_table_of_unary_and_product_equals_that_of_all_factors() -> None:
    unary, table = UnaryMechanism(8, 2, 200, 60), DenseMechanism(4, ((12, 4), (4, 12)))
    product = ProductMechanism((table, table))
    blocks = (block_of(unary, (1, 2)), block_of(product, (1, 1, 1, 3)))
    tally: dict[tuple[int, ...], int] = {
        (mask, y, z): 20 + 3 * mask + 5 * y + 7 * z
        for mask in range(4)
        for y in (0, 1)
        for z in (0, 1)
    }
    n = sum(tally.values())
    pooled = pool([Part(blocks, n, tally, shares(8))], Request())
    prior = tuple(x * y for x in (1, 2) for y in (1, 1, 1, 3))
    alone = estimate(Joint((unary, table, table)), tally, design_prior=prior)
    assert (pooled.mean.n, pooled.mean.unbiased, pooled.mean.se) == (n, alone.unbiased, alone.se)


# Mechanism, true shares and number of reports of both versions
DIFFERENT: dict[
    str,
    tuple[tuple[DenseMechanism, Sequence[float], int], tuple[DenseMechanism, Sequence[float], int]],
] = {
    "alike in size": ((grr(4, 1), FIRST, 20_000), (LIP, SECOND, 20_000)),
    "few after many": ((grr(4, 0.5), FIRST, 20_000), (grr(4, 4), SECOND, 2_000)),
    "a change of 30 points": ((grr(4, 1), FIRST, 20_000), (grr(4, 1), SECOND, 20_000)),
}


def both(name: str, **asked: Any) -> tuple[Pooled, list[Part]]:
    parts = [expected(*sample) for sample in DIFFERENT[name]]
    return pool(parts, Request(**asked)), parts


@pytest.mark.parametrize("weights", ["respondents", "inverse-variance"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_versions_that_differ_are_flagged_and_a_pooled_share_lies_between_its_parts(
    name: str, weights: str
) -> None:
    pooled, parts = both(name, weights=weights)
    assert pooled.mean.flags[:2] == ("pooled", "versions_differ")
    assert pooled.versions_p is not None
    assert pooled.versions_p < 1e-6
    values = np.array(
        [
            estimate(part.mechanism, part.counts, design_prior=part.design_prior).unbiased
            for part in parts
        ]
    )
    assert np.all(values.min(axis=0) - 1e-12 <= np.array(pooled.mean.unbiased))
    assert np.all(np.array(pooled.mean.unbiased) <= values.max(axis=0) + 1e-12)


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_pooled_estimate_is_the_mean_of_all_respondents(name: str) -> None:
    pooled, parts = both(name)
    truth = sum(n * np.array(p) for _, p, n in DIFFERENT[name]) / sum(part.n for part in parts)
    np.testing.assert_allclose(np.array(pooled.mean.unbiased, dtype=float), truth, atol=1e-3)
    assert sum(v or 0 for v in pooled.mean.unbiased) == pytest.approx(1)
    errors = [
        estimate(part.mechanism, part.counts, design_prior=part.design_prior) for part in parts
    ]
    for t, se in enumerate(pooled.mean.se):
        part_errors = [
            part.n / pooled.mean.n * (error.se[t] or 0)
            for part, error in zip(parts, errors, strict=True)
        ]
        assert se == pytest.approx(math.hypot(*part_errors))
    assert pooled.mean.covariance is not None
    np.testing.assert_allclose(
        np.sqrt(np.diagonal(np.array(pooled.mean.covariance, dtype=float))),
        np.array(pooled.mean.se, dtype=float),
    )


def test_versions_that_agree_are_not_flagged() -> None:
    parts = [expected(grr(4, 1), FIRST, 20_000), expected(LIP, FIRST, 5_000)]
    pooled = pool(parts, Request())
    assert pooled.versions_p is not None
    assert pooled.versions_p > 0.99
    assert "versions_differ" not in pooled.mean.flags
    alone = pool(parts[:1], Request())
    assert (alone.versions_p, "pooled" in alone.mean.flags) == (None, False)


@pytest.mark.parametrize("answers", [2, 3, 5])
@pytest.mark.parametrize("versions", [2, 4])
def test_the_statistic_equals_that_of_all_differences(answers: int, versions: int) -> None:
    """The statistic is the quadratic form of the differences from the first version in their
    inverse covariance."""
    rng = np.random.default_rng(10 * answers + versions)
    centre = np.eye(answers) - 1 / answers
    values = [rng.dirichlet(np.ones(answers)) for _ in range(versions)]
    covariances = [
        centre @ (M := rng.normal(size=(answers, answers + 2))) @ M.T @ centre
        for _ in range(versions)
    ]
    k = answers - 1
    differences = np.concatenate([(x - values[0])[:k] for x in values[1:]])
    covariance_of_differences = np.kron(
        np.ones((versions - 1, versions - 1)), covariances[0][:k, :k]
    )
    for i, covariance in enumerate(covariances[1:]):
        covariance_of_differences[i * k : (i + 1) * k, i * k : (i + 1) * k] += covariance[:k, :k]
    test_result = homogeneity(values, covariances)
    assert test_result is not None
    assert test_result.freedom == (versions - 1) * k
    assert test_result.statistic == pytest.approx(
        differences @ np.linalg.solve(covariance_of_differences, differences)
    )
    assert test_result.p == pytest.approx(stats.chi2.sf(test_result.statistic, test_result.freedom))


def test_versions_without_covariance_are_not_compared() -> None:
    nothing = np.zeros((2, 2))
    assert homogeneity([np.zeros(2), np.ones(2)], [nothing, nothing]) is None
    contrast = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert homogeneity([np.array([0.2, 0.8]), np.array([0.9, 0.1])], [contrast, nothing]) is None


# Mechanisms, reports of each, true shares; every expected count of a symbol is at least 5
SIZED: dict[str, tuple[tuple[DenseMechanism, ...], tuple[int, ...], Sequence[float]]] = {
    "grr": ((grr(4, 1), grr(4, 1)), (500, 500), FIRST),
    "grr, unlike": ((grr(4, 0.5), grr(4, 4)), (5000, 500), FIRST),
    "grr, expected 5.2": ((grr(4, 5.2), grr(4, 5.2)), (500, 5000), (0.86, 0.13, 0.005, 0.005)),
    "lip": ((LIP, LIP), (500, 500), (0.173, 0.253, 0.36, 0.214)),
    "three": ((grr(4, 1), LIP, grr(4, 2)), (500, 500, 500), FIRST),
}


@pytest.mark.parametrize("name", SIZED)
def test_five_percent_of_equal_versions_are_flagged(name: str, full: bool) -> None:
    """The size of the test is 5 ± 1 %, plus 3.5 Monte Carlo standard errors."""
    mechanisms, sizes, truth = SIZED[name]
    runs, rng, flagged = 4000 if full else 400, np.random.default_rng(97), 0
    rates = [np.array(truth) @ law(mechanism) for mechanism in mechanisms]
    worst = [
        estimate(m, [n] + [0] * (m.reports - 1)).worst_case_se
        for m, n in zip(mechanisms, sizes, strict=True)
    ]
    assert min(n * rate.min() for n, rate in zip(sizes, rates, strict=True)) >= 5
    draws = [rng.multinomial(n, rate, size=runs) for n, rate in zip(sizes, rates, strict=True)]
    for counts in zip(*draws, strict=True):
        parts = [
            part(m, [int(c) for c in sample_counts])
            for m, sample_counts in zip(mechanisms, counts, strict=True)
        ]
        evidence = [sample_counts.evidence(sample_counts.targets) for sample_counts in parts]
        estimates: list[Any] = [
            SimpleNamespace(unbiased=sample_counts.exact, worst_case_se=error)
            for sample_counts, error in zip(evidence, worst, strict=True)
        ]
        test = homogeneity_of(parts, evidence, estimates)
        assert test is not None
        flagged += test.p < 0.05
    assert abs(flagged / runs - 0.05) <= 0.01 + 3.5 * (0.05 * 0.95 / runs) ** 0.5


def test_inverse_variance_weights_do_not_depend_on_answers_and_have_the_least_variance() -> None:
    """The variances at the design prior are computed from the rows of the decoders."""
    import random

    rng = random.Random(97)
    for _ in range(60):
        a = rng.randint(2, 4)
        prior = tuple(rng.randint(1, 9) for _ in range(a))
        p = np.array(prior) / sum(prior)
        parts, reordered, variances = [], [], []
        for _ in range(2):
            mechanism, n = random_mechanism(rng, a, a + rng.randint(0, 2)), rng.randint(100, 10_000)
            zeros = [0] * (mechanism.reports - 1)
            V = np.array(
                [[float(v) for v in row or ()] for row in decoder(mechanism, shares(a), prior).rows]
            )
            rates = p @ law(mechanism)
            parts.append(part(mechanism, [n, *zeros], prior))
            reordered.append(part(mechanism, [*zeros, n], prior))
            variances.append(((V**2) @ rates - (V @ rates) ** 2) / n)
        weights = np.array(inverse_variance_weights(parts), dtype=float)
        assert inverse_variance_weights(reordered) == inverse_variance_weights(parts)
        np.testing.assert_allclose(weights, np.array(variances[::-1]) / sum(variances))
        assert np.all((weights**2 * variances).sum(axis=0) <= np.minimum(*variances) * (1 + 1e-9))


def test_a_target_that_does_not_vary_weighs_by_respondents() -> None:
    everybody = ((1,) * 4, (1, 0, 0, 0))
    parts = [
        replace(expected(grr(4, 1), FIRST, n), targets=everybody)  # type: ignore[arg-type]
        for n in (1_000, 3_000)
    ]
    weights = inverse_variance_weights(parts)
    assert [part[0] for part in weights] == [0.25, 0.75]
    pooled = pool(parts, Request(weights=INVERSE_VARIANCE))
    assert pooled.mean.unbiased[0] == pytest.approx(1)


ONE = Fraction(1)
CONSTANT: dict[str, Any] = {
    "everybody": ((ONE,) * 4,),
    "nobody": ((Fraction(0),) * 4,),
    "a tenth": ((ONE / 10,) * 4,),
}


@pytest.mark.parametrize("weights", ["respondents", INVERSE_VARIANCE])
@pytest.mark.parametrize("name", CONSTANT)
def test_versions_cannot_differ_in_a_constant_target(name: str, weights: str) -> None:
    """A constant target by itself has no test; together with a share, the test is that of the share."""
    parts = [expected(grr(4, 1), FIRST, 1_000), expected(grr(4, 2), SECOND, 2_000)]
    alone = pool(
        [replace(part, targets=CONSTANT[name]) for part in parts], Request(weights=weights)
    )
    assert alone.mean.unbiased == pytest.approx((float(CONSTANT[name][0][0]),))
    assert (alone.versions_p, "versions_differ" in alone.mean.flags) == (None, False)
    share = ((ONE, *CONSTANT[name][0][1:]),) if name == "nobody" else ((ONE, *(Fraction(0),) * 3),)
    beside, only = (
        pool(
            [replace(part, targets=targets) for part in parts], Request(weights=weights)
        ).versions_p
        for targets in ((*CONSTANT[name], *share), share)
    )
    assert beside == pytest.approx(only)


def test_a_census_of_open_answers_is_compared() -> None:
    """Standard errors are 0, but randomly split groups differ, so Pearson's test of the table applies."""
    openly = DenseMechanism(4, ((16, 0), (0, 16)))
    pooled = pool([part(openly, [60, 40]), part(openly, [30, 70])], Request(census=True))
    assert pooled.mean.se == (0, 0)
    assert pooled.versions_p == pytest.approx(
        stats.chi2_contingency([[60, 40], [30, 70]], correction=False).pvalue
    )
