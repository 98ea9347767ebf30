# SPDX-License-Identifier: Apache-2.0
"""Survey documents: round trips, strict parsing, and errors that name the field."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.audit import ceiling
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import ClockError, DocumentRejected, FranklyError
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frankly_protocol.samples import (
    NOW,
    at,
    in_strata,
    ldp_block,
    lip_block,
    oracle,
    put,
    question,
    survey,
)
from tests.narrowing import dense_of
from tests.refusals import refusal

DOCUMENT = survey()
PAYLOAD = DOCUMENT.payload()
HALVES, NO_COUNTS = [[1, 1], [1, 1]], [[0, 0], [0, 0]]


def test_a_document_survives_its_bytes() -> None:
    again = SurveyDocument.parse(PAYLOAD)
    assert again == DOCUMENT
    assert again.payload() == PAYLOAD
    assert again.digest == canonical.digest(PAYLOAD)
    again.require_private()


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    body = json.loads(PAYLOAD)
    edit(body)
    return canonical.dumps(body)


W = [list(row) for row in dense_of(DOCUMENT.blocks[0].numbered_mechanism).weights]
CASES: list[tuple[Callable[[dict[str, Any]], object], str, str | None]] = [
    (put("extra", 1), "schema", "extra"),
    (put("title", ...), "schema", "title"),
    (put("type", "frankly.survey/3"), "type", "type"),
    (put("token", {"issuer": None}), "schema", "token.issuer"),
    (put("token", {"kind": "blind", "key": None}), "type", "token.kind"),
    (put("token", {"kind": "invite", "key": "AAAA"}), "schema", "token.key"),
    (put("token", {"kind": "rsa-pss", "key": None}), "schema", "token.key"),
    (put("token", {"kind": "rsa-pss", "key": "=" * 100}), "schema", "token.key"),
    (put("survey", "AB" * 16), "schema", "survey"),
    (put("version", 0), "schema", "version"),
    (put("version", True), "schema", "version"),
    (put("version", 2), "schema", "prev"),
    (put("prev", "sha256:1"), "schema", "prev"),
    (put("issued", "2026-01-01"), "schema", "issued"),
    (put("expires", "2028-01-01T00:00:00Z"), "schema", "expires"),
    (put("closes", "2026-01-01T00:00:00Z"), "schema", "expires"),
    (put("expires", "9999-12-31T23:59:59Z"), "schema", "expires"),
    (put("issued", "0001-01-01T00:00:00Z"), "schema", "issued"),
    (put("title.en", "Fine\n  No reader can learn anything."), "schema", "title.en"),
    (
        put("blocks.0.questions.0.choices.0.label.en", "no)\n  No reader"),
        "schema",
        "blocks[0].questions[0].choices[0].label.en",
    ),
    (put("languages", []), "schema", "languages"),
    (put("languages", ["en", "fr"]), "schema", "title.fr"),
    (put("title.en", ""), "schema", "title.en"),
    (put("title.en", "a\u202eb"), "schema", "title.en"),
    (put("min_reports", 1), "schema", "min_reports"),
    (put("release_every", "minute"), "schema", "release_every"),
    (put("release_every", 1), "schema", "release_every"),
    (put("release_step", 1), "schema", "release_step"),
    (put("release_step", 51), "schema", "release_step"),
    (put("release_step", ...), "schema", "release_step"),
    (put("blocks", []), "schema", "blocks"),
    (lambda b: b["blocks"].append(b["blocks"][0]), "schema", "blocks"),
    (put("blocks.0.kind", "sparse"), "type", "blocks[0]"),
    (put("blocks.0.kind", ...), "schema", "blocks[0].bits"),
    (put("blocks.0.kind", "unary"), "schema", "blocks[0].answers"),
    (put("blocks.0.claims", []), "schema", "blocks[0].claims"),
    (put("blocks.0.claims", None), "schema", "blocks[0].claims"),
    (put("blocks.0.claims.0", 1), "schema", "blocks[0].claims[0]"),
    (
        lambda b: b["blocks"][0]["claims"].extend(b["blocks"][0]["claims"] * 16),
        "schema",
        "blocks[0].claims",
    ),
    (put("blocks.0.claims.0.notion", "trust-me"), "type", "blocks[0].claims[0]"),
    (put("blocks.0.claims.0.notion", ["ldp"]), "type", "blocks[0].claims[0]"),
    (put("blocks.0.claims.0.notion", ...), "schema", "blocks[0].claims[0].level"),
    (put("blocks.0.claims.0.notion", "lip"), "schema", "blocks[0].claims[0].prior"),
    (put("blocks.0.claims.0.notion", "alip"), "schema", "blocks[0].claims[0].low_level"),
    (put("blocks.0.claims.0.notion", "dp"), "schema", "blocks[0].claims[0].delta"),
    (put("blocks.0.id", "A B"), "schema", "blocks[0].id"),
    (put("blocks.0.questions.0.choices", []), "schema", "blocks[0].questions[0].choices"),
    (put("blocks.0.questions.0.choices.1.id", "no"), "schema", "blocks[0].questions[0].choices"),
    (put("blocks.0.weights.0.0", W[0][0] + 1), "weights", "blocks[0].weights[0]"),
    (put("blocks.0.weights.0.0", -1), "weights", "blocks[0].weights[0]"),
    (put("blocks.0.weights.0.0", True), "weights", "blocks[0].weights[0]"),
    (put("blocks.0.weights.1", []), "weights", "blocks[0].weights[1]"),
    (put("blocks.0.weights", "none"), "weights", "blocks[0].weights"),
    (put("blocks.0.bits", 47), "weights", "blocks[0].weights[0]"),
    (put("blocks.0.bits", 64), "weights", "blocks[0].bits"),
    (lambda b: b["blocks"][0]["weights"].append(W[0]), "weights", "blocks[0].weights"),
    (put("blocks.0.claims.0.level", [1]), "schema", "blocks[0].claims[0].level"),
    (put("blocks.0.claims.0.level.1", 0), "schema", "blocks[0].claims[0].level[1]"),
    (put("blocks.0.claims.0.level.1", 2**48 + 2**10), "privacy", "blocks[0].claims[0].level"),
    (put("blocks.0.claims.0.level", [1, 2]), "privacy", "blocks[0].claims[0].level"),
    (put("blocks.0.ceiling", None), "privacy", "blocks[0].ceiling"),
    (put("blocks.0.ceiling", [3, 1]), "privacy", "blocks[0].ceiling"),
    (put("blocks.0.claims.0.prior", {}), "schema", "blocks[0].claims[0].prior"),
    (put("blocks.0.claims.0.level", None), "schema", "blocks[0].claims[0].level"),
    (put("blocks.0.claims.0.level", [1.5, 1]), "canonical", None),
    (put("blocks.1.claims.0.prior", None), "schema", "blocks[1].claims[0].prior"),
    (
        put("blocks.1.claims.0.prior.tables.0.0.0", -1),
        "schema",
        "blocks[1].claims[0].prior.tables[0][0][0]",
    ),
    (
        put("blocks.1.claims.0.prior.tables.0.0", [1, 2, 3]),
        "schema",
        "blocks[1].claims[0].prior.tables[0]",
    ),
    (
        put("blocks.1.claims.0.prior.tables.0", [[1, 2, 3]] * 2),
        "privacy",
        "blocks[1].claims[0].prior.tables[0][0]",
    ),
    (
        put("blocks.1.claims.0.prior.tables.0.0", [0, 0]),
        "privacy",
        "blocks[1].claims[0].prior.tables[0][0]",
    ),
    (put("blocks.1.claims.0.prior.tables", []), "schema", "blocks[1].claims[0].prior.tables"),
    (
        put("blocks.1.claims.0.prior.tables", [HALVES, HALVES]),
        "schema",
        "blocks[1].claims[0].prior.tables",
    ),
    (
        put("blocks.1.claims.0.prior.tables", [HALVES, [[1, 1]]]),
        "schema",
        "blocks[1].claims[0].prior.tables[1]",
    ),
    (
        put("blocks.1.claims.0.prior.tables", [HALVES, [[0, 0], [0, 0]]]),
        "schema",
        "blocks[1].claims[0].prior.tables[1]",
    ),
    (
        put("blocks.1.claims.0.prior.tables", [[[MAX_INT, 1], [1, 1]]] * 2),
        "schema",
        "blocks[1].claims[0].prior.tables",
    ),
    (
        put("blocks.1.claims.0.prior.tables.0", [[1, 99], [99, 1]]),
        "privacy",
        "blocks[1].claims[0].level",
    ),
    (put("blocks.0.design_prior", [1, 0]), "schema", "blocks[0].design_prior"),
    (put("blocks.0.design_prior", [1, 1, 1]), "schema", "blocks[0].design_prior"),
]


@pytest.mark.parametrize(("edit", "reason", "field"), CASES, ids=range(len(CASES)))
def test_faults_are_named_by_reason_and_field(edit: Any, reason: str, field: str) -> None:
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(edited(edit)).require_private()
    assert (caught.value.reason, caught.value.field) == (reason, field)


def test_one_unit_moved_inside_a_row_breaks_an_exact_promise() -> None:
    """The level equals the ratio of the weights; after one unit is moved, the document is refused."""
    block = ldp_block()
    assert block.ceiling is not None
    exact = replace(block, promises=at(block, block.ceiling.as_integer_ratio()))
    survey(exact).require_private()
    (on, off), second_row = dense_of(exact.numbered_mechanism).weights
    altered = DenseMechanism(48, ((on + 1, off - 1), second_row))
    with pytest.raises(DocumentRejected) as caught:
        survey(replace(exact, mechanism=altered, ceiling=ceiling(altered))).require_private()
    assert (caught.value.reason, caught.value.field) == ("privacy", "blocks[0].claims[0].level")


WINDOW = [(-25, "opens"), (0, None), (24 * 29, None), (24 * 31, "closes"), (-24, None)]


@pytest.mark.parametrize(("hours", "field"), WINDOW)
def test_the_window_shows_both_times(hours: int, field: str | None) -> None:
    if field is None:
        DOCUMENT.require_window(NOW + timedelta(hours=hours))
        return
    error = refusal(ClockError, DOCUMENT.require_window, NOW + timedelta(hours=hours))
    assert error.field == field
    assert "2026-05-31T12:00:00Z" in error.detail


def test_several_questions_of_a_block_count_in_row_major_order() -> None:
    mechanism = DenseMechanism(
        4, tuple(tuple(1 + 10 * (x == y) for y in range(6)) for x in range(6))
    )
    questions = (question("a", "p", "q"), question("b", "r", "s", "t"))
    block = replace(
        ldp_block(),
        questions=questions,
        mechanism=mechanism,
        promises=at(ldp_block(), (11, 1)),
        ceiling=ceiling(mechanism),
        design_prior=(1,) * 6,
    )
    assert [block.truth({"a": a, "b": b}) for a in "pq" for b in "rst"] == list(range(6))
    with pytest.raises(KeyError):
        block.truth({"a": "p", "b": "p"})


@settings(max_examples=300)
@given(st.data())
def test_the_oracle_accepts_every_accepted_mutation(data: st.DataObject) -> None:
    """Every document that is accepted after edits satisfies its privacy claims."""
    body = json.loads(PAYLOAD)
    for _ in range(data.draw(st.integers(1, 3))):
        target: Any = body
        path: list[Any] = []
        while isinstance(target, dict | list) and target:
            key = data.draw(
                st.sampled_from(sorted(target) if isinstance(target, dict) else range(len(target)))
            )
            path.append(key)
            parent, target = target, target[key]
        step: Any = data.draw(st.sampled_from([1, -1, 2**20, None, "x", [], True]))
        parent[path[-1]] = target + step if type(target) is int and type(step) is int else step
    try:
        document = SurveyDocument.parse(canonical.dumps(body))
        document.require_private()
    except FranklyError:
        return
    for block in document.blocks:
        (promise,) = block.promises
        joint = promise.prior.table if promise.prior else ((1,) * block.mechanism.answers,)
        assert isinstance(block.mechanism, DenseMechanism)
        needed = oracle(block.mechanism, promise.claim.notion, joint)
        assert needed is not None
        assert block.ratio is not None
        assert needed <= block.ratio


def test_the_two_kinds_of_block_are_as_this_file_assumes() -> None:
    assert not ldp_block().rests_on_prior
    assert lip_block().promises[0].secret == "affair"
    assert lip_block().ceiling is None


def test_a_prior_by_stratum_survives_its_bytes_and_is_verified_within_every_stratum() -> None:
    original = in_strata(((60, 40), (50, 50)), ((30, 20), (40, 60)))
    parsed = SurveyDocument.parse(original.payload())
    assert parsed == original
    assert parsed.blocks[0].promises[0].claim.joint == ((90, 60), (90, 110))
    parsed.require_private()
    # Two priors have equal sums over strata; in `broken`, the southern answers determine the
    # secret.
    separated = in_strata(((59, 1), (49, 1)), ((1, 39), (1, 49)))
    separated.require_private()
    determined = in_strata(((60, 0), (1, 0)), ((0, 40), (49, 50)))
    determined.require_private()  # all in the north answer "good", so the report is constant there
    broken = in_strata(((30, 20), (25, 25)), ((30, 0), (0, 30)))
    error = refusal(DocumentRejected, broken.require_private)
    assert (error.reason, error.field) == ("privacy", "blocks[0].claims[0].level")


def test_a_secret_that_is_impossible_in_a_stratum_is_ignored_there() -> None:
    in_strata(((60, 40), (0, 0)), ((30, 20), (40, 60))).require_private()
    with pytest.raises(DocumentRejected) as caught:
        in_strata(((60, 40), (0, 0)), ((30, 20), (0, 0))).require_private()
    assert caught.value.field == "blocks[0].claims[0].prior.tables[0][1]"


@pytest.mark.parametrize(
    ("tables", "accepted"),
    [
        ((((6, 4), (50, 50)), ((3, 2), (40, 60))), True),
        ((((6, 4), (50, 50)), ((30, 20), (1, 2))), False),
        ((((6, 4), (50, 50)), ((0, 0), (1, 2))), True),  # no respondent has the secret
        ((((6, 4), (50, 50)), ((1, 2), (0, 0))), False),  # all respondents have the secret
    ],
)
def test_a_bound_on_a_posterior_holds_within_every_stratum(tables: Any, accepted: bool) -> None:
    document = in_strata(*tables)
    claim = replace(document.blocks[0].promises[0].claim, notion="dpv", level=(1, 4), sensitive=0)
    promise = replace(document.blocks[0].promises[0], claim=claim)
    document = replace(document, blocks=(replace(document.blocks[0], promises=(promise,)),))
    if accepted:
        document.require_private()
        return
    with pytest.raises(DocumentRejected, match="dpv"):
        document.require_private()
