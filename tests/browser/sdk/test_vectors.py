# SPDX-License-Identifier: Apache-2.0
"""The vector files that every implementation shares, in Chromium."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.sdk.wire import program

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
# Everything a vector needs of the SDK; each function returns one outcome per case.
RUN = program("vectors")


def run(page: Page, file: str, **more: Any) -> tuple[Any, Any]:
    """Return the vectors of a file, and what Chromium says of them."""
    vectors = json.loads((VECTORS / f"{file}.json").read_text("ascii"))
    return vectors, page.evaluate(RUN, {"file": file, "vectors": vectors | more})


def outcome(case: dict[str, Any], value: Any) -> list[Any]:
    """What the vector says should come of a case: its value, or its code and field."""
    return [value, None, None] if case["code"] is None else [None, case["code"], case.get("field")]


def test_canonical(page: Page) -> None:
    vectors, found = run(page, "canonical")
    assert found["good"] == [[case["digest"], None, None] for case in vectors["good"]]
    assert [said[1] for said in found["bad"]] == [case["code"] for case in vectors["bad"]]


def test_envelopes(page: Page) -> None:
    vectors, found = run(page, "envelopes")
    for case, said in zip(vectors["cases"], found, strict=True):
        assert said[:2] == [None if case["code"] else case["payload_base64"], case["code"]], case[
            "name"
        ]


def test_documents(page: Page) -> None:
    vectors, found = run(page, "documents")
    assert found == [[case["digest"], None, None] for case in vectors["documents"]]


def test_privacy(page: Page) -> None:
    documents = json.loads((VECTORS / "documents.json").read_text("ascii"))["documents"]
    vectors, found = run(
        page, "privacy", payloads={one["name"]: one["payload"] for one in documents}
    )
    for case, said in zip(vectors["documents"], found, strict=True):
        assert said == outcome(case, None), case["name"]


def test_keys(page: Page) -> None:
    vectors, found = run(page, "keys")
    for case, said in zip(vectors["cases"], found, strict=True):
        proven = [case["version"], case["first_root"]] if case["version"] else None
        assert said == [proven, case["code"], case["field"]], case["name"]


def test_acceptance(page: Page) -> None:
    vectors, found = run(page, "acceptance")
    for case, said in zip(vectors["cases"], found, strict=True):
        assert (said[0] is None, *said[1:]) == (
            case["code"] is not None,
            case["code"],
            case["field"],
        ), case["name"]


def test_sampling(page: Page) -> None:
    vectors, found = run(page, "sampling")
    for case, said in zip(vectors["mechanisms"], found["draws"], strict=True):
        assert said == [[draw["symbol"], 0] for draw in case["draws"]], case["name"]
    for case, (length, report) in zip(vectors["reports"], found["reports"], strict=True):
        assert length == case["length"]
        assert report == case["report"]


def test_log(page: Page) -> None:
    vectors, found = run(page, "log")
    assert found["roots"] == vectors["roots"]
    assert [said[1] for said in found["good"]] == [None] * len(vectors["inclusion"])
    assert [said[1] for said in found["bad"]] == [case["code"] for case in vectors["inclusion_bad"]]
    for case, said in zip(vectors["documents"]["cases"], found["documents"], strict=True):
        assert said[1] == case["code"], case["name"]


def test_every_file_is_looked_at_but_that_of_the_server() -> None:
    here = {path.stem for path in VECTORS.glob("*.json")} - {"estimates"}
    assert here == {
        "acceptance",
        "canonical",
        "documents",
        "envelopes",
        "keys",
        "log",
        "privacy",
        "sampling",
    }
