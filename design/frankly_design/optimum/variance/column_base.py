# SPDX-License-Identifier: Apache-2.0
"""Interface of the base {v ≥ 0 in the cone : p·v = 1} of a cone, and bases of listed points."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.linear import Polytope


class ColumnBase(Protocol):
    """Polytope of the columns v of mechanisms, scaled to p·v = 1; it contains the constant column.

    answers : a.
    prior : p, shape (a,), zeros allowed.
    rows : shape (m, a), the cone is {v ≥ 0 : rows·v ≥ 0}; None if there are too many, or if `rays`
        replace them.
    lifted : rows over v and k auxiliary variables, shape (m, a + k), of a cone whose projection is
    this cone; the constant column with all variables 1 satisfies them strictly. May be None.
    rays : all extreme points, shape (n, a), or None if they are not known.
    ratio : E if the only claim is LDP of the answer at level ln E, else None.
    """

    @property
    def answers(self) -> int:
        """Number of answers a."""
        ...

    @property
    def prior(self) -> FloatArray:
        """Prior p, shape (a,)."""
        ...

    @property
    def rows(self) -> FloatArray | None:
        """Rows of the cone, shape (m, a), or None."""
        ...

    @property
    def lifted(self) -> FloatArray | None:
        """Rows over v and auxiliary variables, shape (m, a + k), or None."""
        ...

    @property
    def rays(self) -> FloatArray | None:
        """All extreme points, shape (n, a), or None."""
        ...

    @property
    def ratio(self) -> float | None:
        """Ratio E, or None."""
        ...

    def with_coordinates(self, L: FloatArray, /) -> tuple[Polytope, FloatArray] | None:
        """Return the base as a polytope over t = σ∘v, auxiliary variables and L·v, and σ.

        Returns None if the base has no programme, because all extreme points are listed.
        """
        ...

    def maximise(self, c: FloatArray) -> FloatArray:
        """Return a vertex v of the base that maximises c·v; shape (a,) → (a,)."""
        ...

    def highest(self, c: FloatArray) -> float:
        """Return an upper bound of c·v over the base, proven by duality or by listing."""
        ...


@dataclass(frozen=True)
class Listed:
    """Base whose extreme points are all known."""

    rays: FloatArray
    prior: FloatArray
    rows: FloatArray | None = None
    lifted: FloatArray | None = None
    ratio: float | None = None

    @property
    def answers(self) -> int:
        """See `ColumnBase`."""
        return len(self.prior)

    def with_coordinates(self, L: FloatArray, /) -> None:
        """See `ColumnBase`."""

    def maximise(self, c: FloatArray) -> FloatArray:
        """See `ColumnBase`."""
        return np.asarray(self.rays[int(np.argmax(self.rays @ c))], dtype=np.float64)

    def highest(self, c: FloatArray) -> float:
        """See `ColumnBase`."""
        return float(np.max(self.rays @ c))
