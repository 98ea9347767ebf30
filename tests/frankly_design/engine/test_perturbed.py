# SPDX-License-Identifier: Apache-2.0
"""Designs whose solver returns other last digits: the same zeros, kinds and statements.

Processors differ in the last digits of a solver (docs/maths/rounding.md, claim 9).
`python -m tools.processors` runs all tests of the designer like this.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pytest
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.belief import two_sided
from frankly_design.notions.prior import Prior
from frankly_design.optimum.programme import Optimum
from frankly_protocol.audit import Claim, is_endless, level_for, require_private, worst
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import EVERY_NOTION, claims_of
from tests.perturbation import perturbed

SEEDS = range(3)


@dataclass(frozen=True)
class Statements:
    """Everything that pages and messages say of a design, without figures of many digits."""

    kind: str
    shape: tuple[int, int]
    zeros: tuple[tuple[int, int], ...]
    filled: int
    rank: int
    estimable: tuple[str, ...]
    is_certified: bool
    is_symmetric: bool
    is_identity: bool
    proves: bool
    rules_out: bool


def stated(designed: DesignResult) -> Statements:
    weights = designed.table.weights
    diagonal = [(weights[x][y], x, y) for x in range(len(weights)) for y in range(len(weights[0]))]
    ceiling = worst(designed.mechanism, answer_ldp(Fraction(1))).ratio
    return Statements(
        kind=designed.mechanism.kind,
        shape=(len(weights), len(weights[0])),
        zeros=tuple((x, y) for weight, x, y in diagonal if weight == 0),
        filled=designed.parameters.get("filled_zeros", 0),
        rank=designed.rank,
        estimable=designed.estimable,
        is_certified=designed.certified,
        is_symmetric=all(
            abs(row[y] - weights[y][x]) <= 1 << 20
            for x, row in enumerate(weights)
            for y in range(min(len(row), len(weights)))
        ),
        is_identity=designed.identity,
        proves=ceiling is None,
        rules_out=is_endless(ceiling),
    )


@pytest.fixture
def perturb(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes every later optimum end in other digits, drawn by a seed."""
    original = Optimum.rows

    def perturb(seed: int) -> None:
        monkeypatch.setattr(Optimum, "rows", perturbed(original, seed))

    return perturb


def requests_of(kind: str, objective: str, count: int) -> list[DesignRequest]:
    rng = random.Random(f"{kind} {objective}")
    drawn = [claims_of(kind, rng, 0.05, 2.5) for _ in range(count)]
    return [DesignRequest(prior, claims, objective=objective) for prior, claims in drawn]


def all_stated(requests: list[DesignRequest]) -> list[Statements | str]:
    statements: list[Statements | str] = []
    for request in requests:
        try:
            designed = design(request)
        except InvalidInput as error:
            statements.append(error.code)
            continue
        if designed.mechanism.kind == "dense":
            require_private(designed.mechanism, *designed.claims)
            statements.append(stated(designed))
    return statements


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["variance", "information"])
@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_zeros_kinds_and_statements_do_not_depend_on_the_last_digits(
    kind: str, objective: str, perturb: Callable[[int], None], full: bool
) -> None:
    requests = requests_of(kind, objective, 50 if full else 4)
    statements = all_stated(requests)
    for seed in SEEDS if full else SEEDS[:1]:
        perturb(seed)
        assert all_stated(requests) == statements


@pytest.mark.parametrize("seed", SEEDS)
def test_an_optimum_under_pml_proves_that_answers_were_not_given(
    seed: int, perturb: Callable[[int], None]
) -> None:
    """A uniform prior of 4 at ε = 0.5: on some processors its zeros became 1 / 2^48."""
    prior = Prior.from_rows([[1, 1, 1, 1]])
    request = DesignRequest(prior, (two_sided(prior, None, Fraction("0.5")),))
    statements = stated(design(request))
    assert statements.proves
    assert (len(statements.zeros), statements.filled) == (statements.shape[1], 0)
    perturb(seed)
    assert stated(design(request)) == statements


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_for_few_targets_has_the_same_rank(
    seed: int, perturb: Callable[[int], None]
) -> None:
    """Shares of three yes/no questions asked together: rounding by rows would give full rank."""
    answers = list(product((0, 1), repeat=3))
    shares = tuple(tuple(Fraction(answer[i]) for answer in answers) for i in range(3))
    request = DesignRequest(
        Prior.from_rows([[1] * 8]),
        (Claim("ldp", level_for(Fraction(2))),),
        targets=shares,
        accept_unidentifiable=True,
    )
    statements = stated(design(request))
    assert statements.rank < 8
    assert statements.is_certified
    assert statements.is_certified
    perturb(seed)
    assert stated(design(request)) == statements


def test_the_perturbation_reaches_the_table(perturb: Callable[[int], None]) -> None:
    [request] = requests_of("lip", "variance", 1)
    before = design(request).table.weights
    perturb(0)
    assert design(request).table.weights != before
