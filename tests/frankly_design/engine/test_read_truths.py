# SPDX-License-Identifier: Apache-2.0
"""Plausible truths in a request, and designs for them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.engine.decoded import total_variance
from frankly_design.engine.read_truths import read_truths
from frankly_design.engine.regret import PEERS
from frankly_design.families import FAMILIES, FamilyRequest
from frankly_design.notions import promises
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_design.notions.truths import Truths
from frankly_design.optimum import solver
from frankly_design.requests.design import design_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import exact_variance
from tests.frankly_design.optimum.variance.cases import Floats
from tests.refusals import refusal

PRIOR = Prior.from_rows([[4, 3, 2, 1]])


def test_a_list_holds_names_counts_and_shares() -> None:
    truths = read_truths(["prior", "even", [0, 0, 0, 7], [0.5, 0.25, 0.25, 0]], PRIOR)
    assert truths is not None
    assert not truths.mixed
    assert truths.points == pytest.approx(
        np.array([[0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0, 0, 0, 1], [0.5, 0.25, 0.25, 0]])
    )
    assert read_truths(None, PRIOR) is None


@pytest.mark.parametrize("radius", ["0.2", 0.2])
def test_a_ball_lets_a_share_of_the_people_answer_anything(radius: Any) -> None:
    truths = read_truths({"around": "prior", "radius": radius}, PRIOR)
    assert truths is not None
    assert truths.mixed
    assert truths.points[3] == pytest.approx([0.32, 0.24, 0.16, 0.28])
    assert truths.points.sum(axis=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize(
    ("value", "code", "field"),
    [
        ([], "field_type", "truths"),
        ("prior", "field_type", "truths"),
        (["even"] * 65, "field_type", "truths"),
        (["likely"], "prior_shape", "truths[0]"),
        (["even", [1, 2, 3]], "prior_shape", "truths[1]"),
        ([[1, 2, 3, -1]], "prior_value", "truths[0][0][3]"),
        ([[0.5, 0.2, 0.2, 0.2]], "prior_sum", "truths[0]"),
        ([[1, 1, 1, 0], [1, 0, 0, 0]], "prior_value", "truths"),
        ({"around": "prior"}, "field_missing", "truths.radius"),
        ({"around": "prior", "radius": 2}, "field_type", "truths.radius"),
        ({"around": "prior", "radius": "NaN"}, "field_type", "truths.radius"),
        ({"around": "somewhere", "radius": 0.1}, "prior_shape", "truths.around"),
        ({"around": "even", "radius": 0.1, "norm": 1}, "field_unknown", "truths.norm"),
    ],
)
def test_bad_truths(value: Any, code: str, field: str) -> None:
    error = refusal(InvalidInput, read_truths, value, PRIOR)
    assert (error.problem.code, error.field) == (code, field)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"objective": "information"}, "truths"),
        ({"criterion": "worst"}, "truths"),
        ({"mechanism": "grr"}, "truths"),
        ({"frontier": 3}, "truths"),
        ({"notion": "dp", "delta": "0.1"}, "truths"),
        ({"targets": [[1, -1, 0, 0]]}, "targets"),
    ],
)
def test_truths_are_for_the_variance_of_an_optimum(more: dict[str, Any], field: str) -> None:
    request = {
        "prior": {"joint": [[4, 3, 2, 1]]},
        "notion": "ldp",
        "epsilon": "1",
        "truths": ["prior", "even"],
    }
    error = refusal(InvalidInput, design_json, request | more)
    assert (error.problem.code, error.field) == ("unsupported", field)


def zipf_squared(answers: int) -> Prior:
    return Prior.from_rows([[10**6 // (x + 1) ** 2 for x in range(answers)]])


def mostly_one(answers: int, percent: int) -> Prior:
    return Prior.from_rows([[percent * (answers - 1)] + [100 - percent] * (answers - 1)])


def truths_of(prior: Prior) -> Truths:
    """Return the prior, equal shares, the reversed prior, and all mass on the last answer."""
    p = prior.probabilities()
    return Truths(np.array([p, np.full(len(p), 1 / len(p)), p[::-1], np.eye(len(p))[-1]]))


def ratios(designed: DesignResult, truths: Truths, epsilon: Fraction) -> list[float]:
    """Return the total variance at each truth, divided by that of the best closed form at this truth."""
    claims, result = (answer_ldp(epsilon),), []
    for q in truths.points:
        at = Prior.from_rows([[max(1, int(v * 10**9)) for v in q]])
        peers = [FAMILIES[name](FamilyRequest(name, at, claims)).mechanism for name in PEERS]
        best = min(total_variance(peer, at.shares, q) for peer in peers)
        result.append(total_variance(designed.mechanism, designed.decoder_prior, q) / best)
    return result


@pytest.mark.parametrize(
    ("prior", "epsilon", "before"),
    [
        (zipf_squared(8), "2", 1.575),
        (mostly_one(4, 90), "1", 1.163),
        (mostly_one(8, 90), "1", 1.263),
        (mostly_one(8, 99), "2", 1.651),
        (mostly_one(8, 99), "4", 5.49),
    ],
)
def test_no_truth_of_the_list_costs_much_more_than_the_best_closed_form(
    prior: Prior, epsilon: str, before: float
) -> None:
    """`before` is the largest ratio of the optimum at the prior, computed independently."""
    truths, level = truths_of(prior), Fraction(epsilon)
    fixed = design(DesignRequest(prior, (answer_ldp(level),)))
    robust = design(DesignRequest(prior, (answer_ldp(level),), truths=truths))
    assert max(ratios(fixed, truths, level)) == pytest.approx(before, rel=5e-3)
    assert max(ratios(robust, truths, level)) <= 1.1
    assert robust.certified
    largest = max(total_variance(fixed.mechanism, fixed.decoder_prior, q) for q in truths.points)
    assert robust.value <= largest * (1 + 1e-6)


def test_every_figure_equals_that_of_the_published_table_and_decoder() -> None:
    prior = Prior.from_rows([[40, 110, 210, 140], [90, 80, 60, 20]])
    claims = (promises.promise("lip", prior, Fraction("0.25")), answer_ldp(Fraction(3)))
    rows = [(1, 1, 1, 1), (1, 2, 3, 14), prior.shares]
    points = np.array([[n / sum(row) for n in row] for row in rows])
    designed = design(DesignRequest(prior, claims, truths=Truths(points)))
    variances = [exact_variance(designed.table, designed.decoder_prior, row) for row in rows]
    assert designed.value == pytest.approx(max(variances), rel=1e-9)
    assert designed.parameters["truth_variances"] == pytest.approx(variances, rel=1e-9)
    assert designed.parameters["decoder_prior"] == list(designed.decoder_prior)
    assert designed.variance == pytest.approx(variances[2], rel=1e-9)
    assert sum(designed.target_variances) == pytest.approx(designed.variance)
    assert designed.bound is not None
    assert designed.bound <= designed.value <= designed.bound * (1 + 1e-6)


def test_the_value_of_a_ball_grows_with_its_radius_to_that_of_all_truths() -> None:
    request = {"prior": {"joint": [[60, 20, 10, 7, 3]]}, "notion": "ldp", "epsilon": "2"}
    values = [design_json(request)["parameters"]["value"]]
    for radius in ("0.05", "0.2", "0.5", "1"):
        response = design_json(request | {"truths": {"around": "prior", "radius": radius}})
        assert response["certified"]
        values.append(response["parameters"]["value"])
    assert values == sorted(values)
    even = design_json(request | {"prior": {"joint": [[1] * 5]}})
    assert values[-1] == pytest.approx(even["parameters"]["value"], rel=1e-6)


def test_the_value_of_the_identity_is_that_at_its_worst_truth() -> None:
    request = {
        "prior": {"joint": [[5, 5], [5, 5]]},
        "notion": "lip",
        "epsilon": "1",
        "truths": ["even", [9, 1]],
    }
    response = design_json(
        parse_json(b"%s" % str(request).replace("'", '"').encode(), max_bytes=1000, decimals=True)
    )
    assert response["parameters"]["identity"]
    assert response["parameters"]["value"] == pytest.approx(0.5)


def test_fewer_reports_have_the_same_variance_at_every_truth() -> None:
    """For an optimum at the prior, thinning preserves only A; for truths it also preserves E[|d|²|x]."""
    rng, a = np.random.default_rng(4), 4
    Q, q = rng.dirichlet(np.ones(60), a), np.full(a, 1 / a)
    theta = q @ Q
    columns = (Q / theta).T

    def squares(V: Floats, share: Floats) -> Floats:
        scores = V @ np.linalg.inv((V.T * share) @ V)
        return np.asarray((V.T * share) @ np.sum(scores**2, axis=1))

    before = squares(columns, theta)
    scores = np.sum((columns @ np.linalg.inv((columns.T * theta) @ columns)) ** 2, axis=1)
    thinned = solver._thinned_optimum(columns, theta, 0.0, (columns * scores[:, None]).T)
    assert len(thinned.rays) <= a * (a + 1) // 2 + a
    columns_left = np.array(thinned.rays, dtype=np.float64)
    columns_left /= (columns_left @ q)[:, None]
    assert squares(columns_left, thinned.theta) == pytest.approx(before, rel=1e-8)
