# SPDX-License-Identifier: Apache-2.0
"""The test of two arms: variances at common shares in fractions, powers by enumeration, best chances."""

from fractions import Fraction
from math import comb, exp, fsum, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from frankly_design.estimate.estimator import nothing_yet
from frankly_design.estimate.split_plan import WHOLE, best_share, reports_needed
from frankly_design.estimate.split_test import Arm, SplitTest
from frankly_design.kinds.decoder import shares
from frankly_protocol.mechanisms import DenseMechanism

HALF = WHOLE // 2
Z = NormalDist().inv_cdf(0.975)


def mechanism(honest: int, choices: int = 2) -> DenseMechanism:
    """Return randomised response that tells the truth with `honest` of 64, the rest in equal parts."""
    other = (64 - honest) // (choices - 1)
    rows = tuple(tuple(honest if x == y else other for y in range(choices)) for x in range(choices))
    assert sum(rows[0]) == 64
    return DenseMechanism(6, rows)


def arm(guess: list[float], honest: int | None) -> Arm:
    """Return an arm; in the clear if `honest` is None."""
    p, choices = np.array(guess), len(guess)
    if honest is None:
        return Arm.in_clear(p)
    return Arm.protected(nothing_yet(mechanism(honest, choices), shares(choices), None), p)


def contrast(honest: int | None, choices: int) -> tuple[Fraction, Fraction]:
    """Return the chances of a choice if it is true and if it is not."""
    if honest is None:
        return Fraction(1), Fraction(0)
    return Fraction(honest, 64), Fraction((64 - honest) // (choices - 1), 64)


def variance(share: Fraction, honest: int | None, choices: int) -> Fraction:
    kept, other = contrast(honest, choices)
    seen = other + share * (kept - other)
    return seen * (1 - seen) / (kept - other) ** 2


CASES = [
    ((62, 62), ([0.92, 0.08], [0.97, 0.03]), 1, HALF),
    ((48, 62), ([0.5, 0.5], [0.6, 0.4]), 0, 40_000),
    ((None, 40), ([0.75, 0.25], [0.5, 0.5]), 1, 20_000),
    ((40, None), ([0.25, 0.25, 0.5], [0.5, 0.375, 0.125]), 2, 50_000),
    ((40, 60), ([0.25, 0.25, 0.5], [0.5, 0.375, 0.125]), 1, HALF),
    ((None, None), ([0.75, 0.25], [1.0, 0.0]), 1, HALF),
]


@pytest.mark.parametrize(("honest", "guess", "target", "chance"), CASES)
def test_variances_equal_those_in_fractions(
    honest: tuple[int | None, int | None],
    guess: tuple[list[float], list[float]],
    target: int,
    chance: int,
) -> None:
    """Of randomised response, an arm's precision is n times the squared contrast of its chances."""
    choices = len(guess[0])
    test = SplitTest(arm(guess[0], honest[0]), arm(guess[1], honest[1]), target, 0.95)
    own = [Fraction(row[target]) for row in guess]
    contrasts = [kept - other for kept, other in (contrast(h, choices) for h in honest)]
    weights = [n * c**2 for n, c in zip((chance, WHOLE - chance), contrasts, strict=True)]
    common = sum((w * p for w, p in zip(weights, own, strict=True)), Fraction()) / sum(weights)
    assert test.difference == pytest.approx(float(own[0] - own[1]), rel=1e-12)
    expected = [float(variance(p, h, choices)) for p, h in zip(own, honest, strict=True)]
    assert test.variances == pytest.approx(expected, rel=1e-12, abs=1e-15)
    at_common = [float(variance(common, h, choices)) for h in honest]
    assert test.null(chance) == pytest.approx(at_common, rel=1e-12)
    # The formula of two groups, with the standard errors at common and at the guessed shares.
    first = chance / WHOLE
    tested, actual = (sqrt(v[0] / first + v[1] / (1 - first)) for v in (at_common, expected))
    n = test.reports(chance, 0.8)
    needed = (Z * tested + NormalDist().inv_cdf(0.8) * actual) / test.difference
    assert n - 1 < needed**2 <= n
    assert test.power(n, chance) >= 0.8


def binomial(n: int, p: Fraction) -> list[float]:
    return [float(comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1)]


@pytest.mark.parametrize(
    ("honest", "own", "sizes"),
    [
        ((None, None), (0.5, 0.25), (60, 60)),
        ((60, 60), (0.5, 0.25), (80, 80)),
        ((60, 56), (0.5, 0.1875), (64, 96)),
        ((None, 56), (0.5, 0.25), (50, 150)),
    ],
)
def test_powers_are_near_those_of_all_outcomes(
    honest: tuple[int | None, int | None], own: tuple[float, float], sizes: tuple[int, int]
) -> None:
    """Sum the chances of all counts of two choices that the test of two groups rejects."""
    ends = [contrast(h, 2) for h in honest]
    seen = [o + Fraction(p) * (k - o) for p, (k, o) in zip(own, ends, strict=True)]
    laws = [binomial(n, p) for n, p in zip(sizes, seen, strict=True)]
    estimates = [
        [(k / n - float(o)) / float(kept - o) for k in range(n + 1)]
        for n, (kept, o) in zip(sizes, ends, strict=True)
    ]
    weights = [n * float(k - o) ** 2 for n, (k, o) in zip(sizes, ends, strict=True)]

    def is_rejected(first: float, second: float) -> bool:
        common = (weights[0] * first + weights[1] * second) / sum(weights)
        p = Fraction(min(max(common, 0.0), 1.0))
        squares = [float(variance(p, h, 2)) / n for h, n in zip(honest, sizes, strict=True)]
        return abs(first - second) > Z * sqrt(sum(squares))

    exact = fsum(
        laws[0][i] * laws[1][j]
        for i, first in enumerate(estimates[0])
        for j, second in enumerate(estimates[1])
        if is_rejected(first, second)
    )
    arms = [arm([1 - p, p], h) for p, h in zip(own, honest, strict=True)]
    n = sum(sizes)
    planned = SplitTest(arms[0], arms[1], 1, 0.95).power(n, round(WHOLE * sizes[0] / n))
    assert planned == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(("honest", "guess", "target", "_chance"), CASES)
def test_no_other_chance_is_better(
    honest: tuple[int | None, int | None],
    guess: tuple[list[float], list[float]],
    target: int,
    _chance: int,
) -> None:
    test = SplitTest(arm(guess[0], honest[0]), arm(guess[1], honest[1]), target, 0.95)
    chance = test.best_for_power(0.8)
    assert chance is not None
    n = test.reports(chance, 0.8)
    others = [*range(WHOLE // 8, 7 * WHOLE // 8, 1001), chance - 1, chance + 1]
    assert n == min(n, *(test.reports(other, 0.8) for other in others))
    for reports in (max(n // 20, 12), n // 2, n, 1000 * n):
        chance = test.best_for_reports(reports)
        assert chance is not None
        enough = [c for c in others if reports * min(c, WHOLE - c) >= 5 * WHOLE]
        power = test.power(reports, chance)
        assert power >= max(test.power(reports, other) for other in enough) - 1e-12


def test_with_many_reports_the_best_chance_is_finite_in_all_arms() -> None:
    """Every power is 1 as a float, and still the chances are compared."""
    test = SplitTest(arm([0.75, 0.25], 62), arm([0.5, 0.5], 62), 1, 0.95)
    chance = test.best_for_reports(10**12)
    assert chance == pytest.approx(best_share(*test.variances), abs=20)


def test_too_few_reports_have_no_best_chance() -> None:
    test = SplitTest(arm([0.75, 0.25], None), arm([1.0, 0.0], None), 1, 0.95)
    assert test.best_for_reports(9) is None
    assert test.best_for_reports(10) == HALF
    far = SplitTest(arm([0.0, 1.0], None), arm([0.99, 0.01], None), 1, 0.95)
    assert far.best_for_power(0.5) is None


def exact_arm(share: float, epsilon: float | None) -> Arm:
    """Return an arm of two choices whose randomised response has odds of exactly e^ε."""
    kept = 1.0 if epsilon is None else 1 / (1 + exp(-epsilon))
    law = np.array([[kept, 1 - kept], [1 - kept, kept]])
    return Arm(np.linalg.inv(law).T ** 2 @ law.T, np.array([1 - share, share]))


def test_the_table_of_the_derivation(root: Path) -> None:
    page = (root / "docs" / "maths" / "split.md").read_text(encoding="utf-8")
    for label, first, second in (
        ("8 % and 3 %, $\\varepsilon = 4$ both", (0.08, 4.0), (0.03, 4.0)),
        ("8 % at $\\varepsilon = 4$, 3 % in the clear", (0.08, 4.0), (0.03, None)),
        ("20 % at $\\varepsilon = 4$, 15 % at $\\varepsilon = 2$", (0.2, 4.0), (0.15, 2.0)),
        ("10 % in the clear, 15 % at $\\varepsilon = 1$", (0.1, None), (0.15, 1.0)),
    ):
        test = SplitTest(exact_arm(*first), exact_arm(*second), 1, 0.95)
        neyman, best = best_share(*test.variances), test.best_for_power(0.8)
        assert best is not None
        cells = [
            f"{reports_needed(test.difference, *test.variances, 0.5, 0.8, 0.05):,}",
            f"{test.reports(HALF, 0.8):,}",
            *(f"{test.reports(c, 0.8):,} ({c / WHOLE:.3f})" for c in (neyman, best)),
        ]
        assert f"| {label} | {' | '.join(cells)} |" in page
