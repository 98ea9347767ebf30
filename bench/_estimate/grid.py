# SPDX-License-Identifier: Apache-2.0
"""Coverage and width over the grid: designs, kinds of targets, truths and numbers of reports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan, prod

import numpy as np
from frankly_design.kinds.decoder import Targets, shares
from frankly_design.kinds.registry import kind_of
from numpy.typing import NDArray
from scipy import stats

from _estimate.designs import Case, case_of
from _estimate.guaranteed import OF_TWO, all_at_once, hold, of_two
from _estimate.linear import Both, FloatArray, IntArray, Linear, Surveys, product_margins
from _estimate.shipped import Shipped, truths

Bools = NDArray[np.bool_]
SIZES = (100, 500, 2000)
TOLERANCE = 1e-12
MOST_BOUNDS = 6
"""Largest number of targets per cell whose guaranteed intervals are checked, evenly spaced."""
MOST_DIFFERENCES = 8
CHECKED = 2
"""Number of surveys per cell whose margins the server's code computes as well."""
SAME_WIDTH, NEAR_END = 1e-6, 5e-3
"""Shares of an interval's width: tolerance of its ends, and of a truth near an end."""
WIDTH_RATIO = 1.2
"""Ratio of the widths of `score` and `clt` above which neighbouring truths are checked."""
NEIGHBOUR_REPORTS = 2
"""Respondents who answer differently in a neighbouring truth."""


@dataclass(frozen=True)
class Coverage:
    """Coverage and mean width of intervals in one cell, by method and target (nan if no interval).

    exactly : True if enumerated, without Monte Carlo error. two : per target, True if scores take
    two values. nearby : least coverage of `clt` at the truths that differ from this one by 2
    respondents; computed only if `score` is much wider.
    """

    design: str
    kind: str
    truth: str
    n: int
    runs: int
    exactly: bool
    coverage: Mapping[str, FloatArray]
    width: Mapping[str, FloatArray]
    two: Bools
    nearby: FloatArray | None = None

    def beside(self, reference: str, method: str) -> FloatArray:
        """Return mean widths of `method` relative to `reference`, nan without a reference interval."""
        widths = self.width[reference]
        return np.asarray(
            np.where(widths > 0, self.width[method] / np.where(widths > 0, widths, 1.0), np.nan)
        )


class Mismatch(AssertionError):
    """A figure computed here differs from the server's."""


def targets_of(shipped: Shipped) -> dict[str, Targets]:
    """Return targets by kind: shares of joint answers, of each question, and differences."""
    a = shipped.mechanism.answers
    targets: dict[str, Targets] = {"shares": shares(a)}
    if len(shipped.questions) > 1 and prod(shipped.questions) == a:
        places = np.array(list(np.ndindex(*shipped.questions)))
        targets["one-way"] = tuple(
            tuple(Fraction(int(place[q] == choice)) for place in places)
            for q, size in enumerate(shipped.questions)
            for choice in range(size)
        )
    if not kind_of(shipped.mechanism).is_set:
        basis = kind_of(shipped.mechanism).basis
        if len(basis) < a:
            targets["all that can be told"] = tuple(map(tuple, basis))
    other_answers = range(1, min(a, MOST_DIFFERENCES))
    targets["differences"] = tuple(
        tuple(Fraction((x == 0) - (x == j)) for x in range(a)) for j in other_answers
    )
    return targets


def cells(shipped: Shipped, runs: int, seed: int) -> Iterator[Coverage]:
    """Yield the cells of one mechanism, without non-identifiable targets. Raises Mismatch."""
    case = case_of(shipped.name, shipped.mechanism)
    for kind, targets in targets_of(shipped).items():
        linear = Linear(case, targets, shipped.prior)
        if not linear.known:
            continue
        for i, (truth, p) in enumerate(truths(shipped.mechanism.answers, shipped.prior).items()):
            for n in sorted({shipped.least, *SIZES}):
                yield cell(linear, (shipped.name, kind, truth), p, n, runs, seed + i)


def cell(
    linear: Linear, named: tuple[str, str, str], p: FloatArray, n: int, runs: int, seed: int
) -> Coverage:
    """Return one cell. Raises Mismatch."""
    counts, weights = draws(linear.case, p, n, runs, seed)
    surveys, theta = linear.surveys(counts), linear.W @ p
    held = holding(surveys.ends, theta) | _guaranteed(linear, surveys, counts, theta)
    for i in np.linspace(0, len(counts) - 1, CHECKED + 1).astype(int)[1:]:
        _check(linear, surveys, held, counts[i], int(i), theta)
    coverage = {method: np.average(hits, axis=0, weights=weights) for method, hits in held.items()}
    if named[1] == "shares":
        at_once = all_at_once(linear, counts, surveys.value - theta)
        coverage["simultaneous"] = np.full(len(theta), np.average(at_once, weights=weights))
    held_cell = Coverage(
        *named, n, runs, weights is not None, coverage, widths(surveys.ends, weights), linear.two
    )
    if np.any(held_cell.beside("clt", "score") > WIDTH_RATIO):
        held_cell = replace(held_cell, nearby=nearby(linear, p, n, runs, seed))
    return held_cell


def draws(
    case: Case, p: FloatArray, n: int, runs: int, seed: int
) -> tuple[IntArray, FloatArray | None]:
    """Return simulated counts per symbol; with two symbols, all counts with their probabilities."""
    if case.law.shape[1] == 2:
        ones = np.arange(n + 1)
        return np.stack([n - ones, ones], axis=1), stats.binom.pmf(
            ones, n, float((p @ case.law)[1])
        )
    return np.random.default_rng([seed, n]).multinomial(n, p @ case.law, size=runs), None


def holding(ends: Mapping[str, Both], theta: FloatArray) -> dict[str, FloatArray]:
    """Return 1 per survey and target if the interval contains the truth, nan without interval."""
    return {
        method: np.where(
            np.isnan(low), np.nan, (low <= theta + TOLERANCE) & (theta <= high + TOLERANCE)
        )
        for method, (low, high) in ends.items()
    }


def widths(ends: Mapping[str, Both], weights: FloatArray | None) -> dict[str, FloatArray]:
    """Return mean widths per target."""
    return {
        method: np.average(high - low, axis=0, weights=weights)
        for method, (low, high) in ends.items()
    }


def nearby(linear: Linear, p: FloatArray, n: int, runs: int, seed: int) -> FloatArray:
    """Return the least coverage of `clt` at truths in which 2 more respondents give some answer."""
    neighbours = []
    for x in range(len(p)):
        q = p + NEIGHBOUR_REPORTS / n * (np.eye(len(p))[x] - p)
        counts, weights = draws(linear.case, q, n, runs, seed)
        held = holding(linear.surveys(counts).ends, linear.W @ q)["clt"]
        neighbours.append(np.average(held, axis=0, weights=weights))
    return np.asarray(np.min(neighbours, axis=0))


def _guaranteed(
    linear: Linear, surveys: Surveys, counts: IntArray, theta: FloatArray
) -> dict[str, FloatArray]:
    """Return 1 per survey and target if an interval contains the truth; add the ends to `surveys`.

    Methods: `kl`, `exact`, `sequence` and OF_TWO.
    """
    n, nothing = int(counts[0].sum()), np.full(surveys.value.shape, np.nan)
    ends = {
        method: (nothing.copy(), nothing.copy()) for method in ("kl", "exact", "sequence", OF_TWO)
    }
    chosen = np.unique(np.linspace(0, len(theta) - 1, MOST_BOUNDS).astype(int))
    for t in (int(t) for t in chosen if linear.two[t]):
        all_ends = of_two(
            linear.scores[t], linear.W[t], surveys.value[:, t], linear.in_high(counts, t), n
        )
        for method, (low, high) in all_ends.items():
            ends[method][0][:, t], ends[method][1][:, t] = low, high
    surveys.ends.update(ends)
    held = holding(ends, theta)
    for t in (int(t) for t in chosen if not linear.two[t]):
        means = surveys.value[:, t]
        for method, (lower, upper) in hold(
            linear.scores[t], linear.W[t], float(theta[t]), n
        ).items():
            held[method][:, t] = (lower <= means + TOLERANCE) & (means <= upper + TOLERANCE)
    return held


def _check(
    linear: Linear,
    surveys: Surveys,
    held: Mapping[str, FloatArray],
    counts: IntArray,
    i: int,
    theta: FloatArray,
) -> None:
    """Compare one survey with the server's margins by their ends or, if unknown, by coverage."""
    value, margins = product_margins(linear, counts)
    for method in ("score", "clt", "chebyshev", "kl", "exact", "sequence"):
        pairs = margins.ends(method, tuple(value))
        for t, place in enumerate(linear.known):
            pair, ours = pairs[place], held[method][i, t]
            if pair is None or isnan(ours):
                continue
            low, high = (float(end[i, t]) for end in surveys.ends[method])
            room = max(pair[1] - pair[0], float(linear.worst[t]) / counts.sum() ** 0.5)
            if isnan(low):
                holds = pair[0] - TOLERANCE <= theta[t] <= pair[1] + TOLERANCE
                # If no truth fits the scores, the server's interval is wider than assumed here.
                same = holds >= ours or min(abs(theta[t] - end) for end in pair) < NEAR_END * room
            else:
                same = max(abs(pair[0] - low), abs(pair[1] - high)) < SAME_WIDTH * room
            if not same:
                where = f"{linear.case.name}, target {t}, counts {counts.tolist()}"
                raise Mismatch(
                    f"{method} of {where}: the server has {pair}, here {(low, high, bool(ours))}"
                )
