# SPDX-License-Identifier: Apache-2.0
"""Notions with every objective: exact verification, independent formulas, edge cases."""

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.engine.engine import frontier
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.belief import side_channels
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior
from frankly_design.notions.promises import promise
from frankly_design.tables.quantise import BITS
from frankly_protocol.audit import Claim, ceiling, level_for, require_private
from numpy.typing import NDArray

from tests.frankly_design.maths import EVERY_NOTION, random_prior, tamed
from tests.narrowing import dense_of

OBJECTIVES = ("variance", "information", "hamming")
Floats = NDArray[np.float64]


def channel(weights: Any) -> Floats:
    return np.array(weights, dtype=np.float64) / 2.0**BITS


def variances(Q: Floats, p: Floats, W: Floats) -> Floats:
    """Return the variance Σ V² λ − (Wp)² of each target's weighted least-squares estimate V."""
    reports = p @ Q
    A = (Q / reports) @ Q.T
    V = W @ np.linalg.solve(A, Q / reports)
    np.testing.assert_allclose(V @ Q.T, W, atol=1e-6 * np.abs(W).max())  # unbiased
    return np.asarray(V**2 @ reports - (W @ p) ** 2)


def information(Q: Floats, p: Floats) -> float:
    """Return H(Y) − H(Y|X)."""

    def entropy(shares: Floats) -> float:
        return -math.fsum(v * math.log(v) for v in shares if v > 0)

    return entropy(p @ Q) - math.fsum(share * entropy(row) for share, row in zip(p, Q, strict=True))


def check(designed: DesignResult, request: DesignRequest) -> None:
    """Check that the claims hold exactly and that every figure equals that of the published integers."""
    require_private(designed.mechanism, *request.claims)
    Q, p = channel(dense_of(designed.mechanism).weights), request.prior.probabilities()
    W = (
        np.eye(len(p))
        if request.targets is None
        else np.array([[float(v) for v in row] for row in request.targets])
    )
    assert designed.information == pytest.approx(information(Q, p), abs=1e-9)
    assert designed.hamming == pytest.approx(1 - np.sum(np.max(Q * p[:, None], axis=0)), abs=1e-9)
    figures = {"information": designed.information, "hamming": designed.hamming}
    if designed.identifiable and np.all(p > 0):
        figures["variance"] = float(np.sum(variances(Q, p, W)))
        np.testing.assert_allclose(designed.target_variances, variances(Q, p, W), rtol=1e-5)
        assert designed.variance == pytest.approx(np.sum(variances(Q, p, np.eye(len(p)))), rel=1e-5)
    if request.objective in figures and request.criterion == "total":
        assert designed.value == pytest.approx(figures[request.objective], rel=1e-5, abs=1e-9)
    assert designed.eta <= Fraction(1, 10**6)
    assert designed.ceiling == ceiling(designed.mechanism)
    assert designed.bound is not None
    sign = 1 if request.objective == "information" else -1
    assert sign * (designed.bound - designed.value) >= -1e-6 * max(1.0, abs(designed.value))


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_notion_and_objective_is_exact_and_certified(kind: str, objective: str) -> None:
    rng = random.Random(f"{kind} {objective}")
    for _ in range(3):
        prior, cone = tamed(kind, rng, 0.05, 2.0)
        request = DesignRequest(prior, cone.claims, objective=objective, accept_unidentifiable=True)
        designed = design(request)
        check(designed, request)
        assert designed.certified
        assert designed.exact


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_targets_by_total_and_by_worst_variance(kind: str) -> None:
    prior, cone = tamed(kind, random.Random(kind))
    W = (
        (Fraction(1), Fraction(2), Fraction(3), Fraction(4)),
        (Fraction(1), Fraction(-1), Fraction(0), Fraction(0)),
    )
    total = DesignRequest(prior, cone.claims, targets=W, accept_unidentifiable=True)
    worst = DesignRequest(
        prior, cone.claims, targets=W, criterion="worst", accept_unidentifiable=True
    )
    of_total, of_worst = design(total), design(worst)
    check(of_total, total)
    check(of_worst, worst)
    assert of_total.certified
    assert (
        of_worst.value
        == max(of_worst.target_variances)
        <= max(of_total.target_variances) * (1 + 1e-6)
    )
    assert math.fsum(of_total.target_variances) <= math.fsum(of_worst.target_variances) * (1 + 1e-6)
    for_shares = channel(dense_of(design(DesignRequest(prior, cone.claims)).mechanism).weights)
    targets = np.array(W, dtype=np.float64)
    assert of_total.value <= np.sum(variances(for_shares, prior.probabilities(), targets)) * (
        1 + 1e-6
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_finite_set_of_priors_holds_under_each(objective: str) -> None:
    rng = random.Random(objective)
    prior, other_priors = (
        random_prior(rng, 4, 2),
        [random_prior(rng, 4, secrets) for secrets in (2, 3, 4)],
    )
    claims = tuple(
        promise("lip", known_prior, Fraction(1, 10)) for known_prior in (prior, *other_priors)
    )
    request = DesignRequest(prior, claims, objective=objective, accept_unidentifiable=True)
    check(designed := design(request), request)
    E = math.exp(0.1)
    for known_prior in (prior, *other_priors):
        conditional = np.array(known_prior.joint, dtype=np.float64) @ channel(
            dense_of(designed.mechanism).weights
        )
        lift = (
            conditional
            / np.array(known_prior.masses)[:, None]
            / (conditional.sum(axis=0) / known_prior.total)
        )
        assert np.max(lift) <= E * (1 + 1e-9)
        assert np.min(lift) >= (1 - 1e-9) / E


@pytest.mark.parametrize("kind", ["secret-ldp", "lip", "alip", "srlip", "rldp", "dpv"])
def test_a_ceiling_cap_bounds_the_level_under_any_prior(kind: str) -> None:
    prior, cone = tamed(kind, random.Random(kind))
    free = design(
        DesignRequest(prior, cone.claims, objective="hamming", accept_unidentifiable=True)
    )
    for cap in ("0.5", "2", "6"):
        claims = (*cone.claims, answer_ldp(Fraction(cap)))
        request = DesignRequest(prior, claims, objective="hamming", accept_unidentifiable=True)
        check(designed := design(request), request)
        assert designed.ceiling is not None
        assert math.log(designed.ceiling) <= float(cap)
        assert designed.value >= free.value - 1e-9  # a further promise cannot lower the error


def joint_of(rows: list[list[int]]) -> tuple[Prior, list[Claim]]:
    """Return a prior, and claims of lip, secret-ldp and (with four answers) srlip at two levels."""
    prior = Prior.from_rows(rows)
    claims = []
    for epsilon in (Fraction(1, 100), Fraction(1, 2)):
        claims += [promise("lip", prior, epsilon), promise("secret-ldp", prior, epsilon)]
        claims += [side_channels(prior, epsilon, [2, 2])] if prior.answers == 4 else []
    return prior, claims


EDGES = {
    "equal answers": [[7, 7, 3, 3], [2, 2, 9, 9]],
    "a secret of a millionth": [[1, 2, 1, 1], [900_000, 1_100_000, 1_500_000, 1_500_000]],
    "zero cells": [[5, 0, 3, 2], [0, 4, 1, 5]],
    "two answers": [[3, 1], [1, 3]],
    "the answer is the secret": [[5, 3, 2, 1]],
    "a rare answer": [[10**6, 10**6, 10**6, 1], [10**6, 2 * 10**6, 10**6, 2]],
}


@pytest.mark.parametrize("rows", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_inputs_at_the_edge(rows: list[list[int]], objective: str) -> None:
    prior, claims = joint_of(rows)
    for claim in claims:
        request = DesignRequest(
            prior, (claim,), objective=objective, accept_unidentifiable=True, accept_identity=True
        )
        check(designed := design(request), request)
        assert not designed.identity or claim.level == level_for(Fraction(1, 2))


@pytest.mark.parametrize("epsilon", ["0.01", "10"])
def test_the_least_and_the_largest_level(epsilon: str) -> None:
    prior = Prior.from_rows(
        [[9, 0, 4, 2], [0, 7, 1, 5]]
    )  # zero cells rule out the identity at any level
    bounds = (((1, 9), (1, 3)), ((1, 5), (1, 4)))
    claims = [answer_ldp(Fraction(epsilon)), *joint_of([[9, 0, 4, 2], [0, 7, 1, 5]])[1]]
    claims += [robust(bounds, Fraction(epsilon), diagonal=flag) for flag in (False, True)]
    for claim in [
        *claims,
        promise("lip", prior, Fraction(epsilon)),
        promise("secret-ldp", prior, Fraction(epsilon)),
    ]:
        request = DesignRequest(prior, (claim,), accept_unidentifiable=True, accept_identity=True)
        check(designed := design(request), request)
        assert designed.certified


def test_an_independent_secret_allows_the_identity() -> None:
    prior = Prior.from_rows([[1, 2, 3], [2, 4, 6]])
    for objective in OBJECTIVES:
        claims = (Claim("lip", level_for(Fraction(1, 100)), prior.joint),)
        designed = design(DesignRequest(prior, claims, objective=objective, accept_identity=True))
        assert designed.identity
        assert designed.hamming == 0
        assert designed.normalised_information == pytest.approx(1)


@pytest.mark.parametrize("kind", ["ldp", "lip", "srlip", "rldp", "two-priors"])
def test_frontiers_rise_and_every_point_is_verified(kind: str) -> None:
    prior, cone = tamed(kind, random.Random(f"{kind} frontier"))
    request, p = DesignRequest(prior, cone.claims), prior.probabilities()
    points = frontier(request, 4)
    for point in points:
        require_private(point.mechanism, *cone.claims)
        Q = channel(point.mechanism.weights)
        assert point.information == pytest.approx(information(Q, p), abs=1e-9)
        assert point.variance == pytest.approx(np.sum(variances(Q, p, np.eye(4))), rel=1e-4)
        assert point.information_bound >= point.information - 1e-7
        assert point.variance_bound <= point.variance * (1 + 1e-6)
    for before, after in pairwise(points):
        assert before.information <= after.information + 1e-9
        assert before.variance <= after.variance * (1 + 1e-6)
    best = design(
        DesignRequest(prior, cone.claims, objective="information", accept_unidentifiable=True)
    )
    assert points[0].variance == pytest.approx(design(request).variance, rel=1e-4)
    assert all(point.information <= (best.bound or 0) + 1e-9 for point in points)


def test_a_variance_cap_is_kept() -> None:
    prior, cone = tamed("lip", random.Random(77))
    least = design(DesignRequest(prior, cone.claims))
    cap = 1.2 * least.value
    request = DesignRequest(
        prior, cone.claims, objective="information", variance_cap=cap, accept_unidentifiable=True
    )
    check(designed := design(request), request)
    assert designed.variance <= cap * (1 + 1e-6)
    assert least.information <= designed.information + 1e-9
