# SPDX-License-Identifier: Apache-2.0
"""Published JSON Schema, which accepts the documents that devices accept, as far as a schema can decide."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.audit import NOTIONS, ceiling
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import FranklyError
from frankly_protocol.mechanisms import BLOCK_KINDS, SubsetMechanism, UnaryMechanism
from jsonschema import Draft202012Validator

from tests.frankly_protocol.asked import INVALID_EDITS, REPEATED, asked
from tests.frankly_protocol.every_kind import documents
from tests.frankly_protocol.limits import LIMITS, PAYLOAD
from tests.frankly_protocol.samples import at, ldp_block, put, question, survey
from tests.frankly_protocol.test_every_kind import BAD, ONE, mutated

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "survey.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)
BEYOND = {"weights", "privacy"}
"""Reasons of refusal that a schema cannot express: sums, shapes that must agree, and claims."""
NAMES = (["low", "mid"], "low", "absent", "a\u202eb")
"""Values with an unknown name or an unsafe character, which a schema cannot detect either."""
WRONG = re.compile(
    r"\.(role|from|score|unless|ask_if|wanted|figure|scale|numbers(\[.\])?"
    r"|anchor|counts(\[.\])?|source|shares|repeats)$|strata"
)
"""Fields that are wrong by themselves; a schema cannot check that fields agree with each other."""
OF_CHOICES = ("mean", ["1", "0", "2"], [2, 3, 0])
"""Figures, numbers and counts that only these choices cannot have."""
EDITED = [
    (path, value)
    for path, value, field in INVALID_EDITS
    if WRONG.search(field) and value not in (*OF_CHOICES, *NAMES)
]
FORMAL = [case for case in BAD if case[3] not in BEYOND and case[2] not in NAMES]


def test_the_schema_is_valid_and_lists_every_kind_and_notion() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    kinds = [option["properties"]["kind"]["const"] for option in SCHEMA["$defs"]["block"]["oneOf"]]
    notions = [
        option["properties"]["notion"]["const"] for option in SCHEMA["$defs"]["claim"]["oneOf"]
    ]
    assert kinds == list(BLOCK_KINDS)
    assert set(notions) == set(NOTIONS)
    for option in SCHEMA["$defs"]["block"]["oneOf"]:
        assert set(BLOCK_KINDS[option["properties"]["kind"]["const"]].PARAMS) <= set(
            option["required"]
        )


@pytest.mark.parametrize("name", ONE)
def test_every_document_fits(name: str) -> None:
    VALIDATOR.validate(
        json.loads(documents()[name].payload()) if name == "everything" else ONE[name]
    )


def test_a_document_with_every_kind_of_question_fits() -> None:
    repeated = (questions for questions, field in REPEATED if field is None)
    for questions in ((), *repeated):
        VALIDATOR.validate(json.loads(asked(*questions).payload()))


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_of_devices_equal_those_of_the_schema(name: str) -> None:
    edit, limit, _ = LIMITS[name]
    for n, fits in ((limit, True), (limit + 1, False)):
        body = json.loads(PAYLOAD)
        edit(body, n)
        assert VALIDATOR.is_valid(body) is fits, n


@pytest.mark.parametrize("kind", [UnaryMechanism(4, 1000, 8, 3), SubsetMechanism(4, 1000, 2, 12)])
def test_a_question_with_a_thousand_choices_fits(kind: UnaryMechanism | SubsetMechanism) -> None:
    choices = [f"c{x}" for x in range(1000)]
    block = replace(
        ldp_block(),
        questions=(question("place", *choices),),
        mechanism=kind,
        design_prior=(1,) * 1000,
        ceiling=ceiling(kind),
        promises=at(ldp_block(), (1000, 1)),
    )
    VALIDATOR.validate(json.loads(survey(block).payload()))


@pytest.mark.parametrize(("path", "value"), EDITED)
def test_a_malformed_question_does_not_fit(path: str, value: Any) -> None:
    body = json.loads(asked().payload())
    put(path, value)(body)
    assert not VALIDATOR.is_valid(body)


@pytest.mark.parametrize(("name", "path", "value", "reason", "field"), FORMAL)
def test_malformed_documents_do_not_fit(
    name: str, path: str, value: Any, reason: str, field: str
) -> None:
    body = json.loads(json.dumps(ONE[name]))
    put(path, value)(body)
    assert not VALIDATOR.is_valid(body), (reason, field)


def test_documents_that_devices_accept_fit() -> None:
    rng = Random(11)
    read = 0
    for _ in range(250):
        body = mutated(rng)
        try:
            SurveyDocument.parse(canonical.dumps(body))
        except FranklyError:
            continue
        read += 1
        VALIDATOR.validate(body)
    assert read > 10


ARMS = [
    {"id": "a", "chance": 1, "strata": [], "blocks": ["x"]},
    {"id": "b", "chance": 65535, "strata": ["y"], "blocks": []},
]


def _of_arms(path: str, value: Any) -> Any:
    body = json.loads(PAYLOAD) | {"arms": {"id": "arm", "arms": json.loads(json.dumps(ARMS))}}
    put(path, value)(body)
    return body


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("title.en", "With arms"),
        ("arms.arms.0.chance", 65535),
        ("arms.arms.0.strata", [f"q{i}" for i in range(8)]),
        ("arms.arms.0.blocks", [f"b{i}" for i in range(100)]),
        ("arms.arms", [*ARMS] * 4),
    ],
)
def test_arms_fit(path: str, value: Any) -> None:
    VALIDATOR.validate(_of_arms(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("arms", None),
        ("arms", ARMS),
        ("arms.id", "A"),
        ("arms.extra", 1),
        ("arms.arms", ARMS[:1]),
        ("arms.arms", [*ARMS] * 5),
        ("arms.arms.0", {"id": "a", "chance": 1, "strata": []}),
        ("arms.arms.0.id", ""),
        ("arms.arms.0.chance", 0),
        ("arms.arms.0.chance", 65536),
        ("arms.arms.0.chance", 1.5),
        ("arms.arms.0.extra", 1),
        ("arms.arms.0.blocks", []),
        ("arms.arms.0.blocks", ["x", "x"]),
        ("arms.arms.0.blocks", [f"b{i}" for i in range(101)]),
        ("arms.arms.1.strata", ["y", "y"]),
        ("arms.arms.1.strata", [f"q{i}" for i in range(9)]),
        ("arms.arms.1.strata", [1]),
    ],
)
def test_malformed_arms_do_not_fit(path: str, value: Any) -> None:
    assert not VALIDATOR.is_valid(_of_arms(path, value))
