# SPDX-License-Identifier: Apache-2.0
"""Evidence about the shares of a product of tables, computed factor by factor where possible.

The symbols of the factors are independent given the answer. So the means and second moments of the
decoded values for an answer are products of the factors' moments, and extremes follow from the
factors' extremes. The observed covariance mixes all cells and is not a product.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product

import numpy as np
from frankly_protocol.mechanisms import ProductMechanism

from frankly_design.estimate.decoder import Decoder, product_shares
from frankly_design.estimate.evidence import Exact, ListedEvidence, condition_of, law_of
from frankly_design.estimate.kronecker import Kronecker
from frankly_design.estimate.scores import Score
from frankly_design.numeric.arrays import FloatArray


class ProductEvidence(ListedEvidence):
    """Evidence about every share of a product of full rank; see `evidence.Evidence`.

    parts : the decoders of the factors' shares (`decoder.factor_decoders`).
    counts : reports per joint symbol, row-major.
    """

    def __init__(
        self, mechanism: ProductMechanism, parts: Sequence[Decoder], counts: Sequence[int]
    ) -> None:
        self._mechanism, self._parts, self._counts = mechanism, parts, tuple(counts)
        self.n, self.answers, self.rank = sum(counts), mechanism.answers, mechanism.answers
        self.fallback = any(part.fallback for part in parts)
        self.known = list(range(mechanism.answers))
        self.W = np.eye(self.answers)
        self._sizes = [part.mechanism.answers for part in parts]
        self._law = law_of(mechanism)
        self._decoders = [part.floats() for part in parts]
        self._rates = np.array([c / max(self.n, 1) for c in self._counts])

    @cached_property
    def shares(self) -> Exact | None:
        """See Evidence."""
        return product_shares(self._parts, self._counts) if self.n else None

    @property
    def exact(self) -> Exact:
        """See Evidence."""
        return (None,) * self.answers if self.shares is None else self.shares

    @property
    def condition(self) -> float:
        """See Evidence."""
        return condition_of(self._mechanism)

    def moment(self) -> FloatArray:
        """See Evidence."""
        return self._second(self._rates)

    def spread(self) -> FloatArray:
        """See Evidence."""
        # The observed rates are not a product, so V is needed as a full matrix.
        V = Kronecker(self._decoders)
        centred = V.dense - (V @ self._rates)[:, None]
        return np.asarray((centred * self._rates) @ centred.T, dtype=np.float64)

    def truth_moments(self) -> FloatArray:
        """See Evidence."""
        laws = [np.array(factor.weights) / factor.denominator for factor in self._mechanism.factors]
        return _dense([V**2 @ Q.T for V, Q in zip(self._decoders, laws, strict=True)])

    def moment_at(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        return self._second(p @ self._law)

    def share_moments(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        # The targets are the shares, so both moments are the same.
        return self.moment_at(p)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """See Evidence."""
        ends = [
            [(min(row), max(row)) for row in part.rows if row is not None] for part in self._parts
        ]
        return [reduce(corners, cell) for cell in product(*ends)]

    def scores(self) -> list[Score]:
        """See Evidence."""
        return self._scores(Kronecker(self._decoders).dense, self.exact)

    def _second(self, rates: FloatArray) -> FloatArray:
        """Return V diag(rates) Vᵀ, computed factor by factor."""
        pairs = Kronecker(
            [(V[:, None, :] * V[None, :, :]).reshape(len(V) ** 2, -1) for V in self._decoders]
        )
        by_factor = (pairs @ rates).reshape(
            [size for answers in self._sizes for size in (answers, answers)]
        )
        # The axes are (cell, other cell) of each factor in turn; the cell axes must all come first.
        axes = [*range(0, by_factor.ndim, 2), *range(1, by_factor.ndim, 2)]
        return np.asarray(
            by_factor.transpose(axes).reshape(self.answers, self.answers), dtype=np.float64
        )


def _dense(factors: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(Kronecker(factors).dense, dtype=np.float64)


def corners(
    left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the least and the largest product of a value from each of two intervals."""
    products = [a * b for a in left for b in right]
    return min(products), max(products)
