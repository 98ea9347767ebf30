# SPDX-License-Identifier: Apache-2.0
"""From a table of proportions to whole numbers that the exact verifier accepts (DESIGN §3.4, THREATS §3.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

BITS = 48
LEAST_SHIFT, MOST_SHIFT = 20, 50
_RARE_SHIFT = 20

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Quantised:
    """A mechanism that keeps its claim, and how much of it is the constant mechanism that was mixed in."""

    mechanism: DenseMechanism
    eta: Fraction


def quantise(rows: Rows, claims: Sequence[Claim], prior: Sequence[int], bits: int = BITS) -> Quantised:
    """Round a mechanism that sits on the boundary of its notion so that it provably keeps its promise.

    For η in 0, 2^-50, 2^-49, …, 2^-20: mix Q' = (1−η)Q + η·1uᵀ, round each row to whole numbers that sum to 2^bits by
    largest remainders (ties by index), and stop at the first that the verifier accepts. u is the distribution of
    reports under the prior, or uniform where some report is rarer than 2^-20. All in Python ints.

    Parameters
    ----------
    rows : whole numbers proportional to Q(·|x), one row per answer; every row has a positive sum.
    claims : what the result must keep, all of it. prior : counts of the answers. bits : 48 to publish, fewer for tests.

    Raises
    ------
    InvalidInput(mechanism_not_certified) if even η = 2^-20 fails: the rows are not a mechanism of the notion.
    """
    mixture = _mixture(rows, prior)
    for eta in _etas():
        weights = [_rounded(row, mixture, eta, bits) for row in rows]
        if not all(any(column) for column in zip(*weights, strict=True)):
            continue  # with few bits a rare report can round away; a larger share of u brings it back
        mechanism = DenseMechanism(bits, tuple(weights))
        try:
            require_private(mechanism, *claims)
        except DocumentRejected:
            continue
        return Quantised(mechanism, eta)
    words = "rounding would break the promised level, so nothing was made: choose another level or the mechanism grr"
    raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, words, "mechanism")


def _etas() -> Iterator[Fraction]:
    yield Fraction(0)
    for shift in range(MOST_SHIFT, LEAST_SHIFT - 1, -1):
        yield Fraction(1, 1 << shift)


def _mixture(rows: Rows, prior: Sequence[int]) -> list[int]:
    """Return whole numbers proportional to u, all positive."""
    # The rows' sums differ by float rounding only, which does not matter here: any positive u will do.
    u = [sum(n * r for n, r in zip(prior, column, strict=True)) for column in zip(*rows, strict=True)]
    return u if min(u) << _RARE_SHIFT >= sum(u) else [1] * len(u)


def rounded(row: Sequence[int], bits: int = BITS) -> tuple[int, ...]:
    """Return whole numbers in about the proportions of `row` that sum to 2^bits: largest remainders, ties by index."""
    return _rounded(row, [1] * len(row), Fraction(0), bits)


def _rounded(row: Sequence[int], mixture: Sequence[int], eta: Fraction, bits: int) -> tuple[int, ...]:
    """Round 2^bits · ((1−η)·row/Σrow + η·u/Σu) to whole numbers that sum to 2^bits."""
    total, u_total = sum(row), sum(mixture)
    keep, mix = (eta.denominator - eta.numerator) * u_total, eta.numerator * total
    common = eta.denominator * total * u_total
    exact = [(keep * r + mix * u) << bits for r, u in zip(row, mixture, strict=True)]
    weights = [v // common for v in exact]
    missing = (1 << bits) - sum(weights)
    by_remainder = sorted(range(len(row)), key=lambda y: (-(exact[y] % common), y))
    for y in by_remainder[:missing]:
        weights[y] += 1
    return tuple(weights)
