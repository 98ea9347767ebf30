# SPDX-License-Identifier: Apache-2.0
"""Search along edges: it finds columns above the requested worth, including the best column."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions import promises
from frankly_design.notions.cones import Cone
from frankly_design.optimum.information import edge_search
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.edge_search import EdgeSearch
from frankly_design.optimum.information.gains import Information
from frankly_design.optimum.information.generation import generate
from frankly_design.optimum.information.pricing import ColumnPricer
from frankly_design.tables.limits import Limits
from numpy.typing import NDArray

from tests.frankly_design.maths import EVERY_NOTION, random_prior, scaled_rays, tamed

Floats = NDArray[np.float64]


def searching(base: ConeBase) -> EdgeSearch:
    search = EdgeSearch.of(base, 0)
    assert search is not None
    return search


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_columns_exceed_the_requested_worth_and_include_the_best(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_search, "_SHAKES", 5)
    rng = random.Random(kind)
    prior, cone = tamed(kind, rng)
    base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
    gain, search = Information(base), searching(base)
    used = base.corners / base.scale
    rows = np.array([[r / max(map(abs, row)) for r in row] for row in cone.rows()])
    for _ in range(2):
        prices = np.array([rng.gauss(0, 0.5) for _ in range(4)])
        worth = gain.values(V * base.scale) - V @ prices
        least = float(np.quantile(worth, 0.7))
        found = search.columns(prices, used, least, Limits())
        assert len(found)
        reached = gain.values(found * base.scale) - found @ prices
        assert np.min(reached) > least - 1e-7
        assert np.max(reached) == pytest.approx(np.max(worth), abs=1e-7)
        assert np.min(found @ rows.T) > -1e-7  # all are in the cone
        assert len(search.columns(prices, used, float(np.max(worth)) + 1e-6, Limits())) == 0
        used = found


def test_columns_found_before_are_starts() -> None:
    """From a column in use, one step reaches its neighbours; from other starts, more steps are needed."""
    prior = random_prior(random.Random(3), 8, 5)
    base = ConeBase(Cone((promises.promise("lip", prior, Fraction(1, 8)),), 8), prior)
    search, prices = searching(base), np.zeros(8)
    best = search.columns(prices, base.corners / base.scale, 0.0, Limits())
    assert len(search._tight) >= len(best) > 0
    again = search.columns(prices, best[:1], 0.0, Limits())
    assert {tuple(v) for v in np.round(again, 6)} & {tuple(v) for v in np.round(best, 6)}


def test_too_many_answers_are_left_to_other_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = random_prior(random.Random(3), 6, 3)
    base = ConeBase(Cone((promises.promise("lip", prior, Fraction(1, 8)),), 6), prior)
    monkeypatch.setattr(edge_search, "_MOST_ANSWERS", 5)
    assert EdgeSearch.of(base, 0) is None


def test_a_search_without_proof_is_better_along_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 12 answers and 24 secrets, if no boxes find columns, tangents alone reach lower values."""
    prior = random_prior(random.Random(1), 12, 24)
    base = ConeBase(Cone((promises.promise("lip", prior, Fraction(1, 2)),), 12), prior)
    gain, values = Information(base), []
    proof = ColumnPricer.prove

    def few_boxes(*arguments: object) -> object:
        return proof(*arguments[:-1], 1)  # type: ignore[arg-type, call-arg]

    monkeypatch.setattr(ColumnPricer, "prove", few_boxes)
    monkeypatch.setattr(ColumnPricer, "_list_within", lambda _self, _work: None)
    monkeypatch.setattr(edge_search, "_SHAKES", 10)
    for boxes in (0, 10**9):
        monkeypatch.setattr(
            "frankly_design.optimum.information.pricing._BOXES_BEFORE_EDGES", boxes - 1
        )
        values.append(generate(base, gain, Limits()).value)
    assert values[0] > values[1] * 1.01
