# SPDX-License-Identifier: Apache-2.0
"""Measures of lift, compared with their definitions as sums."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design import measures
from frankly_design.measures.lift import Lifts, lift_table, measure_lift
from frankly_design.notions.prior import Prior
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.families.lift.reference import lifts, random_counts
from tests.frankly_design.maths import random_mechanism

ORDERS = (0.5, 1, 2, 2.5, 10, 100, math.inf)


def joint_of(weights: tuple[tuple[int, ...], ...], prior: Prior) -> np.ndarray:
    """Return P(s, y), of shape (secrets, reports)."""
    N = np.array(prior.joint, dtype=float)
    return N / N.sum() @ (np.array(weights, dtype=float) / sum(weights[0]))


def sibson(channel: np.ndarray, weighting: np.ndarray, order: float) -> float:
    """Return the textbook form α/(α−1) log Σ_y (Σ_s w_s P(y|s)^α)^(1/α), or its limits, without lifts."""
    if order == 1:
        expected = weighting @ channel
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nansum(weighting[:, None] * channel * np.log(channel / expected)))
    if math.isinf(order):
        return math.log(channel.max(axis=0).sum())
    return (
        order / (order - 1) * math.log(float(((weighting @ channel**order) ** (1 / order)).sum()))
    )


def test_every_measure_is_its_definition(full: bool) -> None:
    for seed in range(200 if full else 40):
        rng = random.Random(seed)
        prior = random_counts(
            seed, rng.randint(2, 4), rng.randint(2, 5), zeros=rng.choice([0, 0.3])
        )
        weights = random_mechanism(rng, prior.answers, rng.randint(1, 5)).weights
        P = joint_of(weights, prior)
        p, r = P.sum(axis=1), P.sum(axis=0)
        lift = P / p[:, None] / r
        with np.errstate(divide="ignore"):
            inverse = 1 / lift
        measured = measure_lift(weights, prior, ORDERS)
        assert np.allclose(measured["lift"], lift, rtol=1e-12)
        assert np.allclose(measured["max_lift"], lift.max(axis=0))
        assert np.allclose(measured["min_lift"], lift.min(axis=0))
        for name, table in (("", lift), ("_inverse", inverse)):
            assert measured["l1_lift" + name] == pytest.approx((p @ abs(table - 1)).max())
            assert measured["chi2_lift" + name] == pytest.approx((p @ (table - 1) ** 2).max())
            for order in (0.5, 2, 2.5, 10):
                direct = ((p @ table**order) ** (1 / order)).max()
                assert measured["alpha_lift" + name][f"{order:g}"] == pytest.approx(direct)
            assert measured["alpha_lift" + name]["inf"] == pytest.approx(table.max())
        assert measured["total_variation"] == pytest.approx(abs(P - np.outer(p, r)).sum() / 2)
        assert measured["chi2"] == pytest.approx((P**2 / np.outer(p, r)).sum() - 1, abs=1e-12)
        for order in ORDERS[:-2]:
            tilted = p**order / (p**order).sum()
            assert measured["sibson"][f"{order:g}"] == pytest.approx(
                max(0, sibson(P / p[:, None], p, order)), abs=1e-9
            )
            if order != 1:
                direct = max(0, sibson(P / p[:, None], tilted, order))
                assert measured["arimoto"][f"{order:g}"] == pytest.approx(direct, abs=1e-9)
        assert measured["sibson"]["inf"] == pytest.approx(
            max(0, sibson(P / p[:, None], p, math.inf)), abs=1e-9
        )
        assert measured["arimoto"]["inf"] == pytest.approx(
            math.log(P.max(axis=0).sum() / p.max()), abs=1e-9
        )
        assert measured["sibson"]["1"] == measured["arimoto"]["1"]
        assert measured["sibson"]["1"] == pytest.approx(
            measures.measure(weights, prior)["information_secret"], abs=1e-9
        )


def test_the_lift_table_is_exact() -> None:
    prior = random_counts(3, 3, 4)
    weights = random_mechanism(random.Random(3), 4, 3).weights
    assert [list(column) for column in zip(*lift_table(weights, prior), strict=True)] == [
        lifts(column, prior) for column in zip(*weights, strict=True)
    ]


def test_the_measures_of_levels_agree_with_those_of_the_ratios() -> None:
    prior = random_counts(5, 3, 4)
    weights = random_mechanism(random.Random(5), 4, 3).weights
    measured, levels = measure_lift(weights, prior), measures.measure(weights, prior)
    assert math.log(max(measured["max_lift"])) == pytest.approx(levels["alip_high"])
    assert -math.log(min(measured["min_lift"])) == pytest.approx(levels["alip_low"])


def test_high_orders_do_not_overflow() -> None:
    prior = Prior.from_rows([[10**15, 1], [1, 1]])
    measured = measure_lift(((16, 0), (0, 16)), prior, [1000, 1e6])
    largest = max(measured["max_lift"])
    assert largest > 1e14
    for order in ("1000", "1e+06"):
        assert largest * 0.9 < measured["alpha_lift"][order] <= largest
        assert 0 < measured["sibson"][order] < math.log(2)


def test_answers_sent_unchanged_and_one_constant_report() -> None:
    prior = Prior.from_rows([[2, 0, 1], [1, 3, 1]])
    measured = measure_lift(((16, 0, 0), (0, 16, 0), (0, 0, 16)), prior)
    assert measured["min_lift"][1] == 0
    assert (
        measured["l1_lift_inverse"]
        == measured["chi2_lift_inverse"]
        == measured["alpha_lift_inverse"]["2"]
        == math.inf
    )
    nothing = measure_lift(((16,),) * 3, prior, [2, math.inf])
    assert nothing["lift"] == [[1.0], [1.0]]
    assert (
        nothing["total_variation"],
        nothing["chi2"],
        nothing["sibson"]["2"],
        nothing["arimoto"]["inf"],
    ) == (0, 0, 0, 0)


def test_impossible_reports_and_secrets_without_mass_do_not_count() -> None:
    prior = Prior(((1, 2, 0), (3, 1, 0), (0, 0, 0)))
    weights = ((8, 8, 0), (4, 12, 0), (0, 0, 16))
    assert all(row[2] == 1 for row in lift_table(weights, prior))
    assert lift_table(weights, prior)[2] == (1, 1, 1)
    less = Prior(((1, 2), (3, 1)))
    measured, same = (
        measure_lift(w, p, [2, 3]) for w, p in ((weights, prior), (((8, 8), (4, 12)), less))
    )
    for name in (
        "l1_lift",
        "chi2_lift_inverse",
        "alpha_lift",
        "total_variation",
        "chi2",
        "sibson",
        "arimoto",
    ):
        assert measured[name] == same[name]
    assert Lifts.of(weights, prior).table.shape == (2, 2)


@pytest.mark.parametrize("order", [0, -1, True, "2", math.nan, None])
def test_invalid_orders_are_refused(order: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        measure_lift(((16,), (16,)), Prior.from_rows([[1, 1], [1, 1]]), [order])  # type: ignore[list-item]
    assert caught.value.field == "orders"


def test_a_lift_is_a_fraction_of_any_size() -> None:
    prior = Prior.from_rows([[2**40, 1], [1, 2**40]])
    table = lift_table(((2**48, 0), (0, 2**48)), prior)
    assert table[0][1] == Fraction(2, 2**40 + 1)
