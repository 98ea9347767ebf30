# SPDX-License-Identifier: Apache-2.0
"""Vector files shared by all implementations, run in Chromium."""

import json
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol import canonical
from playwright.sync_api import Page

from tests.browser.sdk.test_same_as_python import judged_by_browser
from tests.browser.sdk.wire import program, settle
from tests.frankly_protocol.samples import put, sealed

pytestmark = pytest.mark.usefixtures("shared_page")
VECTORS = Path(__file__).resolve().parents[2] / "vectors"
# The function in the page that runs each vector file; it returns one outcome per case.
RUN = program("vectors")


def run(page: Page, file: str, **extra: Any) -> tuple[Any, Any]:
    """Return the vectors of a file and their outcomes in Chromium."""
    vectors = json.loads((VECTORS / f"{file}.json").read_text("ascii"))
    return vectors, page.evaluate(RUN, {"file": file, "vectors": vectors | extra})


def outcome(case: dict[str, Any], value: Any) -> list[Any]:
    """Return the expected outcome of a case: a value, or a code and a field."""
    return [value, None, None] if case["code"] is None else [None, case["code"], case.get("field")]


def test_canonical(page: Page) -> None:
    vectors, outcomes = run(page, "canonical")
    assert outcomes["good"] == [[case["digest"], None, None] for case in vectors["good"]]
    assert [outcome_in_browser[1] for outcome_in_browser in outcomes["bad"]] == [
        case["code"] for case in vectors["bad"]
    ]


def test_envelopes(page: Page) -> None:
    vectors, outcomes = run(page, "envelopes")
    for case, outcome_in_browser in zip(vectors["cases"], outcomes, strict=True):
        assert outcome_in_browser[:2] == [
            None if case["code"] else case["payload_base64"],
            case["code"],
        ], case["name"]


def test_documents(page: Page) -> None:
    vectors, outcomes = run(page, "documents")
    assert outcomes == [[case["digest"], None, None] for case in vectors["documents"]]


def test_privacy(page: Page) -> None:
    documents = json.loads((VECTORS / "documents.json").read_text("ascii"))["documents"]
    vectors, outcomes = run(
        page, "privacy", payloads={document["name"]: document["payload"] for document in documents}
    )
    for case, outcome_in_browser in zip(vectors["documents"], outcomes, strict=True):
        assert outcome_in_browser == outcome(case, None), case["name"]


def test_keys(page: Page) -> None:
    vectors, outcomes = run(page, "keys")
    for case, outcome_in_browser in zip(vectors["cases"], outcomes, strict=True):
        proven = [case["version"], case["first_root"]] if case["version"] else None
        assert outcome_in_browser == [proven, case["code"], case["field"]], case["name"]


def test_acceptance(page: Page) -> None:
    vectors, outcomes = run(page, "acceptance")
    for case, outcome_in_browser in zip(vectors["cases"], outcomes, strict=True):
        assert (outcome_in_browser[0] is None, *outcome_in_browser[1:]) == (
            case["code"] is not None,
            case["code"],
            case["field"],
        ), case["name"]


def test_sampling(page: Page) -> None:
    vectors, outcomes = run(page, "sampling")
    for case, outcome_in_browser in zip(vectors["mechanisms"], outcomes["draws"], strict=True):
        assert outcome_in_browser == [[draw["symbol"], 0] for draw in case["draws"]], case["name"]
    for case, (length, report) in zip(vectors["reports"], outcomes["reports"], strict=True):
        assert length == case["length"]
        assert report == case["report"]


def test_answers(page: Page) -> None:
    vectors = json.loads((VECTORS / "answers.json").read_text("ascii"))
    payloads = [vectors["payload"].encode()]
    for case in vectors["faults"]:
        body = json.loads(vectors["payload"])
        put(case["path"], case.get("value", ...))(body)
        payloads.append(canonical.dumps(body))
    expected = [None, *([case["code"], case["field"]] for case in vectors["faults"])]
    assert judged_by_browser(page, [sealed(payload) for payload in payloads]) == expected
    for case, outcome_in_browser in zip(
        vectors["answers"],
        settle(page, [case["given"] for case in vectors["answers"]]),
        strict=True,
    ):
        assert outcome_in_browser.get("chosen") == case["chosen"]
        assert outcome_in_browser.get("code") == case["code"]
        assert outcome_in_browser.get("field") == case["field"]


def test_replies(page: Page) -> None:
    vectors, outcomes = run(page, "replies")
    assert outcomes == [[case["before"], case["after"]] for case in vectors["cases"]]


def test_log(page: Page) -> None:
    vectors, outcomes = run(page, "log")
    assert outcomes["roots"] == vectors["roots"]
    assert [outcome_in_browser[1] for outcome_in_browser in outcomes["good"]] == [None] * len(
        vectors["inclusion"]
    )
    assert [outcome_in_browser[1] for outcome_in_browser in outcomes["bad"]] == [
        case["code"] for case in vectors["inclusion_bad"]
    ]
    for case, outcome_in_browser in zip(
        vectors["documents"]["cases"], outcomes["documents"], strict=True
    ):
        assert outcome_in_browser[1] == case["code"], case["name"]


def test_plans(page: Page) -> None:
    vectors, outcomes = run(page, "plans")
    of = {
        (case["name"], arm): numbers["of"]
        for case in vectors["documents"]
        for arm, numbers in case.get("arms", {None: case}).items()
    }
    assert outcomes["documents"] == [case["digest"] for case in vectors["documents"]]
    for case, found in zip(vectors["plans"], outcomes["plans"], strict=True):
        expected = {name: case[name] for name in ("questions", "asked", "chosen", "y")}
        arm = case.get("arm")
        expected |= {"plan": list(case["plan"].values()), "arm": arm, "left": 0}
        # The ids in the report beside the symbols, and after that of the arms the arm.
        expected["open"] = [*case.get("strata", ()), *([] if arm is None else [arm])]
        assert found == expected | {"of": of[case["document"], arm]}
    for case, found in zip(vectors["answers"], outcomes["answers"], strict=True):
        assert found == [case["chosen"], case["code"], case["field"]], case
    payloads = {case["name"]: case["payload"] for case in vectors["documents"]}
    faulty = []
    for case in vectors["faults"]:
        body = json.loads(payloads[case["document"]])
        put(case["path"], case["value"])(body)
        faulty.append(sealed(canonical.dumps(body)))
    assert judged_by_browser(page, faulty) == [
        [case["code"], case["field"]] for case in vectors["faults"]
    ]


def test_sources(page: Page) -> None:
    vectors = json.loads((VECTORS / "sources.json").read_text("ascii"))
    payloads = {case["name"]: case["payload"].encode() for case in vectors["documents"]}
    judged = [*payloads.values()]
    for case in vectors["faults"]:
        body = json.loads(payloads[case["document"]])
        put(case["path"], case.get("value", ...))(body)
        judged.append(canonical.dumps(body))
    expected = [None] * len(payloads) + [
        [case["code"], case["field"]] for case in vectors["faults"]
    ]
    assert judged_by_browser(page, [sealed(payload) for payload in judged]) == expected


def test_every_file_except_the_servers_is_run() -> None:
    files = {path.stem for path in VECTORS.glob("*.json")} - {"estimates"}
    assert files == {
        "acceptance",
        "answers",
        "canonical",
        "documents",
        "envelopes",
        "keys",
        "log",
        "plans",
        "privacy",
        "replies",
        "sampling",
        "sources",
    }
