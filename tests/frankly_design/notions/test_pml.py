# SPDX-License-Identifier: Apache-2.0
"""Extremal mechanisms of pointwise maximal leakage at a uniform prior (docs/maths/notions.md)."""

import math
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.belief import two_sided
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import require_private, worst
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from numpy.typing import NDArray

OBJECTIVES = ("variance", "information", "hamming")
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "maths" / "notions.md").read_text("utf-8")


def uniform(a: int) -> Prior:
    return Prior.from_rows([[1] * a])


def request(a: int, epsilon: str, objective: str) -> DesignRequest:
    prior = uniform(a)
    claim = two_sided(prior, None, Fraction(epsilon))
    return DesignRequest(prior, (claim,), objective=objective)


def matrix(mechanism: Mechanism) -> NDArray[np.float64]:
    assert isinstance(mechanism, DenseMechanism)
    return np.array(mechanism.weights, dtype=np.float64) / 2.0**mechanism.bits


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("a", "epsilon"), [(2, "0.6"), (3, "0.4"), (4, "0.2"), (6, "0.15")])
def test_small_levels_have_one_extremal_mechanism(a: int, epsilon: str, objective: str) -> None:
    """For every objective, the mechanism has E/a off the diagonal and 1 − (a − 1)E/a on the diagonal."""
    E = math.exp(float(epsilon))
    assert a / (a - 1) > E
    found = design(request(a, epsilon, objective))
    assert found.certified
    require_private(found.mechanism, *found.claims)
    Q = matrix(found.mechanism)
    assert Q.shape == (a, a)
    order = np.argmin(Q, axis=1)
    assert sorted(order) == list(range(a))
    extremal = np.full((a, a), E / a) + np.eye(a) * (1 - E)
    np.testing.assert_allclose(Q[:, order], extremal, atol=1e-9)
    ceiling = worst(found.mechanism, answer_ldp(Fraction(1))).ratio
    assert ceiling is not None
    assert float(ceiling) == pytest.approx(E / (a - (a - 1) * E), rel=1e-6)


@pytest.mark.parametrize("a", [3, 4, 5, 7])
def test_just_above_the_small_levels_there_are_more_columns(a: int) -> None:
    """From E = a/(a − 1) on, extreme columns have a zero, and there are more than a extreme columns."""
    edge = math.log(a / (a - 1))
    for epsilon, zeros, count in (
        (f"{edge - 0.01:.4f}", 0, a),
        (f"{edge + 0.01:.4f}", 1, a * (a - 1)),
    ):
        claim = two_sided(uniform(a), None, Fraction(epsilon))
        rays = Cone((claim,), a).rays()
        assert len(rays) == count
        assert {ray.count(0) for ray in rays} == {zeros}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("a", "epsilon"), [(3, "0.7"), (4, "0.25"), (4, "0.5"), (5, "1"), (6, "0.9"), (6, "1.4")]
)
def test_optima_have_the_closed_forms_of_the_page(a: int, epsilon: str, objective: str) -> None:
    E = math.exp(float(epsilon))
    k = math.floor(a / E)
    r = a - k * E

    def ln(value: float) -> float:
        return math.log(value) if value else 0.0

    named = "Hamming error" if objective == "hamming" else objective
    (formula,) = re.findall(rf"^\| {named} \| `([^`]*)`", PAGE, re.MULTILINE)
    value = eval(formula, {"a": a, "E": E, "k": k, "r": r, "ln": ln, "__builtins__": {}})
    found = design(request(a, epsilon, objective))
    assert found.certified
    assert found.value == pytest.approx(value, rel=2e-6, abs=2e-6)


def test_a_backstop_costs_variance_and_rules_out_no_answer() -> None:
    prior = uniform(4)
    claim = two_sided(prior, None, Fraction("0.5"))
    caps = [None, "3", "1.5", "0.75"]
    found = [
        design(DesignRequest(prior, (claim, *([answer_ldp(Fraction(cap))] if cap else []))))
        for cap in caps
    ]
    # Mixing by rounding may turn a zero into a few units of 2^-48 (docs/maths/rounding.md).
    ceiling = worst(found[0].mechanism, answer_ldp(Fraction(1))).ratio
    assert ceiling is None or ceiling > 10**12
    assert all(before.value < after.value for before, after in pairwise(found))
    for cap, capped in zip(caps[1:], found[1:], strict=True):
        require_private(capped.mechanism, answer_ldp(Fraction(str(cap))))
