# SPDX-License-Identifier: Apache-2.0
"""Pages before publishing: the margins of each protection, and trial answers."""

from collections.abc import Sequence
from typing import Any

from apiflask import APIBlueprint
from flask import Response, request
from frankly_analyst.plots import Mark, PlotRow, curve_plot, interval_plot
from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.estimate.margins import DEFAULT
from frankly_server.services import Services
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.live import expected_pending
from frankly_server.surveys.preview import (
    Alternative,
    LevelRow,
    alternatives,
    by_level,
    chances,
    comparison_point,
    frontier,
    margin_points,
    previewed,
)
from frankly_server.surveys.trial import drafted, rehearse, simulate
from frankly_server.web import reading
from frankly_server.web.admin.form_page import form_page
from frankly_server.web.admin.pages import field
from frankly_server.web.admin.survey_page import (
    OpenedSurvey,
    asked_block,
    show,
    survey_view,
)

_SHOWN = 16  # a larger table of probabilities does not fit on a page


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/margins")
    @survey_view(services, "viewer")
    def margins(survey: OpenedSurvey) -> Response:
        if not survey.definition.blocks:
            return form_page(services, survey, "margins")
        try:
            return _margins(survey, _people())
        except InvalidInput as refused:
            if refused.field != "population":
                raise
            return _margins(survey, None, refused)

    @routes.get("/surveys/<survey_id>/try")
    @survey_view(services, "viewer")
    def trial(survey: OpenedSurvey) -> Response:
        if not survey.definition.blocks:
            return form_page(services, survey, "try")
        return _shown(services, survey)

    @routes.post("/surveys/<survey_id>/try")
    @survey_view(services, "admin")
    def try_answers(survey: OpenedSurvey) -> Response:
        if not survey.definition.blocks:
            answers = {q.id: field(f"q-{q.id}") for q in survey.definition.questions}
            return form_page(services, survey, "try", answers)
        if field("what") == "everybody":
            return _shown(services, survey, everybody_says=field("answer"))
        question_ids = [question.id for question in survey.definition.questions]
        return _shown(services, survey, answers={name: field(f"q-{name}") for name in question_ids})


def _people() -> int | None:
    """Return the population in the query, or None; raises InvalidInput below 2."""
    people = reading.whole(request.args.get("population") or None, "population")
    if people is not None and people < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population has at least two people", "population"
        )
    return people


def _margins(
    survey: OpenedSurvey, people: int | None, refused: InvalidInput | None = None
) -> Response:
    block = _definition(survey)
    rows = alternatives(block, people=people)
    margin = f"margin at {comparison_point(people):,} answers, ± points"
    cells = [len(question.choices) for question in survey.definition.strata]
    return show("margins.html", survey, "margins", refused, block=block, found=rows, reports=margin_points(people),
                usual=comparison_point(people), people=people, levels=by_level(block, people=people),
                waiting=expected_pending(cells, survey.definition.step),
                level_plot=lambda rows: _level_plot(rows, margin),
                **_frontier(block, rows, people, margin))  # fmt: skip


def _shown(
    services: Services,
    survey: OpenedSurvey,
    answers: dict[str, str] | None = None,
    everybody_says: str | None = None,
) -> Response:
    """Render the probabilities of reports, with a trial report or a trial estimate if requested."""
    block = _definition(survey)
    values: dict[str, Any] = {"block": block, "answers": block.joint_answers, "given": answers or {}, "run": None,
                             "answer": everybody_says, "rehearsal": None, "table": None}  # fmt: skip
    document = unfit = None
    try:
        # If there are answers, the whole document is designed, otherwise only the page's block. So
        # each block is designed at most once, within one time limit for all blocks.
        document = None if answers is None else drafted(survey.definition, services.surveys.now(),
                                                     services.settings.public_url)  # fmt: skip
    except InvalidInput as refused:
        unfit = refused  # another block may be the cause, so the table of this block is still shown
    try:
        drawn = (
            previewed(block).block
            if document is None
            else next(candidate for candidate in document.blocks if candidate.id == block.id)
        )
        mechanism = drawn.numbered_mechanism
        values["table"] = chances(mechanism) if mechanism.answers <= _SHOWN else None
        if document is not None and answers is not None:
            values["rehearsal"] = rehearse(document, answers)
        elif everybody_says is not None and everybody_says in block.joint_answers:
            values["run"] = _run(block, drawn, block.joint_answers.index(everybody_says))
    except InvalidInput as refused:
        return show("try.html", survey, "try", unfit or refused, **values)
    return show("try.html", survey, "try", unfit, **values)


def _run(block: BlockDefinition, drawn: Block, x: int) -> str:
    """Return a plot of the estimate from a thousand people with answer `x`."""
    estimate = simulate(drawn, x)
    rows = [
        PlotRow(name, share, *ends, 1.0 if i == x else 0.0)
        for i, (name, share, ends) in enumerate(
            zip(
                block.joint_answers,
                estimate.unbiased,
                estimate.margins.ends(DEFAULT, estimate.unbiased),
                strict=True,
            )
        )
        if share is not None and ends is not None
    ]
    return interval_plot("Estimate from a thousand equal answers", rows) if rows else ""


def _definition(survey: OpenedSurvey) -> BlockDefinition:
    block_id = asked_block(survey)
    return next(block for block in survey.definition.blocks if block.id == block_id)


def _frontier(
    block: BlockDefinition, candidates: Sequence[Alternative], people: int | None, margin: str
) -> dict[str, Any]:
    place = margin_points(people).index(comparison_point(people))
    try:
        rows = frontier(block, people=people)
    except InvalidInput as refused:
        return {"frontier": [], "no_frontier": refused.detail, "frontier_plot": ""}
    curve = [(row.information, row.margin * 100) for row in rows if row.margin is not None]
    marks = [
        Mark(
            alternative.mechanism + (" (chosen)" if i == 0 else ""),
            alternative.information,
            alternative.margins[place] * 100,
        )
        for i, alternative in enumerate(candidates)
        if alternative.information is not None and alternative.margins is not None
    ]
    plot = (
        curve_plot("Margin against information", curve, marks, _INFORMATION, margin)
        if curve
        else ""
    )
    return {"frontier": rows, "no_frontier": None, "frontier_plot": plot}


def _level_plot(rows: Sequence[LevelRow], margin: str) -> str:
    curve = [(float(row.epsilon), row.margin * 100) for row in rows]
    marks = [Mark("chosen", float(row.epsilon), row.margin * 100) for row in rows if row.is_current]
    return curve_plot("Margin against the level", curve, marks, _LEVEL, margin)


_LEVEL = "level ε, in nats"
_INFORMATION = "information about the answer, in nats"
