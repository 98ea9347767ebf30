# SPDX-License-Identifier: Apache-2.0
"""Base of the kinds whose symbols are sets of answers, counted by pairs of answers."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Final

import numpy as np

from frankly_design.kinds.decoder import Targets
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.kind import (
    Checked,
    Ends,
    Factor,
    FactorKind,
    Stored,
    Tally,
    invalid_counts,
    whole_numbers,
)
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.kinds.set_figures import information_and_hamming
from frankly_design.kinds.set_law import SetLaw
from frankly_design.kinds.sets import SetEvidence
from frankly_design.kinds.symbols import members
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray, IntArray
from frankly_design.tables import objectives
from frankly_design.tables.limits import Poll, no_poll

MOST_MASKED: Final = 10
"""Largest number of answers of a set that is counted by its bit mask (at most 2^10 counts).

The maximum-likelihood shares need these counts; pairs of positions are not enough. A change needs a
migration that recounts the reports.
"""


class SetKind(FactorKind, SetLaw):
    """A mechanism that reports a set of answers."""

    is_set: ClassVar[bool] = True

    @property
    def digits(self) -> tuple[int, ...]:
        return (1 << self.answers,) if self.answers <= MOST_MASKED else ()

    @property
    def most_pairs(self) -> int:
        size = self.answers if self.set_size is None else self.set_size
        return size * (size + 1) // 2

    def number(self, symbol: Any) -> int:
        return int(symbol, 16)

    def keys(self, symbol: Any) -> list[tuple[int, ...]]:
        """Return the bit mask of a small set, else all pairs of its positions."""
        if self.digits:
            return [self.parts(symbol)]
        return list(combinations_with_replacement(members(symbol), 2))

    @property
    def size(self) -> int:
        """Number of pairs of answers; there are too many different sets."""
        return self.answers**2

    def index(self, key: Sequence[int]) -> int:
        x, z = key
        return x * self.answers + z

    def counts(self, n: int, stored: Stored) -> SetCounts:
        if self.digits:
            return SetCounts.of_symbols(self.answers, {mask: k for (mask,), k in stored.items()})
        # The matrix of pair counts is symmetric, and only pairs x ≤ z are stored.
        pairs = [[0] * self.answers for _ in range(self.answers)]
        for (x, z), k in stored.items():
            pairs[x][z] = pairs[z][x] = k
        return SetCounts(n, tuple(map(tuple, pairs)))

    def count(self, reports: Iterable[Any]) -> Tally:
        seen = whole_numbers(reports)
        for mask in seen:
            if not 0 <= mask < 1 << self.answers or self.set_size not in (None, mask.bit_count()):
                raise invalid_counts("a report is not a set of this mechanism", "reports")
        return SetCounts.of_symbols(self.answers, seen)

    def checked(self, counts: Tally) -> Checked:
        if not isinstance(counts, SetCounts):
            raise invalid_counts(
                "reports of this mechanism are sets: give the number of sets with each answer pair"
            )
        return counts

    def nothing_yet(self) -> Checked:
        return SetCounts(0, ((0,) * self.answers,) * self.answers)

    def evidence(self, counts: Any, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
        return SetEvidence(self, targets, counts)

    def factor(self, prior: tuple[int, ...] | None) -> Factor:
        return SetFactor(self)

    @property
    def rank(self) -> int:
        """Exact rank of Q: full, or 1 if the set does not depend on the answer."""
        return self.answers if self.is_informative else 1

    @property
    def law_json(self) -> dict[str, Any]:
        inside, outside = self.inclusion
        return {
            "inside": list(inside.as_integer_ratio()),
            "outside": list(outside.as_integer_ratio()),
        }

    def share_rows(self, prior: tuple[int, ...]) -> Sequence[Sequence[Fraction] | None]:
        """Return the decoder of each share from 1 and the indicators of the answers in the set."""
        # If the set does not depend on the answer, no decoder exists.
        return SetFactor(self).decoder if self.is_informative else [None] * self.answers

    @property
    def basis(self) -> list[list[Fraction]]:
        a = self.answers
        if not self.is_informative:  # only the total of the shares, which is 1
            return [[Fraction(1)] * a]
        return [[Fraction(int(x == z)) for z in range(a)] for x in range(a)]

    def information_and_hamming(self, prior: Prior, poll: Poll = no_poll) -> tuple[float, float]:
        return information_and_hamming(self, prior.shares)

    def variances(self, prior: Prior, targets: objectives.Targets | None) -> list[float]:
        return self.target_variances(np.array(prior.probabilities(), dtype=np.float64), targets)

    def variance_at(self, truth: FloatArray) -> float:
        return math.fsum(self.target_variances(truth, None))

    def names(self, answers: Sequence[Any]) -> list[str]:
        """Return the labels of the answers in each set, as {a, b}."""
        held = (
            (str(label) for x, label in enumerate(answers) if mask >> x & 1)
            for mask in self.mechanism.symbols()
        )
        return [f"{{{', '.join(labels)}}}" for labels in held]


class SetFactor:
    """Factor of a mechanism that reports sets of answers.

    The statistic is the constant 1 and the indicators of the answers in the set. The decoder is
    that of the single block (`sets`), so the margins of the joint table are the block's estimates.
    """

    def __init__(self, law: SetLaw) -> None:
        self.mechanism, self._law = law.mechanism, law
        self.width = self.mechanism.answers + 1
        self._q1, self._q0 = law.inclusion
        self.identifiable = law.is_informative

    @cached_property
    def decoder(self) -> list[list[Fraction]]:
        k, size = self._q1 - self._q0, self.mechanism.answers
        even = Fraction(1, size)
        return [[even, *((int(x == z) - even) / k for z in range(size))] for x in range(size)]

    @property
    def ends(self) -> list[Ends]:
        k = self._q1 - self._q0
        size = self.mechanism.answers
        # The extreme sets of a unary mechanism: only this answer, or all answers except this one.
        reach = [Fraction(1, size) + s * (1 - Fraction(1, size)) / k for s in (1, -1)]
        low, high = sorted(
            reach if self._law.set_size is None else (-self._q0 / k, (1 - self._q0) / k)
        )
        return [(low, high)] * size

    @property
    def condition(self) -> float:
        # Q scales every contrast by q1 − q0, and the shares are known to sum to 1.
        return max(1.0, 1 / abs(float(self._q1 - self._q0)))

    def knows(self, symbol: int) -> bool:
        if not 0 <= symbol < 1 << self.mechanism.answers:
            return False
        return self._law.set_size in (None, symbol.bit_count())

    def features(self, symbols: Sequence[int]) -> IntArray:
        held = [[mask >> x & 1 for mask in symbols] for x in range(self.mechanism.answers)]
        return np.array([[1] * len(symbols), *held], dtype=np.int64)

    def values(self, symbols: Sequence[int]) -> FloatArray:
        decoder = np.array([[float(v) for v in row] for row in self.decoder])
        return np.asarray(decoder @ self.features(symbols), dtype=np.float64)

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        return self._law.columns(symbols)

    def moments(self) -> FloatArray:
        # s and t as in `contrast_moments`. A share is 1/size plus a contrast (see `sets`); the
        # matrix u of the contrasts is symmetric.
        size, (s, t) = self.mechanism.answers, self._law.contrast_moments()
        u = np.eye(size) - 1 / size
        squares = s * (u @ u) + t * u[:, :, None] * u[:, None, :]
        return np.asarray(
            squares + (u[:, :, None] + u[:, None, :] + 1 / size) / size, dtype=np.float64
        )

    def law(self) -> FloatArray:
        return self._law.matrix()
