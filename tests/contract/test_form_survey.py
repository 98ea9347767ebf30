# SPDX-License-Identifier: Apache-2.0
"""A survey of twelve questions under one level, from its file to the estimates of 3,000 devices."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.estimate.margins import METHODS
from frankly_server.joint_tables import estimable_pairs
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from frankly_server.surveys import Surveys, parse_definition

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import released, row

DEVICES = 3000
YES_NO = ("no", "yes")
SIZES: dict[str, tuple[str, ...]] = {
    "smoke": YES_NO,
    "drink": ("never", "rarely", "often"),
    "drugs": YES_NO,
    "debt": YES_NO,
    "vote": ("left", "middle", "right", "none"),
    "income": ("low", "mid", "high"),
    "age": ("young", "old"),
    "mood": ("m0", "m1", "m2", "m3", "m4"),
    "pain": tuple(f"p{i}" for i in range(7)),
    "trust": ("no", "some", "yes"),
    "work": YES_NO,
    "move": ("stay", "maybe", "go"),
}
EXTRAS = {
    "drugs": "      importance: 2\n",
    "debt": "      expected: [80, 20]\n",
    "mood": "      wanted: mean\n      scores: [0, 1, 2, 3, 4]\n",
    "pain": "      wanted: distribution\n",
    "trust": "      wanted: contrast\n      contrast: [-1, 0, 1]\n",
}


def _file() -> str:
    lines = [
        "name: health\ntitle: {en: Health}\nlanguages: [en]\nbudget: 3\nmin_reports: 50\n"
        "form:\n  cross_tables: [[smoke, drink]]\n  questions:\n"
    ]
    for name, choices in SIZES.items():
        listed = ", ".join(f"{{id: {c}, label: {{en: {c}}}}}" for c in choices)
        lines.append(
            f"    - id: {name}\n      text: {{en: '{name}?'}}\n      choices: [{listed}]\n"
        )
        lines.append(EXTRAS.get(name, ""))
    return "".join(lines)


@dataclass(frozen=True)
class Asked:
    """The survey with its reports, and the true counts of choices and of pairs of choices."""

    analysis: Analysis
    document: SurveyDocument
    truths: Mapping[Any, int]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    home = tmp_path_factory.mktemp("form")
    Keyring(home / "keys", FixedClock(NOW)).init()
    database = _database(home)
    clock = FixedClock(NOW)
    settings = Settings(home=home, public_url="https://ask.example")
    surveys = Surveys(settings, database, Keyring(home / "keys", clock), clock)
    surveys.apply(parse_definition(_file().encode()))
    published = surveys.publish("health")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    rng, truths, rows = Random(3), Counter[Any](), []
    (block,) = document.blocks
    for _ in range(DEVICES):
        answers = {
            name: rng.choices(choices, weights=range(len(choices), 0, -1))[0]
            for name, choices in SIZES.items()
        }
        # Those who smoke drink more often: the joint table is not a product.
        if answers["smoke"] == "yes":
            answers["drink"] = rng.choices(SIZES["drink"], weights=(1, 2, 5))[0]
        truths.update((name, choice) for name, choice in answers.items())
        truths["smoke", answers["smoke"], "drink", answers["drink"]] += 1
        mechanism: Any = block.mechanism
        symbol = mechanism.symbol_json(mechanism.sample(block.truth(answers), rng.getrandbits))
        rows.append(
            replace(row(symbol, document=document.digest), survey=document.survey, strata="")
        )
    released(database, document, rows)
    return Asked(Analysis(database), document, truths)


def _database(home: Path) -> Database:
    database = Database(f"sqlite:///{home}/frankly.db")
    upgrade(database)
    return database


def test_the_document_is_small_and_costs_the_level_once(asked: Asked) -> None:
    asked.document.require_private()
    assert len(asked.document.payload()) < 32 * 1024
    level = asked.document.report_level
    assert level.cost.odds == asked.document.blocks[0].ceiling
    assert level.odds == level.answers.odds == asked.document.blocks[0].ceiling


@pytest.mark.parametrize("method", METHODS)
def test_shares_lie_within_their_margins(asked: Asked, method: str) -> None:
    result = asked.analysis.estimates(asked.document.survey, method=method)
    assert result["n"] == DEVICES
    outside = total = 0
    for question in result["questions"]:
        assert question["n"] < question["received"] == DEVICES
        for one in question["rows"]:
            true = asked.truths[question["id"], one["choice"]] / DEVICES
            outside += not one["low"] <= true <= one["high"]
            total += 1
    assert total == sum(map(len, SIZES.values()))
    # 39 cells at 95 %, some of which depend on each other: 6 or more outside has a chance below 2 %.
    assert outside < 6


def test_what_was_wanted_is_told(asked: Asked) -> None:
    targets = {
        "mood": {"mean": {f"m{i}": i for i in range(5)}},
        "pain": {f"up to {cut}": {f"p{i}": 1 for i in range(cut + 1)} for cut in range(6)},
        "trust": {"contrast": {"no": -1, "yes": 1}},
    }
    result = asked.analysis.estimates(asked.document.survey, targets=targets)
    for question in result["questions"]:
        for one in question["rows"]:
            weights = targets[question["id"]][one["choice"]]
            true = sum(w * asked.truths[question["id"], c] for c, w in weights.items()) / DEVICES
            assert abs(one["estimate"] - true) < 4 * one["se"]
            assert one["low"] <= one["high"]


def test_the_wanted_table_is_told_and_no_other(asked: Asked) -> None:
    result = asked.analysis.estimates(asked.document.survey, targets=["smoke", "drink"])
    (table,) = result["questions"]
    assert len(table["rows"]) == 6
    for one in table["rows"]:
        smoke, drink = one["choice"].split(" × ")
        true = asked.truths["smoke", smoke, "drink", drink] / DEVICES
        assert abs(one["estimate"] - true) < 4 * one["se"]
    names = list(SIZES)
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
    # The reports that show a question are a sample of the census, so some sampling error remains.
    assert all(0 < few["se_sampling"] < all_["se_sampling"] for few, all_ in pairs)
