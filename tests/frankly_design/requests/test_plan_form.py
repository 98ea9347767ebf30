# SPDX-License-Identifier: Apache-2.0
"""Plans of forms: margins of parts at their shares of the reports, solved for n, margin or level."""

import json
from itertools import chain, repeat
from typing import Any

import pytest
from frankly_design.estimate.planner import Plan, Setting
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.parts import chance_shown, part_table
from frankly_design.requests.design import design_json
from frankly_design.requests.design_fields import within
from frankly_design.requests.plan import plan_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from tests.frankly_protocol.mechanisms.laws import plans_of
from tests.refusals import code_and_field, refusal

FIVE = {"choices": 5}
TEN = {"questions": [FIVE] * 10, "epsilon": "2"}
MEAN = {"choices": 3, "wanted": "mean", "scores": [0, 1, 2]}
MIXED: dict[str, Any] = {
    "questions": [{"choices": 2}, {"choices": [3, 2, 1]}, MEAN],
    "epsilon": "2",
    "cross_tables": [[0, 1]],
}


def without_level(form: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key != "epsilon"}


def read(obj: Any) -> Any:
    return parse_json(json.dumps(obj).encode(), decimals=True)


def plan(form: Any = TEN, **asked: Any) -> Any:
    return json.loads(json.dumps(plan_json(read({"form": form, **asked}), lambda: 0.0)))


@pytest.mark.parametrize("form", [TEN, MIXED, TEN | {"epsilon": "4"}], ids=["ten", "mixed", "4"])
def test_the_numbers_asked_are_those_of_all_plans(form: dict[str, Any]) -> None:
    designed = AgreementMechanism.from_params(design_json(read({"form": form}))["params"])
    numbers = {
        plan: len({question for part in plan.parts for question in designed.parts[part]})
        for plan in plans_of(designed)
    }
    asked = plan(form, solve_for="margin", n=4000)["asked"]
    mean = sum(chance * numbers[drawn] for drawn, chance in plans_of(designed).items())
    assert asked["mean"] == pytest.approx(float(mean), abs=1e-12)
    assert (asked["most"], asked["of"]) == (max(numbers.values()), len(form["questions"]))


def test_a_margin_equals_that_of_the_part_at_its_share_of_the_reports() -> None:
    found = plan(MIXED, solve_for="margin", n=4000)
    form = AgreementMechanism.from_params(design_json(read({"form": MIXED}))["params"])
    priors = {0: (1, 1), 1: (3, 2, 1)}
    for i, prior in priors.items():
        if (i,) not in form.parts:
            continue
        part = form.parts.index((i,))
        share = chance_shown(form, (part,))
        own = Plan(part_table(form, (part,)), shares(len(prior)), prior, Setting())
        assert found["margins"][i] == pytest.approx(own.margin(float(4000 * share)))
        assert found["shown"][i] == pytest.approx(float(share))
    (pair,) = found["cross_tables"]
    assert pair["questions"] == [0, 1]
    assert 0 < pair["margin"] < 1
    assert found["margin"] == max(found["margins"])
    assert (found["n"], found["epsilon"], found["regret"]) == (4000, "2", None)


def test_reports_are_the_least_that_give_the_margin() -> None:
    found = plan(solve_for="n", margin=0.03)
    assert found["margin"] <= 0.03
    assert plan(solve_for="margin", n=found["n"] - 1)["margin"] > 0.03
    assert plan(solve_for="margin", n=found["n"])["margins"] == found["margins"]
    assert [point["n"] for point in found["curve"]][2] == found["n"]


@pytest.mark.slow
def test_the_level_is_the_least_that_gives_the_margin() -> None:
    n = plan(solve_for="n", margin=0.03)["n"]
    found = plan(without_level(TEN), solve_for="epsilon", n=n, margin=0.03)
    assert found["epsilon"] == "2.000"
    less = plan({**TEN, "epsilon": "1.999"}, solve_for="margin", n=n)
    assert less["margin"] > 0.03


def test_every_question_may_have_its_own_margin() -> None:
    first = {**FIVE, "margin": 0.02}
    found = plan({"questions": [first, FIVE], "epsilon": "2"}, solve_for="n", margin=0.1)
    assert found["margins"][0] <= 0.02
    alone = plan({"questions": [first, {**FIVE, "margin": 0.1}], "epsilon": "2"}, solve_for="n")
    assert alone["n"] == found["n"]


def test_settings_equal_those_of_any_plan() -> None:
    n = 5000
    usual = plan(solve_for="margin", n=n)
    careful = plan(solve_for="margin", n=n, method="chebyshev", level=0.9, response_rate=0.5)
    assert careful["margin"] > usual["margin"]
    assert (careful["method"], careful["level"], careful["invited"]) == ("chebyshev", 0.9, 2 * n)
    half = plan(solve_for="margin", n=n, subgroup=0.5)
    assert half["margin"] == pytest.approx(usual["margin"] * 2**0.5, rel=1e-9)
    of_all = plan(solve_for="margin", n=n, population=n)
    assert of_all["margin"] < usual["margin"]


def test_a_whole_population_may_be_too_small() -> None:
    error = refusal(InvalidInput, plan, solve_for="n", margin=0.001, population=1000)
    assert (error.code, error.field) == ("unsupported", "margin")
    error = refusal(InvalidInput, plan, without_level(TEN), solve_for="epsilon", margin=0.001, n=10)
    assert (error.code, error.field) == ("unsupported", "margin")


def test_a_stopped_search_still_plans() -> None:
    asked = read({"form": TEN, "solve_for": "margin", "n": 1000})
    # The time is up at the second reading of the clock; planning itself may take a little longer.
    times = chain([0.0], repeat(1.0))
    found = within(plan_json, asked, lambda: next(times), 0.5)
    assert found["margin"] > 0


OWN = {"questions": [{**FIVE, "margin": 0.1}, FIVE], "epsilon": "2"}
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no margin": ({"solve_for": "n"}, "field_missing", "margin"),
    "a margin for some": ({"form": OWN, "solve_for": "n"}, "field_missing", "margin"),
    "no reports": ({"solve_for": "margin"}, "field_missing", "n"),
    "no reports for a level": (
        {"form": without_level(TEN), "solve_for": "epsilon", "margin": 0.1}, "field_missing", "n",
    ),
    "0 reports": ({"solve_for": "margin", "n": 0}, "counts_invalid", "n"),
    "no level": ({"form": without_level(TEN), "solve_for": "n", "margin": 0.1}, "field_missing", "form.epsilon"),
    "a level to solve for": ({"solve_for": "epsilon", "n": 9, "margin": 0.1}, "unsupported", "form.epsilon"),
    "reports to solve for": ({"solve_for": "n", "n": 9, "margin": 0.1}, "unsupported", "n"),
    "a margin to solve for": ({"solve_for": "margin", "n": 9, "margin": 0.1}, "unsupported", "margin"),
    "a question's margin to solve for": (
        {"form": OWN, "solve_for": "margin", "n": 9}, "unsupported", "form.questions[0].margin",
    ),
    "a level outside the form": ({"solve_for": "n", "margin": 0.1, "epsilon": "1"}, "field_unknown", "epsilon"),
    "targets": ({"solve_for": "n", "margin": 0.1, "targets": "shares"}, "field_unknown", "targets"),
    "a frontier": ({"solve_for": "n", "margin": 0.1, "frontier": 3}, "field_unknown", "frontier"),
    "a mechanism too": (
        {"solve_for": "n", "margin": 0.1, "weights": [[3, 1], [1, 3]], "bits": 2}, "field_unknown", "bits",
    ),
    "a margin of 0": (
        {"form": {"questions": [{**FIVE, "margin": 0}]}, "solve_for": "n"},
        "field_type", "form.questions[0].margin",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_faults_name_their_field(name: str) -> None:
    asked, code, field = BAD[name]
    assert code_and_field(InvalidInput, plan, **{"form": TEN, **asked}) == (code, field)
