# SPDX-License-Identifier: Apache-2.0
"""Boxes around a ball: corners compared with linear programmes, designs compared with those over
simplices."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.ball_bounds import ball_bounds
from frankly_design.notions.balls import confidence_ball
from frankly_design.notions.boxes import box_claims, upper_bounds, vertices
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_protocol.audit import Claim, level_for, require_private, worst
from frankly_protocol.errors import InvalidInput
from scipy.optimize import linprog

from papers.ball_leakage import worst_case_over_ball
from tests.frankly_design.families.asking import ask, mechanism_of
from tests.frankly_design.maths import random_mechanism

JOINT = [[60, 150, 90], [90, 20, 40]]


def test_upper_bounds_hold_over_the_ball_and_are_tight() -> None:
    for order in (2, Fraction(1, 2), 1, 3):
        ball = confidence_ball(JOINT, order, 450, "0.05")
        for s, row in enumerate(upper_bounds(ball)):
            exact, floats = [n / d for n, d in row], ball.greatest(s)
            assert exact == pytest.approx(floats, abs=1e-9)
            assert all(
                Fraction(*bound) >= Fraction(n, sum(JOINT[s]))
                for bound, n in zip(row, JOINT[s], strict=True)
            )


def test_corners_give_the_optimum_of_every_linear_programme() -> None:
    rng = random.Random(3)
    ball = confidence_ball(JOINT, 2, 450, "0.05")
    low, high = ball_bounds(ball), upper_bounds(ball)
    for s in (0, 1):
        corners = vertices(low[s], high[s])
        assert all(sum(point) == 1 for point in corners)
        for _ in range(20):
            w = np.array([rng.gauss(0, 1) for _ in range(3)])
            sides = [(n / d, m / e) for (n, d), (m, e) in zip(low[s], high[s], strict=True)]
            best = linprog(-w, A_eq=[[1, 1, 1]], b_eq=[1], bounds=sides).fun
            assert max(
                float(w @ np.array(point, dtype=float)) for point in corners
            ) == pytest.approx(-best, abs=1e-9)


def test_the_claims_together_are_rldp_over_the_boxes() -> None:
    """The level is the largest ratio over all pairs of corners; the simplices need at least the
    same level."""
    rng = random.Random(4)
    joint = [[30, 50], [20, 60], [45, 15]]
    ball = confidence_ball(joint, 2, 220, "0.1")
    corners = [
        vertices(*sides) for sides in zip(ball_bounds(ball), upper_bounds(ball), strict=True)
    ]
    claims, simplices = (
        box_claims(ball, Fraction(1)),
        Claim("rldp", (1, 1), lower_bounds=ball_bounds(ball)),
    )
    for _ in range(10):
        mechanism = random_mechanism(rng, 6, 4, bits=8)
        needed = Fraction(0)
        for column in zip(*mechanism.weights, strict=True):
            values = [
                [
                    sum(v * w for v, w in zip(point, column[2 * s : 2 * s + 2], strict=True))
                    for point in points
                ]
                for s, points in enumerate(corners)
            ]
            ratios = [max(values[s]) / min(values[t]) for s in range(3) for t in range(3) if s != t]
            needed = max(needed, *ratios)
        ratios_of_claims = [worst(mechanism, claim).ratio for claim in claims]
        assert max(r for r in ratios_of_claims if r is not None) == needed
        over = worst(mechanism, simplices).ratio
        assert over is None or over >= needed


def test_polyopt_over_boxes_has_more_information_and_its_level_holds_over_the_ball() -> None:
    prior, ball = pairs(Prior.from_rows(JOINT)), confidence_ball(JOINT, 2, 450, "0.05")
    simplices = (robust(ball_bounds(ball), Fraction(1, 2), diagonal=False),)
    boxes = box_claims(ball, Fraction(1, 2))
    designs = [
        design(DesignRequest(prior, c, objective="information", accept_unidentifiable=True))
        for c in (simplices, boxes)
    ]
    for optimum, claims in zip(designs, (simplices, boxes), strict=True):
        require_private(optimum.mechanism, *claims)
        assert worst_case_over_ball(optimum.table.weights, ball).epsilon <= 0.5
        assert optimum.certified
    assert designs[1].information > designs[0].information + 1e-4
    assert boxes[0].level == level_for(Fraction(1, 2))


def test_boxes_are_requested_by_name_and_the_response_contains_their_priors() -> None:
    options = {
        "notion": "rldp",
        "epsilon": "0.5",
        "robust": {"order": 2, "n": 320, "beta": "0.05", "polyhedra": "box"},
    }
    response = ask("polyopt", [[60, 150], [90, 20]], **options, objective="information")
    published = response["parameters"]["claims"]
    assert len(published) == 4  # two corners for each of two secrets
    claims = [
        Claim(c["notion"], tuple(c["level"]), tuple(map(tuple, c["joint"]))) for c in published
    ]
    require_private(mechanism_of(response), *claims)
    for change, code, field in (
        ({"polyhedra": "ball"}, "unsupported", "robust.polyhedra"),
        ({"polytopes": "box"}, "field_unknown", "robust.polytopes"),
    ):
        with pytest.raises(InvalidInput) as caught:
            ask(
                "grr",
                [[6, 2], [3, 4]],
                **{**options, "robust": {"order": 2, "n": 15, "beta": "0.05", **change}},
            )
        assert (caught.value.code, caught.value.field) == (code, field)
    with pytest.raises(InvalidInput) as caught:
        ask("grr", [[6, 2], [3, 4]], **options, diagonal=True)
    assert caught.value.field == "diagonal"


def test_too_many_values() -> None:
    with pytest.raises(InvalidInput) as caught:
        box_claims(confidence_ball([[9] * 7, [5] * 7], 2, 98, "0.05"), Fraction(1))
    assert caught.value.code == "optimiser_limit"
