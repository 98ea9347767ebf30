# SPDX-License-Identifier: Apache-2.0
"""Column generation, compared with scipy's linear programmes over all rays; limits, starts, repetition."""

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.families import grr
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_design.optimum.information.generation import GeneratedMechanism, generate
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for
from numpy.typing import NDArray
from scipy.optimize import linprog

from tests.frankly_design.maths import EVERY_NOTION, random_prior, scaled_rays, tamed

Floats = NDArray[np.float64]
Gain = type[Information] | type[Guessing]


def worth(V: Floats, p: Floats, of: Gain) -> Floats:
    """Return the gain of each report from the definitions: Σ p_x v_x ln v_x, and the largest posterior."""
    if of is Guessing:
        return np.asarray(np.max(V * p, axis=1))
    return np.asarray(np.where(V > 0, V * np.log(np.where(V > 0, V, 1.0)), 0.0) @ p)


def listed_optimum(cone: Cone, prior: Prior, of: Gain) -> float:
    V = scaled_rays(cone, prior)
    solution = linprog(-worth(V, prior.probabilities(), of), A_eq=V.T, b_eq=np.ones(V.shape[1]))
    assert solution.status == 0
    return -float(solution.fun)


def check_mechanism(optimum: GeneratedMechanism, cone: Cone, prior: Prior, of: Gain) -> None:
    """Check that rows sum to one, columns are in the cone, and the value equals the mechanism's."""
    p = prior.probabilities()
    assert np.min(optimum.theta) >= 0
    np.testing.assert_allclose(optimum.theta @ optimum.columns, 1, atol=1e-8)
    np.testing.assert_allclose(optimum.columns @ p, 1, atol=1e-8)
    rows = np.array([[float(Fraction(r, max(map(abs, row)))) for r in row] for row in cone.rows()])
    assert np.min(optimum.columns @ rows.T) > -1e-7 * np.max(optimum.columns)
    assert optimum.value == pytest.approx(
        float(optimum.theta @ worth(optimum.columns, p, of)), abs=1e-9
    )


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("of", [Information, Guessing])
def test_generated_optima_equal_those_of_all_rays(kind: str, of: Gain) -> None:
    rng = random.Random(f"{kind} {of.__name__}")
    for _ in range(2):
        prior, cone = tamed(kind, rng, 0.1, 2.5)
        base = ConeBase(cone, prior)
        optimum, best = generate(base, of(base), Limits()), listed_optimum(cone, prior, of)
        check_mechanism(optimum, cone, prior, of)
        assert optimum.value == pytest.approx(best, abs=1e-6 * max(1e-2, best))
        assert best <= optimum.bound + 1e-9
        assert optimum.bound - optimum.value <= 1e-6 * max(1e-3, optimum.value) + 1e-9


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_the_multipliers_prove_the_bound_ray_by_ray(kind: str) -> None:
    rng = random.Random(kind)
    prior, cone = tamed(kind, rng)
    base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
    optimum = generate(base, Information(base), Limits())
    # λ·v is at least the worth of every ray v, so Σ_j θ_j worth_j ≤ λ·Σ_j θ_j v_j = Σλ.
    assert np.sum(optimum.multipliers) == pytest.approx(optimum.bound, abs=1e-9)
    assert np.min(V @ optimum.multipliers - worth(V, prior.probabilities(), Information)) > -1e-9


@pytest.mark.parametrize("answers", [5, 7])
@pytest.mark.parametrize("notion", ["lip", "secret-ldp"])
def test_more_answers_than_are_listed_by_default(notion: str, answers: int) -> None:
    prior = random_prior(random.Random(answers), answers, 3)
    cone = Cone((Claim(notion, level_for(Fraction(1, 5)), prior.joint),), answers)
    base = ConeBase(cone, prior)
    optimum, best = (
        generate(base, Information(base), Limits()),
        listed_optimum(cone, prior, Information),
    )
    assert optimum.value == pytest.approx(best, abs=1e-6)
    assert best - 1e-9 <= optimum.bound <= optimum.value * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("kind", ["ldp", "lip", "srlip", "rldp", "two-priors"])
def test_the_same_request_has_the_same_result_bit_for_bit(kind: str) -> None:
    def ask() -> GeneratedMechanism:
        prior, cone = tamed(kind, random.Random(kind))
        base = ConeBase(cone, prior)
        return generate(base, Information(base), Limits())

    first, second = ask(), ask()
    assert first.columns.tobytes() == second.columns.tobytes()
    assert first.theta.tobytes() == second.theta.tobytes()
    assert (first.value, first.bound) == (second.value, second.bound)
    assert first.multipliers.tobytes() == second.multipliers.tobytes()


def stopping_after(questions: float) -> Callable[[], bool]:
    questions_so_far = iter(range(10**9))
    return lambda: next(questions_so_far) >= questions


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("questions", [0, 3, 30])
def test_out_of_time_still_gives_a_mechanism_and_a_bound(kind: str, questions: int) -> None:
    prior, cone = tamed(kind, random.Random(kind))
    base = ConeBase(cone, prior)
    for of in (Information, Guessing):
        optimum = generate(base, of(base), Limits(out_of_time=stopping_after(questions)))
        check_mechanism(optimum, cone, prior, of)
        best = listed_optimum(cone, prior, of)
        assert optimum.value - 1e-9 <= best <= optimum.bound + 1e-9


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_without_a_proof_the_largest_entries_bound_the_information(kind: str) -> None:
    """The bound is Σ p_x·ln h_x, where h_x is the largest entry of any ray; its prices are above
    every ray's gain."""
    prior, cone = tamed(kind, random.Random(kind))
    base, V, p = ConeBase(cone, prior), scaled_rays(cone, prior), prior.probabilities()
    optimum = generate(base, Information(base), Limits(out_of_time=lambda: True))
    assert listed_optimum(cone, prior, Information) <= optimum.bound
    assert optimum.bound <= float(p @ np.log(np.max(V, axis=0))) + 1e-6
    assert np.all(worth(V, p, Information) <= V @ optimum.multipliers + 1e-9)


@pytest.mark.parametrize("of", [Information, Guessing])
def test_the_result_is_never_worse_than_its_starting_columns(of: Gain) -> None:
    prior = random_prior(random.Random(8), 5, 1)
    level = level_for(Fraction(2))
    cone = Cone((Claim("ldp", level),), 5)
    base, p = ConeBase(cone, prior), prior.probabilities()
    columns = np.array(grr(5, level).weights, dtype=np.float64).T
    starts = columns / (columns @ p)[:, None]
    explicit = float((columns @ p / 2.0**48) @ worth(starts, p, of))
    optimum = generate(base, of(base), Limits(out_of_time=lambda: True), starts=starts)
    assert optimum.value >= explicit - 1e-12
    for start in starts:
        assert np.min(np.max(np.abs(optimum.columns - start), axis=1)) < 1e-8


def several_rounds() -> tuple[Prior, Cone]:
    prior = random_prior(random.Random(1), 10, 6)
    return prior, Cone((Claim("secret-ldp", level_for(Fraction(1, 10)), prior.joint),), 10)


def test_progress_reports_growing_values_and_falling_bounds() -> None:
    events: list[tuple[str, float, float]] = []
    prior, cone = several_rounds()
    base = ConeBase(cone, prior)
    optimum = generate(base, Information(base), Limits(progress=lambda *now: events.append(now)))
    values = [value for _, value, _ in events if not math.isnan(value)]
    bounds = [bound for _, _, bound in events]
    assert {stage for stage, _, _ in events} == {"search", "proof"}
    assert len(values) > 3
    assert np.min(np.diff(values)) > -1e-9
    assert values[-1] > values[0]
    assert bounds == sorted(bounds, reverse=True)
    assert (
        bounds[0] <= -float(prior.probabilities() @ np.log(prior.probabilities())) + 1e-12
    )  # at most H(X)
    assert values[-1] <= optimum.value + 1e-9
    assert bounds[-1] == optimum.bound


@pytest.mark.parametrize("when", [1, 2, 5])
def test_a_search_that_is_cancelled_stops_within_a_step(when: int) -> None:
    prior, cone = several_rounds()
    base, calls = ConeBase(cone, prior), 0

    def progress(stage: str, value: float, bound: float) -> None:
        nonlocal calls
        calls += 1

    optimum = generate(
        base, Information(base), Limits(progress=progress, out_of_time=lambda: calls >= when)
    )
    assert calls <= when + 1  # at most the proof of the cancelled round
    check_mechanism(optimum, cone, prior, Information)
    assert optimum.bound >= optimum.value


def test_the_search_stops_at_the_requested_gap() -> None:
    prior, cone = tamed("secret-ldp", random.Random(12))
    base = ConeBase(cone, prior)
    best = listed_optimum(cone, prior, Information)
    optimum = generate(base, Information(base), Limits(gap=0.5))
    assert optimum.value <= best + 1e-9
    assert best <= optimum.bound + 1e-9 <= 1.5 * optimum.value + 1e-3
