# SPDX-License-Identifier: Apache-2.0
"""Thesis, three formulas without a figure of their own: (6.8), (6.22) and the ratios of Theorem 6.5."""

import math
from collections.abc import Iterator

from papers.figure import Check, Figure, Panel, Row, Rows, Run
from papers.thesis import EXAMPLES, largest_variance, printed_threshold, unit_variance

_P11 = (0.3, 0.6, 0.9, 1.0)
_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
_SHARES = (0.01, 0.1, 0.3)
_LEAST_K = 0.05
_LOWEST = -1.0


def _grid(low: float, high: float, run: Run, full: int, quick: int) -> list[float]:
    last = (quick if run.quick else full) - 1
    return [round(low + (high - low) * i / last, 10) for i in range(last + 1)]


# Worst share, formula 6.8


def worst_share(p00: float, p11: float) -> float:
    """Return the share π at which Var(Π̂|π) is largest: (2p00 − 1)/(2k) clamped to [0, 1]  [(6.8), errata 1].

    k = p00 + p11 − 1, which must not be 0.
    """
    return min(1.0, max(0.0, (2 * p00 - 1) / (2 * (p00 + p11 - 1))))


def printed_largest_variance(p00: float, p11: float) -> float:
    """Return 1/(4k²), the largest variance at n = 1 as printed: a bound  [(6.8)]."""
    return 1 / (4 * (p00 + p11 - 1) ** 2)


def _worst(run: Run) -> Iterator[Row]:
    for p11 in _P11:
        for p00 in _grid(0, 1, run, 101, 21):
            if p00 + p11 - 1 >= _LEAST_K:
                name = f"p11 = {p11:g}"
                yield Row("a", name, p00, worst_share(p00, p11))
                largest = largest_variance(p00, p11, 1.0)
                if largest > 0:  # the variance is 0 at p00 = p11 = 1 and π = 0 or 1
                    yield Row("b", name, p00, printed_largest_variance(p00, p11) / largest)


def _about_worst(rows: Rows) -> Iterator[Check]:
    ratios = [row for row in rows.all if row.panel == "b"]
    both = [row.y for row in ratios if row.x >= 0.5 and row.curve != "p11 = 0.3"]
    yield Check.near("Warner's worst share, p00 = p11 = 0.75 (6.10)", worst_share(0.75, 0.75), 0.5, 1e-12,
                     always=True)  # fmt: skip
    yield Check("(6.8) is the maximum where p00, p11 ≥ ½: largest ratio", max(both),
                holds=max(both) <= 1 + 1e-9, always=True)  # fmt: skip
    largest = max(row.y for row in ratios)
    yield Check("(6.8) is the maximum: largest ratio", largest, holds=largest <= 1 + 1e-9, expected=False,
                always=True)  # fmt: skip
    least = min(row.y for row in ratios)
    yield Check("(6.8) is a bound: least ratio", least, holds=least >= 1 - 1e-9, always=True)


# Switch, formula 6.22


def corners(epsilon: float, delta: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (r(0), s(0)) and (r(1), s(1)), the two points among which g decides  [(6.21), errata 4]."""
    E = math.exp(epsilon)
    even = (E + delta) / (E + 1)
    return (1 + (delta - 0.5) / E, 0.5), (even, even)


def _switches(run: Run) -> Iterator[Row]:
    for epsilon in _EPSILONS:
        for delta in _grid(0, 0.5, run, 51, 11):
            g = printed_threshold(epsilon, delta)
            if g >= _LOWEST:
                yield Row("a", f"ε = {epsilon:g}", delta, g)
            uneven, even = corners(epsilon, delta)
            ratio = unit_variance(*uneven, 0.1) / unit_variance(*even, 0.1)
            yield Row("b", f"ε = {epsilon:g}", delta, ratio)


def _about_switches(rows: Rows) -> Iterator[Check]:
    for i, (epsilon, delta, _share, g, *_) in enumerate(EXAMPLES, 1):
        yield Check.near(f"Example 6.1, {i}: g", printed_threshold(epsilon, delta), g, 6e-4, always=True)  # fmt: skip
    wrong = 0
    for row in rows.all:
        if row.panel == "b":
            g = printed_threshold(float(row.curve.removeprefix("ε = ")), row.x)
            wrong += (row.y < 1) is not (g > 0.1)
    yield Check("(r(0), s(0)) is better at π = 0.1 where g > 0.1: points where not", wrong, holds=not wrong,
                always=True)  # fmt: skip
    without = max(printed_threshold(epsilon, 0) for epsilon in _EPSILONS)
    yield Check("g < 0 without δ: the even mechanism for every π (largest g)", without, holds=without < 0,
                always=True)  # fmt: skip
    half = printed_threshold(0.1, 0.5)
    yield Check("g at ε = 0.1, δ = ½; above ½ the uneven mechanism is better for every π", half)


# Theorem 6.5


def efficiency(violation: float, share: float) -> float:
    """Return Var(Π̂_w|π)/Var(Π̂_m|π) at one degree of privacy violation α > π  [Theorem 6.5]."""
    return 1 + share * (1 - violation) / ((violation - share) * (1 - share))


def printed_ratio_of_maxima(violation: float, share: float) -> float:
    """Return the printed ratio of the largest variances, which uses (6.12)  [Theorem 6.5; errata 1, 4]."""
    return (1 + share * (1 - violation) / (violation * (1 - share))) ** 2


def models(violation: float, share: float) -> tuple[float, float]:
    """Return (p_w, p_m), Warner's and Mangat's parameters for a degree of privacy violation α > π  [(6.28), §6.4.2]."""
    p_w = violation * (1 - share) / (violation * (1 - share) + share * (1 - violation))
    return p_w, (violation - share) / (violation * (1 - share))


def ratio_of_maxima(violation: float, share: float) -> float:
    """Return max Var(Π̂_w|π)/max Var(Π̂_m|π), the maxima over all π, at one degree of privacy violation."""
    p_w, p_m = models(violation, share)
    return largest_variance(p_w, p_w, 1.0) / largest_variance(p_m, 1.0, 1.0)


def _efficiencies(run: Run) -> Iterator[Row]:
    for share in _SHARES:
        # α from just above π, in equal steps of log(α − π), to just below 1
        for exponent in _grid(-3, math.log10(0.99 * (1 - share)), run, 61, 13):
            above = 10**exponent
            name = f"π = {share:g}"
            yield Row("a", name, above, efficiency(share + above, share))
            yield Row("b", name, above, ratio_of_maxima(share + above, share))
            printed = printed_ratio_of_maxima(share + above, share)
            yield Row("b", f"{name}, as printed", above, printed)


def _about_efficiencies(rows: Rows) -> Iterator[Check]:
    apart, least = 0.0, math.inf
    for share in _SHARES:
        for above, row in rows.curve("a", f"π = {share:g}").items():
            p_w, p_m = models(share + above, share)
            true = unit_variance(p_w, p_w, share) / unit_variance(p_m, 1.0, share)
            apart, least = max(apart, abs(row.y / true - 1)), min(least, row.y)
    yield Check("the ratio at π is (6.9)/(6.11): largest relative difference", apart, holds=apart < 1e-9,
                always=True)  # fmt: skip
    yield Check("Mangat is at least as efficient at π: least ratio", least, holds=least >= 1, always=True)  # fmt: skip
    yield Check.near("equally efficient at α = 1, π = 0.1", efficiency(1.0, 0.1), 1.0, 1e-12, always=True)  # fmt: skip
    maxima = [row.y for row in rows.all if row.panel == "b" and "printed" not in row.curve]
    yield Check("Mangat's maximum is at most Warner's: least ratio", min(maxima), holds=min(maxima) >= 1 - 1e-9,
                always=True)  # fmt: skip
    printed = [row.y for row in rows.all if row.curve.endswith("as printed")]
    yield Check("the printed ratio of the maxima: its largest, below 4", max(printed), holds=max(printed) < 4,
                always=True)  # fmt: skip
    yield Check("the largest ratio of the maxima is the printed one: here", max(maxima),
                holds=max(maxima) <= max(printed) + 1e-9, expected=False, always=True)  # fmt: skip


FIGURES = (
    Figure(
        "thesis-eq-6.8", "(6.8)", "The share at which the variance is largest",
        (Panel("a", "worst share", "p00", "π"),
         Panel("b", "printed maximum over the true one", "p00", "ratio", from_zero=True)),
        {"p00": "0 to 1, where p00 + p11 ≥ 1.05", "p11": "0.3, 0.6, 0.9, 1", "n": "1"},
        _worst, _about_worst,
        notes=("without the clamp the share leaves [0, 1] where p00 or p11 is below ½ (errata 1)",),
    ),
    Figure(
        "thesis-eq-6.22", "(6.22)", "The switch g of Theorem 6.3",
        (Panel("a", "below this share the uneven mechanism is best", "δ", "g(ε, δ)"),
         Panel("b", "uneven over even at π = 0.1", "δ", "ratio of variances", from_zero=True)),
        {"ε": "0.1, 0.25, 0.5, 1, 2", "δ": "0 to ½", "uneven, even": "(r(0), s(0)) and (r(1), s(1))"},
        _switches, _about_switches,
        notes=("values of g below −1 are not drawn", "on p00, p11 ≥ ½ only (errata 3)"),
    ),
    Figure(
        "thesis-theorem-6.5", "Theorem 6.5", "Warner's variance over Mangat's, at one degree of violation",
        (Panel("a", "at the share itself", "α − π", "ratio", x_log=True, y_log=True),
         Panel("b", "largest over all shares", "α − π", "ratio", x_log=True, y_log=True)),
        {"π": "0.01, 0.1, 0.3", "α": "from π + 0.001 to just below 1", "as printed": "(6.10)/(6.12)"},
        _efficiencies, _about_efficiencies,
        notes=("the printed ratio of the maxima stays below 4; the true one has no bound as α falls to π (errata 4)",),
    ),
)  # fmt: skip
