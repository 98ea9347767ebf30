# SPDX-License-Identifier: Apache-2.0
"""A document with sources, and edits of it that are refused (spec 3.11)."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from frankly_protocol.tokens import TokenRule

from tests.frankly_protocol.samples import armed, ldp_block, put, question, survey

KEY = "A" * 80
ONE = {"kind": "invite", "key": None}
SOURCED = replace(
    survey(ldp_block()),
    strata=(question("region", "north", "south"), question("came", "class", "list", "panel")),
    token=TokenRule(
        "sources",
        question="came",
        rules={
            "class": TokenRule("invite"),
            "list": TokenRule("invite"),
            "panel": TokenRule("rsa-pss", KEY),
        },
    ),
)


def _edit(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return put(f"token.{path}" if path else "token", deepcopy(value))


def _without_panel(body: dict[str, Any]) -> None:
    del body["token"]["rules"]["panel"]


def _in_one_arm(body: dict[str, Any]) -> None:
    written = json.loads(armed().payload())
    for name in ("blocks", "strata", "arms"):
        body[name] = written[name]
    body["strata"].append(question("came", "class", "list", "panel").to_json())
    body["arms"]["arms"][0]["strata"].append("came")


def _in_every_arm(body: dict[str, Any]) -> None:
    _in_one_arm(body)
    for arm in body["arms"]["arms"][1:]:
        arm["strata"].append("came")


ACCEPTED: dict[str, Callable[[dict[str, Any]], None]] = {
    "sources": lambda _: None,
    "sources that are all of one kind": _edit("rules.panel", ONE),
    "sources in every arm": _in_every_arm,
}
REFUSED: dict[str, tuple[Callable[[dict[str, Any]], None], str, str]] = {
    "sources with a key": (_edit("key", None), "schema", "token.key"),
    "sources with an unknown field": (_edit("more", 1), "schema", "token.more"),
    "sources without a question": (_edit("question", None), "schema", "token.question"),
    "sources of a question that is no id": (_edit("question", "Came"), "schema", "token.question"),
    "rules in a list": (_edit("rules", [ONE]), "schema", "token.rules"),
    "no rules": (_edit("rules", None), "schema", "token.rules"),
    "an empty object of rules": (_edit("rules", {}), "schema", "token.rules"),
    "a rule that is null": (_edit("rules.list", None), "schema", "token.rules.list"),
    "a rule without a key": (
        _edit("rules.list", {"kind": "invite"}),
        "schema",
        "token.rules.list.key",
    ),
    "a rule that is a text": (_edit("rules.list", "invite"), "schema", "token.rules.list"),
    "an unknown kind of a source": (
        _edit("rules.list.kind", "blind"),
        "type",
        "token.rules.list.kind",
    ),
    "sources of a source": (
        _edit("rules.list", {"kind": "sources", "key": None}),
        "type",
        "token.rules.list.kind",
    ),
    "sources of a source, with their fields": (
        _edit("rules.list", {"kind": "sources", "question": "came", "rules": {}}),
        "schema",
        "token.rules.list.key",
    ),
    "an invite with a key": (_edit("rules.class.key", KEY), "schema", "token.rules.class.key"),
    "a short key": (_edit("rules.panel.key", "A"), "schema", "token.rules.panel.key"),
    "sources of a protected question": (_edit("question", "affair"), "schema", "token.question"),
    "sources of another question": (_edit("question", "region"), "schema", "token.rules"),
    # Readers that compare lists of ids as one text would accept this.
    "one source with the ids of all": (
        _edit("rules", {"class,list,panel": ONE}),
        "schema",
        "token.rules",
    ),
    "a source too many": (_edit("rules.radio", ONE), "schema", "token.rules"),
    "a source too few": (_without_panel, "schema", "token.rules"),
    "sources in one arm only": (_in_one_arm, "schema", "token.question"),
}
"""Edit, reason and field."""


def edited(edit: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return the document's JSON with an edit."""
    body: dict[str, Any] = json.loads(SOURCED.payload())
    edit(body)
    return body
