# SPDX-License-Identifier: Apache-2.0
"""What the usual devices make of a survey is told before they are asked; held against the SDK itself."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import DEVICE_CAP, FormLevel
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_sdk import BudgetExceeded, Policy, PolicyRefused
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade
from frankly_server.surveys import files
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.devices import expected_warnings, warnings_of

from tests.frankly_protocol.samples import NOW

PRIOR = {"secret": "ill", "secrets": ["no", "yes"], "joint": [[50, 30], [10, 40]], "source": "a table", "public": True}
LIP = {"notion": "lip", "epsilon": "0.5", "prior": PRIOR}
OTHER = {**LIP, "prior": {**PRIOR, "secret": "poor"}}


def ldp(level: str) -> dict[str, Any]:
    return {"notion": "ldp", "epsilon": level, "mechanism": "grr"}


# blocks -> may a usual device answer it, and then another survey of one nat? What is said before, and afterwards.
FORMS: dict[str, tuple[list[dict[str, Any]], bool, bool, tuple[str, ...], tuple[str, ...]]] = {
    "cheap": ([ldp("1"), ldp("2")], True, True, (), ()),
    "just right": ([ldp("2"), ldp("2")], True, True, (), ()),
    "too dear": ([ldp("3"), ldp("3")], False, False, ("costs 6.0000 nats",), ("costs 6.0000 nats",)),
    "a backstop": ([{**LIP, "ceiling_cap": "2"}], True, True, (), ()),
    "no backstop": ([LIP], True, False, ("No backstop: b0.",), ("No backstop: b0.",)),
    "one of two": ([ldp("1"), LIP], True, False, ("No backstop: b1.",), ("No backstop: b1.",)),
    "too high a backstop": (
        [{**LIP, "ceiling_cap": "7"}], True, False, ("together 7.0000 nats",), ("together ", "more than 5 nats"),
    ),
    "two backstops": (
        [{**LIP, "ceiling_cap": "2.9957"}, {**OTHER, "ceiling_cap": "2.9957"}], True, False,
        ("together 5.9914 nats",), ("together ", "more than 5 nats"),
    ),
    "no ceiling is promised, yet there is one": (
        [{**LIP, "mechanism": "grr"}], True, True, ("No backstop: b0.",), (),
    ),
}  # fmt: skip


def file_of(blocks: list[dict[str, Any]]) -> bytes:
    choices = [{"id": name, "label": {"en": name}} for name in ("no", "yes")]
    asked = [
        {"id": f"b{i}", "questions": [{"id": f"q{i}", "text": {"en": f"Question {i}?"}, "choices": choices}], **block}
        for i, block in enumerate(blocks)
    ]
    return json.dumps(
        {
            "name": "form",
            "title": {"en": "Form"},
            "languages": ["en"],
            "min_reports": 2,
            "budget": "20",
            "blocks": asked,
        }
    ).encode()


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    settings = Settings(home=tmp_path_factory.mktemp("devices"))
    database = Database(settings.store_url())
    upgrade(database)
    found = Services(settings, database, FixedClock(NOW))
    found.keys.init()
    yield found
    found.close()


def answers(document: SurveyDocument, spent: list[FormLevel]) -> FormLevel | None:
    """What a device with the usual limit then has spent on it, None if it refuses."""
    try:
        return Policy().check(document, pinned=True, spent=spent)
    except (PolicyRefused, BudgetExceeded):
        return None


@pytest.mark.parametrize("name", FORMS)
def test_the_warnings_say_what_devices_do(name: str, services: Services) -> None:
    blocks, first, further, before, after = FORMS[name]
    definition = parse_definition(file_of(blocks))
    applied = services.surveys.apply(definition)
    published = services.surveys.publish("form")
    document = services.surveys.versions("form")[-1]
    one_nat = FormLevel(level=Fraction(2), ceiling=Fraction(2), lines=(), free=Fraction(2))
    assert (answers(document, []) is not None) is first
    assert (first and answers(document, [one_nat]) is not None) is further
    assert applied.warnings == expected_warnings(definition)
    assert published.warnings == warnings_of(document)
    assert bool(published.warnings) is not (first and further)
    for told, words in ((applied.warnings, before), (published.warnings, after)):
        assert len(told) == bool(words)
        assert all(part in line for line in told for part in words)
        assert all("\n" not in line for line in told)


def test_the_limit_has_one_home(root: Path) -> None:
    assert Policy().cap == DEVICE_CAP
    assert f'cap = "{DEVICE_CAP}"' in (root / "client_sdk" / "browser" / "src" / "ledger.js").read_text()


@pytest.mark.parametrize("name", files.templates())
def test_no_template_needs_a_warning(name: str) -> None:
    assert expected_warnings(parse_definition(files.template(name))) == ()
