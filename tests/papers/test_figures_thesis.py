# SPDX-License-Identifier: Apache-2.0
"""Thesis, Figures 4.1 and 6.1 to 6.3, and formulas of chapter 6, checked with sets of outputs,
variances and grids of shares."""

import math
from fractions import Fraction
from itertools import chain, combinations, product

import pytest

from papers.catalogue import FIGURES
from papers.runner import make
from papers.thesis_formulas import corners, efficiency, models, ratio_of_maxima, worst_share
from tests.papers.registry import paper

Curves = dict[str, dict[float, float]]


def drawn(figure: str, panel: str = "a") -> Curves:
    """Return the points of the figure from a quick run: curve, x, y."""
    curves: Curves = {}
    for row in make(
        FIGURES[figure], quick=True, timer=lambda: 0.0, on_progress=lambda _line: None
    ).rows:
        if row.panel == panel:
            curves.setdefault(row.curve, {})[row.x] = row.y
    return curves


def error(p00: float, p11: float, share: float) -> float:
    """Return the variance of the share estimated from one report, as a sum over both reports."""
    k = p00 + p11 - 1
    scores = {0: -(1 - p00) / k, 1: p00 / k}
    chance = {0: (1 - share) * p00 + share * (1 - p11), 1: (1 - share) * (1 - p00) + share * p11}
    return sum(chance[y] * (scores[y] - share) ** 2 for y in (0, 1))


@paper("Thesis Figure 4.1")
def test_the_least_delta_of_figure_41_equals_that_of_every_set() -> None:
    """For one attribute with m values whose true value is e^k times as likely, δ is the max over
    sets A of P(A|d) − e^ε·P(A|d').

    At ε = 0, the limits of δ are 1 for k → ∞ and 1/(m − 1) for k → −∞.
    """
    for curve, epsilon, m in (
        ("ε = 0, m = 2", 0, 2),
        ("ε = 2, m = 2", 2, 2),
        ("ε = 0, m = 5", 0, 5),
    ):
        for k, least in drawn("thesis-4.1")[curve].items():
            weights = [[math.exp(k) if x == y else 1.0 for y in range(m)] for x in range(2)]
            rows = [[w / sum(row) for w in row] for row in weights]
            sets = chain.from_iterable(combinations(range(m), size) for size in range(m + 1))
            by_sets = max(sum(rows[0][y] - math.exp(epsilon) * rows[1][y] for y in A) for A in sets)
            assert least == pytest.approx(max(0.0, by_sets), abs=1e-12)
            assert (least > 1e-9) is (abs(k) > epsilon)
        if epsilon == 0:
            ends = drawn("thesis-4.1")[curve]
            assert ends[6.0] == pytest.approx(1, abs=0.015)
            assert ends[-6.0] == pytest.approx(1 / (m - 1), abs=0.01)


@paper("Thesis Figure 6.1")
def test_on_the_curves_of_figure_61_both_corners_have_equal_errors() -> None:
    """On the curve of π, (s, s) and (r, ½) have equal errors; above the curve, (r, ½) has the
    smaller error."""
    curves = drawn("thesis-6.1")
    for name, points in curves.items():
        if not name.startswith("π") or name == "π = 0":
            continue  # at π = 0 the curve is only a limit
        share = float(Fraction(name.removeprefix("π = ")))
        for epsilon, delta in points.items():
            for shift, better in ((0.0, None), (0.01, True), (-0.01, False)):
                E, moved = math.exp(epsilon), delta + shift
                if not 0 <= moved <= 0.5:
                    continue
                even, r = (E + moved) / (E + 1), 1 - (0.5 - moved) / E
                gap = error(even, even, share) / error(r, 0.5, share) - 1
                assert abs(gap) < 1e-9 if better is None else (gap > 0) is better, (
                    name,
                    epsilon,
                    shift,
                )


@paper("Thesis Figure 6.2")
def test_the_ratio_of_figure_62_equals_that_of_the_largest_errors_on_a_grid() -> None:
    """The ratio is the largest error of Warner divided by that of Mangat at the same degree α of
    violation; it is at least 1."""
    grid = [i / 1000 for i in range(1001)]
    for share in (0.01, 0.1):
        for alpha, ratio in list(drawn("thesis-6.2")[f"π = {share:g}"].items())[1:]:
            p_w = alpha * (1 - share) / (alpha * (1 - share) + share * (1 - alpha))
            p_m = (alpha - share) / (alpha * (1 - share))
            worst = [max(error(*point, pi) for pi in grid) for point in ((p_w, p_w), (p_m, 1.0))]
            assert ratio == pytest.approx(worst[0] / worst[1], rel=1e-4), (share, alpha)
            assert ratio >= 1 - 1e-9


@paper("Thesis Figure 6.3")
def test_there_is_no_gap_at_small_pm_in_figure_63() -> None:
    """Erratum 9.1: at p_m ≤ ½, the largest error with sampling is (1 − p_m)/p_m, as without sampling."""
    curves, grid = drawn("thesis-6.3"), [i / 2000 for i in range(2001)]
    for p_m, value in curves["sampling"].items():
        assert value == pytest.approx(max(error(p_m, 1.0, pi) for pi in grid), rel=1e-5, abs=1e-12)
        without = max((1 - pi) * (1 - p_m) / p_m for pi in grid)  # Thm 6.6
        assert curves["no sampling (6.31)"][p_m] == pytest.approx(without, rel=1e-9, abs=1e-12)
        printed = 1 / (4 * p_m**2)
        if p_m <= 0.5:
            assert value == pytest.approx(without)
            assert printed >= value - 1e-12
        if p_m == 0.1:
            assert printed - without == pytest.approx(16)


@paper("Thesis Cor 6.2, (6.8)")
def test_the_worst_share_is_where_the_variance_is_largest() -> None:
    """The test tries a thousand shares, for k of both signs; the printed 1/(4k²) is attained iff
    both entries are on one side of ½."""
    grid = [i / 1000 for i in range(1001)]
    for p00, p11 in product((0.05, 0.2, 0.45, 0.5, 0.7, 0.95, 1.0), repeat=2):
        k = p00 + p11 - 1
        if abs(k) < 0.01:
            continue
        at = error(p00, p11, worst_share(p00, p11))
        assert at >= max(error(p00, p11, share) for share in grid) - 1e-12
        one_side = (p00 >= 0.5 and p11 >= 0.5) or (p00 <= 0.5 and p11 <= 0.5)
        assert (at == pytest.approx(1 / (4 * k * k), rel=1e-9)) is one_side, (p00, p11)
    for name, points in drawn("thesis-eq-6.8").items():
        assert all(p00 + float(name.removeprefix("p11 = ")) > 1 for p00 in points)


@paper("Thesis (6.8), its proof")
def test_the_second_derivative_behind_68_is_minus_two_over_n() -> None:
    """The thesis prints −2; the variance, (6.6)/n, is a parabola whose second difference is −2h²/n
    for all p00, p11."""
    n, h = 50, Fraction(1, 100)
    for p00, p11 in ((Fraction(3, 4), Fraction(2, 3)), (Fraction(1, 5), Fraction(19, 20))):
        k = p00 + p11 - 1
        at = [
            (Fraction(1, 4) - (p00 - Fraction(1, 2) - share * k) ** 2) / (k * k * n)
            for share in (Fraction(1, 3) - h, Fraction(1, 3), Fraction(1, 3) + h)
        ]
        assert at[0] - 2 * at[1] + at[2] == Fraction(-2, n) * h * h != -2 * h * h


@paper("Thesis (6.22)")
def test_g_decides_among_all_private_mechanisms_of_the_honest_region() -> None:
    """On a grid over the (ε, δ)-private p00, p11 ≥ ½, no point beats the corner that g names, which
    is private."""
    grid = [0.5 + i / 200 for i in range(101)]
    for epsilon, delta, share in product((0.1, 0.5, 1.0, 2.0), (0.0, 0.2, 0.35, 0.5), (0.02, 0.2)):
        E = math.exp(epsilon)

        def private(p: float, q: float, E: float = E, delta: float = delta) -> bool:
            return max(p - E * (1 - q), q - E * (1 - p)) <= delta + 1e-12

        uneven, even = corners(epsilon, delta)
        assert private(*uneven)
        assert private(*even)
        g = ((E - 1) * (3 * delta - 1) + 3 * delta**2) / (E - 1 + 2 * delta) ** 2
        best = error(*(uneven if g > share else even), share)
        others = [error(p, q, share) for p in grid for q in grid if p + q > 1 and private(p, q)]
        assert best <= min(others) + 1e-9, (epsilon, delta, share)
    half = drawn("thesis-eq-6.22")["ε = 0.1"][0.5]
    assert half == pytest.approx((2 * math.exp(0.1) + 1) / (4 * math.exp(0.2)))
    assert half > 0.5  # so the uneven mechanism is better for every share


@paper("Thesis Thm 6.5")
def test_the_ratios_of_theorem_65_and_how_far_the_printed_one_stays_below() -> None:
    """The ratios are checked at π and over all shares on a grid; as α falls to π, the printed ratio
    of the maxima stays below 4."""
    grid = [i / 1000 for i in range(1001)]
    for share, above in product((0.01, 0.1, 0.3), (0.001, 0.05, 0.4)):
        alpha = share + above
        p_w, p_m = models(alpha, share)
        for p00, p11 in ((p_w, p_w), (p_m, 1.0)):  # both have the violation α, by Bayes
            assert share * p11 / (share * p11 + (1 - share) * (1 - p00)) == pytest.approx(alpha)
        at_share = error(p_w, p_w, share) / error(p_m, 1.0, share)
        assert efficiency(alpha, share) == pytest.approx(at_share, rel=1e-9)
        worst = [max(error(*point, pi) for pi in grid) for point in ((p_w, p_w), (p_m, 1.0))]
        true = ratio_of_maxima(alpha, share)
        assert true == pytest.approx(worst[0] / worst[1], rel=1e-4)
        assert min(true, at_share) >= 1
        printed = (p_m / (2 * p_w - 1)) ** 2
        assert printed <= min(4, true + 1e-9)
    assert ratio_of_maxima(0.1 + 1e-6, 0.1) > 10_000
