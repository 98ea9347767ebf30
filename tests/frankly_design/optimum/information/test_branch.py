# SPDX-License-Identifier: Apache-2.0
"""Branch and bound, compared with all rays: its bound always holds, and it finds columns above a value."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from frankly_design.notions.cones import Cone
from frankly_design.optimum.information import branch
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_design.optimum.information.pricing import ColumnPricer
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim
from numpy.typing import NDArray

from tests.frankly_design.maths import EVERY_NOTION, random_prior, scaled_rays, tamed

Floats = NDArray[np.float64]
MANY = 10**9


def after(questions: int) -> Callable[[], bool]:
    """Return a clock that runs out after this many calls."""
    ticks = iter(range(questions))
    return lambda: next(ticks, None) is None


class Small:
    """A base whose rays are listed, and random prices."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self.rng = random.Random(f"{kind} {seed}")
        prior, cone = tamed(kind, self.rng)
        self.base = ConeBase(cone, prior)
        self.T = scaled_rays(cone, prior) * self.base.scale
        self.gain = Information(self.base)

    def prices(self) -> Floats:
        size = self.rng.choice([0.02, 0.2, 1.0])
        return np.array([self.rng.gauss(0, size) for _ in range(self.base.answers)])

    def best(self, prices: Floats) -> float:
        return float(np.max(self.gain.values(self.T) - self.T @ prices))


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_no_column_is_found_above_the_best_value(kind: str, full: bool) -> None:
    """The test uses three prices of one random cone of each notion, or of two cones with --full."""
    for seed in range(2 if full else 1):
        case = Small(kind, seed)
        for _ in range(3):
            prices = case.prices()
            best = case.best(prices)
            for above in (1e-6, 0.1):
                columns, bound = branch.bound(
                    case.base, case.gain, prices, best + above, Limits(), MANY
                )
                assert len(columns) == 0
                assert bound == best + above


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_columns_above_a_value_are_found(kind: str, full: bool) -> None:
    """The test uses three prices of one random cone of each notion, or of two cones with --full."""
    for seed in range(2 if full else 1):
        case = Small(kind, seed)
        for _ in range(3):
            prices = case.prices()
            best = case.best(prices)
            for below in (1e-6, 0.1):
                columns, bound = branch.bound(
                    case.base, case.gain, prices, best - below, Limits(), MANY
                )
                assert bound >= best - 1e-9 or bound == best - below
                assert len(columns) >= 1
                worth = case.gain.values(columns) - columns @ prices
                assert np.all(worth > best - below)
                assert np.all(worth <= best + 1e-8)
                for t in columns:  # rays of the cone, each once
                    assert np.min(np.max(np.abs(case.T - t), axis=1)) < 1e-6
                apart = np.max(np.abs(columns[:, None] - columns[None]), axis=2) + np.eye(
                    len(columns)
                )
                assert np.min(apart) > 1e-9


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("stopped", ["boxes", "time"])
def test_a_bound_that_is_cut_short_still_holds(kind: str, stopped: str) -> None:
    case = Small(kind)
    for questions in (1, 2, 5, 20):
        prices = case.prices()
        best = case.best(prices)
        limits = Limits(out_of_time=after(questions)) if stopped == "time" else Limits()
        boxes = questions if stopped == "boxes" else MANY
        for tolerance in (best - 0.1, best + 1e-9):
            columns, bound = branch.bound(case.base, case.gain, prices, tolerance, limits, boxes)
            assert bound >= best - 1e-9
            assert np.all(case.gain.values(columns) - columns @ prices <= best + 1e-8)


def test_bounds_decrease_with_the_number_of_boxes() -> None:
    case = Small("lip", 5)
    prices = case.prices()
    tolerance = case.best(prices) + 1e-10
    bounds = [
        branch.bound(case.base, case.gain, prices, tolerance, Limits(), n)[1]
        for n in (1, 2, 4, 8, 16, MANY)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1] == tolerance


def test_a_bound_within_little_memory_still_holds() -> None:
    # LDP of ten answers, defined only by its rows, needs far more than a thousand open boxes.
    prior = random_prior(random.Random(3), 10, 1)
    base = ConeBase(Cone((Claim("ldp", (3, 1)),), 10), prior)
    p, gain = prior.probabilities(), Information(base)
    patterns = np.array(
        [[3.0 if mask >> x & 1 else 1.0 for x in range(10)] for mask in range(1, 1023)]
    )
    T = patterns / (patterns @ p)[:, None] * base.scale
    prices = np.array([random.Random(x).gauss(0, 0.01) for x in range(10)])
    best = float(np.max(gain.values(T) - T @ prices))
    columns, bound = branch.bound(
        base, gain, prices, best + 1e-12, replace(Limits(), memory=0), MANY
    )
    assert bound > best + 1e-12  # memory ran out, so nothing was proved
    assert len(columns) == 0


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_the_best_column_for_guessing_is_bounded_and_found(kind: str) -> None:
    case = Small(kind)
    gain = Guessing(case.base)
    pricer = ColumnPricer(case.base, gain, Limits(), 0)
    for _ in range(6):
        prices = case.prices()
        worth = gain.values(case.T) - case.T @ prices
        best = float(np.max(worth))
        priced = pricer.prove(prices, best - 1e-3, Limits(), MANY)
        assert best - 1e-9 <= priced.bound <= best + 1e-6
        reduced_costs = gain.values(priced.columns) - priced.columns @ prices
        assert np.max(reduced_costs) == pytest.approx(best, abs=1e-7)
        assert len(pricer.prove(prices, best + 1e-6, Limits(), MANY).columns) == 0


def test_patterns_of_ldp_are_priced_as_branch_and_bound_prices_them() -> None:
    case = Small("ldp")
    for _ in range(8):
        prices = case.prices()
        priced = ColumnPricer(case.base, case.gain, Limits(), 0).prove(
            prices, -np.inf, Limits(), MANY
        )
        assert priced.bound == pytest.approx(case.best(prices), abs=1e-9)
        assert priced.bound >= case.best(prices) - 1e-12
        _, bound = branch.bound(case.base, case.gain, prices, priced.bound + 1e-9, Limits(), MANY)
        assert bound == priced.bound + 1e-9
