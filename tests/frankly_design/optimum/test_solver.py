# SPDX-License-Identifier: Apache-2.0
"""Routes of the solver: the choice of a route, and the equal optima of all routes."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior
from frankly_design.optimum import solver
from frankly_design.optimum.programme import Optimum
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import EVERY_NOTION, random_prior, tamed


def value_of(best: Optimum, prior: Prior, objective: str) -> float:
    """Return the value of the integer mechanism, from the joint distribution of answer and report."""
    rows = np.array([[float(Fraction(w, sum(row))) for w in row] for row in best.rows(prior)])
    joint = rows * prior.probabilities()[:, None]
    if objective == "hamming":
        return float(np.sum(np.max(joint, axis=0)))
    outer = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float(np.sum(joint[positive] * np.log(joint[positive] / outer[positive])))


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("objective", ["information", "hamming"])
def test_listing_and_generating_reach_the_same_value(
    kind: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, cone = tamed(kind, random.Random(f"{kind} {objective}"))
    listed = solver.most_gain(cone, prior, objective, Limits(), "vertices", deficient=True)
    monkeypatch.setattr(Cone, "is_small", lambda self: False)
    generated = solver.most_gain(cone, prior, objective, Limits(), "auto", deficient=True)
    assert (listed.exact, generated.exact) == (True, False)
    best = value_of(listed.optimum, prior, objective)
    assert value_of(generated.optimum, prior, objective) == pytest.approx(best, abs=2e-6)
    for result in (listed, generated):
        assert result.optimum.bound >= best - 1e-9
        assert result.optimum.bound == pytest.approx(best, abs=2e-6)


LOOSE = ("rldp", "rldp-diagonal", "lip-and-ldp")
"""Kinds whose variance bound is not tight unless all rays are listed; it is valid even so."""


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("criterion", solver.CRITERIA)
def test_variances_by_listing_and_by_generating(
    kind: str, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, cone = tamed(kind, random.Random(kind))
    W = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 0.0, 0.0]])

    def reached(result: solver.SolverResult) -> float:
        rows = np.array(
            [[float(Fraction(w, sum(row))) for w in row] for row in result.optimum.rows(prior)]
        )
        p = prior.probabilities()
        inverse = np.linalg.pinv((rows / (p @ rows)) @ rows.T, rcond=1e-9, hermitian=True)
        variances = np.sum(W @ inverse * W, axis=1) - (W @ p) ** 2
        return float(np.max(variances) if criterion == "worst" else np.sum(variances))

    listed = solver.least_variance(cone, prior, W, criterion, Limits(), "vertices")
    monkeypatch.setattr(Cone, "is_small", lambda self: False)
    generated = solver.least_variance(cone, prior, W, criterion, Limits(), "auto")
    assert reached(generated) == pytest.approx(reached(listed), rel=1e-5)
    for result in (listed, generated):
        assert result.optimum.bound <= reached(listed) * (1 + 1e-6)
    assert listed.optimum.bound == pytest.approx(reached(listed), rel=1e-5)
    if kind not in LOOSE:
        assert generated.optimum.bound == pytest.approx(reached(listed), rel=1e-5)


@pytest.mark.slow
def test_a_cone_too_large_to_list_is_generated() -> None:
    prior = random_prior(random.Random(2), 14, 6)
    cone = Cone((Claim("lip", level_for(Fraction(1, 10)), prior.joint),), 14)
    assert not cone.is_small()
    with pytest.raises(InvalidInput) as caught:
        solver.most_gain(cone, prior, "information", Limits(), "vertices", deficient=True)
    assert (caught.value.code, caught.value.field) == ("optimiser_limit", "method")
    optimum = solver.most_gain(cone, prior, "information", Limits(), "auto", deficient=True)
    assert not optimum.exact
    reached = value_of(optimum.optimum, prior, "information")
    assert -1e-12 <= optimum.optimum.bound - reached <= 1e-5


def test_a_small_cone_is_not_listed_once_time_is_up() -> None:
    prior, cone = tamed("lip", random.Random(3))
    assert cone.is_small()
    optimum = solver.most_gain(
        cone, prior, "information", Limits(out_of_time=lambda: True), "auto", deficient=True
    )
    assert not optimum.exact
    assert value_of(optimum.optimum, prior, "information") <= optimum.optimum.bound + 1e-12


def test_repair_loses_at_most_its_share() -> None:
    prior = Prior.from_rows([[5, 3, 2]])
    cone = Cone((Claim("ldp", level_for(Fraction(1, 10))),), 3)
    raw = solver.most_gain(cone, prior, "information", Limits(), "auto", deficient=True).optimum
    unrepaired = solver.most_gain(
        cone, prior, "information", Limits(), "auto", deficient=False
    ).optimum
    best = value_of(raw, prior, "information")
    assert (np.linalg.matrix_rank(np.array(raw.rays, dtype=float)), len(unrepaired.rays) >= 3) == (
        2,
        True,
    )
    assert np.linalg.matrix_rank(np.array(unrepaired.rays, dtype=float)) == 3
    assert (
        best * (1 - solver.REPAIR_LOSS) * (1 - 1e-7)
        <= value_of(unrepaired, prior, "information")
        < best
    )
