# SPDX-License-Identifier: Apache-2.0
"""Q₁ ⊗ Q₂ ⊗ … held as its factors: what independent parts of a report cost is a sum, not a product.

p @ Q of two tables of 16 is two products of 16×16 matrices instead of one of 256×256 with a vector.
"""

from collections.abc import Sequence
from functools import cached_property, reduce
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Kronecker:
    """A matrix that takes part in products with vectors, ``p @ Q`` and ``Q @ r``; row = truth, column = report.

    factors : matrices of floats, or of Python ints (dtype object), which makes every product exact. Rows and columns
    are counted row-major over those of the factors, the last factor's fastest.
    """

    __array_ufunc__: Final = None  # numpy leaves `p @ Q` to __rmatmul__

    def __init__(self, factors: Sequence[Array]) -> None:
        self._factors = tuple(factors)
        self._turned = tuple(np.ascontiguousarray(factor.T) for factor in factors)
        self.shape = (prod(len(factor) for factor in self._factors), prod(len(factor) for factor in self._turned))

    def __len__(self) -> int:
        return self.shape[0]

    def __rmatmul__(self, left: Array) -> Array:
        return _through(left, self._factors)

    def __matmul__(self, right: Array) -> Array:
        return _through(right, self._turned)

    @cached_property
    def dense(self) -> Array:
        """The whole matrix."""
        return np.asarray(reduce(np.kron, self._factors))


Law = NDArray[np.float64] | Kronecker
"""Q(y|x), row = truth, column = report: whole, or as its factors where parts are independent."""


def _through(vector: Array, factors: Sequence[Array]) -> Array:
    found = np.asarray(vector)
    for factor in factors:
        # Each step takes the first axis and puts its result last: after all of them the order is the old one.
        found = found.reshape(len(factor), -1).T @ factor
    return found.reshape(-1)
