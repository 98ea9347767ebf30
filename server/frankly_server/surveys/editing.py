# SPDX-License-Identifier: Apache-2.0
"""Edits of a survey draft by the wizard. A draft is unchecked until `parse_value` parses it."""

import copy
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import exp_lower, ln_up
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.questions import NO, YES

from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.devices import expected_form
from frankly_server.surveys.question_definition import usual_label

Draft = dict[str, Any]
_MAX_BUDGET: Final = "60"
_MIN_BUDGET: Final = Decimal("0.01")
_NUMERAL: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)
_MAX_SLUG: Final = 24
ITEM_ID: Final = "check"
"""Id of a new instructed item; a text such as "please choose the second" makes no good one."""


@dataclass(frozen=True, slots=True)
class ItemWords:
    """An instructed item in one language. answer : position of the choice that it asks for."""

    text: str
    choices: tuple[str, ...]
    answer: int = 2


_ITEM_WORDS: Final[Mapping[str, ItemWords]] = {
    "de": ItemWords(
        "Wenn Sie dies lesen, wählen Sie bitte „Manchmal“.", ("Nie", "Selten", "Manchmal", "Oft")
    ),
    "en": ItemWords(
        "To show that you read this, please choose “Sometimes”.",
        ("Never", "Rarely", "Sometimes", "Often"),
    ),
    "es": ItemWords(
        "Si lee esto, elija «A veces», por favor.", ("Nunca", "Rara vez", "A veces", "A menudo")
    ),
    "fr": ItemWords(
        "Si vous lisez ceci, choisissez « Parfois », s’il vous plaît.",
        ("Jamais", "Rarement", "Parfois", "Souvent"),
    ),
    "it": ItemWords(
        "Se legge questo, scelga «A volte», per favore.", ("Mai", "Raramente", "A volte", "Spesso")
    ),
    "nl": ItemWords("Als u dit leest, kies dan ‘Soms’.", ("Nooit", "Zelden", "Soms", "Vaak")),
}


def new_draft(
    title: str,
    name: str,
    language: str,
    text: str,
    choices: Sequence[str],
    *,
    one_level: bool = False,
) -> Draft:
    """Return a draft with one question, whose answer is protected by LDP at one nat.

    choices : labels; empty for No and Yes. one_level : True to put the questions into a form, where
    they share the level.
    """
    draft: Draft = {
        "name": name,
        "title": {language: title},
        "languages": [language],
        "budget": "1",
    }
    question = _question(draft, text, choices)
    if not choices:
        question["choices"] = [
            {"id": name, "label": usual_label(name, [language])} for name in (NO, YES)
        ]
    if one_level:
        return draft | {"form": {"questions": [question]}}
    block = {"id": question["id"], "questions": [question], "notion": "ldp", "epsilon": "1"}
    return with_budget(draft | {"blocks": [block]})


def item_words(language: str) -> ItemWords:
    """Return an instructed item to begin with, in a language; in English if there is none in it."""
    return _ITEM_WORDS.get(language.partition("-")[0].lower(), _ITEM_WORDS["en"])


def add_item(draft: Draft, words: ItemWords) -> Draft:
    """Return the draft with an instructed item, which replaces the one that it has.

    words : in the first language. The other languages begin with `item_words` if these are the words
    of the first language there, otherwise with the same texts.
    """
    edited = copy.deepcopy(draft)
    edited.pop("instructed", None)
    first, *others = draft["languages"]
    item = _question(edited, words.text, words.choices, ITEM_ID)
    if words == item_words(first):
        for language in others:
            told = item_words(language)
            item["text"][language] = told.text
            for choice, label in zip(item["choices"], told.choices, strict=True):
                choice["label"][language] = label
    edited["instructed"] = item | {"answer": item["choices"][words.answer]["id"]}
    return edited


def remove_question(draft: Draft, question_id: str) -> Draft:
    """Return the draft without a question's block, without a public question or the instructed item.

    Raises InvalidInput: not_found, definition_invalid for the last block.
    """
    edited, former = copy.deepcopy(draft), draft.get("blocks", [])
    if (edited.get("instructed") or {}).get("id") == question_id:
        del edited["instructed"]
        return edited
    blocks = [b for b in former if all(q["id"] != question_id for q in b["questions"])]
    strata = [q for q in edited.get("strata", []) if q["id"] != question_id]
    in_form = _without(edited.get("form", {}), question_id)
    is_known = len(blocks) < len(former) or len(strata) < len(edited.get("strata", []))
    if not is_known and in_form == edited.get("form", {}).get("questions", []):
        raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")
    if not blocks and not in_form:
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "a survey needs at least one protected question", "question"
        )
    edited["blocks"], edited["strata"] = copy.deepcopy(blocks), strata
    if (edited.get("tokens") or {}).get("question") == question_id:
        edited["tokens"] = {"kind": "invite"}
    if "form" in edited and not in_form:
        del edited["form"]
    elif "form" in edited:
        edited["form"]["questions"] = in_form
        pairs = edited["form"].get("cross_tables", [])
        # A pair may contain a box of the question.
        names = item_ids(in_form)
        edited["form"]["cross_tables"] = [pair for pair in pairs if names.issuperset(pair)]
    return with_budget(edited)


def _without(form: Draft, question_id: str) -> list[Draft]:
    return [question for question in form.get("questions", []) if question["id"] != question_id]


def with_pair(draft: Draft, first: str, second: str) -> Draft:
    """Return the draft with the joint table of two items of its form among the wanted ones."""
    edited = copy.deepcopy(draft)
    if "form" not in edited:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "only questions that are protected together have joint tables",
            "first",
        )
    edited["form"].setdefault("cross_tables", []).append([first, second])
    return edited


def without_pair(draft: Draft, pair: str) -> Draft:
    """Return the draft without a wanted joint table, named as "first/second".

    Raises InvalidInput(not_found).
    """
    edited = copy.deepcopy(draft)
    pairs = edited.get("form", {}).get("cross_tables", [])
    kept = [one for one in pairs if "/".join(one) != pair]
    if len(kept) == len(pairs):
        raise InvalidInput(Problem.NOT_FOUND, "there is no such joint table", "drop")
    edited["form"]["cross_tables"] = kept
    return edited


def with_form_level(draft: Draft, epsilon: str) -> Draft:
    """Return the draft with its form's level set to `epsilon` nats; without blocks, sets the budget."""
    edited = copy.deepcopy(draft)
    if edited.get("blocks"):
        edited["form"]["epsilon"] = epsilon
        return with_budget(edited)
    edited["form"].pop("epsilon", None)
    edited["budget"] = epsilon
    return edited


def with_form_ask(draft: Draft, ask: str) -> Draft:
    """Return the draft whose form asks a person "all" questions, or those "drawn"."""
    edited = copy.deepcopy(draft)
    edited["form"]["ask"] = ask
    return edited


def block_of(draft: Draft, block_id: str) -> Draft:
    """Return a block of a draft by its id. Raises InvalidInput(not_found)."""
    for block in draft.get("blocks", []):
        if block["id"] == block_id:
            match: Draft = block
            return match
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "block")


def with_budget(draft: Draft) -> Draft:
    """Set the budget of `draft` to the level of its report, 0.01 to 60 nats; return `draft`."""
    # The level of a form without blocks is at most the budget.
    if "form" in draft and not draft.get("blocks"):
        return draft
    # The parser needs a budget, so the maximum is used until the level is known.
    draft["budget"] = _MAX_BUDGET
    try:
        odds = expected_form(parse_value(draft)).report_level.odds
    except InvalidInput:  # saving the draft raises the same error
        return draft
    # ln_up rounds up, so that the budget always covers the level.
    if odds is not None and odds <= exp_lower(Fraction(_MAX_BUDGET)):
        draft["budget"] = f"{max(Decimal(ln_up(odds)), _MIN_BUDGET).normalize():f}"
    return draft


def slug(text: str, used: Collection[str] = ()) -> str:
    """Return an id that consists of a text's ASCII letters and digits and is not in `used`."""
    ascii_text = (
        unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    )
    base = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-") or "q"
    if len(base) > _MAX_SLUG:
        # Short, because ids are the columns of data files; cut between two words, if there are two.
        base = base[: _MAX_SLUG + 1].rpartition("-")[0] or base[:_MAX_SLUG]
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    return name


def questions_of(draft: Draft) -> Iterator[Draft]:
    """Yield every question of a draft: protected, public, and the instructed item."""
    for block in (*draft.get("blocks", []), draft.get("form", {})):
        yield from block.get("questions", [])
    yield from draft.get("strata", [])
    if draft.get("instructed"):
        yield draft["instructed"]


def item_ids(questions: Iterable[Draft]) -> set[str]:
    """Return the ids of questions and of what is randomised of them: also those of their boxes."""
    ids = set()
    for question in questions:
        ids |= {
            question["id"],
            *(f"{question['id']}-{box['id']}" for box in question.get("boxes", [])),
        }
    return ids


def _question(draft: Draft, text: str, choices: Sequence[str], name: str = "") -> Draft:
    # The page for new questions has one language; the question's own page takes the translations.
    languages = draft["languages"]
    used = item_ids(questions_of(draft))
    choice_list: list[Draft] = []
    for label in choices:
        choice_list.append(
            {
                "id": slug(label, [choice["id"] for choice in choice_list]),
                "label": dict.fromkeys(languages, label),
            }
        )
    return {
        "id": slug(name or text, used),
        "text": dict.fromkeys(languages, text),
        "choices": choice_list,
    }
