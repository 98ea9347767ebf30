# SPDX-License-Identifier: Apache-2.0
"""Edits that bring one size of a document to its limit, and beyond it."""

import json
from collections.abc import Callable
from typing import Any

from tests.frankly_protocol.samples import survey

PAYLOAD = survey().payload()
Edit = Callable[[dict[str, Any], int], None]


def languages(body: dict[str, Any], n: int) -> None:
    """Set n languages with short texts in all of them; only the first block is left."""
    tags = ["en", *(f"aa-{chr(65 + i // 26)}{chr(65 + i % 26)}" for i in range(n - 1))]
    body["languages"], body["title"] = tags, dict.fromkeys(tags, "t")
    body["blocks"] = body["blocks"][:1]
    for question in body["blocks"][0]["questions"]:
        question["text"] = dict.fromkeys(tags, "?")
        for choice in question["choices"]:
            choice["label"] = dict.fromkeys(tags, choice["id"])


def public_choices(body: dict[str, Any], n: int) -> None:
    choices = [{"id": f"c{i}", "label": {"en": f"c{i}"}} for i in range(n)]
    body["strata"] = [{"id": "region", "text": {"en": "?"}, "choices": choices}]


def public_questions(body: dict[str, Any], n: int) -> None:
    choices = [{"id": name, "label": {"en": name}} for name in ("a", "b")]
    body["strata"] = [{"id": f"s{i}", "text": {"en": "?"}, "choices": choices} for i in range(n)]


def blocks(body: dict[str, Any], n: int) -> None:
    first = json.dumps(body["blocks"][0])
    body["blocks"] = [json.loads(first.replace('"affair"', f'"q{i}"')) for i in range(n)]


def questions(body: dict[str, Any], n: int) -> None:
    first = json.dumps(body["blocks"][0]["questions"][0])
    body["blocks"][0]["questions"] = [
        json.loads(first.replace('"affair"', f'"q{i}"')) for i in range(n)
    ]


def claims(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["claims"] *= n


def address(body: dict[str, Any], n: int) -> None:
    body["collect_url"] = "https://collect.example/".ljust(n, "x")


def certificate(name: str) -> Edit:
    def edit(body: dict[str, Any], n: int) -> None:
        body["blocks"][0]["certificate"][name] = "1" * n

    return edit


def label(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["questions"][0]["choices"][0]["label"]["en"] = "x" * n


def identifier(body: dict[str, Any], n: int) -> None:
    body["blocks"][0]["id"] = "x" * n


LIMITS: dict[str, tuple[Edit, int, str]] = {
    "languages": (languages, 32, "languages"),
    "choices of a question": (public_choices, 1000, "strata[0].choices"),
    "public questions": (public_questions, 8, "strata"),
    "blocks": (blocks, 100, "blocks"),
    "claims of a block": (claims, 16, "blocks[0].claims"),
    "characters of the address": (address, 2000, "collect_url"),
    "digits of a certificate's value": (certificate("value"), 64, "blocks[0].certificate.value"),
    "digits of a certificate's bound": (certificate("bound"), 64, "blocks[0].certificate.bound"),
    "characters of a text": (label, 4000, "blocks[0].questions[0].choices[0].label.en"),
    "characters of an id": (identifier, 64, "blocks[0].id"),
}
