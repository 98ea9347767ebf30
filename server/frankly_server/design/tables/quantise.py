# SPDX-License-Identifier: Apache-2.0
"""Rounding to integers that the exact verifier accepts (spec 2.4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TypeVar

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_server.design.tables.limits import Poll, no_poll

BITS = 48
# The least positive η is 2^-44, the largest 2^-20. A table that needs more violates the notion by
# more than rounding can explain.
LEAST_SHIFT, MOST_SHIFT = 20, 44
# A finer choice of η would change figures by at most 1e-12, and each attempt costs a verification.
_SHIFT_STEP = 3
# A report rarer than 2^-20 would get almost no share of the mixture, and so no slack.
_RARE_SHIFT = 20

Rows = Sequence[Sequence[int]]
Accepted = TypeVar("Accepted")


@dataclass(frozen=True, slots=True)
class Quantised:
    """Verified mechanism; `eta` is the share of the constant mechanism in it."""

    mechanism: DenseMechanism
    eta: Fraction


def quantise(
    rows: Rows,
    claims: Sequence[Claim],
    prior: Sequence[int],
    bits: int = BITS,
    poll: Poll = no_poll,
) -> Quantised:
    """Round a mechanism on the boundary of its notion so that its claims provably hold.

    For some η in 0, 2^-44, 2^-41, …, 2^-20: mix Q' = (1−η)Q + η·1uᵀ, and round each row to integers
    that sum to 2^bits by largest remainders (ties by index). Bisection finds the smallest η whose
    table the verifier accepts. u is the distribution of reports under the prior, or uniform if some
    report is rarer than 2^-20. All arithmetic is exact.

    Rounding alone would break the claims of most optima, which lie on the boundary of the cone;
    mixing moves them inside (docs/maths/rounding.md).

    Parameters
    ----------
    rows : integers proportional to Q(·|x), one row per answer; every row has a positive sum.
    claims : claims that the result must satisfy.
    prior : counts of the answers.
    bits : 48 to publish, fewer for tests.
    poll : called before each attempt; an exception that it raises ends the search.

    Raises
    ------
    InvalidInput(mechanism_not_certified) if even η = 2^-20 fails: the rows violate the notion by
        more than rounding can explain.
    """
    mixture = _mixture(rows, prior)
    # Relative to its probability, the rarest report is affected most by rounding.
    likely = bits + 2 - (sum(mixture) // min(mixture)).bit_length()
    return _verified(
        lambda eta: [rounded(row, mixture, eta, bits) for row in rows], claims, bits, poll, likely
    )


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
    The added report is almost constant and has probability about η. Parameters and errors are those
    of `quantise`.
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

    return _verified(table, claims, bits, poll)


def _verified(
    table: Callable[[Fraction], list[tuple[int, ...]]],
    claims: Sequence[Claim],
    bits: int,
    poll: Poll,
    likely: int = 45,
) -> Quantised:
    """Return the table with the smallest η that the verifier accepts."""

    def attempt(eta: Fraction) -> Quantised | None:
        poll()
        weights = table(eta)
        if not all(any(column) for column in zip(*weights, strict=True)):
            return None  # with few bits a rare report can round to zero; a larger η restores it
        mechanism = DenseMechanism(bits, tuple(weights))
        try:
            require_private(mechanism, *claims)
        except DocumentRejected:
            return None
        return Quantised(mechanism, eta)

    accepted = least_mixed(attempt, likely)
    if accepted is None:
        raise InvalidInput(
            Problem.MECHANISM_NOT_CERTIFIED,
            "rounding would break the promised level, so no mechanism was made: choose another "
            "level or the mechanism grr",
            "mechanism",
        )
    return accepted


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
    row: Sequence[int],
    mixture: Sequence[int] = (),
    eta: Fraction = Fraction(0),
    bits: int = BITS,
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
