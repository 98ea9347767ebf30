# SPDX-License-Identifier: Apache-2.0
"""Listing of all vertices, for notions of the secret with a ceiling, which proves the optima."""

from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions import promises
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.information import pricing
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.variance.pricing import MOST_WORK, VertexList
from frankly_design.requests.design import design_json
from frankly_design.tables.limits import Limits

KNOWN = {7: 2.286986103, 8: 1.973843355, 10: 2.132685190}
"""Lower bounds of the variance from all rays, listed exactly by cdd."""
LISTED_WITHIN = VertexList.within
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


@pytest.mark.slow
@pytest.mark.parametrize("first_work", [0, MOST_WORK], ids=["after boxes", "at once"])
@pytest.mark.parametrize("answers", [9, pytest.param(16, marks=pytest.mark.full_only)])
def test_information_is_proved_by_the_list(
    answers: int, first_work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Branch and bound proves the same bound, but takes seconds."""
    request = {"prior": {"joint": joint(answers)}, **LIP, "objective": "information"}
    lists = []

    def within(self: VertexList, work: int) -> FloatArray | None:
        lists.append(V := LISTED_WITHIN(self, work))
        return V

    monkeypatch.setattr(VertexList, "within", within)
    monkeypatch.setattr(pricing, "_FIRST_WORK", first_work)
    monkeypatch.setattr(pricing, "_BOXES_BEFORE_LIST", 10)
    monkeypatch.setattr(pricing, "_BOXES_PER_STEP", 1)
    monkeypatch.setattr(pricing, "_WORK_PER_CEILED_BOX", MOST_WORK // 100)
    by_list = design_json(request)
    assert by_list["certified"]
    # A complete list is not requested again.
    assert lists[-1] is not None
    assert all(V is None for V in lists[:-1])
    assert (len(lists) == 1) == bool(first_work)
    monkeypatch.setattr(VertexList, "within", lambda *_: None)
    if answers < 10 and first_work:
        by_boxes = design_json(request)
        assert by_boxes["certified"]
        assert by_list["information"] == pytest.approx(by_boxes["information"], abs=2e-6)


def test_the_list_continues_where_it_paused() -> None:
    """In steps, the list has the same entries in the same order as from a single call."""
    prior = Prior.from_rows(joint(7))
    claims = (promises.promise("lip", prior, Fraction("0.5")), answer_ldp(Fraction("2.9957")))
    base = ConeBase(Cone.of(claims, prior.answers), prior)
    at_once, in_steps = VertexList(base, Limits()), VertexList(base, Limits())
    V, work, pauses = at_once.within(MOST_WORK), 0, 0
    while (steps := in_steps.within(work)) is None:
        work, pauses = work + MOST_WORK // 100_000, pauses + 1
    assert V is not None
    assert pauses > 2
    # Batches are split at other places, so an inverse may differ in its last digits.
    assert np.allclose(steps, V, rtol=0, atol=1e-9)
