# SPDX-License-Identifier: Apache-2.0
"""Wanted figures: refused, or estimated without bias and shown by name, for random survey files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_analyst.shown import Shown
from frankly_design.estimate.scales import DesignRows, Figure
from frankly_design.kinds.parts import PartTable, chance_shown, counted_blocks, estimated_blocks
from frankly_design.requests.design_form import FormQuestionFields
from frankly_design.tables.limits import Limits
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem
from frankly_protocol.questions import Question
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import estimates_json
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.drafting import Place, _form_question, draft_document, draft_part
from frankly_server.surveys.preview import stated_of, wanted_plan
from frankly_server.surveys.trial import expectations
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.sections import names_of, sections_of

from tests.frankly_protocol.samples import NOW
from tests.refusals import refusal

TYPES = ("single", "yes-no", "scale", "number", "multi")
WISHES = ("shares", "mean", "distribution", "contrast")


def file_of(seed: int) -> dict[str, Any]:
    """Return a random survey file with one form: every type, role, rule and wish; many are refused."""
    rng = Random(f"wanted {seed}")
    questions: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 3)):
        questions.append(_question(rng, f"q{number}", questions))
    return {
        "name": "asked",
        "title": {"en": "Asked"},
        "languages": ["en"],
        "budget": "6",
        "min_reports": 10,
        "form": {"questions": questions, "epsilon": rng.choice(("1", "2", "4"))},
    }


def _question(rng: Random, name: str, earlier: list[dict[str, Any]]) -> dict[str, Any]:
    kind, size = rng.choice(TYPES), rng.randint(2, 5)
    choices = [{"id": f"c{i}", "label": {"en": f"Choice {i}"}} for i in range(size)]
    asked: dict[str, Any] = {"id": name, "type": kind, "text": {"en": f"{name}?"}}
    if kind == "single":
        asked["choices"] = choices
    elif kind == "scale":
        # Scores need not increase, and may be equal.
        low = rng.choice((0, 0, -1, 100))
        scores = rng.choice((range(size), [rng.randint(-2, 3) for _ in choices]))
        asked["choices"] = [
            c | {"score": str(low + s)} for c, s in zip(choices, scores, strict=True)
        ]
    elif kind == "number":
        asked["ranges"] = [18 + 10 * i for i in range(size)]
    elif kind == "multi":
        asked["boxes"] = [{"id": f"b{i}", "label": {"en": f"Box {i}"}} for i in range(2)]
    for role in ("no_answer", "not_applicable"):
        if rng.random() < 0.35:
            asked[role] = True
    if earlier and rng.random() < 0.4 and "boxes" not in earlier[-1]:
        asked |= {"not_applicable": True, "ask_if": _rule(earlier[-1])}
    _wish(asked, size if kind in ("single", "scale", "number") else 2, rng)
    return asked


def _wish(asked: dict[str, Any], answers: int, rng: Random) -> None:
    """Add a wanted figure and perhaps expected counts. answers : number of choices without a role."""
    asked["wanted"] = rng.choice(WISHES)
    choices = answers + ("no_answer" in asked) + ("not_applicable" in asked)
    if asked["wanted"] == "mean" and asked["type"] == "single" and rng.random() < 0.8:
        asked["scores"] = [str(i) for i in range(answers)]
    if asked["wanted"] == "contrast":
        asked["contrast"] = [str(rng.randint(-1, 2)) for _ in range(choices)]
    if rng.random() < 0.3 and "boxes" not in asked:
        asked["expected"] = [rng.randint(1, 9) for _ in range(choices)]


def _rule(earlier: dict[str, Any]) -> dict[str, Any]:
    if "ranges" in earlier:
        first = earlier["ranges"][0]
        return {"question": earlier["id"], "choices": [f"{first}_{first + 9}"]}
    first = earlier["choices"][0]["id"] if "choices" in earlier else "yes"
    return {"question": earlier["id"], "choices": [first]}


def document_of(definition: SurveyDefinition, limits: Limits | None = None) -> SurveyDocument:
    """Return the document of a definition, by default found with a short search."""
    parts = [
        draft_part(definition, i, limits or Limits.within(0.3, _clock()))
        for i in range(len(definition.parts))
    ]
    place = Place("ab" * 16, 1, None, NOW, "https://ask.example/v1/surveys/x/reports")
    return draft_document(definition, parts, place)


def _clock() -> Any:
    """Return a clock that counts its calls, so that a search does not depend on the machine."""
    calls: Iterator[int] = iter(range(10**9))
    return lambda: next(calls) / 2_000


def shares_of(document: SurveyDocument, rng: Random) -> dict[str, list[Fraction]]:
    """Return random shares of the choices of every question."""
    shares = {}
    for asked in document.questions.values():
        numbers = [rng.randint(1, 20) for _ in asked.choices]
        shares[asked.id] = [Fraction(n, sum(numbers)) for n in numbers]
    return shares


def expected_reports(
    document: SurveyDocument, shares: Mapping[str, Sequence[Fraction]]
) -> Received:
    """Return reports in exactly the proportions of the law at these shares.

    For every part of the form, the count of a column is 10¹⁵·Σ_x p(x)·Q(column|x), rounded.
    """
    cells: dict[Key, CellCounts] = {}
    for position, block in enumerate(counted_blocks(document)):
        table = block.mechanism
        if not isinstance(table, PartTable):
            cells[(position,), "", ALL_TIME] = CellCounts(10**6, {})
            continue
        p = list(map(prod, product(*(shares[asked.id] for asked in block.questions))))
        tally: dict[tuple[int, ...], int] = {
            (y,): round(
                10**15
                * sum(x * row[y] for x, row in zip(p, table.weights, strict=True))
                / table.total
            )
            for y in range(table.reports)
        }
        cells[(position,), "", ALL_TIME] = CellCounts(sum(tally.values()), tally)
    return Received(document, cells, 1)


def default_view(received: Received) -> dict[str, dict[str, Any]]:
    """Return the questions of an estimates request without parameters, by id."""
    result = estimates_json("ab" * 16, [received], Request.from_json({}))
    return {question["id"]: question for question in result["questions"]}


def truths(asked: Question, wanted: str, p: list[Fraction]) -> dict[str, Fraction]:
    """Return the true wanted figures by name, from the definition in the guide."""
    answers = [i for i, choice in enumerate(asked.choices) if choice.role is None]
    answered = sum(p[i] for i in answers)
    if wanted == "shares":
        return {choice.id: share for choice, share in zip(asked.choices, p, strict=True)}
    if wanted == "contrast":
        assert asked.wanted is not None
        return {
            "contrast": sum(
                (c * s for c, s in zip(asked.wanted.numbers, p, strict=True)), Fraction(0)
            )
        }
    scores = [asked.choices[i].score for i in answers]
    if wanted == "mean":
        total = sum((s or 0) * p[i] for s, i in zip(scores, answers, strict=True))
        return {"mean": Fraction(total) / answered}
    lows = [asked.choices[i].low for i in answers]
    if lows[0] is not None:
        return {
            f"up to {after - 1}": sum(p[i] for i in answers[: k + 1]) / answered
            for k, after in enumerate(lows[1:])
            if after is not None
        }
    if scores[0] is not None:
        known = {i: score for i, score in zip(answers, scores, strict=True) if score is not None}
        return {
            f"up to {float(end):g}": sum(p[i] for i in answers if known[i] <= end) / answered
            for end in sorted(set(known.values()))[:-1]
        }
    return {
        f"up to {asked.choices[i].id}": sum(p[j] for j in answers[: k + 1]) / answered
        for k, i in enumerate(answers[:-1])
    }


def require_wanted(seed: int) -> str:
    """Fail unless every wanted figure of a file is refused or estimated; return which."""
    file = file_of(seed)
    try:
        definition = parse_value(file)
    except InvalidInput as refused:
        assert refused.field is not None
        assert refused.field.startswith("form.questions["), refused
        return f"refused {refused.field.rpartition('.')[2]}"
    document = document_of(definition)
    shares = shares_of(document, Random(seed))
    found = default_view(expected_reports(document, shares))
    assert definition.form is not None
    for item in definition.form.items:
        question, wanted = document.questions[item.id], item.question.wanted
        rows = {row["choice"]: row for row in found[item.id]["rows"]}
        assert found[item.id]["status"] == "ok"
        expected = truths(question, wanted, shares[item.id])
        assert [name for name in rows if name != "median"] == list(expected), (seed, item.id)
        for name, value in expected.items():
            scale = max(1, abs(float(value)))
            assert rows[name]["estimate"] == pytest.approx(float(value), abs=1e-9 * scale), (
                seed,
                name,
            )
            assert np.isfinite(rows[name]["se"]), (seed, name)
            assert "not_identifiable" not in rows[name]["flags"]
    return "estimated"


@pytest.mark.slow
def test_every_wanted_figure_is_refused_or_estimated(
    full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--full tests 500 files."""
    # The bound takes a third of a design's time, and is no figure.
    monkeypatch.setattr("frankly_design.form.engine.lower_bound", lambda *_: 0.0)
    outcomes = [require_wanted(seed) for seed in range(500 if full else 40)]
    assert outcomes.count("estimated") >= len(outcomes) / 3
    assert set(outcomes) >= {"estimated", "refused scores", "refused boxes"}


def _numerator_alone(figures: Sequence[Figure], _: Sequence[int]) -> DesignRows:
    """Return the design's rows as if a choice with a role had the score 0 and nothing else mattered."""
    return DesignRows(tuple(figure.weights for figure in figures) or None, ())


def test_a_design_for_the_numerator_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The design may then merge a choice of score 0 with the one of the role; it is not published."""
    monkeypatch.setattr("frankly_server.surveys.drafting.DesignRows.of", _numerator_alone)
    refused = [
        refusal(InvalidInput, test_a_mean_from_zero_is_that_of_the_people_who_answered, case)
        for case in CASES
    ]
    assert {(one.problem, one.field) for one in refused} == {
        (Problem.NOT_IDENTIFIABLE, "form.questions")
    }
    # Without that check, the figure has a row without a number.
    monkeypatch.setattr("frankly_server.surveys.drafting._require_estimable", lambda _: None)
    for case in CASES:
        with pytest.raises(AssertionError, match="not_identifiable"):
            test_a_mean_from_zero_is_that_of_the_people_who_answered(case)


def scale(labels: Sequence[str], **fields: Any) -> dict[str, Any]:
    """Return a question with a wanted mean and the scores 0, 1, 2, … ."""
    choices = [{"id": c, "label": {"en": c}, "score": str(i)} for i, c in enumerate(labels)]
    return {"type": "scale", "wanted": "mean", "text": {"en": "?"}, "choices": choices, **fields}


# Questions, shares of the scale's choices, and the right mean of the people who answered it.
CASES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], Fraction]] = {
    "prefer not to say": (
        [scale(("never", "some", "most", "always"), id="asked", no_answer=True)],
        ("1/4", "0", "1/4", "1/4", "1/4"),
        Fraction(5, 3),
    ),
    "does not apply": (
        [
            {"id": "smokes", "type": "yes-no", "text": {"en": "Do you smoke?"}},
            scale(("easy", "mixed", "hard"), id="asked", not_applicable=True,
                  ask_if={"question": "smokes", "choices": ["yes"]}),
        ],
        ("0", "1/4", "1/4", "1/2"),
        Fraction(3, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_mean_from_zero_is_that_of_the_people_who_answered(case: str) -> None:
    questions, p, mean = CASES[case]
    file = file_of(0) | {"form": {"questions": questions}, "budget": "4"}
    document = document_of(parse_value(file))
    shares = {"smokes": [Fraction(1, 2)] * 2, "asked": list(map(Fraction, p))}
    question = default_view(expected_reports(document, shares))["asked"]
    (row,) = question["rows"]
    assert (question["status"], row["choice"], row["unit"]) == ("ok", "mean", "number")
    assert row["estimate"] == pytest.approx(float(mean), abs=1e-9)


@pytest.mark.slow
def test_margins_before_the_survey_are_those_of_its_estimates() -> None:
    """At the expected shares, the margin of every figure is that of the estimates' standard error."""
    joint = [scores("0", "1", "4", no_answer=True), PLAIN]
    files = [file_of(seed) for seed in range(12)]
    files.append(file_with(*joint) | {"form": {"questions": joint, "cross_tables": [["a", "b"]]}})
    compared = 0
    for file in files:
        try:
            definition = parse_value(file)
        except InvalidInput:
            continue
        document = document_of(definition)
        assert definition.form is not None
        shares = {
            item.id: [Fraction(n, sum(item.expected)) for n in item.expected]
            for item in definition.form.items
        }
        found = default_view(expected_reports(document, shares))
        for stated in stated_of(document):
            if len(stated.questions) > 1:
                continue
            (name,) = (question.id for question in stated.questions)
            wanted = wanted_plan(stated)
            p = list(map(prod, product(*(shares[q.id] for q in stated.block.questions))))
            assert wanted.plan is not None
            at = wanted.plan.margins_at(np.array(p, dtype=float), 1)
            margins = [(wanted.span or 1) * margin for margin in at]
            rows = [row for row in found[name]["rows"] if row["choice"] != "median"]
            errors = [1.959964 * row["se"] * row["n"] ** 0.5 for row in rows]
            assert margins == pytest.approx(errors, rel=1e-5), (file, name)
            assert max(margins) <= (wanted.span or 1) * wanted.plan.margin(1) * (1 + 1e-9)
            assert {row["unit"] for row in rows} == {"share" if wanted.span is None else "number"}
            compared += wanted.figure != "shares"
    assert compared >= 6


@pytest.mark.parametrize("is_joint", [True, False])
def test_every_wanted_figure_and_table_is_stated(is_joint: bool) -> None:
    """A form designs few wanted pairs as one part each, and many as parts that are drawn together."""
    questions = [
        scores("0", "1", "2", no_answer=is_joint),
        *(PLAIN | {"id": name} for name in "bcd"),
    ]
    pairs = [["a", "b"]] if is_joint else [list(pair) for pair in combinations("abcd", 2)]
    form = {"questions": questions, "cross_tables": pairs}
    definition = parse_value(file_with() | {"form": form})
    document, rows = expectations(definition, NOW, "https://ask.example")
    mechanism = document.blocks[0].mechanism
    assert isinstance(mechanism, AgreementMechanism)
    assert ((0, 1) in mechanism.parts) == is_joint
    stated = [(row.text, row.figure) for row in rows]
    for one in (("A?", "mean"), *[("B?", "shares")] * 3, ("A? × B?", "shares")):
        assert one in stated
    assert len(stated) == len(questions) + len(pairs)
    assert all(margin is not None for row in rows for margin in row.margins)


def test_requests_and_survey_files_mean_the_same() -> None:
    """`frankly design` and `frankly plan` get the same rows from a form as publishing does."""
    compared = 0
    for seed in range(120):
        try:
            definition = parse_value(file_of(seed))
        except InvalidInput:
            continue
        assert definition.form is not None
        for item in definition.form.items:
            wanted, answers = item.question.wanted, [c for c in item.choices if c.role is None]
            scores = [Fraction(c.score) for c in answers if c.score is not None]
            # Requests have no numbers of choices: the order of the choices is that of the distribution.
            if wanted == "distribution" and scores and scores != sorted(set(scores)):
                continue
            asked = {
                "choices": list(item.expected),
                "roles": len(item.choices) - len(answers),
                "wanted": wanted,
                "importance": item.question.importance,
            }
            asked |= {"scores": [str(score) for score in scores]} if wanted == "mean" else {}
            asked |= (
                {"contrast": list(item.question.contrast or ())} if wanted == "contrast" else {}
            )
            assert FormQuestionFields.model_validate(asked).question == _form_question(item), (
                seed,
                item.id,
            )
            compared += wanted != "shares"
    assert compared >= 40


def test_a_design_for_a_mean_is_the_best_for_it() -> None:
    """The standard error of the mean of the people who answered, at the expected shares."""
    errors = {}
    for wanted in ("mean", "distribution", "shares"):
        asked = scale("12345", no_answer=True, expected=[19] * 5 + [5]) | {"wanted": wanted}
        form = {"questions": [asked | {"id": "a"}, asked | {"id": "b"}]}
        document = document_of(parse_value(file_of(0) | {"form": form, "budget": "2"}), Limits())
        shares = {name: [Fraction(19, 100)] * 5 + [Fraction(5, 100)] for name in "ab"}
        received = expected_reports(document, shares)
        result = estimates_json("ab" * 16, [received], Request.from_json({"targets": "scales"}))
        row = next(row for row in result["questions"][0]["rows"] if row["choice"] == "mean")
        # Of one report on the form, which need not be about the question.
        (share, *_) = [float(share) for _, share in estimated_blocks(document)]
        errors[wanted] = row["se"] * (row["n"] / share) ** 0.5
    assert errors["mean"] < 0.95 * errors["distribution"] < errors["shares"]


def scores(*numbers: str, **fields: Any) -> dict[str, Any]:
    """Return a question with a wanted mean of these scores."""
    choices = [
        {"id": f"c{i}", "label": {"en": f"c{i}"}, "score": number}
        for i, number in enumerate(numbers)
    ]
    return {
        "id": "a",
        "type": "scale",
        "text": {"en": "A?"},
        "choices": choices,
        "wanted": "mean",
        **fields,
    }


def file_with(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return file_of(0) | {"form": {"questions": list(questions)}, "budget": "2"} | fields


PLAIN = {"id": "b", "type": "yes-no", "text": {"en": "B?"}}


@pytest.mark.parametrize("role", [False, True])
def test_the_unit_of_the_scores_changes_no_design(role: bool) -> None:
    """Income in thousands, in cents, or counted from another zero."""
    mechanisms = []
    for numbers in (("0", "1", "3"), ("0", "100000", "300000"), ("100000", "100001", "100003")):
        asked = scores(*numbers, no_answer=role)
        (block,) = document_of(parse_value(file_with(asked, PLAIN)), Limits()).blocks
        assert isinstance(block.mechanism, AgreementMechanism)
        mechanisms.append(block.mechanism)
    chances = [[float(chance_shown(m, (part,))) for part in (0, 1)] for m in mechanisms]
    for other in chances[1:]:
        assert other == pytest.approx(chances[0], rel=1e-3)


def test_margins_are_in_the_range_of_the_answers() -> None:
    """The 0 of a choice with a role is no score."""
    spans = []
    for numbers in (("0", "1", "2"), ("100", "101", "102"), ("-3", "-2", "-1")):
        document = document_of(parse_value(file_with(scores(*numbers, no_answer=True))))
        (stated,) = stated_of(document)
        spans.append(wanted_plan(stated).span)
    assert spans == [2.0] * 3


def _versions(*questions: dict[str, Any]) -> list[Received]:
    """Return the exactly expected reports of versions with one question each, at random shares."""
    found: list[Received] = []
    for number, asked in enumerate(questions):
        document = document_of(parse_value(file_with(asked)), Limits())
        if found:
            document = replace(document, version=number + 1, prev=found[-1].document.digest)
        found.append(expected_reports(document, shares_of(document, Random(number))))
    return found


def test_a_version_that_cannot_estimate_the_new_figure_is_left_out() -> None:
    """The first version merges the choices of equal scores, the second needs them apart."""
    received = _versions(scores("0", "0", "1", "1"), scores("0", "1", "2", "5"))
    result = estimates_json("ab" * 16, received, Request.from_json({}))
    (question,) = result["questions"]
    ((row,), second) = question["rows"], received[1]
    assert question["documents"] == [second.document.digest]
    p = shares_of(second.document, Random(1))["a"]
    assert row["estimate"] == pytest.approx(float(p[1] + 2 * p[2] + 5 * p[3]), abs=1e-9)
    # Each version by itself has a row, the first one without a number.
    by = estimates_json("ab" * 16, received, Request.from_json({"by": "version"}))["questions"]
    assert [(one["by"], one["status"]) for one in by] == [
        ({"version": "1"}, "not_identifiable"),
        ({"version": "2"}, "ok"),
    ]


def test_the_page_shows_each_version_its_own_figure() -> None:
    received = _versions(scores("0", "1", "2"), scores("0", "1", "2", "10"))
    answers = [
        estimates_json("ab" * 16, received, Request.from_json({"targets": targets}))
        for targets in ("shares", "scales", "wanted")
    ]
    names = names_of([one.document for one in received])
    shown = {
        len(group.rows): (group.wanted[0]["estimate"], group.sentences.findings[0])
        for section in sections_of(answers[0], Asked(), names, *answers[1:])
        for group in section.groups
    }
    for size, one in ((3, received[0]), (4, received[1])):
        p, numbers = shares_of(one.document, Random(size - 3))["a"], (0, 1, 2, 10)
        mean = float(sum(n * share for n, share in zip(numbers, p, strict=False)))
        assert shown[size][0] == pytest.approx(mean, abs=1e-9)
        stated = re.search(r": ([\d.]+) \(", shown[size][1])
        assert stated
        assert float(stated[1]) == pytest.approx(mean, abs=1e-5)


def test_groups_of_a_scale_are_shown_and_compared_by_their_means() -> None:
    """Two versions whose scales end at 2 and at 10: a mean is cut to what is possible in some version only."""
    received = _versions(scores("0", "1", "2"), scores("5", "7", "10"))
    fields = {"by": "version", "compare": "all"}
    answers = [
        estimates_json("ab" * 16, received, Request.from_json({**fields, "targets": targets}))
        for targets in ("shares", "scales")
    ]
    names = names_of([one.document for one in received])
    asked = Asked(by="version")
    (section,) = sections_of(answers[0], asked, names, answers[1])
    means = section.of_means()
    rows = [one["rows"][0] for one in answers[1]["questions"]]
    assert [row["choice"] for row in rows] == ["mean", "mean"]
    assert [row.estimate for row in means.figures] == [row["estimate"] for row in rows]
    assert rows[1]["estimate"] > 2
    chart = means.chart()
    assert chart is not None
    for row in rows:
        shown = Shown.of(row["estimate"], row["low"], row["high"], "number", (0.0, 10.0))
        assert f"{shown.text}, from {shown.ends}" in chart
    # The numbers of both scales are on the axis, and what is downloaded is what is drawn.
    assert re.findall(r'middle"[^>]*>([^<]*)<', chart)[-1] == "10"
    assert [one["rows"] for one in means.found] == [[row] for row in rows]
    (difference,) = [
        row
        for entry in answers[1]["comparisons"]
        for row in entry["rows"]
        if row["choice"] == "mean"
    ]
    assert difference["low_all"] > 0
    ends = Shown.of(
        difference["low_all"], difference["low_all"], difference["high_all"], "number"
    ).ends
    assert means.differences.short == (
        f"The mean is higher in “version 2” than in “version 1”, by {ends}.",
    )
    assert (
        sections_of(answers[0], asked, names)[0].of_means()
        == sections_of(answers[0], asked, names)[0]
    )
