# SPDX-License-Identifier: Apache-2.0
"""A question of a draft as the fields of its form, and where it is in the draft."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.editing import Draft, questions_of
from frankly_server.surveys.question_types import SINGLE, TYPES, QuestionType

PLACES: Final = ("form", "block", "public", "item")
"""Where a question is in a draft: in the form, in a block, among the public ones, or the item."""
WANTED: Final = ("shares", "mean", "distribution", "contrast")


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """One choice or box as entered on the page; an empty text stands for a field left empty.

    was : its id in the draft, "" for a new choice. id : its new id, "" for one made from the label.
    labels : by language; a row without any label removes the choice, unless it begins a range.
    number : score, or smallest number of a range. contrast, expected : its number in these lists. known :
    its count among all people. asked_for : True for the choice that an instructed item asks for.
    """

    was: str
    id: str
    labels: Mapping[str, str]
    number: str = ""
    contrast: str = ""
    expected: str = ""
    asked_for: bool = False
    known: str = ""


@dataclass(frozen=True, slots=True)
class QuestionEdit:
    """A question as entered on the page.

    text : by language; further languages may be empty. type : how it is answered. place : of PLACES.
    roles : roles of choices that are offered. span : first and last number of a new scale, ("", "") for
    none. after : id of the question or box whose answer decides whether this one is asked, "" if everybody
    is asked; after_choices : after these choices of it, as "question/choice". wanted : "" for the usual
    figure: the mean of a scale, otherwise the shares. known_source : where the known counts of its choices
    are published. repeats : id of the question that this one asks again, "" for none.
    """

    id: str
    text: Mapping[str, str]
    type: QuestionType
    place: str
    rows: tuple[ChoiceRow, ...]
    roles: frozenset[str] = frozenset()
    span: tuple[str, str] = ("", "")
    after: str = ""
    after_choices: tuple[str, ...] = ()
    wanted: str = ""
    importance: str = ""
    known_source: str = ""
    repeats: str = ""


def question_of(draft: Draft, question_id: str) -> Draft:
    """Return a question of a draft by its id. Raises InvalidInput(not_found)."""
    for question in questions_of(draft):
        if question["id"] == question_id:
            return question
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")


def list_name(question: Draft) -> str:
    """Return the field with the rows of a question: its boxes if it has any, or its choices."""
    return "boxes" if question.get("boxes") else "choices"


def place_of(draft: Draft, question_id: str) -> str:
    """Return where a question is, one of PLACES. Raises InvalidInput(not_found)."""
    return PLACES[_where(draft, question_id)[0]]


def path_of(draft: Draft, question_id: str) -> str:
    """Return the path of a question in errors. Raises InvalidInput(not_found)."""
    return _where(draft, question_id)[1]


def _where(draft: Draft, question_id: str) -> tuple[int, str]:
    lists = (
        (0, "form.questions", draft.get("form", {}).get("questions", [])),
        *(
            (1, f"blocks[{i}].questions", block["questions"])
            for i, block in enumerate(draft.get("blocks", []))
        ),
        (2, "strata", draft.get("strata", [])),
    )
    for place, path, questions in lists:
        for i, question in enumerate(questions):
            if question["id"] == question_id:
                return place, f"{path}[{i}]"
    if (draft.get("instructed") or {}).get("id") == question_id:
        return 3, "instructed"
    raise InvalidInput(Problem.NOT_FOUND, "there is no such question", "question")


def type_of(question: Draft) -> QuestionType:
    """Return the type of a stored question; one of yes or no has become one of single choices."""
    if list_name(question) == "boxes":
        return next(one for one in TYPES.values() if one.has_boxes and not one.stored_as)
    numbered = (one for one in reversed(TYPES.values()) if one.number and not one.stored_as)
    choices = question["choices"]
    return next((one for one in numbered if any(one.number in c for c in choices)), SINGLE)


def edit_of(draft: Draft, question_id: str) -> QuestionEdit:
    """Return the edit that changes nothing of a question. Raises InvalidInput(not_found)."""
    question = question_of(draft, question_id)
    type_, rule = type_of(question), question.get("ask_if")
    listed = question[list_name(question)]
    # The expected counts of a question with boxes are those of no and yes, not of the boxes.
    expected = None if type_.has_boxes else question.get("expected")
    anchor = question.get("anchor", {})
    counts = anchor.get("counts")
    contrast, place = question.get("contrast"), place_of(draft, question_id)
    usual = ("shares", "1") if place == "form" else ("", "")
    return QuestionEdit(
        question["id"],
        question["text"],
        type_,
        place,
        tuple(
            ChoiceRow(
                choice["id"],
                choice["id"],
                choice["label"],
                str(choice.get("from", choice.get("score", ""))),
                contrast[i] if contrast else "",
                str(expected[i]) if expected else "",
                question.get("answer") == choice["id"],
                str(counts[i]) if counts else "",
            )
            for i, choice in enumerate(listed)
        ),
        frozenset(choice["role"] for choice in listed if "role" in choice),
        after=rule["question"] if rule else "",
        after_choices=tuple(f"{rule['question']}/{one}" for one in rule["choices"]) if rule else (),
        wanted=question.get("wanted", usual[0]),
        importance=question.get("importance", usual[1]),
        known_source=anchor.get("source", ""),
        repeats=anchor.get("repeats", ""),
    )


def sources(draft: Draft, question_id: str | None) -> list[tuple[str, Draft, list[Draft]]]:
    """Return what a question's rule may look at: id, text and choices of each earlier protected item.

    question_id : None for a question that comes last. A box is an item with the choices no and yes.
    """
    found: list[tuple[str, Draft, list[Draft]]] = []
    for block in (*draft.get("blocks", []), draft.get("form", {})):
        for question in block.get("questions", []):
            if question["id"] == question_id:
                return found
            for box in question.get("boxes") or [None]:
                name = question["id"] if box is None else f"{question['id']}-{box['id']}"
                text = {
                    tag: words if box is None else f"{words} {box['label'][tag]}"
                    for tag, words in question["text"].items()
                }
                found.append((name, text, question["choices"]))
    return found


def repeatable(draft: Draft, question_id: str | None) -> list[Draft]:
    """Return the earlier questions of the form that a stored question could ask again; none for a new one.

    They have its choices, and everybody is asked them.
    """
    if question_id is None:
        return []
    question = question_of(draft, question_id)
    ids = [choice["id"] for choice in question["choices"]]
    found: list[Draft] = []
    for one in draft.get("form", {}).get("questions", []):
        if one["id"] == question_id:
            break
        is_plain = not (one.get("boxes") or question.get("boxes") or one.get("ask_if"))
        if is_plain and [choice["id"] for choice in one["choices"]] == ids:
            found.append(one)
    return found
