# SPDX-License-Identifier: Apache-2.0
"""Design engine: refusals, repairs, and figures computed from the published integers."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import DesignResult, design
from frankly_design.families import grr
from frankly_design.notions.prior import Prior
from frankly_design.optimum import solver
from frankly_protocol.audit import Claim, ceiling, level_for, require_private, worst
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import random_epsilon, random_prior, wanted
from tests.narrowing import dense_of
from tests.refusals import code_and_field, refusal

CORRELATED = [[120, 300, 500, 700, 80], [50, 20, 30, 40, 50]]
FLAT = [[1, 1, 1, 1, 1]]


def ask(rows: Any, notion: str = "ldp", epsilon: str = "1", **options: Any) -> DesignResult:
    return design(wanted(Prior.from_rows(rows), notion, Fraction(epsilon), **options))


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("unknown notion", {"notion": "dp"}, "unsupported", "notion"),
    ("unknown mechanism", {"mechanism": "laplace"}, "unsupported", "mechanism"),
    ("unknown objective", {"objective": "fairness"}, "unsupported", "objective"),
    (
        "warner under secret-ldp",
        {"notion": "secret-ldp", "mechanism": "warner"},
        "unsupported",
        "mechanism",
    ),
    ("polyopt under lip", {"notion": "lip", "mechanism": "polyopt"}, "unsupported", "notion"),
    ("warner for five answers", {"mechanism": "warner"}, "unsupported", "mechanism"),
    ("identity", {"notion": "lip", "epsilon": "3"}, "identity_mechanism", "epsilon"),
    (
        "empty choice",
        {"rows": [[1, 0], [2, 0]], "notion": "lip"},
        "choice_unprotected",
        "prior.joint[0][1]",
    ),
    (
        "empty secret",
        {"rows": [[1, 2], [0, 0]], "notion": "secret-ldp"},
        "secret_empty",
        "prior.joint[1]",
    ),
    ("too large", {"rows": [[1] * 20], "method": "vertices"}, "optimiser_limit", "method"),
    ("unknown method", {"method": "guess"}, "unsupported", "method"),
]


@pytest.mark.parametrize(
    ("options", "code", "field"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_refusals(options: dict[str, Any], code: str, field: str) -> None:
    assert code_and_field(InvalidInput, ask, **{"rows": CORRELATED, **options}) == (code, field)


def test_an_optimum_too_large_for_a_table_names_alternatives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answers are equally likely, and the test disables the closed form for this case."""
    monkeypatch.setattr(solver, "_MOST_TABLE_ANSWERS", 256)
    rows = [[1] * 100]
    error = refusal(InvalidInput, ask, rows)
    assert (error.code, error.field) == ("optimiser_limit", "mechanism")
    assert "100 answers" in error.detail
    for name in ("subset-selection", "oue", "grr"):
        assert name in error.detail
        assert ask(rows, mechanism=name).identifiable


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["ldp", "secret-ldp", "lip"])
@pytest.mark.parametrize("objective", ["variance", "information"])
def test_claims_hold_and_figures_equal_those_of_the_published_integers(
    notion: str, objective: str
) -> None:
    rng = random.Random(41)
    for _ in range(8):
        prior, epsilon = random_prior(rng, rng.randint(2, 6), 3), random_epsilon(rng)
        designed = design(wanted(prior, notion, epsilon, objective=objective, accept_identity=True))
        assert designed.level == level_for(epsilon)
        require_private(designed.mechanism, *designed.claims)
        assert (designed.claims[0].joint is None) == (notion == "ldp")
        assert designed.ceiling == ceiling(designed.mechanism)
        Q = np.array(dense_of(designed.mechanism).weights) / 2.0**48
        p = prior.probabilities()
        A = (Q / (p @ Q)) @ Q.T
        assert designed.variance == pytest.approx(np.trace(np.linalg.inv(A)) - p @ p, rel=1e-6)
        logs = np.log(np.where(Q > 0, Q / (p @ Q), 1.0))
        assert designed.information == pytest.approx(
            p @ np.sum(Q * logs, axis=1), rel=1e-6, abs=1e-12
        )
        assert designed.normalised_information == pytest.approx(
            designed.information / -(p @ np.log(p)), rel=1e-12
        )
        assert designed.value == (
            designed.variance if objective == "variance" else designed.information
        )
        assert designed.identifiable
        assert designed.rank == prior.answers
        assert designed.estimable == tuple(f"answer {x}" for x in range(prior.answers))


@pytest.mark.parametrize("notion", ["ldp", "secret-ldp", "lip"])
def test_variance_designs_are_certified_at_every_size(notion: str) -> None:
    rng = random.Random(42)
    for answers in range(2, 9):
        for epsilon in ("0.01", "0.7", "8"):
            prior = random_prior(rng, answers, 2)
            designed = design(wanted(prior, notion, Fraction(epsilon), accept_identity=True))
            assert designed.certified
            assert designed.bound is not None
            assert designed.bound <= designed.value * (1 + 1e-9)


def test_the_identity_must_be_accepted_explicitly() -> None:
    with pytest.raises(InvalidInput, match="sends answers unchanged"):
        ask(CORRELATED, "lip", "3")
    response = ask(CORRELATED, "lip", "3", accept_identity=True)
    assert response.identity
    assert response.ceiling is None
    assert response.certified
    assert response.gap == 0
    assert dense_of(response.mechanism).weights == tuple(
        tuple((1 << 48) * (x == y) for y in range(5)) for x in range(5)
    )
    p = np.array([170, 320, 530, 740, 130]) / 1890
    assert response.variance == pytest.approx(1 - p @ p, rel=1e-12)
    assert response.normalised_information == pytest.approx(1, rel=1e-12)


def test_no_other_design_is_called_the_identity() -> None:
    assert not ask(CORRELATED, "lip", "0.1").identity
    assert not ask(FLAT, "ldp", "8").identity


def test_the_most_informative_mechanism_is_repaired_or_accepted() -> None:
    # For three unequal answers and a small level, two reports with one contrast are the most
    # informative.
    rows, options = [[5, 3, 2]], {"epsilon": "0.1", "objective": "information"}
    raw = ask(rows, **options, accept_unidentifiable=True)
    assert (raw.rank, raw.identifiable, raw.mechanism.reports) == (2, False, 2)
    assert raw.certified
    assert math.isinf(raw.variance)
    assert len(raw.estimable) == 2
    repaired = ask(rows, **options)
    assert repaired.identifiable
    assert raw.information * 0.99 <= repaired.information * (1 + 1e-7) < raw.information
    assert repaired.bound == raw.bound
    assert not repaired.certified  # the gap includes the cost of the repair
    least = ask(rows, epsilon="0.1")
    assert least.variance <= repaired.variance < math.inf


def test_groups_of_answers_that_can_be_estimated_are_listed() -> None:
    response = ask([[5, 3, 2]], epsilon="0.1", objective="information", accept_unidentifiable=True)
    groups = dense_of(response.mechanism).weights
    same = [x for x in range(3) if groups.count(groups[x]) == 2]
    alone = next(x for x in range(3) if x not in same)
    assert set(response.estimable) == {f"answer {alone}", f"answer {same[0]} + answer {same[1]}"}


@pytest.mark.parametrize("answers", [2, 3, 8, 64, 256])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "10"])
def test_grr_meets_its_level_to_the_last_unit(answers: int, epsilon: str) -> None:
    level = level_for(Fraction(epsilon))
    mechanism = grr(answers, level)
    ratio = worst(mechanism, Claim("ldp", (1, 1))).ratio
    assert ratio is not None
    assert ratio <= Fraction(*level)
    on, off = mechanism.weights[0][0], mechanism.weights[0][1]
    assert Fraction(on + answers - 1, off - 1) > Fraction(
        *level
    )  # one unit less off the diagonal violates the level


def test_families_are_described_without_a_bound() -> None:
    response = ask(CORRELATED, mechanism="grr")
    assert (response.bound, response.gap, response.certified, response.eta) == (
        None,
        None,
        False,
        0,
    )
    assert response.mechanism_name == "grr"
    assert response.mechanism == grr(5, response.level)


def test_answers_without_mass_are_protected_by_ldp() -> None:
    response = ask([[3, 0, 4]])
    assert response.identifiable
    assert response.certified
    require_private(response.mechanism, Claim("ldp", response.level))


def test_equal_requests_give_equal_mechanisms() -> None:
    assert ask(CORRELATED, "lip", "0.1") == ask(CORRELATED, "lip", "0.1")
