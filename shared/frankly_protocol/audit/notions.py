# SPDX-License-Identifier: Apache-2.0
"""Exact verification of privacy notions on integer mechanisms (DESIGN §2, §3.3; THREATS §3.3).

Each notion asks, for every report's column w, that A·w ≤ E·B·w for pairs (A, B) of averages over answers:

- ``ldp``         A = e_x, B = e_x'                         (ε-LDP of the answer)
- ``secret-ldp``  A = P(·|s), B = P(·|s')                   (Funnel, Definition 1)
- ``lip``         A = P(·|s), B = P, and the reverse        (Funnel, Definition 2)

Only Python integers are compared; Funnel writes Q transposed (b×a), we write row = truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit.claims import NOTIONS, Claim, Joint
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.mechanisms import DenseMechanism

AVERAGE = -1
"""Stands in a pair for the prior's average over all secrets."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest ratio a mechanism shows, None for infinite, and where.

    pair holds two answers (ldp) or two secrets; AVERAGE stands for the prior's average.
    """

    ratio: Fraction | None
    report: int
    pair: tuple[int, int]


def require_private(mechanism: DenseMechanism, claim: Claim) -> None:
    """Raise DocumentRejected("privacy") unless the mechanism keeps its claim, in exact arithmetic."""
    p, q = claim.level or (0, 0)
    if not all(type(v) is int and 0 < v <= MAX_INT for v in (p, q)) or p < q:
        raise DocumentRejected("privacy", "a level is a ratio p/q ≥ 1 of positive whole numbers below 2^53", "level")
    found = worst(mechanism, claim)
    if found.ratio is None or found.ratio * q > p:
        needed = "no finite ratio can be promised" if found.ratio is None else f"{found.ratio} is needed"
        raise DocumentRejected("privacy", f"report {found.report}: {needed}, {Fraction(p, q)} is promised", "level")


def worst(mechanism: DenseMechanism, claim: Claim) -> Worst:
    """Return the ratio exp(ε) that the mechanism really needs for a claim, with the report and pair that need it.

    Raises UnsupportedDocument for an unknown notion, DocumentRejected("privacy") for a prior that does not fit.
    """
    if claim.notion not in NOTIONS:
        raise UnsupportedDocument(f"unknown notion; this version knows {', '.join(NOTIONS)}: update the app", "notion")
    if claim.notion == "ldp":
        candidates = _answer_ratios(mechanism)
    else:
        candidates = _secret_ratios(mechanism, _checked(claim.joint, mechanism.answers), average=claim.notion == "lip")
    top, bottom, report, pair = 1, 1, 0, (0, 0)
    for n, d, y, where in candidates:
        if n * bottom > top * d:
            top, bottom, report, pair = n, d, y, where
    return Worst(Fraction(top, bottom) if bottom else None, report, pair)


def ceiling(mechanism: DenseMechanism) -> Fraction | None:
    """Return max over reports of max_x Q / min_x Q: the leakage under every prior; None if infinite (DESIGN §3.6)."""
    return worst(mechanism, Claim("ldp", (1, 1))).ratio


def is_endless(ratio: Fraction | None) -> bool:
    """Tell whether a ceiling is as good as none: infinite, or beyond 2^24 (16.6 nats).

    Rounding turns some zeros of an optimum into a few units of 2^-48. Such a report rules an answer out all the same,
    so people are told the same.
    """
    return ratio is None or ratio > 1 << 24


_Ratio = tuple[int, int, int, tuple[int, int]]


def _answer_ratios(mechanism: DenseMechanism) -> Iterator[_Ratio]:
    for y, column in enumerate(zip(*mechanism.weights, strict=True)):
        high, low = max(column), min(column)
        yield high, low, y, (column.index(high), column.index(low))


def _secret_ratios(mechanism: DenseMechanism, joint: Joint, *, average: bool) -> Iterator[_Ratio]:
    """Yield the extreme ratios of each column; P(y|s) = A_s / N_s with A_s = Σ_x w_x N[s][x]."""
    sizes = [sum(row) for row in joint]
    everyone = sum(sizes)
    for y, column in enumerate(zip(*mechanism.weights, strict=True)):
        sums = [sum(w * n for w, n in zip(column, row, strict=True) if n) for row in joint]
        high = low = 0
        for s in range(1, len(sizes)):
            if sums[s] * sizes[high] > sums[high] * sizes[s]:
                high = s
            if sums[s] * sizes[low] < sums[low] * sizes[s]:
                low = s
        total = sum(sums)
        if not total:
            continue  # no answer with mass under the prior ever sends this report
        if average:
            yield sums[high] * everyone, total * sizes[high], y, (high, AVERAGE)
            yield total * sizes[low], sums[low] * everyone, y, (AVERAGE, low)
        else:
            yield sums[high] * sizes[low], sums[low] * sizes[high], y, (high, low)


def _checked(joint: Joint | None, answers: int) -> Joint:
    if joint is None or len(joint) < 2:
        # One row would be a constant secret, which anything protects. S = X is written as a diagonal.
        raise DocumentRejected(
            "privacy", "this notion needs a prior with a row for each of two or more secrets", "prior"
        )
    for s, row in enumerate(joint):
        field = f"prior.joint[{s}]"
        if len(row) != answers:
            raise DocumentRejected("privacy", f"every row of the prior needs {answers} columns", field)
        if any(type(n) is not int or not 0 <= n <= MAX_INT for n in row):
            raise DocumentRejected("privacy", "a prior holds whole numbers, zero or more", field)
        if not any(row):
            raise DocumentRejected("privacy", "a secret without mass cannot be protected", field)
    return joint
