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
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.kinds.decoder import Targets
from frankly_design.kinds.evidence import Exact, of_shares
from frankly_design.kinds.projection import onto_simplex
from frankly_design.kinds.scores import Score, TwoValues, listed_score
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.kinds.set_fit import set_fit
from frankly_design.kinds.set_law import SetLaw
from frankly_design.numeric import rational
from frankly_design.numeric.arrays import FloatArray

MOST_SEEN = 1 << 18
"""Largest distinct sets × answers for maximum likelihood; more would take seconds."""
MOST_LISTED = 1 << 10
"""Largest number of symbols for which the law of a mechanism is listed."""


class SetEvidence:
    """Evidence from counts of sets; see `evidence.Evidence`."""

    def __init__(self, law: SetLaw, targets: Targets, counts: SetCounts) -> None:
        mechanism = law.mechanism
        if len(counts.pairs) != mechanism.answers:
            raise InvalidInput(
                Problem.COUNTS_INVALID,
                f"the table of pairs has one row for each of the {mechanism.answers} answers",
                "counts.pairs",
            )
        self._law, self._targets, self._counts = law, targets, counts
        self.n, self.answers, self.fallback = counts.n, mechanism.answers, False
        self._q1, self._q0 = law.inclusion
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
        return of_shares(self.shares, self._targets)

    @cached_property
    def shares(self) -> Exact | None:
        if not self.n or not self.known:
            return None
        held = [self._counts.pairs[x][x] for x in range(self.answers)]
        even, total, k = Fraction(1, self.answers), sum(held), self._q1 - self._q0
        return tuple(
            even + Fraction(self.answers * h - total, self.answers * self.n) / k for h in held
        )

    @property
    def condition(self) -> float:
        # Contrasts have singular value |q1 − q0|; the shares are known to sum to 1.
        return float(max(1.0, abs(1 / self._k))) if self.known else np.inf

    def moment(self) -> FloatArray:
        rates = np.array([[c / max(self.n, 1) for c in row] for row in self._counts.pairs])
        mean = self._contrast @ np.diagonal(rates)[:, None] / self._k
        constants = self._level @ (self._level + mean).T + mean @ self._level.T
        return np.asarray(self._decoded(rates) + constants, dtype=np.float64)

    def spread(self) -> FloatArray:
        # Computed in integers, because in floats pairs·n − ones·ones would cancel for large n.
        n, pairs = self.n, self._counts.pairs
        ones = [pairs[x][x] for x in range(self.answers)]
        exact = [
            [(n * c - ones[x] * ones[z]) / (n * n) for z, c in enumerate(row)]
            for x, row in enumerate(pairs)
        ]
        return self._decoded(np.array(exact))

    def truth_moments(self) -> FloatArray:
        level, u = self._level, self._contrast
        s, t = self._law.contrast_moments() if self.known else (0.0, 0.0)
        squares = s * np.sum(u**2, axis=1, keepdims=True) + t * u**2
        return np.asarray(squares + level * (level + 2 * u), dtype=np.float64)

    def moment_at(self, p: FloatArray) -> FloatArray:
        return self._moment_at(p, self._level, self._contrast)

    def share_moments(self, p: FloatArray) -> FloatArray:
        level = np.full((self.answers, 1), 1 / self.answers)
        return self._moment_at(p, level, np.eye(self.answers) - level)

    def _moment_at(self, p: FloatArray, level: FloatArray, u: FloatArray) -> FloatArray:
        s, t = self._law.contrast_moments() if self.known else (0.0, 0.0)
        mean = u @ p[:, None]
        squares = (u * (s + t * p)) @ u.T
        return np.asarray(squares + level @ (level + mean).T + mean @ level.T, dtype=np.float64)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
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
            if (size := self._law.set_size) is not None:
                top, bottom = _sum_of_first(rising[::-1], size), _sum_of_first(rising, size)
            else:
                top = sum((v * count for v, count in rising if v > 0), Fraction(0))
                bottom = sum((v * count for v, count in rising if v < 0), Fraction(0))
            bounds.append((level + bottom, level + top))
        return bounds

    def scores(self) -> list[Score]:
        return [self._score(t, reach) for t, reach in zip(self.known, self.ends(), strict=True)]

    def likelihood(self) -> tuple[FloatArray, FloatArray] | None:
        symbols = self._counts.symbols
        if not symbols or self.rank < self.answers or len(symbols) * self.answers > MOST_SEEN:
            return None
        columns = self._law.columns([mask for mask, _ in symbols])
        return columns, np.array([n for _, n in symbols], dtype=np.float64)

    def law(self) -> FloatArray | None:
        return self._law.matrix() if self._law.mechanism.reports <= MOST_LISTED else None

    def fit(self, best: FloatArray | None) -> float | None:
        p = self.shares
        if p is None:
            return None
        near = (
            onto_simplex(np.array([float(v) for v in p if v is not None])) if best is None else best
        )
        return set_fit(self._law, self.n, np.array(self._counts.pairs, dtype=np.float64), near)

    def _score(self, t: int, reach: tuple[Fraction, Fraction]) -> Score:
        """Return a target's score: of two values for a single answer, else from listed sets."""
        mean, low, high = float(self.exact[t] or 0), *map(float, reach)
        used = [x for x, w in enumerate(self._targets[t]) if w]
        if len(used) == 1:
            return self._of_one(mean, (low, high), used[0], self._targets[t][used[0]])
        if self._law.mechanism.reports > MOST_LISTED:
            return Score(mean, (low, high))
        masks = list(self._law.mechanism.symbols())
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
        of_bit = self._law.set_size is None
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
