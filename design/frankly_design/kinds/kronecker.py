# SPDX-License-Identifier: Apache-2.0
"""Kronecker products Q₁ ⊗ Q₂ ⊗ …, stored as factors for fast products with vectors.

For two tables of 16×16, p @ Q takes two products of 16×16 matrices instead of a product of a vector
with a 256×256 matrix.
"""

from collections.abc import Sequence
from functools import cached_property, reduce
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Kronecker:
    """Matrix that supports products with vectors, ``p @ Q`` and ``Q @ r``.

    factors : matrices of floats, or of Python ints (dtype object), for which every product is
    exact.
        Rows and columns are in row-major order over those of the factors: the last factor varies
        fastest.
    """

    __array_ufunc__: Final = None  # numpy leaves `p @ Q` to __rmatmul__

    def __init__(self, factors: Sequence[Array]) -> None:
        self._factors = tuple(factors)
        self._turned = tuple(np.ascontiguousarray(factor.T) for factor in factors)
        self.shape = (
            prod(len(factor) for factor in self._factors),
            prod(len(factor) for factor in self._turned),
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __rmatmul__(self, left: Array) -> Array:
        return _through(left, self._factors)

    def __matmul__(self, right: Array) -> Array:
        return _through(right, self._turned)

    @cached_property
    def dense(self) -> Array:
        """Return the full matrix."""
        return np.asarray(reduce(np.kron, self._factors))


Law = NDArray[np.float64] | Kronecker
"""Q(y|x), row = truth, column = report: a matrix, or the factors of a product."""


def _through(vector: Array, factors: Sequence[Array]) -> Array:
    result = np.asarray(vector)
    for factor in factors:
        # Each step contracts the first axis and puts the new axis last, so all steps together
        # restore the order.
        result = result.reshape(len(factor), -1).T @ factor
    return result.reshape(-1)
