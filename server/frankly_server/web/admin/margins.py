# SPDX-License-Identifier: Apache-2.0
"""Pages before publishing: the margins of each protection, and trial answers."""

from collections.abc import Sequence
from typing import Any

from apiflask import APIBlueprint
from flask import Response, request
from frankly_analyst.plots import Mark, curve_plot
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.arms_definition import cells_of_arms
from frankly_server.surveys.definition import FORM_ID, BlockDefinition
from frankly_server.surveys.live import expected_pending
from frankly_server.surveys.older_versions import larger_minimum
from frankly_server.surveys.preview import (
    PREVIEW_S,
    LevelRow,
    Preview,
    chances,
    comparison_point,
    margin_points,
    preview,
)
from frankly_server.surveys.trial import TRIAL_S, drafted, rehearse, tried
from frankly_server.web import reading
from frankly_server.web.admin.form_page import form_page
from frankly_server.web.admin.forms import by_key, choice, field, require_only, takes
from frankly_server.web.admin.survey_page import asked_part, show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search, search_once

_SHOWN = 16  # a larger table of probabilities does not fit on a page


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/margins")
    @survey_view(services, "viewer")
    def margins(survey: OpenedSurvey) -> Response:
        reading.query(("block", "population"))
        if asked_part(survey) == FORM_ID:
            return form_page(services, survey, "margins")
        try:
            return _margins(services, survey, _people())
        except InvalidInput as refused:
            if refused.field != "population":
                raise
            return _margins(services, survey, None, refused)

    @routes.get("/surveys/<survey_id>/try")
    @survey_view(services, "viewer")
    def trial(survey: OpenedSurvey) -> Response:
        reading.query(("block",))
        if asked_part(survey) == FORM_ID:
            return form_page(services, survey, "try")
        return _shown(services, survey)

    @routes.post("/surveys/<survey_id>/try")
    @survey_view(services, "admin")
    @takes("what", "block", "answer", "q-")
    def try_answers(survey: OpenedSurvey) -> Response:
        what = choice("what", ("form", "everybody"), "form")
        is_form = asked_part(survey) == FORM_ID
        if what == "everybody" and not is_form:
            require_only("what", "block", "answer")
            return _shown(services, survey, everybody_says=field("answer"))
        require_only("what", "block", "q-")
        answers = by_key("q-", [question.id for question in survey.definition.questions])
        if is_form:
            return form_page(services, survey, "try", answers)
        return _shown(services, survey, answers=answers)


def _people() -> int | None:
    """Return the population in the query, or None; raises InvalidInput below 2."""
    people = reading.whole(request.args.get("population") or None, "population")
    if people is not None and people < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population has at least two people", "population"
        )
    return people


def _margins(
    services: Services,
    survey: OpenedSurvey,
    people: int | None,
    refused: InvalidInput | None = None,
) -> Response:
    block = _definition(survey)
    expected = survey.definition.expected_reports
    found = search_once(services, preview, block, people, expected, seconds=PREVIEW_S)
    points = margin_points(people, expected)
    margin = f"margin at {comparison_point(people):,} answers, ± points"
    step = survey.definition.step
    return show(
        "margins.html",
        survey,
        "margins",
        refused,
        block=block,
        found=found.alternatives,
        reports=points,
        least=survey.definition.min_reports,
        larger_minimum=larger_minimum(
            services.surveys.versions(survey.id), survey.definition.min_reports
        ),
        usual=comparison_point(people),
        people=people,
        levels=found.levels,
        waiting=sum(expected_pending(one, step) for one in cells_of_arms(survey.definition)),
        level_plot=lambda rows: _level_plot(rows, margin),
        frontier=found.frontier,
        no_frontier=found.no_frontier,
        frontier_plot=_frontier_plot(found, points.index(comparison_point(people)), margin),
    )


def _shown(
    services: Services,
    survey: OpenedSurvey,
    answers: dict[str, str] | None = None,
    everybody_says: str | None = None,
) -> Response:
    """Render the probabilities of reports, with a trial report or a trial estimate if requested."""
    block = _definition(survey)
    values: dict[str, Any] = {
        "block": block,
        "answers": block.joint_answers,
        "given": answers or {},
        "run": None,
        "answer": everybody_says,
        "rehearsal": None,
        "table": None,
    }
    document = unfit = None
    try:
        # If there are answers, the whole document is designed, otherwise only the page's block. So
        # each block is designed at most once, within one time limit for all blocks.
        if answers is not None:
            now, url = services.surveys.now(), services.settings.public_url
            definition = services.surveys.next_version(survey.definition, survey.id)
            document = search(services, drafted, definition, now, url, seconds=TRIAL_S)
    except InvalidInput as refused:
        unfit = refused  # another block may be the cause, so the table of this block is still shown
    try:
        if document is None:
            drawn, values["run"] = search(services, tried, block, everybody_says, seconds=TRIAL_S)
        else:
            drawn = next(candidate for candidate in document.blocks if candidate.id == block.id)
        mechanism = drawn.numbered_mechanism
        values["table"] = chances(mechanism) if mechanism.answers <= _SHOWN else None
        if document is not None and answers is not None:
            values["rehearsal"] = rehearse(document, answers)
    except InvalidInput as refused:
        return show("try.html", survey, "try", unfit or refused, **values)
    return show("try.html", survey, "try", unfit, **values)


def _definition(survey: OpenedSurvey) -> BlockDefinition:
    block_id = asked_part(survey)
    return next(block for block in survey.definition.blocks if block.id == block_id)


def _frontier_plot(found: Preview, place: int, margin: str) -> str:
    """Return the plot; place : position of `comparison_point` among the alternatives' margins."""
    curve = [
        (row.information, row.margin * 100) for row in found.frontier if row.margin is not None
    ]
    marks = [
        Mark(
            alternative.mechanism + (" (chosen)" if i == 0 else ""),
            alternative.information,
            alternative.margins[place] * 100,
        )
        for i, alternative in enumerate(found.alternatives)
        if alternative.information is not None and alternative.margins is not None
    ]
    if not curve:
        return ""
    return curve_plot("Margin against information", curve, marks, _INFORMATION, margin)


def _level_plot(rows: Sequence[LevelRow], margin: str) -> str:
    curve = [(float(row.epsilon), row.margin * 100) for row in rows]
    marks = [Mark("chosen", float(row.epsilon), row.margin * 100) for row in rows if row.is_current]
    return curve_plot("Margin against the level", curve, marks, _LEVEL, margin)


_LEVEL = "level ε, in nats"
_INFORMATION = "information about the answer, in nats"
