# SPDX-License-Identifier: Apache-2.0
"""Funnel, Figures 3, 4 and 6 to 9: points compared with formulas and enumerations in this module.

`python -m papers` makes the figures themselves, with the paper's numbers of draws and on Adult.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for
from numpy.typing import NDArray

from papers.catalogue import FIGURES
from papers.draws import normalised
from papers.funnel_families import CR, GRR, OUE, fitted
from papers.records import read_records
from papers.runner import make
from tests.papers import adult
from tests.papers.exact import best_information, delta_rows, secret_rows, vertices
from tests.papers.registry import paper

Matrix = NDArray[np.float64]
Level = Callable[[Matrix, float], float]
PRIORS = [[[9, 4, 2, 5], [1, 6, 7, 3]], [[20, 31, 8], [5, 9, 40], [17, 2, 30]]]


def shares(counts: Matrix) -> tuple[Matrix, Matrix]:
    """Return P(x|s) and P(x)."""
    return counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / counts.sum()


def normalised_information(Q: Matrix, p: Matrix) -> float:
    """Return I(X;Y)/H(X) for Q with row = truth."""
    joint = p[:, None] * Q
    positive = joint > 0
    return float(np.sum(joint[positive] * np.log((Q / (p @ Q))[positive])) / -np.sum(p * np.log(p)))


def identity_lip(counts: Matrix) -> float:
    conditional, p = shares(counts)
    with np.errstate(divide="ignore"):
        return float(np.max(np.abs(np.log(conditional / p))))


def grr_lip(counts: Matrix, E: float) -> float:
    """Return (26)."""
    conditional, p = shares(counts)
    return float(np.max(np.abs(np.log((1 + (E - 1) * conditional) / (1 + (E - 1) * p)))))


def cr_lip(counts: Matrix, E: float) -> float:
    """Return (30)."""
    conditional, p = shares(counts)
    everyone = conditional.sum(axis=0)
    return float(
        np.max(np.abs(np.log(((E - 1) * conditional + everyone) / ((E - 1) * p + everyone))))
    )


def oue_lip(counts: Matrix, E: float) -> float:
    """Return (27), over reports with ones and zeros; the true bit is 1 with probability ½, others
    with 1/(E+1)."""
    conditional, p = shares(counts)
    a, q = len(p), 1 / (E + 1)
    worst = 0.0
    for k in range(a + 1):
        for ones in combinations(range(a), k):
            inside = conditional[:, list(ones)].sum(axis=1), p[list(ones)].sum()
            inside_lift, average = (v * (1 - q) / q + (1 - v) for v in inside)
            worst = max(worst, float(np.max(np.abs(np.log(inside_lift / average)))))
    return worst


def alpha_at(level: Level, counts: Matrix, epsilon: float) -> float:
    """Return the α at which the level is ε, by bisection, or ∞ if even the raw answer keeps ε."""
    if level is not oue_lip and identity_lip(counts) <= epsilon:
        return math.inf
    low, high = 0.0, 60.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if level(counts, math.exp(middle)) <= epsilon else (low, middle)
    return low


def grr_table(counts: Matrix, alpha: float) -> Matrix:
    a = counts.shape[1]
    weights = np.ones((a, a)) + np.eye(a) * math.expm1(alpha) if alpha < math.inf else np.eye(a)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def cr_table(counts: Matrix, alpha: float) -> Matrix:
    """Return P(y|x) = Σ_s P(s|x) P(y|s,x) of the corrected Algorithm 1."""
    if alpha == math.inf:
        return np.eye(counts.shape[1])
    (conditional, _), E, c = shares(counts), math.exp(alpha), len(counts)
    secret_given_answer = counts / counts.sum(axis=0)  # P(s|x)
    other_secrets = conditional.sum(axis=0) - conditional
    return np.asarray(
        (E * np.eye(counts.shape[1]) + secret_given_answer.T @ other_secrets) / (E + c - 1)
    )


def oue_table(counts: Matrix, alpha: float) -> Matrix:
    a, q = counts.shape[1], 1 / (math.exp(alpha) + 1)
    rows = np.full((a, 2**a), 0.5)
    for x, (y, bits) in product(range(a), enumerate(product((0, 1), repeat=a))):
        for z in range(a):
            rows[x, y] *= 1.0 if z == x else q if bits[z] else 1 - q
    return rows


@paper("Funnel Figure 3", "Funnel Figure 4")
@pytest.mark.parametrize(("figure", "lower", "upper", "share"), [
    ("funnel-3", "ε-LDP", "ε-LIP", Fraction(1)), ("funnel-4", "ε/2-LIP", "ε-LDP", Fraction(1, 2)),
])  # fmt: skip
def test_the_optima_of_figures_3_and_4_equal_those_of_every_vertex(
    figure: str, lower: str, upper: str, share: Fraction
) -> None:
    """For c = 2 and a = 5, LIP has at least the information of LDP, and LDP at least that of half
    of LIP; the differences are small, and smaller at ε = 2."""
    result = make(
        FIGURES[figure], quick=True, draws=1, timer=lambda: 0.0, on_progress=lambda _line: None
    )
    drawn = {(row.curve, row.x): row.y for row in result.rows}
    (prior,) = normalised(2, 5, figure, 1)
    information_at = {}
    for epsilon in (Fraction(1, 2), Fraction(2)):
        for curve in (lower, upper):
            rows, at = (secret_rows, epsilon) if curve == "ε-LDP" else (delta_rows, share * epsilon)
            value = best_information(prior, vertices(rows(prior, Fraction(*level_for(at))), 5))
            assert drawn[curve, float(epsilon)] == pytest.approx(value, abs=2e-6)
            information_at[curve, epsilon] = value
        assert information_at[lower, epsilon] <= information_at[upper, epsilon] + 1e-9
    lost = [
        1 - information_at[lower, e] / information_at[upper, e]
        for e in (Fraction(1, 2), Fraction(2))
    ]
    assert lost[1] <= lost[0] + 1e-9 < 0.25


@paper("Funnel Figure 6", "Funnel Figure 7", "Funnel Figure 9")
@pytest.mark.parametrize("counts", PRIORS, ids=["2x4", "3x3"])
def test_the_points_of_figures_6_7_and_9_are_the_formulas(counts: list[list[int]]) -> None:
    """α comes from (26), (29) and (30) by bisection, and information from the tables; OUE is summed
    over all 2^a reports."""
    P = np.array(counts, dtype=float)
    for epsilon in (0.2, 0.5):
        for name, level, table in (
            (GRR, grr_lip, grr_table),
            (CR, cr_lip, cr_table),
            (OUE, oue_lip, oue_table),
        ):
            point = fitted(name, Prior.from_rows(counts), Fraction(str(epsilon)))
            alpha = alpha_at(level, P, epsilon)
            assert point.alpha == pytest.approx(alpha, rel=1e-6), name
            assert point.utility == pytest.approx(
                normalised_information(table(P, alpha), shares(P)[1]), rel=1e-6
            ), name


@paper("Funnel Figure 6")
def test_grr_does_not_always_lie_above_oue() -> None:
    """Erratum 9.19: with sixteen equally likely answers, of which a rare secret has the first, at ε = .5."""
    counts = np.array([[100.0] * 16, [3.0] + [0.0] * 15])
    alpha = alpha_at(grr_lip, counts, 0.5)
    oue = fitted(OUE, Prior.from_rows(counts.astype(int).tolist()), Fraction("0.5"))
    assert oue.alpha < alpha  # the reports of OUE include all sets of one answer
    assert normalised_information(grr_table(counts, alpha), shares(counts)[1]) < 0.5 * oue.utility


@paper("Funnel Figure 8")
def test_the_correlations_of_figure_8() -> None:
    """For a = c = 5 with Jeffreys' prior, the paper prints .982, .989, .973 at ε = 1, 1.5, 2, from
    other draws."""
    rng = np.random.default_rng(8)
    drawn = [np.maximum(rng.dirichlet(np.full(25, 0.5)).reshape(5, 5), 1e-9) for _ in range(100)]
    for epsilon, printed in ((1.0, 0.9815), (1.5, 0.9889), (2.0, 0.9731)):
        points = []
        for P in drawn:
            alphas = [alpha_at(level, P, epsilon) for level in (cr_lip, grr_lip)]
            if max(alphas) < math.inf:
                cr, grr = (
                    normalised_information(table(P, alpha), shares(P)[1])
                    for table, alpha in zip((cr_table, grr_table), alphas, strict=True)
                )
                points.append((alphas[0] - alphas[1], cr - grr))
        assert len(points) > 90
        assert float(np.corrcoef(np.array(points).T)[0, 1]) == pytest.approx(printed, abs=0.03)


@paper("Funnel Figure 7")
def test_the_more_answers_per_secret_the_more_cr_gains(full: bool) -> None:
    """The test compares the mean gain of CR over GRR for a = 5, c = 2 with a = 2, c = 5, and for 7,
    5 with 5, 7."""
    rng = np.random.default_rng(7)
    for more_answers, fewer_answers in ((5, 2), (7, 5)):
        gain = []
        for c, a in ((fewer_answers, more_answers), (more_answers, fewer_answers)):
            values = []
            for _ in range(100 if full else 25):
                P = np.maximum(rng.dirichlet(np.full(a * c, 0.5)).reshape(c, a), 1e-9)
                for epsilon in (0.5, 1.0, 2.0):
                    cr, grr = (normalised_information(table(P, alpha_at(level, P, epsilon)), shares(P)[1])
                               for level, table in ((cr_lip, cr_table), (grr_lip, grr_table)))  # fmt: skip
                    values.append(cr - grr)
            gain.append(float(np.mean(values)))
        assert gain[0] > gain[1], (more_answers, fewer_answers)


@paper("Funnel Figure 9")
@pytest.mark.full_only
def test_which_alpha_is_larger_on_adult() -> None:
    """GRR has the larger α for S = occupation, X = education; Conditional Reporting has it for X =
    relationship."""
    records = read_records(adult.DATA)
    for answer, first, second in (
        ("education", grr_lip, cr_lip),
        ("relationship", cr_lip, grr_lip),
    ):
        P = np.array(records.joint("occupation", answer), dtype=float)
        for epsilon in np.arange(0.5, 4.25, 0.5):
            assert alpha_at(first, P, float(epsilon)) >= alpha_at(second, P, float(epsilon)) - 1e-9
