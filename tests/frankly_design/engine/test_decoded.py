# SPDX-License-Identifier: Apache-2.0
"""Variance of the published estimates at any true shares, compared with the estimator's exact decoder."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.engine.decoded import mean_squares, total_variance
from frankly_design.families import FAMILIES, FamilyRequest
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.registry import kind_of
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism

from tests.frankly_design.maths import exact_variance

SKEWED = (60, 20, 10, 7, 3)
TRUTHS = [(1, 1, 1, 1, 1), (3, 7, 10, 20, 60), (0, 0, 0, 0, 1), SKEWED]


def optimum(prior: tuple[int, ...], epsilon: str) -> DenseMechanism:
    known_prior = Prior.from_rows([prior])
    return design(DesignRequest(known_prior, (answer_ldp(Fraction(epsilon)),))).table


def as_floats(truth: tuple[int, ...]) -> np.ndarray:
    return np.array(truth, dtype=np.float64) / sum(truth)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_variance_of_a_table_equals_that_of_the_published_decoder(
    truth: tuple[int, ...], epsilon: str
) -> None:
    mechanism = optimum(SKEWED, epsilon)
    expected = exact_variance(mechanism, SKEWED, truth)
    assert total_variance(mechanism, SKEWED, as_floats(truth)) == pytest.approx(expected, rel=1e-9)
    if truth != SKEWED and mechanism.reports > 5:  # otherwise there is only one unbiased decoder
        assert total_variance(mechanism, (1,) * 5, as_floats(truth)) != pytest.approx(
            expected, rel=1e-4
        )


def test_a_product_is_decoded_factor_by_factor() -> None:
    factors = (optimum((8, 1, 1), "1"), optimum((1, 6), "2"))
    mechanism = ProductMechanism(factors)
    prior = (8, 20, 3, 7, 1, 9)
    for truth in ((1,) * 6, (0, 0, 1, 0, 0, 0), prior):
        expected = exact_variance(mechanism, prior, truth)
        assert total_variance(mechanism, prior, as_floats(truth)) == pytest.approx(
            expected, rel=1e-9
        )


def test_targets_are_rows_of_the_shares() -> None:
    mechanism = optimum(SKEWED, "1")
    W = np.array([[1.0, -1, 0, 0, 0], [0, 0, 1, 0, 2]])
    squares = mean_squares(mechanism, SKEWED, W)
    targets = tuple(tuple(Fraction(int(v)) for v in row) for row in W)
    rows = [row for row in decoder(mechanism, targets, SKEWED).rows if row is not None]
    for x, weights in enumerate(mechanism.weights):
        expected = (
            sum(w * float(row[y]) ** 2 for row in rows for y, w in enumerate(weights)) / 2**48
        )
        assert squares is not None
        assert squares[:, x].sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["oue", "symmetric-unary", "subset-selection"])
@pytest.mark.parametrize("truth", TRUTHS[:3])
def test_the_variance_of_sets_equals_that_of_a_list_of_all_sets(
    name: str, truth: tuple[int, ...]
) -> None:
    """The sum runs over all sets. The decoder is e = (1[x in set] − q)/(p − q), minus (Σe − 1)/a
    for every answer."""
    claims = (answer_ldp(Fraction(1)),)
    mechanism: Mechanism = FAMILIES[name](
        FamilyRequest(name, Prior.from_rows([SKEWED]), claims)
    ).mechanism
    rows = kind_of(mechanism).rows
    assert rows is not None
    Q = np.array([[w / sum(row) for w in row] for row in rows])
    masks = [[mask >> x & 1 for x in range(5)] for mask in mechanism.symbols()]  # type: ignore[operator]
    held = np.array(masks, dtype=np.float64)
    p, q = float(Q[0] @ held[:, 0]), float(Q[1] @ held[:, 0])
    e = (held - q) / (p - q)
    e = e - (e.sum(axis=1, keepdims=True) - 1) / 5
    share = as_floats(truth)
    assert Q @ e == pytest.approx(np.eye(5), abs=1e-9)
    expected = float(share @ Q @ np.sum(e**2, axis=1) - share @ share)
    assert total_variance(mechanism, SKEWED, share) == pytest.approx(expected, rel=1e-9)


def test_unidentifiable_answers_have_no_variance() -> None:
    blurred = DenseMechanism(4, ((12, 4), (8, 8), (8, 8)))
    assert math.isinf(total_variance(blurred, (1, 1, 1), np.full(3, 1 / 3)))


def test_a_report_without_mass_falls_back_on_equal_shares() -> None:
    mechanism = DenseMechanism(4, ((16, 0, 0), (4, 12, 0), (4, 4, 8)))
    prior, truth = (1, 1, 0), (1, 1, 1)
    assert decoder(mechanism, shares(3), prior).fallback
    expected = exact_variance(mechanism, prior, truth)
    assert total_variance(mechanism, prior, as_floats(truth)) == pytest.approx(expected, rel=1e-9)
