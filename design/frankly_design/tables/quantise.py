# SPDX-License-Identifier: Apache-2.0
"""Rounding to integers that the exact verifier accepts (spec 2.4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import floor
from typing import TypeVar

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_design.tables.limits import Poll, no_poll

BITS = 48
# The least positive η is 2^-44, the largest 2^-20. A table that needs more violates the notion by
# more than rounding can explain.
LEAST_SHIFT, MOST_SHIFT = 20, 44
# A finer choice of η would change figures by at most 1e-12, and each attempt costs a verification.
_SHIFT_STEP = 3
# Entries below this share of their row count as zeros of the optimum: generated columns have errors
# of this size, which differ between processors. 2^-44 is 16 units of a published weight.
_ZERO_SHIFT = 44
# Entries of a column count as equal if neighbours differ by less than this share of their size.
_EQUAL_SHIFT = 36
# A report rarer than 2^-20 would get almost no share of the mixture, and so no slack.
_RARE_SHIFT = 20

Rows = Sequence[Sequence[int]]
Interior = Callable[[Sequence[Sequence[bool]]], Rows | None]
"""Function from the support of a table, row = truth, to a table with the same support that is well
inside the notion; None if there is none."""
Accepted = TypeVar("Accepted")


@dataclass(frozen=True, slots=True)
class Quantised:
    """Verified mechanism.

    eta : share of the table mixed in. filled_zeros : number of zeros of the optimum that are not
    zeros of the mechanism.
    """

    mechanism: DenseMechanism
    eta: Fraction
    filled_zeros: int = 0


def no_interior(_support: Sequence[Sequence[bool]]) -> Rows | None:
    """Return None, so that zeros remain only where rounding alone suffices."""
    return None


def quantise(
    rows: Rows,
    claims: Sequence[Claim],
    prior: Sequence[int],
    bits: int = BITS,
    poll: Poll = no_poll,
    interior: Interior = no_interior,
) -> Quantised:
    """Round a mechanism on the boundary of its notion so that its claims provably hold.

    For some η in 0, 2^-44, 2^-41, …, 2^-20: mix Q' = (1−η)Q + η·M, and round each row to integers
    that sum to 2^bits by largest remainders (ties by index). Bisection finds the smallest η whose
    table the verifier accepts. All arithmetic is exact.

    If Q has no zeros, M = 1uᵀ, where u is the distribution of reports under the prior, or uniform
    if some report is rarer than 2^-20. If it has some, M is the result of `interior`, so that they
    stay zeros: a zero proves that an answer was not given, which must not depend on rounding. Only
    if no such table is accepted, M = 1uᵀ fills them.

    Rounding alone would break the claims of most optima, which lie on the boundary of the cone;
    mixing moves them inside (docs/maths/rounding.md).

    Parameters
    ----------
    rows : integers proportional to Q(·|x), one row per answer; every row has a positive sum.
    claims : claims that the result must satisfy.
    prior : counts of the answers.
    bits : 48 to publish, fewer for tests.
    poll : called before each attempt; an exception that it raises ends the search.
    interior : called if the rows have zeros and rounding alone breaks a claim.

    Raises
    ------
    InvalidInput(mechanism_not_certified) if even η = 2^-20 fails: the rows violate the notion by
        more than rounding can explain.
    """
    exact = _with_zeros(rows)
    support = [[v > 0 for v in row] for row in exact]
    if not all(map(all, support)):
        inside = cache(lambda: interior(support))  # not needed if η = 0 is accepted

        def with_zeros(eta: Fraction) -> list[tuple[int, ...]] | None:
            mixtures = inside() if eta else exact
            if mixtures is None:
                return None
            return [
                rounded(row, mixture, eta, bits)
                for row, mixture in zip(exact, mixtures, strict=True)
            ]

        accepted = _verified(with_zeros, claims, bits, poll)
        if accepted is not None:
            return accepted
    mixture = _mixture(rows, prior)
    # Relative to its probability, the rarest report is affected most by rounding.
    likely = bits + 2 - (sum(mixture) // min(mixture)).bit_length()
    filled = _verified(
        lambda eta: [rounded(row, mixture, eta, bits) for row in rows], claims, bits, poll, likely
    )
    return _counted(filled, support)


def quantise_by_columns(
    rows: Rows,
    claims: Sequence[Claim],
    prior: Sequence[int],
    bits: int = BITS,
    poll: Poll = no_poll,
) -> Quantised:
    """Round the entries of a low-rank table down, and add a report for the remainder of each row.

    Equal entries of a column stay equal. Different rounding errors would raise the rank, and the
    decoder would have to be unbiased for these errors too, at a great cost in variance.
    The added report is almost constant and has probability about η. Zeros are filled: tables with
    the same zeros would raise the rank too. Parameters and errors are those of `quantise`.
    """
    mixture = _mixture(rows, prior)
    total, u_total = max(map(sum, rows)), sum(mixture)

    def table(eta: Fraction) -> list[tuple[int, ...]]:
        # A share η/2 of the constant mechanism makes room for the rounding of each column.
        keep, mix = (1 - 3 * eta / 2) / total, eta / 2 / u_total
        weights = [
            [floor((keep * r + mix * u) * (1 << bits)) for r, u in zip(row, mixture, strict=True)]
            for row in rows
        ]
        return [(*row, (1 << bits) - sum(row)) for row in weights]

    return _counted(
        _verified(table, claims, bits, poll), [[v > 0 for v in row] for row in _with_zeros(rows)]
    )


def _verified(
    table: Callable[[Fraction], list[tuple[int, ...]] | None],
    claims: Sequence[Claim],
    bits: int,
    poll: Poll,
    likely: int = 45,
) -> Quantised | None:
    """Return the table with the smallest η that the verifier accepts; None if it accepts none."""

    def attempt(eta: Fraction) -> Quantised | None:
        poll()
        weights = table(eta)
        # With few bits a rare report can round to zero; a larger η restores it.
        if weights is None or not all(any(column) for column in zip(*weights, strict=True)):
            return None
        mechanism = DenseMechanism(bits, tuple(weights))
        try:
            require_private(mechanism, *claims)
        except DocumentRejected:
            return None
        return Quantised(mechanism, eta)

    return least_mixed(attempt, likely)


def _counted(accepted: Quantised | None, support: Sequence[Sequence[bool]]) -> Quantised:
    """Return the result with its number of filled zeros. Raises an error if there is no result."""
    if accepted is None:
        raise InvalidInput(
            Problem.MECHANISM_NOT_CERTIFIED,
            "rounding would break the promised level, so no mechanism was made: choose another "
            "level or the mechanism grr",
            "mechanism",
        )
    filled = sum(
        weight > 0 and not is_positive
        for weights, places in zip(accepted.mechanism.weights, support, strict=True)
        # A table of low rank has one more report, which is in no row of the support.
        for weight, is_positive in zip(weights, places, strict=False)
    )
    return replace(accepted, filled_zeros=filled)


def equalised(rows: Rows) -> list[list[int]]:
    """Return the rows with nearly equal entries of each column made equal.

    Which answers a table tells apart, and so its rank, must not depend on the solver's last digits.
    Entries count as equal if neighbours in sorted order differ by less than 2^-36 of their size.
    """
    columns = []
    for column in zip(*rows, strict=True):
        largest: dict[int, int] = {}  # for each entry, the largest one that counts as equal
        distinct = sorted(set(column), reverse=True)
        for above, value in pairwise([distinct[0], *distinct]):
            is_equal = (above - value) << _EQUAL_SHIFT < above
            largest[value] = largest.get(above, value) if is_equal else value
        columns.append([largest[value] for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def _with_zeros(rows: Rows) -> list[list[int]]:
    """Return the rows with 0 in place of entries below 2^-44 of their row."""
    return [
        [v if v << _ZERO_SHIFT >= total else 0 for v in row]
        for row, total in zip(rows, map(sum, rows), strict=True)
    ]


def least_mixed(
    attempt: Callable[[Fraction], Accepted | None], likely: int = 45
) -> Accepted | None:
    """Return the result of `attempt` for the smallest η that it accepts, by bisection.

    η is 0, 2^-44, 2^-41, …, 2^-20. Returns None if `attempt` refuses even the largest. More noise
    moves every column further inside the cone, so larger values of η are accepted too. If rounding
    breaks this rule for some η, the result is still an accepted one, but perhaps not at the
    smallest η.

    likely : exponent where the search starts; the closer to the result, the fewer attempts.
    """
    # η = 0 comes first: a table that is accepted without noise gets none.
    accepted = attempt(Fraction(0))
    if accepted is not None:
        return accepted
    shifts = range(LEAST_SHIFT, MOST_SHIFT + 1, _SHIFT_STEP)
    # Exponents up to `low` are accepted; those from `high` on are not.
    low, high, step = -1, len(shifts), 1
    i = min(max((likely - LEAST_SHIFT) // _SHIFT_STEP, 0), high - 1)
    while high - low > 1:
        attempted = attempt(Fraction(1, 1 << shifts[i]))
        low, high = (low, i) if attempted is None else (i, high)
        accepted = attempted or accepted
        i = max(i - step, min(i + step, (low + high) // 2))
        step *= 2
    return accepted


def _mixture(rows: Rows, prior: Sequence[int]) -> list[int]:
    """Return positive integers proportional to u."""
    # The sums of the rows differ only by float rounding, and the proof holds for any positive u.
    u = [
        sum(n * r for n, r in zip(prior, column, strict=True)) for column in zip(*rows, strict=True)
    ]
    return u if min(u) << _RARE_SHIFT >= sum(u) else [1] * len(u)


def rounded(
    row: Sequence[int], mixture: Sequence[int] = (), eta: Fraction = Fraction(0), bits: int = BITS
) -> tuple[int, ...]:
    """Round 2^bits · ((1−η)·row/Σrow + η·u/Σu) to integers that sum to 2^bits.

    Uses largest remainders, ties by index. mixture : integers proportional to u; default: equal.
    """
    mixture = mixture or [1] * len(row)
    total, u_total = sum(row), sum(mixture)
    keep, mix = (eta.denominator - eta.numerator) * u_total, eta.numerator * total
    common = eta.denominator * total * u_total
    exact = [
        divmod((keep * r + mix * u) << bits, common) for r, u in zip(row, mixture, strict=True)
    ]
    weights = [weight for weight, _ in exact]
    missing = (1 << bits) - sum(weights)
    # Ties stay in the order of indices, so that the same design always has the same weights.
    by_remainder = sorted(range(len(row)), key=[-remainder for _, remainder in exact].__getitem__)
    for y in by_remainder[:missing]:
        weights[y] += 1
    return tuple(weights)
