# SPDX-License-Identifier: Apache-2.0
"""Wanted figures from a survey file over devices, reports and a release to the analyst's answer."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from frankly_protocol.clock import FixedClock
from frankly_sdk import Plan, Policy
from frankly_sdk.testing import open_client
from frankly_server.app import create_app
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.migrated import opened

PEOPLE = 300
FILE = """\
name: wanted
title: {en: Wanted}
languages: [en]
budget: "4"
min_reports: 20
release_step: 2
form:
  ask: drawn
  questions:
    - id: low
      type: scale
      text: {en: "How often have you felt low?"}
      wanted: mean
      choices:
        - {id: never, label: {en: Never}, score: 0}
        - {id: some, label: {en: Some days}, score: 1}
        - {id: most, label: {en: Most days}, score: 2}
        - {id: always, label: {en: Every day}, score: 3}
      no_answer: true
    - {id: smokes, type: yes-no, text: {en: "Do you smoke?"}}
    - id: hard
      text: {en: "How hard would it be to stop?"}
      wanted: mean
      scores: [0, 1, 2]
      choices: [{id: easy, label: {en: Easy}}, {id: mixed, label: {en: Mixed}}, {id: hard, label: {en: Hard}}]
      ask_if: {question: smokes, choices: ["yes"]}
      not_applicable: {en: "I do not smoke"}
    - {id: age, text: {en: "How old are you?"}, ranges: [18, 30, 60], wanted: distribution, no_answer: true}
    - id: trust
      text: {en: "Do you trust your doctor?"}
      wanted: contrast
      contrast: [-1, 0, 1, 0]
      choices: [{id: "no", label: {en: "No"}}, {id: some, label: {en: Somewhat}}, {id: "yes", label: {en: "Yes"}}]
      no_answer: true
    - {id: signs, type: multi, text: {en: "Which of these?"}, boxes: [{id: cough, label: {en: Cough}}]}
"""


def _answers(rng: Random) -> dict[str, Any]:
    given: dict[str, Any] = {
        "low": rng.choice(("never", "always", "most", "no-answer")),
        "smokes": rng.choice(("no", "yes")),
        "age": rng.choice((18, 29, 40, 75, "no-answer")),
        "trust": rng.choice(("no", "yes", "yes", "no-answer")),
        "signs": rng.choice(([], ["cough"])),
    }
    return given | ({"hard": rng.choice(("hard", "mixed"))} if given["smokes"] == "yes" else {})


def _asked(plan: Plan, answers: dict[str, Any]) -> dict[str, Any]:
    """Return the answers to what a person is asked; boxes have the name of their question."""
    return {
        name: answer
        for name, answer in answers.items()
        if any(one == name or one.startswith(f"{name}-") for one in plan.questions)
    }


def _mean(people: list[dict[str, Any]], question: str, scores: dict[str, int]) -> float:
    answered = [scores[one[question]] for one in people if one.get(question) in scores]
    return sum(answered) / len(answered)


def test_what_is_wanted_of_each_question_is_what_an_analyst_gets(tmp_path: Path) -> None:
    """At 1 − 10⁻⁹, so that also an approximate interval misses less often than once in a million runs."""
    url = SecretStr(f"sqlite:///{tmp_path / 'frankly.db'}")
    settings = Settings(home=tmp_path / "home", database_url=url, public_url=ORIGIN)
    services = opened(settings, FixedClock(NOW))
    services.surveys.apply(parse_definition(FILE.encode()))
    published = services.surveys.publish("wanted")
    http = create_app(settings, services=services).test_client()
    rng = Random(7)
    people = [_answers(rng) for _ in range(PEOPLE)]
    options: dict[str, Any] = {
        "policy": Policy(cap="4"), "transport": InProcess(http), "clock": FixedClock(NOW),
    }  # fmt: skip
    with open_client(
        published.link, tmp_path / "d.db", sleep=lambda _: None, spread_s=0, **options
    ) as client:
        rows: list[Any] = [
            (f"p{i}", _asked(client.plan(f"p{i}"), one), {}) for i, one in enumerate(people)
        ]
        assert sum(len(one) for _, one, _ in rows) < sum(map(len, people))
        sealed = list(client.randomise_many(rows))
        assert Counter(one.status for one in sealed) == {"sealed": PEOPLE}
        assert len(client.flush()) == PEOPLE
    assert services.releasing.release() == PEOPLE
    key = services.access.create("analyst", "test")
    answer = http.get(
        f"/v1/surveys/{published.survey_id}/estimates?level=0.999999999",
        headers={"Authorization": f"Bearer {key}"},
    ).get_json()
    services.close()

    ages = [one["age"] for one in people if one["age"] != "no-answer"]
    truths = {
        "low": {"mean": _mean(people, "low", {"never": 0, "some": 1, "most": 2, "always": 3})},
        "smokes": {"yes": sum(one["smokes"] == "yes" for one in people) / PEOPLE},
        "hard": {"mean": _mean(people, "hard", {"easy": 0, "mixed": 1, "hard": 2})},
        "age": {f"up to {end}": sum(age <= end for age in ages) / len(ages) for end in (29, 59)},
        "trust": {
            "contrast": sum({"yes": 1, "no": -1}.get(one["trust"], 0) for one in people) / PEOPLE
        },
        "signs-cough": {"yes": sum(bool(one["signs"]) for one in people) / PEOPLE},
    }
    found = {one["id"]: {row["choice"]: row for row in one["rows"]} for one in answer["questions"]}
    assert list(found) == list(truths)
    for question, figures in truths.items():
        assert set(figures) <= set(found[question]) <= {*figures, "no", "median"}
        for name, truth in figures.items():
            row = found[question][name]
            # At this level the interval of a ratio may have no ends.
            assert row["low"] is not None or {"unbounded", "interval_unknown"} & set(row["flags"])
            assert row["low"] is None or row["low"] <= truth <= row["high"]
