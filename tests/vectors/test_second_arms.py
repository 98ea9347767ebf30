# SPDX-License-Identifier: Apache-2.0
"""Second implementation of arms, on documents written by hand."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.vectors import second_arms, second_documents, second_numbers
from tests.vectors.second_bytes import Refused

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "survey.schema.json").read_text(encoding="utf-8"))
PAYLOADS = {
    case["name"]: case["payload"]
    for case in json.loads((ROOT / "tests/vectors/documents.json").read_text("utf-8"))["documents"]
}
CHOICES = [{"id": name, "label": {"en": name}} for name in ("n", "south")]
ITEM = {"id": "item", "text": {"en": "?"}, "choices": CHOICES, "answer": "n"}
EACH = [[[5, 2, 1, 3], [1, 4, 2, 2], [2, 2, 6, 1]]] * 2


def _block(name: str) -> Any:
    return json.loads(PAYLOADS[name])["blocks"][0]


def _split() -> Any:
    """Return a document of two arms that ask questions with one id in blocks of two kinds."""
    document = json.loads(PAYLOADS["dense ldp"])
    other = _block("unary ldp")
    other["questions"][0]["id"] = "dense-ldp-a"
    document["blocks"].append(other)
    document["strata"] = [
        {"id": name, "text": {"en": "?"}, "choices": CHOICES} for name in ("region", "sex")
    ]
    arms = [
        {"id": "a", "chance": 16384, "strata": ["region"], "blocks": ["dense-ldp"]},
        {"id": "long", "chance": 49152, "strata": ["sex"], "blocks": ["unary-ldp"]},
    ]
    return document | {"arms": {"id": "arm", "arms": arms}}


def _edited(edits: dict[str, Any]) -> Any:
    document = _split()
    for path, value in edits.items():
        *places, last = [int(name) if name.isdigit() else name for name in path.split(".")]
        holder = document
        for place in places:
            holder = holder[place]
        holder[last] = value
    return document


FIRST, SECOND = "arms.arms.0.", "arms.arms.1."
REFUSED: dict[str, dict[str, Any]] = {
    "null": {"arms": None},
    "one arm": {"arms.arms": [{"id": "a", "chance": 65535, "strata": ["sex"], "blocks": []}]},
    "no chance": {FIRST + "chance": 0, SECOND + "chance": 65536},
    "another sum": {FIRST + "chance": 16385},
    "two arms of one id": {SECOND + "id": "a"},
    "an unknown public question": {SECOND + "strata": ["sex", "x"]},
    "a public question twice": {SECOND + "strata": ["sex", "sex"]},
    "an unknown block": {FIRST + "blocks": ["dense-ldp", "region"]},
    "a block twice": {FIRST + "blocks": ["dense-ldp", "dense-ldp"]},
    "nothing asked": {
        FIRST + "strata": [],
        FIRST + "blocks": [],
        SECOND + "strata": ["sex", "region"],
    },
    "a block in no arm": {FIRST + "blocks": []},
    "a public question in no arm": {FIRST + "strata": []},
    "two public questions of one id": {"strata.1.id": "region", SECOND + "strata": ["region"]},
    "a question with the id of arms": {"blocks.1.questions.0.id": "arm"},
    "an item with the id of arms": {"instructed": ITEM | {"id": "arm"}},
    "one id in one arm": {FIRST + "blocks": ["dense-ldp", "unary-ldp"]},
    "an id of a public question of the arm": {"blocks.1.questions.0.id": "sex"},
    "a rule of another arm": {
        "blocks.1.questions.1.choices.1.role": "not_applicable",
        "blocks.1.questions.1.ask_if": {"question": "dense-ldp-b", "choices": ["no"]},
    },
    "a repetition of another arm's": {"blocks.1.questions.1.anchor": {"repeats": "dense-ldp-b"}},
    "an item beside a prior": {
        "blocks.1": _block("dense lip"),
        SECOND + "blocks": ["dense-lip"],
        "instructed": ITEM,
    },
    "tables of another number": {
        "blocks.1": _block("dense lip"),
        "blocks.1.claims.0.prior.tables": EACH,
        SECOND + "blocks": ["dense-lip"],
        SECOND + "strata": ["sex", "region"],
    },
}
ACCEPTED: dict[str, dict[str, Any]] = {
    "two arms": {},
    "an item": {"instructed": ITEM},
    "a public question of the other arm": {"blocks.1.questions.0.id": "region"},
    "an arm in the clear": {
        FIRST + "blocks": [],
        SECOND + "blocks": ["unary-ldp", "dense-ldp"],
        "blocks.1.questions.0.id": "x",
    },
    "a repetition in the arm": {"blocks.1.questions.1.anchor": {"repeats": "dense-ldp-a"}},
    "tables of the arm": {
        "blocks.1": _block("dense lip"),
        "blocks.1.claims.0.prior.tables": EACH,
        SECOND + "blocks": ["dense-lip"],
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_faults_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="4"):
        second_documents.require_form(_edited(REFUSED[name]), SCHEMA)


@pytest.mark.parametrize("name", ACCEPTED)
def test_arms_of_their_own_are_accepted(name: str) -> None:
    document = _edited(ACCEPTED[name])
    second_documents.require_form(document, SCHEMA)
    second_documents.require_private(document)


def test_views_have_the_order_of_the_arm() -> None:
    document = _edited(
        {
            "blocks.1.questions.0.id": "x",
            SECOND + "blocks": ["unary-ldp", "dense-ldp"],
            SECOND + "strata": ["sex", "region"],
        }
    )
    view = second_arms.views(document)["long"]
    assert [block["id"] for block in view["blocks"]] == ["unary-ldp", "dense-ldp"]
    assert [question["id"] for question in view["strata"]] == ["region", "sex"]


def test_every_number_draws_an_arm_with_its_chance() -> None:
    document = _split()
    drawn = Counter(
        second_arms.drawn(document, second_numbers.Bits([[16, f"{number:x}"]]))
        for number in range(2**16)
    )
    assert drawn == {"a": 16384, "long": 49152}


def test_reports_of_all_arms_have_one_length_and_name_the_arm() -> None:
    document = _split()
    reports = []
    for arm, strata, bits in (
        ("a", {"region": "n"}, [[48, "0"], [128, "1"]]),
        ("long", {"sex": "south"}, [[192, "0"], [128, "1"]]),
    ):
        case = {"bits": bits, "truths": [0], "strata": strata | {"arm": arm}, "token": None}
        reports.append(second_numbers.report(document, "sha256:" + "0" * 64, case))
        assert json.loads(reports[-1])["strata"]["arm"] == arm
    assert len(reports[0]) == len(reports[1])
    assert not reports[1].endswith(" ")
