# SPDX-License-Identifier: Apache-2.0
"""Small exact helpers for the tests of papers, independent of the code under test."""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from frankly_design.notions.prior import Prior
from frankly_design.numeric.rays import extreme_rays
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray
from scipy.optimize import linprog

Row = Sequence[Fraction]
Table = Sequence[Row]


def tries(full: bool, default: int = 50) -> Callable[[Any], Any]:
    """Return settings with the number of random instances, 1,000 with --full; the instances are
    always the same."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=1000 if full else default,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=slow,
    )


def on_random(
    *strategies: SearchStrategy[Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on random instances, as many as `tries` says."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def test(full: bool) -> None:
            tries(full)(given(*strategies)(check))()

        test.__name__, test.__doc__, test.__module__ = (
            check.__name__,
            check.__doc__,
            check.__module__,
        )
        return test

    return decorate


def subsets(n: int) -> list[tuple[int, ...]]:
    """Return all subsets of n outputs, including the empty one."""
    return list(chain.from_iterable(combinations(range(n), k) for k in range(n + 1)))


def needed_delta(table: Table, pairs: Sequence[tuple[int, int]], E: Fraction) -> Fraction:
    """Return the least δ with P(A|x) ≤ E·P(A|x') + δ for all sets A of outputs, by enumerating the sets."""
    return max(
        sum((table[x][y] - E * table[z][y] for y in A), Fraction(0))
        for x, z in pairs
        for A in subsets(len(table[0]))
    )


def distribution(rng: random.Random, size: int, top: int = 9, zeros: bool = True) -> list[Fraction]:
    while True:
        counts = [rng.randint(0 if zeros else 1, top) for _ in range(size)]
        if any(counts):
            return [Fraction(n, sum(counts)) for n in counts]


def power(table: Table, n: int) -> tuple[list[list[Fraction]], list[tuple[int, int]]]:
    """Return the n-fold product of a mechanism, and the pairs of neighbouring databases."""
    people = list(product(range(len(table)), repeat=n))
    outputs = list(product(range(len(table[0])), repeat=n))
    rows = [
        [_product(table[x][y] for x, y in zip(d, out, strict=True)) for out in outputs]
        for d in people
    ]
    near = [
        (i, j)
        for (i, d), (j, e) in product(enumerate(people), repeat=2)
        if sum(u != v for u, v in zip(d, e, strict=True)) == 1
    ]
    return rows, near


def different(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i, j in product(range(n), repeat=2) if i != j]


def rank(rows: Table) -> int:
    """Return the rank by elimination in fractions."""
    remaining, pivots = [list(map(Fraction, row)) for row in rows], 0
    for column in range(len(remaining[0]) if remaining else 0):
        pivot = next((i for i in range(pivots, len(remaining)) if remaining[i][column]), None)
        if pivot is None:
            continue
        remaining[pivots], remaining[pivot] = remaining[pivot], remaining[pivots]
        for i in range(pivots + 1, len(remaining)):
            factor = remaining[i][column] / remaining[pivots][column]
            if factor:
                remaining[i] = [
                    u - factor * v for u, v in zip(remaining[i], remaining[pivots], strict=True)
                ]
        pivots += 1
    return pivots


def _product(values: Any) -> Fraction:
    result = Fraction(1)
    for value in values:
        result *= value
    return result


Matrix = NDArray[np.float64]


def information(P: Matrix, Q: Matrix) -> float:
    """Return I(X;Y) by its definition; Q has row = truth."""
    p = P.ravel()
    y = p @ Q
    return float(np.sum(p[:, None] * Q * np.log(np.where(Q > 0, Q, 1) / np.where(y > 0, y, 1))))


def polytope_rows(bounds: list[list[Fraction]], E: Fraction, *, diagonal: bool) -> list[list[int]]:
    """Return Definition 3 as integer rows r·v ≥ 0, from the corners of the D_s, in fractions."""
    rows = []
    corners = [
        [[v + (1 - sum(L)) * (u == top) for u, v in enumerate(L)] for top in range(len(L))]
        for L in bounds
    ]
    a2 = len(bounds[0])
    for s, t in product(range(len(bounds)), repeat=2):
        if s == t and not diagonal:
            continue
        for R, V in product(corners[s], corners[t]):
            row = [Fraction(0)] * (a2 * len(bounds))
            for u in range(a2):
                row[t * a2 + u] += E * V[u]
                row[s * a2 + u] -= R[u]
            scale = math.lcm(*(v.denominator for v in row))
            rows.append([int(v * scale) for v in row])
    return rows


def polyopt(
    bounds: list[list[Fraction]], E: Fraction, P: Matrix, *, diagonal: bool
) -> tuple[float, Matrix, Matrix]:
    """Solve Theorem 3 by vertices and scipy; return optimum, vertices (Σv = 1) and mechanism."""
    a = P.size
    V = np.array(
        [
            [v / sum(ray) for v in ray]
            for ray in extreme_rays(polytope_rows(bounds, E, diagonal=diagonal), a)
        ]
    )
    p = P.ravel()
    mu = np.sum(
        np.where(V > 0, V, 0) * p * np.log(np.where(V > 0, V, 1) / (V @ p)[:, None]), axis=1
    )
    solution = linprog(-mu, A_eq=V.T, b_eq=np.ones(a), method="highs")
    used = solution.x > 1e-9
    return -float(solution.fun), V, (V[used] * solution.x[used, None]).T


Vector = tuple[Fraction, ...]


def solve(rows: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction] | None:
    """Solve by Gauss-Jordan elimination in fractions; return None if the matrix is singular."""
    n = len(rows)
    table = [[*row, value] for row, value in zip(rows, rhs, strict=True)]
    for i in range(n):
        pivot = next((k for k in range(i, n) if table[k][i]), None)
        if pivot is None:
            return None
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [v / table[i][i] for v in table[i]]
        for k in range(n):
            if k != i and table[k][i]:
                table[k] = [u - table[k][i] * v for u, v in zip(table[k], table[i], strict=True)]
    return [row[n] for row in table]


def delta_rows(prior: Prior, E: Fraction) -> list[list[Fraction]]:
    """Return the rows of (11), divided by p_s: E·v − P(s|·)v/p_s ≥ 0, the reverse, v ≥ 0; Σv = 1.

    Here v is P(X = · | Y = y), so the average of v is 1.
    """
    a = prior.answers
    rows = [[Fraction(int(i == x)) for i in range(a)] for x in range(a)]
    for joint, mass in zip(prior.joint, prior.masses, strict=True):
        ratio = [
            Fraction(n, share) / Fraction(mass, prior.total)
            for n, share in zip(joint, prior.shares, strict=True)
        ]
        rows.append([E - v for v in ratio])
        rows.append([E * v - 1 for v in ratio])
    return rows


def secret_rows(prior: Prior, E: Fraction) -> list[list[Fraction]]:
    """Return (5) in the same variables: P(s|y)/p_s ≤ E·P(t|y)/p_t."""
    a = prior.answers
    rows = [[Fraction(int(i == x)) for i in range(a)] for x in range(a)]
    ratios = [
        [
            Fraction(n, share) / Fraction(mass, prior.total)
            for n, share in zip(joint, prior.shares, strict=True)
        ]
        for joint, mass in zip(prior.joint, prior.masses, strict=True)
    ]
    rows += [
        [E * u - v for u, v in zip(s, t, strict=True)] for s in ratios for t in ratios if s is not t
    ]
    return rows


def vertices(rows: list[list[Fraction]], a: int) -> set[Vector]:
    """Return all vertices of {v : rows·v ≥ 0, Σv = 1} by trying every set of a−1 tight rows."""
    points: set[Vector] = set()
    for tight in combinations(rows, a - 1):
        v = solve([*map(list, tight), [Fraction(1)] * a], [Fraction(0)] * (a - 1) + [Fraction(1)])
        if v is not None and all(
            sum(r * x for r, x in zip(row, v, strict=True)) >= 0 for row in rows
        ):
            points.add(tuple(v))
    return points


def best_information(prior: Prior, points: set[Vector]) -> float:
    """Solve the programme (13)-(15) of Theorem 3 by scipy: H(X) − min Σ α_i H(v_i)."""
    V = np.array([[float(x) for x in v] for v in sorted(points)])
    entropies = -np.sum(V * np.log(V, out=np.zeros_like(V), where=V > 0), axis=1)
    p = prior.probabilities()
    solution = linprog(entropies, A_eq=V.T, b_eq=p, method="highs")
    assert solution.status == 0
    return float(-np.sum(p * np.log(p)) - solution.fun)
