# SPDX-License-Identifier: Apache-2.0
"""Pricing under RLDP, part by part, compared with enumeration of parts and cones and with random search."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_design.numeric.rays import extreme_rays
from frankly_design.optimum.information import branch, robust_pricing, robust_pricing_proposals
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Information
from frankly_design.optimum.information.generation import generate
from frankly_design.optimum.information.robust_pricing_blocks import SecretBlock
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def random_case(
    rng: random.Random, secrets: int, values: int, *, diagonal: bool
) -> tuple[Prior, Claim]:
    """Return counts, some of which are 0, and lower bounds below their shares, some of which are 0."""
    counts = [[rng.choice([0, 1, 5, 20]) + (u == 0) for u in range(values)] for _ in range(secrets)]
    bounds = []
    for row in counts:
        scale = rng.random()
        bounds.append(
            tuple((int(99 * scale * rng.choice([0, 1, 1]) * n / sum(row)), 100) for n in row)
        )
    level = level_for(Fraction(rng.randint(1, 30), 10))
    return pairs(Prior.from_rows(counts)), Claim(
        "rldp", level, lower_bounds=tuple(bounds), diagonal=diagonal
    )


def listed(claim: Claim, prior: Prior) -> Floats:
    """Return all extreme rays by exact enumeration, scaled to p·v = 1."""
    rays = np.array(
        extreme_rays(Cone((claim,), prior.answers).rows(), prior.answers), dtype=np.float64
    )
    return np.asarray(rays / (rays @ prior.probabilities())[:, None])


def random_prices(rng: random.Random, p: Floats) -> Floats:
    size = rng.choice([0.05, 0.3, 1.0])
    return np.array([rng.gauss(0, size) * (mass + 0.05) for mass in p])


def worth(V: Floats, p: Floats, prices: Floats) -> Floats:
    return np.asarray(np.where(V > 0, V * np.log(np.where(V > 0, V, 1.0)), 0.0) @ p - V @ prices)


@pytest.mark.parametrize("values", [1, 2, 3, 4])
def test_every_vertex_of_a_part_is_among_its_corners(values: int) -> None:
    rng = random.Random(values)
    for _ in range(6):
        L = [
            Fraction(rng.randint(0, 60) * rng.choice([0, 1, 1]), 60 * values + 1)
            for _ in range(values)
        ]
        f, lower = 1 - sum(L), Fraction(rng.randint(1, 8), 4)
        upper = lower * Fraction(rng.randint(4, 20), 4)
        # The part is {(q, h) : W(q) ≥ lower·h, U(q) ≤ upper·h}, with two rows for each value that
        # may be extreme.
        rows = []
        for u in range(values):
            extreme = [L[x] + f * (x == u) for x in range(values)]
            rows += [[*extreme, -lower], [*(-e for e in extreme), upper]]
        integers = [[int(v * (60 * values + 1) * 16) for v in row] for row in rows]
        vertices = np.array(
            [[q / ray[-1] for q in ray[:-1]] for ray in extreme_rays(integers, values + 1)]
        )
        block = SecretBlock(np.array([float(v) for v in L]), float(f))
        points, present = block.corners(np.array([float(lower)]), np.array([float(upper)]))
        points = points[0][present[0]]
        for vertex in vertices:
            assert np.min(np.max(np.abs(points - vertex), axis=1)) < 1e-9
        inside = np.array([[float(v) for v in row[:-1]] for row in rows])
        against = np.array([float(-row[-1]) for row in rows])
        assert np.min(points @ inside.T - against) > -1e-9
        assert np.min(points) >= 0


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("secrets", "values"), [(2, 2), (2, 3), (3, 2), (4, 2)])
def test_the_best_columns_and_their_proof_equal_those_of_all_rays(
    secrets: int, values: int, diagonal: bool
) -> None:
    rng = random.Random(f"{secrets} {values} {diagonal}")
    for _ in range(4 if secrets < 4 else 1):
        prior, claim = random_case(rng, secrets, values, diagonal=diagonal)
        p, V = prior.probabilities(), listed(claim, prior)
        pricing = robust_pricing.of(Cone((claim,), prior.answers), p)
        assert pricing is not None
        for _ in range(4):
            prices = random_prices(rng, p)
            best = float(np.max(worth(V, p, prices)))
            for above in (1e-8, 0.1):
                columns, bound = pricing.best_columns(prices, best + above, Limits())
                assert len(columns) == 0
                assert bound == pytest.approx(best + above, abs=1e-12)
            for below in (1e-6, 0.3):
                columns, bound = pricing.best_columns(prices, best - below, Limits())
                column_values = worth(columns, p, prices)
                assert np.all(column_values > best - below - 1e-9)
                assert np.max(column_values) <= best + 1e-9
                assert bound >= best - 1e-12
                np.testing.assert_allclose(columns @ p, 1, atol=1e-12)


def test_every_column_satisfies_the_claim_and_no_rival_beats_the_bound() -> None:
    # The sizes are 5 × 2 and 2 × 4; the rivals are random vertices and local ascents from them.
    for secrets, values in ((5, 2), (2, 4)):
        rng = random.Random(secrets)
        prior, claim = random_case(rng, secrets, values, diagonal=False)
        p, rows = prior.probabilities(), unit_rows(claim, prior.answers)
        base = ConeBase(Cone((claim,), prior.answers), prior)
        pricing = robust_pricing.of(base.cone, p)
        assert pricing is not None
        for _ in range(3):
            prices = random_prices(rng, p)
            columns, bound = pricing.best_columns(prices, -10.0, Limits())
            assert len(columns) > 5
            for v in columns:
                assert np.min(rows @ v) > -1e-9 * np.max(v)
            rivals = [base.maximise(np.array([rng.gauss(0, 1) for _ in p])) for _ in range(30)]
            for v in rivals:
                w = v
                for _ in range(5):  # ascent along the gradient of a column's worth
                    w = base.maximise(p * (np.log(np.maximum(w, 1e-9)) + 1) - prices)
                for rival in (v, w):
                    assert worth(rival[None], p, prices)[0] <= bound + 1e-9
            best = max(
                float(np.max(worth(columns, p, prices))),
                *(float(worth(v[None], p, prices)[0]) for v in rivals),
            )
            assert len(pricing.best_columns(prices, bound, Limits())[0]) == 0
            assert bound >= best - 1e-9


def unit_rows(claim: Claim, answers: int) -> Floats:
    rows = Cone((claim,), answers).rows()
    return np.array([[float(Fraction(r, max(map(abs, row)))) for r in row] for row in rows])


def test_a_bound_that_is_cut_short_still_holds() -> None:
    rng = random.Random(7)
    prior, claim = random_case(rng, 3, 2, diagonal=False)
    p, V = prior.probabilities(), listed(claim, prior)
    pricing = robust_pricing.of(Cone((claim,), 6), p)
    assert pricing is not None
    prices = random_prices(rng, p)
    best = float(np.max(worth(V, p, prices)))
    bounds = []
    for questions in range(6):
        ticks = itertools.count()
        limits = Limits(
            out_of_time=lambda ticks=ticks, questions=questions: next(ticks) >= questions
        )
        bounds.append(pricing.best_columns(prices, best + 1e-9, limits)[1])
        assert bounds[-1] >= best
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > best + 1e-3  # no part has been examined yet


def test_pricing_agrees_with_branch_and_bound() -> None:
    rng = random.Random(11)
    prior, claim = random_case(rng, 3, 2, diagonal=False)
    base = ConeBase(Cone((claim,), 6), prior)
    pricing = robust_pricing.of(base.cone, base.prior)
    assert pricing is not None
    for _ in range(3):
        prices = random_prices(rng, base.prior)
        best = float(np.max(worth(listed(claim, prior), base.prior, prices)))
        for tolerance in (best - 1e-5, best + 1e-5):
            boxes = branch.bound(
                base, Information(base), prices / base.scale, tolerance, Limits(), 10**6
            )
            by_parts = pricing.best_columns(prices, tolerance, Limits())
            assert bool(len(boxes[0])) == bool(len(by_parts[0])) == (tolerance < best)


def test_other_claims_are_left_to_branch_and_bound() -> None:
    prior, claim = random_case(random.Random(1), 2, 2, diagonal=False)
    p, level, bounds = prior.probabilities(), claim.level, claim.lower_bounds or ()
    assert robust_pricing.of(Cone((claim,), 4), p) is not None
    sure = ((1, 2), (1, 2))
    wide = tuple(tuple((1, 20) for _ in range(10)) for _ in range(2))
    for claims, answers in (
        ((claim, Claim("ldp", (20, 1))), 4),
        ((Claim("ldp", (3, 1)),), 4),
        (
            (Claim("rldp", level, lower_bounds=(bounds[0], sure)),),
            4,
        ),  # one secret has no uncertainty
        (
            (Claim("rldp", level, lower_bounds=(bounds[0],)),),
            2,
        ),  # a single secret is compared with nothing
        ((Claim("rldp", level, lower_bounds=wide),), 20),  # 2^10 sets of values
        (
            (Claim("rldp", level, lower_bounds=(((1, 2), (0, 1)), ((1, 2), (0, 1)))),),
            4,
        ),  # a positive bound for an answer without mass
    ):
        shares = np.array([0.0, 1.0, 0.0, 0.0]) if answers == 4 else np.full(answers, 1 / answers)
        shares = p if len(claims) > 1 else shares
        assert robust_pricing.of(Cone(claims, answers), shares) is None


@pytest.mark.parametrize("diagonal", [False, True])
def test_proposals_satisfy_the_claim_and_exceed_the_requested_worth(diagonal: bool) -> None:
    # With ten values for each of four secrets, the 2^10 sets are not listed.
    rng = random.Random(13)
    prior, claim = random_case(rng, 4, 10, diagonal=diagonal)
    p, cone = prior.probabilities(), Cone((claim,), 40)
    assert robust_pricing.of(cone, p) is None
    proposals = robust_pricing_proposals.of(cone, p)
    assert proposals is not None
    rows, base = unit_rows(claim, 40), ConeBase(cone, prior)
    for _ in range(3):
        prices = random_prices(rng, p)
        climbed = [base.maximise(np.array([rng.gauss(0, 1) for _ in p])) for _ in range(20)]
        best = max(float(worth(v[None], p, prices)[0]) for v in climbed)
        columns = proposals.columns(prices, best)
        assert len(columns) > 0  # columns better than the best of twenty vertices
        np.testing.assert_allclose(columns @ p, 1, atol=1e-12)
        assert np.min(columns @ rows.T) > -1e-9 * np.max(columns)
        values = worth(columns, p, prices)
        assert np.all(values > best - 1e-12)
        assert values[0] == pytest.approx(np.max(values), abs=1e-12)
        assert len(proposals.columns(prices, 100.0)) == 0
    mixed_cone = Cone((claim, Claim("ldp", (20, 1))), 40)
    assert robust_pricing_proposals.of(mixed_cone, p) is None


def test_a_design_of_many_values_is_guided_and_bounded() -> None:
    rng = random.Random(17)
    counts = [[rng.randint(1, 9) * rng.choice([10, 100]) for _ in range(9)] for _ in range(3)]
    prior, claim = uncertain(counts, "1")
    base, calls = ConeBase(Cone((claim,), 27), prior), 0

    def progress(stage: str, value: float, bound: float) -> None:
        nonlocal calls
        calls += 1

    def asked(limit: int) -> float:
        nonlocal calls
        calls = 0
        limits = Limits(progress=progress, out_of_time=lambda: calls >= limit)
        optimum = generate(base, Information(base), limits)
        assert np.min(optimum.columns @ unit_rows(claim, 27).T) > -1e-8 * np.max(optimum.columns)
        np.testing.assert_allclose(optimum.theta @ optimum.columns, 1, atol=1e-8)
        assert optimum.bound >= optimum.value
        return optimum.value

    assert asked(8) > asked(1) > 0


def uncertain(
    counts: list[list[int]], epsilon: str, *, diagonal: bool = False
) -> tuple[Prior, Claim]:
    joint = Prior.from_rows(counts)
    bounds = lower_bounds(joint.joint, 2, joint.total, "0.05")
    return pairs(joint), robust(bounds, Fraction(epsilon), diagonal=diagonal)


@pytest.mark.parametrize("diagonal", [False, True])
def test_five_groups_by_two_are_certified(diagonal: bool) -> None:
    # Most people belong to one group, and four groups are small, as in a census.
    counts = [[130, 180], [350, 700], [1500, 1600], [110, 160], [8600, 19000]]
    prior, claim = uncertain(counts, "1.5", diagonal=diagonal)
    request = DesignRequest(
        prior, (claim,), objective="information", accept_identity=True, accept_unidentifiable=True
    )
    designed = design(request)
    assert designed.certified
    assert designed.gap is not None
    assert designed.gap <= 1e-6
    assert designed.bound is not None
    assert designed.bound >= designed.information


@pytest.mark.slow
def test_more_answers_than_are_certified_have_a_mechanism_and_a_bound() -> None:
    # With 12 × 4 = 48 answers, prices are taken near the best proof, and the search stops after a
    # few rounds.
    rng = random.Random(3)
    counts = [[rng.choice([3, 30, 300]) * rng.randint(1, 9) for _ in range(4)] for _ in range(12)]
    prior, claim = uncertain(counts, "1")
    base = ConeBase(Cone((claim,), 48), prior)
    events: list[tuple[float, float]] = []
    limits = Limits(
        progress=lambda _, value, bound: events.append((value, bound)),
        out_of_time=lambda: len(events) > 14,
    )
    optimum = generate(base, Information(base), limits)
    rows = unit_rows(claim, 48)
    assert np.min(optimum.columns @ rows.T) > -1e-8 * np.max(optimum.columns)
    np.testing.assert_allclose(optimum.theta @ optimum.columns, 1, atol=1e-8)
    bounds = [bound for _, bound in events]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.9 * bounds[0]
    assert optimum.bound >= optimum.value > 0
    assert np.sum(optimum.multipliers) == pytest.approx(optimum.bound, abs=1e-9)
    p = prior.probabilities()
    pricing = robust_pricing.of(base.cone, p)
    assert pricing is not None
    # The multipliers prove the bound on their own, because no column is worth more than its price.
    assert len(pricing.best_columns(optimum.multipliers, 1e-6, Limits())[0]) == 0
    for _ in range(40):
        v = base.maximise(np.array([rng.gauss(0, 1) for _ in p]))
        assert worth(v[None], p, optimum.multipliers)[0] <= 1e-9
