# SPDX-License-Identifier: Apache-2.0
"""Evidence about the targets from the counts of one mechanism: the interface of all figures.

A report decodes to one value d per target, whose mean for answer x is the target's weight w_x.
Estimates are means of d over the reports. For each kind of mechanism, an evidence class computes
this mean (exactly) and the second moments of d from the counts.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from frankly_design.kinds.decoder import Decoder, shares
from frankly_design.kinds.kronecker import Kronecker, Law
from frankly_design.kinds.likelihood import fit_p
from frankly_design.kinds.scores import MOST_LAWS, Score, listed_score
from frankly_design.numeric.arrays import FloatArray

Exact = tuple[Fraction | None, ...]


def of_shares(shares: Exact | None, targets: Sequence[Sequence[Fraction]]) -> Exact:
    """Return W·p̂ exactly for every row of the targets, from the shares p̂ of the answers.

    If `shares` is None, every entry is None.
    """
    if shares is None:
        return (None,) * len(targets)
    p = [share for share in shares if share is not None]
    return tuple(
        sum((w * v for w, v in zip(row, p, strict=True) if w), Fraction(0)) for row in targets
    )


class Evidence(Protocol):
    """Counts with their mechanism.

    n : number of reports.
    known : indices of the identifiable targets; arrays have one row for each of them.
    W : weights of the identifiable targets, shape (known, answers).
    rank : rank of Q.
    fallback : see `Decoder`.
    """

    n: int
    answers: int
    rank: int
    fallback: bool
    known: list[int]
    W: FloatArray

    @property
    def exact(self) -> Exact:
        """Return the exact unbiased estimates; None for unidentifiable targets and for n = 0."""

    @property
    def shares(self) -> Exact | None:
        """Return the exact unbiased shares; None unless all are identifiable and n > 0."""

    @property
    def condition(self) -> float:
        """Return the condition number of Q, inf if Q is rank-deficient."""

    def moment(self) -> FloatArray:
        """Return the mean of d dᵀ."""

    def spread(self) -> FloatArray:
        """Return the mean of (d − d̄)(d − d̄)ᵀ, computed without cancellation at large n."""

    def truth_moments(self) -> FloatArray:
        """Return E[d_t²|x], shape (known, answers)."""

    def moment_at(self, p: FloatArray) -> FloatArray:
        """Return E[d dᵀ] if the true shares are p, shape (known, known)."""

    def share_moments(self, p: FloatArray) -> FloatArray:
        """Return E[s sᵀ] at true shares p, where s are the values that decode all shares.

        Shape (answers, answers). All shares must be identifiable.
        """

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """Return the least and the largest d of each known target."""

    def scores(self) -> list[Score]:
        """Return the scores (decoded values of single reports) of each known target; n ≥ 1."""

    def likelihood(self) -> tuple[Law, FloatArray] | None:
        """Return (columns of Q, each up to a factor, shape (answers, symbols); counts).

        Returns None if symbols were not stored or there are too many. Symbols without reports may
        be left out, because the likelihood does not depend on them.
        """

    def law(self) -> FloatArray | None:
        """Return Q as a matrix, shape (answers, reports), or None if it is too large to list."""

    def fit(self, best: FloatArray | None) -> float | None:
        """Return the p-value of the test of fit to the mechanism, None if no test is possible.

        best : the maximum-likelihood shares, None if they are not known.
        """


class Listed(Protocol):
    """A mechanism of which every symbol is counted; see `listed.ListedKind`."""

    @property
    def answers(self) -> int:
        """Number of answers."""

    @property
    def law(self) -> Law:
        """Q, as a matrix for a table and as its factors for a product."""

    @property
    def condition(self) -> float:
        """Condition number of Q."""

    def shares(self, counts: Sequence[int], prior: tuple[int, ...] | None) -> Exact:
        """Return the exact unbiased shares. All must be identifiable."""

    def share_decoder(self, prior: tuple[int, ...] | None) -> FloatArray:
        """Return the decoder of all shares, shape (answers, reports). All must be identifiable."""


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
        """See Evidence."""
        return self._law, np.array(self._counts, dtype=np.float64)

    def law(self) -> FloatArray:
        """See Evidence."""
        return self._law.dense if isinstance(self._law, Kronecker) else self._law

    def fit(self, best: FloatArray | None) -> float | None:
        """See Evidence."""
        return (
            None
            if best is None
            else fit_p(self._law, np.array(self._counts, dtype=np.float64), best, self.rank)
        )


class TableEvidence(ListedEvidence):
    """Counts per report symbol of a table, or of a product of tables (row-major)."""

    def __init__(self, kind: Listed, solved: Decoder, counts: Sequence[int]) -> None:
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
        """See Evidence."""
        if not self.n or self.rank < self.answers:
            return None
        if self._decoder.targets is shares(self.answers):
            return self.exact
        # The decoder has other targets, but projection and fit need the shares.
        return self._kind.shares(self._counts, self._decoder.design_prior)

    @property
    def condition(self) -> float:
        """See Evidence."""
        return np.inf if self.rank < self.answers else self._kind.condition

    def moment(self) -> FloatArray:
        """See Evidence."""
        return np.asarray((self._V * self._rates) @ self._V.T, dtype=np.float64)

    def spread(self) -> FloatArray:
        """See Evidence."""
        # Centred before squaring, because moment − mean·meanᵀ would lose all digits for large n.
        centred = self._V - (self._V @ self._rates)[:, None]
        return np.asarray((centred * self._rates) @ centred.T, dtype=np.float64)

    def truth_moments(self) -> FloatArray:
        """See Evidence."""
        return np.asarray(self._V**2 @ self.law().T, dtype=np.float64)

    def moment_at(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        return np.asarray((self._V * (p @ self._law)) @ self._V.T, dtype=np.float64)

    def share_moments(self, p: FloatArray) -> FloatArray:
        """See Evidence."""
        D = self._share_decoder
        return np.asarray((D * (p @ self._law)) @ D.T, dtype=np.float64)

    @cached_property
    def _share_decoder(self) -> FloatArray:
        """Return the decoder of all shares in floats, shape (answers, reports)."""
        if self._decoder.targets is shares(self.answers):
            return self._V
        return self._kind.share_decoder(self._decoder.design_prior)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """See Evidence."""
        return [(Fraction(min(row), scale), Fraction(max(row), scale)) for row, scale in self._rows]

    def scores(self) -> list[Score]:
        """See Evidence."""
        return self._scores(self._V, tuple(self.exact[t] for t in self.known))


def _floats(rows: Sequence[Sequence[Fraction]], width: int) -> FloatArray:
    return np.array([[float(v) for v in row] for row in rows], dtype=np.float64).reshape(
        len(rows), width
    )
