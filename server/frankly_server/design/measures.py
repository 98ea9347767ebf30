# SPDX-License-Identifier: Apache-2.0
"""What a mechanism reveals and what it is worth, computed from its whole numbers (DESIGN §7, natural logarithms).

These figures describe any table, private or not. Whether a promise is kept is decided by
`frankly_protocol.audit` alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_server import rational
from frankly_server.design import objectives
from frankly_server.design.prior import Prior

Weights = Sequence[Sequence[int]]
Ratio = Fraction | None
"""A ratio of probabilities; None is infinite."""


@dataclass(frozen=True, slots=True)
class Leakage:
    """The extreme ratios a mechanism shows under a prior.

    highest : max P(y|s)/P(y). inverse_lowest : max P(y)/P(y|s). between_secrets : max P(y|s)/P(y|t).
    between_answers : max Q(y|x)/Q(y|x'), the ceiling. All ≥ 1.
    """

    highest: Ratio
    inverse_lowest: Ratio
    between_secrets: Ratio
    between_answers: Ratio


def leakage(weights: Weights, prior: Prior) -> Leakage:
    """Return the extreme ratios over all reports that can occur; secrets without mass are left out."""
    secrets = [(row, mass) for row, mass in zip(prior.joint, prior.masses, strict=True) if mass]
    total = prior.total
    ratios: list[tuple[Ratio, Ratio, Ratio, Ratio]] = []
    for column in zip(*weights, strict=True):
        answers = _ratio(max(column), min(column))
        given = [Fraction(sum(n * w for n, w in zip(row, column, strict=True)), mass) for row, mass in secrets]
        high, low = max(given), min(given)
        average = sum((g * mass for g, (_, mass) in zip(given, secrets, strict=True)), Fraction(0)) / total
        ratios.append((_ratio(high, average), _ratio(average, low), _ratio(high, low), answers))
    return Leakage(*(_largest(kind) for kind in zip(*ratios, strict=True)))


def measure(weights: Weights, prior: Prior) -> dict[str, float]:
    """Return every measure that exists, by its name in DESIGN §7; math.inf where infinite, levels rounded up.

    `weights` holds whole numbers with equal row sums, row = truth; `prior` has as many answers as there are rows.
    """
    found, shares = leakage(weights, prior), prior.shares
    low, high = nats(found.inverse_lowest), nats(found.highest)
    mutual = objectives.information(weights, shares)
    return {
        "lip": max(low, high),
        "alip_low": low,
        "alip_high": high,
        "secret_ldp": nats(found.between_secrets),
        "answer_ldp": nats(found.between_answers),
        "ceiling": math.inf if found.between_answers is None else _float_up(found.between_answers),
        "information_secret": objectives.information(secret_channel(weights, prior), prior.masses),
        "information": mutual,
        "normalised_information": objectives.normalised(mutual, shares),
        "hamming": objectives.hamming(weights, shares),
        "variance": objectives.variance(weights, shares),
        "rank": rational.rank(weights),
    }


def secret_channel(weights: Weights, prior: Prior) -> list[list[int]]:
    """Return P(y|s) as whole numbers with equal row sums, one row per secret (all zero where a secret has no mass)."""
    common = math.lcm(*(mass for mass in prior.masses if mass))
    columns = list(zip(*weights, strict=True))
    return [
        [sum(n * w for n, w in zip(row, column, strict=True)) * (common // mass if mass else 0) for column in columns]
        for row, mass in zip(prior.joint, prior.masses, strict=True)
    ]


def nats(ratio: Ratio) -> float:
    """Return ln(ratio), rounded up so that no level is shown smaller than it is; inf for None."""
    if ratio is None:
        return math.inf
    if ratio == 1:
        return 0.0
    value = objectives.log_ratio(ratio.numerator, ratio.denominator)
    # rounding: a few units up cover the error of the logarithms
    return value * (1 + 2**-50)


def _float_up(ratio: Fraction) -> float:
    value = ratio.numerator / ratio.denominator
    return value if Fraction(value) >= ratio else math.nextafter(value, math.inf)


def _ratio(top: Fraction | int, bottom: Fraction | int) -> Ratio:
    """Return top/bottom; a report that never occurs (0/0) shows nothing."""
    if not top:
        return Fraction(1)
    return Fraction(top) / Fraction(bottom) if bottom else None


def _largest(ratios: Sequence[Ratio]) -> Ratio:
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known) if len(known) == len(ratios) else None
