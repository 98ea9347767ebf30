# SPDX-License-Identifier: Apache-2.0
"""Linear programmes, compared with scipy's, and bounds by weak duality for any output of the solver."""

import random

import numpy as np
import pytest
from frankly_design.tables.linear import MasterProgramme, Polytope, lp
from frankly_protocol.errors import InvalidInput
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

Floats = NDArray[np.float64]


def numbers(rng: random.Random, *shape: int) -> Floats:
    return np.array([rng.gauss(0, 1) for _ in range(int(np.prod(shape)))]).reshape(shape)


@pytest.mark.parametrize("seed", range(8))
def test_optima_and_duals_are_scipys(seed: int) -> None:
    rng = random.Random(seed)
    matrix = np.abs(numbers(rng, 4, 12))
    cost, rhs = numbers(rng, 12), matrix @ np.abs(numbers(rng, 12))
    solution, reference = lp(cost, matrix, rhs), linprog(cost, A_eq=matrix, b_eq=rhs)
    assert cost @ solution.x == pytest.approx(reference.fun, rel=1e-8)
    np.testing.assert_allclose(matrix @ solution.x, rhs, rtol=1e-8)
    assert np.min(solution.x) >= 0
    assert np.count_nonzero(solution.x > 1e-9) <= 4  # basic
    assert solution.dual @ rhs == pytest.approx(reference.fun, rel=1e-8)
    assert np.min(cost - solution.dual @ matrix) > -1e-8


def test_failed_programmes_name_alternatives() -> None:
    with pytest.raises(InvalidInput, match="grr") as caught:
        lp(np.ones(2), np.array([[1.0, 1.0]]), np.array([-1.0]))
    assert caught.value.code == "optimiser_limit"


def random_polytope(rng: random.Random, n: int, m: int) -> tuple[Floats, Floats, Floats, Polytope]:
    """Return rows with an upper or a lower bound, both, or equality; the centre of the box is feasible."""
    A, middle = numbers(rng, m, n), np.full(n, 0.5)
    room = np.abs(numbers(rng, m))
    low = np.where(np.arange(m) % 4 == 0, -np.inf, A @ middle - room)
    high = np.where(np.arange(m) % 4 == 1, np.inf, A @ middle + room)
    low[-1] = high[-1] = A[-1] @ middle
    return A, low, high, Polytope(sparse.csc_array(A), low, high, np.zeros(n), np.ones(n))


def scipys(
    A: Floats, low: Floats, high: Floats, c: Floats, box: tuple[Floats, Floats]
) -> float | None:
    rows = np.vstack([A[np.isfinite(high)], -A[np.isfinite(low)]])
    rhs = np.concatenate([high[np.isfinite(high)], -low[np.isfinite(low)]])
    solution = linprog(-c, rows, rhs, bounds=list(zip(*box, strict=True)))
    return None if solution.status == 2 else -float(solution.fun)


@pytest.mark.parametrize("seed", range(6))
def test_farthest_points_and_their_bounds(seed: int) -> None:
    rng = random.Random(seed)
    A, low, high, polytope = random_polytope(rng, 6, 5)
    empty = 0
    for _ in range(20):
        c = numbers(rng, 6)
        ends = np.sort([[rng.random() for _ in range(6)] for _ in range(2)], axis=0)
        box = (ends[0] * 0.8, np.minimum(1, ends[1] + 0.3))
        point, reference = polytope.farthest(c, *box), scipys(A, low, high, c, box)
        assert (point is None) == (reference is None)
        vertex = polytope.vertex(c, *box)
        assert (vertex is None) == (reference is None)
        if point is None or reference is None or vertex is None:
            empty += 1
            continue
        assert c @ point.x == pytest.approx(reference, abs=1e-7)
        assert c @ vertex == pytest.approx(reference, abs=1e-7)
        assert reference - 1e-9 <= point.bound <= reference + 1e-6
        assert np.all(box[0] <= point.x)
        assert np.all(point.x <= box[1])
        assert np.all(A @ point.x >= low - 1e-8)
        assert np.all(A @ point.x <= high + 1e-8)
        # By complementary slackness, a variable with a nonzero reduced cost is at its bound.
        assert point.reduced @ point.x == pytest.approx(
            np.maximum(point.reduced, 0) @ box[1] + np.minimum(point.reduced, 0) @ box[0], abs=1e-6
        )
    assert empty < 20


def test_points_off_their_bound_are_worth_that_much_less() -> None:
    rng = random.Random(5)
    A, low, high, polytope = random_polytope(rng, 3, 3)
    c = numbers(rng, 3)
    point = polytope.farthest(c)
    assert point is not None
    for _ in range(2000):
        x = np.array([rng.random() for _ in range(3)])
        x[2] = (low[-1] - A[-1, :2] @ x[:2]) / A[-1, 2]  # satisfies the equality row
        if 0 <= x[2] <= 1 and np.all(A[:-1] @ x >= low[:-1]) and np.all(A[:-1] @ x <= high[:-1]):
            for j, worth in enumerate(point.reduced):
                off = 1 - x[j] if worth > 0 else x[j]
                assert c @ x <= point.bound - abs(worth) * off + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_a_master_with_penalties_is_the_programme_written_out(seed: int) -> None:
    rng = random.Random(seed)
    columns, cost = np.abs(numbers(rng, 7, 4)), -np.abs(numbers(rng, 7))
    penalty = np.array([50.0, 60.0, np.inf, 70.0])
    rhs = np.abs(numbers(rng, 2, 7)).sum(axis=0) @ columns
    master = MasterProgramme(rhs, penalty)
    for batch in (columns[:3], columns[3:]):  # the second starts from the first's basis
        master.add(batch, cost[:3] if len(batch) == 3 else cost[3:])
    solution = master.solve()
    free = np.flatnonzero(np.isfinite(penalty))
    slacks = np.hstack([np.eye(4)[:, free], -np.eye(4)[:, free]])
    reference = linprog(
        np.concatenate([cost, penalty[free], penalty[free]]),
        A_eq=np.hstack([columns.T, slacks]),
        b_eq=rhs,
    )
    assert reference.status == 0
    reached = cost @ solution.x + penalty[free] @ np.abs(solution.missing[free])
    assert reached == pytest.approx(reference.fun, rel=1e-8)
    assert np.all(np.abs(solution.dual) <= penalty + 1e-7)
    np.testing.assert_allclose(solution.x @ columns + solution.missing, rhs, rtol=1e-8)
    assert solution.missing[2] == 0


def test_an_infinite_penalty_leaves_nothing_missing() -> None:
    master = MasterProgramme(np.ones(2), np.full(2, 0.1))
    master.add(np.array([[1.0, 1.0], [2.0, 0.0]]), np.array([5.0, 1.0]))
    assert np.max(np.abs(master.solve().missing)) > 0.1  # the penalty is cheaper than the column
    master.penalise(np.full(2, np.inf))
    assert np.max(np.abs(master.solve().missing)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_narrowed_boxes_hold_all_points_and_little_else(seed: int) -> None:
    """The test compares with a linear programme for each side, which is the limit of any narrowing."""
    rng = random.Random(seed)
    A, row_low, row_high, polytope = random_polytope(rng, 5, 6)
    centre = np.array([rng.uniform(0.2, 0.8) for _ in range(5)])
    low, high = centre - 0.15, centre + 0.15
    narrowed = polytope.narrowed(low, high)
    sides = [
        scipys(A, row_low, row_high, sign * unit, (low, high))
        for unit in np.eye(5)
        for sign in (1, -1)
    ]
    if narrowed is None:
        assert sides[0] is None
        return
    assert np.all(narrowed[0] >= low - 1e-12)
    assert np.all(narrowed[1] <= high + 1e-12)
    if sides[0] is not None:
        reach = np.array(sides, dtype=np.float64).reshape(5, 2)
        assert np.all(narrowed[1] >= reach[:, 0] - 1e-9)
        assert np.all(narrowed[0] <= -reach[:, 1] + 1e-9)


def test_a_row_narrows_its_variables() -> None:
    """On [0, 1]², x + 2y ≤ 1 and x − y ≥ 0.2 imply y ≤ 0.5 and x ≥ 0.2."""
    rows = sparse.csc_array(np.array([[1.0, 2.0], [1.0, -1.0]]))
    polytope = Polytope(
        rows, np.array([-np.inf, 0.2]), np.array([1.0, np.inf]), np.zeros(2), np.ones(2)
    )
    narrowed = polytope.narrowed(np.zeros(2), np.ones(2))
    assert narrowed is not None
    np.testing.assert_allclose(narrowed, [[0.2, 0.0], [1.0, 0.5]], atol=1e-9)
    assert polytope.narrowed(np.array([0.0, 0.7]), np.ones(2)) is None
