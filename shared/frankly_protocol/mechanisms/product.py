# SPDX-License-Identifier: Apache-2.0
"""The product kind: independent parts of an answer, one table each (Robust §6, Funnel §V)."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, ClassVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import (
    MAX_SET_ANSWERS,
    RandomBits,
    Shape,
    draw,
    invalid,
    require_keys,
    unknown,
)
from frankly_protocol.mechanisms.dense import DenseMechanism
from frankly_protocol.mechanisms.fit import Fit
from frankly_protocol.mechanisms.lanes import Thresholds
from frankly_protocol.mechanisms.numbered import Numbered
from frankly_protocol.mechanisms.radix import digits_of
from frankly_protocol.problems import Problem

MAX_FACTORS = 16


@dataclass(frozen=True, slots=True)
class ProductMechanism(Numbered):
    """Q(y|x) = Π_j Q_j(y_j|x_j): independent parts of the answer (x_1, x_2, …).

    Parameters
    ----------
    factors : 2 to 16 tables of the same `bits`; their answers multiply to at most 1000 and are
        numbered row-major, the last part fastest.

    A symbol is a tuple with one report per factor; in JSON a list.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter or the factor.
    """

    kind: ClassVar[str] = "product"
    PARAMS: ClassVar[tuple[str, ...]] = ("bits", "factors")
    SHAPE: ClassVar[str] = "factors"

    factors: tuple[DenseMechanism, ...]
    # For each answer, the factors' thresholds with the rows of its parts.
    _rows: list[tuple[tuple[tuple[Thresholds, int], ...], ...]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not 2 <= len(self.factors) <= MAX_FACTORS:
            raise invalid(f"a product has 2 to {MAX_FACTORS} factors", "factors")
        for j, factor in enumerate(self.factors):
            # Equal bits give all probabilities the same denominator, which the verifier relies on.
            if factor.bits != self.factors[0].bits:
                raise invalid("all factors must be tables of the same bits", f"factors[{j}]")
        if self.answers > MAX_SET_ANSWERS:
            raise invalid(
                f"the factors' answers multiply to more than {MAX_SET_ANSWERS}", "factors"
            )

    @property
    def bits(self) -> int:
        """The bits of every factor."""
        return self.factors[0].bits

    @property
    def denominator(self) -> int:
        """The common denominator of all probabilities: 2^(bits · number of factors)."""
        return 1 << self.bits * len(self.factors)

    @property
    def answers(self) -> int:
        return prod(factor.answers for factor in self.factors)

    @property
    def reports(self) -> int:
        return prod(factor.reports for factor in self.factors)

    @property
    def sends_unchanged(self) -> bool:
        return all(factor.sends_unchanged for factor in self.factors)

    @property
    def guess(self) -> Fraction:
        """Chance that the best guess from a report has all parts right, under a uniform prior."""
        return prod((factor.guess for factor in self.factors), start=Fraction(1))

    @property
    def is_random(self) -> bool:
        return any(factor.is_random for factor in self.factors)

    @property
    def symbol_shape(self) -> Shape:
        return tuple(self.longest_symbol_json())

    @classmethod
    def tables_of(cls, params: Mapping[str, Any], /) -> list[Any]:
        return params["factors"] if isinstance(params["factors"], list) else []

    def random_fits(self, sizes: Sequence[int]) -> list[Fit | None]:
        """Return the Fit of every question; None from where a factor has parts of a question."""
        found: list[Fit | None] = []
        for factor in self.factors:
            start = end = len(found)
            while end < len(sizes) and prod(sizes[start:end]) < factor.answers:
                end += 1
            if prod(sizes[start:end]) != factor.answers:
                break
            found += factor.random_fits(sizes[start:end])
        return found + [None] * (len(sizes) - len(found))

    def parts(self, truth: int) -> tuple[int, ...]:
        """Return the parts of an answer; answers are numbered row-major, the last part fastest."""
        return digits_of(truth, [factor.answers for factor in self.factors])

    def sample(self, truth: int, randbits: RandomBits = secrets.randbits) -> tuple[int, ...]:
        """Draw the symbol to send for `truth`.

        Raises RandomnessError if the operating system provides no random bits. The rows are looked
        up in a list of all answers, because the time to compute an answer's parts would depend on
        it.
        """
        if not self._rows:  # a single append, so that other threads see either all rows or none
            tables = [factor.thresholds for factor in self.factors]
            self._rows.append(
                tuple(product(*([(table, row) for row in table.rows] for table in tables)))
            )
        # A list, not a generator, so that the time is the same for every answer.
        bits = self.bits
        return tuple(
            [
                thresholds.passed(draw(bits, randbits), row)
                for thresholds, row in self._rows[0][truth]
            ]
        )

    def probability(self, symbol: tuple[int, ...], x: int) -> Fraction:
        return prod(
            (
                f.probability(y, part)
                for f, y, part in zip(self.factors, symbol, self.parts(x), strict=True)
            ),
            start=Fraction(1),
        )

    def symbols(self) -> Iterator[tuple[int, ...]]:
        return product(*(range(factor.reports) for factor in self.factors))

    def check_symbol(self, value: object, field: str = "y") -> tuple[int, ...]:
        if not isinstance(value, list | tuple) or not all(type(y) is int and y >= 0 for y in value):
            raise InvalidInput(
                Problem.Y_TYPE, "a symbol of this block is a list of whole numbers", field
            )
        if len(value) != len(self.factors):
            raise unknown(f"a symbol of this block has {len(self.factors)} parts", field)
        for j, (y, factor) in enumerate(zip(value, self.factors, strict=True)):
            if y >= factor.reports:
                raise unknown(
                    f"this part of the symbol is 0 to {factor.reports - 1}", f"{field}[{j}]"
                )
        return tuple(value)

    def symbol_json(self, symbol: tuple[int, ...]) -> list[int]:
        return list(symbol)

    def longest_symbol_json(self) -> list[int]:
        return [factor.reports - 1 for factor in self.factors]

    def params_json(self) -> dict[str, Any]:
        return {
            "bits": self.bits,
            "factors": [[list(row) for row in f.weights] for f in self.factors],
        }

    @classmethod
    def from_params(cls, data: object, field: str = "params") -> "ProductMechanism":
        params = require_keys(data, cls.PARAMS, field)
        if (
            not isinstance(params["factors"], list)
            or not 2 <= len(params["factors"]) <= MAX_FACTORS
        ):
            raise invalid(f"a product has 2 to {MAX_FACTORS} factors", "factors")
        factors = []
        for j, weights in enumerate(params["factors"]):
            try:
                factors.append(
                    DenseMechanism.from_params({"bits": params["bits"], "weights": weights})
                )
            except InvalidInput as error:
                where = "bits" if error.field == "bits" else f"factors[{j}].{error.field}"
                raise invalid(error.detail, where) from None
        return cls(tuple(factors))
