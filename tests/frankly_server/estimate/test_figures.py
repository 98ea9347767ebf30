# SPDX-License-Identifier: Apache-2.0
"""Likeliest shares, intervals, efficiency, cost and words, each against an independent computation."""

import random

import numpy as np
import pytest
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_server.estimate import estimate
from frankly_server.estimate.contrasts import lincom
from frankly_server.estimate.identifiable import in_words
from frankly_server.estimate.likelihood import GAP, likeliest

from tests.frankly_server.estimate.test_worst_case import grid
from tests.frankly_server.maths import random_mechanism

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))


def log_likelihood(Q: np.ndarray, counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.sum(counts * np.log(np.maximum(p @ Q, 1e-300)), axis=-1) / counts.sum()


def test_nothing_on_a_grid_is_likelier_and_the_gap_bounds_it() -> None:
    rng, points = random.Random(91), grid(3, 60)
    iterated = 0
    for _ in range(40):
        mechanism = random_mechanism(rng, 3, rng.choice([3, 4, 5]))
        counts = np.array([rng.randrange(30) for _ in range(mechanism.reports)], dtype=float) + 1
        Q = np.array(mechanism.weights) / 2.0**48
        found = likeliest(Q, counts, None)
        assert found.shares.sum() == pytest.approx(1)
        assert found.shares.min() >= 0
        assert np.max(log_likelihood(Q, counts, points)) <= log_likelihood(Q, counts, found.shares) + found.gap + 1e-12
        iterated += found.converged
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
        doubled = np.hstack([Q, Q]) / 2  # the same mechanism in twice the symbols, for which no form is known
        iterated = likeliest(doubled, np.concatenate([counts, counts]), None)
        assert not iterated.closed_form
        assert iterated.gap <= GAP
        np.testing.assert_allclose(closed.shares, iterated.shares, atol=2e-3)


def test_cost_and_efficiency_of_warner_by_hand() -> None:
    found = estimate(WARNER, [500, 500])
    # Openly ¼ per report; randomised ¼/(½)² = 1.
    assert found.design_effect == pytest.approx((4, 4))
    assert found.privacy_cost == pytest.approx((0.75, 0.75))
    assert found.efficiency == pytest.approx((1, 1))  # one parameter, one frequency: nothing is lost


def test_no_decoder_is_more_efficient_than_the_bound() -> None:
    rng = random.Random(95)
    for _ in range(20):
        mechanism = random_mechanism(rng, 3, 6)
        found = estimate(mechanism, [rng.randrange(20, 60) for _ in range(6)])
        assert all(v is None or 0 < v <= 1 + 1e-9 for v in found.efficiency)


def test_a_linear_combination_by_hand() -> None:
    C = [[0.04, -0.01], [-0.01, 0.09]]
    assert lincom([1, -1], [0.5, 0.2], C).se == pytest.approx(np.sqrt(0.04 + 0.09 + 0.02))


def test_what_can_and_cannot_be_told_in_words() -> None:
    deficient = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    found = in_words(deficient, ["never", "some", "often"])
    assert found.rank == 2
    assert found.can == ("the share of never", "the share of some + often")
    assert found.cannot == ("often against some",)
    assert in_words(WARNER, ["no", "yes"]).cannot == ()


def test_words_about_a_product_are_those_of_its_whole_table() -> None:
    deficient = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    product = ProductMechanism((WARNER, deficient))
    rows = tuple(tuple(a * b for a in row for b in other) for row in WARNER.weights for other in deficient.weights)
    names = [f"{x} × {z}" for x in ("no", "yes") for z in ("never", "some", "often")]
    assert in_words(product, names) == in_words(DenseMechanism(8, rows), names)
    assert in_words(product, names).cannot == ("no × often against no × some", "yes × often against yes × some")
    many = ProductMechanism((DenseMechanism(4, ((13, 3), (3, 13))),) * 8)  # 65,536 cells
    assert in_words(many, [str(x) for x in range(256)]).cannot == ()
