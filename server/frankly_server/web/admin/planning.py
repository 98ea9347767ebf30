# SPDX-License-Identifier: Apache-2.0
"""Before publishing: what each protection costs in margin, and how made-up answers come through."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism

from frankly_server.estimate.estimator import estimate
from frankly_server.plots import Axis, Mark, PlotRow, curve_plot, interval_plot
from frankly_server.services import Services
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.preview import REPORTS, Alternative, alternatives, chances, frontier, previewed
from frankly_server.web.admin.pages import field
from frankly_server.web.admin.survey_page import Opened, asked_block, opened, show
from frankly_server.web.security import needs

_TRIAL, _SHOWN = 1000, 16


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/margins")
    @needs("viewer")
    def margins(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        block = _definition(survey)
        found = alternatives(block)
        return show("margins.html", survey, "margins", block=block, found=found, reports=REPORTS,
                    **_frontier(block, found))  # fmt: skip

    @routes.get("/surveys/<survey_id>/try")
    @needs("viewer")
    def trial(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        return _shown(survey, _definition(survey))

    @routes.post("/surveys/<survey_id>/try")
    @needs("admin")
    def try_answers(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        return _shown(survey, _definition(survey), field("answer"))


def _shown(survey: Opened, block: BlockDefinition, answer: str | None = None) -> Response:
    """Render the chances of every report, and a trial run if an answer was made up."""
    try:
        mechanism = previewed(block).mechanism
    except InvalidInput as refused:
        return show("try.html", survey, "try", refused, block=block, answers=[], table=None, run=None, answer=None)
    table = chances(mechanism) if mechanism.answers <= _SHOWN else None
    run = None
    if answer in block.joint_answers and isinstance(mechanism, DenseMechanism):
        run = _run(block, mechanism, block.joint_answers.index(answer))
    found: dict[str, Any] = {"table": table, "run": run, "answer": answer}
    return show("try.html", survey, "try", block=block, answers=block.joint_answers, **found)


def _run(block: BlockDefinition, mechanism: DenseMechanism, x: int) -> dict[str, Any]:
    """Randomise a made-up answer a thousand times, and estimate as if as many people had sent it."""
    told = Counter(mechanism.sample(x) for _ in range(_TRIAL))
    counts = [told.get(y, 0) for y in range(len(mechanism.weights[0]))]
    found = estimate(mechanism, counts)
    half = found.margins.clt
    rows = [
        PlotRow(name, share, share - margin, share + margin, 1.0 if i == x else 0.0)
        for i, (name, share, margin) in enumerate(zip(block.joint_answers, found.unbiased, half, strict=True))
        if share is not None and margin is not None
    ]
    return {
        "counts": counts,
        "plot": interval_plot("What the estimate says of a thousand equal answers", rows) if rows else "",
    }


def _definition(survey: Opened) -> BlockDefinition:
    wanted = asked_block(survey)
    return next(block for block in survey.definition.blocks if block.id == wanted)


def _frontier(block: BlockDefinition, found: Sequence[Alternative]) -> dict[str, Any]:
    try:
        rows = frontier(block)
    except InvalidInput as refused:
        return {"frontier": [], "no_frontier": refused.detail, "frontier_plot": ""}
    curve = [(row.information, row.margin * 100) for row in rows if row.margin is not None]
    marks = [
        Mark(one.mechanism + (" (chosen)" if i == 0 else ""), one.information, one.margins[1] * 100)
        for i, one in enumerate(found)
        if one.information is not None and one.margins is not None
    ]
    plot = curve_plot("Information against margin", curve, marks, _INFORMATION, _MARGIN) if curve else ""
    return {"frontier": rows, "no_frontier": None, "frontier_plot": plot}


_INFORMATION = Axis("information about the answer, in nats", lambda nats: f"{nats:.3g}")
_MARGIN = Axis(f"margin at {REPORTS[1]:,} answers, ± points", lambda points: f"{points:.3g}")
