# SPDX-License-Identifier: Apache-2.0
"""Fieller's interval of a ratio: definition, unbounded cases and coverage."""

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.ratios import Margin, Pair
from frankly_design.kinds.decoder import shares
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis.part import Part
from frankly_server.analysis.pooling import pool
from frankly_server.analysis.request import Request
from frankly_server.analysis.rows import table_json
from frankly_server.analysis.tables import Table, Target
from scipy import stats

from tests.frankly_design.estimate.published import tallies
from tests.frankly_design.maths import random_mechanism
from tests.frankly_server.analysis.samples import LIP, block_of, grr

Z = normal_quantile(0.95)


def holds(mechanism: DenseMechanism, counts: list[int], target: Target, rho: float) -> bool:
    """Return True if the interval of the target a − ρb contains 0.

    The interval is the normal interval, united with the score interval if some shares have the
    ratio ρ.
    """
    both = list(zip(target.weights, target.over or (), strict=True))
    weights = [a - Fraction(rho) * b for a, b in both]
    counted = [w for w, (a, b) in zip(weights, both, strict=True) if a or b]
    result = estimate(mechanism, counts, targets=[weights])
    value, half, score = result.unbiased[0], result.margins.clt[0], result.margins.uncut[0]
    assert value is not None
    assert half is not None
    assert score is not None
    return abs(value) <= half or (min(counted) <= 0 <= max(counted) and score[0] <= 0 <= score[1])


@pytest.mark.parametrize("seed", range(12))
def test_the_ends_are_where_the_interval_of_the_difference_stops_containing_0(seed: int) -> None:
    draw = np.random.default_rng(seed)
    answers = int(draw.integers(3, 6))
    mechanism = random_mechanism(Random(seed), answers, answers + int(draw.integers(0, 3)))
    of, over = draw.choice(answers, 2, replace=False)
    target = ratio_of(
        answers, {int(of): 1}, {int(of): 1, int(over): Fraction(int(draw.integers(1, 5)), 2)}
    )
    counts = [
        int(c) for c in draw.multinomial(400, draw.dirichlet(np.ones(answers)) @ law(mechanism))
    ]
    ends = ends_of(mechanism, counts, target, "score")
    if ends is None:
        b = estimate(mechanism, counts, targets=[target.over or ()]).margins.uncut[0]
        assert b is not None
        assert b[0] <= 0 <= b[1]
        return
    low, high = ends
    width = high - low
    inside = np.linspace(low + 1e-6 * width, high - 1e-6 * width, 12)
    assert holds(mechanism, counts, target, float(inside[0]))
    assert holds(mechanism, counts, target, float(inside[-1]))
    outside = [low - step * width for step in (1e-6, 0.1, 1, 10)] + [
        high + step * width for step in (1e-6, 0.1, 1, 10)
    ]
    assert not any(holds(mechanism, counts, target, rho) for rho in outside)


def test_normal_ends_are_the_roots_of_fiellers_equation() -> None:
    mechanism, counts, target = grr(4, 2), [130, 90, 60, 220], odds(4, 0, 3)
    result = estimate(mechanism, counts)
    (a, b), C = (
        (result.unbiased[0], result.unbiased[3]),
        np.array(result.covariance)[np.ix_([0, 3], [0, 3])],
    )
    assert a is not None
    assert b is not None
    roots = np.roots(
        [b * b - Z * Z * C[1, 1], -2 * (a * b - Z * Z * C[0, 1]), a * a - Z * Z * C[0, 0]]
    )
    assert ends_of(mechanism, counts, target, "clt") == pytest.approx(sorted(roots), rel=1e-9)
    row = row_of(mechanism, counts, target, "clt")
    rho = a / b
    assert row["estimate"] == pytest.approx(rho)
    assert row["se"] == pytest.approx(np.sqrt(C[0, 0] - 2 * rho * C[0, 1] + rho**2 * C[1, 1]) / b)


def test_ends_of_score_are_no_nearer_than_normal_ones() -> None:
    for counts in ([130, 90, 60, 220], [30, 90, 60, 90], [60, 40, 30, 90]):
        normal, wide = (
            ends_of(grr(4, 2), counts, odds(4, 0, 3), method) for method in ("clt", "score")
        )
        assert normal is not None
        assert wide is None or (wide[0] <= normal[0] + 1e-12 and wide[1] >= normal[1] - 1e-12)


@pytest.mark.parametrize("counts", [[56, 11, 19, 14], [38, 1, 6, 5], [43, 1, 2, 4], [31, 1, 5, 13]])
def test_possible_values_next_to_1_are_not_left_out(counts: list[int]) -> None:
    """a/(a + b) and its normal interval exceed 1, but the score interval contains values just below 1."""
    epsilon = 1 if sum(counts) == 100 else 2
    mechanism, target = grr(4, epsilon), ratio_of(4, {0: 1}, {0: 1, 1: 1})
    assert holds(mechanism, counts, target, 0.99)
    ends = ends_of(mechanism, counts, target, "score")
    assert ends is not None
    assert ends[0] < 0.99
    assert not holds(mechanism, counts, target, ends[0] - 1e-6)


METHODS = ("chebyshev", "chebyshev_plugin", "simultaneous", "simultaneous_plugin")


@pytest.mark.parametrize("method", METHODS)
def test_the_requested_method_equals_that_of_the_difference_at_the_ends(method: str) -> None:
    """At the ends of the interval, a − ρb differs from 0 by exactly the margin of this method."""
    mechanism, counts, target = (
        LIP,
        [4400, 2400, 3600, 5600],
        ratio_of(4, {0: 1}, {0: 1, 1: 1, 2: 1}),
    )
    (row,) = table_of(mechanism, counts, target, method)
    assert (row["method"], "score_instead" in row["flags"]) == (method, False)
    for rho in (row["low"], row["high"]):
        weights = [a - Fraction(rho) * b for a, b in zip(target.weights, target.over or (), strict=True)]  # fmt: skip
        found = estimate(mechanism, counts, targets=[weights])
        half = getattr(found.margins, method)[0]
        assert abs(found.unbiased[0] or 0) == pytest.approx(half, rel=1e-6)


def test_simultaneous_ratios_hold_at_once() -> None:
    """The factor is Bonferroni's for the number of ratios, instead of the factor for one ratio."""
    mechanism, counts = LIP, [110, 60, 90, 140]
    targets = [ratio_of(4, {x: 1}, {0: 1, 1: 1, 2: 1}) for x in range(3)]
    questions = block_of(mechanism, (1,) * 4).questions
    table = Table(questions, tuple(targets), (), shares=False)
    rows_ = [weights for target in targets for weights in (target.weights, target.over or ())]
    own = replace(part_of(mechanism, counts, targets[0]), targets=tuple(rows_))
    request = Request(method="simultaneous_plugin")
    found = table_json(table, [own], pool([own], request), request, ["d"])["rows"]
    level = 1 - 0.05 / 3
    request = Request(method="clt", level=level)
    alone = table_json(table, [own], pool([own], request), request, ["d"])["rows"]
    for wide, normal in zip(found, alone, strict=True):
        assert (wide["low"], wide["high"]) == pytest.approx((normal["low"], normal["high"]))


def test_chebyshev_covers_every_ratio_by_enumeration() -> None:
    """The test enumerates all outcomes of 9 reports at several truths; at 80 %, at most a fifth of
    intervals miss."""
    mechanism, target, n = grr(3, 3), ratio_of(3, {0: 1}, {0: 1, 1: 1}), 9
    request = Request(method="chebyshev", level=0.8)
    found = {}
    for counts in tallies(n, 3):
        own = part_of(mechanism, list(counts), target)
        (row,) = table_json(
            table_with(mechanism, target), [own], pool([own], request), request, ["d"]
        )["rows"]
        found[tuple(counts)] = (row["low"], row["high"])
    bounded = sum(low is not None for low, _ in found.values())
    assert bounded > len(found) / 6
    for truth in ((0.5, 0.3, 0.2), (0.05, 0.9, 0.05), (0.9, 0.05, 0.05), (0.3, 0.69, 0.01)):
        chances = stats.multinomial(n, np.array(truth) @ law(mechanism))
        ratio = truth[0] / (truth[0] + truth[1])
        missed = sum(
            float(chances.pmf(counts))
            for counts, (low, high) in found.items()
            if low is not None and not low <= ratio <= high
        )
        assert missed <= 0.2


def test_a_denominator_of_0_has_no_ratio() -> None:
    """At equal counts, the difference of two choices is estimated as exactly 0."""
    [row] = table_of(grr(4, 2), [50, 50, 60, 40], ratio_of(4, {0: 1}, {0: 1, 1: -1}), "score")
    assert (row["estimate"], row["low"], row["high"]) == (None, None, None)
    assert "unbounded" in row["flags"]


def test_a_ratio_is_unbounded_if_the_score_interval_of_its_denominator_contains_0() -> None:
    """The test uses a difference of shares at all counts of 10 reports; some normal intervals exclude 0."""
    mechanism, target, score_alone = grr(3, 4), ratio_of(3, {0: 1}, {1: 1, 2: -1}), 0
    for counts in map(list, tallies(10, 3)):
        b = estimate(mechanism, counts, targets=[target.over or ()], methods=())
        ends, value, half = b.margins.uncut[0], b.unbiased[0], b.margins.clt[0]
        assert ends is not None
        if value:
            holds_0 = ends[0] <= 0 <= ends[1]
            assert (ends_of(mechanism, counts, target, "score") is None) is holds_0
            score_alone += holds_0 and abs(value) > (half or 0.0)
    assert score_alone > 0


def test_the_worst_case_replaces_a_variance_that_is_estimated_as_0() -> None:
    """Variances by answer are 1, 2 and 0, in a census of 25 people who all appear to have the third
    answer."""
    linear, nothing = np.zeros((2, 2, 3)), np.zeros((2, 2))
    linear[0, 0] = [1.0, 2.0, 0.0]
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    pair = Pair(25, np.array([0.0, 1.0]), nothing, weights, linear, nothing, 0.0, None)
    assert pair.reach(np.array([1.0, 0.0]), Margin("score", Z)) == pytest.approx(
        (Z * (2 / 25) ** 0.5,) * 2
    )
    assert pair.reach(np.array([1.0, 0.0]), Margin("normal", Z)) == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100, 500])
def test_a_ratio_is_covered_if_the_rarer_answer_has_no_reports(n: int, full: bool) -> None:
    """Only answer 1, with a share of 0.2%, sends certain reports; if none arrives, its share varies
    only with the other shares.

    An interval from that correlation has no width and covers the truth in 60 to 70% of surveys.
    """
    open_rows = DenseMechanism(4, ((12, 4, 0), (0, 0, 16), (4, 12, 0)))
    truth, target, runs, covered = (
        np.array([0.599, 0.002, 0.399]),
        ratio_of(3, {0: 1}, {0: 1, 1: 1}),
        300 if full else 100,
        0,
    )
    share = truth[0] / (truth[0] + truth[1])
    for counts in np.random.default_rng(n).multinomial(n, truth @ law(open_rows), size=runs):
        ends = ends_of(open_rows, [int(c) for c in counts], target, "score")
        covered += ends is None or ends[0] <= share <= ends[1]
    assert covered / runs >= 0.93 - 3.5 * (0.93 * 0.07 / runs) ** 0.5


def test_a_ratio_of_several_versions_adds_their_distances_in_squares() -> None:
    """With the same mechanism, normal ends of two versions equal those of all reports, up to n − 1."""
    target, halves = odds(4, 0, 3), ([130, 90, 60, 220], [260, 180, 120, 440])
    together = ends_of(grr(4, 2), [a + b for a, b in zip(*halves, strict=True)], target, "clt")
    versions = [part_of(grr(4, 2), counts, target) for counts in halves]
    request = Request(method="clt")
    pooled, table = pool(versions, request), table_with(grr(4, 2), target)
    (row,) = table_json(table, versions, pooled, request, ["a", "b"])["rows"]
    assert (row["low"], row["high"]) == pytest.approx(together, rel=2e-3)


def law(mechanism: DenseMechanism) -> np.ndarray:
    return np.array([[float(w) for w in row] for row in mechanism.weights]) / mechanism.denominator


def part_of(mechanism: DenseMechanism, counts: list[int], target: Target) -> Part:
    block = block_of(mechanism, (1,) * mechanism.answers)
    weights = (target.weights, target.over or ())
    return Part((block,), sum(counts), {(y,): n for y, n in enumerate(counts)}, weights)


def table_with(mechanism: DenseMechanism, target: Target) -> Table:
    return Table(
        block_of(mechanism, (1,) * mechanism.answers).questions, (target,), (), shares=False
    )


def table_of(
    mechanism: DenseMechanism, counts: list[int], target: Target, method: str
) -> list[dict[str, Any]]:
    versions = [part_of(mechanism, counts, target)]
    request, table = Request(method=method), table_with(mechanism, target)
    rows: list[dict[str, Any]] = table_json(
        table, versions, pool(versions, request), request, ["d"]
    )["rows"]
    return rows


def row_of(
    mechanism: DenseMechanism, counts: list[int], target: Target, method: str
) -> dict[str, Any]:
    """Return the row of a ratio in a response."""
    (row,) = table_of(mechanism, counts, target, method)
    assert row["method"] == method
    assert (row["low"] is None) == ("unbounded" in row["flags"])
    return row


def ends_of(
    mechanism: DenseMechanism, counts: list[int], target: Target, method: str
) -> tuple[float, float] | None:
    """Return the ends in the row of a ratio, or None if the ratio is unbounded."""
    row = row_of(mechanism, counts, target, method)
    return None if row["low"] is None else (row["low"], row["high"])


def ratio_of(answers: int, of: dict[int, Any], over: dict[int, Any]) -> Target:
    top, bottom = (tuple(Fraction(side.get(x, 0)) for x in range(answers)) for side in (of, over))
    return Target("ratio", {"en": "ratio"}, top, bottom)


def odds(answers: int, of: int, over: int) -> Target:
    rows = shares(answers)
    return Target("odds", {"en": "odds"}, rows[of], rows[over])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "share", "n"), [(1, 0.3, 60), (4, 0.3, 60), (4, 0.02, 100), (1, 0.02, 100)]
)
def test_the_ratio_of_two_choices_is_covered_by_enumeration(
    epsilon: float, share: float, n: int
) -> None:
    mechanism, target = grr(2, epsilon), odds(2, 1, 0)
    rate = float(np.array([1 - share, share]) @ law(mechanism)[:, 1])
    covered = 0.0
    for k, chance in enumerate(stats.binom.pmf(range(n + 1), n, rate)):
        if chance > 1e-9:
            ends = ends_of(mechanism, [n - k, k], target, "score")
            covered += chance * (ends is None or ends[0] <= share / (1 - share) <= ends[1])
    assert covered >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(("n", "plain"), [(200, "clt"), (1000, "clt"), (1000, "score")])
def test_the_ratio_of_two_rare_shares_is_covered(n: int, plain: str, full: bool) -> None:
    """For shares of 5% at ε = 1, the delta method covers 87.7% at 200 and 90.1% at 1,000 reports."""
    mechanism, target, truth = grr(4, 1), odds(4, 0, 1), np.array([0.05, 0.05, 0.3, 0.6])
    runs, covered, unbounded = 4000 if full else 200, 0, 0
    for counts in np.random.default_rng(n).multinomial(n, truth @ law(mechanism), size=runs):
        ends = ends_of(mechanism, [int(c) for c in counts], target, plain)
        unbounded += ends is None
        covered += ends is None or ends[0] <= 1 <= ends[1]
    assert covered / runs >= 0.95 - 3.5 * (0.05 * 0.95 / runs) ** 0.5
    assert unbounded > runs / 2  # few reports cannot distinguish a share of 5% from 0


@pytest.mark.parametrize("method", ["clt", "score"])
def test_zero_over_a_share_is_exactly_zero(method: str) -> None:
    ends = ends_of(grr(3, 4), [50, 30, 20], ratio_of(3, {}, {0: 1}), method)
    assert ends == pytest.approx((0.0, 0.0), abs=1e-9)
