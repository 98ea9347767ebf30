# SPDX-License-Identifier: Apache-2.0
"""Minimisation of the largest variance over plausible truths."""

import random

import numpy as np
import pytest
from frankly_design.notions.truths import Truths, WorstTruth
from frankly_design.optimum.variance.column_base import ColumnBase, Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.minimax import Minimax, least_variance_over
from frankly_design.tables.limits import Limits
from scipy.optimize import minimize

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    Floats,
    level,
    lip_base,
    listed,
    random_mechanisms,
)

SMALL = [b for b in listed(61, 40, 4) if b.answers > 2 and len(b.rays) <= 12][:5]


def scaled_to(base: Listed, prior: Floats) -> Listed:
    return Listed(base.rays / (base.rays @ prior)[:, None], prior)


def some_truths(answers: int, count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.dirichlet(np.ones(answers), count), dtype=np.float64)


def table_of(optimum: Minimax) -> Floats:
    """Return Q with row = truth."""
    return np.asarray(optimum.optimum.columns.T * optimum.optimum.theta, dtype=np.float64)


def variance_at(Q: Floats, decoder: Floats, truth: Floats, W: Floats) -> float:
    """Return, from the definition, Σ_y P(y)|d_y|² − |Wq|² for the unbiased scores d, of shape (t,
    reports)."""
    assert decoder @ Q.T == pytest.approx(W, abs=1e-6 * np.abs(W).max())
    return float((truth @ Q) @ np.sum(decoder**2, axis=0) - np.sum((W @ truth) ** 2))


def published(Q: Floats, prior: Floats, W: Floats) -> Floats:
    """Return W (Q D⁻¹ Qᵀ)⁻¹ Q D⁻¹ with D = diag(p Q)."""
    weighted = Q / (prior @ Q)
    return np.asarray(W @ np.linalg.solve(weighted @ Q.T, weighted), dtype=np.float64)


def by_slsqp(rays: Floats, points: Floats, W: Floats) -> float:  # noqa: C901 - slopes and starts
    """Minimise the largest Σ_j (q·v_j)|S_j|²/θ_j − |Wq|² over θ ≥ 0 and scores S_j = θ_j d_j.

    Unlike the tested code, this function optimises mechanism and decoder together. θ = e^u stays
    positive.
    """
    n, a = rays.shape
    t = len(W)
    sampling = np.sum((points @ W.T) ** 2, axis=1)
    masses = points @ rays.T

    def parts(x: Floats) -> tuple[Floats, Floats, float]:
        return np.exp(x[:n]), x[n:-1].reshape(n, t), float(x[-1])

    def rows(x: Floats) -> Floats:
        theta, S, _ = parts(x)
        return np.concatenate([rays.T @ theta - 1, (S.T @ rays - W).ravel()])

    def below(x: Floats) -> Floats:
        theta, S, s = parts(x)
        return np.asarray(s - masses @ (np.sum(S**2, axis=1) / theta) + sampling)

    def rows_slope(x: Floats) -> Floats:
        theta, _, _ = parts(x)
        slope = np.zeros((a + t * a, len(x)))
        slope[:a, :n] = rays.T * theta
        for k in range(t):
            for j in range(n):
                slope[a + k * a : a + (k + 1) * a, n + j * t + k] = rays[j]
        return slope

    def below_slope(x: Floats) -> Floats:
        theta, S, _ = parts(x)
        by_u = masses * (np.sum(S**2, axis=1) / theta)
        by_S = -2 * masses[:, :, None] * (S / theta[:, None])
        return np.hstack([by_u, by_S.reshape(len(masses), -1), np.ones((len(masses), 1))])

    # Whether a local search ends at a feasible point depends on the last digits, and so on the
    # processor: it starts at further points until two searches have succeeded.
    found: list[float] = []
    uniform = np.linalg.lstsq(rays.T, np.ones(a), rcond=None)[0]
    for attempt in range(8):
        theta = np.maximum(uniform, (0.3, 0.7)[attempt % 2] * np.abs(uniform).max() / n)
        if attempt > 1:
            theta *= np.exp(0.3 * np.random.default_rng(attempt).normal(size=n))
        A = (rays.T * theta) @ rays
        S = theta[:, None] * (rays @ np.linalg.solve(A, W.T))
        start = np.concatenate([np.log(theta), S.ravel(), [10.0]])
        solution = minimize(
            lambda x: x[-1],
            start,
            jac=lambda x: np.append(np.zeros(len(x) - 1), 1.0),
            constraints=[
                {"type": "eq", "fun": rows, "jac": rows_slope},
                {"type": "ineq", "fun": below, "jac": below_slope},
            ],
            bounds=[(-30, 5)] * n + [(None, None)] * (n * t + 1),
            method="SLSQP",
            options={"maxiter": 400, "ftol": 1e-10},
        )
        if np.abs(rows(solution.x)).max() < 1e-6 and below(solution.x).min() > -1e-6:
            found.append(float(solution.fun))
        if len(found) == 2:
            break
    return min(found)


@pytest.mark.parametrize(("base", "seed"), [(b, s) for s, b in enumerate(SMALL)])
def test_over_a_list_it_equals_that_of_another_solver(base: Listed, seed: int) -> None:
    points, W = some_truths(base.answers, 3, seed), np.eye(base.answers)
    optimum = least_variance_over(lambda q: scaled_to(base, q), W, Truths(points))
    assert optimum.optimum.bound <= optimum.optimum.value <= optimum.optimum.bound * (1 + 1e-6)
    oracle = by_slsqp(base.rays, points, W)
    assert oracle == pytest.approx(optimum.optimum.value, rel=2e-3)
    assert oracle >= optimum.optimum.bound * (1 - 1e-6)


@pytest.mark.parametrize(("base", "seed"), [(b, s) for s, b in enumerate(listed(62, 12))])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_value_equals_that_of_the_published_decoder(
    base: Listed, seed: int, mixed: bool
) -> None:
    points, W = some_truths(base.answers, 4, seed + 50), np.eye(base.answers)
    optimum = least_variance_over(lambda q: scaled_to(base, q), W, Truths(points, mixed))
    Q = table_of(optimum)
    assert Q.sum(axis=1) == pytest.approx(np.ones(base.answers), abs=1e-9)
    scores = published(Q, optimum.decoder_prior, W)
    tried = list(points)
    if mixed:
        tried += [pi @ points for pi in np.random.default_rng(seed).dirichlet(np.ones(4), 500)]
        tried.append(optimum.decoder_prior)
    largest = max(variance_at(Q, scores, q, W) for q in tried)
    assert largest == pytest.approx(optimum.optimum.value, rel=1e-6)
    assert largest <= optimum.optimum.value * (1 + 1e-9)
    assert optimum.optimum.bound <= optimum.optimum.value * (1 + 1e-12)
    assert optimum.optimum.value - optimum.optimum.bound <= 1e-6 * optimum.optimum.value


@pytest.mark.parametrize(("base", "seed"), [(b, s) for s, b in enumerate(listed(63, 6))])
def test_no_random_mechanism_and_decoder_is_below_the_bound(base: Listed, seed: int) -> None:
    rng, W = random.Random(seed), np.eye(base.answers)
    points = some_truths(base.answers, 3, seed + 90)
    bound = least_variance_over(lambda q: scaled_to(base, q), W, Truths(points)).optimum.bound
    for theta in random_mechanisms(base.rays, rng, 60):
        Q = base.rays[theta > 1e-9].T * theta[theta > 1e-9]
        if np.linalg.matrix_rank(Q) < base.answers:
            continue
        for prior in (*points, points.mean(axis=0), np.full(base.answers, 1 / base.answers)):
            scores = published(Q, prior, W)
            assert max(variance_at(Q, scores, q, W) for q in points) >= bound * (1 - 1e-9)


@pytest.mark.parametrize(("base", "seed"), [(b, s) for s, b in enumerate(listed(64, 12))])
def test_never_worse_at_its_worst_truth_than_the_optimum_for_the_prior(
    base: Listed, seed: int
) -> None:
    W, p = np.eye(base.answers), base.prior
    points = np.vstack([p, some_truths(base.answers, 3, seed + 130)])
    robust = least_variance_over(lambda q: scaled_to(base, q), W, Truths(points))
    fixed = least_variance(base, W)
    Q = fixed.columns.T * fixed.theta
    scores = published(Q, p, W)
    assert robust.optimum.value <= max(variance_at(Q, scores, q, W) for q in points) * (1 + 1e-6)
    assert robust.optimum.value >= fixed.bound * (1 - 1e-9)  # the prior is one of the truths


def test_one_truth_is_the_ordinary_problem() -> None:
    for base in listed(65, 6):
        W = np.eye(base.answers)
        robust = least_variance_over(lambda q, b=base: scaled_to(b, q), W, Truths(base.prior[None]))
        assert robust.optimum.value == pytest.approx(least_variance(base, W).value, rel=1e-6)
        assert robust.decoder_prior == pytest.approx(base.prior)


def test_the_least_favourable_truth_of_a_ball_has_the_value_of_the_ball() -> None:
    """With mixtures, the value is the least variance at the least favourable truth."""
    for base in listed(66, 6):
        W, a = np.eye(base.answers), base.answers
        ball = Truths(0.7 * base.prior + 0.3 * np.eye(a), mixed=True)
        robust = least_variance_over(lambda q, b=base: scaled_to(b, q), W, ball)
        at = least_variance(scaled_to(base, robust.decoder_prior), W)
        assert at.value == pytest.approx(robust.optimum.value, rel=1e-5)


def test_if_every_truth_is_plausible_equal_shares_are_least_favourable() -> None:
    E, a = level("1"), 6
    robust = least_variance_over(
        lambda q: AnswerLdp(E, q), np.eye(a), Truths(np.eye(a), mixed=True)
    )
    assert robust.decoder_prior == pytest.approx(np.full(a, 1 / a), abs=1e-4)
    even = least_variance(AnswerLdp(E, np.full(a, 1 / a)), np.eye(a))
    assert robust.optimum.value == pytest.approx(even.value, rel=1e-6)


def test_contrasts_are_targets_too() -> None:
    for seed, base in enumerate(listed(67, 6)):
        W = np.eye(base.answers) - 1 / base.answers
        points = some_truths(base.answers, 3, seed)
        optimum = least_variance_over(lambda q, b=base: scaled_to(b, q), W, Truths(points))
        Q = table_of(optimum)
        scores = published(Q, optimum.decoder_prior, W)
        largest = max(variance_at(Q, scores, q, W) for q in points)
        assert largest == pytest.approx(optimum.optimum.value, rel=1e-6)
        assert optimum.optimum.bound <= optimum.optimum.value <= optimum.optimum.bound * (1 + 1e-6)


def test_columns_are_generated_if_only_the_rows_are_known() -> None:
    rows = lip_base(12, 5, 3, 0.5)
    points = np.vstack([rows.prior, some_truths(5, 2, 4)])

    def base_at(q: Floats) -> ColumnBase:
        return type(rows)(rows.rows, q)

    optimum = least_variance_over(base_at, np.eye(5), Truths(points))
    assert optimum.optimum.value - optimum.optimum.bound <= 1e-6 * optimum.optimum.value
    assert optimum.optimum.certificate.exact


def test_the_bound_is_true_when_time_is_up() -> None:
    E, points = level("1"), np.vstack([some_truths(7, 3, 8)])
    best = least_variance_over(lambda q: AnswerLdp(E, q), np.eye(7), Truths(points))
    early = least_variance_over(
        lambda q: AnswerLdp(E, q),
        np.eye(7),
        Truths(points),
        limits=Limits(out_of_time=lambda: True),
    )
    assert early.optimum.bound <= best.optimum.value
    assert early.optimum.value >= best.optimum.bound


@pytest.mark.parametrize("mixed", [False, True])
def test_slopes_and_curvatures_equal_those_of_the_payoff(mixed: bool) -> None:
    rng = np.random.default_rng(3)
    n, a, t, m = 9, 4, 3, 5
    V, W, points = rng.uniform(0.2, 2, (n, a)), rng.normal(size=(t, a)), some_truths(a, m, 1)
    payoff = WorstTruth(V, W, Truths(points, mixed), np.full(n, 1e-3))

    def value(x: Floats, pi: Floats) -> float:
        q = pi @ points
        A = (V.T * ((x + 1e-3) / (V @ q))) @ V
        U = points @ W.T
        sampling = (pi @ U) @ (pi @ U) / pi.sum() if mixed else pi @ np.sum(U**2, axis=1)
        return float(np.trace(W @ np.linalg.inv(A) @ W.T) - sampling)

    def slope(f, at):  # type: ignore[no-untyped-def]
        return np.array([(f(at + h) - f(at - h)) / 2e-5 for h in 1e-5 * np.eye(len(at))])

    x, pi = rng.uniform(0.1, 1, n), rng.dirichlet(np.ones(m))
    by_x, by_pi = payoff.slopes(x, pi)
    xx, cross, curved = payoff.curvatures(x, pi)
    assert by_x == pytest.approx(slope(lambda z: value(z, pi), x), rel=1e-6)
    assert by_pi == pytest.approx(slope(lambda z: value(x, z), pi), rel=1e-6, abs=1e-7)
    assert pi @ by_pi == pytest.approx(value(x, pi))  # homogeneous of degree 1
    size = np.abs(xx).max()
    assert xx == pytest.approx(slope(lambda z: payoff.slopes(z, pi)[0], x), abs=1e-6 * size)
    assert cross == pytest.approx(slope(lambda z: payoff.slopes(x, z)[0], pi).T, abs=1e-6 * size)
    assert curved == pytest.approx(slope(lambda z: payoff.slopes(x, z)[1], pi), abs=1e-6 * size)
    assert np.linalg.eigvalsh(curved).max() <= 1e-9


def test_the_largest_over_mixtures_equals_that_of_a_grid() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        points, W = some_truths(3, 3, int(rng.integers(1000))), rng.normal(size=(2, 3))
        squares = rng.uniform(0, 4, 3)
        truths = Truths(points, mixed=True)
        steps = np.linspace(0, 1, 201)
        grid = [(u, v, 1 - u - v) for u in steps for v in steps if u + v <= 1 + 1e-12]
        Q = np.array(grid) @ points
        best = float(np.max(Q @ squares - np.sum((Q @ W.T) ** 2, axis=1)))
        largest = truths.largest(squares, W)
        assert best - 1e-9 <= largest <= best + 1e-3
