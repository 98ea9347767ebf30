# SPDX-License-Identifier: Apache-2.0
"""Vectors of documents with sources (docs/spec/3-documents.md, 3.11), and edits of them that are refused."""

from collections.abc import Iterator
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument

from tests.frankly_protocol.samples import question
from tests.frankly_protocol.sourced import ACCEPTED, REFUSED, edited
from tests.vectors.from_answers import fault

Case = dict[str, Any]
SOURCES, IN_ARMS = "sources", "sources in every arm"
FAULTS: list[tuple[str, str, Any]] = [
    (SOURCES, "strata", []),
    (SOURCES, "strata.1.choices", question("came", "class", "list").to_json()["choices"]),
    # The ids of questions are checked before the sources.
    (SOURCES, "strata.1.id", "region"),
    (SOURCES, "blocks.0.questions.0.id", "came"),
    (IN_ARMS, "arms.id", "came"),
    (IN_ARMS, "strata.2.id", "arrived"),
    # The question is not in the first arm, or not in the last one.
    (IN_ARMS, "arms.arms.0.strata", ["affair", "region"]),
    (IN_ARMS, "arms.arms.2.strata", ["region"]),
    (IN_ARMS, "token.question", "strong"),
    (IN_ARMS, "token.question", "region"),
    # The first arm asks this question in the clear, the others protect it: its choices are compared first.
    (IN_ARMS, "token.question", "affair"),
    (IN_ARMS, "token.rules.panel", ...),
]


def sources() -> Case:
    """Return documents with sources, and edits of them that are refused at step 4 or 5."""
    found = {
        name: SurveyDocument.parse(canonical.dumps(edited(edit))) for name, edit in ACCEPTED.items()
    }
    return {
        "documents": [
            {"name": name, "digest": one.digest, "payload": one.payload().decode()}
            for name, one in found.items()
        ],
        "faults": [
            {"document": name} | fault(found[name], path, value)
            for name, path, value in [*_rules(), *FAULTS]
        ],
    }


def _rules() -> Iterator[tuple[str, str, Any]]:
    """Yield the refused token rules of the tests."""
    original = edited(ACCEPTED[SOURCES])
    for edit, _, _ in REFUSED.values():
        body = edited(edit)
        if body | {"token": original["token"]} == original:
            yield SOURCES, "token", body["token"]
