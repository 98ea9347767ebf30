# SPDX-License-Identifier: Apache-2.0
"""Estimator: every variance checked by enumeration of all outcomes, every flag, every refusal."""

import random
from fractions import Fraction
from itertools import permutations, product
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Estimate, estimate
from frankly_design.estimate.estimator import nothing_yet
from frankly_design.kinds.decoder import decoder, shares
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism, UnaryMechanism

from tests.frankly_design.maths import frequencies, random_mechanism, random_shares

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))
DEFICIENT = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))


def values(result: Estimate) -> np.ndarray:
    return np.array([v for v in result.unbiased if v is not None])


def parts(result: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimate and its covariance."""
    assert result.covariance is not None
    return values(result), np.array(result.covariance, dtype=float)


def counted(outcome: tuple[int, ...], reports: int) -> list[int]:
    return [outcome.count(y) for y in range(reports)]


@pytest.mark.slow
@pytest.mark.parametrize("targets", ["shares", [[1, -1, 0], [0, 1, 1]]])
def test_the_covariance_is_unbiased(targets: Any) -> None:
    # For independent draws, E[T] is the covariance of the estimate; both are computed over every
    # outcome of n = 3.
    rng = random.Random(81)
    for _ in range(3):
        mechanism, p = random_mechanism(rng, 3, 4, bits=8), random_shares(rng, 3)
        rates = [float(v) for v in frequencies(mechanism, p)]
        total = sum_of(
            (
                prod(rates[y] for y in outcome),
                *parts(estimate(mechanism, counted(outcome, 4), targets=targets)),
            )
            for outcome in product(range(4), repeat=3)
        )
        W = np.eye(3) if targets == "shares" else np.array(targets)
        truth = W @ np.array([float(v) for v in p])
        mean, second, covariance = total
        np.testing.assert_allclose(mean, truth, atol=1e-9 * np.abs(second).max() + 1e-12)
        np.testing.assert_allclose(
            covariance, second - np.outer(truth, truth), rtol=1e-8, atol=1e-10
        )


def sum_of(cases: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return E[v], E[v vᵀ] and E[C] over cases (probability, v, C)."""
    mean: Any = 0
    second: Any = 0
    covariance: Any = 0
    for chance, value, spread in cases:
        mean, second = mean + chance * value, second + chance * np.outer(value, value)
        covariance = covariance + chance * spread
    return mean, second, covariance


def outcomes(mechanism: DenseMechanism, people: tuple[int, ...], n: int) -> Any:
    """Yield (probability, reports) of drawing n people without replacement and randomising their answers."""
    samples = list(permutations(people, n))
    for sample in samples:
        for chance, reports in everyone(mechanism, sample):
            yield chance / len(samples), reports


def everyone(mechanism: DenseMechanism, people: tuple[int, ...]) -> Any:
    """Yield (probability, reports) of randomising the answers of all these people."""
    for reports in product(range(mechanism.reports), repeat=len(people)):
        yield (
            prod(float(mechanism.probability(y, x)) for y, x in zip(reports, people, strict=True)),
            reports,
        )


@pytest.mark.slow
def test_a_finite_population_and_a_census_are_exactly_unbiased() -> None:
    rng = random.Random(82)
    people, n = (0, 0, 1, 2), 2
    truth = np.array([0.5, 0.25, 0.25])
    for _ in range(2):
        mechanism = random_mechanism(rng, 3, 3, bits=8)
        mean, second, covariance = sum_of(
            (chance, *parts(estimate(mechanism, counted(reports, 3), population=4)))
            for chance, reports in outcomes(mechanism, people, n)
        )
        np.testing.assert_allclose(mean, truth, atol=1e-9)
        np.testing.assert_allclose(
            covariance, second - np.outer(truth, truth), rtol=1e-8, atol=1e-9
        )
        mean, second, covariance = sum_of(
            (chance, *parts(estimate(mechanism, counted(reports, 3), census=True)))
            for chance, reports in everyone(mechanism, people)
        )
        np.testing.assert_allclose(mean, truth, atol=1e-9)
        np.testing.assert_allclose(
            covariance, second - np.outer(truth, truth), rtol=1e-8, atol=1e-9
        )


def test_the_parts_make_up_the_whole() -> None:
    result = estimate(WARNER, [300, 700])
    for total, privacy, sampling in zip(
        result.se, result.se_privacy, result.se_sampling, strict=True
    ):
        assert total is not None
        assert privacy is not None
        assert sampling is not None
        assert total**2 == pytest.approx(privacy**2 + sampling**2, rel=1e-12)
    # By hand at λ = 0.7, per report: the privacy part is ¾·¼/(½)² = 0.75, and the total is
    # λ(1−λ)/(½)².
    assert result.unbiased == pytest.approx((0.1, 0.9))
    assert result.se_privacy[1] == pytest.approx(sqrt(0.75 / 1000), rel=1e-9)
    assert result.se[1] == pytest.approx(sqrt(0.7 * 0.3 / 0.25 / 999), rel=1e-9)


def test_population_shrinks_only_the_sampling_part() -> None:
    infinite, finite, all_of_them = (
        estimate(WARNER, [300, 700], **options)
        for options in ({}, {"population": 2000}, {"census": True})
    )
    assert infinite.se_privacy == pytest.approx(finite.se_privacy)
    assert infinite.se_privacy == pytest.approx(all_of_them.se_privacy)
    assert finite.se_sampling[0] == pytest.approx(
        (infinite.se_sampling[0] or 0) * sqrt(0.5), rel=1e-12
    )
    assert all_of_them.se_sampling == (0, 0)
    assert all_of_them.se == pytest.approx(all_of_them.se_privacy)
    assert (
        (all_of_them.worst_case_se[0] or 0)
        < (finite.worst_case_se[0] or 0)
        < (infinite.worst_case_se[0] or 0)
    )
    assert estimate(WARNER, [300, 700], population=1000).se == pytest.approx(all_of_them.se)


def test_the_worst_case_of_a_finite_population_is_reached_by_its_true_variance() -> None:
    """For Warner with p00 = p11 = ¾, share ½, and n of N people, the variance is 0.75/n + (N−n)/(N−1)·¼/n."""
    n, population = 10, 40
    result = estimate(WARNER, [5, 5], population=population)
    expected = sqrt(0.75 / n + 0.25 / n * (population - n) / (population - 1))
    assert result.worst_case_se[0] == pytest.approx(expected, rel=1e-12)


def test_a_census_margin_is_at_least_that_of_the_projected_shares(full: bool) -> None:
    """The unbiased privacy part may be negative; the displayed error is at least that of the projection."""
    rng = random.Random(31)
    negative = 0
    for _ in range(200 if full else 50):
        mechanism = random_mechanism(rng, 3, 4)
        counts = [rng.randrange(0, 12) for _ in range(4)]
        if sum(counts) < 2:
            continue
        result = estimate(mechanism, counts, census=True)
        rows = decoder(mechanism, shares(3), None).rows
        for t, row in enumerate(rows):
            assert row is not None
            spread = [
                sum(v * v * mechanism.probability(y, x) for y, v in enumerate(row)) - (x == t)
                for x in range(3)
            ]
            implied = (
                sum(float(s) * (p or 0) for s, p in zip(spread, result.projected, strict=True))
                / result.n
            )
            assert (result.se[t] or 0) ** 2 >= implied * (1 - 1e-9)
            assert result.se[t] == pytest.approx(result.se_privacy[t])
        negative += "privacy_part_negative" in result.flags
    assert negative > 0, "the cases must include a negative privacy part"


def test_the_worst_case_bounds_every_truth() -> None:
    rng = random.Random(83)
    mechanism = random_mechanism(rng, 3, 4)
    result = estimate(mechanism, [25, 25, 25, 25])
    V = np.array(
        [[float(v) for v in row or ()] for row in decoder(mechanism, shares(3), None).rows]
    )
    for _ in range(200):
        p = random_shares(rng, 3)
        rates = np.array([float(v) for v in frequencies(mechanism, p)])
        spread = (V**2 @ rates - np.array([float(v) for v in p]) ** 2) / 100
        assert np.all(np.sqrt(spread) <= np.array(result.worst_case_se, dtype=float) * (1 + 1e-9))


def test_no_reports_give_a_result_without_numbers() -> None:
    result = estimate(WARNER, [0, 0])
    assert result.n == 0
    assert (
        result.unbiased
        == result.se
        == result.worst_case_se
        == result.projected
        == result.margins.clt
        == (None, None)
    )
    assert result.covariance is None
    assert result.flags == ("no_reports",)
    assert result.identifiable


def test_one_report_has_no_covariance_but_a_worst_case() -> None:
    result = estimate(WARNER, [1, 0])
    assert result.unbiased == (1.5, -0.5)
    assert result.covariance is None
    assert result.se == result.margins.clt == (None, None)
    assert result.worst_case_se == (1.0, 1.0)  # 1/(2k) with k = ½
    assert result.margins.chebyshev == pytest.approx((sqrt(20), sqrt(20)))
    assert result.flags == ("one_report", "outside_simplex")


def test_estimates_are_never_clipped_and_projections_are_labelled() -> None:
    result = estimate(WARNER, [90, 10])
    assert result.unbiased == pytest.approx((1.3, -0.3))
    assert result.projected == (1.0, 0.0)
    assert "outside_simplex" in result.flags
    assert "sampling_part_negative" in result.flags
    assert result.se_sampling == (0, 0)


def test_shares_that_are_not_identifiable_have_no_number() -> None:
    result = estimate(DEFICIENT, [400, 600])
    assert result.unbiased[0] == pytest.approx(0.3)
    assert result.unbiased[1:] == (None, None)
    assert (result.rank, result.identifiable) == (2, False)
    assert result.flags == ("not_identifiable",)
    assert result.se[0] == pytest.approx(sqrt(0.24 / 0.25 / 999))
    assert result.se[1:] == result.worst_case_se[1:] == (None, None)
    assert result.se_privacy == (None, None, None)
    assert result.covariance is not None
    assert result.covariance[1] == (None, None, None)
    assert result.projected == (None, None, None)


def test_identifiable_targets_of_a_deficient_mechanism() -> None:
    result = estimate(DEFICIENT, [400, 600], targets=[[0, 1, 1]])
    assert result.unbiased == pytest.approx((0.7,))
    assert result.identifiable
    assert (
        estimate(DEFICIENT, [400, 600], targets=[[0, 1, 1]], census=True).covariance is None
    )  # the split between the answers is unknown


def test_the_covariance_keeps_the_positions_of_all_targets() -> None:
    """Target 3 of 4 is not identifiable, so its row and column are empty, and the others are the
    same as without it."""
    targets = [[1, 0, 0], [1, 1, 1], [0, 1, 0], [0, 2, 2]]
    of_all, alone = (
        estimate(DEFICIENT, [400, 600], targets=rows)
        for rows in (targets, [targets[0], targets[3]])
    )
    assert of_all.covariance is not None
    assert alone.covariance is not None
    assert of_all.covariance[2] == tuple(row[2] for row in of_all.covariance) == (None,) * 4
    assert of_all.covariance[1] == pytest.approx((0, 0, None, 0))
    assert [of_all.covariance[i][j] for i in (0, 3) for j in (0, 3)] == pytest.approx(
        [v for r in alone.covariance for v in r]
    )
    assert alone.covariance[1][1] == pytest.approx(4 * 0.24 / 0.25 / 999)


def test_an_ill_conditioned_mechanism_is_flagged() -> None:
    total = 1 << 48
    nearly = DenseMechanism(
        48, ((total // 2 + 2**20, total // 2 - 2**20), (total // 2, total // 2))
    )
    assert "ill_conditioned" in estimate(nearly, [5, 5]).flags
    assert "ill_conditioned" not in estimate(WARNER, [5, 5]).flags


def test_the_result_does_not_lose_precision_with_many_reports() -> None:
    # With 10^15 reports, λ − λ² is the same but 1/n is not.
    result = estimate(WARNER, [4 * 10**14, 6 * 10**14])
    assert result.unbiased == pytest.approx((0.3, 0.7), rel=1e-15)
    assert result.se[0] == pytest.approx(sqrt(0.24 / 0.25 / 10**15), rel=1e-12)


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("too few counts", {"counts": [1]}, "counts_invalid", "counts"),
    ("no list", {"counts": "12"}, "counts_invalid", "counts"),
    ("negative", {"counts": [1, -1]}, "counts_invalid", "counts[1]"),
    ("float", {"counts": [1.0, 1]}, "counts_invalid", "counts[0]"),
    ("true", {"counts": [True, 1]}, "counts_invalid", "counts[0]"),
    ("population too small", {"population": 9}, "counts_invalid", "population"),
    ("population a float", {"population": 100.0}, "counts_invalid", "population"),
    ("population and census", {"population": 100, "census": True}, "counts_invalid", "population"),
    ("level 95", {"level": 95}, "confidence_range", "level"),
    ("targets empty", {"targets": []}, "targets_invalid", "targets"),
    ("targets in words", {"targets": "sums"}, "targets_invalid", "targets"),
    ("target too long", {"targets": [[1, 0], [1, 0, 0]]}, "targets_invalid", "targets[1]"),
    ("target of text", {"targets": [["1", 0]]}, "targets_invalid", "targets[0]"),
    ("prior too long", {"design_prior": [1, 2, 3]}, "prior_shape", "design_prior"),
    ("prior of zeros", {"design_prior": [0, 0]}, "prior_value", "design_prior"),
    ("prior negative", {"design_prior": [1, -1]}, "prior_value", "design_prior"),
]


@pytest.mark.parametrize(
    ("options", "code", "field"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_refusals(options: dict[str, Any], code: str, field: str) -> None:
    arguments = {"counts": [5, 5], **options}
    with pytest.raises(InvalidInput) as caught:
        estimate(WARNER, arguments.pop("counts"), **arguments)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_fractions_are_targets() -> None:
    assert estimate(WARNER, [3, 7], targets=[[Fraction(1, 2), Fraction(1, 2)]]).unbiased == (0.5,)


def test_empty_counts_have_no_reports_of_any_kind() -> None:
    table = DenseMechanism(4, ((12, 4), (4, 12)))
    for mechanism in (table, ProductMechanism((table, table)), UnaryMechanism(4, 3, 8, 2)):
        nothing = nothing_yet(mechanism, shares(mechanism.answers), None)
        assert nothing.n == 0
        assert not any(nothing.exact)


def test_only_shares_are_flagged_outside_the_simplex() -> None:
    """Every report is 0, which answer 0 sends most often, so the share of answer 0 is estimated above 1."""
    for targets, is_flagged in (
        ("shares", True),
        ([[1, 0]], True),
        ([[1, 1]], False),  # exactly 1
        ([[2, 0]], False),
        ([[1, 0], [1, -1]], False),
    ):
        result = estimate(WARNER, [50, 0], targets=targets)  # type: ignore[arg-type]
        assert ("outside_simplex" in result.flags) is is_flagged, targets
        assert any("outside_unit_interval" in flags for flags in result.row_flags) is is_flagged
