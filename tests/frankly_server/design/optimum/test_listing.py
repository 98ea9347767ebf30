# SPDX-License-Identifier: Apache-2.0
"""Notions of the secret with a ceiling: all vertices are listed, which proves the optima."""

import numpy as np
import pytest
from frankly_server.design.optimum.information import pricing
from frankly_server.design.optimum.variance.pricing import MOST_WORK, base_vertices
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


@pytest.mark.parametrize("answers", [9, pytest.param(16, marks=pytest.mark.full_only)])
def test_information_is_proved_by_the_list(answers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is that of branch and bound, which is run for few answers only."""
    request = {"prior": {"joint": joint(answers)}, **LIP, "objective": "information"}
    listed = []
    monkeypatch.setattr(pricing, "_STAGES", ((10, MOST_WORK),))
    monkeypatch.setattr(
        pricing,
        "base_vertices",
        lambda *args, **named: listed.append(found := base_vertices(*args, **named)) or found,
    )
    by_list = design_json(request)
    assert by_list["certified"]
    assert len(listed) == 1
    monkeypatch.setattr(pricing, "_STAGES", ())
    if answers < 10:
        by_boxes = design_json(request)
        assert by_boxes["certified"]
        assert by_list["information"] == pytest.approx(by_boxes["information"], abs=2e-6)
