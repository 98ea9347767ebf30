# SPDX-License-Identifier: Apache-2.0
"""The plan of a survey file: equal to the planner of forms, and every step of the ladder by its formula."""

from decimal import Decimal
from math import ceil, comb, exp, sqrt
from typing import Any

import pytest
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.split_plan import reports_needed
from frankly_design.kinds.parts import estimated_blocks
from frankly_design.requests.plan import plan_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.analysis.anchors import anchors_of
from frankly_server.surveys import planned_figures as planned_figures_module
from frankly_server.surveys import survey_plan as survey_plan_module
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.plan_request import SurveyPlanFields
from frankly_server.surveys.planned_figures import document_of, planned_figures
from frankly_server.surveys.survey_plan import survey_plan, survey_plan_json
from frankly_server.surveys.survey_templates import template

from tests.contract.test_arms import FILE as WITH_ARMS

Z = normal_quantile(0.95)
YES_NO = [{"id": "no", "label": {"en": "No"}}, {"id": "yes", "label": {"en": "Yes"}}]
ITEM = {
    "id": "read",
    "text": {"en": "Please choose the second"},
    "choices": [{"id": f"c{x}", "label": {"en": f"C{x}"}} for x in range(4)],
    "answer": "c1",
}
REGION = {
    "id": "region",
    "text": {"en": "Where?"},
    "choices": [{"id": f"r{x}", "label": {"en": f"R{x}"}} for x in range(3)],
}


def question(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": {"en": f"{name}?"}, "choices": YES_NO, **fields}


def block(name: str, epsilon: str = "2", **fields: Any) -> dict[str, Any]:
    asked = question(name, **fields)
    return {"id": f"b-{name}", "notion": "ldp", "epsilon": epsilon, "questions": [asked]}


def file(**fields: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "title": {"en": "X"},
        "languages": ["en"],
        "budget": "10",
        "min_reports": 20,
        **fields,
    }


def plan(survey: dict[str, Any] | SurveyDefinition, **asked: Any) -> dict[str, Any]:
    definition = survey if isinstance(survey, SurveyDefinition) else parse_value(survey)
    return survey_plan(definition, SurveyPlanFields.from_json(asked))


def ladder(found: dict[str, Any]) -> dict[str, int]:
    return {row["step"]: row["n"] for row in found["ladder"]}


def warner(epsilon: float, share: float = 0.5) -> float:
    """Return the variance of one report's estimate of a share."""
    keep = exp(epsilon) / (1 + exp(epsilon))
    seen = share * keep + (1 - share) * (1 - keep)
    return seen * (1 - seen) / (2 * keep - 1) ** 2


def needed(variance: float, margin: float) -> int:
    return ceil(variance * (Z / margin) ** 2)


def constant(epsilon: float, random: float) -> float:
    """Return n·Var κ̂ by a yes/no question that nobody who reads answers with yes."""
    return 4 * warner(epsilon, random / 2)


def test_the_ladder_of_blocks_is_that_of_the_formulas() -> None:
    """Clear, protected, group, population and invitations for two blocks, of which the weaker decides."""
    survey = file(blocks=[block("ill", "1"), block("well", "2")], strata=[REGION])
    found = plan(
        survey,
        margin=0.05,
        groups={"region": [0.5, 0.3, 0.2]},
        response_rate=0.4,
        population=50_000,
    )
    steps = ladder(found)
    assert list(steps) == ["clear", "protection", "group", "population", "invited"]
    assert steps["clear"] == needed(0.25, 0.05) == 385
    assert steps["protection"] == needed(warner(1), 0.05)
    assert steps["group"] == needed(warner(1) / 0.2, 0.05)

    def margin(n: int) -> float:
        left = (10_000 - 0.2 * n) / 9_999
        return Z * sqrt((warner(1) - (1 - left) * 0.25) / (0.2 * n))

    n = steps["population"]
    assert margin(n) <= 0.05 < margin(n - 1)
    assert (found["n"], found["invited"]) == (n, ceil(n / 0.4 - 1e-9))
    assert found["ladder"][-1]["n"] == found["invited"]
    assert [row["added"] for row in found["ladder"]] == [
        b - a for a, b in zip([0, *steps.values()], steps.values(), strict=False)
    ]
    (first, second) = found["questions"]
    assert (first["margin"], first["reports"]) == (pytest.approx(margin(n)), int(0.2 * n + 1e-9))
    assert second["margin"] < first["margin"]
    assert found["notes"][0] == "The margins hold whatever the true shares are."


@pytest.mark.parametrize("asked", [
    {}, {"population": 9_000}, {"subgroup": 0.25}, {"population": 30_000, "subgroup": 0.5},
])  # fmt: skip
def test_a_form_has_the_plan_of_the_planner_of_forms(asked: dict[str, Any]) -> None:
    scores = ["1", "2", "3"]
    choices = [{"id": f"s{x}", "label": {"en": f"S{x}"}} for x in range(3)]
    questions = [
        question("a"),
        question("b", importance="2"),
        {"id": "c", "text": {"en": "c?"}, "choices": choices, "wanted": "mean", "scores": scores},
    ]
    survey = file(form={"epsilon": "2", "cross_tables": [["a", "b"]], "questions": questions})
    form = {
        "epsilon": "2",
        "cross_tables": [[0, 1]],
        "questions": [{"choices": 2}, {"choices": 2, "importance": "2"}],
    }
    form["questions"] += [{"choices": 3, "wanted": "mean", "scores": scores}]  # type: ignore[operator]
    other = plan_json({"form": form, "solve_for": "n", "margin": 0.08, **asked}, lambda: 0.0)
    ours = {("group_share" if name == "subgroup" else name): v for name, v in asked.items()}
    found = plan(survey, margin=0.08, **ours)
    by_id = {tuple(row["questions"]): row["margin"] for row in found["questions"]}
    # The planner of forms has the margin of a mean in units of scores, so compare at one n.
    n = found["n"]
    same = plan_json({"form": form, "solve_for": "margin", "n": n, **asked}, lambda: 0.0)
    expected = [*same["margins"][:2], same["margins"][2] / 2]
    assert [by_id[name,] for name in "abc"] == pytest.approx(expected, rel=1e-9)
    assert by_id["a", "b"] == pytest.approx(same["cross_tables"][0]["margin"], rel=1e-9)
    assert max(expected) <= 0.08
    if other["margins"][2] < other["margin"]:
        assert n == other["n"]


def test_questions_of_a_form_cost_what_each_needs_alone() -> None:
    """Four yes-or-no questions of which each report shows one: four times as many reports."""
    found = plan(
        file(form={"epsilon": "1", "questions": [question(q) for q in "abcd"]}), margin=0.1
    )
    steps = ladder(found)
    assert steps["protection"] == needed(warner(1), 0.1)
    assert steps["form"] == pytest.approx(4 * steps["protection"], abs=4)
    assert found["ladder"][2]["factor"] == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize("random", [0.0, 0.1, 0.2])
def test_the_cost_of_an_instructed_item(random: float) -> None:
    found = plan(file(blocks=[block("ill", "1")], instructed=ITEM), margin=0.04, random=random)
    kept, failed = 1 - random, random * 0.75
    excess = failed * (1 - failed) * (4 / 3) ** 2 - 2 * kept * random

    def variance(theta: float) -> float:
        return (warner(1, kept * theta + random / 2) + (theta - 0.5) ** 2 * excess) / kept**2

    worst = max(variance(theta / 2000) for theta in range(2001))
    steps = ladder(found)
    assert steps["random"] == pytest.approx(needed(worst, 0.04), abs=1)
    assert steps["protection"] == needed(warner(1), 0.04)
    assert found["ladder"][2]["at_most"] is True
    assert found["questions"][0]["is_corrected"]


@pytest.mark.parametrize("random", [0.0, 0.1])
@pytest.mark.parametrize("expected", [None, "0.03"])
def test_the_cost_of_known_shares(random: float, expected: str | None) -> None:
    """The formula n = z²·[V_t + (θ − ρ)²(V_κ − 2κλ)]/(κ·margin)² for a question beside an anchor."""
    prior: dict[str, Any] = {"joint": [["97", "3"]], "source": "a pilot", "public": True}
    asked = block("ill") | ({} if expected is None else {"prior": prior, "mechanism": "grr"})
    anchor = block("born", anchor={"counts": [1, 0], "source": "nobody"})
    found = plan(file(blocks=[asked, anchor]), margin=0.03, random=random)
    kept = 1 - random
    excess = constant(2, random) - 2 * kept * random

    def variance(theta: float) -> float:
        return (warner(2, kept * theta + random / 2) + (theta - 0.5) ** 2 * excess) / kept**2

    worst = max(variance(theta / 2000) for theta in range(2001))
    planned = worst if expected is None else variance(0.03)
    (row,) = found["questions"]
    assert ladder(found)["random"] == pytest.approx(needed(planned, 0.03), abs=1)
    assert row["shares"] == ("any" if expected is None else "expected")
    assert row["margin"] == pytest.approx(Z * sqrt(planned / found["n"]), rel=1e-6)
    assert row["margin_any"] == pytest.approx(Z * sqrt(worst / found["n"]), rel=1e-6)
    assert found["ladder"][2]["at_most"] is False


@pytest.mark.parametrize("random", [0.0, 0.1])
def test_known_shares_in_a_form_are_shown_by_some_reports_only(random: float) -> None:
    anchor = question("born", anchor={"counts": [1, 0], "source": "nobody"})
    asked = [question("a"), question("b"), anchor]
    survey = file(form={"epsilon": "1", "ask": "all", "questions": asked})
    found = plan(survey, margin=0.1, random=random)
    document = document_of(parse_value(survey), lambda: 0.0, 8.0)
    (known,) = anchors_of(document, {})
    shown = {part.questions[0].id: float(share) for part, share in estimated_blocks(document)}
    kept, rows = 1 - random, found["ladder"]
    # No report shows two questions, so that there is no covariance.
    excess = shown["a"] * constant(1, random) / known.shown

    def variance(theta: float) -> float:
        return (warner(1, kept * theta + random / 2) + (theta - 0.5) ** 2 * excess) / kept**2

    worst = max(variance(theta / 2000) for theta in range(2001)) / shown["a"]
    assert ladder(found)["random"] == pytest.approx(needed(worst, 0.1), rel=1e-4)
    assert [row["at_most"] for row in rows] == [False] * len(rows)
    assert any("the step of the shared level" in note for note in found["notes"])


def test_a_correction_that_is_not_shown_is_said() -> None:
    quarter = block("born", "1", anchor={"counts": [3, 1], "source": "quarter of a year"})
    found = plan(file(blocks=[block("ill", "4"), quarter]), n=100)
    (note,) = [note for note in found["notes"] if "nothing is corrected" in note]
    assert f"{ceil(16 * warner(1, 0.25) / 0.25**2):,} answers" in note


def test_the_widest_question_of_a_form_is_named() -> None:
    asked = [question("a", importance="9"), question("b")]
    found = plan(file(form={"epsilon": "1", "questions": asked}), margin=0.1)
    assert any(note.startswith("“b?” decides") for note in found["notes"])
    even = plan(
        file(form={"epsilon": "1", "questions": [question("a"), question("b")]}), margin=0.1
    )
    assert not any("decides" in note for note in even["notes"])


def test_expected_shares_can_be_ignored() -> None:
    asked = question("ill", expected=[97, 3])
    survey = file(form={"epsilon": "2", "questions": [asked]})
    rare, any_share = plan(survey, margin=0.02), plan(survey, margin=0.02, shares="any")
    assert ladder(rare)["clear"] == needed(0.03 * 0.97, 0.02)
    assert ladder(any_share)["clear"] == needed(0.25, 0.02)
    assert rare["n"] < any_share["n"]
    assert "expected shares are assumed" in rare["notes"][0]


def test_the_margin_of_a_number_of_reports() -> None:
    survey = file(blocks=[block("ill", "1")])
    found = plan(survey, n=2_000)
    assert found["solve_for"] == "margin"
    assert found["margin"] == pytest.approx(Z * sqrt(warner(1) / 2_000))
    steps = ladder(found)
    assert steps["protection"] == found["n"] == 2_000
    assert steps["clear"] == needed(0.25, found["margin"])


def test_a_result_needs_the_minimum_and_a_precise_correction() -> None:
    few = plan(file(blocks=[block("ill", "4")], min_reports=500), margin=0.2)
    assert (few["n"], list(ladder(few))[-1]) == (500, "results")
    quarter = block("born", "1", anchor={"counts": [3, 1], "source": "quarter of a year"})
    loose = plan(file(blocks=[block("ill", "4"), quarter]), margin=0.9)
    variance = 16 * warner(1, 0.25)
    assert loose["n"] == ceil(variance / 0.25**2)
    (note,) = [n for n in plan(file(blocks=[block("ill", "4")]), n=10)["notes"] if "No result" in n]
    assert note == "No result is shown: a result needs at least 20 answers."


def arms(first: str, second: str, **fields: Any) -> dict[str, Any]:
    one, two = block("ill", first), block("ill", second) | {"id": "b-two"}
    listed = [
        {"id": "a", "share": "1", "blocks": ["b-ill"]},
        {"id": "b", "share": "3", "blocks": ["b-two"]},
    ]
    return file(blocks=[one, two], arms=listed, **fields)


def test_arms_have_their_share_of_the_reports() -> None:
    found = plan(arms("1", "2"), margin=0.05, difference=0.1, power=0.9)
    steps = ladder(found)
    assert list(steps) == ["clear", "protection", "arms", "difference"]
    assert steps["protection"] == needed(warner(1), 0.05)
    # Chances are out of 65,536, each at least 1.
    assert steps["arms"] == pytest.approx(needed(4 * warner(1), 0.05), abs=1)
    alone = reports_needed(0.1, warner(1), warner(2), 0.25, 0.9, 0.05)
    far = plan(arms("1", "2"), margin=0.3, difference=0.1, power=0.9)
    assert far["n"] == pytest.approx(alone, abs=1)
    assert steps["difference"] == max(far["n"], steps["arms"])
    assert {row["arm"] for row in found["questions"]} == {"a", "b"}
    assert found["arms"] == 2


def chance_of_fewer(n: int, chance: float, least: int) -> float:
    return sum(comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(least))


def test_every_result_is_shown_with_a_chance_of_95_percent() -> None:
    """Both arms together have at least 20 answers: the binomial tails of 1/4 and 3/4 add to 5% at most."""
    found = plan(arms("3", "3"), margin=0.9)
    step = found["ladder"][-1]
    assert step["step"] == "results"
    assert step["text"] == "Enough answers for every result to be shown, with a chance of 95%"

    def missing(n: int) -> float:
        return chance_of_fewer(n, 0.25, 20) + chance_of_fewer(n, 0.75, 20)

    assert missing(found["n"]) <= 0.05 < missing(found["n"] - 1)
    assert all(row["has_result"] for row in found["questions"])
    # As many as 20 are expected in arm a, but in half of all surveys there are fewer.
    by_arm = {row["arm"]: row for row in plan(arms("3", "3"), n=84)["questions"]}
    assert by_arm["a"]["reports"] >= 20
    assert (by_arm["a"]["has_result"], by_arm["b"]["has_result"]) == (False, True)
    (note,) = [
        note for note in plan(arms("3", "3"), n=84)["notes"] if "at least 20 answers" in note
    ]
    assert "the chance of fewer, and so of no result, is above 5% for “ill? (arm a)”." in note


def test_results_of_the_smallest_group_are_shown_with_a_chance_of_95_percent() -> None:
    found = plan(file(blocks=[block("ill", "3"), block("well", "3")]), margin=0.9, group_share=0.2)
    step = found["ladder"][-1]
    assert "for every result in the smallest group to be shown" in step["text"]
    n = found["n"]
    # Both questions have the same reports, so that one tail counts.
    assert chance_of_fewer(n, 0.2, 20) <= 0.05 < chance_of_fewer(n - 1, 0.2, 20)


def test_results_of_a_form_need_every_part_of_it() -> None:
    survey = file(form={"epsilon": "3", "questions": [question(q) for q in "abcd"]})
    found = plan(survey, margin=0.9)
    document = document_of(parse_value(survey), lambda: 0.0, 8.0)
    shown = [float(share) for _, share in estimated_blocks(document)]

    def missing(n: int) -> float:
        return sum(chance_of_fewer(n, share, 20) for share in shown)

    assert len(shown) == 4
    assert list(ladder(found))[-1] == "results"
    assert missing(found["n"]) <= 0.05 < missing(found["n"] - 1)


def test_a_given_number_of_answers_is_the_only_one() -> None:
    """The minimum and a difference raise no number of the ladder; notes say from which number on they hold."""
    survey, asked = arms("3", "3"), {"response_rate": 0.5, "strengths": True, "difference": 0.1}
    found = plan(survey, n=15, **asked)
    assert list(ladder(found)) == ["clear", "protection", "arms", "invited"]
    assert (found["n"], ladder(found)["arms"], ladder(found)["invited"]) == (15, 15, 30)
    assert found["invited"] == 30
    (current,) = [row for row in found["strengths"] if row["is_current"]]
    assert (current["n"], current["invited"]) == (15, 30)
    stronger, _, weaker = [row["n"] for row in found["strengths"]]
    assert weaker < 15 < stronger
    shown = plan(survey, margin=0.9)["n"]
    assert (
        f"Enough answers for every result to be shown, with a chance of 95%: from {shown} answers on."
        in found["notes"]
    )
    (note,) = [note for note in found["notes"] if note.startswith("A difference of 10%")]
    needed = plan(survey, margin=0.9, difference=0.1)["n"]
    assert note.endswith(f"is found with 80%: from {needed:,} answers on.")


def test_a_number_of_answers_has_a_margin_in_a_small_population() -> None:
    found = plan(arms("1", "2"), n=10, population=10)
    assert (found["n"], ladder(found)["population"]) == (10, 10)
    assert "No result is shown: a result needs at least 20 answers." in found["notes"]
    assert any(
        note.endswith("answers on, more than the 10 people can give.") for note in found["notes"]
    )


def test_a_difference_is_that_between_the_arms_of_everybody() -> None:
    asked = {"margin": 0.9, "difference": 0.05}
    whole, grouped = (plan(arms("3", "3"), **asked, **more) for more in ({}, {"group_share": 0.2}))
    assert grouped["n"] == whole["n"]
    assert "between the arms is found with 80%" in whole["ladder"][-1]["text"]
    assert "between the arms, among everybody, is found with 80%" in grouped["ladder"][-1]["text"]


def test_a_ceiling_of_the_file_is_said_to_stay() -> None:
    def notes(name: str) -> list[str]:
        found = plan(parse_definition(template(name)), margin=0.1, strengths=True)
        assert found["strengths"]
        return [note for note in found["notes"] if "ceiling" in note]

    assert notes("census") == [
        "A ceiling in the file (ceiling_cap) stays the same at other strengths, which can then cost as much."
    ]
    assert notes("questionnaire") == []


def too_large(*_: Any) -> Any:
    raise InvalidInput(Problem.UNSUPPORTED, "too many joint answers", "targets")


def test_a_search_without_a_small_table_names_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_plan_module, "planned_figures", too_large)
    with pytest.raises(InvalidInput) as refused:
        plan(BLOCKS, margin=0.1)
    assert (refused.value.problem, refused.value.field) == (Problem.OPTIMISER_LIMIT, "survey")
    assert "plan again when the computer has less to do" in str(refused.value)


def test_questions_alone_are_left_out_if_no_small_table_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    survey = file(form={"epsilon": "2", "questions": [question(q) for q in "ab"]})
    whole = plan(survey, margin=0.1)
    monkeypatch.setattr(planned_figures_module, "part_table", too_large)
    found = plan(survey, margin=0.1)
    assert list(ladder(found)) == ["clear", "protection"]
    assert found["n"] == whole["n"]
    assert any(
        note.startswith("What each question needs alone is left out") for note in found["notes"]
    )


def test_another_strength_without_a_small_table_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def figures(definition: SurveyDefinition, *rest: Any) -> Any:
        return (
            too_large()
            if definition.blocks[0].epsilon == "0.5"
            else planned_figures(definition, *rest)
        )

    monkeypatch.setattr(survey_plan_module, "planned_figures", figures)
    found = plan(BLOCKS, margin=0.1, strengths=True)
    assert [row["epsilon"] for row in found["strengths"]] == [["1"], ["1.5"]]
    assert any(
        note.startswith("The next stronger protection is left out") for note in found["notes"]
    )


@pytest.mark.parametrize(("survey", "asked", "field", "said"), [
    ({}, {"margin": 1e-6, "population": 10}, "margin", "even if all 10 people answer, the margin is"),
    ({"min_reports": 500}, {"margin": 0.5, "population": 90}, "population",
     "from 500 answers on, and only 90 people can answer: plan a number of answers instead of a margin, or lower"),
])  # fmt: skip
def test_few_people_are_refused_with_a_way_out(
    survey: dict[str, Any], asked: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(BLOCKS | survey, **asked)
    assert refused.value.field == field
    assert said in str(refused.value)


def test_a_difference_that_few_people_cannot_show_is_refused() -> None:
    with pytest.raises(InvalidInput, match="give a larger difference") as refused:
        plan(arms("3", "3"), margin=0.5, difference=0.05, population=1_000)
    assert refused.value.field == "difference"


def test_arms_are_corrected_by_the_item_of_each() -> None:
    found = plan(arms("1", "2", instructed=ITEM), margin=0.05, random=0.1)
    steps = ladder(found)
    assert steps["random"] < steps["arms"] <= 4 * steps["random"] + 4


def test_a_file_with_arms_and_public_questions() -> None:
    found = plan(parse_definition(WITH_ARMS), margin=0.1)
    assert found["n"] > 0
    assert all(row["margin"] is not None for row in found["questions"])


def test_other_strengths_are_planned_like_files_of_that_strength() -> None:
    def of(epsilon: str) -> dict[str, Any]:
        return file(form={"epsilon": epsilon, "questions": [question(q) for q in "ab"]})

    found = plan(of("1"), margin=0.05, strengths=True)
    assert [(row["epsilon"], row["is_current"]) for row in found["strengths"]] == [
        (["0.5"], False),
        (["1"], True),
        (["1.5"], False),
    ]
    assert [row["n"] for row in found["strengths"]] == [
        plan(of(epsilon), margin=0.05)["n"] for epsilon in ("0.5", "1", "1.5")
    ]
    assert found["strengths"][1]["strength"] == "Strong"
    small = plan(of("1"), margin=0.05, strengths=True, population=4_000)
    assert small["strengths"][0]["n"] is None


BLOCKS = file(blocks=[block("ill", "1")])


@pytest.mark.parametrize(
    ("survey", "asked", "code", "field"),
    [
        (BLOCKS, {}, "field_missing", "margin"),
        (BLOCKS, {"margin": 0.1, "n": 100}, "unsupported", "margin"),
        (BLOCKS, {"margin": 1}, "field_type", "margin"),
        (BLOCKS, {"n": 100, "population": 50}, "counts_invalid", "n"),
        (BLOCKS, {"margin": 0.1, "population": 1}, "field_type", "population"),
        (BLOCKS, {"margin": 0.05, "population": 500}, "unsupported", "margin"),
        (BLOCKS, {"margin": 0.9, "population": 10}, "unsupported", "population"),
        (BLOCKS, {"margin": 0.1, "level": 0.3}, "confidence_range", "level"),
        (BLOCKS, {"margin": 0.1, "response_rate": 0}, "field_type", "response_rate"),
        (BLOCKS, {"margin": 0.1, "random": 0.1}, "unsupported", "random"),
        (BLOCKS, {"margin": 0.1, "group_share": 2}, "field_type", "group_share"),
        (BLOCKS, {"margin": 0.1, "groups": {"region": [0.5, 0.5]}}, "unsupported", "groups"),
        (BLOCKS, {"margin": 0.1, "groups": {"a": [0.5, 0.6]}}, "prior_sum", "groups"),
        (BLOCKS, {"margin": 0.1, "groups": {}}, "field_type", "groups"),
        (
            BLOCKS | {"strata": [REGION]},
            {"margin": 0.1, "groups": {"region": [0.5, 0.5]}},
            "prior_shape",
            "groups",
        ),
        (
            BLOCKS,
            {"margin": 0.1, "groups": {"a": [0.5, 0.5]}, "group_share": 0.1},
            "unsupported",
            "group_share",
        ),
        (BLOCKS, {"margin": 0.1, "power": 0.8}, "field_missing", "difference"),
        (BLOCKS, {"margin": 0.1, "difference": 0.1}, "unsupported", "difference"),
        (arms("1", "2"), {"margin": 0.1, "difference": 1e-6}, "unsupported", "difference"),
        (BLOCKS, {"margin": 0.1, "extra": 1}, "field_unknown", "extra"),
        (BLOCKS | {"budget": "0"}, {"margin": 0.1}, "eps_out_of_range", "survey.budget"),
        ({"name": "x"}, {"margin": 0.1}, "field_missing", "survey.title"),
    ],
)
def test_refusals_name_the_field(
    survey: dict[str, Any], asked: dict[str, Any], code: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        survey_plan_json({"survey": survey, **asked})
    assert (refused.value.problem.code, refused.value.field) == (code, field)


def test_a_survey_that_has_closed_is_planned_like_an_open_one() -> None:
    closed = BLOCKS | {"opens": "2020-01-01T00:00:00Z", "closes": "2020-02-01T00:00:00Z"}
    assert plan(closed, margin=0.1) == plan(BLOCKS, margin=0.1)


def test_numbers_of_a_file_as_json_keep_their_digits() -> None:
    survey = BLOCKS | {"budget": Decimal("1.5")}
    found = survey_plan_json({"survey": survey, "margin": Decimal("0.1")})
    assert found["n"] == needed(warner(1), 0.1)
