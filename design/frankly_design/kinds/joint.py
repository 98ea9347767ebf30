# SPDX-License-Identifier: Apache-2.0
"""Joint tables of independently randomised blocks, some of which report sets of answers.

For each cell, the decoded value of a report is the product of its blocks' decoded values. The mean
of this product is 1 if the cell is the truth and 0 otherwise, because the blocks' symbols are
independent given the answers. Reports with equal symbols are one entry of the tally, so computing
time grows only with the number of distinct reports.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.mechanisms.radix import number_of
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.kinds.decoder import Targets
from frankly_design.kinds.evidence import Evidence, Exact, of_shares
from frankly_design.kinds.kind import (
    Checked,
    Estimable,
    Factor,
    FactorKind,
    Kind,
    Stored,
    Tally,
    invalid_counts,
)
from frankly_design.kinds.likelihood import fit_p
from frankly_design.kinds.product import corners, margins
from frankly_design.kinds.scores import MOST_LAWS, Score, groups_of, informative, listed_score
from frankly_design.kinds.set_law import SetMechanism
from frankly_design.kinds.sets import MOST_LISTED, MOST_SEEN
from frankly_design.numeric.arrays import FloatArray, IntArray

# Second moments need arrays with cells² entries for the table and answers³ entries for a block.
MOST_CELLS, MOST_ANSWERS = 1024, 160
_CHUNK = 4096  # distinct reports decoded at a time, which bounds the memory


@dataclass(frozen=True, slots=True)
class Joint:
    """Blocks answered by the same people and randomised independently.

    Joint answers are row-major: the answer of the last block varies fastest.

    Raises InvalidInput(unsupported) for more than 1024 joint answers, or 160 of one block.
    """

    blocks: tuple[DenseMechanism | SetMechanism, ...]

    def __post_init__(self) -> None:
        if self.answers > MOST_CELLS or max(block.answers for block in self.blocks) > MOST_ANSWERS:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"a joint table with sets has at most {MOST_CELLS} answers, and {MOST_ANSWERS} per "
                "block: name fewer questions",
                "targets",
            )

    @property
    def answers(self) -> int:
        """Return the number of joint answers."""
        return prod(block.answers for block in self.blocks)


class JointKind(Estimable):
    """Several blocks together."""

    mechanism: Joint

    def __init__(self, joint: Joint, kinds: Sequence[FactorKind]) -> None:
        self.mechanism, self._kinds = joint, kinds

    @property
    def answers(self) -> int:
        return self.mechanism.answers

    @property
    def factors(self) -> tuple[Mechanism, ...]:
        return self.mechanism.blocks

    @property
    def size(self) -> int:
        return prod(block.reports for block in self.mechanism.blocks)

    def index(self, key: Sequence[int]) -> int:
        return number_of(key, (block.reports for block in self.mechanism.blocks))

    def counts(self, n: int, stored: Stored) -> Tally:
        return dict(stored)

    def checked(self, counts: Tally) -> Checked:
        if not isinstance(counts, Mapping) or any(
            type(n) is not int or n < 0 for n in counts.values()
        ):
            raise invalid_counts("give a number of reports for each tuple of the blocks' symbols")
        return dict(counts)

    def nothing_yet(self) -> Checked:
        return {}

    def evidence(self, counts: Any, targets: Targets, prior: tuple[int, ...] | None) -> Evidence:
        return JointEvidence(self._kinds, targets, counts, prior)

    @property
    def rank(self) -> int:
        return prod(kind.rank for kind in self._kinds)

    def separately(self, prior: tuple[int, ...]) -> list[tuple[Kind, tuple[int, ...]]]:
        of_blocks = margins([kind.answers for kind in self._kinds], prior)
        return [(kind, margin or ()) for kind, margin in zip(self._kinds, of_blocks, strict=True)]


Source = Mechanism | Joint
"""Source of reports: one mechanism, or several independent ones considered together."""


class JointEvidence:
    """Evidence from counts of tuples of symbols, one per block; see `evidence.Evidence`.

    Raises InvalidInput: not_identifiable if some share of a single block is not identifiable;
    counts_invalid.
    """

    def __init__(
        self,
        kinds: Sequence[FactorKind],
        targets: Targets,
        tally: Mapping[tuple[int, ...], int],
        prior: tuple[int, ...] | None,
    ) -> None:
        self._targets, self._sizes = targets, tuple(kind.answers for kind in kinds)
        self._factors = [
            kind.factor(margin)
            for kind, margin in zip(kinds, margins(self._sizes, prior), strict=True)
        ]
        if not all(factor.identifiable for factor in self._factors):
            raise InvalidInput(
                Problem.NOT_IDENTIFIABLE,
                "one block cannot distinguish all its answers: leave it out of the table",
                "targets",
            )
        self._symbols = sorted(symbol for symbol, n in tally.items() if n)
        _check(self._factors, self._symbols)
        self._counts = np.array([tally[symbol] for symbol in self._symbols], dtype=np.int64)
        self.n, self.fallback = int(self._counts.sum()), False
        self.answers = self.rank = prod(self._sizes)  # full rank, as checked above
        self.known = list(range(len(targets)))
        self.W = np.array([[float(w) for w in row] for row in targets]).reshape(
            len(targets), self.answers
        )

    @cached_property
    def shares(self) -> Exact | None:
        if not self.n:
            return None
        # dtype=object stores exact fractions. The decoders are applied to the sufficient statistic,
        # because applying them to every report would be slow.
        decoded: NDArray[np.object_] = self._statistic().astype(object)
        for factor in self._factors:
            # Each step decodes the first axis and moves it to the end, so all steps together
            # restore the order.
            decoded = np.tensordot(decoded, np.array(factor.decoder, dtype=object), axes=([0], [1]))
        return tuple(Fraction(v) / self.n for v in decoded.reshape(-1))

    @cached_property
    def exact(self) -> Exact:
        return of_shares(self.shares, self._targets)

    @property
    def condition(self) -> float:
        return prod(factor.condition for factor in self._factors)

    def moment(self) -> FloatArray:
        return self._second(np.zeros(len(self._targets)))

    def spread(self) -> FloatArray:
        return self._second(np.array([float(v) for v in self.exact if v is not None]))

    def truth_moments(self) -> FloatArray:
        cells, other_cells, truths, moment_axes = _letters(len(self._sizes))
        moments = [factor.moments() for factor in self._factors]
        second_moments = np.empty((len(self._targets), self.answers))
        # One target at a time, to limit the memory.
        for t, row in enumerate(self.W.reshape(-1, *self._sizes)):
            terms = f"{cells},{other_cells},{moment_axes}->{truths}"
            second_moments[t] = np.einsum(terms, row, row, *moments, optimize=True).reshape(-1)
        return second_moments

    def moment_at(self, p: FloatArray) -> FloatArray:
        return np.asarray(self.W @ self.share_moments(p) @ self.W.T, dtype=np.float64)

    def share_moments(self, p: FloatArray) -> FloatArray:
        cells, other_cells, truths, moment_axes = _letters(len(self._sizes))
        moments = [factor.moments() for factor in self._factors]
        terms = f"{truths},{moment_axes}->{cells}{other_cells}"
        second_moments = np.einsum(terms, p.reshape(self._sizes), *moments, optimize=True)
        return np.asarray(second_moments.reshape(self.answers, self.answers), dtype=np.float64)

    def ends(self) -> list[tuple[Fraction, Fraction]]:
        # For a target of several cells these are outer bounds, because no single report may be
        # extreme for all of them.
        cells = [
            reduce(corners, [f.ends[x] for f, x in zip(self._factors, cell, strict=True)])
            for cell in np.ndindex(*self._sizes)
        ]
        bounds = []
        for row in self._targets:
            reach = [
                (w * low, w * high) if w > 0 else (w * high, w * low)
                for w, (low, high) in zip(row, cells, strict=True)
                if w
            ]
            low = sum((low for low, _ in reach), Fraction(0))
            high = sum((high for _, high in reach), Fraction(0))
            # Exact fractions, because guaranteed intervals are computed from these bounds.
            bounds.append((low, high))
        return bounds

    def scores(self) -> list[Score]:
        # If there are too many possible reports to list, only the received ones are decoded.
        law, means = self.law(), [float(v or 0) for v in self.exact]
        if law is None:
            ends = [(float(low), float(high)) for low, high in self.ends()]
            rows = zip(means, ends, self._informative_counts(), strict=True)
            return [Score(mean, reach, informative=number) for mean, reach, number in rows]
        values = reduce(_kronecker, (f.values(list(f.mechanism.symbols())) for f in self._factors))
        listed = law if len(self.W) * law.size <= MOST_LAWS else None
        counts = [int(n) for n in self._listed_counts()]
        return [
            listed_score(mean, row, counts, listed)
            for mean, row in zip(means, self.W @ values, strict=True)
        ]

    def likelihood(self) -> tuple[FloatArray, FloatArray] | None:
        if not self.n or len(self._symbols) * self.answers > MOST_SEEN:
            return None
        columns = [factor.columns(symbols) for factor, symbols in self._by_block(slice(None))]
        return reduce(_rowwise, columns), self._counts.astype(np.float64)

    def law(self) -> FloatArray | None:
        if prod(factor.mechanism.reports for factor in self._factors) > MOST_LISTED:
            return None
        return reduce(_kronecker, (factor.law() for factor in self._factors))

    def fit(self, best: FloatArray | None) -> float | None:
        law = self.law()
        if law is None or best is None:
            return None
        return fit_p(law, self._listed_counts().astype(np.float64), best, self.rank)

    def _listed_counts(self) -> IntArray:
        """Return the counts of all possible tuples of symbols, row-major, including zeros."""
        # Symbols without reports count as 0, because the test of fit compares all symbols.
        index_of = [
            {y: i for i, y in enumerate(factor.mechanism.symbols())} for factor in self._factors
        ]
        counts = np.zeros([len(index) for index in index_of], dtype=np.int64)
        for symbol, n in zip(self._symbols, self._counts, strict=True):
            counts[tuple(index[y] for index, y in zip(index_of, symbol, strict=True))] = n
        return counts.reshape(-1)

    def _informative_counts(self) -> list[int | None]:
        """Return `Score.informative` of each target; None for too many distinct reports."""
        if not self.n or len(self.W) * len(self._symbols) > MOST_LAWS:
            return [None] * len(self.W)
        values = [factor.values(symbols) for factor, symbols in self._by_block(slice(None))]
        counts = [int(n) for n in self._counts]
        return [informative(groups_of(row), counts) for row in self.W @ reduce(_rowwise, values)]

    def _by_block(self, chunk: slice) -> Iterator[tuple[Factor, list[int]]]:
        """Yield each block's factor with its symbols in a chunk of the reports."""
        for j, factor in enumerate(self._factors):
            yield factor, [symbol[j] for symbol in self._symbols[chunk]]

    def _chunks(self) -> Iterator[slice]:
        return (slice(start, start + _CHUNK) for start in range(0, len(self._symbols), _CHUNK))

    def _statistic(self) -> IntArray:
        """Return the sufficient statistic: sums over reports of products of the blocks' features.

        The sums are integers, in an array with one axis per block.
        """
        total: IntArray = np.zeros([factor.width for factor in self._factors], dtype=np.int64)
        for chunk in self._chunks():
            features = [factor.features(symbols) for factor, symbols in self._by_block(chunk)]
            # The counts enter only once, with the features of the last block.
            features[-1] = features[-1] * self._counts[chunk]
            products = (
                reduce(_rowwise, features[:-1])
                if len(features) > 1
                else np.ones((1, len(self._counts[chunk])), dtype=np.int64)
            )
            total += (products @ features[-1].T).reshape(total.shape)
        return total

    def _second(self, centre: FloatArray) -> FloatArray:
        """Return the mean of (d − centre)(d − centre)ᵀ."""
        total = np.zeros((len(self._targets), len(self._targets)))
        for chunk in self._chunks():
            values = [factor.values(symbols) for factor, symbols in self._by_block(chunk)]
            # Centred before squaring: subtracting a large square from large moments would lose
            # digits.
            d = self.W @ reduce(_rowwise, values) - centre[:, None]
            total += (d * self._counts[chunk]) @ d.T
        return total / max(self.n, 1)


def _check(factors: Sequence[Factor], symbols: Sequence[tuple[int, ...]]) -> None:
    for symbol in symbols:
        if len(symbol) != len(factors) or not all(
            f.knows(y) for f, y in zip(factors, symbol, strict=True)
        ):
            raise InvalidInput(
                Problem.COUNTS_INVALID,
                "each tuple contains one symbol per block, which that block can send",
                "counts",
            )


def _letters(blocks: int) -> tuple[str, str, str, str]:
    """Return the `einsum` letters of a cell, another cell, a truth, and all blocks' moments."""
    cells, other_cells, truths = (ascii_letters[i * blocks : (i + 1) * blocks] for i in range(3))
    moment_axes = ",".join(x + c + d for x, c, d in zip(truths, cells, other_cells, strict=True))
    return cells, other_cells, truths, moment_axes


def _kronecker(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.kron(left, right), dtype=np.float64)


def _rowwise(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the products of all pairs of rows, column by column (Khatri-Rao product)."""
    return np.asarray((left[:, None, :] * right[None, :, :]).reshape(-1, left.shape[1]))
