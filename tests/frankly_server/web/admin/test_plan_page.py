# SPDX-License-Identifier: Apache-2.0
"""Page Plan of a draft: the numbers of the plan, in the words of the page, and refusals at their field."""

import html
import re
from urllib.parse import urlencode

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.plan_request import SurveyPlanFields
from frankly_server.surveys.survey_plan import survey_plan
from frankly_server.web.admin import plan

from tests.contract.test_arms import FILE as WITH_ARMS
from tests.frankly_server.web.admin.office import Office, make_office
from tests.frankly_server.web.admin.test_forms import SCORED
from tests.survey_files import DRINKS, REGION, SMOKES, habits

FORM = habits(SMOKES, DRINKS, budget="2", strata=REGION)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return make_office(tmp_path_factory.mktemp("plan"))


def page(office: Office, file: bytes, role: str = "viewer", **query: str) -> tuple[int, str]:
    definition = parse_definition(file)
    survey = office.services.surveys.apply(definition).survey_id
    answer = office.client(role).get(f"/admin/surveys/{survey}/plan?{urlencode(query)}")
    return answer.status_code, html.unescape(answer.get_data(as_text=True))


def words(text: str) -> str:
    """Return the text that people read."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_the_page_opens_with_a_plan_for_five_points(office: Office) -> None:
    status, text = page(office, FORM)
    found = survey_plan(parse_definition(FORM), SurveyPlanFields.from_json({"margin": 0.05}))
    assert status == 200
    assert f"{found['n']:,} answers give ±5 points or less for every question" in words(text)
    for row in found["ladder"]:
        assert f"{row['text']} {row['n']:,}" in words(text)
    assert "tick at random" not in text
    assert "What another strength would cost" in text


def test_everything_that_is_entered_counts(office: Office) -> None:
    asked = {
        "margin": "6",
        "group_share": "50 30 20",
        "population": "90,000",
        "response_rate": "40",
    }
    status, text = page(office, FORM, **asked, level="90", shares="any")
    fields = {
        "margin": 0.06,
        "group_share": 0.2,
        "population": 90_000,
        "response_rate": 0.4,
        "level": 0.9,
        "shares": "any",
    }
    found = survey_plan(parse_definition(FORM), SurveyPlanFields.from_json(fields))
    assert status == 200
    assert f"{found['n']:,} answers give ±6 points or less" in words(text)
    assert f"Invite {found['invited']:,} people" in words(text)
    assert [row["step"] for row in found["ladder"]][-1] == "invited"
    for name, value in asked.items():
        assert f'id="{name}" name="{name}"' in text
        assert f'value="{value}"' in text


def test_a_number_of_answers_has_a_margin(office: Office) -> None:
    _, text = page(office, SCORED, n="4000", random="10")
    asked = {"n": 4000, "random": 0.1}
    found = survey_plan(parse_definition(SCORED), SurveyPlanFields.from_json(asked))
    assert f"4,000 answers give ±{100 * found['margin']:.3g} points for the question" in words(text)
    assert "Corrected for random answers, if 10% give them" in text
    assert "mean, corrected" in text


def test_a_survey_with_arms_plans_a_difference(office: Office) -> None:
    status, text = page(office, WITH_ARMS, margin="20", difference="10", power="90")
    assert status == 200
    assert "A difference of 10% between the arms is found with 90%" in words(text)


@pytest.mark.parametrize(("asked", "field", "detail"), [
    ({"margin": ""}, "margin", "give the margin to reach or the number of reports"),
    ({"margin": "5", "n": "100"}, "margin", "not both"),
    ({"margin": "many"}, "margin", "write a number such as 5 or 2.5"),
    ({"margin": "nan"}, "margin", "write a number such as 5 or 2.5"),
    ({"margin": "1" * 41}, "margin", "write a number such as 5 or 2.5"),
    ({"margin": "200"}, "margin", ""),
    ({"margin": "5", "n": "1.5"}, "n", "write a whole number"),
    ({"margin": "5", "group_share": "50 30"}, "group_share", "which sum to 100"),
    ({"margin": "5", "random": "10"}, "random", "no instructed item"),
    ({"margin": "1", "population": "900"}, "margin", "even if all 900 people answer"),
])  # fmt: skip
def test_refusals_are_at_their_field(
    office: Office, asked: dict[str, str], field: str, detail: str
) -> None:
    status, text = page(office, FORM, **asked)
    assert status == 422
    assert f'id="{field}-error"' in text
    assert detail in words(text)
    assert "What each step costs" not in text


@pytest.mark.parametrize("text", [
    ";", "; ;", ",", ".", "%", "-5", "x", "nan", "sNaN", "inf", "1_0", "५", "1e9999999", "1e99999999999999999",
    "50 1e9999999",
])  # fmt: skip
@pytest.mark.parametrize("field", plan._FIELDS)
def test_what_is_no_number_is_refused_at_its_field(field: str, text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        SurveyPlanFields.from_json(plan._asked({field: text}))
    assert (refused.value.problem, refused.value.field) == (Problem.FIELD_TYPE, field)


def test_a_field_of_separators_is_refused_on_the_page(office: Office) -> None:
    status, text = page(office, FORM, margin="5", group_share=";")
    assert status == 422
    assert 'id="group_share-error"' in text


def test_unknown_fields_are_refused(office: Office) -> None:
    assert page(office, FORM, extra="1")[0] in (400, 422)
