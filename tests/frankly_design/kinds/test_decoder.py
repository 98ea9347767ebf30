# SPDX-License-Identifier: Apache-2.0
"""Decoder, which is exactly unbiased by independent arithmetic in fractions."""

import random
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.product import ProductKind
from frankly_design.numeric import rational
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from tests.frankly_design.maths import frequencies, random_mechanism, random_shares

TRIALS = 200


def test_200_random_mechanisms_are_unbiased_with_difference_zero() -> None:
    # E[v·counts/n] = v·λ for every n; tables are square or not, and truths and design priors are
    # random.
    rng = random.Random(61)
    for _ in range(TRIALS):
        answers = rng.randint(2, 6)
        mechanism = random_mechanism(rng, answers, answers + rng.randint(0, 4))
        prior = tuple(rng.randint(0, 50) for _ in range(answers))
        decoding = decoder(mechanism, shares(answers), prior if any(prior) else None)
        p = random_shares(rng, answers)
        expected = frequencies(mechanism, p)
        for x, row in enumerate(decoding.rows):
            assert row is not None
            assert sum(v * rate for v, rate in zip(row, expected, strict=True)) - p[x] == 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_mean_over_every_outcome_is_the_truth(n: int) -> None:
    rng = random.Random(62 + n)
    for _ in range(6):
        mechanism = random_mechanism(rng, 3, 4, bits=8)
        decoding = decoder(mechanism, shares(3), None)
        p = random_shares(rng, 3)
        rates = frequencies(mechanism, p)
        mean = [Fraction(0)] * 3
        for outcome in product(range(4), repeat=n):
            counts = [outcome.count(y) for y in range(4)]
            chance = prod((rates[y] for y in outcome), start=Fraction(1))
            mean = [
                m + chance * v
                for m, v in zip(mean, decoding.apply(counts), strict=True)
                if v is not None
            ]
        assert mean == p


def test_the_decoder_is_weighted_least_squares() -> None:
    # V = W (QᵀD₀⁻¹Q)⁻¹ QᵀD₀⁻¹ with D₀ = diag(Qp₀), in floats.
    rng = random.Random(63)
    for _ in range(20):
        mechanism = random_mechanism(rng, 4, 7)
        p0 = [rng.randint(1, 30) for _ in range(4)]
        Q = np.array(mechanism.weights).T / 2.0**48  # usual orientation: row = report
        D = np.diag(1 / (Q @ (np.array(p0) / sum(p0))))
        V = np.linalg.solve(Q.T @ D @ Q, Q.T @ D)
        rows = np.array(
            [[float(v) for v in row or ()] for row in decoder(mechanism, shares(4), tuple(p0)).rows]
        )
        np.testing.assert_allclose(rows, V, rtol=1e-6, atol=1e-9)


def test_at_the_design_prior_no_other_unbiased_decoder_varies_less() -> None:
    rng = random.Random(64)
    for _ in range(20):
        mechanism = random_mechanism(rng, 3, 6)
        p0 = tuple(rng.randint(1, 9) for _ in range(3))
        p = [Fraction(n, sum(p0)) for n in p0]
        rates = frequencies(mechanism, p)
        best = decoder(mechanism, shares(3), p0).rows
        alternative = decoder(mechanism, shares(3), (1, 50, 1)).rows
        for mine, theirs in zip(best, alternative, strict=True):
            assert mine is not None
            assert theirs is not None
            spread = [
                sum(v * v * r for v, r in zip(row, rates, strict=True)) for row in (mine, theirs)
            ]
            assert spread[0] <= spread[1] * (
                1 + Fraction(1, 2**60)
            )  # weights are rounded to 64 bits


def test_identifiable_targets_of_a_deficient_mechanism_and_only_these() -> None:
    # Answers 1 and 2 have equal rows: only their sum and its multiples are identifiable.
    mechanism = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    targets = tuple(
        tuple(map(Fraction, row)) for row in ((1, 0, 0), (0, 1, 0), (0, 1, 1), (2, 5, 5), (1, 1, 0))
    )
    decoding = decoder(mechanism, targets, None)
    assert [row is not None for row in decoding.rows] == [True, False, True, True, False]
    assert decoding.rank == 2
    for p in ([1, 0, 0], [0, 1, 0], [0, 0, 1]):
        rates = frequencies(mechanism, [Fraction(v) for v in p])
        for target, row in zip(targets, decoding.rows, strict=True):
            if row is not None:
                assert sum(v * r for v, r in zip(row, rates, strict=True)) == sum(
                    w * v for w, v in zip(target, p, strict=True)
                )


def test_a_deficient_mechanism_gets_the_rows_of_the_pseudo_inverse() -> None:
    rng = random.Random(65)
    mechanism = random_mechanism(rng, 4, 3)  # fewer reports than answers
    columns = list(zip(*mechanism.weights, strict=True))
    target = tuple(Fraction(a + 2 * b - c, 2**48) for a, b, c in zip(*columns, strict=True))
    row = decoder(mechanism, (target,), (1, 2, 3, 4)).rows[0]
    assert row is not None
    Q = np.array(mechanism.weights).T / 2.0**48
    D = np.diag(1 / (Q @ np.array([0.1, 0.2, 0.3, 0.4])))
    expected = np.array([float(v) for v in target]) @ np.linalg.pinv(Q.T @ D @ Q) @ Q.T @ D
    np.testing.assert_allclose([float(v) for v in row], expected, rtol=1e-6)


def test_a_design_prior_that_leaves_reports_without_mass_is_replaced() -> None:
    mechanism = DenseMechanism(4, ((16, 0), (0, 16)))
    decoding = decoder(mechanism, shares(2), (1, 0))
    assert decoding.fallback
    assert decoding.rows == ((1, 0), (0, 1))
    assert not decoder(mechanism, shares(2), (1, 1)).fallback


@pytest.mark.parametrize("order", [1, -1])
def test_a_product_is_flagged_if_the_prior_of_one_factor_is_replaced(order: int) -> None:
    """One factor's second report requires its second answer, which has 0 of 8 or 1 of 9 in the
    design priors."""
    factors = (DenseMechanism(4, ((12, 4), (4, 12))), DenseMechanism(4, ((16, 0), (8, 8))))[::order]
    everybody = (tuple(map(Fraction, (1, 1, 1, 1))), tuple(map(Fraction, (1, 1, 0, 0))))
    for without, replaced in ((0, True), (1, False)):
        prior = (3, without, 5, 0) if order == 1 else (3, 5, without, 0)
        decoding = ProductKind(ProductMechanism(factors)).decoder(everybody, prior)
        assert decoding.fallback is replaced
        for targets in ("shares", everybody):
            estimated = estimate(
                ProductMechanism(factors), [5, 6, 7, 8], targets=targets, design_prior=prior
            )
            assert ("design_prior_replaced" in estimated.flags) is replaced


def test_without_reports_there_is_no_estimate() -> None:
    mechanism = DenseMechanism(4, ((12, 4), (4, 12)))
    assert decoder(mechanism, shares(2), None).apply([0, 0]) == (None, None)


def test_exact_linear_algebra() -> None:
    assert rational.rank([[1, 2], [2, 4], [0, 1]]) == 2
    assert rational.row_echelon([[2, 4, 2], [1, 2, 3]]) == ((1, 2, 0), (0, 0, 1))
    assert rational.solve([[2, 1], [1, 1]], [[1], [0]]) == ((1,), (-1,))
    assert rational.inverse_forms([[2, 1], [1, 1]]) == (1, 2)
    assert rational.whole([Fraction(1, 2), Fraction(-2, 3)]) == [3, -4]
    with pytest.raises(ZeroDivisionError):
        rational.solve([[1, 1], [1, 1]], [[1], [0]])
    with pytest.raises(ValueError, match="mass"):
        rational.normal_equations([[1, 0], [1, 0]], [1, 1])


def test_without_a_design_prior_there_is_no_fallback() -> None:
    mechanism = random_mechanism(random.Random(64), 3, 4)
    assert not decoder(mechanism, shares(3), None).fallback
    assert decoder(mechanism, shares(3), None).rows == decoder(mechanism, shares(3), (2,) * 3).rows
    # Symbol 2 comes only from answer 2, which has no mass here, so the fallback is equal weights.
    lonely = DenseMechanism(4, ((8, 8, 0), (8, 8, 0), (4, 4, 8)))
    assert decoder(lonely, shares(3), (1, 1, 0)).fallback
    assert not decoder(lonely, shares(3), (1, 1, 1)).fallback


def test_a_product_of_more_than_a_million_cells_is_refused_before_it_is_solved() -> None:
    """With 256 joint answers and 4,225 joint reports, exact least squares on the whole table would
    take hours."""
    rows = [[1] * 65 for _ in range(16)]
    for x, row in enumerate(rows):
        row[x] += 128 - 65
    factor = DenseMechanism(7, tuple(map(tuple, rows)))
    with pytest.raises(InvalidInput) as caught:
        ProductKind(ProductMechanism((factor, factor))).decoder(shares(256), None)
    assert caught.value.code == "unsupported"
