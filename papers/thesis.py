# SPDX-License-Identifier: Apache-2.0
"""Thesis, Figures 4.1 and 6.1 to 6.3: closed forms, computed from their definitions, with the errata's corrections."""

import math
from collections.abc import Iterator

import numpy as np
from frankly_design.estimate.worst_case import worst_case_variance
from numpy.typing import NDArray

from papers.figure import Check, Figure, Panel, Row, Rows, Run

FloatArray = NDArray[np.float64]
_SHARE_OF_ONES = np.array([0.0, 1.0])
_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
EXAMPLES = (  # Example 6.1: ε, δ, π, g; Var at (r(1), s(1)); at (r(0), s(0)) or, for π > ½, its mirror image
    (0.1, 0.0, 0.25, -9.508, 100.104, 109.863),
    (1.0, 0.4, 0.1, 0.130, 0.385, 0.355),
    (0.5, 0.3, 0.9, 0.132, 0.965, 0.933),
)


def _between(low: float, high: float, run: Run, full: int, quick: int) -> list[float]:
    return [float(v) for v in np.round(np.linspace(low, high, quick if run.quick else full), 10)]


# Figure 4.1


def least_delta(truth: float, epsilon: float, values: int) -> float:
    """Return the least δ for which the discrete exponential mechanism with e^k = `truth` is (ε,δ)-private.

    By definition it is Σ_y max(0, P(y|d) − e^ε P(y|d')). One attribute: the true value has weight e^k, every
    other value weight 1.
    """
    total = truth + values - 1
    first_row = [truth / total, 1 / total] + [1 / total] * (values - 2)
    second_row = [1 / total, truth / total] + [1 / total] * (values - 2)
    return math.fsum(
        max(0.0, p - math.exp(epsilon) * q) for p, q in zip(first_row, second_row, strict=True)
    )


def _least_deltas(run: Run) -> Iterator[Row]:
    for epsilon, values in ((0, 2), (2, 2), (0, 5)):
        for k in _between(-6, 6, run, 121, 25):
            yield Row(
                "a", f"ε = {epsilon}, m = {values}", k, least_delta(math.exp(k), epsilon, values)
            )


def _about_least_deltas(rows: Rows) -> Iterator[Check]:
    for m in (2, 5):
        yield Check.near(
            f"the bound for large k, m = {m}",
            rows.y("a", f"ε = 0, m = {m}", 6),
            1.0,
            0.015,
            always=True,
        )
        limit = 1 / (m - 1)
        yield Check.near(
            f"the bound for large negative k, m = {m}",
            rows.y("a", f"ε = 0, m = {m}", -6),
            limit,
            0.01,
            always=True,
        )
    zeros = [k for k, row in rows.curve("a", "ε = 2, m = 2").items() if row.y <= 1e-12]
    yield Check.near(
        "the largest |k| with δ = 0, ε = 2", max(map(abs, zeros)), 2.0, 1e-9, always=True
    )


# Figure 6.1


def printed_threshold(epsilon: float, delta: float) -> float:
    """Return g(ε, δ) of Theorem 6.3: if π is below it, (r(0), s(0)) is best on the closure of p00, p11 ≥ ½."""
    E = math.expm1(epsilon)
    return (3 * delta**2 - E * (1 - 3 * delta)) / (E + 2 * delta) ** 2


def open_threshold(epsilon: float, delta: float) -> float:
    """Return h(ε, δ) of errata 3: if min(π, 1−π) is below it, exposing the rarer answer with chance δ is best."""
    E = math.exp(epsilon)
    return delta * (E + delta) / (E - 1 + 2 * delta) ** 2


def _contours(run: Run) -> Iterator[Row]:
    for level in _LEVELS:
        for epsilon in _between(0.02, 2, run, 100, 12):
            E = math.expm1(epsilon)
            # g = c and h = c, each a quadratic in δ with one root ≥ 0
            roots = (
                ("a", _root(3 - 4 * level, E * (3 - 4 * level), -E - level * E**2)),
                ("b", _root(1 - 4 * level, E + 1 - 4 * level * E, -level * E**2)),
            )
            for panel, delta in roots:
                if delta <= (0.5 if panel == "a" else 1.0):
                    yield Row(panel, f"π = {level:g}", epsilon, delta)
    for i, (epsilon, delta, share, *_) in enumerate(EXAMPLES, 1):
        yield Row("a", f"Example 6.1, {i} (π = {share:g})", epsilon, delta)


def _root(a: float, b: float, c: float) -> float:
    if abs(a) < 1e-12:
        return -c / b if b > 0 else math.inf
    square = b * b - 4 * a * c
    roots = [(-b + sign * math.sqrt(square)) / (2 * a) for sign in (1, -1)] if square >= 0 else []
    return min((delta for delta in roots if delta >= 0), default=math.inf)


def _about_contours(_: Rows) -> Iterator[Check]:
    for i, (epsilon, delta, share, g, at_one, at_zero) in enumerate(EXAMPLES, 1):
        E = math.exp(epsilon)
        even, corner = (E + delta) / (E + 1), (1 + (delta - 0.5) / E, 0.5)
        name = f"Example 6.1, {i}"
        yield Check.near(f"{name}: g", printed_threshold(epsilon, delta), g, 6e-4, always=True)
        yield Check.near(
            f"{name}: variance at (r(1), s(1))",
            unit_variance(even, even, share),
            at_one,
            6e-4,
            always=True,
        )
        ends = corner[::-1] if share > 0.5 else corner
        yield Check.near(
            f"{name}: variance at (r(0), s(0))",
            unit_variance(*ends, share),
            at_zero,
            6e-4,
            always=True,
        )
    yield Check.near("Example 6.1, 3: variance at (r(0), s(0)) itself",unit_variance(1 - 0.2 / math.exp(0.5), 0.5, 0.9),
                     1.733, 6e-4, always=True)  # fmt: skip


# Figures 6.2 and 6.3


def _decoded(p00: float, p11: float) -> tuple[FloatArray, FloatArray]:
    """Return the mechanism, and the scores of the reports 0 and 1, whose mean is the share of ones."""
    k = p00 + p11 - 1
    return np.array([[p00, 1 - p00], [1 - p11, p11]]), np.array([-(1 - p00) / k, p00 / k])


def unit_variance(p00: float, p11: float, share: float) -> float:
    """Return Var(Π̂|π) at n = 1  [(6.6)], from the scores."""
    Q, scores = _decoded(p00, p11)
    p = np.array([1 - share, share])
    return float(Q @ scores**2 @ p) - share**2


def largest_variance(p00: float, p11: float, sampling: float) -> float:
    """Return the maximum over π of the variance at n = 1; sampling : 1 for a sample, 0 for a census."""
    Q, scores = _decoded(p00, p11)
    linear = Q @ scores**2 - (1 - sampling) * _SHARE_OF_ONES**2
    return worst_case_variance(np.asarray(linear), _SHARE_OF_ONES, sampling)


def _ratios(run: Run) -> Iterator[Row]:
    for share in (0.01, 0.1):
        for violation in (
            _between(0.12, 1, run, 89, 12) if share == 0.1 else _between(0.02, 1, run, 99, 12)
        ):
            mangat = (violation - share) / (violation * (1 - share))
            k = (violation - share) / (violation * (1 - share) + share * (1 - violation))
            warner = (1 + k) / 2
            true = largest_variance(warner, warner, 1.0) / largest_variance(mangat, 1.0, 1.0)
            yield Row("a", f"π = {share:g}", violation, true)
            yield Row("a", f"π = {share:g}, as printed", violation, (mangat / k) ** 2)


def _about_ratios(rows: Rows) -> Iterator[Check]:
    for share in (0.01, 0.1):
        true, printed = f"π = {share:g}", f"π = {share:g}, as printed"
        curve = rows.curve("a", true)
        least = min(row.y for row in curve.values())
        sentence = f"Mangat's model is never the worse one, π = {share:g}: least ratio"
        yield Check(sentence, least, holds=least >= 1 - 1e-9, always=True)
        yield Check.near(
            f"equally efficient at α = 1, π = {share:g}",
            rows.y("a", true, 1.0),
            1.0,
            1e-9,
            always=True,
        )
        first = rows.y("a", true, min(curve))
        yield Check(f"the advantage is largest where privacy is, π = {share:g}: ratio at the left end", first,
                    holds=first == max(row.y for row in curve.values()), always=True)  # fmt: skip
        yield rows.ordered(
            f"the printed ratio is a lower bound, π = {share:g}", "a", printed, true, always=True
        )


def _sampled(run: Run) -> Iterator[Row]:
    for share in _between(0.1, 1, run, 91, 19):
        yield Row("a", "sampling", share, largest_variance(share, 1.0, 1.0))
        yield Row("a", "sampling, as printed (6.12)", share, 1 / (4 * share**2))
        yield Row("a", "no sampling (6.31)", share, largest_variance(share, 1.0, 0.0))


def _about_sampled(rows: Rows) -> Iterator[Check]:
    points = sorted(rows.curve("a", "sampling"))
    apart = {x: rows.y("a", "sampling", x) - rows.y("a", "no sampling (6.31)", x) for x in points}
    printed = {
        x: rows.y("a", "sampling, as printed (6.12)", x) - rows.y("a", "no sampling (6.31)", x)
        for x in points
    }
    yield Check.near(
        "printed gap at pm = 0.1, (2pm − 1)²/(4pm²)", printed[0.1], 16.0, 1e-9, always=True
    )
    low = max(gap for x, gap in apart.items() if x <= 0.5)
    yield Check("the gap is largest where pm is small: true gap at pm ≤ ½", low, holds=low > 1e-9, expected=False,
                always=True)  # fmt: skip


_AXIS = "largest variance at n = 1"
FIGURES = (
    Figure(
        "thesis-4.1", "Figure 4.1", "Least δ of the discrete exponential mechanism",
        (Panel("a", "", "k", "least δ"),),
        {"k": "−6 to 6", "values m": "2 and 5", "how": "Σ max(0, P(y|d) − e^ε P(y|d')), one attribute"},
        _least_deltas, _about_least_deltas,
    ),
    Figure(
        "thesis-6.1", "Figure 6.1", "Which (ε,δ) randomised response is best",
        (Panel("a", "level sets of g, p00 and p11 ≥ ½ (as printed)", "ε", "δ"),
         Panel("b", "level sets of h, all of R (errata 3)", "ε", "δ")),
        {"ε": "0.02 to 2", "levels": "π = 0, 0.1, … 0.5"},
        _contours, _about_contours,
        notes=("above the curve of π, the uneven mechanism is best at that π: on p00, p11 ≥ ½ in panel a; in panel b "
               "among all, where it exposes holders of the rarer answer outright with probability δ",),
    ),
    Figure(
        "thesis-6.2", "Figure 6.2", "Warner's largest variance over Mangat's, at one degree of violation",
        (Panel("a", "", "degree of privacy violation α", "ratio of largest variances", y_log=True),),
        {"π": "0.01 and 0.1", "α": "π to 1", "as printed": "(6.10)/(6.12)"},
        _ratios, _about_ratios,
        notes=("(6.12) is not the maximum for pm ≤ ½, where it is (1 − pm)/pm (errata 1)",),
    ),
    Figure(
        "thesis-6.3", "Figure 6.3", "Mangat's model with and without sampling",
        (Panel("a", "", "pm", _AXIS, y_log=True),),
        {"pm": "0.1 to 1", "n": "1"},
        _sampled, _about_sampled,
        notes=("the printed gap at small pm is an artefact: with sampling the maximum is (1 − pm)/pm for pm ≤ ½ "
               "(errata 1)",),
    ),
)  # fmt: skip
