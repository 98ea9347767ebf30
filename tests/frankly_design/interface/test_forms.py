# SPDX-License-Identifier: Apache-2.0
"""Forms from Python: designs of JSON, exact samples, and unbiased estimates by enumeration."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import frankly_design as fd
import numpy as np
import pytest
from frankly_design.requests.design import design_json
from frankly_design.requests.design_form import FormFields, FormQuestionFields
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from tests.frankly_design.interface.given import anything, read
from tests.refusals import refusal

REQUEST: dict[str, Any] = {
    "form": {
        "questions": [
            {"choices": [3, 2], "wanted": "contrast", "contrast": [1, -1], "importance": 2.5},
            {"choices": 3, "wanted": "mean", "scores": [1, 3.5], "roles": 1},
        ],
        "epsilon": "2",
        "cross_tables": [[0, 1]],
    },
    "limits": {"seconds": 60, "gap": 0.001},
}
QUESTIONS = (
    fd.Question(
        anything(np.array([3, 2])),
        "contrast",
        contrast=anything(np.array([1.0, -1.0])),
        importance=2.5,
    ),
    fd.Question(3, "mean", scores=(1, 3.5), roles=1),
)
PAIR = fd.design_form([fd.Question(2), fd.Question(3)], "1.5", cross_tables=[(0, 1)])


@pytest.mark.slow
def test_a_form_is_that_of_json() -> None:
    response = design_json(read(REQUEST))
    form = fd.design_form(
        QUESTIONS,
        2,
        cross_tables=((0, 1),),
        timer=lambda: 0.0,
        limits={"seconds": 60, "gap": Fraction(1, 1000)},
    )
    assert form.mechanism.kind == response["kind"]
    assert form.mechanism.params_json() == response["params"]
    assert [form.mechanism.agree, form.mechanism.disagree] == response["level"]
    assert (form.value, form.bound or None) == (response["value"], response["bound"])
    assert list(form.variances) == [entry["variance"] for entry in response["questions"]]
    assert [form.shown(i) for i in range(2)] == [entry["shown"] for entry in response["questions"]]
    assert list(form.pair_variances) == [entry["variance"] for entry in response["cross_tables"]]
    assert form.shown(0, 1) == response["cross_tables"][0]["shown"]


def test_the_request_has_every_field() -> None:
    form = REQUEST["form"]
    assert set(form) == set(FormFields.model_fields)
    assert {name for question in form["questions"] for name in question} == set(
        FormQuestionFields.model_fields
    )
    assert set(FormQuestionFields.model_fields) == set(fd.Question.__dataclass_fields__)


def test_a_form_prints_a_line_for_each_question() -> None:
    head, *lines = repr(PAIR).splitlines()
    assert head.split("  ")[0] == "question"
    assert [line.split()[:3] for line in lines] == [
        [str(i), str(choices), f"{variance:.4g}"]
        for i, (choices, variance) in enumerate(zip((2, 3), PAIR.variances, strict=True))
    ]
    assert lines[0].endswith(f"{PAIR.shown(0):.1%}")


def law_of(
    mechanism: AgreementMechanism, shares: dict[tuple[int, ...], Fraction]
) -> dict[Any, Fraction]:
    """Return the law of reports from the law of the joint answers, by enumeration."""
    law = {
        y: sum((p * mechanism.probability(y, x) for x, p in shares.items()), Fraction(0))
        for y in mechanism.symbols()
    }
    assert sum(law.values()) == 1
    return law


def mean_of_single_reports(
    form: fd.Form, law: dict[Any, Fraction], questions: Sequence[int]
) -> tuple[list[Any], list[float], Fraction]:
    """Return labels, Σ P(y | used)·estimate from y alone, and the chance that a report is used.

    Estimates are means over the reports that are used, so this is what exactly expected counts give.
    """
    total: dict[Any, float] = {}
    used = Fraction(0)
    for y, chance in law.items():
        found = form.estimate([y], *questions)
        if found.n:
            used += chance
            for label, value in zip(found.labels, found.shares, strict=True):
                total[label] = total.get(label, 0.0) + float(chance) * float(value)
    return list(total), [value / float(used) for value in total.values()], used


JOINT_SHARES: dict[tuple[int, ...], Fraction] = {
    x: Fraction(n, 24)
    for x, n in zip(product(range(2), range(3)), (1, 2, 3, 8, 10, 0), strict=True)
}


def marginal(
    shares: dict[tuple[int, ...], Fraction], questions: Sequence[int]
) -> dict[tuple[int, ...], Fraction]:
    sums: dict[tuple[int, ...], Fraction] = {}
    for x, p in shares.items():
        key = tuple(x[q] for q in questions)
        sums[key] = sums.get(key, Fraction(0)) + p
    return sums


GROUPED = fd.design_form([fd.Question(2), fd.Question(3), fd.Question(2)], 2, cross_tables=[(0, 1)])
GROUPED_SHARES: dict[tuple[int, ...], Fraction] = {
    x: Fraction(n, 78)
    for x, n in zip(product(range(2), range(3), range(2)), range(1, 13), strict=True)
}
EXPECTED: list[tuple[str, fd.Form, dict[tuple[int, ...], Fraction], tuple[int, ...]]] = [
    ("first, shown together", PAIR, JOINT_SHARES, (0,)),
    ("second, shown together", PAIR, JOINT_SHARES, (1,)),
    ("both, shown together", PAIR, JOINT_SHARES, (0, 1)),
    ("both in the other order", PAIR, JOINT_SHARES, (1, 0)),
    ("a margin of a part", GROUPED, GROUPED_SHARES, (0,)),
    ("the other margin", GROUPED, GROUPED_SHARES, (1,)),
    ("beside the part", GROUPED, GROUPED_SHARES, (2,)),
    ("a part", GROUPED, GROUPED_SHARES, (0, 1)),
    ("a part in the other order", GROUPED, GROUPED_SHARES, (1, 0)),
]


def test_one_form_has_a_part_of_two_questions() -> None:
    assert set(GROUPED.mechanism.parts) == {(0, 1), (2,)}
    assert set(PAIR.mechanism.parts) == {(0,), (1,)}


@pytest.mark.parametrize(
    ("form", "shares", "questions"), [case[1:] for case in EXPECTED], ids=[c[0] for c in EXPECTED]
)
def test_expected_counts_give_the_shares_exactly(
    form: fd.Form, shares: dict[tuple[int, ...], Fraction], questions: tuple[int, ...]
) -> None:
    """The labels of several questions are in the order that was asked."""
    labels, means, used = mean_of_single_reports(form, law_of(form.mechanism, shares), questions)
    expected = marginal(shares, questions)
    keys = [(label,) if len(questions) == 1 else label for label in labels]
    assert sorted(keys) == sorted(expected)
    assert labels == sorted(labels)
    assert means == pytest.approx([float(expected[key]) for key in keys], abs=1e-12)
    assert float(used) == pytest.approx(form.shown(*questions), rel=1e-12)


def test_questions_in_separate_parts_are_estimated_from_the_reports_that_show_them() -> None:
    form = fd.design_form([fd.Question(3), fd.Question(2)], 1)
    shares: dict[tuple[int, ...], Fraction] = {
        x: Fraction(n, 21) for x, n in zip(product(range(3), range(2)), range(1, 7), strict=True)
    }
    law = law_of(form.mechanism, shares)
    for question in (0, 1):
        labels, means, used = mean_of_single_reports(form, law, (question,))
        expected = marginal(shares, (question,))
        assert means == pytest.approx([float(expected[(label,)]) for label in labels], abs=1e-12)
        assert float(used) == pytest.approx(form.shown(question), rel=1e-12)
        assert 0 < used < 1
    error = refusal(InvalidInput, form.estimate, [], 0, 1)
    assert error.code == "not_identifiable"


def test_an_estimate_of_many_reports_is_the_mean_of_their_own() -> None:
    reports = list(PAIR.mechanism.symbols())[::2] * 2
    alone = [PAIR.estimate([y], 0, 1).shares for y in reports]
    used = [shares for shares in alone if not np.isnan(shares).any()]
    together = PAIR.estimate(reports, 0, 1, confidence_level=0.8, population=1000)
    assert together.n == len(used)
    assert together.confidence_level == 0.8
    assert together.shares == pytest.approx(np.mean(used, axis=0), abs=1e-12)
    assert together.labels == tuple(product(range(2), range(3)))


def test_a_sample_is_drawn_for_each_person_from_the_own_answers() -> None:
    drawn: list[tuple[int, ...]] = []

    class Recorder:
        choices = (2, 3)

        def sample(self, truth: tuple[int, ...]) -> tuple[int, ...]:
            drawn.append(truth)
            return (len(drawn),)

    form = fd.Form(PAIR._designed)
    form.mechanism = Recorder()  # type: ignore[assignment]
    assert form.sample(np.array([[1, 2], [0, 0]])) == [(1,), (2,)]
    assert form.sample(iter([(0, 1)])) == [(3,)]
    assert drawn == [(1, 2), (0, 0), (0, 1)]
    assert all(type(x) is int for truth in drawn for x in truth)


BAD_ANSWERS = [
    ("too large", [[1, 3]]), ("negative", [[-1, 0]]), ("one missing", [[1]]), ("one too many", [[1, 2, 0]]),
    ("true", [[True, 0]]), ("text", [["77", 0]]), ("halves", [[0.5, 0]]), ("second person", [[0, 0], [0, 9]]),
    ("nothing", [[]]),
]  # fmt: skip


@pytest.mark.parametrize(
    "answers", [case[1] for case in BAD_ANSWERS], ids=[case[0] for case in BAD_ANSWERS]
)
def test_answers_that_are_no_choices_are_refused_without_repeating_them(answers: Any) -> None:
    error = refusal(InvalidInput, PAIR.sample, answers)
    assert (error.code, error.field) == ("field_type", "answers")
    assert error.detail == "give one choice of each of 2 questions"


Q = fd.Question
BAD: list[tuple[str, Any, Any, dict[str, Any], str, str, str]] = [
    ("no questions", [], 1, {}, "field_type", "form.questions", "1 to"),
    ("one choice", [Q(1)], 1, {}, "choices_count", "form.questions[0].choices", "2 to 64"),
    ("choices in words", [Q(anything("two"))], 1, {}, "choices_count", "form.questions[0].choices", "2 to 64"),

    ("a count of zero", [Q([0, 3])], 1, {}, "field_type", "form.questions[0].choices", "1"),
    ("wanted", [Q(2, "median")], 1, {}, "field_type", "form.questions[0].wanted", "mean"),
    ("no scores", [Q(2), Q(3, "mean")], 1, {}, "field_missing", "form.questions[1].scores", "one number"),
    ("scores of shares", [Q(2, scores=[0, 1])], 1, {}, "unsupported", "form.questions[0].scores", "mean"),
    ("scores of another width", [Q(3, "mean", scores=[0, 1])], 1, {}, "field_type", "form.questions[0].scores", "3"),
    ("nan score", [Q(2, "mean", scores=[0, float("nan")])], 1, {}, "field_type", "scores", "nan"),
    ("equal contrast", [Q(2, "contrast", contrast=[1, 1])], 1, {}, "field_type", "form.questions[0].contrast", "equal"),
    ("importance", [Q(2, importance=0)], 1, {}, "field_type", "form.questions[0].importance", "above 0"),
    ("roles", [Q(2, roles=3)], 1, {}, "field_type", "form.questions[0].roles", "2"),
    ("level of zero", [Q(2)], 0, {}, "eps_out_of_range", "form.epsilon", "0.01"),
    ("level of nan", [Q(2)], float("nan"), {}, "field_type", "form.epsilon", "nan"),
    ("level in words", [Q(2)], "high", {}, "eps_format", "form.epsilon", "decimal"),
    ("pair beyond the questions", [Q(2), Q(2)], 1, {"cross_tables": [(0, 2)]}, "field_type", "form.cross_tables[0]",
     ""),
    ("limit", [Q(2)], 1, {"limits": {"nodes": 1}}, "field_unknown", "limits.nodes", "not known"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("questions", "epsilon", "options", "code", "field", "said"),
    [case[1:] for case in BAD],
    ids=[case[0] for case in BAD],
)
def test_bad_forms(
    questions: Any, epsilon: Any, options: dict[str, Any], code: str, field: str, said: str
) -> None:
    error = refusal(InvalidInput, fd.design_form, questions, epsilon, **options)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


BAD_QUESTIONS = [
    ("none", ()),
    ("beyond", (5,)),
    ("negative", (-1,)),
    ("twice", (0, 0)),
    ("text", ("a",)),
]


@pytest.mark.parametrize(
    "questions", [row[1] for row in BAD_QUESTIONS], ids=[r[0] for r in BAD_QUESTIONS]
)
def test_questions_are_named_by_their_positions(questions: Any) -> None:
    for error in (
        refusal(InvalidInput, PAIR.estimate, [], *questions),
        refusal(InvalidInput, PAIR.shown, *questions),
    ):
        assert (error.code, error.field) == ("field_type", "questions")


@pytest.mark.parametrize("report", [(), 5, (99, 99), (-1, 0, 0), (0, 0, 0, 0, 0, 0)])
def test_reports_that_no_device_sends_are_refused(report: Any) -> None:
    assert refusal(InvalidInput, PAIR.estimate, [report], 0).field == "reports"
