# SPDX-License-Identifier: Apache-2.0
"""Rival designs of bench item 1, checked against definitions, brute force and grids."""

import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from frankly_design.notions import promises
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import require_private
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(root: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that imports a module of the bench as the bench script does."""
    monkeypatch.syspath_prepend(str(root / "bench"))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return lambda name: importlib.import_module(f"_design.{name}")


def test_variance_equals_that_of_the_decoder(load: Load) -> None:
    rng = np.random.default_rng(1)
    rivals = load("rivals")
    for _ in range(10):
        Q, p = rng.dirichlet(np.ones(5), size=3), rng.dirichlet(np.ones(3))
        sent = p @ Q
        A = (Q / sent) @ Q.T
        decoder = np.linalg.solve(A, Q / sent)  # V Qᵀ = 1: unbiased
        assert decoder @ Q.T == pytest.approx(np.eye(3))
        estimates = sum(sent[y] * ((decoder[:, y] - p) ** 2).sum() for y in range(5))
        assert rivals.variance(Q, p) == pytest.approx(estimates)
    flat = np.full((3, 4), 0.25)
    assert rivals.variance(flat, np.full(3, 1 / 3)) == math.inf


def test_information_is_the_drop_in_entropy(load: Load) -> None:
    rng = np.random.default_rng(2)
    Q, p = rng.dirichlet(np.ones(4), size=3), rng.dirichlet(np.ones(3))
    Q[0, 1] += Q[0, 0]
    Q[0, 0] = 0

    def entropy(q: np.ndarray) -> float:
        return -sum(v * math.log(v) for v in q.ravel() if v)

    information = entropy(p) + entropy(p @ Q) - entropy(p[:, None] * Q)
    assert load("rivals").information(Q, p) == pytest.approx(information)


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
    claim = answer_ldp(Fraction(1))
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
            best = max(best, load("rivals").information(np.column_stack([pair, 1 - pair]), shares))
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
