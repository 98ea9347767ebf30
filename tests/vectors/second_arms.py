# SPDX-License-Identifier: Apache-2.0
"""Second implementation of the arms of a document, written only from docs/spec/3-documents.md (3.10)."""

from typing import Any, Protocol

from tests.vectors.second_bytes import Refused

Document = dict[str, Any]


class _Bits(Protocol):
    def take(self, bits: int) -> int:
        """Return the next draw."""


def views(document: Document) -> dict[str | None, Document]:
    """Return the view of every arm by its id; without arms, the document itself as that of None."""
    if "arms" not in document:
        return {None: document}
    blocks = {block["id"]: block for block in document["blocks"]}
    return {
        arm["id"]: document
        | {
            "strata": [
                question for question in document["strata"] if question["id"] in arm["strata"]
            ],
            "blocks": [blocks[name] for name in arm["blocks"]],
        }
        for arm in document["arms"]["arms"]
    }


def require_arms(document: Document) -> None:
    """Raise Refused("4") unless the arms fit together and are of this document."""
    if "arms" not in document:
        return
    arms = document["arms"]["arms"]
    chances = [arm["chance"] for arm in arms]
    if sum(chances) != 2**16 or _has_twins(arm["id"] for arm in arms):
        raise Refused("4")
    for name in ("strata", "blocks"):
        known = [entry["id"] for entry in document[name]]
        used = [entry for arm in arms for entry in arm[name]]
        if set(used) != set(known) or _has_twins(known):
            raise Refused("4")
        if any(_has_twins(arm[name]) for arm in arms):
            raise Refused("4")
    if not all(arm["strata"] or arm["blocks"] for arm in arms):
        raise Refused("4")
    for block in document["blocks"]:
        tables = [len(claim["prior"]["tables"]) for claim in block["claims"] if "prior" in claim]
        strata = {tuple(sorted(arm["strata"])) for arm in arms if block["id"] in arm["blocks"]}
        if max(tables, default=1) > 1 and len(strata) > 1:
            raise Refused("4")


def _has_twins(names: Any) -> bool:
    listed = list(names)
    return len(set(listed)) < len(listed)


def names_beside(document: Document) -> list[str]:
    """Return the ids in a report besides those of questions: of the instructed item and of the arms."""
    return [document[name]["id"] for name in ("instructed", "arms") if name in document]


def revealed(document: Document, arm: str, chosen: dict[str, str]) -> dict[str, str]:
    """Return what a report of an arm holds of the choices at its public questions and the item."""
    view = views(document)[arm]
    found = {question["id"]: chosen[question["id"]] for question in view["strata"]}
    if "instructed" in view:
        item = view["instructed"]
        found[item["id"]] = "passed" if chosen[item["id"]] == item["answer"] else "failed"
    return found | {view["arms"]["id"]: arm}


def drawn(document: Document, bits: _Bits) -> str:
    """Draw an arm: the first one with a sum of chances above the number."""
    number, total = bits.take(16), 0
    for arm in document["arms"]["arms"]:
        total += arm["chance"]
        if total > number:
            return str(arm["id"])
    raise AssertionError("the chances are too small")
