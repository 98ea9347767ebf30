# SPDX-License-Identifier: Apache-2.0
"""From float columns on the boundary of a notion to whole-number columns inside it, for notions that are a predicate.

`quantise` does this for claims that a document can carry; here anything that a column keeps or breaks will do, such as
one block of answers out of many, or one attribute out of several.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.quantise import BITS, LEAST_SHIFT, MOST_SHIFT

Table = tuple[tuple[int, ...], ...]
Kept = Callable[[Sequence[int]], bool]

_FINE_BITS = 60


def rounded_inside(rows: NDArray[np.float64], shares: Sequence[int], kept: Kept, bits: int = BITS) -> Table | None:
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
