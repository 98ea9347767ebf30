# SPDX-License-Identifier: Apache-2.0
"""Rival designs of bench items 5 to 8, checked against definitions, brute force and grids."""

import importlib
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from frankly_protocol.audit import require_private, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.design import Prior
from frankly_server.design.notions import promises

from tests.narrowing import present

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(root: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that imports a module of the bench as the bench script does."""
    monkeypatch.syspath_prepend(str(root / "bench"))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return lambda name: importlib.import_module(f"_design.{name}")


@pytest.mark.parametrize("answers", [2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_families_are_tables_of_their_level(load: Load, answers: int, epsilon: float) -> None:
    E = math.exp(epsilon)
    tables = dict(load("families").tables(answers, E))
    assert len(tables) == answers  # GRR, subsets of 2 … a − 1, OUE
    for Q in tables.values():
        assert Q.sum(axis=1) == pytest.approx(np.ones(answers))
        assert (Q.max(axis=0) / Q.min(axis=0)).max() == pytest.approx(E)
    assert tables["OUE"].shape == (answers, 2**answers)
    # Each bit by itself is randomised response with probabilities 1/2 and 1/(E + 1).
    bits = np.array(list(itertools.product((0, 1), repeat=answers)))
    set_ = tables["OUE"] @ bits
    assert np.diag(set_) == pytest.approx(np.full(answers, 0.5))
    assert set_[0, 1:] == pytest.approx(np.full(answers - 1, 1 / (E + 1)))


def test_variance_equals_that_of_the_decoder(load: Load) -> None:
    rng = np.random.default_rng(1)
    families = load("families")
    for _ in range(10):
        Q, p = rng.dirichlet(np.ones(5), size=3), rng.dirichlet(np.ones(3))
        sent = p @ Q
        A = (Q / sent) @ Q.T
        decoder = np.linalg.solve(A, Q / sent)  # V Qᵀ = 1: unbiased
        assert decoder @ Q.T == pytest.approx(np.eye(3))
        estimates = sum(sent[y] * ((decoder[:, y] - p) ** 2).sum() for y in range(5))
        assert families.variance(Q, p) == pytest.approx(estimates)
    flat = np.full((3, 4), 0.25)
    assert families.variance(flat, np.full(3, 1 / 3)) == math.inf


def test_information_is_the_drop_in_entropy(load: Load) -> None:
    rng = np.random.default_rng(2)
    Q, p = rng.dirichlet(np.ones(4), size=3), rng.dirichlet(np.ones(3))
    Q[0, 1] += Q[0, 0]
    Q[0, 0] = 0

    def entropy(q: np.ndarray) -> float:
        return -sum(v * math.log(v) for v in q.ravel() if v)

    information = entropy(p) + entropy(p @ Q) - entropy(p[:, None] * Q)
    assert load("families").information(Q, p) == pytest.approx(information)


@pytest.mark.parametrize("answers", [3, 4, 5, 6])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_best_subset_selection_at_equal_shares_is_the_best_of_the_tables(
    load: Load, answers: int, epsilon: float
) -> None:
    families, E = load("families"), math.exp(epsilon)
    p = np.full(answers, 1 / answers)
    tried = [families.variance(families.subsets(answers, size, E), p) for size in range(1, answers)]
    assert families.best_uniform_variance(answers, E) == pytest.approx(min(tried), rel=1e-9)


def keeps_rows(load: Load, mechanism: DenseMechanism, claims: list[Any]) -> bool:
    """Return True if every report satisfies the inequalities of the privacy definitions that the
    rivals use."""
    weights = np.array(mechanism.weights, dtype=float)
    return bool(
        np.min(load("definitions").rows(claims, mechanism.answers) @ weights)
        >= -1e-9 * weights.max()
    )


@pytest.mark.parametrize("number", range(24))
def test_definitions_agree_with_the_verifier(load: Load, number: int) -> None:
    drawn = load("draws").draw(number, 8)
    claims = list(drawn.request.claims)
    rng = np.random.default_rng(number)
    verdicts = set()
    for noise in (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999):
        Q = (1 - noise) * rng.dirichlet(np.ones(3), size=drawn.request.prior.answers) + noise / 3
        counts = np.floor(Q * 2**40).astype(int)
        counts[:, 0] += 2**40 - counts.sum(axis=1)
        mechanism = DenseMechanism(40, tuple(map(tuple, counts.tolist())))
        try:
            require_private(mechanism, *claims)
            exact = True
        except DocumentRejected:
            exact = False
        verdicts.add(exact)
        assert keeps_rows(load, mechanism, claims) == exact
    assert True in verdicts


def test_a_number_determines_its_draw(load: Load) -> None:
    draws = load("draws")
    for number in (0, 7, 13):
        assert draws.draw(number).description == draws.draw(number).description
    kinds = {draws.draw(number).kind for number in range(8)}
    assert kinds == set(draws.KINDS)
    assert len({draws.draw(number).request.objective for number in (0, 8, 16)}) == 3
    for number in range(48):
        request = draws.draw(number).request
        assert 2 <= request.prior.answers <= draws.MOST_ANSWERS
        if draws.draw(number).kind != "ldp":
            assert min(request.prior.masses) > 0


@pytest.mark.parametrize("objective", ["information", "variance", "hamming"])
def test_rival_of_two_answers_reaches_warner(load: Load, objective: str) -> None:
    # For two equally likely answers, Warner's mechanism is optimal for every objective
    # [Thesis Thm 6.2].
    claim = promises.answer_ldp(Fraction(1))
    p, q = claim.level
    right = p / (p + q)
    Q, shares = np.array([[right, 1 - right], [1 - right, right]]), np.full(2, 0.5)
    rivals = load("rivals")
    best = rivals.Search([claim], shares, (1,)).best(objective)
    assert best == pytest.approx(rivals.VALUES[objective](Q, shares), rel=1e-6)


@pytest.mark.parametrize("notion", ["secret-ldp", "lip"])
def test_rival_of_two_answers_comes_near_the_best_of_a_grid_and_not_above(
    load: Load, notion: str
) -> None:
    prior = Prior.from_rows([[35, 10], [15, 40]])
    claim = promises.promise(notion, prior, Fraction("0.4"))
    rivals, shares = load("rivals"), prior.probabilities()
    columns = load("definitions").rows([claim], 2)
    steps = np.linspace(0, 1, 151)
    best = 0.0
    for a in steps:
        pairs = np.column_stack([np.full(len(steps), a), steps])
        feasible = np.all(pairs @ columns.T >= 0, axis=1) & np.all(
            (1 - pairs) @ columns.T >= 0, axis=1
        )
        for pair in pairs[feasible]:
            best = max(
                best, load("families").information(np.column_stack([pair, 1 - pair]), shares)
            )
    search_best = rivals.Search([claim], shares, (2,)).best("information")
    assert best <= search_best + 1e-9
    assert search_best - best <= 0.02


def test_complete_columns_make_mechanisms(load: Load) -> None:
    drawn = load("draws").draw(3, 8)
    search = load("rivals").Search(drawn.request.claims, drawn.request.prior.probabilities(), (3,))
    search.best("information")
    rows = load("definitions").rows(drawn.request.claims, drawn.request.prior.answers)
    assert np.min(search._columns @ rows.T) >= -1e-6 * np.max(search._columns)
    assert search._columns @ drawn.request.prior.probabilities() == pytest.approx(
        np.ones(len(search._columns))
    )


def test_theorem_4_promises_almost_level_0_for_two_copies_of_two_bits(load: Load) -> None:
    """Erratum 9.15: neither report alone depends on the parity; both together determine it."""
    side_channels = load("side_channels")
    row = side_channels._counterexample()
    assert row.value < 0.05
    assert row.baseline_value > 2.5
    # The exact verifier computes the true level of the same two mechanisms as integer tables.
    prior = side_channels.parity(noise=1000, slip=1, total=10**5)
    first, second = (
        [99 if (x >> k) & 1 == b else 1 for x in range(4) for b in (0, 1)] for k in range(2)
    )
    weights = [
        [first[2 * i + a] * second[2 * j + b] for a in (0, 1) for b in (0, 1)]
        for i in range(4)
        for j in range(4)
    ]
    scaled = [[w << 48 for w in row] for row in weights]
    rows = tuple(
        tuple([v // 10**4 for v in row[:-1]] + [2**48 - sum(v // 10**4 for v in row[:-1])])
        for row in scaled
    )
    level = worst(DenseMechanism(48, rows), promises.side_channels(prior, Fraction(1), (4, 4)))
    assert math.log(present(level.ratio)) == pytest.approx(row.baseline_value, abs=1e-6)


def test_realised_level_equals_that_of_the_estimate(load: Load) -> None:
    joint = [[3, 1], [2, 4]]
    mechanism = DenseMechanism(4, ((12, 4), (8, 8), (4, 12), (2, 14)))
    first = [(3 * 12 + 1 * 8) / 4 / 16, (2 * 4 + 4 * 2) / 6 / 16]
    expected = max(
        abs(math.log(first[0] / first[1])), abs(math.log((1 - first[0]) / (1 - first[1])))
    )
    assert load("uncertain_priors").realised_level(mechanism, joint) == pytest.approx(expected)


def test_redbook_prior_equals_that_of_the_demo(load: Load) -> None:
    assert load("redbook").prior().joint == ((4, 32, 110, 348, 519), (9, 47, 146, 166, 119))
