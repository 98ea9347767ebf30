# SPDX-License-Identifier: Apache-2.0
"""Acceptance by devices with default policies, predicted before publication and compared with the SDK."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import DEVICE_CAP, Charge
from frankly_protocol.documents import SurveyDocument
from frankly_sdk import BudgetExceeded, Policy, PolicyRefused
from frankly_server.services import Services
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.devices import expected_form, warnings_of

PRIOR = {
    "secret": "ill",
    "secrets": ["no", "yes"],
    "joint": [[50, 30], [10, 40]],
    "source": "a table",
    "public": True,
}
LIP = {"notion": "lip", "epsilon": "0.5", "prior": PRIOR}
OTHER = {**LIP, "prior": {**PRIOR, "secret": "poor"}}


def ldp(level: str) -> dict[str, Any]:
    return {"notion": "ldp", "epsilon": level, "mechanism": "grr"}


# Blocks; accepted by default devices; accepted by apps that name the survey; phrases of the
# warnings before and after.
FORMS: dict[str, tuple[list[dict[str, Any]], bool, bool, tuple[str, ...], tuple[str, ...]]] = {
    "cheap": ([ldp("1"), ldp("2")], True, True, (), ()),
    "just right": ([ldp("2"), ldp("3")], True, True, (), ()),
    "too expensive": (
        [ldp("3"), ldp("3")], False, False,
        ("reveals up to 6.0000 nats", "such devices cannot answer it"), ("reveals up to 6.0000",)),
    "a backstop": ([{**LIP, "ceiling_cap": "2"}], True, True, (), ()),
    "no backstop": ([LIP], False, True, ("No backstop: b0.", "final_surveys"), ("No backstop: b0.",)),
    "one of two": ([ldp("1"), LIP], False, True, ("No backstop: b1.", "final_surveys"), ("No backstop: b1.",)),
    "too high a backstop": (
        [{**LIP, "ceiling_cap": "7"}], False, True,
        ("Answering costs 7.0000 nats", "final_surveys"), ("Answering costs ", "more than 5 nats"),
    ),
    "two backstops": (
        [{**LIP, "ceiling_cap": "2.9957"}, {**OTHER, "ceiling_cap": "2.9957"}], False, True,
        ("Answering costs 5.9914 nats", "final_surveys"), ("Answering costs ", "more than 5 nats"),
    ),
    "no ceiling is promised, yet there is one": (
        [{**LIP, "mechanism": "grr"}], True, True, ("No backstop: b0.",), (),
    ),
}  # fmt: skip


def file_of(blocks: list[dict[str, Any]]) -> bytes:
    choices = [{"id": name, "label": {"en": name}} for name in ("no", "yes")]
    block_values = [
        {
            "id": f"b{i}",
            "questions": [{"id": f"q{i}", "text": {"en": f"Question {i}?"}, "choices": choices}],
            **block,
        }
        for i, block in enumerate(blocks)
    ]
    return json.dumps(
        {
            "name": "form",
            "title": {"en": "Form"},
            "languages": ["en"],
            "min_reports": 2,
            "budget": "20",
            "blocks": block_values,
        }
    ).encode()


def answers(
    document: SurveyDocument,
    spent: list[Charge],
    policy: Policy = Policy(),  # noqa: B008
) -> Charge | None:  # noqa: B008, RUF100
    """Return what a device charges for the document, or None if the device refuses it."""
    try:
        return policy.check(document, policy.level(document), pinned=True, spent=spent)
    except (PolicyRefused, BudgetExceeded):
        return None


@pytest.mark.parametrize("name", FORMS)
def test_the_warnings_agree_with_devices(name: str, services: Services) -> None:
    blocks, usual, final, before, after = FORMS[name]
    definition = parse_definition(file_of(blocks))
    applied = services.surveys.apply(definition)
    published = services.surveys.publish("form")
    document = services.surveys.versions("form")[-1]
    named = Policy(final_surveys=(document.survey,))
    assert (answers(document, []) is not None) is usual
    assert (answers(document, [], named) is not None) is final
    assert applied.warnings == warnings_of(expected_form(definition))
    assert (published.level.cost, published.level) == (
        document.report_level.cost,
        Policy().level(document),
    )
    if usual:  # the cost stated at publication is the ledger's charge
        assert answers(document, []) == published.level.cost
    assert published.warnings == warnings_of(document)
    assert bool(published.warnings) is not usual
    for warnings, phrases in ((applied.warnings, before), (published.warnings, after)):
        assert len(warnings) == bool(phrases)
        assert all(part in line for line in warnings for part in phrases)
        assert all("\n" not in line for line in warnings)


def test_the_limit_of_devices_is_the_same_everywhere(root: Path) -> None:
    assert Policy().cap == DEVICE_CAP
    assert (
        f'cap = "{DEVICE_CAP}"'
        in (root / "client_sdk" / "browser" / "src" / "ledger.js").read_text()
    )


@pytest.mark.parametrize("name", survey_templates.templates())
def test_no_template_needs_a_warning(name: str) -> None:
    assert warnings_of(expected_form(parse_definition(survey_templates.template(name)))) == ()


def test_a_language_without_texts_of_the_sdk_draws_a_warning() -> None:
    form = expected_form(parse_definition(file_of(FORMS[next(iter(FORMS))][0])))
    assert not [line for line in warnings_of(form) if "in English" in line]
    (warning,) = [
        line
        for line in warnings_of(replace(form, languages=("en", "de-AT", "sw", "fi")))
        if "in English" in line
    ]
    assert "to readers of sw, fi, because" in warning
