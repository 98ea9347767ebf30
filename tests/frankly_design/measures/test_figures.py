# SPDX-License-Identifier: Apache-2.0
"""Figures of `measure`, compared with their definitions in fractions or with sixty digits."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from frankly_design.measures import MeasureOptions, breach, measure
from frankly_design.measures.lift import Lifts
from frankly_design.notions.prior import Prior
from scipy.optimize import linprog

from tests.frankly_design.maths import random_mechanism, random_prior

Table = list[list[Fraction]]
ORDERS = (1e-6, 1e-3, 0.3, 0.5, 1 - 1e-12, 1.0, 1 + 1e-9, 1.4, 2.0, 3.0, 1e3, math.inf)


def lifts_and_shares(
    weights: tuple[tuple[int, ...], ...], prior: Prior
) -> tuple[Table, list[Fraction], list[Fraction]]:
    """Return P(s|y)/P(s), P(s) and P(y), by Bayes' rule in fractions."""
    columns, unit = list(zip(*weights, strict=True)), prior.total * sum(weights[0])
    both = [
        [Fraction(sum(n * w for n, w in zip(row, column, strict=True)), unit) for column in columns]
        for row in prior.joint
    ]
    p = [sum(row, Fraction(0)) for row in both]
    q = [sum(column, Fraction(0)) for column in zip(*both, strict=True)]
    return (
        [[v / u / r for v, r in zip(row, q, strict=True)] for row, u in zip(both, p, strict=True)],
        p,
        q,
    )


def in_sixty_digits(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def sibson(lift: Table, w: list[Fraction], q: list[Fraction], order: float) -> float:
    """Return α/(α−1)·log Σ_y q_y (Σ_s w_s l^α)^(1/α) for any weights w, with sixty digits."""
    with localcontext() as context:
        context.prec = 60
        alpha = Decimal(order)
        means = [
            sum(
                in_sixty_digits(u) * (alpha * in_sixty_digits(v).ln()).exp()
                for u, v in zip(w, column, strict=True)
                if v
            )
            for column in zip(*lift, strict=True)
        ]
        total = sum(
            (
                in_sixty_digits(r) * (m.ln() / alpha).exp()
                for r, m in zip(q, means, strict=True)
                if m
            ),
            Decimal(0),
        )
        return float(alpha / (alpha - 1) * total.ln())


def tilted(p: list[Fraction], order: float) -> list[Fraction]:
    with localcontext() as context:
        context.prec = 60
        powers = [Fraction((Decimal(order) * in_sixty_digits(v).ln()).exp()) for v in p]
    return [v / sum(powers) for v in powers]


@pytest.mark.parametrize("order", [order for order in ORDERS if order not in (1, math.inf)])
def test_sibson_and_arimoto_at_every_order_in_sixty_digits(order: float) -> None:
    rng = random.Random(1)
    for _ in range(6):
        prior, mechanism = random_prior(rng, 4, 3), random_mechanism(rng, 4, 3)
        lift, p, q = lifts_and_shares(mechanism.weights, prior)
        lifts = Lifts.of(mechanism.weights, prior)
        assert lifts.sibson(order) == pytest.approx(sibson(lift, p, q, order), rel=1e-9, abs=1e-15)
        expected = (
            sibson(lift, tilted(p, order), q, order) if order < 1000 else lifts.arimoto(math.inf)
        )
        assert lifts.arimoto(order) == pytest.approx(
            expected, rel=1e-9 if order < 1000 else 0.01, abs=1e-14
        )


def test_the_limits_of_the_orders() -> None:
    """The limits are mutual information at order 1, geometric means at order 0, and maxima at order ∞."""
    rng = random.Random(2)
    for _ in range(10):
        prior, mechanism = random_prior(rng, 4, 3), random_mechanism(rng, 4, 3)
        lift, p, q = lifts_and_shares(mechanism.weights, prior)
        lifts, terms = Lifts.of(mechanism.weights, prior), list(product(range(3), range(3)))
        mutual = sum(float(p[s] * q[y] * lift[s][y]) * math.log(lift[s][y]) for s, y in terms)
        for name in ("sibson", "arimoto"):
            value = getattr(lifts, name)
            assert value(1) == pytest.approx(mutual, rel=1e-9)
            slope = (value(1 + 1e-4) - value(1 - 1e-4)) / 2e-4
            for h in (1e-5, 1e-8, 1e-11):
                assert value(1 + h) - mutual == pytest.approx(slope * h, rel=0.01, abs=1e-15)
        means = [
            math.exp(sum(float(p[s]) * math.log(lift[s][y]) for s in range(3))) for y in range(3)
        ]
        assert lifts.alpha(1e-6) == pytest.approx(means, rel=1e-5)
        log_mean = math.log(sum(float(r) * m for r, m in zip(q, means, strict=True)))
        assert lifts.sibson(1e-6) == pytest.approx(-1e-6 * log_mean, rel=1e-4)
        largest = [float(max(column)) for column in zip(*lift, strict=True)]
        assert lifts.alpha(math.inf) == pytest.approx(largest)
        assert lifts.alpha(1e6) == pytest.approx(largest, rel=1e-5)
        assert lifts.sibson(math.inf) == pytest.approx(
            math.log(sum(float(r) * v for r, v in zip(q, largest, strict=True))), rel=1e-9
        )


def test_order_zero_if_reports_rule_secrets_out() -> None:
    # One report rules out secret 2, of probability 1/2, and the other rules out secret 0, of
    # probability 1/8: −log(1 − 1/8).
    prior = Prior.from_rows([[1, 0], [1, 2], [0, 4]])
    lifts = Lifts.of(((8, 0), (0, 8)), prior)
    assert lifts.sibson(1e-6) == pytest.approx(-math.log(7 / 8), rel=1e-4)
    assert lifts.alpha(1e-6).max() == 0


@pytest.mark.parametrize("flip", [Fraction(1, 100), Fraction(1, 4), Fraction(49, 100)])
def test_a_symmetric_bit_has_closed_forms(flip: Fraction) -> None:
    n, d = flip.as_integer_ratio()
    weights, p = ((d - n, n), (n, d - n)), float(flip)
    measured = measure(weights, Prior.from_rows([[1, 1]]), MeasureOptions(orders=ORDERS))
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert measured["chi2"] == measured["chi2_lift"] == pytest.approx((1 - 2 * p) ** 2)
    assert measured["total_variation"] == pytest.approx((1 - 2 * p) / 2)
    assert measured["l1_lift"] == pytest.approx(1 - 2 * p)
    for name in ("information", "information_secret"):
        assert measured[name] == pytest.approx(math.log(2) - entropy, rel=1e-9)
    for order in (0.3, 1.4, 2.0, 3.0):
        value = math.log(2) + math.log(p**order + (1 - p) ** order) / (order - 1)
        assert measured["sibson"][f"{order:g}"] == pytest.approx(value, rel=1e-9)
        assert measured["arimoto"][f"{order:g}"] == pytest.approx(value, rel=1e-9)
        mean = ((2 * p) ** order / 2 + (2 - 2 * p) ** order / 2) ** (1 / order)
        assert measured["alpha_lift"][f"{order:g}"] == pytest.approx(mean)
    for name in ("sibson", "arimoto"):
        assert measured[name]["inf"] == pytest.approx(math.log(2 - 2 * p), rel=1e-9)
    assert measured["hamming"] == pytest.approx(p)
    assert measured["lip"] == measured["alip_low"] == pytest.approx(-math.log(2 * p))
    assert measured["secret_ldp"] == measured["answer_ldp"]
    assert measured["answer_ldp"] == pytest.approx(math.log((1 - p) / p))
    # The expected value is (6.6) of the thesis at π = ½, for both shares.
    assert measured["variance"] == pytest.approx(2 * (0.25 / (1 - 2 * p) ** 2))
    assert measured["target_variances"] == pytest.approx([measured["variance"] / 2] * 2)


def test_nearly_constant_reports_are_measured_without_cancellation() -> None:
    weights, prior = ((2**48, 2**48), (2**48 - 1, 2**48 + 1)), Prior.from_rows([[3, 1], [1, 2]])
    lift, p, q = lifts_and_shares(weights, prior)
    measured = measure(weights, prior, MeasureOptions(orders=(2.0, 1 + 1e-6)))
    chi2 = sum(p[s] * q[y] * (lift[s][y] - 1) ** 2 for s, y in product(range(2), range(2)))
    l1 = max(sum(p[s] * abs(lift[s][y] - 1) for s in range(2)) for y in range(2))
    inverse = max(sum(p[s] * (1 / lift[s][y] - 1) ** 2 for s in range(2)) for y in range(2))
    assert measured["chi2"] == pytest.approx(float(chi2), rel=1e-12)
    assert measured["l1_lift"] == pytest.approx(float(l1), rel=1e-12)
    assert measured["chi2_lift_inverse"] == pytest.approx(float(inverse), rel=1e-12)
    # I ≈ χ²/2 and Sibson of order α ≈ α·χ²/2 are far below the rounding error of 1 − 1.
    assert 0 < float(chi2) < 1e-28
    assert measured["lip"] > 0


def test_side_channels_and_violations_by_definition() -> None:
    rng = random.Random(3)
    for _ in range(15):
        prior, mechanism = random_prior(rng, 6, 2), random_mechanism(rng, 6, 3)
        measured = measure(mechanism.weights, prior, MeasureOptions(attributes=(2, 3), sensitive=1))
        levels = []
        for known_first, known_second, y in product((None, 0, 1), (None, 0, 1, 2), range(3)):
            cells = [
                x
                for x in range(6)
                if known_first in (None, x // 3) and known_second in (None, x % 3)
            ]
            conditional = [
                Fraction(
                    sum(row[x] * mechanism.weights[x][y] for x in cells), sum(row[x] for x in cells)
                )
                for row in prior.joint
            ]
            average = Fraction(
                sum(row[x] * mechanism.weights[x][y] for row in prior.joint for x in cells),
                sum(row[x] for row in prior.joint for x in cells),
            )
            levels += [abs(math.log(g / average)) for g in conditional if g] + [
                math.inf for g in conditional if average and not g
            ]
        assert measured["srlip"] == pytest.approx(max(levels), rel=1e-12)
        lift, p, _ = lifts_and_shares(mechanism.weights, prior)
        assert Fraction(measured["dpv"]) >= max(lift[1]) * p[1]  # rounded up
        assert measured["dpv"] == pytest.approx(float(max(lift[1]) * p[1]), rel=1e-15)
        alone = measure(mechanism.weights, prior)
        assert not {"srlip", "dpv", "breaches"} & set(alone)
        assert measured["srlip"] >= alone["lip"]


def test_a_breach_is_the_worst_of_all_events() -> None:
    """The test tries all sets of secrets, and fractional sets by linear programming; Λ and Ψ bound
    the breach."""
    rng = random.Random(4)
    for _ in range(30):
        prior, mechanism = random_prior(rng, 3, 4), random_mechanism(rng, 3, 3)
        lift, p, _ = lifts_and_shares(mechanism.weights, prior)
        rho = Fraction(rng.randint(1, 19), 20)
        breached = breach(mechanism.weights, prior, rho)
        for y, k in product(range(3), range(1, 4)):
            for event in combinations(range(4), k):
                before, after = sum(p[s] for s in event), sum(p[s] * lift[s][y] for s in event)
                assert before > rho or after <= breached.highest
                assert before < rho or after >= breached.lowest
        best, worst = rho, rho
        for y in range(3):
            gain = [float(u * v) for u, v in zip(p, [row[y] for row in lift], strict=True)]
            shares = [[float(u) for u in p]]
            up = linprog([-v for v in gain], shares, [float(rho)], bounds=[(0, 1)] * 4)
            down = linprog(gain, [[-v for v in shares[0]]], [-float(rho)], bounds=[(0, 1)] * 4)
            best, worst = max(best, -up.fun), min(worst, down.fun)
        assert float(breached.highest) == pytest.approx(best, abs=1e-9)
        assert float(breached.lowest) == pytest.approx(worst, abs=1e-9)
        Lambda, Psi = max(map(max, lift)), min(map(min, lift))
        assert breached.highest <= min(Lambda * rho, 1 - Psi * (1 - rho))
        assert breached.lowest >= max(Psi * rho, 1 - Lambda * (1 - rho))


def test_guessing_the_answer_by_enumeration() -> None:
    rng = random.Random(5)
    for _ in range(20):
        prior, mechanism = random_prior(rng, 3, 2), random_mechanism(rng, 3, 3, bits=8)
        right = max(
            sum(
                Fraction(prior.shares[x], prior.total) * mechanism.probability(y, x)
                for y, x in enumerate(guess)
            )
            for guess in product(range(3), repeat=3)
        )  # fmt: skip
        assert measure(mechanism.weights, prior)["hamming"] == pytest.approx(
            float(1 - right), rel=1e-12
        )


def test_the_variance_of_shares_and_targets_equals_that_of_the_best_unbiased_estimate() -> None:
    """The reference is the least variance of v_Y over all v with Σ_y Q(y|x) v_y = w_x, by Lagrange
    multipliers."""
    rng = random.Random(6)
    for _ in range(20):
        prior, mechanism = random_prior(rng, 3, 2), random_mechanism(rng, 3, 4)
        Q = np.array(mechanism.weights) / mechanism.denominator
        p = prior.probabilities()
        targets = np.vstack([np.eye(3), [[1.0, -2.0, 0.5]]])
        measured = measure(
            mechanism.weights,
            prior,
            MeasureOptions(targets=tuple(tuple(map(Fraction, row)) for row in targets.tolist())),
        )
        for w, value in zip(targets, measured["target_variances"], strict=True):
            kkt = np.block([[2 * np.diag(p @ Q), Q.T], [Q, np.zeros((3, 3))]])
            v = np.linalg.solve(kkt, np.concatenate([np.zeros(4), w]))[:4]
            assert value == pytest.approx(p @ Q @ v**2 - (p @ w) ** 2, rel=1e-6)
        assert measured["variance"] == pytest.approx(
            sum(measured["target_variances"][:3]), rel=1e-12
        )


def test_a_rank_deficient_mechanism_may_have_estimable_shares() -> None:
    measured = measure(((4, 0), (0, 4), (0, 4)), Prior.from_rows([[1, 1, 2]]))
    assert (measured["variance"], measured["rank"]) == (math.inf, 2)
    assert measured["target_variances"] == [pytest.approx(3 / 16), math.inf, math.inf]
    nothing = measure(((4, 4), (4, 4)), Prior.from_rows([[1, 3]]))
    assert nothing["target_variances"] == [math.inf, math.inf]


def test_one_row_means_the_answer_is_the_secret() -> None:
    weights = ((5, 2, 1), (1, 6, 1), (2, 2, 4))
    single_row, diagonal = (
        measure(weights, Prior.from_rows(rows))
        for rows in ([[3, 1, 2]], [[3, 0, 0], [0, 1, 0], [0, 0, 2]])
    )
    assert single_row == diagonal
    assert single_row["secret_ldp"] == single_row["answer_ldp"]
    assert single_row["information_secret"] == pytest.approx(single_row["information"], rel=1e-12)


def test_a_level_of_any_size_is_shown() -> None:
    tiny = 10**400
    near = measure(((tiny, tiny), (tiny + 1, tiny - 1)), Prior.from_rows([[1, 1]]))
    assert 0 < near["lip"] < 1e-300
    assert near["ceiling"] > 1
    assert near["variance"] == math.inf
    far = measure(((1, tiny), (tiny, 1)), Prior.from_rows([[1, 1]]))
    assert far["answer_ldp"] == pytest.approx(400 * math.log(10))
    assert far["ceiling"] == math.inf
