# SPDX-License-Identifier: Apache-2.0
"""A survey with twelve questions under one level, from its file to the estimates from 3,000 devices."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from statistics import fmean
from typing import Any

import pytest
from frankly_design.estimate.margins import METHODS
from frankly_design.form.joint_tables import estimable_pairs
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_sdk.answer import Answer
from frankly_server.analysis import Analysis, encode
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.surveys import Surveys
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.results.asked import Asked as Query
from frankly_server.web.results.sections import names_of, sections_of

from tests.contract.conftest import FILE, made_up
from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import released, row
from tests.migrated import migrated

DEVICES = 3000


@dataclass(frozen=True)
class Asked:
    """The survey, its reports, and the true counts of choices and of pairs of choices."""

    analysis: Analysis
    document: SurveyDocument
    truths: Mapping[Any, int]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    home = tmp_path_factory.mktemp("form")
    Keyring(home / "keys", FixedClock(NOW)).init()
    database = migrated(f"sqlite:///{home}/frankly.db")
    clock = FixedClock(NOW)
    settings = Settings(home=home, public_url="https://ask.example")
    surveys = Surveys(settings, database, Keyring(home / "keys", clock), clock)
    surveys.apply(parse_definition(FILE.encode()))
    published = surveys.publish("health")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    rng, truths, rows = Random(3), Counter[Any](), []
    (block,) = document.blocks
    for _ in range(DEVICES):
        settled = Answer(made_up(rng)).settled(document.questions)
        assert isinstance(settled, Answer)
        chosen = settled.revealed()
        truths.update(chosen.items())
        truths["smoke", chosen["smoke"], "drink", chosen["drink"]] += 1
        mechanism: Any = block.mechanism
        symbol = mechanism.symbol_json(mechanism.sample(settled.row(block), rng.getrandbits))
        rows.append(
            replace(row(symbol, document=document.digest), survey=document.survey, strata="")
        )
    released(database, document, rows)
    return Asked(Analysis(database), document, truths)


def test_the_document_is_small_and_costs_the_level_once(asked: Asked) -> None:
    asked.document.require_private()
    assert len(asked.document.payload()) < 32 * 1024
    level = asked.document.report_level
    assert level.cost.odds == asked.document.blocks[0].ceiling
    assert level.odds == level.answers.odds == asked.document.blocks[0].ceiling


@pytest.mark.parametrize("method", METHODS)
def test_shares_lie_within_their_margins(asked: Asked, method: str) -> None:
    result = asked.analysis.estimates(asked.document.survey, targets="shares", method=method)
    assert result["n"] == DEVICES
    outside = total = 0
    for question in result["questions"]:
        assert question["n"] < question["received"] == DEVICES
        for one in question["rows"]:
            true = asked.truths[question["id"], one["choice"]] / DEVICES
            outside += not one["low"] <= true <= one["high"]
            total += 1
    assert total == sum(len(question.choices) for question in asked.document.questions.values())
    # If the 46 cells at 95 % were independent, 6 or more would be outside with a probability below
    # 3 %.
    assert outside < 6


WANTED: dict[str, dict[str, dict[str, int]]] = {
    "stop": {"mean": {"easy": 0, "mixed": 1, "hard": 2}},
    "mood": {"mean": {f"m{i}": i for i in range(4)}},
    "pain": {f"up to p{cut}": {f"p{i}": 1 for i in range(cut + 1)} for cut in range(4)},
    "trust": {"contrast": {"no": -1, "yes": 1}},
}
"""Numbers of the choices in the wanted figures; all other questions are wanted for their shares."""


def is_unbounded(one: Mapping[str, Any], question: str) -> bool:
    """Whether a ratio's interval is unbounded at this level, for few people were asked `stop`."""
    return question == "stop" and "unbounded" in one["flags"] and one["low"] is None


def test_wanted_figures_are_estimated_without_being_named(asked: Asked) -> None:
    """No row is outside its interval with a probability above 47 · 10⁻⁶."""
    result = asked.analysis.estimates(asked.document.survey, level=0.999999)
    assert [question["id"] for question in result["questions"]] == list(asked.document.questions)
    for question in result["questions"]:
        name = question["id"]
        choices = [choice.id for choice in asked.document.questions[name].choices]
        wanted = WANTED.get(name) or {choice: {choice: 1} for choice in choices}
        assert [one["choice"] for one in question["rows"]] == list(wanted)
        # The mean is that of the people who were asked.
        people = sum(
            asked.truths[name, c] for c in choices if name != "stop" or c in wanted["mean"]
        )
        for one in question["rows"]:
            true = sum(w * asked.truths[name, c] for c, w in wanted[one["choice"]].items()) / people
            assert is_unbounded(one, name) or one["low"] <= true <= one["high"], (name, one)


@pytest.mark.parametrize("method", METHODS)
def test_scales_have_their_mean_distribution_and_median(asked: Asked, method: str) -> None:
    result = asked.analysis.estimates(asked.document.survey, targets="scales", method=method)
    assert [question["id"] for question in result["questions"]] == ["age", "stop", "mood"]
    for question in result["questions"]:
        choices = asked.document.questions[question["id"]].choices
        numbers = {
            choice.id: float(choice.low if choice.score is None else choice.score)  # type: ignore[arg-type]
            for choice in choices
            if choice.role is None
        }
        people = sorted(
            number for c, number in numbers.items() for _ in range(asked.truths[question["id"], c])
        )
        rows = {one["choice"]: one for one in question["rows"]}
        assert ("mean" in rows) == (question["id"] != "age")
        assert [name for name in rows if name.startswith("up to ")] == {
            "age": ["up to 29", "up to 44", "up to 59"],
            "stop": ["up to 0", "up to 1"],
            "mood": ["up to 0", "up to 1", "up to 2"],
        }[question["id"]]
        for name, one in rows.items():
            if name.startswith("up to "):
                true = sum(number <= float(name[6:]) for number in people) / len(people)
            else:
                true = fmean(people) if name == "mean" else people[(len(people) - 1) // 2]
            if is_unbounded(one, question["id"]):
                continue
            assert abs(one["estimate"] - true) <= 2.5 * one["margin"]
            assert one["low"] <= one["estimate"] <= one["high"]


def test_the_page_shows_the_mean_and_the_median(asked: Asked) -> None:
    answer = asked.analysis.estimates(asked.document.survey, targets="shares")
    scales = asked.analysis.estimates(asked.document.survey, targets="scales")
    sections = sections_of(answer, Query(), names_of([asked.document]), scales)
    said = {section.text: section.groups[0].sentences.findings for section in sections}
    assert said["How was your week?"][0].startswith("Mean of the answers with a score: ")
    assert said["How was your week?"][1].startswith("Median of the answers with a score: ")
    assert said["How old are you?"][0].startswith("The median's range begins at ")
    assert not any("Mean" in words for words in said["Do you smoke?"])


def test_the_requested_table_is_estimated_and_no_other(asked: Asked) -> None:
    result = asked.analysis.estimates(asked.document.survey, targets=["smoke", "drink"])
    (table,) = result["questions"]
    assert len(table["rows"]) == 6
    for one in table["rows"]:
        smoke, drink = one["choice"].split(" × ")
        true = asked.truths["smoke", smoke, "drink", drink] / DEVICES
        assert abs(one["estimate"] - true) < 4 * one["se"]
    names = list(asked.document.questions)
    form = asked.document.blocks[0].mechanism
    assert isinstance(form, AgreementMechanism)
    told = estimable_pairs(form)
    assert (names.index("smoke"), names.index("drink")) in told
    untold = [pair for pair in combinations(range(len(names)), 2) if pair not in told]
    assert untold
    for pair in untold:
        with pytest.raises(InvalidInput) as caught:
            asked.analysis.estimates(asked.document.survey, targets=[names[i] for i in pair])
        assert (caught.value.code, caught.value.field) == ("not_identifiable", "targets")


def test_days_and_replays(asked: Asked) -> None:
    by_day = asked.analysis.estimates(asked.document.survey, by="day")
    assert {tuple(question["by"]) for question in by_day["questions"]} == {("day",)}
    assert encode(by_day) == asked.analysis.replay(by_day)
    census = asked.analysis.estimates(asked.document.survey, census=True)
    alone = asked.analysis.estimates(asked.document.survey)
    pairs = zip(census["questions"][0]["rows"], alone["questions"][0]["rows"], strict=True)
    # The reports about a question are a sample of the census, so some sampling error remains.
    assert all(0 < few["se_sampling"] < all_["se_sampling"] for few, all_ in pairs)
