# SPDX-License-Identifier: Apache-2.0
"""Plans and periods from the client: they equal the server's, and every refusal is typed."""

from datetime import date
from math import e, sqrt
from typing import Any
from xml.etree import ElementTree

import pytest
from frankly_analyst import Analyst, Plan, Refused, Unreachable
from frankly_analyst.split_plan import SplitPlan
from frankly_analyst.survey_plan import SurveyPlan
from scipy import stats

from tests.frankly_analyst.conftest import Served
from tests.frankly_analyst.desk import says, stranger
from tests.refusals import refusal

GRR: dict[str, Any] = {"prior": {"joint": [[1, 1]]}, "notion": "ldp", "mechanism": "grr"}


@pytest.fixture(scope="module")
def analyst(served: Served) -> Analyst:
    return Analyst(served.url, served.site.analyst_key)


def _margin(epsilon: float, n: int, level: float) -> float:
    """Return the margin of randomised response at the worst-case share of ½: z·√((¼ + pq/(p−q)²)/n)."""
    p = e**epsilon / (e**epsilon + 1)
    return float(
        stats.norm.isf((1 - level) / 2) * sqrt((0.25 + p * (1 - p) / (2 * p - 1) ** 2) / n)
    )


def test_any_two_of_three_give_the_third(analyst: Analyst) -> None:
    plan = analyst.plan("margin", **GRR, epsilon="1", n=2000, level=0.9)
    assert plan.margin == pytest.approx(_margin(1, 2000, 0.9), rel=1e-6)
    assert (plan.solve_for, plan.n, plan.epsilon, plan.level, plan.method) == (
        "margin",
        2000,
        "1",
        0.9,
        "clt",
    )
    reports = analyst.plan("n", **GRR, epsilon="1", margin=0.05, response_rate=0.5)
    assert _margin(1, reports.n, 0.95) <= 0.05 < _margin(1, reports.n - 1, 0.95)
    assert reports.invited == 2 * reports.n
    level = analyst.plan("epsilon", **GRR, n=2000, margin=0.05)
    assert (
        _margin(float(level.epsilon or 0), 2000, 0.95)
        <= 0.05
        < _margin(float(level.epsilon or 0) - 0.001, 2000, 0.95)
    )


def test_plans_show_their_curve_and_frontier(analyst: Analyst) -> None:
    plan = analyst.plan("margin", **GRR, epsilon="1", n=400, frontier=3)
    assert [n for n, _ in plan.curve] == [100, 200, 400, 800, 1600]
    for n, margin in plan.curve:
        assert margin == pytest.approx(_margin(1, n, 0.95), rel=1e-6)
    assert [float(level) for level, _, _ in plan.frontier] == pytest.approx(
        [0.1, 0.894, 8], abs=1e-3
    )
    assert str(plan) == f"400 reports with ε 1: ± {plan.margin:.2%} at 0.95 by clt"
    page = ElementTree.fromstring(plan._repr_html_())
    assert len(page.findall(".//tr")) == 1 + len(plan.curve)
    assert Plan.from_json(plan.body) == plan


def test_a_plan_of_a_form_says_how_many_questions_a_person_is_asked(analyst: Analyst) -> None:
    form = {"questions": [{"choices": 2}] * 5, "epsilon": "1"}
    plan = analyst.plan("margin", form=form, n=400)
    assert plan.asked == (pytest.approx(1), 1, 5)
    assert "1.00 of 5 questions asked of a person on average, at most 1" in str(plan).splitlines()
    (note,) = plan.notes
    assert note.endswith("one question drawn at random.")
    assert note == str(plan).splitlines()[-1]


def test_a_factor_on_levels_of_pairs_is_solved_for(analyst: Analyst) -> None:
    pairs = {**GRR, "notion": "metric-ldp", "epsilons": [[None, "0.5"], ["0.5", None]]}
    plan = analyst.plan("epsilon", **pairs, n=2000, margin=0.05)
    assert plan.epsilon is None
    level = float(plan.factor or 0) / 2
    assert float(plan.body["epsilons"][0][1]) == pytest.approx(level)
    assert _margin(level, 2000, 0.95) <= 0.05 < _margin(level - 0.0005, 2000, 0.95)
    assert str(plan).startswith(f"2000 reports with levels times {plan.factor}: ±")


REFUSED: dict[str, tuple[str, dict[str, Any], str, str | None]] = {
    "no margin": ("n", {**GRR, "epsilon": "1"}, "field_missing", "margin"),
    "the result is given": (
        "n",
        {**GRR, "epsilon": "1", "margin": 0.1, "n": 5},
        "unsupported",
        "n",
    ),
    "unknown quantity": ("speed", GRR, "field_type", "solve_for"),
    "limits of the search": (
        "n",
        {**GRR, "epsilon": "1", "margin": 0.1, "limits": {}},
        "unsupported",
        "limits",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_typed(analyst: Analyst, name: str) -> None:
    solve_for, asked, code, field = REFUSED[name]
    error = refusal(Refused, analyst.plan, solve_for, **asked)
    assert (error.status, error.code, error.field) == (422, code, field)


ARMS: list[dict[str, Any]] = [
    {"epsilon": "4", "mechanism": "grr", "share": 0.08},
    {"epsilon": "4", "mechanism": "grr", "share": 0.03},
]


def test_two_arms_are_planned(analyst: Analyst) -> None:
    plan = analyst.plan_split(ARMS, choices=2, response_rate=0.5)
    assert (plan.solve_for, plan.level, plan.difference) == ("n", 0.95, pytest.approx(0.05))
    figures = plan.planned
    assert (figures.n, figures.per_arm, figures.invited) == (890, (445, 445), 1780)
    assert plan.best is not None
    assert plan.best.n == 886
    assert str(plan).splitlines() == [
        "a difference of 5 points at 0.95",
        "  890 reports (1780 invited), 445 and 445 in the arms, chance of the first 50.0%: power 80.0%",
        "  best: 886 reports (1772 invited), 414 and 472 in the arms, chance of the first 46.8%: power 80.0%",
    ]
    assert SplitPlan.from_json(plan.body) == plan
    few = analyst.plan_split(ARMS, choices=2, n=9)
    assert (few.solve_for, few.best) == ("power", None)
    assert len(str(few).splitlines()) == 2
    error = refusal(Refused, analyst.plan_split, ARMS[:1], choices=2)
    assert (error.status, error.code, error.field) == (422, "field_type", "arms")


def test_invalid_plans_are_unreachable() -> None:
    with stranger(says(200, "application/json", b'{"n": 5}')) as url, pytest.raises(Unreachable):
        Analyst(url, "frankly_live_x").plan_split(ARMS, choices=2)
    with stranger(says(200, "application/json", b'{"n": 5}')) as url, pytest.raises(Unreachable):
        Analyst(url, "frankly_live_x").plan("margin", **GRR, epsilon="1", n=5)


def test_the_client_returns_estimates_by_period(served: Served, analyst: Analyst) -> None:
    today = date(2026, 6, 2)  # the day of the release
    survey = served.site.survey
    overall, by_day = analyst.estimates(survey), analyst.estimates(survey, by="day")
    assert {row.by for row in by_day} == {f"day={today}"}
    assert [row.estimate for row in by_day] == [row.estimate for row in overall]
    assert by_day.sum("drinks", ["weekly", "daily"], by=f"day={today}").estimate == pytest.approx(
        overall.sum("drinks", ["weekly", "daily"]).estimate
    )
    assert len(ElementTree.fromstring(by_day.plot("drinks")).findall(".//{*}circle")) == 3
    assert len(analyst.estimates(survey, since=today, until=str(today))) == len(overall)
    before = analyst.estimates(survey, until=date(2020, 1, 1))
    assert (len(before), before.n, dict(before.insufficient)) == (
        0, 60, {f"{q} (days=../2020-01-01)": 10 for q in ("smokes", "drinks")},
    )  # fmt: skip
    error = refusal(Refused, analyst.estimates, survey, since="yesterday")
    assert (error.code, error.field) == ("field_type", "since")


SURVEY: dict[str, Any] = {
    "name": "x",
    "title": {"en": "X"},
    "languages": ["en"],
    "budget": "1",
    "form": {"questions": [{"id": "a", "type": "yes-no", "text": {"en": "a?"}}]},
}


def test_a_survey_file_is_planned(analyst: Analyst) -> None:
    plan = analyst.plan_survey(SURVEY, margin=0.05, response_rate=0.5)
    assert _margin(1, plan.n, 0.95) <= 0.05 < _margin(1, plan.n - 1, 0.95)
    assert [step.step for step in plan.ladder] == ["clear", "protection", "invited"]
    assert plan.ladder[0].n == 385
    assert plan.ladder[1].factor == pytest.approx(plan.n / 385)
    assert plan.invited == plan.ladder[-1].n == 2 * plan.n
    assert plan.margins == {"a": pytest.approx(_margin(1, plan.n, 0.95), rel=1e-6)}
    assert SurveyPlan.from_json(plan.body) == plan
    said = str(plan).splitlines()
    assert said[0] == f"{plan.n} reports: ± 5 points at 0.95"
    assert said[2] == f"  Protected as in the file: {plan.n} (× {plan.n / 385:.2f})"
    assert said[-1] == plan.notes[-1]


def test_a_refused_survey_file_names_its_field(analyst: Analyst) -> None:
    with pytest.raises(Refused) as refused:
        analyst.plan_survey({**SURVEY, "budget": "0"}, margin=0.05)
    assert refused.value.field == "survey.budget"
