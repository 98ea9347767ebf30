# SPDX-License-Identifier: Apache-2.0
"""Edits of one question of a draft: its texts, ids and choices, its place, and a copy of it."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.editing import Draft, questions_of, slug, with_budget

MAX_ROWS: Final = 100
"""Largest number of choices that the page shows as rows; a file may have more."""
# Fields of a block that do not depend on the number and the order of its answers.
_WITHOUT_ORDER: Final = {
    "id",
    "questions",
    "notion",
    "epsilon",
    "delta",
    "mechanism",
    "objective",
    "ceiling_cap",
    "accept_identity",
    "accept_unidentifiable",
}
_NEW_VALUE: Final = {"contrast": "0", "expected": 1}
"""Value of a new choice in the lists of a form's question."""


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """One choice as entered on the page.

    was : its id in the draft, "" for a new choice. id : its new id, "" for one made from the label.
    labels : by language; a row without any label removes the choice. score : "" for none.
    asked_for : True for the choice that an instructed item asks for.
    """

    was: str
    id: str
    labels: Mapping[str, str]
    score: str = ""
    asked_for: bool = False


def question_of(draft: Draft, question_id: str) -> Draft:
    """Return a question of a draft by its id. Raises InvalidInput(not_found)."""
    for question in questions_of(draft):
        if question["id"] == question_id:
            return question
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")


def list_name(question: Draft) -> str:
    """Return the field with the rows of a question: its boxes if it has any, or its choices."""
    return "boxes" if question.get("boxes") else "choices"


def change_question(
    draft: Draft,
    question_id: str,
    new_id: str,
    text: Mapping[str, str],
    rows: Sequence[ChoiceRow],
    *,
    reset: bool = False,
) -> Draft:
    """Return the draft with a question's id, text and choices replaced, and references to them.

    reset : protect the answer itself at one nat if the present protection has counts or levels for
    each choice and the number or order of the choices changes. Raises InvalidInput: not_found, and
    definition_invalid if a reset would be needed, or an instructed item would ask for no choice.
    """
    edited = copy.deepcopy(draft)
    question = question_of(edited, question_id)
    name = list_name(question)
    old: list[Draft] = question[name]
    kept = [row for row in rows if any(row.labels.values())]
    question |= {"id": new_id, "text": dict(text), name: _choices(old, kept, draft["languages"][0])}
    if "answer" in question:
        question["answer"] = _asked_for(kept, question[name])
    places, is_reset = [_place(old, row.was) for row in kept], False
    if places != list(range(len(old))):
        is_reset = _require_or_reset(edited, question, reset=reset)
        if name == "choices":
            for field, value in _NEW_VALUE.items():
                if field in question:
                    numbers = question[field]
                    question[field] = [
                        value if place is None else numbers[place] for place in places
                    ]
    new_choice_ids = {
        row.was: choice["id"] for row, choice in zip(kept, question[name], strict=True) if row.was
    }
    _rename(edited, question_id, new_id, new_choice_ids)
    # Otherwise the budget stays as the admin set it.
    return with_budget(edited) if is_reset else edited


def move_question(draft: Draft, question_id: str, steps: int) -> Draft:
    """Return the draft with a question, or its block, moved within its list.

    steps : -1 for one place up, 1 for one place down; at the end of the list nothing moves.
    Raises InvalidInput(not_found).
    """
    edited = copy.deepcopy(draft)
    listed, place = _list_of(edited, question_id)
    new_place = place + steps
    if 0 <= new_place < len(listed):
        listed[place], listed[new_place] = listed[new_place], listed[place]
    return edited


def copy_question(draft: Draft, question_id: str) -> Draft:
    """Return the draft with a copy of a question, or of its block, inserted after it under new ids.

    Raises InvalidInput(not_found).
    """
    edited = copy.deepcopy(draft)
    listed, place = _list_of(edited, question_id)
    duplicate = copy.deepcopy(listed[place])
    used = [question["id"] for question in questions_of(edited)]
    for question in duplicate.get("questions", [duplicate]):
        question["id"] = slug(question["id"], used)
        used.append(question["id"])
    if "questions" in duplicate:
        duplicate["id"] = slug(duplicate["id"], [block["id"] for block in edited["blocks"]])
    listed.insert(place + 1, duplicate)
    return with_budget(edited)


def with_languages(draft: Draft, languages: Sequence[str]) -> Draft:
    """Return the draft with these languages; a new one begins with the texts of the first."""
    edited = copy.deepcopy(draft)
    first = draft["languages"][0]
    edited["languages"] = list(languages)
    for text in _texts(edited):
        kept = {language: text.get(language, text[first]) for language in languages}
        text.clear()
        text.update(kept)
    return edited


def untranslated(draft: Draft) -> dict[str, int]:
    """Return, for each further language, how many texts still equal those of the first."""
    first, *others = draft["languages"]
    texts = list(_texts(draft))
    counts = {
        # A text without letters, such as a number, reads the same in every language.
        language: sum(
            text[language] == text[first] and any(map(str.isalpha, text[first])) for text in texts
        )
        for language in others
    }
    return {language: n for language, n in counts.items() if n}


def _texts(value: Any) -> Iterator[dict[str, str]]:
    """Yield every text of a draft that has one version for each language."""
    if isinstance(value, list):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, dict):
        for name, element in value.items():
            if name in ("title", "consent", "text", "label") and isinstance(element, dict):
                yield element
            else:
                yield from _texts(element)


def _list_of(draft: Draft, question_id: str) -> tuple[list[Draft], int]:
    """Return the list that contains a question or its block, and the place in it."""
    for listed in (
        draft.get("blocks", []),
        draft.get("form", {}).get("questions", []),
        draft.get("strata", []),
    ):
        for place, element in enumerate(listed):
            questions = element.get("questions", [element])
            if any(question["id"] == question_id for question in questions):
                return listed, place
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")


def _place(choices: Sequence[Draft], choice_id: str) -> int | None:
    ids = [choice["id"] for choice in choices]
    return ids.index(choice_id) if choice_id in ids else None


def _choices(old: Sequence[Draft], rows: Sequence[ChoiceRow], first: str) -> list[Draft]:
    choices: list[Draft] = []
    are_scored = any("score" in choice for choice in old)
    for row in rows:
        place = _place(old, row.was)
        known = {} if place is None else copy.deepcopy(old[place])
        used = [choice["id"] for choice in choices]
        choice_id = row.id or slug(row.labels.get(first, ""), used)
        choice = known | {"id": choice_id, "label": dict(row.labels)}
        # A choice without its score is refused: 0 would be a number that nobody has chosen.
        if are_scored and "role" not in known:
            choice |= {"score": row.score or None}
        choices.append(choice)
    return choices


def _asked_for(rows: Sequence[ChoiceRow], choices: Sequence[Draft]) -> str:
    """Return the id of the choice that an instructed item asks for, whose row is marked."""
    for row, choice in zip(rows, choices, strict=True):
        if row.asked_for:
            return str(choice["id"])
    raise InvalidInput(
        Problem.DEFINITION_INVALID,
        "the choice that this item asks for is removed or has no text: mark another one as asked for, "
        "or remove the whole item on the page of all questions",
        "answer",
    )


def _require_or_reset(draft: Draft, question: Draft, *, reset: bool) -> bool:
    """Return True if the protection of the question's block was reset, False if it may stay."""
    for block in draft.get("blocks", []):
        if question not in block["questions"] or not set(block) - _WITHOUT_ORDER:
            continue
        if not reset:
            raise InvalidInput(
                Problem.DEFINITION_INVALID,
                "the protection of this question has counts or levels for each choice, and the "
                "number or order of the choices changes: tick the box to protect the answer itself "
                "instead, and set the protection again in the next step",
                "reset",
            )
        questions = block["questions"]
        name = block["id"]
        block.clear()
        block |= {"id": name, "questions": questions, "notion": "ldp", "epsilon": "1"}
        return True
    return False


def _rename(draft: Draft, old_id: str, new_id: str, choice_ids: Mapping[str, str]) -> None:
    """Replace a question's id and the ids of its choices or boxes wherever the draft names them."""
    for question in questions_of(draft):
        rule = question.get("ask_if")
        if rule and rule["question"] == old_id:
            rule["question"] = new_id
            rule["choices"] = [choice_ids.get(choice, choice) for choice in rule["choices"]]
    names = {old_id: new_id} | {
        f"{old_id}-{old}": f"{new_id}-{new}" for old, new in choice_ids.items()
    }
    form = draft.get("form", {})
    if "cross_tables" in form:
        form["cross_tables"] = [
            [names.get(name, name) for name in pair] for pair in form["cross_tables"]
        ]
    for block in draft.get("blocks", []):
        # The wizard names a block after its first question.
        if block["id"] == old_id:
            block["id"] = new_id
        for prior in filter(None, (block.get("prior"), *block.get("priors", []))):
            if prior.get("secret") == old_id:
                prior["secret"] = new_id
            for stratum in prior.get("strata", []):
                when = stratum["when"]
                if old_id in when:
                    choice = when.pop(old_id)
                    when[new_id] = choice_ids.get(choice, choice)
