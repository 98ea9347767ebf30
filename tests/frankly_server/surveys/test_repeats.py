# SPDX-License-Identifier: Apache-2.0
"""Questions of survey files that ask an earlier one again: both copies are one part, or they are refused."""

from dataclasses import replace
from typing import Any

import pytest
from frankly_design.kinds.parts import part_blocks
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.questions import Anchor
from frankly_server.surveys import anchors
from frankly_server.surveys.changes import differences
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.draft_changes import summary
from frankly_server.surveys.drafting import DraftedForm, draft_blocks

from tests.frankly_server.surveys.samples import VALIDATOR
from tests.frankly_server.surveys.test_anchors import (
    AFTER,
    BOXES,
    ITEM,
    JANUARY,
    MONTH,
    SIX,
    SMOKES,
    block,
    document,
    drafted,
    file,
    form,
)
from tests.refusals import refusal

AGAIN: dict[str, Any] = {"anchor": {"repeats": "smokes"}}
DRINKS = {name: value for name, value in JANUARY.items() if name != "anchor"}
TWICE = SMOKES | AGAIN | {"id": "smokes-2", "text": {"en": "Do you smoke cigarettes?"}}
MOOD: dict[str, Any] = {
    "id": "mood", "text": {"en": "How are you?"}, "no_answer": True, "wanted": "mean", "type": "scale",
    "choices": [{"id": f"m{i}", "label": {"en": f"{i}"}, "score": i} for i in (1, 2, 3)],
}  # fmt: skip
MOOD_TWICE = {
    **{name: value for name, value in MOOD.items() if name != "wanted"},
    "id": "mood-2",
    "anchor": {"repeats": "mood"},
}
USES = BOXES | {"id": "uses", "text": {"en": "What?"}, "type": "multi"}
GOOD: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "next to it": (form(SMOKES, TWICE), (0, 1)),
    "others between": (form(DRINKS, SMOKES, MONTH, TWICE), (1, 3)),
    "a scale with a refusal": (form(MOOD, SMOKES, MOOD_TWICE), (0, 2)),
    "the first in a joint table": (
        form(SMOKES, DRINKS, TWICE, cross_tables=[["smokes", "january"]]),
        (0, 2),
    ),
    "importance and counts of the first": (
        form(SMOKES | {"expected": [3, 1]}, TWICE | {"importance": "4"}, MONTH),
        (0, 1),
    ),
    "boxes before": (form(USES, SMOKES, TWICE), (2, 3)),
    "an anchor in a block": (
        file(block(JANUARY), form={"questions": [SMOKES, TWICE], "epsilon": "1", "ask": "all"}),
        (0, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_both_copies_are_one_part_of_the_signed_form(name: str) -> None:
    given, repeat = GOOD[name]
    definition = parse_value(given)
    assert parse_definition(definition.to_yaml()) == definition
    assert SurveyDefinition.from_json(definition.to_json()) == definition
    assert VALIDATOR.is_valid(given)
    signed = SurveyDocument.parse(document(definition).payload())
    in_form = next(one for one in signed.blocks if isinstance(one.mechanism, AgreementMechanism))
    first, second = (in_form.questions[i] for i in repeat)
    assert second.anchor == Anchor(repeats=first.id)
    assert isinstance(in_form.mechanism, AgreementMechanism)
    assert [part for part in in_form.mechanism.parts if repeat[1] in part] == [repeat]
    assert [anchors.asks_again(part) for part in part_blocks(in_form)].count(True) == 1


def repeated(**fields: Any) -> dict[str, Any]:
    return TWICE | fields


LONG = MONTH | {"choices": [{"id": f"m{i}", "label": {"en": f"Month {i}"}} for i in range(17)]}
OTHER_ORDER = [{"id": "yes", "label": {"en": "Yes"}}, {"id": "no", "label": {"en": "No"}}]
CROSS = {"cross_tables": [["smokes-2", "month"]]}
AT = "form.questions[1].anchor.repeats"
# The file; code and field of the error, and part of its way out.
BAD: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "nothing": (form(SMOKES, repeated(anchor={})), "field_missing", "form.questions[1].anchor.counts",
                "counts and source, or only repeats"),
    "with counts": (form(SMOKES, repeated(anchor={"repeats": "smokes", "counts": [1, 2]})), "definition_invalid",
                    "form.questions[1].anchor.counts", "leave this out, or repeats"),
    "with a source": (form(SMOKES, repeated(anchor={"repeats": "smokes", "source": "a"})), "definition_invalid",
                      "form.questions[1].anchor.source", "leave this out, or repeats"),
    "no id": (form(SMOKES, repeated(anchor={"repeats": "So?"})), "definition_invalid", AT, "a-z"),
    "in blocks": (file(block(SMOKES), block(TWICE)), "definition_invalid",
                  "blocks[1].questions[0].anchor.repeats", "move both questions there"),
    "in one block": (file(block(SMOKES, TWICE)), "definition_invalid",
                     "blocks[0].questions[1].anchor.repeats", "move both questions there"),
    "a block's question": (file(block(SMOKES), form={"questions": [TWICE], "epsilon": "1"}), "definition_invalid",
                           "form.questions[0].anchor.repeats", "no earlier question of the form"),
    "a public question": (file(block(SMOKES), strata=[TWICE]), "definition_invalid", "strata[0].anchor",
                          "move the question"),
    "itself": (form(MONTH, repeated(anchor={"repeats": "smokes-2"})), "definition_invalid", AT, "leave this out"),
    "a later one": (form(TWICE, SMOKES), "definition_invalid", "form.questions[0].anchor.repeats", "leave this out"),
    "none": (form(SMOKES, repeated(anchor={"repeats": "drinks"})), "definition_invalid", AT, "write smokes"),
    "other choices": (form(SMOKES, MONTH | AGAIN), "definition_invalid", AT, "same choices"),
    "another order": (form(SMOKES, repeated(type="single", choices=OTHER_ORDER)), "definition_invalid", AT,
                      "same order"),
    "a refusal more": (form(SMOKES, repeated(no_answer=True)), "definition_invalid", AT, "same choices"),
    "a box": (form(USES, repeated(anchor={"repeats": "uses-a"})), "definition_invalid", AT, "no boxes"),
    "boxes again": (form(SMOKES, BOXES | TWICE | {"type": "multi"}), "definition_invalid", AT, "of the type yes-no"),
    "a rule": (form(SMOKES | {"not_applicable": True}, TWICE | AFTER), "definition_invalid", AT, "remove one"),
    "a rule of the first": (
        form(SMOKES, SMOKES | AFTER | {"id": "drinks"}, repeated(not_applicable=True, anchor={"repeats": "drinks"})),
        "definition_invalid", "form.questions[2].anchor.repeats", "asks everybody"),
    "a mean": (form(MOOD, MOOD_TWICE | {"wanted": "mean"}), "definition_invalid", "form.questions[1].wanted",
               "leave this out"),
    "a contrast": (form(SMOKES, repeated(wanted="contrast", contrast=[0, 1])), "definition_invalid",
                   "form.questions[1].wanted", "leave this out"),
    "expected counts": (form(SMOKES, repeated(expected=[1, 2])), "definition_invalid",
                        "form.questions[1].expected", "of the first question"),
    "many choices": (form(LONG, LONG | {"id": "month-2", "anchor": {"repeats": "month"}}), "choices_count", AT,
                     "fewer choices"),
    "in a joint table": (form(SMOKES, TWICE, MONTH, **CROSS), "definition_invalid", AT, "name the first one"),
    "beside an item": (form(SMOKES, TWICE) | ITEM, "unsupported", AT, "keep one of the two"),
    "beside known shares": (form(JANUARY, SMOKES, TWICE), "definition_invalid", "form.questions[2].anchor.repeats",
                            ": leave this out"),
    "known shares beside it": (form(SMOKES, TWICE, JANUARY), "definition_invalid", "form.questions[2].anchor",
                               "a block of its own"),
    "a third time": (form(SMOKES, TWICE, repeated(id="smokes-3")), "definition_invalid",
                     "form.questions[2].anchor.repeats", ": leave this out"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_repetition_is_refused_at_its_field(name: str) -> None:
    given, code, at, words = BAD[name]
    error = refusal(InvalidInput, parse_value, given)
    assert (error.code, error.field) == (code, at)
    assert words in error.detail


@pytest.mark.parametrize("anchor", [{}, {"counts": [1, 2]}, {"repeats": "a", "source": "b"}])
def test_the_schema_refuses_half_an_anchor_and_a_mixture(anchor: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(form(SMOKES, repeated(anchor=anchor)))


@pytest.mark.parametrize("ask", ["drawn", None])
def test_a_form_that_may_ask_both_copies_alone_is_refused(ask: str | None) -> None:
    definition = drafted(form(SMOKES, TWICE, *SIX) | {"budget": "1"}, ask=ask)
    error = refusal(InvalidInput, document, definition)
    assert (error.code, error.field) == ("unsupported", "form.ask")
    assert error.detail.endswith(
        "asked twice says nothing about people who are asked others: write ask: all"
    )
    document(drafted(form(SMOKES, TWICE, *SIX) | {"budget": "1"}, ask="all"))


def test_what_reports_tell_of_equal_answers_is_decided_exactly() -> None:
    """Tables over yes/yes, yes/no, no/yes and no/no, of which only the first two tell equal answers."""
    (designed,) = draft_blocks(parse_value(form(SMOKES, TWICE)))
    part = next(one for one in part_blocks(designed.block) if anchors.asks_again(one))
    anchors.require_telling(part, "here")
    tables = {
        ((12, 4), (4, 12), (4, 12), (12, 4)): True,
        ((12, 4), (4, 12), (12, 4), (12, 4)): True,
        ((12, 4), (12, 4), (4, 12), (4, 12)): False,
        ((12, 4), (4, 12), (4, 12), (11, 5)): False,
        ((8, 8), (4, 12), (12, 4), (8, 8)): False,
        ((8, 8),) * 4: False,
    }
    for weights, tells in tables.items():
        table = DenseMechanism(4, weights)
        changed = replace(part, mechanism=table, ceiling=stated_ceiling(table))
        if tells:
            anchors.require_telling(changed, "here")
            continue
        error = refusal(InvalidInput, anchors.require_telling, changed, "here")
        assert (error.code, error.field) == ("not_identifiable", "here")
        assert "raise the level" in error.detail


def test_the_importance_is_that_of_the_share_of_equal_answers() -> None:
    def variances(importance: str) -> tuple[float, ...]:
        (found,) = draft_blocks(parse_value(form(SMOKES, repeated(importance=importance))))
        assert isinstance(found, DraftedForm)
        return found.design.variances

    low, high = variances("1"), variances("9")
    assert high[1] < low[1]
    assert low[0] < high[0]


def test_a_repetition_is_a_difference_between_versions() -> None:
    with_it = parse_value(form(SMOKES, TWICE))
    without = parse_value(form(SMOKES, TWICE | {"anchor": None}))
    old, new = (one.model_dump(mode="json", exclude_defaults=True) for one in (without, with_it))
    assert differences(old, new) == ["+ form.questions[1].anchor.repeats: smokes"]
    assert summary(old, new) == ["changed “Do you smoke cigarettes?”"]
