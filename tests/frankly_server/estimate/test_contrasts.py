# SPDX-License-Identifier: Apache-2.0
"""Fieller's interval of a ratio: against its definition, where it is unbounded, and how often it holds the truth."""

from math import exp
from random import Random

import numpy as np
import pytest
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis.parts import Part
from frankly_server.analysis.request import Request
from frankly_server.analysis.rows import table_json
from frankly_server.analysis.tables import Table, Target
from frankly_server.estimate.contrasts import Ends, lincom_ends, ratio
from frankly_server.estimate.decoder import shares
from frankly_server.estimate.margins import normal_quantile
from scipy import stats

Z = normal_quantile(0.95)


def holds(rho: float, values: tuple[float, float], C: list[list[float]], ends: tuple[Ends, Ends]) -> bool:
    """Return True if the interval of a − ρb holds 0; its distances by the definition, for either sign of ρ and b."""
    (a, b), ((low_a, high_a), (low_b, high_b)) = values, ends
    r = C[0][1] / (C[0][0] * C[1][1]) ** 0.5
    # −ρb is high where b is low, or the other way round.
    up, down = (rho * (b - low_b), rho * (high_b - b)) if rho > 0 else (-rho * (high_b - b), -rho * (b - low_b))
    sign = -1 if rho > 0 else 1
    above = ((high_a - a) ** 2 + up**2 + 2 * sign * r * (high_a - a) * up) ** 0.5
    below = ((a - low_a) ** 2 + down**2 + 2 * sign * r * (a - low_a) * down) ** 0.5
    return a - rho * b - below <= 0 <= a - rho * b + above


@pytest.mark.parametrize("seed", range(60))
def test_the_ends_are_where_the_interval_of_the_difference_stops_to_hold_0(seed: int) -> None:
    draw = Random(seed)
    a, b = draw.gauss(0, 1), draw.choice([-1, 1]) * draw.uniform(0.3, 2)
    sd, r = [draw.uniform(0.05, 0.4) for _ in range(2)], draw.uniform(-0.95, 0.95)
    C = [[sd[0] ** 2, r * sd[0] * sd[1]], [r * sd[0] * sd[1], sd[1] ** 2]]
    ends = tuple(
        (v - Z * s * draw.uniform(0.5, 1.5), v + Z * s * draw.uniform(0.5, 1.5))
        for v, s in zip((a, b), sd, strict=True)
    )
    found = ratio((a, b), C, ends)  # type: ignore[arg-type]
    assert found.value == a / b
    if found.ends is None:
        assert ends[1][0] <= 0 <= ends[1][1]
        assert all(holds(rho, (a, b), C, ends) for rho in (-1e9, 1e9))  # type: ignore[arg-type]
        return
    low, high = found.ends
    width = high - low
    assert low < found.value < high
    for inside in np.linspace(low + 1e-6 * width, high - 1e-6 * width, 50):
        assert holds(float(inside), (a, b), C, ends)  # type: ignore[arg-type]
    for outside in (low - 1e-6 * width, high + 1e-6 * width):
        assert not holds(outside, (a, b), C, ends)  # type: ignore[arg-type]


def test_fieller_by_hand() -> None:
    a, b, C = 0.5, 2.0, [[0.04, -0.01], [-0.01, 0.09]]
    found = ratio((a, b), C, ((a - Z * 0.2, a + Z * 0.2), (b - Z * 0.3, b + Z * 0.3)))
    # (b² − z²·0.09)ρ² − 2(ab + z²·0.01)ρ + a² − z²·0.04 = 0
    roots = sorted(np.roots([b * b - Z * Z * 0.09, -2 * (a * b + Z * Z * 0.01), a * a - Z * Z * 0.04]))
    assert found.ends == pytest.approx(roots)
    assert found.se == pytest.approx(np.sqrt(0.04 + 2 * 0.25 * 0.01 + 0.0625 * 0.09) / 2)


def test_a_ratio_of_what_is_known_exactly() -> None:
    nothing = [[0.0, 0.0], [0.0, 0.0]]
    assert ratio((1.0, 4.0), nothing, ((1.0, 1.0), (4.0, 4.0))).ends == (0.25, 0.25)
    assert ratio((0.0, 4.0), nothing, ((0.0, 0.0), (4.0, 4.0))).ends == (0.0, 0.0)
    with pytest.raises(ZeroDivisionError):
        ratio((1.0, 0.0), nothing, ((1.0, 1.0), (0.0, 0.0)))


def grr(answers: int, epsilon: float) -> DenseMechanism:
    off = int(2**40 / (exp(epsilon) + answers - 1))
    on = 2**40 - (answers - 1) * off
    return DenseMechanism(40, tuple(tuple(on if x == y else off for y in range(answers)) for x in range(answers)))


def law(mechanism: DenseMechanism) -> np.ndarray:
    return np.array([[float(w) for w in row] for row in mechanism.weights]) / mechanism.denominator


def told(mechanism: DenseMechanism, counts: list[int], target: Target, method: str) -> Ends | None:
    """Return the ends of a ratio as an answer's row holds them, None for unbounded ones."""
    from tests.frankly_server.analysis.test_pooling import block_of

    block = block_of(mechanism, (1,) * mechanism.answers)
    weights = (target.weights, target.over or ())
    part = Part((block,), sum(counts), {(y,): n for y, n in enumerate(counts)}, weights)
    table = Table(block.questions, (target,), (), shares=False)
    (row,) = table_json(table, [part], Request(method=method), ["digest"])["rows"]
    assert row["method"] == method
    assert (row["low"] is None) == ("unbounded" in row["flags"])
    return None if row["low"] is None else (row["low"], row["high"])


def odds(answers: int, of: int, over: int) -> Target:
    rows = shares(answers)
    return Target("odds", {"en": "odds"}, rows[of], rows[over])


@pytest.mark.parametrize(("epsilon", "share", "n"), [(1, 0.3, 60), (4, 0.3, 60), (4, 0.02, 100), (1, 0.02, 100)])
def test_the_ratio_of_two_choices_is_covered_by_enumeration(epsilon: float, share: float, n: int) -> None:
    mechanism, target = grr(2, epsilon), odds(2, 1, 0)
    rate = float(np.array([1 - share, share]) @ law(mechanism)[:, 1])
    covered = 0.0
    for k, chance in enumerate(stats.binom.pmf(range(n + 1), n, rate)):
        if chance > 1e-9:
            ends = told(mechanism, [n - k, k], target, "score")
            covered += chance * (ends is None or ends[0] <= share / (1 - share) <= ends[1])
    assert covered >= 0.93


@pytest.mark.parametrize(("n", "plain"), [(200, "clt"), (1000, "clt"), (1000, "score")])
def test_the_ratio_of_two_rare_shares_is_covered(n: int, plain: str, full: bool) -> None:
    """Shares of 5% by randomised response, ε = 1: by the delta method 87.7% at 200 reports and 90.1% at 1,000."""
    mechanism, target, truth = grr(4, 1), odds(4, 0, 1), np.array([0.05, 0.05, 0.3, 0.6])
    runs, covered, unbounded = 4000 if full else 400, 0, 0
    for counts in np.random.default_rng(n).multinomial(n, truth @ law(mechanism), size=runs):
        ends = told(mechanism, [int(c) for c in counts], target, plain)
        unbounded += ends is None
        covered += ends is None or ends[0] <= 1 <= ends[1]
    assert covered / runs >= 0.95 - 3.5 * (0.05 * 0.95 / runs) ** 0.5
    assert unbounded > runs / 2  # a share of 5% is not told from 0 by so few


@pytest.mark.parametrize("seed", range(20))
def test_a_combination_of_normal_intervals_is_normal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root, weights, values = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=4)
    C, z = root @ root.T, 1.7
    reaches = [(z * C[i, i] ** 0.5, z * C[i, i] ** 0.5) for i in range(4)]
    low, high = lincom_ends(weights, values, C, reaches, z)
    half = z * float(weights @ C @ weights) ** 0.5
    assert (low, high) == pytest.approx((float(weights @ values) - half, float(weights @ values) + half))


def test_unequal_distances_reach_the_end_that_they_are_of() -> None:
    """Independent values: their difference is lowest where one is lowest and the other highest."""
    low, high = lincom_ends([1, -1], [0.5, 0.2], [[1e-6, 0], [0, 1e-6]], [(0.03, 0.05), (0.12, 0.4)], 1.96)
    assert (0.3 - low, high - 0.3) == pytest.approx((np.hypot(0.03, 0.4), np.hypot(0.05, 0.12)))


def test_an_end_is_never_nearer_than_the_normal_one() -> None:
    low, high = lincom_ends([1, 1], [0.5, 0.2], [[0.01, 0], [0, 0.01]], [(0.01, 0.5), (0.01, 0.5)], 2)
    assert (low, high) == pytest.approx((0.7 - 2 * 0.02**0.5, 0.7 + 0.5 * 2**0.5))


def test_where_no_error_is_seen_distances_add() -> None:
    zero = [[0.0, 0.0], [0.0, 0.0]]
    assert lincom_ends([1, -1], [1, 0], zero, [(0.02, 0.01), (0.01, 0.02)], 2) == pytest.approx((0.96, 1.02))
    assert lincom_ends([1, 1], [1, 0], zero, [(0.02, 0.01), (0.01, 0.02)], 2) == pytest.approx((0.97, 1.03))
