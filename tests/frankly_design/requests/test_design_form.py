# SPDX-License-Identifier: Apache-2.0
"""Forms in the JSON interface: responses of `frankly design --json`, and errors by field."""

import json
import re
import time
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.form import FormQuestion, FormRequest, design_form
from frankly_design.form.joint_tables import estimable_pairs, excess_in_words, gain_in_words
from frankly_design.kinds.parts import chance_shown, part_table
from frankly_design.requests.design import design_json
from frankly_design.requests.plan import plan_json
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from tests.refusals import refusal

FIVE = {"choices": 5}
MEAN = {"choices": 3, "wanted": "mean", "scores": [0, 1, 2]}
FORM: dict[str, Any] = {
    "questions": [{"choices": 2}, {"choices": [3, 2, 1]}, {**MEAN, "importance": "2.5"}],
    "epsilon": "2",
    "cross_tables": [[0, 1]],
}


def asked(form: Any, **more: Any) -> Any:
    read = parse_json(json.dumps({"form": form, **more}).encode(), decimals=True)
    return json.loads(json.dumps(design_json(read)))


def planned(form: Any, **more: Any) -> Any:
    return plan_json({"form": form, "n": 1000, "solve_for": "margin", **more}, time.monotonic)


def test_a_form_is_designed_as_in_python() -> None:
    answer = asked(FORM)
    request = FormRequest(
        (
            FormQuestion((1, 1)),
            FormQuestion((3, 2, 1)),
            # The mean of 0, 1, 2 differs from that of −1, 0, 1 by a constant; its range is 2.
            FormQuestion((1, 1, 1), ((Fraction(-1), Fraction(0), Fraction(1)),), Fraction(5, 8)),
        ),
        Fraction(2),
        ((0, 1),),
    )
    designed = design_form(request)
    assert answer["params"] == json.loads(json.dumps(designed.mechanism.params_json()))
    assert (answer["kind"], answer["bits"]) == ("agreement", 48)
    assert answer["value"] == designed.value
    assert [entry["variance"] for entry in answer["questions"]] == list(designed.variances)
    assert [entry["variance"] for entry in answer["cross_tables"]] == list(designed.pair_variances)
    assert answer["joint_tables"] == [list(pair) for pair in estimable_pairs(designed.mechanism)]
    # The variance of a mean counts in units of its range, which is 2.
    weights = (1, 1, 2.5 / 4)
    total = sum(w * v for w, v in zip(weights, designed.variances, strict=True))
    assert answer["value"] == pytest.approx(total + sum(designed.pair_variances))


def test_the_level_equals_that_of_the_whole_form() -> None:
    answer = asked(FORM)
    mechanism = AgreementMechanism.from_params(answer["params"])
    require_private(mechanism, Claim("ldp", tuple(answer["level"])))
    assert Fraction(*answer["level"]) == Fraction(mechanism.agree, mechanism.disagree)


def test_ten_questions_are_as_good_as_one_drawn_at_random() -> None:
    answer = asked({"questions": [FIVE] * 10, "epsilon": "2"})
    assert answer["value"] == pytest.approx(254.2, rel=5e-3)
    assert answer["separate_blocks"]["value"] == pytest.approx(3223, rel=5e-3)
    assert answer["one_question"]["value"] == pytest.approx(254.2, rel=5e-3)
    assert answer["few_questions"] == pytest.approx({"value": answer["value"], "drawn": 1})
    assert answer["excess"] == pytest.approx(answer["value"] / answer["bound"] - 1)
    assert 0 < answer["excess"] < 0.1
    assert answer["joint_tables"] == []
    assert [entry["shown"] for entry in answer["questions"]] == pytest.approx([0.1] * 10)
    first, second, third = answer["notes"]
    assert "name the pairs (“Compare two questions”, or cross_tables in the file)" in first
    assert second == excess_in_words(answer["value"], answer["bound"])
    assert "is the same, within 0.5 %, as with the best method known" in third
    assert third.endswith("one question drawn at random.")


def test_a_gain_over_known_methods_is_stated() -> None:
    scores = {"choices": 5, "wanted": "mean", "scores": [0, 1, 2, 3, 4]}
    form = {"questions": [scores] * 5, "epsilon": "3"}
    answer, plan = asked(form), planned(form)
    few = answer["few_questions"]
    sentence = gain_in_words(answer["value"], few["value"], few["drawn"])
    assert answer["value"] < few["value"] * 0.995
    assert re.search(r"is [\d.]+ % lower than with the best", sentence)
    assert (answer["notes"][-1], plan["notes"]) == (sentence, [sentence])


@pytest.mark.parametrize("seconds", [60, 0.001])
def test_without_a_comparison_none_is_stated(seconds: float) -> None:
    """For joint tables better methods are known; and a search without time has no known value."""
    form = FORM if seconds == 60 else {"questions": [FIVE, MEAN], "epsilon": "3"}
    limits = {"limits": {"seconds": seconds}}
    body = parse_json(json.dumps({"form": form, **limits}).encode(), decimals=True)
    notes = design_json(body, time.monotonic)["notes"] + planned(form, **limits)["notes"]
    assert not any("known to us" in note for note in notes)
    assert any("The time ran out" in note for note in notes) == (seconds < 1)


def test_one_question_alone_is_compared_with_nothing() -> None:
    form = {"questions": [FIVE], "epsilon": "1"}
    assert not any("known to us" in note for note in asked(form)["notes"])
    assert planned(form)["notes"] == []


def test_a_question_is_drawn_as_often_as_its_part() -> None:
    answer = asked(FORM)
    mechanism = AgreementMechanism.from_params(answer["params"])
    for i, entry in enumerate(answer["questions"]):
        part = next(p for p, members in enumerate(mechanism.parts) if i in members)
        assert entry["shown"] == pytest.approx(float(chance_shown(mechanism, (part,))))


def test_joint_tables_have_full_rank() -> None:
    """The test computes in floats the rank of the law of two parts that are drawn together."""
    numpy = pytest.importorskip("numpy")
    answer = asked({"questions": [{"choices": 2}] * 4, "epsilon": "4"})
    mechanism = AgreementMechanism.from_params(answer["params"])
    assert answer["joint_tables"]
    for pair in answer["joint_tables"]:
        table = part_table(mechanism, tuple(pair))
        law = numpy.array([[float(w / table.total) for w in row] for row in table.weights])
        assert numpy.linalg.matrix_rank(law, tol=1e-9) == 4


def test_without_a_bound_no_excess_is_stated() -> None:
    answer = asked({"questions": [MEAN], "epsilon": "1"})
    if answer["bound"] is None:
        assert answer["excess"] is None
        assert answer["notes"] == []
    else:
        assert answer["excess"] >= -1e-9


def test_a_search_that_ran_out_of_time_is_marked() -> None:
    form = {"questions": [FIVE] * 3, "epsilon": "1"}
    read = parse_json(json.dumps({"form": form}).encode(), decimals=True)
    short, whole = design_json(read, stopped=lambda: True), asked(form)
    assert short["level"] == whole["level"]
    assert short["value"] >= whole["value"] * (1 - 1e-9)
    assert any("time ran out" in note for note in short["notes"])
    assert not any("time ran out" in note for note in whole["notes"])


def test_limits_are_read_as_those_of_any_design() -> None:
    error = refusal(InvalidInput, asked, FORM, limits={"seconds": 0})
    assert (error.code, error.field) == ("field_type", "limits.seconds")


Q = "form.questions[0]"
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no questions": ({"questions": []}, "field_type", "form.questions"),
    "101 questions": ({"questions": [{"choices": 2}] * 101}, "field_type", "form.questions"),
    "too many choices": ({"questions": [{"choices": 64}] * 32}, "field_type", "form.questions"),
    "questions left out": ({"questions": None}, "field_type", "form.questions"),
    "no level": ({"epsilon": None}, "field_missing", "form.epsilon"),
    "a level of 0": ({"epsilon": "0"}, "eps_out_of_range", "form.epsilon"),
    "a level of 50": ({"epsilon": "50"}, "eps_out_of_range", "form.epsilon"),
    "one choice": ({"questions": [{"choices": 1}]}, "choices_count", f"{Q}.choices"),
    "65 choices": ({"questions": [{"choices": 65}]}, "choices_count", f"{Q}.choices"),
    "choices as a word": ({"questions": [{"choices": "five"}]}, "choices_count", f"{Q}.choices"),
    "choices as true": ({"questions": [{"choices": True}]}, "choices_count", f"{Q}.choices"),
    "choices left out": ({"questions": [{}]}, "field_missing", f"{Q}.choices"),
    "a count of 0": ({"questions": [{"choices": [1, 0]}]}, "field_type", f"{Q}.choices"),
    "unknown target": ({"questions": [{**FIVE, "wanted": "median"}]}, "field_type", f"{Q}.wanted"),
    "a mean without scores": ({"questions": [{**FIVE, "wanted": "mean"}]}, "field_missing", f"{Q}.scores"),
    "a contrast without numbers": (
        {"questions": [{**FIVE, "wanted": "contrast"}]}, "field_missing", f"{Q}.contrast",
    ),
    "too few scores": ({"questions": [{**MEAN, "scores": [0, 1]}]}, "field_type", f"{Q}.scores"),
    "a score of a role": ({"questions": [{**MEAN, "roles": 1}]}, "field_type", f"{Q}.scores"),
    "three roles": ({"questions": [{**FIVE, "roles": 3}]}, "field_type", f"{Q}.roles"),
    "no answers": ({"questions": [{"choices": 2, "roles": 2}]}, "field_type", f"{Q}.roles"),
    "a distribution of one answer": (
        {"questions": [{"choices": 2, "roles": 1, "wanted": "distribution"}]}, "field_type", f"{Q}.roles",
    ),
    "equal scores": ({"questions": [{**MEAN, "scores": [1, 1.0, "1"]}]}, "field_type", f"{Q}.scores"),
    "scores for nothing": ({"questions": [{"choices": 2, "scores": [0, 1]}]}, "unsupported", f"{Q}.scores"),
    "no importance": ({"questions": [{**FIVE, "importance": 0}]}, "field_type", f"{Q}.importance"),
    "an unknown field": ({"questions": [{**FIVE, "colour": 1}]}, "field_unknown", f"{Q}.colour"),
    "a pair of one": ({"cross_tables": [[1, 1]]}, "field_type", "form.cross_tables[0]"),
    "an unknown question": ({"cross_tables": [[0, 7]]}, "field_type", "form.cross_tables[0]"),
    "a pair of three": ({"cross_tables": [[0, 1, 2]]}, "field_type", "form.cross_tables[0]"),
    "a pair twice": ({"cross_tables": [[0, 1], [1, 0]]}, "field_type", "form.cross_tables"),
    "a pair too large": (
        {"questions": [{"choices": 17}, {"choices": 16}], "cross_tables": [[0, 1]]},
        "field_type", "form.cross_tables[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_faults_name_their_field(name: str) -> None:
    changes, code, field = BAD[name]
    error = refusal(InvalidInput, asked, {**FORM, **changes})
    assert (error.code, error.field) == (code, field)
    assert len(error.detail) > 8


def test_fields_of_other_designs_are_refused_for_forms() -> None:
    error = refusal(InvalidInput, asked, FORM, prior={"joint": [[1, 1]]})
    assert (error.code, error.field) == ("field_unknown", "prior")
    assert error.detail == "this field does not belong to a form"


def test_no_value_is_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        asked({**FORM, "questions": [{"choices": "my-secret-number", "wanted": "my-secret-wish"}]})
    assert "secret" not in str(caught.value)
