# SPDX-License-Identifier: Apache-2.0
"""What is known of all people's answers, in survey files: it reaches the signed document, or is refused."""

import copy
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.questions import Anchor
from frankly_server.surveys import anchors
from frankly_server.surveys.changes import differences
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.draft_changes import summary
from frankly_server.surveys.drafting import Place, draft_blocks, draft_document
from frankly_server.surveys.yaml import read_yaml

from tests.refusals import refusal

PLACE = Place("0" * 32, 1, None, datetime(2026, 5, 1, tzinfo=UTC), "https://collect.example")
KNOWN = {"counts": ["11", "1"], "source": "Destatis, births 2023"}
JANUARY: dict[str, Any] = {
    "id": "january",
    "type": "yes-no",
    "text": {"en": "Born in January?"},
    "anchor": KNOWN,
}
SMOKES: dict[str, Any] = {"id": "smokes", "type": "yes-no", "text": {"en": "Do you smoke?"}}
MONTH: dict[str, Any] = {
    "id": "month", "text": {"en": "Month of birth?"},
    "choices": [{"id": f"m{i}", "label": {"en": f"Month {i}"}} for i in range(1, 13)],
}  # fmt: skip
REGION: dict[str, Any] = {
    "id": "region", "text": {"en": "Where?"},
    "choices": [{"id": name, "label": {"en": name}} for name in ("north", "south")],
}  # fmt: skip


def block(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": questions[0]["id"], "questions": [*questions], "notion": "ldp", "epsilon": "1", **fields}  # fmt: skip


def file(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head: dict[str, Any] = {
        "name": "habits",
        "title": {"en": "Habits"},
        "languages": ["en"],
        "budget": "6",
    }
    return copy.deepcopy(head | ({"blocks": [*blocks]} if blocks else {}) | fields)


def form(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return file(form={"questions": [*questions], "ask": "all", **fields})


def document(definition: SurveyDefinition) -> SurveyDocument:
    return draft_document(definition, draft_blocks(definition), PLACE)


@pytest.mark.parametrize("given", [file(block(JANUARY), block(SMOKES)), form(JANUARY, SMOKES)])
def test_an_anchor_is_written_back_and_in_the_signed_document(given: dict[str, Any]) -> None:
    definition = parse_value(given)
    assert parse_definition(definition.to_yaml()) == definition
    assert SurveyDefinition.from_json(definition.to_json()) == definition
    signed = SurveyDocument.parse(document(definition).payload()).questions
    assert signed["january"].anchor == Anchor((11, 1), "Destatis, births 2023")
    assert signed["smokes"].anchor is None


def test_a_count_may_be_0_and_a_form_and_blocks_may_have_one_each() -> None:
    never = JANUARY | {"id": "old", "anchor": KNOWN | {"counts": [1, 0]}}
    in_form = {"questions": [JANUARY, SMOKES], "epsilon": "1", "ask": "all"}
    definition = parse_value(file(block(never), block(never | {"id": "older"}), form=in_form))
    assert [path for path, _ in anchors.anchored(definition)] == [
        "blocks[0].questions[0]",
        "blocks[1].questions[0]",
        "form.questions[0]",
    ]
    assert document(definition).questions["old"].anchor == Anchor((1, 0), "Destatis, births 2023")


def test_files_without_an_anchor_keep_their_digest() -> None:
    assert "anchor" not in parse_value(form(SMOKES)).to_json()


ITEM = {"instructed": REGION | {"id": "check", "answer": "south"}}
BOXES = {"boxes": [{"id": "a", "label": {"en": "A"}}, {"id": "b", "label": {"en": "B"}}]}
AFTER = {"ask_if": {"question": "smokes", "choices": ["yes"]}, "not_applicable": True}
OTHER = JANUARY | {"id": "may"}


def known(counts: Any = None, **fields: Any) -> dict[str, Any]:
    return JANUARY | {"anchor": KNOWN | ({} if counts is None else {"counts": counts}) | fields}


# The file; code and field of the error, and part of its way out.
BAD: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no source": (form(JANUARY | {"anchor": {"counts": [11, 1]}}), "field_missing",
                  "form.questions[0].anchor.source", "missing"),
    "seventeen choices": (
        file(block(MONTH | {"choices": [{"id": f"c{i}", "label": {"en": f"C{i}"}} for i in range(17)],
                            "anchor": KNOWN | {"counts": [1, *[2] * 16]}})),
        "definition_invalid", "blocks[0].questions[0].anchor.counts", "at most 16 choices"),
    "no counts": (form(JANUARY | {"anchor": {"source": "a"}}), "field_missing",
                  "form.questions[0].anchor.counts", "missing"),
    "an empty source": (form(known(source=" ")), "field_type", "form.questions[0].anchor.source", "not empty"),
    "a long source": (form(known(source="a" * 4001)), "definition_invalid",
                      "form.questions[0].anchor.source", "at most 4000"),
    "a hidden character": (form(known(source="a\u202eb")), "text_characters",
                           "form.questions[0].anchor.source", "remove it"),
    "another field": (form(known(year="2023")), "field_unknown", "form.questions[0].anchor.year", "spelling"),
    "a negative count": (form(known([11, -1])), "field_type", "form.questions[0].anchor.counts[1]", "from 0"),
    "a share": (form(known(["0.9", "0.1"])), "field_type", "form.questions[0].anchor.counts[0]", "whole number"),
    "a flag": (form(known([True, 0])), "field_type", "form.questions[0].anchor.counts[0]", "whole number"),
    "one count": (form(known([11])), "definition_invalid", "form.questions[0].anchor.counts", "at least 2"),
    "three counts": (form(SMOKES, known([11, 1, 0])), "definition_invalid",
                     "form.questions[1].anchor.counts", "2 numbers, not 3"),
    "nobody": (file(block(known([0, 0]))), "definition_invalid",
               "blocks[0].questions[0].anchor.counts", "at least one choice"),
    "as many of each": (file(block(SMOKES), block(known([1, 1]))), "not_identifiable",
                        "blocks[1].questions[0].anchor.counts", "born in January?"),
    "the month of birth": (form(MONTH | {"anchor": KNOWN | {"counts": [1] * 12}}), "not_identifiable",
                           "form.questions[0].anchor.counts", "born in January?"),
    "a public question": (file(block(SMOKES), strata=[REGION | {"anchor": KNOWN}]), "definition_invalid",
                          "strata[0].anchor", "move the question to a block or to the form"),
    "the item": (file(block(SMOKES), instructed=ITEM["instructed"] | {"anchor": KNOWN}), "definition_invalid",
                 "instructed.anchor", "leave this out"),
    "beside an item": (file(block(JANUARY), **ITEM), "unsupported",
                       "blocks[0].questions[0].anchor", "keep one of the two"),
    "boxes": (form(JANUARY | BOXES | {"type": "multi"}), "definition_invalid",
              "form.questions[0].anchor", "type yes-no"),
    "a rule": (form(SMOKES, JANUARY | AFTER | {"anchor": KNOWN | {"counts": [11, 1, 2]}}), "definition_invalid",
               "form.questions[1].anchor", "ask_if leaves people out"),
    "a role": (form(known([11, 1, 2]) | {"no_answer": True}), "definition_invalid",
               "form.questions[0].anchor", "leave out no_answer"),
    "two roles": (form(known([11, 1, 2, 3]) | {"no_answer": True, "not_applicable": True}), "definition_invalid",
                  "form.questions[0].anchor", "leave out no_answer and not_applicable"),
    "together in a block": (file(block(SMOKES, JANUARY)), "definition_invalid",
                            "blocks[0].questions[1].anchor", "a block of its own"),
    "two in a form": (form(JANUARY, SMOKES, OTHER), "definition_invalid",
                      "form.questions[2].anchor", "a block of its own"),
    "in a joint table": (form(SMOKES, JANUARY, cross_tables=[["smokes", "january"]]), "definition_invalid",
                         "form.questions[1].anchor", "remove its pairs from cross_tables"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_anchor_is_refused_at_its_field(name: str) -> None:
    given, code, at, words = BAD[name]
    error = refusal(InvalidInput, parse_value, given)
    assert (error.code, error.field) == (code, at)
    assert words in error.detail


SIX = [SMOKES | {"id": f"q{i}"} for i in range(6)]


def drafted(given: dict[str, Any], **fields: Any) -> SurveyDefinition:
    """Parse a file with a form, of which these fields are set; None removes one."""
    changed = {name: value for name, value in (given["form"] | fields).items() if value is not None}
    return parse_value(given | {"form": changed})


@pytest.mark.parametrize("ask", ["drawn", None])
def test_a_form_that_may_ask_the_anchor_alone_is_refused(ask: str | None) -> None:
    """At 6 nats, a report of this form is about several questions; at one nat, about one."""
    many = form(JANUARY, *SIX) | {"budget": "6"}
    form_of = draft_blocks(parse_value(many))[0].block.mechanism
    assert isinstance(form_of, AgreementMechanism)
    assert min(len(component.slots) for component in form_of.components) > 1
    assert document(drafted(many, ask=ask)).questions["january"].anchor is not None
    definition = drafted(many | {"budget": "1"}, ask=ask)
    error = refusal(InvalidInput, document, definition)
    assert (error.code, error.field) == ("unsupported", "form.ask")
    assert "ask: all, or give that question a block of its own" in error.detail
    # The ways out, and a form without an anchor.
    for way in (
        drafted(many | {"budget": "1"}, ask="all"),
        parse_value(file(block(JANUARY), form={"questions": SIX, "epsilon": "1", "ask": "drawn"})),
        drafted(form(*SIX) | {"budget": "1"}, ask=ask),
    ):
        document(way)


def test_an_anchor_alone_in_a_form_is_asked_of_everybody() -> None:
    """Nothing is left out, so the form asks all, unless the file states that it draws."""
    alone = file(block(SMOKES), form={"questions": [JANUARY], "epsilon": "1"})
    assert not document(parse_value(alone)).blocks[1].asks_drawn
    error = refusal(InvalidInput, document, drafted(alone, ask="drawn"))
    assert error.field == "form.ask"


@pytest.mark.parametrize("mechanism", ["oue", "subset-selection", "symmetric-unary"])
def test_reports_that_are_sets_are_refused(mechanism: str) -> None:
    definition = parse_value(file(block(SMOKES), block(JANUARY, mechanism=mechanism)))
    error = refusal(InvalidInput, draft_blocks, definition)
    assert (error.code, error.field) == ("unsupported", "blocks[1].mechanism")
    assert "use optimal or grr" in error.detail
    draft_blocks(parse_value(file(block(SMOKES, mechanism=mechanism))))


@pytest.mark.parametrize("mechanism", ["optimal", "grr"])
def test_the_ways_out_work(mechanism: str) -> None:
    draft_blocks(parse_value(file(block(JANUARY, mechanism=mechanism))))


# Three choices, of which these counts make a mechanism merge the last two: reports show only who chose
# the first. A third of all people is what people who answer at random choose, too.
COUNTS = {
    "secret": "ill",
    "secrets": ["no", "yes"],
    "source": "made up",
    "joint": [[30, 5, 40], [30, 40, 5]],
}
MERGED: dict[str, Any] = {
    "notion": "lip",
    "epsilon": "0.2",
    "mechanism": "subset-merging",
    "prior": COUNTS,
}
MERGED |= {"accept_identity": True, "accept_unidentifiable": True}


def of_three(counts: list[int], **fields: Any) -> SurveyDefinition:
    asked = MONTH | {"choices": MONTH["choices"][:3], "anchor": KNOWN | {"counts": counts}}
    return parse_value(file(block(SMOKES), block(asked, **fields)))


def test_known_shares_that_look_like_random_answers_are_refused() -> None:
    designed = draft_blocks(of_three([2, 1, 3]))[1].block
    merging = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    told = replace(designed, mechanism=merging, ceiling=stated_ceiling(merging))
    error = refusal(InvalidInput, anchors.require_telling, told, "blocks[1].mechanism")
    assert (error.code, error.field) == ("not_identifiable", "blocks[1].mechanism")
    assert "use optimal or grr" in error.detail


def test_a_promise_on_counts_is_not_beside_other_known_shares() -> None:
    """Both say how people answer, and the promise would be void if the anchor were right."""
    error = refusal(InvalidInput, of_three, [5, 1, 3], **MERGED)
    assert (error.code, error.field) == ("unsupported", "blocks[1].questions[0].anchor")
    assert "protect the answers themselves (ldp)" in error.detail
    of_three([5, 1, 3])


def test_the_example_of_the_guide_is_a_survey(root: Path) -> None:
    guide = (root / "docs" / "admin.md").read_text(encoding="utf-8")
    example = guide.partition("```yaml\nblocks:\n  - id: born\n")
    given = read_yaml(b"blocks:\n  - id: born\n" + example[2].partition("```")[0].encode())
    definition = parse_value(file(block(SMOKES)) | given)
    assert draft_blocks(definition)[0].block.questions[0].anchor == Anchor(
        (1413, 48), "The calendar: 48 of the 1,461 days of four years"
    )


def test_the_decision_is_the_one_with_fractions() -> None:
    """Every anchor of 0 to 3 people per choice, with tables that merge, keep and lose the choices."""
    designed = draft_blocks(of_three([2, 1, 3]))[1].block
    tables = [((12, 4), (4, 12), (4, 12)), ((8, 4, 4), (4, 8, 4), (4, 4, 8)), ((8, 8),) * 3]
    refused = 0
    for weights, counts in product(tables, product(range(4), repeat=3)):
        if not any(counts):
            continue
        table = DenseMechanism(4, weights)
        asked = replace(designed.questions[0], anchor=Anchor(counts, "made up"))
        told = replace(designed, questions=(asked,), mechanism=table, ceiling=stated_ceiling(table))
        shares = [Fraction(n, sum(counts)) for n in counts]
        is_told = any(
            sum(p * w for p, w in zip(shares, column, strict=True)) != Fraction(sum(column), 3)
            for column in zip(*weights, strict=True)
        )
        if is_told:
            anchors.require_telling(told, "here")
        else:
            refused += 1
            assert refusal(InvalidInput, anchors.require_telling, told, "here").field == "here"
    assert refused > 63


@pytest.mark.parametrize("others", [(), (SMOKES,)])
def test_a_form_that_shows_another_figure_only_is_refused(
    others: tuple[dict[str, Any], ...],
) -> None:
    """With a contrast of the first choice, the other two are merged."""
    asked = MONTH | {"choices": MONTH["choices"][:3], "wanted": "contrast", "contrast": [1, 0, 0]}
    merged = parse_value(form(asked | {"anchor": KNOWN | {"counts": [2, 1, 3]}}, *others))
    error = refusal(InvalidInput, draft_blocks, merged)
    assert (error.code, error.field) == ("not_identifiable", "form.questions")
    assert "leave its field wanted out" in error.detail
    draft_blocks(parse_value(form(asked | {"anchor": KNOWN | {"counts": [1, 1, 4]}}, *others)))
    del asked["wanted"], asked["contrast"]
    draft_blocks(parse_value(form(asked | {"anchor": KNOWN | {"counts": [2, 1, 3]}}, *others)))


def test_a_changed_anchor_is_a_difference_between_versions() -> None:
    with_it, without = parse_value(form(JANUARY)), parse_value(form(JANUARY | {"anchor": None}))
    old, new = (one.model_dump(mode="json", exclude_defaults=True) for one in (without, with_it))
    assert differences(old, new) == [
        "+ form.questions[0].anchor.counts: [11, 1]",
        "+ form.questions[0].anchor.source: Destatis, births 2023",
    ]
    assert summary(old, new) == ["changed “Born in January?”"]
