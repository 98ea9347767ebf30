# SPDX-License-Identifier: Apache-2.0
"""Score interval: its definition, cases where it must not vanish, and the flags of margins."""

import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Estimate, SetCounts, estimate
from frankly_design.estimate.target_ends import TargetEnds
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.scores import Score
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from scipy import optimize, stats

from tests.frankly_design.estimate.published import ORDINARY, SKEWED, UNARY, tallies
from tests.frankly_design.maths import random_mechanism

Z = 1.959963984540054
OPEN = DenseMechanism(4, ((16, 0, 0), (0, 16, 0), (0, 0, 16)))
DEFICIENT = DenseMechanism(4, ((8, 4, 4), (0, 4, 12), (4, 4, 8)))
"""Only the difference of the first two shares is identifiable."""


def decoded(mechanism: DenseMechanism) -> np.ndarray:
    rows = decoder(mechanism, tuple(map(tuple, shares(mechanism.answers))), None).rows
    return np.array([[float(v) for v in row or ()] for row in rows])


def by_definition(
    mechanism: DenseMechanism, counts: list[int], result: Estimate, t: int, sampling: float
) -> tuple[float, float]:
    """Return the ends of {θ : (θ̂ − θ)² ≤ z²/n · V(θ)} by root finding, joined with θ̂ ± z·se."""
    n, Q, D = sum(counts), np.array(mechanism.weights) / mechanism.denominator, decoded(mechanism)
    v, w = D[t], np.eye(mechanism.answers)[t]
    value = float(v @ counts / n)
    c = Q @ v**2 - (1 - sampling) * w**2
    truth_shares = (n * np.array(result.projected) + Z**2 / len(w)) / (n + Z**2)
    together = np.cov(c @ D, v, aweights=truth_shares @ Q, ddof=0)
    slope = together[0, 1] / together[1, 1]
    estimate_of_target = float(c @ D @ counts / n)

    def excess(theta: float) -> float:
        least = min(0.0, estimate_of_target - sampling * value**2)
        return (value - theta) ** 2 - Z**2 / n * (
            estimate_of_target + slope * (theta - value) - sampling * theta**2 - least
        )

    far = 10 * (float(np.ptp(v)) + 1)
    ends = []
    for side in (-1, 1):
        inside = value + side * 1e-9
        ends.append(
            optimize.brentq(excess, inside, value + side * far) if excess(inside) < 0 else value
        )
    theirs = float(c @ truth_shares - sampling * (w @ truth_shares) ** 2) / n
    se = max(result.se[t] or 0.0, max(0.0, theirs) ** 0.5)
    return min(ends[0], value - Z * se), max(ends[1], value + Z * se)


OPTIONS: dict[str, tuple[dict[str, Any], float]] = {
    "sample": ({}, 1.0),
    "census": ({"census": True}, 0.0),
    "population": ({"population": 300}, -1.0),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_score_margin_satisfies_its_definition(kind: str) -> None:
    options, sampling = OPTIONS[kind]
    rng = random.Random(kind)
    for mechanism in (SKEWED, ORDINARY, random_mechanism(rng, 3, 5), random_mechanism(rng, 4, 6)):
        counts = [rng.randrange(1, 40) for _ in range(mechanism.reports)]
        factor = (300 - sum(counts)) / 299 if sampling < 0 else sampling
        result = estimate(mechanism, counts, methods=(), **options)
        for t, value in enumerate(result.unbiased):
            low, high = by_definition(mechanism, counts, result, t, factor)
            assert result.margins.uncut[t] == pytest.approx((low, high), abs=1e-6)
            if low <= 1 and high >= 0:
                # An interval entirely outside [0, 1] is not clipped.
                low, high = min(max(low, 0.0), value), max(min(high, 1.0), value)  # type: ignore[assignment, type-var]
            assert result.margins.score[t] == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("counts", [[99, 1], [60, 40]])
def test_with_two_choices_the_score_margin_unites_wilsons_and_the_normal(counts: list[int]) -> None:
    mechanism = DenseMechanism(6, ((60, 4), (4, 60)))
    result = estimate(mechanism, counts, methods=())
    (low, high), value, se = result.margins.uncut[1], result.unbiased[1], result.se[1]
    assert value is not None
    assert se is not None
    wilson = stats.binomtest(counts[1], 100).proportion_ci(method="wilson")
    mapped = [(q - 4 / 64) * 64 / 56 for q in (wilson.low, wilson.high)]
    assert (low, high) == pytest.approx(
        (min(mapped[0], value - Z * se), max(mapped[1], value + Z * se)), abs=1e-12
    )


def test_without_identifiable_shares_the_mean_square_is_used() -> None:
    counts, n = [60, 70, 50], 180
    targets = ((Fraction(1), Fraction(-1), Fraction(0)),)
    result = estimate(DEFICIENT, counts, targets=targets, methods=())
    row = decoder(DEFICIENT, targets, None).rows[0]
    assert row is not None
    assert len(set(row)) == 3
    v = np.array([float(x) for x in row])
    value, Q, w = (
        float(v @ counts / n),
        np.array(DEFICIENT.weights) / 16,
        np.array([1.0, -1.0, 0.0]),
    )
    c = Q @ v**2
    slope = np.polyfit(w, c, 1)[0]
    constant = float(v**2 @ counts / n) - slope * value
    roots = np.roots([1 + Z**2 / n, -2 * value - Z**2 / n * slope, value**2 - Z**2 / n * constant])
    se = result.se[0]
    assert se is not None
    ends = result.margins.score[0]
    assert max(roots) < 1
    assert min(roots) > -1
    assert ends == pytest.approx((min(*roots, value - Z * se), max(*roots, value + Z * se)))
    # A census would require the sampling part of the variance, which is unknown.
    assert estimate(DEFICIENT, counts, targets=targets, census=True).margins.score == (None,)


@pytest.mark.parametrize("options", [{}, {"census": True}, {"population": 6}])
@pytest.mark.parametrize("mechanism", [SKEWED, ORDINARY])
def test_no_counts_give_a_margin_of_zero(
    mechanism: DenseMechanism, options: dict[str, Any]
) -> None:
    vanished = 0
    for n in (1, 4):
        for counts in tallies(n, 4):
            result = estimate(mechanism, counts, methods=(), **options)
            vanished += 0.0 in result.se
            for value, ends in zip(result.unbiased, result.margins.score, strict=True):
                assert ends is not None
                assert value is not None
                assert ends[0] <= value <= ends[1]
                assert ends[1] - ends[0] > 0.05
    assert vanished > 0 or options


def test_a_census_of_open_answers_has_a_margin_of_zero() -> None:
    result = estimate(OPEN, [50, 30, 20], census=True, methods=())
    assert result.margins.score == ((0.5, 0.5), (0.3, 0.3), (0.2, 0.2))
    assert [
        ends is not None and ends[0] < ends[1] for ends in estimate(OPEN, [50, 50, 0]).margins.score
    ] == [True] * 3


def test_the_worst_case_replaces_a_variance_that_is_estimated_as_0() -> None:
    """The variances are 1, 2 and 0 without a slope in w, and the estimated shares are 0, 0 and 1."""
    evidence: Any = SimpleNamespace(
        n=25,
        known=[0],
        W=np.array([[1.0, 0.0, 0.0]]),
        exact=(0,),
        scores=lambda: [Score(0.0, (-1.0, 1.0))],
    )
    moments = np.array([[2.0, 2.0, 0.0]])
    ends = TargetEnds(evidence, moments, 0.0, independent=True, like_draws=False)
    ((low, high),) = ends.score(0.95, np.array([0.0, 0.0, 1.0]), None, (0.0,), (0.4,))
    assert (low, high) == pytest.approx((-0.4 * Z, 0.4 * Z))
    assert ends.sequence(0.95) == [None]


@pytest.mark.parametrize("events", [0.02, 0.1, 0.17, 0.25, 1.0])
def test_one_rare_event_is_covered(events: float) -> None:
    """For answers sent unchanged, by enumeration; with 0.17 expected events, Wilson's interval
    covers only 84%."""
    mechanism, n = DenseMechanism(4, ((16, 0), (0, 16))), 100
    chances = stats.binom.pmf(range(n + 1), n, events / n)
    held = 0.0
    for k, chance in enumerate(chances[:20]):
        ends = estimate(mechanism, [n - k, k], methods=()).margins.score[1]
        assert ends is not None
        held += chance * (ends[0] <= events / n <= ends[1])
    assert held >= 0.93


@pytest.mark.slow
def test_a_rare_report_of_a_large_score_is_accounted_for() -> None:
    """A report with a probability of 1 to 2% scores −20 for the first answer and 21 for the last."""
    mechanism = DenseMechanism(
        10, ((0, 0, 29, 995), (530, 494, 0, 0), (762, 262, 0, 0), (0, 0, 76, 948))
    )
    p = np.array([0.1875, 0.46875, 0.28125, 0.0625])
    drawn = np.random.default_rng(9).multinomial(
        100, p @ np.array(mechanism.weights) / 1024, size=400
    )
    held = {"score": 0, "clt": 0}
    for counts in drawn:
        result = estimate(mechanism, [int(c) for c in counts], methods=())
        for method in held:
            ends = result.margins.ends(method, result.unbiased)[0]
            assert ends is not None
            held[method] += ends[0] <= p[0] <= ends[1]
    assert held["clt"] < 0.75 * 400
    assert held["score"] >= 0.93 * 400


def flags_of(mechanism: DenseMechanism, counts: list[int]) -> tuple[tuple[str, ...], ...]:
    return estimate(mechanism, counts, methods=()).row_flags


def test_equal_reports_are_flagged_if_the_clt_margin_is_zero() -> None:
    """For randomised response at ε = 4 with 100 equal reports, the clt margin is 0."""
    off = int((1 << 48) / 55.598150033144236)
    mechanism = DenseMechanism(48, (((1 << 48) - off, off), (off, (1 << 48) - off)))
    result = estimate(mechanism, [100, 0])
    assert result.margins.clt == (0.0, 0.0)
    for method in ("score", "kl", "exact", "sequence"):
        pair = getattr(result.margins, method)[1]
        assert pair[0] <= 0
        assert pair[1] >= 0.0189
    score = result.margins.score[1]
    assert score is not None
    assert score[1] > 0.019
    assert result.row_flags[1] == ("outside_unit_interval", "imprecise", "few_informative")
    assert result.row_flags[0] == ("outside_unit_interval", "few_informative")
    assert "few_informative" not in flags_of(mechanism, [95, 5])[1]
    assert "few_informative" in flags_of(mechanism, [96, 4])[1]


def test_honest_surveys_fit() -> None:
    """Of 16 choices, 12 have a share of 0; a tenth of the ½-level intervals of each of these is negative."""
    off = int((1 << 48) / 17.718281828459045)
    diagonal = (1 << 48) - 15 * off
    mechanism = DenseMechanism(
        48, tuple(tuple(diagonal if x == y else off for y in range(16)) for x in range(16))
    )
    law = np.array(mechanism.weights) / mechanism.denominator
    rng = np.random.default_rng(8)
    for counts in rng.multinomial(2000, np.r_[[0.25] * 4, [0.0] * 12] @ law, size=30):
        result = estimate(mechanism, [int(c) for c in counts], level=0.5, methods=())
        assert not any("reports_do_not_fit" in flags for flags in result.row_flags)


FIRST_RARE = DenseMechanism(
    10, ((0, 0, 29, 995), (530, 494, 0, 0), (762, 262, 0, 0), (0, 0, 76, 948))
)
ONE_SIDED = DenseMechanism(4, ((16, 0), (12, 4)))


@pytest.mark.slow
def test_rare_answers_without_reports_are_covered() -> None:
    """As long as no report of a rare answer with large scores arrives, the estimated variance is near 0."""
    law, p = np.array(FIRST_RARE.weights) / 1024, np.array([0.002, 0.55, 0.446, 0.002])
    rng, held = np.random.default_rng(3), np.zeros(4)
    for counts in rng.multinomial(50, p @ law, size=300):
        ends = estimate(FIRST_RARE, [int(c) for c in counts], methods=()).margins.score
        held += [
            pair is not None and pair[0] - 1e-9 <= v <= pair[1] + 1e-9
            for pair, v in zip(ends, p, strict=True)
        ]
    assert held.min() >= 0.93 * 300 - 3.5 * (0.93 * 0.07 * 300) ** 0.5


@pytest.mark.parametrize("counts", [[100, 0, 0, 0], [90, 10, 0, 0], [90, 9, 1, 0]])
def test_no_cell_of_a_table_is_certain_if_all_reports_are_equal(counts: list[int]) -> None:
    table = ProductMechanism((ONE_SIDED, ONE_SIDED))
    for low, high in estimate(table, counts, methods=()).margins.score:
        assert high - low > 0.05


def test_flags_are_of_the_margin_before_it_is_cut() -> None:
    """Two reports decode to −½ and 1½; the margin is ±196 points, displayed as 0 to 100%."""
    result = estimate(DenseMechanism(4, ((12, 4), (4, 12))), [1, 1], methods=())
    assert result.margins.score == ((0.0, 1.0), (0.0, 1.0))
    assert result.margins.clt == pytest.approx((Z, Z))
    for flags in result.row_flags:
        assert flags == ("imprecise", "margin_too_wide", "few_informative")


def test_rows_that_no_truth_gives_are_flagged() -> None:
    assert [("reports_do_not_fit" in flags) for flags in flags_of(ORDINARY, [0, 0, 0, 500])] == [
        False,
        True,
        True,
    ]


def test_margins_that_are_not_requested_are_left_out() -> None:
    counts = SetCounts.of_symbols(3, {0b001: 30, 0b011: 20})
    requested = estimate(UNARY, counts, methods=("kl",)).margins
    assert None not in requested.kl
    assert None not in requested.score
    assert (requested.exact, requested.sequence) == (None, (None, None, None))
    all_margins = estimate(UNARY, counts).margins
    assert all_margins.kl == requested.kl
    assert all_margins.exact is not None
    assert None not in all_margins.exact


def test_intervals_without_a_proof_are_left_out() -> None:
    """There is no `exact` interval for draws without replacement or below level ½, and `sequence`
    only for identical draws."""
    warner, nothing = DenseMechanism(4, ((12, 4), (4, 12))), (None, None)
    for table in (warner, ORDINARY):
        counts = [20] * table.reports
        for options in ({"census": True}, {"population": 200}):
            sequence = estimate(table, counts, **options).margins.sequence
            assert sequence == (None,) * table.answers
    assert estimate(warner, [20, 20], population=200).margins.exact is None
    assert estimate(warner, [20, 20], level=0.49).margins.exact is None
    for result in (estimate(warner, [20, 20], census=True), estimate(warner, [20, 20], level=0.5)):
        assert result.margins.exact not in (None, nothing)
        assert None not in result.margins.kl
