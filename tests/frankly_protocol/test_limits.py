# SPDX-License-Identifier: Apache-2.0
"""Limits of a survey document: a value at the limit is accepted; one more is refused by field."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected

from tests.frankly_protocol.samples import in_strata, ldp_block, lip_block, survey

PAYLOAD = survey().payload()
Edit = Callable[[dict[str, Any], int], None]


def languages(body: dict[str, Any], n: int) -> None:
    """Set n languages with short texts in all of them; only the first block is left."""
    tags = ["en", *(f"aa-{chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(n - 1))]
    body["languages"], body["title"] = tags, dict.fromkeys(tags, "t")
    body["blocks"] = body["blocks"][:1]
    for question in body["blocks"][0]["questions"]:
        question["text"] = dict.fromkeys(tags, "?")
        for choice in question["choices"]:
            choice["label"] = dict.fromkeys(tags, choice["id"])


def public_choices(body: dict[str, Any], n: int) -> None:
    choices = [{"id": f"c{i}", "label": {"en": f"c{i}"}} for i in range(n)]
    body["strata"] = [{"id": "region", "text": {"en": "?"}, "choices": choices}]


def public_questions(body: dict[str, Any], n: int) -> None:
    choices = [{"id": name, "label": {"en": name}} for name in ("a", "b")]
    body["strata"] = [{"id": f"s{i}", "text": {"en": "?"}, "choices": choices} for i in range(n)]


def blocks(body: dict[str, Any], n: int) -> None:
    first = json.dumps(body["blocks"][0])
    body["blocks"] = [json.loads(first.replace('"affair"', f'"q{i}"')) for i in range(n)]


def questions(body: dict[str, Any], n: int) -> None:
    first = json.dumps(body["blocks"][0]["questions"][0])
    body["blocks"][0]["questions"] = [
        json.loads(first.replace('"affair"', f'"q{i}"')) for i in range(n)
    ]


def claims(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["claims"] *= n


def address(body: dict[str, Any], n: int) -> None:
    body["collect_url"] = "https://collect.example/".ljust(n, "x")


def certificate(name: str) -> Edit:
    def edit(body: dict[str, Any], n: int) -> None:
        body["blocks"][0]["certificate"][name] = "1" * n

    return edit


def label(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["questions"][0]["choices"][0]["label"]["en"] = "x" * n


def identifier(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["id"] = "x" * n


LIMITS: dict[str, tuple[Edit, int, str]] = {
    "languages": (languages, 32, "languages"),
    "choices of a question": (public_choices, 1000, "strata[0].choices"),
    "public questions": (public_questions, 8, "strata"),
    "blocks": (blocks, 100, "blocks"),
    "claims of a block": (claims, 16, "blocks[0].claims"),
    "characters of the address": (address, 2000, "collect_url"),
    "digits of a certificate's value": (certificate("value"), 64, "blocks[0].certificate.value"),
    "digits of a certificate's bound": (certificate("bound"), 64, "blocks[0].certificate.bound"),
    "characters of a text": (label, 4000, "blocks[0].questions[0].choices[0].label.en"),
    "characters of an id": (identifier, 64, "blocks[0].id"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_is_read_and_one_more_is_refused_by_name(name: str) -> None:
    edit, limit, field = LIMITS[name]
    body = json.loads(PAYLOAD)
    edit(body, limit)
    SurveyDocument.parse(canonical.dumps(body))
    body = json.loads(PAYLOAD)
    edit(body, limit + 1)
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(canonical.dumps(body))
    assert (caught.value.reason, caught.value.field) == ("schema", field)


def test_counts_of_all_strata_together_stay_exact_numbers() -> None:
    half = MAX_INT // 2
    document = in_strata(((half, 1), (1, 1)), ((half + 1, 1), (1, 1)))
    assert SurveyDocument.parse(document.payload()) == document
    above = in_strata(((half, 1), (1, 1)), ((half + 2, 1), (1, 1)))
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(above.payload())
    assert caught.value.field == "blocks[0].claims[0].prior.tables"
    assert "2^53" in caught.value.detail


def test_a_block_built_in_python_has_one_to_sixteen_claims_too() -> None:
    block = ldp_block()
    replace(block, promises=block.promises * 16)
    for n in (0, 17):
        with pytest.raises(DocumentRejected) as caught:
            replace(block, promises=block.promises * n)
        assert caught.value.field == "claims"


def test_a_block_rests_on_a_prior_if_one_of_its_promises_does() -> None:
    block, free = lip_block(), ldp_block().promises
    assert block.rests_on_prior
    assert replace(block, promises=(*block.promises, *free)).rests_on_prior
    assert not replace(block, promises=free).rests_on_prior


def test_too_many_questions_of_a_block_are_refused_by_their_number_first() -> None:
    """A block with 16 questions fails because of its joint answers; from 17 questions on, it fails
    because of their number."""
    for n, field in ((16, "blocks[0].weights"), (17, "blocks[0].questions")):
        body = json.loads(PAYLOAD)
        questions(body, n)
        with pytest.raises(DocumentRejected) as caught:
            SurveyDocument.parse(canonical.dumps(body))
        assert caught.value.field == field
