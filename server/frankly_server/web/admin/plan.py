# SPDX-License-Identifier: Apache-2.0
"""Page of a draft that plans it: how many people, and what each of its wishes costs in respondents."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response
from frankly_design.tables.limits import FINISH_S
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.plan_request import SurveyPlanFields
from frankly_server.surveys.question_definition import FormItem, QuestionDefinition
from frankly_server.surveys.survey_plan import PLAN_S, survey_plan
from frankly_server.web import reading
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once

_PERCENT: Final = ("margin", "response_rate", "group_share", "random", "difference", "power")
_WHOLE: Final = ("n", "population")
_FIELDS: Final = (*_PERCENT, *_WHOLE, "level", "shares")
_DEFAULTS: Final = {"margin": "5", "level": "95"}
_LONGEST: Final = 40
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)?|[.,][0-9]+")


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the page."""

    @routes.get("/surveys/<survey_id>/plan")
    @survey_view(services, "viewer")
    def plan(survey: OpenedSurvey) -> Response:
        entered = {name: text.strip() for name, text in reading.query(_FIELDS).items()}
        form = entered or dict(_DEFAULTS)
        found = refused = None
        try:
            asked = SurveyPlanFields.from_json(_asked(form))
            asked.require_coherent()
            found = search_once(
                services, survey_plan, survey.definition, asked, seconds=PLAN_S + FINISH_S
            )
        except InvalidInput as fault:
            refused = fault
        has_anchor = any(map(_has_anchor, survey.definition.drawn_questions))
        return show(
            "plan.html", survey, "plan", refused, form=form, found=found, has_anchor=has_anchor
        )


def _has_anchor(one: QuestionDefinition | FormItem) -> bool:
    question = one.question if isinstance(one, FormItem) else one
    return question.anchor is not None


def _asked(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the request that the form stands for. Raises InvalidInput with the field."""
    asked: dict[str, Any] = {"strengths": True}
    for name, text in form.items():
        if not text:
            continue
        if name in _WHOLE:
            asked[name] = reading.whole(text.replace(",", ""), name)
        elif name == "group_share":
            asked[name] = _smallest(text)
        elif name == "shares":
            asked[name] = text
        else:
            asked[name] = _percent(text, name)
    return asked


def _percent(text: str, name: str) -> Decimal:
    """Return a percentage as a share. Raises InvalidInput with the field."""
    number = text.strip().removesuffix("%").strip()
    # Without exponents: a huge one is a number that Decimal reads but cannot divide.
    if len(text) > _LONGEST or not _NUMBER.fullmatch(number):
        raise InvalidInput(Problem.FIELD_TYPE, "write a number such as 5 or 2.5", name)
    return Decimal(number.replace(",", ".")) / 100


def _smallest(text: str) -> Decimal:
    """Return the smallest of the groups' shares, which sum to 100; one alone is that of the smallest."""
    shares = [_percent(one, "group_share") for one in text.replace(";", " ").split()]
    if not shares:
        raise InvalidInput(Problem.FIELD_TYPE, "write a number such as 5 or 2.5", "group_share")
    if len(shares) > 1 and sum(shares) != 1:
        raise InvalidInput(
            Problem.PRIOR_SUM,
            "write the share of the smallest group, or those of all groups with spaces between, which sum to 100",
            "group_share",
        )
    return min(shares)
