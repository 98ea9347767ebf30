# SPDX-License-Identifier: Apache-2.0
"""Notions of the secret with a ceiling: all vertices are listed, which proves the optima."""

import numpy as np
import pytest
from frankly_server.design.optimum.information import pricing
from frankly_server.design.optimum.variance.column_base import ColumnBase
from frankly_server.design.optimum.variance.pricing import MOST_WORK, base_vertices
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray
from frankly_server.requests.design import design_json

KNOWN = {7: 2.286986103, 8: 1.973843355, 10: 2.132685190}
"""Lower bounds of the variance from all rays, listed exactly by cdd."""
LIP = {"notion": "lip", "epsilon": "0.5", "ceiling_cap": "2.9957"}


def joint(answers: int) -> list[list[int]]:
    counts: list[list[int]] = (
        np.random.default_rng([31, answers, 0]).integers(1, 400, (4, answers)).tolist()
    )
    return counts


@pytest.mark.parametrize("answers", [7, 8, 10, pytest.param(16, marks=pytest.mark.full_only)])
def test_variance_under_a_ceiling_is_certified(answers: int) -> None:
    designed = design_json({"prior": {"joint": joint(answers)}, **LIP})
    assert designed["certified"]
    assert designed["parameters"]["exact"]
    if answers in KNOWN:
        assert designed["variance"] == pytest.approx(KNOWN[answers], rel=1e-6)
        assert designed["parameters"]["bound"] <= designed["variance"]


@pytest.mark.parametrize("first_work", [0, MOST_WORK], ids=["after boxes", "at once"])
@pytest.mark.parametrize("answers", [9, pytest.param(16, marks=pytest.mark.full_only)])
def test_information_is_proved_by_the_list(
    answers: int, first_work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As branch and bound proves it, where that takes seconds."""
    request = {"prior": {"joint": joint(answers)}, **LIP, "objective": "information"}
    lists = []

    def listed(base: ColumnBase, limits: Limits, work: int) -> FloatArray | None:
        V = base_vertices(base, limits, work=work)
        lists.append(V is not None)
        return V

    monkeypatch.setattr(pricing, "base_vertices", listed)
    monkeypatch.setattr(pricing, "_FIRST_WORK", first_work)
    monkeypatch.setattr(pricing, "_BOXES_BEFORE_LIST", 10)
    by_list = design_json(request)
    assert by_list["certified"]
    assert lists == ([True] if first_work else [False, True])
    monkeypatch.setattr(pricing, "base_vertices", lambda *_, **__: None)
    if answers < 10 and first_work:
        by_boxes = design_json(request)
        assert by_boxes["certified"]
        assert by_list["information"] == pytest.approx(by_boxes["information"], abs=2e-6)
