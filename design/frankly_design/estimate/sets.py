# SPDX-License-Identifier: Apache-2.0
"""Evidence from reports that are sets of answers (unary, subset), in closed form.

Answer x is in the set with probability q1 if it is the truth and q0 otherwise, so
b_x = (1[x in set] − q0)/(q1 − q0) decodes it [Wang et al. 2017, eq. 2]. Exactly one answer is true,
but the b_x of a unary report sum to 1 only on average. The difference is spread evenly:
d_x = b_x + (1 − Σb)/a, where a is the number of answers. A target w then decodes to
w̄ + Σ_x (w_x − w̄) b_x, where w̄ is the mean of w over the answers. For subset reports Σb is 1, so
nothing changes. The means of d and of d dᵀ need only the counts of each answer and of each pair of
answers in the sets, so the symbols, of which there may be 2^a, need not be stored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.estimate.decoder import Targets
from frankly_design.estimate.evidence import Exact, of_shares
from frankly_design.estimate.projection import onto_simplex
from frankly_design.estimate.scores import Score, TwoValues, listed_score
from frankly_design.estimate.set_fit import set_fit
from frankly_design.estimate.set_law import (
    SetMechanism,
    chances,
    contrast_moments,
    set_columns,
    set_law,
)
from frankly_design.numeric import rational
from frankly_design.numeric.arrays import FloatArray

MOST_SEEN = 1 << 18
"""Largest distinct sets × answers for maximum likelihood; more would take seconds."""
MOST_LISTED = 1 << 10
"""Largest number of symbols for which the law of a mechanism is listed."""
_MASKS = 1 << 14  # masks per block
_ROWS = 1 << 18  # rows per block; counts up to 2^24 are exact in float32


@dataclass(frozen=True, slots=True)
class SetCounts:
    """Counts of n reports that are sets; counts of several batches can be added with +.

    pairs : pairs[x][z] is the number of sets that contain x and z, and pairs[x][x] the number that
        contain x.
    symbols : (mask, number of reports) of the sets, None if not stored. Only the
        maximum-likelihood shares and the scores of targets of several answers need them.

    Raises InvalidInput(counts_invalid) unless the table is square and symmetric, its entries are
    integers from 0 to n, and no pair occurs more often than either answer.
    """

    n: int
    pairs: tuple[tuple[int, ...], ...]
    symbols: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 0:
            raise InvalidInput(
                Problem.COUNTS_INVALID,
                "the number of reports is a whole number, 0 or more",
                "counts.n",
            )
        size = len(self.pairs)
        for x, row in enumerate(self.pairs):
            if len(row) != size or any(type(c) is not int or not 0 <= c <= self.n for c in row):
                raise InvalidInput(
                    Problem.COUNTS_INVALID,
                    f"each of the {size} rows has {size} whole numbers from 0 to n",
                    f"counts.pairs[{x}]",
                )
            if any(row[z] != self.pairs[z][x] or row[z] > row[x] for z in range(size)):
                raise InvalidInput(
                    Problem.COUNTS_INVALID,
                    "the table of pairs is symmetric, and no pair occurs more often than either answer",
                    f"counts.pairs[{x}]",
                )

    @classmethod
    def of_symbols(cls, answers: int, symbols: Mapping[int, int]) -> "SetCounts":
        """Return the counts from a mapping of masks, below 2^answers, to numbers of reports."""
        seen, width = sorted(symbols.items()), (answers + 7) // 8
        pairs = np.zeros((answers, answers), dtype=np.int64)
        for start in range(0, len(seen), _MASKS):
            masks, numbers = zip(*seen[start : start + _MASKS], strict=True)
            bytes_of = np.frombuffer(b"".join(m.to_bytes(width, "little") for m in masks), np.uint8)
            bits = np.unpackbits(
                bytes_of.reshape(-1, width), axis=1, count=answers, bitorder="little"
            ).astype(np.float64)
            # Exact: sums of whole numbers below 2^53.
            pairs += ((bits.T * np.array(numbers, dtype=np.float64)) @ bits).astype(np.int64)
        return cls(sum(symbols.values()), tuple(tuple(map(int, row)) for row in pairs), tuple(seen))

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.uint8]) -> "SetCounts":
        """Return the counts of reports given as rows of 0 and 1, shape (n, answers).

        `symbols` is None.
        """
        pairs = np.zeros((vectors.shape[1],) * 2, dtype=np.int64)
        for start in range(0, len(vectors), _ROWS):
            # Matrix products are fastest in float32, which is exact for sums of this size.
            held = vectors[start : start + _ROWS].astype(np.float32)
            pairs += (held.T @ held).astype(np.int64)
        return cls(len(vectors), tuple(tuple(int(c) for c in row) for row in pairs))

    def __add__(self, other: "SetCounts") -> "SetCounts":
        added = zip(self.pairs, other.pairs, strict=True)
        pairs = tuple(tuple(a + b for a, b in zip(x, z, strict=True)) for x, z in added)
        if self.symbols is None or other.symbols is None:
            return SetCounts(self.n + other.n, pairs)
        symbols = Counter(dict(self.symbols)) + Counter(dict(other.symbols))
        return SetCounts(self.n + other.n, pairs, tuple(sorted(symbols.items())))


class SetEvidence:
    """Evidence from counts of sets; see `evidence.Evidence`."""

    def __init__(self, mechanism: SetMechanism, targets: Targets, counts: SetCounts) -> None:
        if len(counts.pairs) != mechanism.answers:
            raise InvalidInput(
                Problem.COUNTS_INVALID,
                f"the table of pairs has one row for each of the {mechanism.answers} answers",
                "counts.pairs",
            )
        self._mechanism, self._targets, self._counts = mechanism, targets, counts
        self.n, self.answers, self.fallback = counts.n, mechanism.answers, False
        self._q1, self._q0 = chances(mechanism)
        # Q restricted to contrasts is (q1 − q0) times the identity. So either every target is
        # identifiable, or only the total of the shares, which is 1 and need not be estimated.
        self.rank = mechanism.answers if self._q1 != self._q0 else 1
        estimable = [t for t, w in enumerate(targets) if self.rank > 1 or len(set(w)) == 1]
        self.known = estimable if self._q1 != self._q0 else []
        self.W = np.array([[float(v) for v in targets[t]] for t in self.known]).reshape(
            len(self.known), self.answers
        )
        self._k = float(self._q1 - self._q0) or 1.0
        # A target is its mean over the answers plus a contrast (see the module docstring).
        self._level = np.mean(self.W, axis=1, keepdims=True)
        self._contrast = self.W - self._level

    @cached_property
    def exact(self) -> Exact:
        """See Evidence."""
        return of_shares(self.shares, self._targets)

    @cached_property
    def shares(self) -> Exact | None:
        """See Evidence."""
        if not self.n or not self.known:
            return None
        held = [self._counts.pairs[x][x] for x in range(self.answers)]
        even, total, k = Fraction(1, self.answers), sum(held), self._q1 - self._q0
        return tuple(
            even + Fraction(self.answers * h - total, self.answers * self.n) / k for h in held
        )

    @property
    def condition(self) -> float:
        """See Evidence."""
        # Contrasts have singular value |q1 − q0|; the shares are known to sum to 1.
        return float(max(1.0, abs(1 / self._k))) if self.known else np.inf

    def moment(self) -> FloatArray:
        """See Evidence."""
        rates = np.array([[c / max(self.n, 1) for c in row] for row in self._counts.pairs])
        mean = self._contrast @ np.diagonal(rates)[:, None] / self._k
        constants = self._level @ (self._level + mean).T + mean @ self._level.T
        return np.asarray(self._decoded(rates) + constants, dtype=np.float64)

    def spread(self) -> FloatArray:
        """See Evidence."""
        # Computed in integers, because in floats pairs·n − ones·ones would cancel for large n.
        n, pairs = self.n, self._counts.pairs
        ones = [pairs[x][x] for x in range(self.answers)]
        exact = [
            [(n * c - ones[x] * ones[z]) / (n * n) for z, c in enumerate(row)]
            for x, row in enumerate(pairs)
        ]
        return self._decoded(np.array(exact))

    def truth_moments(self) -> FloatArray:
        """See Evidence."""
        level, u = self._level, self._contrast
        s, t = contrast_moments(self._mechanism) if self.known else (0.0, 0.0)
        squares = s * np.sum(u**2, axis=1, keepdims=True) + t * u**2
        return np.asarray(squares + level * (level + 2 * u), dtype=np.float64)

    def moment_at(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        return self._moment_at(p, self._level, self._contrast)

    def share_moments(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        level = np.full((self.answers, 1), 1 / self.answers)
        return self._moment_at(p, level, np.eye(self.answers) - level)

    def _moment_at(self, p: FloatArray, level: FloatArray, u: FloatArray) -> FloatArray:
        s, t = contrast_moments(self._mechanism) if self.known else (0.0, 0.0)
        mean = u @ p[:, None]
        squares = (u * (s + t * p)) @ u.T
        return np.asarray(squares + level @ (level + mean).T + mean @ level.T, dtype=np.float64)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """See Evidence."""
        k = self._q1 - self._q0
        bounds = []
        for t in self.known:
            weights = self._targets[t]
            counts = Counter(map(id, weights))
            level = sum((v * counts[id(v)] for v in rational.distinct(weights)), Fraction(0))
            level /= self.answers
            rising = sorted(((v - level) / k, counts[id(v)]) for v in rational.distinct(weights))
            # A subset has exactly `size` answers, so the extreme sets have the largest or the
            # smallest weights. A unary set may contain any answers.
            if isinstance(self._mechanism, SubsetMechanism):
                size = self._mechanism.size
                top, bottom = _sum_of_first(rising[::-1], size), _sum_of_first(rising, size)
            else:
                top = sum((v * count for v, count in rising if v > 0), Fraction(0))
                bottom = sum((v * count for v, count in rising if v < 0), Fraction(0))
            bounds.append((level + bottom, level + top))
        return bounds

    def scores(self) -> list[Score]:
        """See Evidence."""
        return [self._score(t, reach) for t, reach in zip(self.known, self.ends(), strict=True)]

    def likelihood(self) -> tuple[FloatArray, FloatArray] | None:
        """See Evidence; `MOST_SEEN` limits the number of distinct sets."""
        symbols = self._counts.symbols
        if not symbols or self.rank < self.answers or len(symbols) * self.answers > MOST_SEEN:
            return None
        columns = set_columns(self._mechanism, [mask for mask, _ in symbols])
        return columns, np.array([n for _, n in symbols], dtype=np.float64)

    def law(self) -> FloatArray | None:
        """See Evidence."""
        return set_law(self._mechanism) if self._mechanism.reports <= MOST_LISTED else None

    def fit(self, best: FloatArray | None) -> float | None:
        """See Evidence; the test needs only the counts of pairs (`set_fit`)."""
        p = self.shares
        if p is None:
            return None
        near = (
            onto_simplex(np.array([float(v) for v in p if v is not None])) if best is None else best
        )
        return set_fit(
            self._mechanism, self.n, np.array(self._counts.pairs, dtype=np.float64), near
        )

    def _score(self, t: int, reach: tuple[Fraction, Fraction]) -> Score:
        """Return a target's score: of two values for a single answer, else from listed sets."""
        mean, low, high = float(self.exact[t] or 0), *map(float, reach)
        used = [x for x, w in enumerate(self._targets[t]) if w]
        if len(used) == 1:
            return self._of_one(mean, (low, high), used[0], self._targets[t][used[0]])
        if self._mechanism.reports > MOST_LISTED:
            return Score(mean, (low, high))
        masks = list(self._mechanism.symbols())
        count_of = None if self._counts.symbols is None else dict(self._counts.symbols)
        bits = np.array(
            [[mask >> x & 1 for mask in masks] for x in range(self.answers)], dtype=np.float64
        )
        i = self.known.index(t)
        values = self._level[i] + self._contrast[i] @ bits / self._k
        counts = None if count_of is None else [count_of.get(mask, 0) for mask in masks]
        return listed_score(mean, values, counts, self.law())

    def _of_one(self, mean: float, reach: tuple[float, float], x: int, w: Fraction) -> Score:
        """Return the score of a target about answer x alone, which has two values."""
        held, k = self._counts.pairs[x][x], self._q1 - self._q0
        low, high = sorted((float(-w * self._q0 / k), float(w * (1 - self._q0) / k)))
        count = held if w / k > 0 else self.n - held
        two = TwoValues((low, low), (high, high), count)
        of_bit = isinstance(self._mechanism, UnaryMechanism)
        return Score(mean, reach, two, informative=min(count, self.n - count), of_bit=of_bit)

    def _decoded(self, second: FloatArray) -> FloatArray:
        return np.asarray(
            self._contrast @ (second / self._k**2) @ self._contrast.T, dtype=np.float64
        )


def _sum_of_first(values: Sequence[tuple[Fraction, int]], size: int) -> Fraction:
    """Return the sum of the first `size` values, given with their multiplicities."""
    total = Fraction(0)
    for value, count in values:
        taken = min(count, size)
        total, size = total + value * taken, size - taken
    return total
