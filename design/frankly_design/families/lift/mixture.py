# SPDX-License-Identifier: Apache-2.0
"""Best mixture of listed columns, rounded to integers that pass an exact test.

`programme` and `quantise` do the same for claims of a document. Here the test is any predicate on
a column, such as the criterion of one group of answers.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.rays import Ray, extreme_rays
from frankly_design.tables.linear import lp
from frankly_design.tables.quantise import BITS, least_mixed, rounded

Table = tuple[tuple[int, ...], ...]
ColumnTest = Callable[[Sequence[int]], bool]

# Rows are scaled to 2^60 before rounding, beyond the 53 significant bits of a float.
_FINE_BITS = 60
# Gains up to this size are rounding errors of the logarithms; the constant mechanism is as good.
_NO_INFORMATION = 1e-12
# Far larger than the rounding error of a scaled row times a scaled ray; an exact test follows.
_VIOLATION = 1e-9


def best_mixture(columns: Sequence[Sequence[int]], joint: FloatArray) -> FloatArray:
    """Return the most informative mixture of `columns`, shape (answers, reports), row = truth.

    The linear programme maximises Σ_j θ_j g(v_j) over θ ≥ 0 with Σ_j θ_j v_j = 1; g as in `gains`.

    Parameters
    ----------
    columns : integers ≥ 0, shape (n, answers), each column with a positive entry; the constant
    column
        must be a mixture of them.
    joint : P(k, x) over answers x and the outcome k of earlier reports, shape (k, answers), every
        answer with mass.
    """
    V = np.array([[v / max(column) for v in column] for column in columns])
    column_gains = gains(V, joint)
    unit = float(np.max(column_gains))  # the solver's tolerances are absolute
    if unit <= _NO_INFORMATION:
        return np.ones((V.shape[1], 1))
    theta = lp(-column_gains / unit, V.T.copy(), np.ones(V.shape[1])).x
    used = np.flatnonzero(theta > 0)
    return np.asarray(V[used].T * theta[used])


def lazy_rays(rows: Sequence[Sequence[int]], dimension: int) -> list[Ray]:
    """Return the extreme rays of {q ≥ 0, r·q ≥ 0 for every row r}, fast for many rows.

    Usually few of the rows bound the cone. So rays are computed from some rows, and the row that
    each ray violates most is added, until no row is violated.
    """
    # Rows and rays are integers of any size; scaled to 1, all products have the same tolerance.
    scaled = np.array([[r / max(map(abs, row)) for r in row] for row in rows]).reshape(
        -1, dimension
    )
    active: set[int] = set()
    while True:
        rays = extreme_rays([rows[i] for i in sorted(active)], dimension)
        values = (
            scaled
            @ np.array([[v / max(ray) for v in ray] for ray in rays]).reshape(-1, dimension).T
        )
        broken = {
            int(values[:, k].argmin()) for k in np.flatnonzero(np.any(values < -_VIOLATION, axis=0))
        }
        if not broken:
            # Floats show no violation; only the exact products prove that there is none.
            broken = {i for i, row in enumerate(rows) if any(_dot(row, ray) < 0 for ray in rays)}
        if not broken:
            return rays
        active |= broken


def _dot(row: Sequence[int], ray: Ray) -> int:
    return sum(r * v for r, v in zip(row, ray, strict=True))


def gains(columns: FloatArray, joint: FloatArray) -> FloatArray:
    """Return each report's contribution to I(X; Y | K) in nats, shape (n,).

    The contribution is Σ_k Σ_x P(k,x) q_x ln(q_x / P(q|k)).

    columns : q_x = Q(y|x), shape (n, answers); the gain is proportional to the column's scale.
    joint : P(k, x), shape (k, answers).
    """
    expected = columns @ (joint / joint.sum(axis=1, keepdims=True)).T  # P(q|k), shape (n, k)
    logs = np.log(columns, out=np.zeros_like(columns), where=columns > 0)
    averages = np.log(expected, out=np.zeros_like(expected), where=expected > 0)
    within = (columns * logs) @ joint.sum(axis=0)
    return np.asarray(within - np.sum(averages * (columns @ joint.T), axis=1), dtype=np.float64)


def rounded_inside(
    rows: FloatArray, shares: Sequence[int], keeps: ColumnTest, bits: int = BITS
) -> Table | None:
    """Return integers near `rows` whose columns all pass the test; None if no η below suffices.

    Every row sums to 2^bits. The result is (1−η)·Q + η·1uᵀ with the first η of 0, 2^-44, 2^-41, …,
    2^-20 that passes (spec 2.4). u is the distribution of the reports; mixing in 1uᵀ moves a table
    inside its notion, because constant columns do not depend on the truth. Where Q has zeros, 1uᵀ
    with the same zeros is tried first.

    Parameters
    ----------
    rows : shape (answers, reports), row = truth, entries ≥ 0, every row sums to 1 up to float
        error.
    shares : counts of the answers, all positive.
    keeps : exact test of one column of integers.
    """
    fine = [[int(v * 2.0**_FINE_BITS) for v in row] for row in rows.tolist()]
    expected = [
        sum(n * v for n, v in zip(shares, column, strict=True))
        for column in zip(*fine, strict=True)
    ]
    # A report whose weights all truncate to 0 is dropped, because its column would be empty.
    fine = [[v for v, e in zip(row, expected, strict=True) if e] for row in fine]
    mixture = [e for e in expected if e]

    def attempt(mixtures: Sequence[Sequence[int]], eta: Fraction) -> Table | None:
        table = tuple(
            rounded(row, mixture, eta, bits) for row, mixture in zip(fine, mixtures, strict=True)
        )
        columns = list(zip(*table, strict=True))
        return table if all(any(column) and keeps(column) for column in columns) else None

    within = [[e if v else 0 for v, e in zip(row, mixture, strict=True)] for row in fine]
    filled = [mixture] * len(fine)
    return least_mixed(partial(attempt, within)) or least_mixed(partial(attempt, filled))
