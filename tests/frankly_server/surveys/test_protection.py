# SPDX-License-Identifier: Apache-2.0
"""Protection step of the wizard: every promise that the step offers is published and verified."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys import editing
from frankly_server.surveys.csv_prior import read_counts
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.drafting import draft_blocks, draft_document
from frankly_server.surveys.priors import small_cells
from frankly_server.surveys.protection import (
    NOTIONS,
    Protection,
    main_question,
    protect,
    unsupported_features,
)

from tests.frankly_server.surveys.drafts import add_question
from tests.frankly_server.surveys.samples import PLACE

ATTRIBUTE = read_counts(b",no,yes\nlow,300,100\nhigh,150,250\n")
JOINT = read_counts(b",no-own,no-rent,yes-own,yes-rent\nlow,300,180,200,120\nhigh,60,90,80,170\n")


def draft() -> editing.Draft:
    draft_value = editing.new_draft("Life", "life", "en", "Ill?", ["No", "Yes"])
    draft_value = add_question(draft_value, "Home?", ["Own", "Rent"])
    return add_question(draft_value, "Pay?", ["Low", "High"])


def published(draft_value: editing.Draft) -> tuple[SurveyDefinition, Any]:
    read = parse_value(draft_value)
    return read, draft_document(read, draft_blocks(read), PLACE)


RLDP = {"notion": "rldp", "epsilon": "1", "robust": {"order": "2", "n": "800", "beta": "0.05"}}
# Name -> (protection of the block "ill", the block's questions afterwards, the block's fields).
ASKED: dict[str, tuple[Protection, list[str], dict[str, Any]]] = {
    "the answer": (
        Protection({"epsilon": "1.5"}),
        ["ill"],
        {"notion": "ldp", "epsilon": "1.5", "prior": None},
    ),
    "answers together": (
        Protection({"epsilon": "1.5"}, together=("home",)),
        ["ill", "home"],
        {"notion": "ldp"},
    ),
    "lip": (
        Protection({"epsilon": "0.4"}, secret="Income", counts=ATTRIBUTE, source="x"),
        ["ill"],
        {"notion": "lip", "ceiling_cap": "2.9957"},
    ),
    "secret-ldp": (
        Protection(
            {"notion": "secret-ldp", "epsilon": "0.4"},
            secret="Income",
            counts=ATTRIBUTE,
            source="x",
        ),
        ["ill"],
        {"notion": "secret-ldp", "epsilon": "0.4"},
    ),
    "alip": (
        Protection(
            {"notion": "alip", "epsilon_low": "inf", "epsilon_high": "0.3"},
            secret="Income",
            counts=ATTRIBUTE,
            source="x",
        ),
        ["ill"],
        {"notion": "alip", "epsilon_low": "inf", "epsilon_high": "0.3"},
    ),
    "srlip": (
        Protection(
            {"notion": "srlip", "epsilon": "0.8"},
            secret="Income",
            counts=JOINT,
            source="x",
            together=("home",),
        ),
        ["ill", "home"],
        {"notion": "srlip", "attributes": (2, 2)},
    ),
    "rldp": (
        Protection(RLDP, other="pay", counts=ATTRIBUTE, source="x"),
        ["pay", "ill"],
        {"notion": "rldp", "epsilon": "1"},
    ),
    "another question": (
        Protection({"epsilon": "0.4"}, other="pay", counts=ATTRIBUTE, source="x"),
        ["ill"],
        {"notion": "lip"},
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_protection_is_published_and_verified(name: str) -> None:
    protection, questions, fields = ASKED[name]
    read, document = published(protect(draft(), "ill", protection))
    block = next(block for block in read.blocks if block.id == "ill")
    assert [question.id for question in block.questions] == questions
    assert {field: getattr(block, field) for field in fields} == fields
    assert main_question(block).id == "ill"
    assert unsupported_features(block) == ()
    assert sorted(q.id for b in read.blocks for q in b.questions) == ["home", "ill", "pay"]
    signed = next(block for block in document.blocks if block.id == "ill")
    assert signed.promises[0].claim.notion == fields["notion"]
    if block.prior is not None:
        assert block.prior.secret == ("pay" if protection.other else "income")


@pytest.mark.parametrize("name", ASKED)
def test_the_plain_form_undoes_every_other(name: str) -> None:
    undone = protect(draft(), "ill", Protection({"epsilon": "1"}))
    back = parse_value(
        protect(protect(draft(), "ill", ASKED[name][0]), "ill", Protection({"epsilon": "1"}))
    )
    assert {block.id: block for block in back.blocks} == {
        block.id: block for block in parse_value(undone).blocks
    }


@pytest.mark.parametrize(
    "counts",
    [
        b",yes,no\nhigh,250,150\nlow,100,300\n",
        b"\xef\xbb\xbf,Yes,No\r\nHIGH,250,150\r\nLow,100,300\r\n",
        b"counts, no ,yes\nLow,300,100\nHigh,150,250\n",
    ],
)
def test_counts_are_matched_by_name_and_not_by_position(counts: bytes) -> None:
    protection = Protection({"epsilon": "0.4"}, other="pay", counts=read_counts(counts), source="x")
    prior = parse_value(protect(draft(), "ill", protection)).blocks[0].prior
    assert prior is not None
    assert (prior.secrets, prior.joint) == (("low", "high"), (("300", "100"), ("150", "250")))


PLAIN = Protection({"epsilon": "0.4"}, secret="Income", counts=ATTRIBUTE, source="x")
# Name -> (protection, field of the error, part of its detail)
REFUSED: dict[str, tuple[Protection, str, str]] = {
    "other answers": (
        replace(PLAIN, counts=read_counts(b",maybe,yes\na,1,2\nb,3,4")),
        "counts",
        "no, yes",
    ),
    "an answer missing": (
        replace(PLAIN, counts=read_counts(b",no,none\na,1,2\nb,3,4")),
        "counts",
        "no, yes",
    ),
    "an answer twice": (
        replace(PLAIN, counts=read_counts(b",no,no,yes\na,1,2,3\nb,3,4,5")),
        "counts",
        "each once",
    ),
    "other secrets": (
        replace(PLAIN, secret=None, other="pay", counts=read_counts(b",no,yes\na,9,9\nb,9,9")),
        "counts",
        "low, high",
    ),
    "no counts": (replace(PLAIN, counts=None), "counts", "joint counts of"),
    "a notion for files": (
        replace(PLAIN, levels={"notion": "dpv", "epsilon": "0.4"}),
        "notion",
        "need a survey file",
    ),
    "srlip of one": (
        replace(PLAIN, levels={"notion": "srlip", "epsilon": "0.4"}),
        "together",
        "select at least one",
    ),
    "rldp of a secret that is no question": (
        replace(PLAIN, levels={"notion": "rldp", "epsilon": "0.4"}),
        "notion",
        "the secret as a question",
    ),
    "no such question": (replace(PLAIN, together=("nothing",)), "together", "no such"),
    "the secret together": (
        replace(PLAIN, secret=None, other="pay", together=("pay",)),
        "together",
        "leave it out",
    ),
    "itself": (replace(PLAIN, secret=None, other="ill"), "other", "a different question"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_protections_are_refused(name: str) -> None:
    protection, field, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message) as refused:
        protect(draft(), "ill", protection)
    assert refused.value.field == field


def test_a_question_protected_together_with_another_is_not_moved() -> None:
    draft_value = protect(draft(), "ill", Protection({"epsilon": "1"}, together=("home",)))
    with pytest.raises(InvalidInput, match="change that one first"):
        protect(draft_value, "pay", Protection({"epsilon": "1"}, together=("home",)))


def test_small_counts_are_named() -> None:
    protection = replace(PLAIN, counts=read_counts(b",yes,no\nlow,3,90\nhigh,40,1\n"), public=True)
    block = parse_value(protect(draft(), "ill", protection)).blocks[0]
    assert small_cells(block) == [("low", "yes", "3"), ("high", "no", "1")]
    robust = replace(protection, secret=None, other="pay", levels=RLDP)
    assert small_cells(parse_value(protect(draft(), "ill", robust)).blocks[0]) == small_cells(block)
    joint_counts = read_counts(
        b",no-own,no-rent,yes-own,yes-rent\nlow,30,18,20,2\nhigh,60,90,80,17\n"
    )
    draft_value = protect(draft(), "ill", replace(robust, counts=joint_counts, together=("home",)))
    draft_value["blocks"][0]["questions"][0]["choices"][0]["id"] = (
        "very-low"  # ids may contain hyphens
    )
    draft_value["blocks"][0]["prior"]["secrets"][0] = "very-low"
    assert small_cells(parse_value(draft_value).blocks[0]) == [("very-low", "yes-rent", "2")]
    shares = replace(protection, counts=read_counts(b",yes,no\nlow,0.25,0.25\nhigh,0.25,0.25\n"))
    assert small_cells(parse_value(protect(draft(), "ill", shares)).blocks[0]) == []


def test_the_form_lists_unsupported_settings() -> None:
    bent = {
        "notions": [{"notion": "ldp", "epsilon": "1"}],
        "criterion": "worst",
        "accept_unidentifiable": "true",
    }
    draft_value = draft()
    draft_value["blocks"][0] = {
        key: value for key, value in draft_value["blocks"][0].items() if key in ("id", "questions")
    } | bent
    block = parse_value(draft_value).blocks[0]
    assert len(unsupported_features(block)) == 3
    for notion, supported in (("pml", True), ("pmc", True), ("metric-ldp", False)):
        features = unsupported_features(block.model_copy(update={"notions": (), "notion": notion}))
        assert (f"the notion {notion}" in features) is not supported
    assert set(NOTIONS) == {"lip", "secret-ldp", "alip", "srlip", "rldp"}


LIP_BLOCK: dict[str, Any] = {
    "notion": "lip",
    "epsilon": "0.4",
    "prior": {"secret": "income", "secrets": ["low", "high"], "joint": [["300", "100"], ["150", "250"]], "source": "x"},
}  # fmt: skip
LOST: dict[str, tuple[dict[str, Any], str]] = {
    "levels of pairs": (
        {"notion": "metric-ldp", "epsilons": [["inf", "1"], ["2", "inf"]]}, "the notion metric-ldp",
    ),
    "a ceiling of one's own": ({**LIP_BLOCK, "ceiling_cap": "2"}, "a ceiling of 2 nats"),
    "a ceiling beside the answer": (
        {"notion": "ldp", "epsilon": "4", "ceiling_cap": "2.9957"}, "a ceiling of 2.9957 nats",
    ),
    "shares that are expected": (
        {"notion": "ldp", "epsilon": "1", "prior": {"joint": [["90", "10"]], "source": "x"}},
        "an expected distribution of the answers",
    ),
    "truths": ({"notion": "ldp", "epsilon": "1", "truths": ["even"]}, "plausible truths"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_settings_that_the_form_would_lose_are_named(name: str) -> None:
    written, feature = LOST[name]
    draft_value = draft()
    questions = {key: draft_value["blocks"][0][key] for key in ("id", "questions")}
    draft_value["blocks"][0] = questions | written
    assert unsupported_features(parse_value(draft_value).blocks[0]) == (feature,)


def test_the_backstop_written_in_another_way_is_the_backstop() -> None:
    draft_value = draft()
    questions = {key: draft_value["blocks"][0][key] for key in ("id", "questions")}
    draft_value["blocks"][0] = questions | LIP_BLOCK | {"ceiling_cap": "2.99570"}
    assert unsupported_features(parse_value(draft_value).blocks[0]) == ()


def test_the_guide_s_table_is_one_that_is_read(root: Path) -> None:
    csv_block = re.search(
        r"```csv\n(.*?)```", (root / "docs" / "admin.md").read_text("utf-8"), re.DOTALL
    )
    assert csv_block
    counts = read_counts(csv_block.group(1).encode())
    prior = (
        parse_value(
            protect(
                draft(),
                "ill",
                Protection({"epsilon": "0.4"}, other="pay", counts=counts, source="x"),
            )
        )
        .blocks[0]
        .prior
    )
    assert prior is not None
    assert prior.joint == (("310", "60"), ("260", "90"))
