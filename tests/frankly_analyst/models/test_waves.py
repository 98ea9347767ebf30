# SPDX-License-Identifier: Apache-2.0
"""Changes between waves, compared with hand calculations, least squares, and simulated panels."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from frankly_analyst import InvalidRequest
from frankly_analyst.estimates import Estimates
from frankly_analyst.models.waves import changes
from frankly_analyst.rows import Estimate


def row(estimate: float, se: float, by: str = "", sampling: float = 0.0, n: int = 100) -> Estimate:
    return Estimate(
        question="q", choice="yes", label="Yes", by=by, estimate=estimate, se=se,
        margin=1.96 * se, low=estimate - 1.96 * se, high=estimate + 1.96 * se, level=0.95,
        se_privacy=sqrt(se**2 - sampling**2), se_sampling=sampling, method="clt", n=n,
        mechanism="warner", notion="ldp", epsilon="1", ceiling="1", documents=(), flags=(),
    )  # fmt: skip


def wave(*rows: Estimate) -> Estimates:
    return Estimates(survey="s", title="S", n=100, rows=rows, insufficient={})


def test_two_waves_of_different_people() -> None:
    (change,) = changes([wave(row(0.3, 0.03)), wave(row(0.37, 0.04))])
    assert (change.change, change.se) == (pytest.approx(0.07), pytest.approx(0.05))
    assert (change.low, change.high) == (
        pytest.approx(0.07 - 1.96 * 0.05),
        pytest.approx(0.07 + 1.96 * 0.05),
    )
    assert str(change) == "Yes, wave 1 to 2: 7.0%, −2.8% to 16.8%"


def test_ends_come_from_the_ends_of_the_estimates() -> None:
    """By Zou & Donner 2008, the lower end combines the lower end of one interval and the upper end
    of the other."""
    first = replace(row(0.1, 0.02), low=0.07, high=0.16)
    second = replace(row(0.3, 0.02), low=0.25, high=0.36)
    (change,) = changes([wave(first), wave(second)])
    assert change.low == pytest.approx(0.2 - sqrt(0.05**2 + 0.06**2))
    assert change.high == pytest.approx(0.2 + sqrt(0.06**2 + 0.03**2))


def panel(persistence: float) -> list[Estimates]:
    """Return a panel in which group a answers waves 1 and 2, and group b waves 2 and 3."""
    return [
        wave(row(0.30, 0.05, "g=a", 0.02)),
        wave(row(0.35, 0.05, "g=a", 0.02), row(0.31, 0.04, "g=b", 0.03)),
        wave(row(0.36, 0.04, "g=b", 0.03)),
    ]


@pytest.mark.parametrize("persistence", [0.0, 0.6])
def test_groups_are_combined_by_generalised_least_squares(persistence: float) -> None:
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    V = np.diag([0.05, 0.05, 0.04, 0.04]) ** 2
    V[0, 1] = V[1, 0] = persistence * 0.02**2
    V[2, 3] = V[3, 2] = persistence * 0.03**2
    inverse = np.linalg.inv(V)
    shares = np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ [0.30, 0.35, 0.31, 0.36])
    found = changes(panel(persistence), persistence)
    assert [change.change for change in found] == pytest.approx(np.diff(shares))


def test_assumed_persistence_makes_intervals_narrower() -> None:
    independent, persistent = changes(panel(0)), changes(panel(0.6), 0.6)
    assert all(a.se > b.se for a, b in zip(independent, persistent, strict=True))


def _simulated(random: np.random.Generator, persistence: float) -> Sequence[Estimates]:
    """Simulate three yes/no waves with 400 people in each of two groups; reports are true with
    probability 0.8."""
    waves: list[list[Estimate]] = [[], [], []]
    for by, first in (("g=a", 0), ("g=b", 1)):
        truth = random.random(400) < SHARES[first]
        for t in (first, first + 1):
            kept = random.random(400) < persistence
            truth = np.where(kept & (t > first), truth, random.random(400) < SHARES[t])
            reports = np.where(random.random(400) < 0.8, truth, ~truth).mean()
            estimate = (reports - 0.2) / 0.6
            se = sqrt(reports * (1 - reports) / 399) / 0.6
            sampling = min(se, sqrt(max(0.0, estimate * (1 - estimate)) / 400))
            waves[t].append(row(estimate, se, by, sampling, 400))
    return [wave(*rows) for rows in waves]


SHARES = (0.30, 0.30, 0.30)


@pytest.mark.parametrize("persistence", [0.0, 0.8])
def test_coverage_in_simulated_panels(persistence: float) -> None:
    """Coverage is at least the level without an assumption, and equals the level with the true
    persistence."""
    random = np.random.default_rng(5)
    surveys = [_simulated(random, persistence) for _ in range(300)]
    safe = [c.low <= 0 <= c.high for survey in surveys for c in changes(survey)]
    exact = [c.low <= 0 <= c.high for survey in surveys for c in changes(survey, persistence)]
    # The Monte Carlo error of 600 intervals in correlated pairs is about 1.2 percentage points.
    assert np.mean(safe) >= 0.95 - 0.036
    assert abs(np.mean(exact) - 0.95) <= 0.036


@pytest.mark.parametrize(
    ("waves", "persistence", "field"),
    [
        ([wave(row(0.3, 0.03))], 0.0, "waves"),
        ([wave(row(0.3, 0.03)), wave()], 0.0, "waves"),
        ([wave(row(0.3, 0.03)), wave(row(0.3, 0.03))], 1.0, "persistence"),
        ([wave(row(0.3, 0.03)), wave(row(0.3, 0.03))], -0.1, "persistence"),
        ([wave(row(0.3, 0.03)), wave(row(0.3, 0.03))], "much", "persistence"),
        ([wave(row(0.3, 0.03)), wave(row(0.3, 0.03))], [0.1, 0.2], "persistence"),
    ],
)
def test_refused(waves: list[Estimates], persistence: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        changes(waves, persistence)
    assert refused.value.field == field


def test_reports_that_are_all_equal_do_not_take_all_the_weight() -> None:
    first = wave(row(0.0, 0.0, "g=a", n=50), row(0.1, 0.05, "g=b"))
    found = changes([first, wave(row(0.1, 0.05, "g=a"))])
    assert np.isfinite(found.rows[0].change)
    assert "Yes, wave 1 to 2" in str(found)
    assert "<td>1 to 2</td>" in found._repr_html_()


def test_a_population_of_groups_is_not_counted_beside_its_groups() -> None:
    """Its reports are those of the groups, which would count twice."""
    waves = panel(0.6)
    with_population = [
        wave(*one.rows, row(0.9, 0.01, "weighted=g"), row(0.9, 0.01, "weighted=g week=2026-W18"))
        for one in waves
    ]
    assert tuple(changes(with_population, 0.6)) == tuple(changes(waves, 0.6))
