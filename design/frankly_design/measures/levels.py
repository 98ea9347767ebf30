# SPDX-License-Identifier: Apache-2.0
"""Largest ratios of a mechanism under a prior: the smallest levels it could promise.

The ratios come from the verifier's code (`frankly_protocol.audit.ratios`), so that displayed and
verified levels agree. Only the last step rounds, and it never understates the leakage.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit.ratios import (
    Candidate,
    answer_ratios,
    average_ratios,
    posteriors,
    secret_ratios,
    side_channel_ratios,
)

from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives
from frankly_design.tables.limits import Poll, no_poll

Weights = Sequence[Sequence[int]]
Ratio = Fraction | None
"""A ratio of probabilities; None means infinite."""


@dataclass(frozen=True, slots=True)
class Leakage:
    """Extreme ratios of a mechanism under a prior.

    highest : max P(y|s)/P(y), the level of the upper side of LIP  [Funnel Def 2; Lift Def 3].
    inverse_lowest : max P(y)/P(y|s), the level of its lower side.
    between_secrets : max P(y|s)/P(y|t)  [Funnel Def 1].
    between_answers : max Q(y|x)/Q(y|x'), the ceiling  [LDP].

    All four are at least 1.
    """

    highest: Ratio
    inverse_lowest: Ratio
    between_secrets: Ratio
    between_answers: Ratio


def leakage(weights: Weights, prior: Prior, poll: Poll = no_poll) -> Leakage:
    """Return the extreme ratios over all possible reports and all secrets with mass.

    weights : integers with equal row sums, row = truth, one row per answer of the prior.
    poll : called for every ratio; an exception that it raises ends the computation.
    """
    columns, joint = list(zip(*weights, strict=True)), present(prior)
    # A list, because it is iterated twice, once per side.
    around = list(_polled(average_ratios(columns, joint), poll))
    return Leakage(
        _largest(c for c in around if not c.low),
        _largest(c for c in around if c.low),
        _largest(_polled(secret_ratios(columns, joint), poll)),
        _largest(_polled(answer_ratios(columns), poll)),
    )


def _polled(candidates: Iterable[Candidate], poll: Poll) -> Iterator[Candidate]:
    for candidate in candidates:
        poll()
        yield candidate


def side_channel_level(weights: Weights, prior: Prior, attributes: Sequence[int]) -> Ratio:
    """Return the SRLIP ratio: the largest of LIP given x_J, over all J and x_J  [Funnel Def 3].

    attributes : number of values of each attribute, the last varying fastest; their product is the
        number of answers.
    """
    return _largest(
        side_channel_ratios(list(zip(*weights, strict=True)), present(prior), attributes)
    )


def violation(weights: Weights, prior: Prior, sensitive: int) -> Fraction:
    """Return the degree of privacy violation, max_y P(S = sensitive | y)  [Thesis (6.24)].

    Reports of probability 0 are left out.
    """
    candidates = posteriors(list(zip(*weights, strict=True)), prior.joint, sensitive)
    return max(Fraction(c.n, c.d) for c in candidates if c.d)


def present(prior: Prior) -> tuple[tuple[int, ...], ...]:
    """Return the rows of the secrets with mass; other secrets never occur, so they cannot leak."""
    return tuple(row for row in prior.joint if any(row))


def nats(ratio: Ratio) -> float:
    """Return ln(ratio), rounded up so that no level is understated; inf for None."""
    if ratio is None:
        return math.inf
    if ratio == 1:
        return 0.0
    value = objectives.log_ratio(ratio.numerator, ratio.denominator)
    # rounding: a few ulps up cover the error of the logarithms; a positive level never becomes 0
    return max(value * (1 + 2**-50), math.ulp(0.0))


def ratio_up(ratio: Ratio) -> float:
    """Return the smallest float ≥ the ratio; inf for None."""
    if ratio is None:
        return math.inf
    if ratio > sys.float_info.max:
        return math.inf
    value = ratio.numerator / ratio.denominator
    return value if Fraction(value) >= ratio else math.nextafter(value, math.inf)


def ratio_down(ratio: Fraction) -> float:
    """Return the largest float ≤ the ratio."""
    return -ratio_up(-ratio)


def _largest(candidates: Iterable[Candidate]) -> Ratio:
    """Return the largest n/d, at least 1; None if infinite.

    0/0 stands for a report of probability 0 and is skipped.
    """
    n, d = 1, 1
    for c in candidates:
        if c.n * d > n * c.d:
            n, d = c.n, c.d
    return Fraction(n, d) if d else None
