# SPDX-License-Identifier: Apache-2.0
"""Ways of answering (spec 3.5): the browser SDK settles and refuses answers as the Python SDK does."""

import copy
import json
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.errors import FranklyError
from frankly_protocol.questions import Question
from frankly_sdk import UnknownChoice
from frankly_sdk.answer import Answer
from playwright.sync_api import Page

from tests.browser.sdk.test_same_as_python import judged_by_browser, mutate_at, places, verdict
from tests.browser.sdk.wire import ASKED, Wire, settle
from tests.frankly_protocol.asked import (
    AGE,
    DRUGS,
    OTHERS,
    QUESTIONS,
    REPEATED,
    SETTLED,
    SIGNS,
    UNSETTLED,
    WORK,
    form,
)
from tests.frankly_protocol.samples import NOW, put, question, sealed, survey

Verdict = list[str | None] | None


NAMES = [f"c{i}" for i in range(64)]
AGE_AT, STRESS_AT = "blocks.0.questions.0.choices.", "blocks.0.questions.2."
WORK_AT = "blocks.0.questions.1.wanted.numbers"
ANCHOR_AT = "blocks.0.questions.1.anchor."
EDGES: list[tuple[str, Any, Any]] = [
    (STRESS_AT + "ask_if.choices", NAMES[:63], NAMES),
    (AGE_AT + "0.from", 1 - 2**53, -(2**53)),
    (AGE_AT + "2.from", 2**53 - 1, 31.0),
    (STRESS_AT + "choices.0.score", "-999999999.999999", "-1000000000"),
    (STRESS_AT + "choices.0.score", "0.000001", "0.0000001"),
    (WORK_AT, ["-999999999.999999", "0.000001"], ["-1000000000", "0.000001"]),
    (WORK_AT, ["0"] * 1000, ["0"] * 1001),  # too many for the question, too many for any question
    (ANCHOR_AT + "counts", [0, 2**53 - 1], [0, 2**53]),
    (ANCHOR_AT + "counts", [0, 1], [0, 0]),
    (ANCHOR_AT[:-1], {"repeats": "a" * 64}, {"repeats": "a" * 65}),
    (ANCHOR_AT + "source", "\U0001f600" * 4000, "\U0001f600" * 4001),
]


@pytest.mark.parametrize(("path", "last", "beyond"), EDGES)
def test_limits_equal_those_of_python(page: Page, path: str, last: Any, beyond: Any) -> None:
    envelopes = []
    for value in (last, beyond):
        body = json.loads(ASKED.payload())
        put(path, value)(body)
        text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        envelopes.append(sealed(text.encode()))
    expected = [verdict(envelope) for envelope in envelopes]
    assert expected[1] is not None
    assert expected[0] != expected[1]
    assert judged_by_browser(page, envelopes) == expected


def with_questions(*questions: Question) -> dict[str, Any]:
    """Return the body of a survey with these questions, valid or not."""
    plain = (question(f"q{i}", *(c.id for c in one.choices)) for i, one in enumerate(questions))
    body: dict[str, Any] = json.loads(survey(form(*plain)).payload())
    body["blocks"][0]["questions"] = [one.to_json() for one in questions]
    return body


def test_boxes_must_be_adjacent_and_public_questions_plain(page: Page) -> None:
    bodies = [with_questions(*questions) for questions, _ in OTHERS]
    expected: list[Verdict] = [["document_schema", field] for _, field in OTHERS]
    for public in (AGE, WORK, DRUGS[0], QUESTIONS[2], SIGNS[0]):
        body = json.loads(ASKED.payload())
        body["strata"] = [json.loads(json.dumps(public.to_json()).replace("drugs", "other"))]
        bodies.append(body)
        expected.append(["document_schema", "strata[0]"])
    envelopes = [sealed(canonical.dumps(body)) for body in bodies]
    assert [verdict(envelope) for envelope in envelopes] == expected
    assert judged_by_browser(page, envelopes) == expected


def test_repeated_questions_get_the_same_verdict_from_both_sdks(page: Page) -> None:
    envelopes = [sealed(canonical.dumps(with_questions(*asked))) for asked, _ in REPEATED]
    expected = [field and ["document_schema", field] for _, field in REPEATED]
    assert [verdict(envelope) for envelope in envelopes] == expected
    assert judged_by_browser(page, envelopes) == expected


SWAPS = (
    "no_answer", "not_applicable", "yes", "no", "work", "stress", "signs", "drugs", "signs-pain", "signs-sleep",
    "signs-", "1", "-1", "0.5", "-0", "1.50", "-0.000001", "1234567890", ".5",
    "mean", "distribution", "contrast", {"figure": "mean"}, ["1", "0"],
    {"counts": [1, 1], "source": "x"}, [0, 0], [1, 2, 3], {"repeats": "work"}, {"repeats": "age"}, "age",
    -1, 0, 18, 60, 2**53 - 1, 1 - 2**53, -(2**53), True, None,
)  # fmt: skip


_PARTS = [one.to_json() for one in QUESTIONS]
PARTS: tuple[list[Any], ...] = (
    _PARTS,
    [one["ask_if"] for one in _PARTS if "ask_if" in one],
    [one["box"] for one in _PARTS if "box" in one],
    [one["wanted"] for one in _PARTS if "wanted" in one],
    [one["anchor"] for one in _PARTS if "anchor" in one],
    [choice for one in _PARTS for choice in one["choices"]],
)
"""Parts of questions that can be copied into another question."""


def bent(random: Random) -> bytes:
    """Return the survey with every way of answering, with one or two questions changed."""
    body = json.loads(ASKED.payload())
    questions = body["blocks"][0]["questions"]
    for _ in range(random.choice([1, 1, 2])):
        *path, last = random.choice([place for place in places(questions) if place])
        parent: Any = questions
        for key in path:
            parent = parent[key]
        if random.random() < 0.5:
            parent[last] = random.choice(SWAPS)
        elif random.random() < 0.3:
            parent[last] = copy.deepcopy(random.choice(random.choice(PARTS)))
        else:
            mutate_at(parent, last, random)
    try:
        return canonical.dumps(body)
    except FranklyError:
        return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def test_bent_questions_get_the_same_verdict_from_both_sdks(page: Page, full: bool) -> None:
    random = Random(21)
    envelopes = [sealed(bent(random)) for _ in range(10_000 if full else 500)]
    expected = [verdict(envelope) for envelope in envelopes]
    fields = {one[1] for one in expected if one}
    assert None in expected
    assert len(fields) > 50
    assert {"signs", "stress"} <= fields
    by_browser = judged_by_browser(page, envelopes)
    pairs = zip(envelopes, expected, by_browser, strict=True)
    assert [pair[1:] for pair in pairs if pair[1] != pair[2]] == []


def test_answers_are_settled_as_in_python(page: Page) -> None:
    for (_, choices), settled in zip(
        SETTLED, settle(page, [one for one, _ in SETTLED]), strict=True
    ):
        expected = dict(zip((one.id for one in QUESTIONS), choices, strict=True))
        assert settled == {"chosen": expected, "again": expected}


def test_unsettled_answers_are_refused_as_in_python_and_not_repeated(page: Page) -> None:
    refused = settle(page, [given for given, _ in UNSETTLED])
    for (given, field), error in zip(UNSETTLED, refused, strict=True):
        python = Answer(given).settled(ASKED.questions)
        assert isinstance(python, UnknownChoice)
        assert (error["code"], error["field"]) == (python.code, field)
        assert tuple(error["valid"]) == tuple(python.valid)
        assert "canary" not in error["message"]
        assert "44" not in error["message"]


def test_random_answers_are_settled_as_in_python(page: Page, full: bool) -> None:
    random = Random(22)
    values: list[Any] = [
        18,
        29,
        30,
        17,
        "young",
        "silent",
        "no",
        "yes",
        "calm",
        "mixed",
        "hard",
        "none",
        [],
        ["sleep"],
    ]
    values += [
        ["pain", "sleep"],
        ["untold"],
        ["untold", "pain"],
        ["skipped"],
        ["beer"],
        ["weed", "beer"],
        "sleep",
        {},
    ]
    names = ["age", "work", "stress", "signs", "drugs", *(one.id for one in (*SIGNS, *DRUGS))]
    fitting = {
        "age": values[:6], "work": values[6:8], "stress": values[8:12], "signs": values[12:18], "drugs": [[], ["beer"]],
    }  # fmt: skip
    given = []
    for _ in range(5000 if full else 500):
        one = {name: random.choice(fitting[name]) for name in fitting}
        for _ in range(random.choice([0, 0, 1, 2])):
            one[random.choice(names)] = random.choice(values)
        if random.random() < 0.2:
            del one[random.choice(list(one))]
        given.append(one)
    accepted = 0
    for one, settled in zip(given, settle(page, given), strict=True):
        python = Answer(one).settled(ASKED.questions)
        if isinstance(python, UnknownChoice):
            assert settled.get("field", "") == python.field, one
        else:
            accepted += 1
            assert settled["chosen"] == python.revealed(), one
    assert 0.3 < accepted / len(given) < 0.9


def test_every_way_of_answering_gives_reports_of_one_length(page: Page, wire: Wire) -> None:
    link = wire.publish(ASKED)
    code = """async ([link, at, given]) => {
      const {withSeams} = await import("/sdk/testing.js");
      const {Client} = await import("/sdk/index.js"), codes = [];
      for (const [i, answers] of given.entries()) {
        const client = await Client.open(link, withSeams({store: `ways-${i}`, spreadMs: 0}, {now: () => at}));
        codes.push((await client.answer(answers)).code);
        client.close();
      }
      return codes;
    }"""
    given = [one for one, _ in SETTLED]
    codes = page.evaluate(code, [link, NOW.timestamp() * 1000, given])
    assert set(codes) == {"accepted"}
    assert len(wire.stored) == len(SETTLED)
    assert {len(body) for body in wire.posted} == {wire.documents["ab" * 16].report_length}


@pytest.mark.parametrize("given", [None, "age", 3])
def test_answers_are_an_object(page: Page, given: Any) -> None:
    (error,) = settle(page, [given])
    assert (error["code"], error["field"]) == ("unknown_choice", None)
