# SPDX-License-Identifier: Apache-2.0
"""Coverage of ratios and of estimates pooled over two versions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from frankly_design.estimate import ratios as of_product
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.pooling import combined_ends, kl_ends
from frankly_design.estimate.target_ends import cut as cut_one
from frankly_design.kinds.decoder import shares

from _estimate.designs import case_of
from _estimate.grid import (
    CHECKED,
    SAME_WIDTH,
    SIZES,
    TOLERANCE,
    Coverage,
    Mismatch,
    draws,
    holding,
    widths,
)
from _estimate.linear import LEVEL, Both, FloatArray, IntArray, Linear, cut, product_margins
from _estimate.shipped import Shipped, truths

MOST_CHOICES = 3
POOLS = (
    ("lip", "alip"),
    ("lip", "ldp"),
    ("secret-ldp", "families/grr"),
    ("families/oue", "ldp"),
    ("dpv", "families/non-robust"),
    ("srlip", "rldp"),
)
SPLITS = ((0.5, 100), (0.1, 500), (0.5, 500), (0.8, 2000))
"""Share of the reports under the first version, and total number of reports."""
KL_RUNS = 200
"""Simulated surveys of a pooled cell for which the server computes Chernoff bounds of a target."""


def ratios(shipped: Shipped, runs: int, seed: int) -> Iterator[Coverage]:
    """Yield the cells of ratios, where all shares are identifiable. Raises Mismatch.

    An interval contains r if the interval of a − rb contains 0, or if it is unbounded because the
    interval of b contains 0.
    """
    a = shipped.mechanism.answers
    linear = Linear(case_of(shipped.name, shipped.mechanism), shares(a), shipped.prior)
    pairs = _pairs(shipped)
    for i, (truth, p) in enumerate(truths(a, shipped.prior).items()):
        ratio_pairs = [(np.array(top), np.array(over)) for top, over in pairs if p @ over > 0]
        true = np.array([(p @ top) / (p @ over) for top, over in ratio_pairs])
        differences = linear.about(
            np.array([top - r * over for (top, over), r in zip(ratio_pairs, true, strict=True)])
        )
        bottoms = linear.about(np.array([over for _, over in ratio_pairs]))
        if differences is None or bottoms is None:
            return
        for n in sorted({shipped.least, *SIZES}):
            counts, weights = draws(linear.case, p, n, runs, seed + i)
            zero = np.zeros(len(ratio_pairs))
            held, unbounded = (
                holding(linear_form.surveys(counts).ends, zero)
                for linear_form in (differences, bottoms)
            )
            coverage = {
                method: np.maximum(held[ends], unbounded[ends])
                for method, ends in (("score", "uncut"), ("clt", "clt"))
            }
            for j in np.linspace(0, len(counts) - 1, CHECKED + 1).astype(int)[1:]:
                _check_ratio(linear, ratio_pairs, true, counts[j], coverage["score"][j])
            means = {
                method: np.average(hits, axis=0, weights=weights)
                for method, hits in coverage.items()
            }
            where = shipped.name, "ratios", truth, n, len(counts)
            yield Coverage(
                *where, weights is not None, means, {}, np.zeros(len(ratio_pairs), dtype=np.bool_)
            )


def _pairs(shipped: Shipped) -> list[tuple[FloatArray, FloatArray]]:
    """Return weights (a, b): a conditional share, a ratio, percentages of a table's first row."""
    unit = np.eye(shipped.mechanism.answers)
    pairs = [(unit[0], unit[0] + unit[1]), (unit[-1], unit[0])]
    if len(shipped.questions) > 1:
        rows = unit.reshape(shipped.questions[0], -1, len(unit))
        pairs += [(cell, rows[0].sum(axis=0)) for cell in rows[0][:MOST_CHOICES]]
    return pairs


def _check_ratio(
    linear: Linear,
    ratio_pairs: Sequence[tuple[FloatArray, FloatArray]],
    true: FloatArray,
    counts: IntArray,
    ours: FloatArray,
) -> None:
    """Compare one survey with the server's ratio. Raises Mismatch."""
    targets = tuple(
        tuple(Fraction(float(v)) for v in row)
        for top, over in ratio_pairs
        for row in (top, over, top + over)
    )
    evidence = evidence_of(linear.case.mechanism, linear.case.counts(counts), targets, linear.prior)
    covariance = evidence.spread() / (evidence.n - 1)
    places = [[3 * t, 3 * t + 1] for t in range(len(ratio_pairs))]
    of_pairs = [covariance[np.ix_(pair, pair)] for pair in places]
    margins = of_product.pairs_of(evidence, of_pairs, [np.ones(2)] * len(ratio_pairs), 1.0, LEVEL)
    for t, pair in enumerate(margins):
        if pair is None or pair.values[1] == 0:
            continue
        ends = of_product.ratio([pair], of_product.Margin("score", normal_quantile(LEVEL))).ends
        low, high = ends or (-np.inf, np.inf)
        room = 1e-3 * max(high - low, TOLERANCE)
        inside, outside = (
            low + room < true[t] < high - room,
            true[t] < low - room or true[t] > high + room,
        )
        if (inside and not ours[t]) or (outside and ours[t]):
            where = f"{linear.case.name}, ratio {t}, counts {counts.tolist()}"
            raise Mismatch(
                f"{where}: the server has {ends}; here {true[t]} is inside: {bool(ours[t])}"
            )


def pooled(designs: Sequence[Shipped], runs: int, seed: int) -> Iterator[Coverage]:
    """Yield the cells of two versions pooled by respondents, with equal or reversed truths."""
    by_name = {shipped.name: shipped for shipped in designs}
    for names in POOLS:
        pair = [by_name[name] for name in names]
        linears = [
            Linear(case_of(s.name, s.mechanism), shares(s.mechanism.answers), s.prior) for s in pair
        ]
        named_truths = truths(pair[0].mechanism.answers, pair[0].prior).items()
        for i, ((truth, p), moved) in enumerate(product(named_truths, (False, True))):
            for first, n in SPLITS:
                sizes = [round(first * n), n - round(first * n)]
                rng = np.random.default_rng([seed, i, n, sizes[0]])
                ps = [p, p[::-1] if moved else p]
                counts = [
                    rng.multinomial(size, q @ linear.case.law, size=runs)
                    for linear, size, q in zip(linears, sizes, ps, strict=True)
                ]
                named = " + ".join(names), truth + (", moved" if moved else "")
                yield from _pooled(named, linears, counts, ps)


def _pooled(
    named: tuple[str, str],
    linears: Sequence[Linear],
    counts: Sequence[IntArray],
    ps: Sequence[FloatArray],
) -> Iterator[Coverage]:
    """Yield a cell of the score intervals, and one of the Chernoff bounds. Raises Mismatch."""
    sizes = [int(surveys[0].sum()) for surveys in counts]
    n, runs, a = sum(sizes), len(counts[0]), len(ps[0])
    surveys = [
        linear.surveys(own_counts) for linear, own_counts in zip(linears, counts, strict=True)
    ]
    weights, nothing = [size / n for size in sizes], np.zeros(a, dtype=np.bool_)
    theta = np.sum([w * p for w, p in zip(weights, ps, strict=True)], axis=0)
    value = np.sum([w * s.value for w, s in zip(weights, surveys, strict=True)], axis=0)
    ends: dict[str, Both] = {}
    for method in ("uncut", "clt", "chebyshev"):
        squares = [
            [
                (w * (s.ends[method][side] - s.value)) ** 2
                for w, s in zip(weights, surveys, strict=True)
            ]
            for side in (0, 1)
        ]
        ends[method] = (
            value - np.sqrt(np.sum(squares[0], axis=0)),
            value + np.sqrt(np.sum(squares[1], axis=0)),
        )
    ends["score"] = cut(ends["uncut"], value, np.zeros(a), np.ones(a))
    for i in range(CHECKED):
        _check_pooled(
            linears,
            [own_counts[i] for own_counts in counts],
            weights,
            (ends["score"][0][i], ends["score"][1][i]),
        )
    coverage = {method: held.mean(axis=0) for method, held in holding(ends, theta).items()}
    design, truth = named
    yield Coverage(design, "pooled", truth, n, runs, False, coverage, widths(ends, None), nothing)
    t, least = 1, min(runs, KL_RUNS)
    targets = [(tuple(Fraction(w) if x == t else Fraction(0) for x in range(a)),) for w in weights]
    held = np.empty((least, 1))
    for i in range(least):
        versions = [
            evidence_of(
                linear.case.mechanism, linear.case.counts(own_counts[i]), target, linear.prior
            )
            for linear, own_counts, target in zip(linears, counts, targets, strict=True)
        ]
        (pair,) = kl_ends(versions, LEVEL)
        held[i] = (
            pair is not None and pair[0] <= theta[t] + TOLERANCE and theta[t] <= pair[1] + TOLERANCE
        )
    yield Coverage(
        design, "pooled", truth, n, least, False, {"kl": held.mean(axis=0)}, {}, nothing[:1]
    )


def _check_pooled(
    linears: Sequence[Linear], counts: Sequence[IntArray], weights: Sequence[float], ours: Both
) -> None:
    """Compare one survey with the server's pooled intervals. Raises Mismatch."""
    spreads = [
        product_margins(linear, own_counts)
        for linear, own_counts in zip(linears, counts, strict=True)
    ]
    same = [(w,) * len(ours[0]) for w in weights]
    values = [tuple(value) for value, _ in spreads]
    pairs = combined_ends(same, values, [margins.uncut for _, margins in spreads])
    for t, pair in enumerate(pairs):
        value = sum(w * v[t] for w, v in zip(weights, values, strict=True))
        low, high = cut_one(pair or (np.nan, np.nan), value, np.array([0.0, 1.0]))
        if not max(abs(low - ours[0][t]), abs(high - ours[1][t])) < SAME_WIDTH:
            every = [own_counts.tolist() for own_counts in counts]
            raise Mismatch(f"pooled {every}: the server has {(low, high)} for target {t}")
