# SPDX-License-Identifier: Apache-2.0
"""Test vectors, which equal this code's output byte for byte and agree with a second implementation."""

import base64
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.vectors import (
    make,
    second_answers,
    second_arms,
    second_bytes,
    second_documents,
    second_numbers,
    second_plans,
)
from tests.vectors.from_documents import put
from tests.vectors.second_bytes import Refused

V: dict[str, Any] = {
    name: json.loads((make.HERE / f"{name}.json").read_text("ascii")) for name in make.FILES
}


def cases_by_name(rows: list[Any]) -> Any:
    return pytest.mark.parametrize("case", rows, ids=[row.get("name") for row in rows])


@pytest.mark.parametrize("name", make.FILES)
def test_the_files_equal_the_output_of_the_code(name: str) -> None:
    stored = (make.HERE / f"{name}.json").read_text("ascii")
    assert stored == make.text(name), (
        "run python -m tests.vectors.make, and describe the change in CHANGELOG"
    )
    assert len(stored) < 250_000


@pytest.mark.parametrize("case", V["canonical"]["good"])
def test_canonical_values_have_one_text_and_one_name(case: Any) -> None:
    value = json.loads(case["text"])
    assert second_bytes.write(value) == case["text"]
    assert second_bytes.read(case["text"].encode()) == value
    assert second_bytes.digest(case["text"].encode()) == case["digest"]


@cases_by_name(V["canonical"]["bad"])
def test_json_that_is_not_canonical_is_refused(case: Any) -> None:
    assert case["code"] == "document_canonical"
    with pytest.raises(Refused):
        second_bytes.read(base64.b64decode(case["base64"]))


def test_the_pre_authentication_encoding_is_signed() -> None:
    vector = V["envelopes"]["pae"]
    message = second_bytes.signed_message(
        V["envelopes"]["payload_type"], base64.b64decode(vector["payload_base64"])
    )
    assert message.hex() == vector["message_hex"]


@cases_by_name(V["envelopes"]["cases"])
def test_envelopes_give_their_payload_or_are_refused(case: Any) -> None:
    kind = V["envelopes"]["payload_type"]
    keys = [bytes.fromhex(V["envelopes"]["public_keys"][name]) for name in case["trusted"]]
    codes = {"2": ("document_envelope", "document_type"), "3": ("document_signature",)}
    try:
        payload, signatures = second_bytes.open_envelope(case["envelope"].encode(), kind)
        second_bytes.require_signed(payload, kind, signatures, keys, case["threshold"])
    except Refused as refused:
        assert case["code"] in codes[str(refused)]
        return
    assert case["code"] is None
    assert base64.b64encode(payload).decode() == case["payload_base64"]


@cases_by_name(V["keys"]["cases"])
def test_key_chains_lead_to_a_version_or_break_at_a_step(case: Any) -> None:
    try:
        version, first_root = second_documents.chained(case)
    except Refused as refused:
        assert (str(refused), case["version"]) == (case["step"], None)
        return
    assert (version, first_root, case["step"]) == (case["version"], case["first_root"], None)


def test_trees_have_these_roots_paths_and_proofs() -> None:
    log = V["log"]
    leaves = [second_bytes.leaf(bytes.fromhex(entry)) for entry in log["entries"]]
    assert [leaf.hex() for leaf in leaves] == log["leaves"]
    assert [second_bytes.root(leaves[:n]).hex() for n in range(len(leaves) + 1)] == log["roots"]
    for case in log["inclusion"]:
        assert [h.hex() for h in second_bytes.path(case["index"], leaves[: case["size"]])] == case[
            "path"
        ]
    for case in log["consistency"]:
        assert [h.hex() for h in second_bytes.growth(case["old"], leaves[: case["new"]])] == case[
            "proof"
        ]


@cases_by_name(V["log"]["inclusion_bad"])
def test_bad_inclusion_proofs_differ_from_the_true_one(case: Any) -> None:
    leaves = [bytes.fromhex(entry) for entry in V["log"]["leaves"]]
    index, size = case["index"], case["size"]
    assert case["code"] == "document_log"
    assert index >= size or (case["leaf"], case["root"], case["path"]) != (
        leaves[index].hex(),
        second_bytes.root(leaves[:size]).hex(),
        [h.hex() for h in second_bytes.path(index, leaves[:size])],
    )


@cases_by_name(V["log"]["consistency_bad"])
def test_bad_consistency_proofs_differ_from_the_true_one(case: Any) -> None:
    leaves = [bytes.fromhex(entry) for entry in V["log"]["leaves"]]
    old, new = case["old"], case["new"]
    assert case["code"] == "document_log"
    assert old > new or (case["old_root"], case["new_root"], case["proof"]) != (
        second_bytes.root(leaves[:old]).hex(),
        second_bytes.root(leaves[:new]).hex(),
        [h.hex() for h in second_bytes.growth(old, leaves[:new])],
    )


@cases_by_name(V["log"]["documents"]["cases"])
def test_documents_are_in_the_log_or_the_step_is_named(case: Any) -> None:
    log = V["log"]["documents"]
    logged_digests = [f"sha256:{second_bytes.digest(bytes([i]))[7:]}" for i in range(5)]
    try:
        second_documents.logged(case, log["log"], second_documents.when(log["now"]), logged_digests)
    except Refused as refused:
        assert (str(refused), "document_log") == (case["step"], case["code"])
        return
    assert case["step"] is None


@cases_by_name(V["documents"]["documents"])
def test_documents_of_every_kind_and_notion_state_the_exact_level(case: Any, root: Path) -> None:
    document = second_bytes.read(case["payload"].encode())
    assert second_bytes.write(document) == case["payload"]
    assert second_bytes.digest(case["payload"].encode()) == case["digest"]
    second_documents.require_private(document)


@cases_by_name(V["privacy"]["documents"])
def test_the_smallest_step_below_the_exact_level_is_refused(case: Any) -> None:
    (original,) = (entry for entry in V["documents"]["documents"] if entry["name"] == case["name"])
    document = json.loads(original["payload"])
    put(document, case["path"], case["value"])
    assert second_bytes.digest(second_bytes.write(document).encode()) == case["digest"]
    assert (case["step"], case["code"]) == (9, "document_privacy")
    with pytest.raises(Refused, match="9"):
        second_documents.require_private(document)


@cases_by_name(V["acceptance"]["cases"])
def test_acceptance_names_the_step(case: Any, root: Path) -> None:
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    context = V["acceptance"]
    try:
        second_documents.accepted(case, context, schema)
    except Refused as refused:
        assert str(refused) == str(case["step"])
        return
    assert case["step"] is None


def test_a_document_with_every_kind_of_question_is_accepted(root: Path) -> None:
    case = V["answers"]
    document = second_bytes.read(case["payload"].encode())
    assert second_bytes.digest(case["payload"].encode()) == case["digest"]
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    second_documents.require_form(document, schema)


@pytest.mark.parametrize("case", V["answers"]["faults"])
def test_faults_of_its_questions_are_refused(case: Any, root: Path) -> None:
    document = json.loads(V["answers"]["payload"])
    put(document, case["path"], case.get("value", ...))
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    assert (case["step"], case["code"]) == (4, "document_schema")
    with pytest.raises(Refused, match="4"):
        second_documents.require_form(document, schema)


@pytest.mark.parametrize("case", V["replies"]["cases"])
def test_a_reply_erases_the_report_or_leaves_it(case: Any) -> None:
    for name, closed in (("before", False), ("after", True)):
        found = second_answers.receipt(V["replies"]["id"], case["status"], case["body"], closed)
        assert found == case[name]


@pytest.mark.parametrize("case", V["answers"]["answers"])
def test_answers_result_in_these_choices(case: Any) -> None:
    document = json.loads(V["answers"]["payload"])
    questions = [question for block in document["blocks"] for question in block["questions"]]
    try:
        chosen = second_answers.settled(case["given"], questions)
    except Refused as refused:
        assert case["code"] == "unknown_choice"
        assert str(refused) == (case["field"] or "")
        return
    assert (chosen, case["code"]) == (case["chosen"], None)


PLANNED = {case["name"]: json.loads(case["payload"]) for case in V["plans"]["documents"]}


@cases_by_name(V["plans"]["documents"])
def test_documents_ask_this_many_questions(case: Any, root: Path) -> None:
    document = second_bytes.read(case["payload"].encode())
    assert second_bytes.digest(case["payload"].encode()) == case["digest"]
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    second_documents.require_form(document, schema)
    views = second_arms.views(document)
    assert ("arms" in case) == ("arms" in document)
    for arm, numbers in case.get("arms", {None: case}).items():
        require_numbers(views.pop(arm), numbers)
    assert views == {}


def require_numbers(version: Any, numbers: Any) -> None:
    """Assert that a document without arms, or an arm's view, asks this many questions."""
    shown = [
        (second_plans.groups(version, second_plans.asked(version, plans)), chance)
        for plans, chance in second_plans.every_plan(version)
    ]
    assert sum(chance for _, chance in shown) == 1
    assert sum(len(groups) * chance for groups, chance in shown) == Fraction(*numbers["mean"])
    assert max(len(groups) for groups, _ in shown) <= numbers["most"] <= numbers["of"]
    assert set.intersection(*(groups for groups, _ in shown)) >= set(numbers["always"])
    every = [one["id"] for block in version["blocks"] for one in block["questions"]]
    assert len(second_plans.groups(version, every)) == numbers["of"]


@pytest.mark.parametrize("case", V["plans"]["faults"])
def test_faults_of_what_is_asked_are_refused(case: Any, root: Path) -> None:
    document = json.loads(json.dumps(PLANNED[case["document"]]))
    put(document, case["path"], case["value"])
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    assert (case["step"], case["code"]) == (4, "document_schema")
    with pytest.raises(Refused, match="4"):
        second_documents.require_form(document, schema)


@pytest.mark.parametrize("case", V["plans"]["plans"])
def test_bits_give_these_plans_questions_and_reports(case: Any) -> None:
    document, bits = PLANNED[case["document"]], second_numbers.Bits(case["bits"])
    if "arms" in document:
        arm = second_arms.drawn(document, bits)
        strata = second_arms.revealed(document, arm, case["public"])
        assert (arm, strata) == (case["arm"], case["strata"])
        document = second_arms.views(document)[arm]
    plans = second_plans.drawn(document, bits)
    assert (plans, bits.remaining) == (case["plan"], [])
    names = second_plans.asked(document, plans)
    assert (names, len(second_plans.groups(document, names))) == (case["questions"], case["asked"])
    chosen = second_plans.fitting(case["given"], document, plans)
    assert chosen == case["chosen"]
    rest = second_numbers.Bits(case["rest"])
    assert second_plans.symbols(document, plans, chosen, rest) == case["y"]
    assert not rest.remaining


@pytest.mark.parametrize("case", V["plans"]["answers"])
def test_answers_fit_their_plan_or_are_refused(case: Any) -> None:
    try:
        chosen = second_plans.fitting(case["given"], PLANNED["rules and boxes"], case["plan"])
    except Refused as refused:
        assert (case["chosen"], case["code"]) == (None, "unknown_choice")
        assert str(refused) == (case["field"] or "")
        return
    assert (chosen, case["code"]) == (case["chosen"], None)


SOURCED = {case["name"]: json.loads(case["payload"]) for case in V["sources"]["documents"]}


@cases_by_name(V["sources"]["documents"])
def test_documents_with_sources_are_accepted(case: Any, root: Path) -> None:
    document = second_bytes.read(case["payload"].encode())
    assert second_bytes.digest(case["payload"].encode()) == case["digest"]
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    second_documents.require_known(document)
    second_documents.require_form(document, schema)
    second_documents.require_private(document)


@pytest.mark.parametrize("case", V["sources"]["faults"])
def test_faults_of_sources_are_refused(case: Any, root: Path) -> None:
    document = json.loads(json.dumps(SOURCED[case["document"]]))
    put(document, case["path"], case.get("value", ...))
    schema = json.loads((root / "docs" / "survey.schema.json").read_text())
    assert (case["step"], case["code"]) in ((4, "document_schema"), (5, "document_type"))
    with pytest.raises(Refused, match=str(case["step"])):
        second_documents.require_known(document)
        second_documents.require_form(document, schema)


@cases_by_name(V["sampling"]["mechanisms"])
def test_random_bits_give_these_symbols(case: Any) -> None:
    for draw in case["draws"]:
        bits = second_numbers.Bits(draw["bits"])
        assert second_numbers.symbol(case["mechanism"], draw["truth"], bits) == draw["symbol"]
        assert not bits.remaining


@pytest.mark.parametrize(
    "case", V["sampling"]["reports"], ids=["without a token", "with a token", "passed", "failed"]
)
def test_random_bits_give_these_reports(case: Any) -> None:
    payload = case["document"].encode()
    body = second_numbers.report(json.loads(payload), second_bytes.digest(payload), case)
    assert body == case["report"]
    assert len(body) == case["length"]


@pytest.mark.parametrize("case", V["estimates"]["cases"])
def test_counts_give_these_estimates(case: Any) -> None:
    expected = [None if value is None else Fraction(*value) for value in case["unbiased"]]
    assert second_numbers.unbiased(case) == expected


def test_every_refusal_step_and_kind_is_among_the_vectors() -> None:
    assert {case["step"] for case in V["acceptance"]["cases"]} == {None, 1, 2, 3, 4, 5, 6, 7, 8, 9}
    assert {case["step"] for case in V["keys"]["cases"]} == {
        None,
        "K1",
        "K2",
        "K3",
        "K4",
        "K5",
        "K6",
        "K7",
    }
    assert {case["step"] for case in V["log"]["documents"]["cases"]} == {None, "8.1", "8.2", "8.3"}
    assert {case["mechanism"]["kind"] for case in V["sampling"]["mechanisms"]} == set(
        second_documents.KINDS
    )
    # Parts of a form are estimated as tables.
    assert {case["mechanism"]["kind"] for case in V["estimates"]["cases"]} == set(
        second_documents.KINDS
    ) - {"agreement"}
    assert None in [value for case in V["estimates"]["cases"] for value in case["unbiased"]]
