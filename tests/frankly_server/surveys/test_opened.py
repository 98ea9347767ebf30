# SPDX-License-Identifier: Apache-2.0
"""Lists of surveys: what is read from a draft's JSON is what the parsed definition says."""

import pytest
from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.opened import _of_draft
from frankly_server.surveys.survey_templates import ORDER, template

from tests.survey_files import DRINKS, REGION, SMOKES, habits


def _check(definition: SurveyDefinition) -> None:
    assert _of_draft(definition.to_json()) == {
        "title": dict(definition.title),
        "languages": list(definition.languages),
        "questions": [question.id for question in definition.drawn_questions],
        "strata": [question.id for question in definition.strata],
    }


@pytest.mark.parametrize("name", ORDER)
def test_a_template_is_listed_as_it_is_parsed(name: str) -> None:
    _check(parse_definition(template(name)))


def test_a_survey_of_blocks_is_listed_as_it_is_parsed() -> None:
    definition = parse_definition(habits(SMOKES, DRINKS, budget="2", strata=REGION))
    _check(definition)
    assert _of_draft(definition.to_json())["strata"] == ["region"]


def test_the_templates_have_boxes_blocks_and_public_questions() -> None:
    """So that the comparison above is about all of them."""
    definitions = [parse_definition(template(name)) for name in ORDER]
    forms = [one.form for one in definitions if one.form is not None]
    assert any(question.boxes for form in forms for question in form.questions)
    assert any(one.blocks for one in definitions)
    assert any(one.strata for one in definitions)
