# SPDX-License-Identifier: Apache-2.0
"""The most informative mechanism made of listed columns, and whole numbers near it that keep any notion that is a test.

`programme` and `quantise` do this for a whole prior and for claims that a document can carry; here anything that a
column keeps or breaks will do, such as one group of answers out of many, or one attribute out of several.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.linear import lp
from frankly_server.design.quantise import BITS, LEAST_SHIFT, MOST_SHIFT
from frankly_server.design.vertices import Ray, extreme_rays

FloatArray = NDArray[np.float64]
Table = tuple[tuple[int, ...], ...]
Kept = Callable[[Sequence[int]], bool]

_FINE_BITS = 60
_NOTHING = 1e-12
_CLEARLY = 1e-9


def best_mixture(columns: Sequence[Sequence[int]], told: FloatArray) -> FloatArray:
    """Return the mechanism made of multiples of `columns` that tells the most, shape (answers, reports), row = truth.

    Maximise Σ_j θ_j g(v_j) over θ ≥ 0 with Σ_j θ_j v_j = 1, g as in `gains`: a linear programme.

    Parameters
    ----------
    columns : whole numbers ≥ 0, shape (n, answers), not all zero; the constant must be a mixture of them.
    told : P(k, x) over answers x and whatever k is known already, shape (k, answers), every answer with mass.
    """
    V = np.array([[v / max(column) for v in column] for column in columns])
    worth = gains(V, told)
    unit = float(np.max(worth))  # the solver's tolerances are absolute
    if unit <= _NOTHING:
        return np.ones((V.shape[1], 1))
    theta = lp(-worth / unit, V.T.copy(), np.ones(V.shape[1])).x
    used = np.flatnonzero(theta > 0)
    return np.asarray(V[used].T * theta[used])


def lazy_rays(rows: Sequence[Sequence[int]], dimension: int) -> list[Ray]:
    """Return the extreme rays of {q ≥ 0, r·q ≥ 0 for every row r}, as `extreme_rays` does, where rows are many.

    Only few of the rows bound the cone. Rows that a ray breaks most are added until none is broken: then these are the
    rays of the whole cone.
    """
    scaled = np.array([[r / max(map(abs, row)) for r in row] for row in rows]).reshape(-1, dimension)
    active: set[int] = set()
    while True:
        rays = extreme_rays([rows[i] for i in sorted(active)], dimension)
        values = scaled @ np.array([[v / max(ray) for v in ray] for ray in rays]).reshape(-1, dimension).T
        broken = {int(values[:, k].argmin()) for k in np.flatnonzero(np.any(values < -_CLEARLY, axis=0))}
        if not broken:  # as far as floats can tell: now exactly
            broken = {i for i, row in enumerate(rows) if any(_product(row, ray) < 0 for ray in rays)}
        if not broken:
            return rays
        active |= broken


def _product(row: Sequence[int], ray: Ray) -> int:
    return sum(r * v for r, v in zip(row, ray, strict=True))


def gains(columns: FloatArray, told: FloatArray) -> FloatArray:
    """Return what each report adds to I(X; Y | K): Σ_k Σ_x P(k,x) q_x ln(q_x / P(q|k)) in nats, shape (n,).

    columns : q_x = Q(y|x) up to a factor that scales the gain likewise, shape (n, answers). told : P(k, x).
    """
    expected = columns @ (told / told.sum(axis=1, keepdims=True)).T  # P(q|k), shape (n, k)
    logs = np.log(columns, out=np.zeros_like(columns), where=columns > 0)
    averages = np.log(expected, out=np.zeros_like(expected), where=expected > 0)
    within = (columns * logs) @ told.sum(axis=0)
    return np.asarray(within - np.sum(averages * (columns @ told.T), axis=1), dtype=np.float64)


def rounded_inside(rows: FloatArray, shares: Sequence[int], kept: Kept, bits: int = BITS) -> Table | None:
    """Return whole numbers near `rows`, every row summing to 2^bits, with every column kept; None if there are none.

    Mixes (1−η)·Q + η·1uᵀ for η in 0, 2^-50, 2^-49, …, 2^-20, u the reports' distribution, and takes the first that is
    kept (DESIGN §3.4): a constant column tells nothing, hence lies inside every notion.

    Parameters
    ----------
    rows : shape (answers, reports), row = truth, entries ≥ 0, every row sums to 1 up to float error.
    shares : counts of the answers, all positive. kept : decides about one column of whole numbers, exactly.
    """
    fine = [[int(v * 2.0**_FINE_BITS) for v in row] for row in rows.tolist()]
    expected = [sum(n * v for n, v in zip(shares, column, strict=True)) for column in zip(*fine, strict=True)]
    fine = [[v for v, e in zip(row, expected, strict=True) if e] for row in fine]
    mixture = [e for e in expected if e]
    for keep, mix in _shares_of_mixture():
        table = tuple(_row(row, mixture, keep, mix, bits) for row in fine)
        columns = list(zip(*table, strict=True))
        if all(any(column) and kept(column) for column in columns):
            return table
    return None


def _shares_of_mixture() -> Iterator[tuple[int, int]]:
    """Yield (1 − η, η) as whole numbers with a common denominator."""
    yield 1, 0
    for shift in range(MOST_SHIFT, LEAST_SHIFT - 1, -1):
        yield (1 << shift) - 1, 1


def _row(row: Sequence[int], mixture: Sequence[int], keep: int, mix: int, bits: int) -> tuple[int, ...]:
    """Round 2^bits · ((1−η)·row/Σrow + η·u/Σu); what is missing goes to the largest remainders, ties by index."""
    total, everybody = sum(row), sum(mixture)
    common = (keep + mix) * total * everybody
    exact = [(keep * everybody * v + mix * total * u) << bits for v, u in zip(row, mixture, strict=True)]
    weights = [v // common for v in exact]
    by_remainder = sorted(range(len(row)), key=lambda y: (-(exact[y] % common), y))
    for y in by_remainder[: (1 << bits) - sum(weights)]:
        weights[y] += 1
    return tuple(weights)
