# SPDX-License-Identifier: Apache-2.0
"""Kinds of which every symbol is counted: tables, and products of tables."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from frankly_design.kinds.decoder import Decoder, Rows, Targets, decoder, estimable, shares
from frankly_design.kinds.evidence import Evidence, Exact
from frankly_design.kinds.kind import Checked, Kind, Tally, invalid_counts
from frankly_design.kinds.kronecker import Kronecker, Law
from frankly_design.kinds.likelihood import fit_p
from frankly_design.kinds.scores import MOST_LAWS, Score, listed_score
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.numeric.arrays import FloatArray


class ListedKind(Kind):
    """A mechanism with one count for each symbol."""

    @property
    @abstractmethod
    def weights(self) -> Rows:
        """Integers proportional to Q(y|x), row = truth."""

    @property
    @abstractmethod
    def law(self) -> Law:
        """Q, as a matrix for a table and as its factors for a product."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """Condition number of Q."""

    @property
    def reports(self) -> int:
        """Number of symbols."""
        return int(self.mechanism.reports)

    @property
    def denominator(self) -> int:
        """Sum of every row of the weights."""
        return int(self.mechanism.denominator)

    @property
    def size(self) -> int:
        return self.reports

    def checked(self, counts: Tally) -> Checked:
        if isinstance(counts, SetCounts):
            raise invalid_counts("give one count for each report symbol")
        if not isinstance(counts, list | tuple) or len(counts) != self.reports:
            raise invalid_counts(f"give one count for each of the {self.reports} report symbols")
        for y, count in enumerate(counts):
            if type(count) is not int or count < 0:
                raise invalid_counts("counts are whole numbers, zero or more", f"counts[{y}]")
        return list(counts)

    def nothing_yet(self) -> Checked:
        return [0] * self.reports

    def decoder(self, targets: Targets, prior: tuple[int, ...] | None) -> Decoder:
        return decoder(self, targets, prior)

    def factor_decoders(self, prior: tuple[int, ...] | None) -> tuple[Decoder, ...]:
        """Return decoders whose Kronecker product decodes the shares: of the whole table, or by factor."""
        return (self.decoder(shares(self.answers), prior),)

    def shares(self, counts: Sequence[int], prior: tuple[int, ...] | None) -> Exact:
        """Return the exact unbiased shares. All must be identifiable."""
        return self.decoder(shares(self.answers), prior).apply(counts)

    def share_decoder(self, prior: tuple[int, ...] | None) -> FloatArray:
        """Return the decoder of all shares, shape (answers, reports). All must be identifiable."""
        return self.decoder(shares(self.answers), prior).floats()

    def evidence(self, counts: Any, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
        return TableEvidence(self, self.decoder(targets, prior), counts)

    @property
    def law_json(self) -> dict[str, Any]:
        return {"denominator": self.denominator, "weights": list(map(list, self.weights))}

    def share_rows(self, prior: tuple[int, ...]) -> Sequence[Sequence[Fraction] | None]:
        return self.decoder(shares(self.answers), prior).rows

    @property
    def basis(self) -> list[list[Fraction]]:
        return [list(row) for row in estimable(self)]


class ListedEvidence:
    """Base of evidence with listed symbols: likelihood, law, scores and fit from counts and Q."""

    answers: int
    rank: int
    _law: Law
    _counts: tuple[int, ...]

    def _scores(self, V: FloatArray, means: Exact) -> list[Score]:
        """Return the scores decoded by V, from one row and one observed mean per known target."""
        # Without a law the intervals use only the range of the scores: wider, but fast.
        law = self.law() if len(V) * self.answers * len(self._counts) <= MOST_LAWS else None
        return [
            listed_score(mean, row, self._counts, law) for mean, row in zip(means, V, strict=True)
        ]

    def likelihood(self) -> tuple[Law, FloatArray] | None:
        return self._law, np.array(self._counts, dtype=np.float64)

    def law(self) -> FloatArray:
        return self._law.dense if isinstance(self._law, Kronecker) else self._law

    def fit(self, best: FloatArray | None) -> float | None:
        return (
            None
            if best is None
            else fit_p(self._law, np.array(self._counts, dtype=np.float64), best, self.rank)
        )


class TableEvidence(ListedEvidence):
    """Counts per report symbol of a table, or of a product of tables (row-major)."""

    def __init__(self, kind: ListedKind, solved: Decoder, counts: Sequence[int]) -> None:
        self._kind, self._decoder, self._counts = kind, solved, tuple(counts)
        self.n, self.answers = sum(counts), kind.answers
        self.rank, self.fallback = solved.rank, solved.fallback
        self.known = [t for t, row in enumerate(solved.rows) if row is not None]
        self._rows = [row for row in solved.whole if row is not None]
        self.W = _floats([solved.targets[t] for t in self.known], kind.answers)
        self._V = solved.floats()
        self._law = kind.law
        # Without reports the rates are 0; figures that need reports check n themselves.
        self._rates = np.array([c / max(self.n, 1) for c in self._counts])
        self.exact: Exact = solved.apply(self._counts)

    @cached_property
    def shares(self) -> Exact | None:
        if not self.n or self.rank < self.answers:
            return None
        if self._decoder.targets is shares(self.answers):
            return self.exact
        # The decoder has other targets, but projection and fit need the shares.
        return self._kind.shares(self._counts, self._decoder.design_prior)

    @property
    def condition(self) -> float:
        return np.inf if self.rank < self.answers else self._kind.condition

    def moment(self) -> FloatArray:
        return np.asarray((self._V * self._rates) @ self._V.T, dtype=np.float64)

    def spread(self) -> FloatArray:
        # Centred before squaring, because moment − mean·meanᵀ would lose all digits for large n.
        centred = self._V - (self._V @ self._rates)[:, None]
        return np.asarray((centred * self._rates) @ centred.T, dtype=np.float64)

    def truth_moments(self) -> FloatArray:
        return np.asarray(self._V**2 @ self.law().T, dtype=np.float64)

    def moment_at(self, p: FloatArray) -> FloatArray:
        return np.asarray((self._V * (p @ self._law)) @ self._V.T, dtype=np.float64)

    def share_moments(self, p: FloatArray) -> FloatArray:
        D = self._share_decoder
        return np.asarray((D * (p @ self._law)) @ D.T, dtype=np.float64)

    @cached_property
    def _share_decoder(self) -> FloatArray:
        """Return the decoder of all shares in floats, shape (answers, reports)."""
        if self._decoder.targets is shares(self.answers):
            return self._V
        return self._kind.share_decoder(self._decoder.design_prior)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(min(row), scale), Fraction(max(row), scale)) for row, scale in self._rows]

    def scores(self) -> list[Score]:
        return self._scores(self._V, tuple(self.exact[t] for t in self.known))


def _floats(rows: Sequence[Sequence[Fraction]], width: int) -> FloatArray:
    return np.array([[float(v) for v in row] for row in rows], dtype=np.float64).reshape(
        len(rows), width
    )
