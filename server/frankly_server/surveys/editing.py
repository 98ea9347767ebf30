# SPDX-License-Identifier: Apache-2.0
"""The steps of the wizard: each takes a draft as plain values and returns the next one. `parse_value` judges them."""

import copy
import re
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import exp_lower, ln_up
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.devices import expected_form

Draft = dict[str, Any]
_MOST: Final = "60"
_LEAST: Final = Decimal("0.01")
_NUMERAL: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)


def new_draft(title: str, name: str, language: str, text: str, choices: Sequence[str]) -> Draft:
    """Return a survey of one question, its answer protected by one nat of LDP."""
    draft = {
        "name": name,
        "title": {language: title},
        "languages": [language],
        "budget": "1",
        "blocks": [],
    }
    return add_question(draft, text, choices)


def add_question(draft: Draft, text: str, choices: Sequence[str], *, public: bool = False) -> Draft:
    """Return the draft with one more question: a block of its own, or a public one that is sent as it is."""
    found = copy.deepcopy(draft)
    question = _question(found, text, choices)
    if public:
        found.setdefault("strata", []).append(question)
        return found
    block = {"id": question["id"], "questions": [question], "notion": "ldp", "epsilon": "1"}
    found["blocks"].append(block)
    return with_budget(found)


def remove_question(draft: Draft, question_id: str) -> Draft:
    """Return the draft without a question's block, or without a public question.

    Raises InvalidInput: not_found, definition_invalid for the last block.
    """
    found = copy.deepcopy(draft)
    blocks = [b for b in found["blocks"] if all(q["id"] != question_id for q in b["questions"])]
    strata = [q for q in found.get("strata", []) if q["id"] != question_id]
    if len(blocks) == len(found["blocks"]) and len(strata) == len(found.get("strata", [])):
        raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")
    if not blocks:
        raise InvalidInput(Problem.DEFINITION_INVALID, "a survey keeps at least one protected question", "question")
    found["blocks"], found["strata"] = blocks, strata
    return with_budget(found)


def block_of(draft: Draft, block_id: str) -> Draft:
    """Return a block of a draft by its id. Raises InvalidInput(not_found)."""
    for block in draft["blocks"]:
        if block["id"] == block_id:
            found: Draft = block
            return found
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "block")


def with_budget(draft: Draft) -> Draft:
    """Set the form's budget to the most that its whole report can tell of anything protected, at most 60 nats."""
    draft["budget"] = _MOST
    try:
        odds = expected_form(parse_value(draft)).report_level.odds
    except InvalidInput:  # refused in the same words where the draft is kept
        return draft
    if odds is not None and odds <= exp_lower(Fraction(_MOST)):
        draft["budget"] = f"{max(Decimal(ln_up(odds)), _LEAST).normalize():f}"
    return draft


def nats_of_factor(text: str, field: str = "factor") -> str:
    """Return ln of the factor in "at most … times as likely", rounded down to ten-thousandths; `field` names its input.

    Raises InvalidInput(eps_format, eps_out_of_range).
    """
    if not _NUMERAL.fullmatch(text):
        raise InvalidInput(Problem.EPS_FORMAT, "write a number such as 3 or 2.5", field)
    try:
        nats = Decimal(text).ln().quantize(Decimal("0.0001"), ROUND_FLOOR)
    except InvalidOperation:
        nats = Decimal(0)
    if nats < Decimal("0.01"):
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "say a number above 1.01: at 1 nothing could be learned", field)
    return f"{nats:f}"


def slug(text: str, taken: Sequence[str] = ()) -> str:
    """Return an id made of a text's letters and digits that is not taken yet."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "q"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name


def _question(draft: Draft, text: str, choices: Sequence[str]) -> Draft:
    languages = draft["languages"]
    if len(languages) > 1:
        words = "this survey speaks several languages: edit it as a file, where every text stands in each"
        raise InvalidInput(Problem.UNSUPPORTED, words, "languages")
    taken = [q["id"] for b in draft["blocks"] for q in b["questions"]] + [q["id"] for q in draft.get("strata", [])]
    found: list[Draft] = []
    for label in choices:
        found.append({"id": slug(label, [choice["id"] for choice in found]), "label": {languages[0]: label}})
    return {"id": slug(text, taken), "text": {languages[0]: text}, "choices": found}
