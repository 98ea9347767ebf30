# SPDX-License-Identifier: Apache-2.0
"""The product kind: tables of independent parts, decoded factor by factor where possible.

The symbols of the factors are independent given the answer. So the means and second moments of the
decoded values for an answer are products of the factors' moments, and extremes follow from the
factors' extremes. The observed covariance mixes all cells and is not a product.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import lcm
from operator import index
from typing import Any, TypeVar

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.radix import digits_of, number_of
from frankly_protocol.problems import Problem

from frankly_design.kinds.decoder import Decoder, Rows, Targets, decoder, shares
from frankly_design.kinds.dense import DenseKind
from frankly_design.kinds.evidence import Evidence, Exact
from frankly_design.kinds.kind import Checked, Kind, Stored, Tally, invalid_counts
from frankly_design.kinds.kronecker import Kronecker
from frankly_design.kinds.listed import ListedEvidence, ListedKind
from frankly_design.kinds.scores import Score
from frankly_design.numeric import rational
from frankly_design.numeric.arrays import FloatArray

MAX_CELLS = 1 << 20
"""Largest number of joint answers × joint reports of a product; 3 questions of 10 choices fit. Products
of more reports are counted without their symbols: a change needs a migration that recounts."""


_Number = TypeVar("_Number", int, Fraction)


class ProductKind(ListedKind):
    """A product of tables. Answers and symbols are numbered row-major, the last factor fastest."""

    mechanism: ProductMechanism

    @cached_property  # read for every report
    def digits(self) -> tuple[int, ...]:
        if self.reports > MAX_CELLS:
            return ()
        return tuple(factor.reports for factor in self.mechanism.factors)

    def number(self, symbol: Any) -> int:
        return number_of(map(int, symbol), self.digits)

    def symbol_of(self, number: int) -> Any:
        return list(digits_of(number, self.digits))

    def parts(self, symbol: Any) -> tuple[int, ...]:
        return self.mechanism.check_symbol(symbol)

    def index(self, key: Sequence[int]) -> int:
        return number_of(key, (factor.reports for factor in self.mechanism.factors))

    def counts(self, n: int, stored: Stored) -> Tally:
        return dict(stored)

    def count(self, reports: Iterable[Any]) -> Tally:
        try:
            seen = dict(Counter(tuple(map(index, report)) for report in reports))
        except TypeError:
            raise invalid_counts(
                "reports are tuples of whole numbers, as `sample` returns them", "reports"
            ) from None
        sizes = [factor.reports for factor in self.mechanism.factors]
        for symbol in seen:
            if len(symbol) != len(sizes) or not all(
                0 <= y < size for y, size in zip(symbol, sizes, strict=True)
            ):
                raise invalid_counts("a report is not one of this mechanism", "reports")
        return seen

    def checked(self, counts: Tally) -> Checked:
        return super().checked(self._in_order(counts) if isinstance(counts, Mapping) else counts)

    def _in_order(self, counts: Mapping[tuple[int, ...], int]) -> list[int]:
        if self.reports > MAX_CELLS:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "there are too many joint reports to estimate at once: request fewer questions together",
                "counts",
            )
        ordered = [0] * self.reports
        for symbol, n in counts.items():
            ordered[self.index(self.mechanism.check_symbol(symbol, "counts"))] += n
        return ordered

    @property
    def factors(self) -> tuple[DenseMechanism, ...]:
        return self.mechanism.factors

    @property  # not kept: decoders are, and they know their kind
    def weights(self) -> Rows:
        return reduce(_kronecker, (factor.weights for factor in self.mechanism.factors))

    @cached_property
    def law(self) -> Kronecker:
        return Kronecker([DenseKind(factor).law for factor in self.mechanism.factors])

    @property
    def condition(self) -> float:
        # Singular values of a Kronecker product are the products of those of its factors.
        return float(np.prod([DenseKind(factor).condition for factor in self.mechanism.factors]))

    def decoder(self, targets: Targets, prior: tuple[int, ...] | None) -> Decoder:
        """Return the exact unbiased decoder of the targets.

        A product of full rank is decoded factor by factor: V₁ ⊗ V₂ ⊗ … is a left inverse of
        Q₁ ⊗ Q₂ ⊗ … .

        Raises InvalidInput(unsupported) for a product of more than 2^20 cells.
        """
        parts = self._by_factor(prior)
        if parts is None:
            return decoder(self, targets, prior)
        # Targets are decoded one by one through the factors, so there is no dense inverse.
        inverse, denominator = inverse_of(parts)
        rows = []
        for target in targets:
            row, scale = rational.over_one_denominator(target)
            decoded = np.array(row, dtype=object) @ inverse
            rows.append(tuple(Fraction(v, scale * denominator) for v in decoded))
        fallback = any(part.fallback for part in parts)
        return Decoder(self, targets, tuple(rows), self.answers, prior, fallback)

    def _by_factor(self, prior: tuple[int, ...] | None) -> tuple[Decoder, ...] | None:
        """Return the decoder of each factor's shares, None if some factor is rank-deficient."""
        if self.answers * self.reports > MAX_CELLS:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "there are too many joint answers to estimate at once: request fewer questions together",
                "targets",
            )
        parts = tuple(
            decoder(factor, shares(factor.answers), margin)
            for factor, margin in self._with_margins(prior)
        )
        return parts if all(part.rank == part.table.answers for part in parts) else None

    def _with_margins(
        self, prior: tuple[int, ...] | None
    ) -> list[tuple[DenseMechanism, tuple[int, ...] | None]]:
        sizes = [factor.answers for factor in self.factors]
        return list(zip(self.factors, margins(sizes, prior), strict=True))

    def factor_decoders(self, prior: tuple[int, ...] | None) -> tuple[Decoder, ...]:
        parts = self._by_factor(prior)
        return super().factor_decoders(prior) if parts is None else parts

    def shares(self, counts: Sequence[int], prior: tuple[int, ...] | None) -> Exact:
        return product_shares(self.factor_decoders(prior), counts)

    def share_decoder(self, prior: tuple[int, ...] | None) -> FloatArray:
        return _dense([part.floats() for part in self.factor_decoders(prior)])

    def evidence(self, counts: Any, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
        # Shares of a product of full rank need no solve on the joint table: the factors suffice.
        parts = self._by_factor(prior) if targets is shares(self.answers) else None
        if parts is None:
            return super().evidence(counts, targets, prior)
        return ProductEvidence(self, parts, counts)

    def separately(self, prior: tuple[int, ...]) -> list[tuple[Kind, tuple[int, ...]]]:
        if self._by_factor(prior) is None:
            return super().separately(prior)
        return [(DenseKind(factor), margin or ()) for factor, margin in self._with_margins(prior)]

    @property
    def rank(self) -> int:
        return math.prod(DenseKind(factor).rank for factor in self.mechanism.factors)

    @property
    def basis(self) -> list[list[Fraction]]:
        # The full table may be too large to build, but Kronecker products of reduced echelon rows
        # are reduced echelon rows.
        return reduce(_kronecker, (DenseKind(factor).basis for factor in self.mechanism.factors))

    def tables(self, prior: FloatArray) -> list[tuple[Rows, FloatArray]]:
        if self.reports * self.answers > MAX_CELLS:
            return []
        # Answers of a product are row-major over its factors.
        joint = prior.reshape([factor.answers for factor in self.mechanism.factors])
        axes = range(joint.ndim)
        return [
            (factor.weights, joint.sum(axis=tuple(i for i in axes if i != j)))
            for j, factor in enumerate(self.mechanism.factors)
        ]


class ProductEvidence(ListedEvidence):
    """Evidence about every share of a product of full rank; see `evidence.Evidence`.

    parts : the decoders of the factors' shares.
    counts : reports per joint symbol, row-major.
    """

    def __init__(self, kind: ProductKind, parts: Sequence[Decoder], counts: Sequence[int]) -> None:
        self._kind, self._parts, self._counts = kind, parts, tuple(counts)
        self.n, self.answers, self.rank = sum(counts), kind.answers, kind.answers
        self.fallback = any(part.fallback for part in parts)
        self.known = list(range(kind.answers))
        self.W = np.eye(self.answers)
        self._sizes = [part.table.answers for part in parts]
        self._law = kind.law
        self._decoders = [part.floats() for part in parts]
        self._rates = np.array([c / max(self.n, 1) for c in self._counts])

    @cached_property
    def shares(self) -> Exact | None:
        return product_shares(self._parts, self._counts) if self.n else None

    @property
    def exact(self) -> Exact:
        return (None,) * self.answers if self.shares is None else self.shares

    @property
    def condition(self) -> float:
        return self._kind.condition

    def moment(self) -> FloatArray:
        return self._second(self._rates)

    def spread(self) -> FloatArray:
        # The observed rates are not a product, so V is needed as a full matrix.
        V = Kronecker(self._decoders)
        centred = V.dense - (V @ self._rates)[:, None]
        return np.asarray((centred * self._rates) @ centred.T, dtype=np.float64)

    def truth_moments(self) -> FloatArray:
        laws = [np.array(f.weights) / f.denominator for f in self._kind.factors]
        return _dense([V**2 @ Q.T for V, Q in zip(self._decoders, laws, strict=True)])

    def moment_at(self, p: FloatArray) -> FloatArray:
        return self._second(p @ self._law)

    def share_moments(self, p: FloatArray) -> FloatArray:
        # The targets are the shares, so both moments are the same.
        return self.moment_at(p)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        ends = [
            [(min(row), max(row)) for row in part.rows if row is not None] for part in self._parts
        ]
        return [reduce(corners, cell) for cell in product(*ends)]

    def scores(self) -> list[Score]:
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


def margins(sizes: Sequence[int], prior: tuple[int, ...] | None) -> list[tuple[int, ...] | None]:
    """Return the marginal prior of each part of an answer; None stands for the uniform prior."""
    if prior is None:
        return [None] * len(sizes)
    table = np.array(prior, dtype=object).reshape(sizes)
    parts = range(len(sizes))
    other_axes = [tuple(i for i in parts if i != j) for j in parts]
    return [
        tuple(int(v) for v in np.asarray(table.sum(axis=axes)).reshape(-1)) for axes in other_axes
    ]


def inverse_of(parts: Sequence[Decoder]) -> tuple[Kronecker, int]:
    """Return (V₁ ⊗ V₂ ⊗ … in integers, common denominator) from the factors' decoders."""
    matrices, denominator = [], 1
    for part in parts:
        rows = [row for row in part.whole if row is not None]
        scale = lcm(*(row_denominator for _, row_denominator in rows))
        # dtype=object stores Python integers, because the numerators exceed 64 bits.
        integers = [[v * (scale // row_denominator) for v in row] for row, row_denominator in rows]
        matrices.append(np.array(integers, dtype=object))
        denominator *= scale
    return Kronecker(matrices), denominator


def product_shares(parts: Sequence[Decoder], counts: Sequence[int]) -> tuple[Fraction, ...]:
    """Return the exact unbiased shares of a product from its factors' decoders and joint counts."""
    inverse, denominator = inverse_of(parts)
    n = sum(counts)
    return tuple(Fraction(v, denominator * n) for v in inverse @ np.array(counts, dtype=object))


def _kronecker(
    left: Sequence[Sequence[_Number]], right: Sequence[Sequence[_Number]]
) -> list[list[_Number]]:
    return [[a * b for a in row for b in other] for row in left for other in right]
