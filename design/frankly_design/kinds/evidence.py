# SPDX-License-Identifier: Apache-2.0
"""Evidence about the targets from the counts of one mechanism: the interface of all figures.

A report decodes to one value d per target, whose mean for answer x is the target's weight w_x.
Estimates are means of d over the reports. For each kind of mechanism, an evidence class computes
this mean (exactly) and the second moments of d from the counts.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from frankly_design.kinds.kronecker import Law
from frankly_design.kinds.scores import Score
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
