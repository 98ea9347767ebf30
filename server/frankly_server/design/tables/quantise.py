# SPDX-License-Identifier: Apache-2.0
"""Rounding to whole numbers that the exact verifier accepts (spec 2.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

BITS = 48
# The least positive η is 2^-50, the largest 2^-20: a table that needs more violates the notion by
# more than rounding does.
LEAST_SHIFT, MOST_SHIFT = 20, 50
# A report rarer than 2^-20 would get almost no share of the mixture, and hence no slack.
_RARE_SHIFT = 20

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Quantised:
    """Verified mechanism; `eta` is the share of the constant mechanism mixed into it."""

    mechanism: DenseMechanism
    eta: Fraction


def quantise(
    rows: Rows,
    claims: Sequence[Claim],
    prior: Sequence[int],
    bits: int = BITS,
) -> Quantised:
    """Round a mechanism on the boundary of its notion so that it provably keeps its promise.

    For η in 0, 2^-50, 2^-49, …, 2^-20: mix Q' = (1−η)Q + η·1uᵀ, round each row to whole numbers
    that sum to 2^bits by largest remainders (ties by index), and stop at the first table that the
    verifier accepts. u is the distribution of reports under the prior, or uniform if some report is
    rarer than 2^-20. All arithmetic is exact.

    Rounding alone breaks most optima, because they lie on the boundary of the cone; mixing moves
    them inside (docs/maths/rounding.md).

    Parameters
    ----------
    rows : whole numbers proportional to Q(·|x), one row per answer; every row has a positive sum.
    claims : the result satisfies all of them.
    prior : counts of the answers.
    bits : 48 to publish, fewer for tests.

    Raises
    ------
    InvalidInput(mechanism_not_certified) if even η = 2^-20 fails: the rows violate the notion by
    more than rounding does.
    """
    mixture = _mixture(rows, prior)
    for eta in _mixing_shares():
        weights = [_rounded(row, mixture, eta, bits) for row in rows]
        if not all(any(column) for column in zip(*weights, strict=True)):
            continue  # with few bits a rare report can round to zero; a larger η restores it
        mechanism = DenseMechanism(bits, tuple(weights))
        try:
            require_private(mechanism, *claims)
        except DocumentRejected:
            continue
        return Quantised(mechanism, eta)
    raise _not_certified()


def quantise_by_columns(
    rows: Rows, claims: Sequence[Claim], prior: Sequence[int], bits: int = BITS
) -> Quantised:
    """Round a table of low rank down, entry by entry, and add a report for each row's remainder.

    Equal entries of a column stay equal. Rounding errors that differ would raise the rank, and the
    decoder would have to be unbiased for these errors too, at a great cost in variance.
    The added report is almost constant and has a probability of about η. Parameters and errors are
    those of `quantise`.
    """
    mixture = _mixture(rows, prior)
    total, u_total = max(map(sum, rows)), sum(mixture)
    for eta in _mixing_shares():
        # A share η/2 of the constant mechanism makes room for the rounding of each column.
        keep, mix = (1 - 3 * eta / 2) / total, eta / 2 / u_total
        weights = [
            [floor((keep * r + mix * u) * (1 << bits)) for r, u in zip(row, mixture, strict=True)]
            for row in rows
        ]
        table = [(*row, (1 << bits) - sum(row)) for row in weights]
        if not all(any(column) for column in zip(*table, strict=True)):
            continue
        mechanism = DenseMechanism(bits, tuple(table))
        try:
            require_private(mechanism, *claims)
        except DocumentRejected:
            continue
        return Quantised(mechanism, eta)
    raise _not_certified()


def _not_certified() -> InvalidInput:
    message = (
        "rounding would break the promised level, so no mechanism was made: choose another "
        "level or the mechanism grr"
    )
    return InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, message, "mechanism")


def _mixing_shares() -> Iterator[Fraction]:
    # 0 first: a table that is accepted without noise gets none.
    yield Fraction(0)
    for shift in range(MOST_SHIFT, LEAST_SHIFT - 1, -1):
        yield Fraction(1, 1 << shift)


def _mixture(rows: Rows, prior: Sequence[int]) -> list[int]:
    """Return whole numbers proportional to u, all positive."""
    # The rows' sums differ by float rounding only, and the proof holds for any positive u.
    u = [
        sum(n * r for n, r in zip(prior, column, strict=True)) for column in zip(*rows, strict=True)
    ]
    return u if min(u) << _RARE_SHIFT >= sum(u) else [1] * len(u)


def rounded(row: Sequence[int], bits: int = BITS) -> tuple[int, ...]:
    """Round `row` to whole numbers that sum to 2^bits: largest remainders, ties by index."""
    return _rounded(row, [1] * len(row), Fraction(0), bits)


def _rounded(
    row: Sequence[int],
    mixture: Sequence[int],
    eta: Fraction,
    bits: int,
) -> tuple[int, ...]:
    """Round 2^bits · ((1−η)·row/Σrow + η·u/Σu) to whole numbers that sum to 2^bits."""
    total, u_total = sum(row), sum(mixture)
    keep, mix = (eta.denominator - eta.numerator) * u_total, eta.numerator * total
    common = eta.denominator * total * u_total
    exact = [(keep * r + mix * u) << bits for r, u in zip(row, mixture, strict=True)]
    weights = [v // common for v in exact]
    missing = (1 << bits) - sum(weights)
    # Ties are broken by index, so that the same design has the same weights in every run.
    by_remainder = sorted(range(len(row)), key=lambda y: (-(exact[y] % common), y))
    for y in by_remainder[:missing]:
        weights[y] += 1
    return tuple(weights)
