# SPDX-License-Identifier: Apache-2.0
"""Coverage and width over the grid: designs, kinds of targets, truths and numbers of reports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from frankly_server.estimate.contrasts import ratio
from frankly_server.estimate.decoder import Targets, shares
from numpy.typing import NDArray
from scipy import stats

from _estimate.designs import Case, case_of
from _estimate.linear import METHODS, Linear, Surveys
from _estimate.shipped import Shipped, truths

FloatArray = NDArray[np.float64]
SIZES = (100, 500, 2000)
HAIR = 1e-12
RATIO_RUNS = 400
"""Simulated surveys of a ratio at most: the product computes these one by one."""
MOST_DIFFERENCES = 8
RATIO_TRUTHS = ("even", "zipf", "prior", "1 rare")


@dataclass(frozen=True)
class Held:
    """How often intervals held in one cell, by target, and their mean widths as multiples of that of `clt`.

    exactly : enumerated, without Monte Carlo error. two : scores take two values. Missing methods are nan.
    """

    design: str
    kind: str
    truth: str
    n: int
    runs: int
    exactly: bool
    coverage: dict[str, FloatArray]
    width: dict[str, FloatArray]
    two: NDArray[np.bool_]


def targets_of(shipped: Shipped) -> dict[str, Targets]:
    """Return the targets by kind: shares of all answers together, of each question, and differences from the first."""
    a = shipped.mechanism.answers
    found: dict[str, Targets] = {"shares": shares(a)}
    if len(shipped.questions) > 1 and prod(shipped.questions) == a:
        places = np.array(list(np.ndindex(*shipped.questions)))
        found["one-way"] = tuple(
            tuple(Fraction(int(place[q] == choice)) for place in places)
            for q, size in enumerate(shipped.questions)
            for choice in range(size)
        )
    if a > 1:
        others = range(1, min(a, MOST_DIFFERENCES))
        found["differences"] = tuple(tuple(Fraction((x == 0) - (x == j)) for x in range(a)) for j in others)
    return found


def cells(shipped: Shipped, runs: int, seed: int) -> Iterator[Held]:
    """Yield the cells of one mechanism; none for targets that it cannot tell."""
    case = case_of(shipped.name, shipped.mechanism)
    for kind, targets in targets_of(shipped).items():
        linear = Linear(case, targets, shipped.prior)
        if len(linear.known):
            yield from _cells(shipped, linear, kind, runs, seed)
    if shipped.mechanism.answers > 2:
        a = shipped.mechanism.answers
        pair = tuple(tuple(Fraction(int(x <= last)) for x in range(a)) for last in (0, 1))
        linear = Linear(case, pair, shipped.prior)
        if len(linear.known) == 2:
            yield from _ratios(shipped, linear, runs, seed)


def _cells(shipped: Shipped, linear: Linear, kind: str, runs: int, seed: int) -> Iterator[Held]:
    for i, (truth, p) in enumerate(truths(shipped.mechanism.answers, shipped.prior).items()):
        for n in sorted({shipped.least, *SIZES}):
            counts, weights = draws(linear.case, p, n, runs, seed + 7919 * i + n)
            yield held((shipped.name, kind, truth, n, runs), linear.surveys(counts), linear.W @ p, weights, linear.two)


def draws(case: Case, p: FloatArray, n: int, runs: int, seed: int) -> tuple[NDArray[np.int64], FloatArray | None]:
    """Return counts per symbol of simulated surveys; of two symbols all that can come, with their chances."""
    if case.law.shape[1] == 2:
        ones = np.arange(n + 1)
        return np.stack([n - ones, ones], axis=1), stats.binom.pmf(ones, n, float((p @ case.law)[1]))
    return np.random.default_rng(seed).multinomial(n, p @ case.law, size=runs), None


def held(
    named: tuple[str, str, str, int, int],
    surveys: Surveys,
    theta: FloatArray,
    weights: FloatArray | None,
    two: NDArray[np.bool_],
) -> Held:
    """Return what held in a cell, from its surveys and the true values."""
    coverage, width = {}, {}
    widths = {m: np.average(high - low, axis=0, weights=weights) for m, (low, high) in surveys.ends.items()}
    for method, (low, high) in surveys.ends.items():
        inside = ((low <= theta + HAIR) & (theta <= high + HAIR)).astype(float)
        coverage[method] = np.where(np.isnan(low[0]), np.nan, np.average(inside, axis=0, weights=weights))
        with np.errstate(divide="ignore", invalid="ignore"):
            width[method] = np.where(widths["clt"] > HAIR, widths[method] / widths["clt"], np.nan)
    return Held(*named, weights is not None, coverage, width, two)


def _ratios(shipped: Shipped, linear: Linear, runs: int, seed: int) -> Iterator[Held]:
    """Yield cells of the share of the first answer among the first two, by the product's own function."""
    given = truths(shipped.mechanism.answers, shipped.prior)
    for truth in [name for name in RATIO_TRUTHS if name in given]:
        theta = linear.W @ given[truth]
        if theta[1] <= 0:
            continue
        for n in sorted({shipped.least, *SIZES}):
            counts, _ = draws(linear.case, given[truth], n, min(runs, RATIO_RUNS), seed + n)
            found, places = np.unique(counts, axis=0, return_inverse=True)
            surveys = linear.surveys(found, ("score", "clt"))
            inside = {
                method: _ratio_holds(surveys, linear.covariance(found), method, float(theta[0] / theta[1]))[
                    np.ravel(places)
                ].mean()
                for method in ("score", "clt")
            }
            coverage = {m: np.array([inside.get(m, np.nan)]) for m in METHODS}
            nothing = {m: np.array([np.nan]) for m in METHODS}
            yield Held(shipped.name, "ratio", truth, n, len(counts), False, coverage, nothing, np.array([False]))


def _ratio_holds(surveys: Surveys, covariances: FloatArray, method: str, truth: float) -> FloatArray:
    """Return whether each interval holds the truth, as an unbounded one does; `score` is no narrower than `clt`."""
    inside = np.ones(len(surveys.value))
    for i, value in enumerate(surveys.value):
        if value[1] == 0:
            continue
        covariance = covariances[i].tolist()
        found = []
        for each in {"clt", method}:
            lows, highs = surveys.ends[each]
            pairs = (lows[i, 0], highs[i, 0]), (lows[i, 1], highs[i, 1])
            found.append(ratio((value[0], value[1]), covariance, pairs).ends)
        known = [ends for ends in found if ends is not None]
        if len(known) == len(found):
            inside[i] = min(e[0] for e in known) - HAIR <= truth <= max(e[1] for e in known) + HAIR
    return inside


POOLS = (("lip", "alip"), ("lip", "ldp"), ("secret-ldp", "families/grr"), ("families/oue", "ldp"))


def pooled(designs: Sequence[Shipped], runs: int, seed: int) -> Iterator[Held]:
    """Yield cells of two versions together, weighted by respondents, with the same truth and with the reverse."""
    by_name = {shipped.name: shipped for shipped in designs}
    for names in POOLS:
        chosen = [by_name[name] for name in names]
        linears = [
            Linear(case_of(s.name, s.mechanism), shares(s.mechanism.answers), s.prior) for s in chosen
        ]  # fmt: skip
        for truth, p in truths(chosen[0].mechanism.answers, chosen[0].prior).items():
            for moved in (False, True):
                for first, n in ((0.5, 100), (0.1, 500), (0.5, 500), (0.8, 2000)):
                    sizes = [round(first * n), n - round(first * n)]
                    ps = [p, p[::-1] if moved else p]
                    yield _pooled(
                        (" + ".join(names), "pooled", truth + (", moved" if moved else ""), n, runs),
                        linears, sizes, ps, seed + n,
                    )  # fmt: skip


def _pooled(
    named: tuple[str, str, str, int, int],
    linears: Sequence[Linear],
    sizes: Sequence[int],
    ps: Sequence[FloatArray],
    seed: int,
) -> Held:
    """Return one cell: the distances of the ends from the estimates, times the weights, add up in squares."""
    n, runs = sum(sizes), named[-1]
    rng, parts = np.random.default_rng(seed), []
    for linear, size, p in zip(linears, sizes, ps, strict=True):
        counts = rng.multinomial(size, p @ linear.case.law, size=runs)
        parts.append((size / n, linear.surveys(counts, ("score", "clt"))))
    value = np.sum([w * s.value for w, s in parts], axis=0)
    ends = {}
    for method in ("score", "clt", "chebyshev"):
        below = np.sqrt(np.sum([(w * (s.value - s.ends[method][0])) ** 2 for w, s in parts], axis=0))
        above = np.sqrt(np.sum([(w * (s.ends[method][1] - s.value)) ** 2 for w, s in parts], axis=0))
        ends[method] = value - below, value + above
    theta = np.sum([(size / n) * p for size, p in zip(sizes, ps, strict=True)], axis=0)
    return held(named, Surveys(value, ends), theta, None, np.zeros(value.shape[1], dtype=np.bool_))
