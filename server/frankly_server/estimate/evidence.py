# SPDX-License-Identifier: Apache-2.0
"""What the counts of one mechanism say about the targets, in the one form that every figure is computed from.

Each report decodes to one value per target, d with E[d|x] = w_x; estimates are means of d. A kind of mechanism says how
its counts give the mean (exactly) and the second moments of d; nothing else of it is needed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from numpy.typing import NDArray

from frankly_server.estimate.decoder import (
    Decoder,
    Table,
    decoder,
    factor_decoders,
    product_shares,
    shares,
)
from frankly_server.estimate.kronecker import Kronecker, Law
from frankly_server.estimate.likelihood import fit_p
from frankly_server.estimate.scores import MOST_LAWS, Score, listed_score

FloatArray = NDArray[np.float64]
Exact = tuple[Fraction | None, ...]


def of_shares(shares: Exact | None, targets: Sequence[Sequence[Fraction]]) -> Exact:
    """Return W·p̂ exactly for every row of the targets, from the shares p̂ of the answers; None where there are none."""
    if shares is None:
        return (None,) * len(targets)
    p = [share for share in shares if share is not None]
    return tuple(sum((w * v for w, v in zip(row, p, strict=True) if w), Fraction(0)) for row in targets)


class Evidence(Protocol):
    """Counts and their mechanism. `known` lists the identifiable targets; arrays have one row for each of them."""

    n: int
    answers: int
    rank: int
    fallback: bool
    known: list[int]
    W: FloatArray

    @property
    def exact(self) -> Exact:
        """The exact unbiased estimate of every target, None where there is none."""

    @property
    def shares(self) -> Exact | None:
        """The exact unbiased share of every answer, None if not all are identifiable or there are no reports."""

    @property
    def condition(self) -> float:
        """The condition number of Q, inf if it is deficient."""

    def moment(self) -> FloatArray:
        """Return the mean of d dᵀ."""

    def spread(self) -> FloatArray:
        """Return the mean of (d − d̄)(d − d̄)ᵀ, computed so that nothing cancels at large n."""

    def truth_moments(self) -> FloatArray:
        """Return E[d_t²|x], shape (known, answers)."""

    def moment_at(self, p: FloatArray) -> FloatArray:
        """Return E[d dᵀ] if the true shares are p, shape (known, known)."""

    def share_moments(self, p: FloatArray) -> FloatArray:
        """Return E[s sᵀ] if the true shares are p, where s is what a report decodes to for every answer.

        Shape (answers, answers). Only for evidence of which all shares are identifiable.
        """

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """Return the least and the largest d of each known target."""

    def scores(self) -> list[Score]:
        """Return what single reports decode to, for each known target; not needed without reports."""

    def likelihood(self) -> tuple[Law, FloatArray] | None:
        """Return (columns of Q, each up to a factor, shape (answers, seen), counts), None where symbols were not kept.

        Symbols that nobody sent may be left out: what is likeliest does not depend on them.
        """

    def law(self) -> FloatArray | None:
        """Return Q whole, shape (answers, reports), or None where that is too large to list."""

    def fit(self, best: FloatArray | None) -> float | None:
        """Return the p-value of a test whether such reports can come from the mechanism; None if nothing can be tested.

        best : the likeliest shares, where known.
        """


def law_of(mechanism: Table) -> Law:
    """Return Q of a table whole, of a product as its factors."""
    if isinstance(mechanism, ProductMechanism):
        return Kronecker([_law(factor) for factor in mechanism.factors])
    return _law(mechanism)


def condition_of(mechanism: Table) -> float:
    """Return the condition number of Q: singular values of a Kronecker product are the products of its factors'."""
    factors = [mechanism] if isinstance(mechanism, DenseMechanism) else mechanism.factors
    return float(np.prod([np.linalg.cond(np.array(factor.weights, dtype=np.float64)) for factor in factors]))


class Likely:
    """What follows from counts per report symbol and Q alone, whichever way the rest is computed."""

    answers: int
    rank: int
    _law: Law
    _counts: tuple[int, ...]

    def _scores(self, V: FloatArray, means: Exact) -> list[Score]:
        """Return the scores that V decodes to, one row and one observed mean per known target."""
        law = self.law() if len(V) * self.answers * len(self._counts) <= MOST_LAWS else None
        return [listed_score(mean, row, self._counts, law) for mean, row in zip(means, V, strict=True)]

    def likelihood(self) -> tuple[Law, FloatArray] | None:
        """See Evidence."""
        return self._law, np.array(self._counts, dtype=np.float64)

    def law(self) -> FloatArray:
        """See Evidence."""
        return self._law.dense if isinstance(self._law, Kronecker) else self._law

    def fit(self, best: FloatArray | None) -> float | None:
        """See Evidence."""
        return None if best is None else fit_p(self._law, np.array(self._counts, dtype=np.float64), best, self.rank)


class TableEvidence(Likely):
    """Counts per report symbol of a table, or of a product of tables (symbols in row-major order)."""

    def __init__(self, found: Decoder, counts: Sequence[int]) -> None:
        self._found, self._counts = found, tuple(counts)
        mechanism = found.mechanism
        self.n, self.answers, self.rank, self.fallback = sum(counts), mechanism.answers, found.rank, found.fallback
        self.known = [t for t, row in enumerate(found.rows) if row is not None]
        self._rows = [row for row in found.whole if row is not None]
        self.W = _floats([found.targets[t] for t in self.known], mechanism.answers)
        self._V = found.floats()
        self._law = law_of(mechanism)
        self._rates = np.array([c / max(self.n, 1) for c in self._counts])
        self.exact: Exact = found.apply(self._counts)

    @cached_property
    def shares(self) -> Exact | None:
        """See Evidence."""
        if not self.n or self.rank < self.answers:
            return None
        if self._found.targets is shares(self.answers):
            return self.exact
        mechanism, prior = self._found.mechanism, self._found.design_prior
        parts = factor_decoders(mechanism, prior) if isinstance(mechanism, ProductMechanism) else None
        if parts is not None:
            return product_shares(parts, self._counts)
        return decoder(mechanism, shares(self.answers), prior).apply(self._counts)

    @property
    def condition(self) -> float:
        """See Evidence."""
        return np.inf if self.rank < self.answers else condition_of(self._found.mechanism)

    def moment(self) -> FloatArray:
        """See Evidence."""
        return np.asarray((self._V * self._rates) @ self._V.T, dtype=np.float64)

    def spread(self) -> FloatArray:
        """See Evidence."""
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
        """What reports decode to for every answer, shape (answers, reports)."""
        found = self._found
        if found.targets is shares(self.answers):
            return self._V
        mechanism, prior = found.mechanism, found.design_prior
        parts = factor_decoders(mechanism, prior) if isinstance(mechanism, ProductMechanism) else None
        found_parts = [decoder(mechanism, shares(self.answers), prior)] if parts is None else parts
        return np.asarray(Kronecker([part.floats() for part in found_parts]).dense, dtype=np.float64)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        """See Evidence."""
        return [(Fraction(min(row), scale), Fraction(max(row), scale)) for row, scale in self._rows]

    def scores(self) -> list[Score]:
        """See Evidence."""
        return self._scores(self._V, tuple(self.exact[t] for t in self.known))


def _law(table: DenseMechanism) -> FloatArray:
    return np.array([[w / table.denominator for w in row] for row in table.weights])


def _floats(rows: Sequence[Sequence[Fraction]], width: int) -> FloatArray:
    return np.array([[float(v) for v in row] for row in rows], dtype=np.float64).reshape(len(rows), width)
