# SPDX-License-Identifier: Apache-2.0
"""Likeliest shares, intervals, efficiency, cost and descriptions, compared with independent computations."""

import random
from math import exp
from time import process_time

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.identifiable import in_words
from frankly_design.kinds.likelihood import GAP, likeliest
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from tests.frankly_design.maths import grid, random_mechanism

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))


def log_likelihood(Q: np.ndarray, counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.sum(counts * np.log(np.maximum(p @ Q, 1e-300)), axis=-1) / counts.sum()


def test_no_grid_point_is_likelier_by_more_than_the_gap() -> None:
    rng, points = random.Random(91), grid(3, 60)
    iterated = 0
    for _ in range(40):
        mechanism = random_mechanism(rng, 3, rng.choice([3, 4, 5]))
        counts = np.array([rng.randrange(30) for _ in range(mechanism.reports)], dtype=float) + 1
        Q = np.array(mechanism.weights) / 2.0**48
        likeliest_shares = likeliest(Q, counts, None)
        assert likeliest_shares.shares.sum() == pytest.approx(1)
        assert likeliest_shares.shares.min() >= 0
        assert np.max(log_likelihood(Q, counts, points)) <= (
            log_likelihood(Q, counts, likeliest_shares.shares)
            + likeliest_shares.gap / counts.sum()
            + 1e-12
        )
        iterated += likeliest_shares.converged
    assert iterated == 40


@pytest.mark.parametrize("answers", [2, 3, 5])
def test_closed_forms_of_randomised_response_agree_with_iteration(answers: int) -> None:
    rng = np.random.default_rng(answers)
    Q = (np.eye(answers) * 2 + 1) / (answers + 2)
    for _ in range(30):
        counts = rng.integers(0, 12, answers).astype(float)
        counts[0] += 1
        unbiased = np.linalg.solve(Q.T, counts / counts.sum())
        closed = likeliest(Q, counts, unbiased)
        assert closed.closed_form
        doubled = (
            np.hstack([Q, Q]) / 2
        )  # the same mechanism with every symbol split in two has no closed form
        iterated = likeliest(doubled, np.concatenate([counts, counts]), None)
        assert not iterated.closed_form
        assert iterated.gap <= GAP
        np.testing.assert_allclose(closed.shares, iterated.shares, atol=2e-3)


def nearly_alike(epsilon: float, answers: int, blocks: int, rng: np.random.Generator) -> np.ndarray:
    """Return a symmetric mechanism: shifts of random halves, e^ε times as likely if they contain
    the truth."""
    halves = [rng.choice(answers, answers // 2, replace=False) for _ in range(blocks)]
    inside = np.array([[(x + shift) % answers in half for half in halves for shift in range(answers)]
                       for x in range(answers)])  # fmt: skip
    weights = np.where(inside, exp(epsilon), 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n", [1000, 10**9])
def test_the_search_converges_if_reports_hardly_depend_on_the_answer(
    epsilon: float, n: int
) -> None:
    """For 16 answers and 128 reports, the gap, from the test's own gradient, is small within half a
    second."""
    rng = np.random.default_rng(n)
    Q = nearly_alike(epsilon, 16, 8, rng)
    for p in (np.full(16, 1 / 16), np.array([0.5, 0.3, 0.1, *[0.1 / 13] * 13]), np.eye(16)[0]):
        counts = rng.multinomial(n, p @ Q).astype(float)
        unbiased = np.linalg.lstsq(Q.T, counts / n, rcond=None)[0]
        started = process_time()
        likeliest_shares = likeliest(Q, counts, unbiased)
        assert process_time() - started < 0.5
        assert likeliest_shares.converged
        gap = n * ((Q @ (counts / n / (likeliest_shares.shares @ Q))).max() - 1)
        assert gap <= GAP
        assert likeliest_shares.gap == pytest.approx(max(gap, 0.0), abs=n * 1e-14)


def test_the_search_converges_for_any_mechanism() -> None:
    """The test uses deficient, nearly flat and skewed tables, also with reports that they cannot produce."""
    rng = np.random.default_rng(92)
    for trial in range(300):
        answers, reports = int(rng.integers(2, 9)), int(rng.integers(2, 14))
        Q = rng.dirichlet(np.full(reports, rng.choice([0.1, 1, 50, 1000])), size=answers)
        if answers > 2 and trial % 5 == 0:
            Q[-1] = (Q[0] + Q[1]) / 2
        frequencies = (
            rng.dirichlet(np.full(answers, 0.3)) @ Q
            if trial % 3
            else rng.dirichlet(np.ones(reports))
        )
        likeliest_shares = likeliest(
            Q,
            rng.multinomial(int(rng.choice([5, 50, 1000, 10**6])), frequencies).astype(float),
            None,
        )
        assert likeliest_shares.converged


@pytest.mark.parametrize("truth", [(1.0, 0.0, 0.0, 0.0), (0.958, 0.02, 0.02, 0.002)])
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("n", [100, 500])
def test_intervals_of_the_biased_products_contain_the_truth(
    truth: tuple[float, ...], epsilon: int, n: int, full: bool
) -> None:
    """At and near a corner of the simplex, the likelihood ratio covers 88% and the bootstrap 70%."""
    runs, rng, p = 2000 if full else 80, np.random.default_rng(93), np.array(truth)
    mechanism = even_response(4, epsilon)
    Q = np.array(mechanism.weights) / mechanism.denominator
    covered = {"projected": np.zeros(4), "mle": np.zeros(4), "score": np.zeros(4)}
    for counts in rng.multinomial(n, p @ Q / (p @ Q).sum(), size=runs):
        result = estimate(mechanism, [int(c) for c in counts])
        covered["score"] += [
            low <= v <= high for v, (low, high) in zip(p, result.margins.score, strict=True)
        ]
        for name in ("projected", "mle"):
            values, pairs = getattr(result, name), getattr(result, f"{name}_interval")
            assert all(
                0 <= low <= value <= high <= 1 and low < high
                for value, (low, high) in zip(values, pairs, strict=True)
            )
            covered[name] += [
                low - 1e-12 <= v <= high + 1e-12 for v, (low, high) in zip(p, pairs, strict=True)
            ]
    for name in ("projected", "mle"):
        assert (covered[name] >= covered["score"]).all()
        assert covered[name].min() / runs >= 0.93 - 3.5 * (0.05 * 0.95 / runs) ** 0.5


def test_a_biased_product_has_an_interval_if_no_value_of_the_score_interval_is_possible() -> None:
    """The unbiased share of the first answer is 1½; its interval is moved to 1 and clipped there."""
    result = estimate(WARNER, [10_000, 0])
    low, _ = result.margins.score[0]
    assert low > 1
    assert result.projected[0] == result.mle[0] == 1
    assert (
        result.projected_interval[0]
        == result.mle_interval[0]
        == pytest.approx((1 - (1.5 - low), 1.0))
    )
    assert result.mle_interval[1] == pytest.approx((0.0, 1.5 - low))


def even_response(answers: int, epsilon: float) -> DenseMechanism:
    off = int(2**48 / (exp(epsilon) + answers - 1))
    on = 2**48 - (answers - 1) * off
    return DenseMechanism(
        48, tuple(tuple(on if x == y else off for y in range(answers)) for x in range(answers))
    )


def test_cost_and_efficiency_of_warner_by_hand() -> None:
    result = estimate(WARNER, [500, 500])
    # The variance per report is ¼ for open answers and ¼/(½)² = 1 for randomised answers.
    assert result.design_effect == pytest.approx((4, 4))
    assert result.privacy_cost == pytest.approx((0.75, 0.75))
    assert result.efficiency == pytest.approx(
        (1, 1)
    )  # one parameter, one frequency: nothing is lost


def test_no_decoder_is_more_efficient_than_the_bound() -> None:
    rng = random.Random(95)
    for _ in range(20):
        mechanism = random_mechanism(rng, 3, 6)
        result = estimate(mechanism, [rng.randrange(20, 60) for _ in range(6)])
        assert all(v is None or 0 < v <= 1 + 1e-9 for v in result.efficiency)


def test_descriptions_of_identifiable_targets() -> None:
    deficient = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    descriptions = in_words(deficient, ["never", "some", "often"])
    assert descriptions.rank == 2
    assert descriptions.can == ("the share of never", "the share of some + often")
    assert descriptions.cannot == ("often against some",)
    assert in_words(WARNER, ["no", "yes"]).cannot == ()


def test_words_about_a_product_equal_those_of_its_whole_table() -> None:
    deficient = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    product = ProductMechanism((WARNER, deficient))
    rows = tuple(
        tuple(a * b for a in row for b in second_row)
        for row in WARNER.weights
        for second_row in deficient.weights
    )
    names = [f"{x} × {z}" for x in ("no", "yes") for z in ("never", "some", "often")]
    assert in_words(product, names) == in_words(DenseMechanism(8, rows), names)
    assert in_words(product, names).cannot == (
        "no × often against no × some",
        "yes × often against yes × some",
    )
    large = ProductMechanism((DenseMechanism(4, ((13, 3), (3, 13))),) * 8)  # 65,536 cells
    assert in_words(large, [str(x) for x in range(256)]).cannot == ()


def test_the_simultaneous_margin_holds_for_all_targets_at_once() -> None:
    """In 95% to 96% of draws, all normal errors with this covariance are within their margins."""
    result = estimate(even_response(4, 1), [400, 300, 200, 100])
    draws = np.random.default_rng(94).multivariate_normal(
        np.zeros(4), np.array(result.covariance), 200_000
    )
    factors = np.array(result.margins.simultaneous) / np.array(result.worst_case_se)
    assert factors == pytest.approx(np.full(4, factors[0]))
    assert np.array(result.margins.simultaneous_plugin) == pytest.approx(
        factors * np.array(result.se)
    )
    assert (
        0.95
        <= np.mean((np.abs(draws) <= np.array(result.margins.simultaneous_plugin)).all(axis=1))
        <= 0.96
    )
