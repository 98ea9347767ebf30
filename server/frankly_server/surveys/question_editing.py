# SPDX-License-Identifier: Apache-2.0
"""Edits of one question of a draft: everything that its form shows, its place, and a copy of it."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.questions import NOT_APPLICABLE, ROLES
from pydantic_core import PydanticCustomError

from frankly_server.surveys.editing import (
    Draft,
    item_ids,
    questions_of,
    remove_question,
    slug,
    with_budget,
)
from frankly_server.surveys.question_definition import choices_of_ranges, role_id, usual_label
from frankly_server.surveys.question_edit import (
    ChoiceRow,
    QuestionEdit,
    edit_of,
    list_name,
    question_of,
)
from frankly_server.surveys.question_types import SINGLE

MAX_ROWS: Final = 100
"""Largest number of choices that the page shows as rows; a file may have more."""
MAX_SPAN: Final = 21
"""Largest number of points of a new scale that is given by its ends."""
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


def with_question(
    draft: Draft, edit: QuestionEdit, question_id: str | None = None, *, reset: bool = False
) -> Draft:
    """Return the draft with a question, and references to it, replaced by an edit, or with a new one.

    question_id : None for a new question, which comes last in its place. reset : protect the answer
    itself at one nat if the present protection has counts or levels for each choice and the number or
    order of the choices changes. Raises InvalidInput with the name of the page's field, and for a row
    its place: not_found, and definition_invalid for fields that contradict each other or count for
    nothing, and if a reset would be needed.
    """
    edited = copy.deepcopy(draft)
    question = {} if question_id is None else question_of(edited, question_id)
    before = None if question_id is None else edit_of(draft, question_id)
    edit = _with_rule_role(_without_figures(edit, before), before)
    _require_used(edit, before, draft)
    kept = _kept(edit, question, draft["languages"])
    old = question.get(list_name(question), []) if question else []
    if edit.id in item_ids(one for one in questions_of(draft) if one["id"] != question_id):
        raise _invalid("another question, or a box of one, has this short name", "id")
    question |= {"id": edit.id, "text": _filled(edit.text, draft["languages"])}
    _set_choices(question, edit, kept, draft["languages"])
    _set_figures(question, edit, kept)
    _set_anchor(question, edit, kept, before)
    if edit.after:
        question["ask_if"] = {
            "question": edit.after,
            "choices": [one.partition("/")[2] for one in edit.after_choices],
        }
    else:
        question.pop("ask_if", None)
    if before is None or question_id is None:
        return _placed(edited, question, edit.place)
    new_ids = {one.row.was: one.choice["id"] for one in kept if one.row.was}
    is_reset = False
    if [_place(old, one.row.was) for one in kept] != list(range(len(before.rows))):
        is_reset = _require_or_reset(edited, question, reset=reset)
    _rename(edited, question_id, edit.id, new_ids)
    if edit.place != before.place:
        return _placed(_taken(edited, question, edit.place), question, edit.place)
    # Otherwise the budget stays as the admin set it.
    return with_budget(edited) if is_reset else edited


def new_id(draft: Draft, text: str, question_id: str | None = None) -> str:
    """Return a short id for a question with this text that no other question of the draft has."""
    others = (one for one in questions_of(draft) if one["id"] != question_id)
    return slug(text, item_ids(others))


def places_of(draft: Draft, edit: QuestionEdit, question_id: str | None = None) -> list[int | None]:
    """Return, for each choice that `with_question` stores, its row in the edit; None for an added one."""
    question, before = {}, None
    if question_id is not None:
        question, before = question_of(draft, question_id), edit_of(draft, question_id)
    edit = _with_rule_role(edit, before)
    return [one.place for one in _kept(edit, question, draft["languages"])]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A row that stays, its place on the page (None for a choice that the page adds), its choice."""

    place: int | None
    row: ChoiceRow
    choice: Draft


def _invalid(detail: str, field: str) -> InvalidInput:
    return InvalidInput(Problem.DEFINITION_INVALID, detail, field)


def _with_rule_role(edit: QuestionEdit, before: QuestionEdit | None) -> QuestionEdit:
    """Return the edit with the answer of those whom a new rule leaves out."""
    is_new = edit.after and (before is None or not before.after)
    return replace(edit, roles=edit.roles | {NOT_APPLICABLE}) if is_new else edit


def _without_figures(edit: QuestionEdit, before: QuestionEdit | None) -> QuestionEdit:
    """Return the edit without figures of the draft that a question has no more if it asks one again."""
    if before is None or before.repeats or not edit.repeats:
        return edit
    expected = {row.was: row.expected for row in before.rows}
    rows = tuple(
        replace(row, expected="") if row.expected == expected.get(row.was) else row
        for row in edit.rows
    )
    wanted = "shares" if edit.wanted == before.wanted else edit.wanted
    return replace(edit, wanted=wanted, rows=rows)


def _require_used(edit: QuestionEdit, before: QuestionEdit | None, draft: Draft) -> None:
    """Raise InvalidInput(definition_invalid) if a filled field counts for nothing.

    A field may stay as it was in the draft: the choice that made it count is being changed.
    """
    stored = before or QuestionEdit("", {}, SINGLE, "", ())
    _require_rule(edit, stored)
    _require_kind(edit, stored)
    if edit.place != "form":
        for name, default in (("wanted", "shares"), ("importance", "1")):
            if getattr(edit, name) not in ("", default, getattr(stored, name)):
                raise _invalid(
                    "this counts only for questions that are protected together: leave it as it was",
                    name,
                )
    _require_used_cells(edit, stored, draft)


def _require_kind(edit: QuestionEdit, stored: QuestionEdit) -> None:
    """Raise InvalidInput(definition_invalid) for a kind that the question's place does not have."""
    if edit.type.has_boxes and edit.place != "form":
        raise _invalid(
            "boxes are protected together with other questions only: choose that", "place"
        )
    if edit.place == "public" and (not edit.type.is_plain or edit.roles):
        raise _invalid(
            "a public question has plain choices, such as “Under 40” and “40 or older”: choose “One of "
            "several choices”, without “Prefer not to say” and “Does not apply”",
            "kind",
        )
    if edit.place == "item" and edit.type not in (SINGLE, stored.type):
        raise _invalid("an item that shows who reads has choices of which one is chosen", "kind")


def _require_rule(edit: QuestionEdit, stored: QuestionEdit) -> None:
    """Raise InvalidInput(definition_invalid) for half a skip rule, or one of a question asked in clear."""
    if edit.after != stored.after and edit.after and edit.place not in ("form", "block"):
        raise _invalid("only a protected question can depend on another answer", "after")
    own = {one for one in edit.after_choices if one.partition("/")[0] == edit.after}
    # Without a rule, the answers of the one that is being removed may stay ticked.
    known = own if edit.after else own | set(stored.after_choices)
    if set(edit.after_choices) - known:
        raise _invalid("these answers count only if their question is chosen above", "after_choice")
    if edit.after and not own:
        raise _invalid("tick the answers after which this question is asked", "after_choice")
    if edit.after and NOT_APPLICABLE not in edit.roles:
        raise _invalid(
            "people who are not asked need this answer: tick it, or choose that everybody is asked",
            NOT_APPLICABLE,
        )


def _require_used_cells(edit: QuestionEdit, stored: QuestionEdit, draft: Draft) -> None:
    rows = {row.was: row for row in stored.rows}
    roles = _roles(stored, draft)
    first = draft["languages"][0]
    for i, row in enumerate(edit.rows):
        known = rows.get(row.was, ChoiceRow("", "", {}))
        unused = {
            "number": not edit.type.number or row.was in roles,
            "contrast": edit.place != "form" or edit.wanted != "contrast",
            "expected": edit.place != "form" or edit.type.has_boxes,
            "known": not _can_be_known(edit),
        }
        use = {
            "number": "a choice that is an answer, of a scale or a number",
            "contrast": "the contrast as what should be precise",
            "expected": "a question that shares one level and has no boxes",
            "known": "a protected question without boxes",
        }
        is_kept = _is_kept(edit, row)
        if row.was in roles:
            _require_role(edit, roles[row.was], row, known, f"label-{first}[{i}]")
            is_kept = True
        for name in ("id", *unused):
            value = getattr(row, name)
            if not value or value == getattr(known, name):
                continue
            field = f"{'choice' if name == 'id' else name}[{i}]"
            if not is_kept:
                # The texts of a row are cleared to remove it, and its other cells may stay as they were.
                raise _invalid(f"row {i + 1} has no text: write one, or clear the row", field)
            if unused.get(name):
                raise _invalid(f"this number counts only with {use[name]}", field)
        if is_kept and any(row.labels.values()) and not row.labels.get(first):
            raise _invalid("write a text", f"label-{first}[{i}]")


def _require_role(
    edit: QuestionEdit, role: str, row: ChoiceRow, known: ChoiceRow, field: str
) -> None:
    """Raise InvalidInput(definition_invalid) if a choice with a role is cleared or changed for nothing."""
    if role in edit.roles and not any(row.labels.values()):
        raise _invalid("untick below that this is offered, to remove it", field)
    if (
        role not in edit.roles
        and dict(row.labels) != dict(known.labels)
        and any(row.labels.values())
    ):
        raise _invalid("this text counts only if this choice is offered: tick that below", field)


def _roles(edit: QuestionEdit, draft: Draft) -> dict[str, str]:
    """Return the roles of a stored question's choices by id."""
    if not edit.id:
        return {}
    question = question_of(draft, edit.id)
    return {one["id"]: one["role"] for one in question[list_name(question)] if "role" in one}


def _is_kept(edit: QuestionEdit, row: ChoiceRow) -> bool:
    return any(row.labels.values()) or bool(edit.type.has_ranges and row.number)


def _filled(text: Mapping[str, str], languages: Sequence[str]) -> dict[str, str]:
    """Return a text in every language; a missing one begins as that of the first."""
    return {tag: text.get(tag) or text.get(languages[0], "") for tag in languages}


def _kept(edit: QuestionEdit, question: Draft, languages: Sequence[str]) -> list[_Kept]:
    """Return the rows that stay, with those that the page adds, and their choices with id and label."""
    old = question.get(list_name(question), []) if question else []
    known = {choice["id"]: choice for choice in old}
    rows: list[tuple[int | None, ChoiceRow, str]] = []
    for i, row in enumerate(edit.rows):
        role = known.get(row.was, {}).get("role", "")
        if role and role not in edit.roles:
            continue
        if role or _is_kept(edit, row):
            rows.append((i, row, role))
    answers = [row for _, row, role in rows if not role]
    rows[:0] = [(None, row, "") for row in _usual_rows(edit, answers, languages)]
    for role in ROLES:
        if role in edit.roles and all(role != other for *_, other in rows):
            rows.append((None, ChoiceRow("", "", usual_label(role, languages)), role))
    kept: list[_Kept] = []
    used: list[str] = []
    for place, row, role in rows:
        name = row.id or slug(role_id(role) if role else row.labels.get(languages[0], ""), used)
        used.append(name)
        choice = copy.deepcopy(known.get(row.was, {})) | {"id": name}
        choice["label"] = _filled(row.labels, languages)
        kept.append(_Kept(place, row, choice | ({"role": role} if role else {})))
    return _with_ranges(kept, question, languages) if edit.type.has_ranges else kept


def _usual_rows(
    edit: QuestionEdit, answers: Sequence[ChoiceRow], languages: Sequence[str]
) -> list[ChoiceRow]:
    """Return the rows that a yes-or-no question or a new scale begins with."""
    first, last = edit.span
    if (first or last) and (not edit.type.is_scale or answers):
        raise _invalid(
            "this counts only for a scale whose rows are empty: clear it, or the rows",
            "span_from" if first else "span_to",
        )
    if edit.type.begins and not edit.type.has_boxes:
        if answers:
            row = next(i for i, one in enumerate(edit.rows) if _is_kept(edit, one))
            raise _invalid(
                "a yes-or-no question has the choices No and Yes: clear this row, or choose “One of "
                "several choices”",
                f"label-{languages[0]}[{row}]",
            )
        return [ChoiceRow("", name, usual_label(name, languages)) for name in edit.type.begins]
    if not first and not last:
        return []
    for name, text in (("span_from", first), ("span_to", last)):
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 6:
            raise _invalid("write a whole number, such as 0 or 10", name)
    low, high = int(first), int(last)
    if not 1 <= high - low < MAX_SPAN:
        raise _invalid(f"a scale has 2 to {MAX_SPAN} numbers, in increasing order", "span_to")
    return [
        ChoiceRow("", f"n{n}".replace("-", "m"), dict.fromkeys(languages, str(n)), str(n))
        for n in range(low, high + 1)
    ]


def _with_ranges(kept: list[_Kept], question: Draft, languages: Sequence[str]) -> list[_Kept]:
    """Return the rows of a question for a number, with ids and labels made from the ranges.

    Only an empty id or label is made, or one that was made from the ranges as they were.
    """
    numbered = [one for one in kept if "role" not in one.choice]
    for one in numbered:
        if not one.row.number:
            raise _invalid(
                "write where this range begins under From, such as 0 for “0 to 2”",
                f"number[{one.place}]",
            )
    try:
        made = choices_of_ranges([one.row.number for one in numbered], languages)
    except PydanticCustomError as error:
        raise _invalid(error.message(), f"number[{numbered[0].place if numbered else 0}]") from None
    before = _made_before(question, languages)
    choices = iter(made)
    return [one if "role" in one.choice else _in_range(one, next(choices), before) for one in kept]


def _made_before(question: Draft, languages: Sequence[str]) -> dict[str, Draft]:
    """Return the ids and labels that the stored ranges gave, by the stored id."""
    stored = [one for one in question.get("choices", []) if "from" in one] if question else []
    if len(stored) < 2:
        return {}
    made = choices_of_ranges([str(one["from"]) for one in stored], languages)
    return {one["id"]: other for one, other in zip(stored, made, strict=True)}


def _in_range(one: _Kept, made: Draft, before: Mapping[str, Draft]) -> _Kept:
    was = before.get(one.row.was, {"id": "", "label": {}})
    is_named = one.row.id not in ("", was["id"])
    label = {
        tag: one.choice["label"][tag]
        if one.row.labels.get(tag) not in (None, "", was["label"].get(tag))
        else text
        for tag, text in made["label"].items()
    }
    name = one.row.id if is_named else made["id"]
    return replace(one, choice=one.choice | {"id": name, "label": label})


def _set_numbers(edit: QuestionEdit, kept: Sequence[_Kept]) -> None:
    """Set the scores of a scale, or the beginnings of ranges; remove those of another kind."""
    numbered = [one for one in kept if "role" not in one.choice]
    for one in kept:
        one.choice.pop("from", None)
        one.choice.pop("score", None)
    if edit.type.has_ranges:
        for one in numbered:
            one.choice["from"] = one.row.number
    if not edit.type.is_scale:
        return
    is_numbered = any(one.row.number for one in numbered)
    for n, one in enumerate(numbered, 1):
        if is_numbered and not one.row.number:
            row = one.place or 0
            raise _invalid(f"row {row + 1} needs a score, too", f"number[{row}]")
        one.choice["score"] = one.row.number or str(n)


def _set_choices(
    question: Draft, edit: QuestionEdit, kept: Sequence[_Kept], languages: Sequence[str]
) -> None:
    """Set choices or boxes."""
    _set_numbers(edit, kept)
    if edit.type.has_boxes and not any("role" not in one.choice for one in kept):
        raise _invalid("write a text for each box", f"label-{languages[0]}[0]")
    was_multi, listed = bool(question.get("boxes")), [one.choice for one in kept]
    if not edit.type.has_boxes:
        question.pop("boxes", None)
        question["choices"] = listed
    else:
        question["boxes"] = listed
        if not was_multi:
            question["choices"] = [
                {"id": name, "label": usual_label(name, languages)} for name in edit.type.begins
            ]
    if was_multi != edit.type.has_boxes:
        question.pop("expected", None)
    if "answer" in question:
        question["answer"] = _asked_for([one.row for one in kept], listed)


def _set_figures(question: Draft, edit: QuestionEdit, kept: Sequence[_Kept]) -> None:
    """Set the wanted figure of a form's question and its numbers, or remove them elsewhere."""
    if edit.place != "form":
        for field in ("wanted", "contrast", "importance", "expected", "scores"):
            question.pop(field, None)
        return
    is_new_scale = edit.type.is_scale and "wanted" not in question
    usual = "mean" if is_new_scale and not edit.repeats else "shares"
    question["wanted"] = edit.wanted or usual
    question["importance"] = edit.importance or "1"
    lists = ["contrast"] if question["wanted"] == "contrast" else []
    if not edit.type.has_boxes:
        lists.append("expected")
    if question["wanted"] != "contrast":
        question.pop("contrast", None)
    for name in lists:
        numbers = [getattr(one.row, name) for one in kept]
        question.pop(name, None)
        if not any(numbers) and name == "expected":
            continue
        for one, number in zip(kept, numbers, strict=True):
            if not number and one.place is not None:
                raise _invalid("write a number for each choice", f"{name}[{one.place}]")
        question[name] = [number or {"contrast": "0", "expected": "1"}[name] for number in numbers]


def _can_be_known(edit: QuestionEdit) -> bool:
    return edit.place in ("form", "block") and not edit.type.has_boxes


def _set_anchor(
    question: Draft, edit: QuestionEdit, kept: Sequence[_Kept], before: QuestionEdit | None
) -> None:
    """Set what is known of all people's answers, or remove it if its numbers are empty.

    Or set the question that this one asks again.
    """
    question.pop("anchor", None)
    if _is_repeated(edit, before):
        _require_repeated(edit, kept)
        question["anchor"] = {"repeats": edit.repeats}
        return
    if not _can_be_known(edit) or not any(one.row.known for one in kept):
        was = "" if before is None else before.known_source
        if edit.known_source not in ("", was):
            raise _invalid(
                "this counts only with a known number beside each choice of a protected question: write these, "
                "or clear it",
                "known_source",
            )
        return
    _require_known(edit, kept, before)
    counts = [one.row.known for one in kept]
    question["anchor"] = {"counts": counts, "source": edit.known_source}


def _is_repeated(edit: QuestionEdit, before: QuestionEdit | None) -> bool:
    """Return True if the question asks another one again.

    Raises InvalidInput(definition_invalid) if that is chosen where it counts for nothing.
    """
    if edit.place == "form" and not edit.type.has_boxes:
        return bool(edit.repeats)
    if edit.repeats not in ("", "" if before is None else before.repeats):
        raise _invalid(
            "only a question that is protected together with the other questions, and has no boxes, asks "
            "one of them again: choose that, or no question here",
            "repeats",
        )
    return False


def _require_repeated(edit: QuestionEdit, kept: Sequence[_Kept]) -> None:
    """Raise InvalidInput(definition_invalid) at a field that contradicts asking a question again."""
    filled = {f"known[{one.place}]": one.row.known for one in kept} | {
        "known_source": edit.known_source
    }
    for field in filled:
        if filled[field]:
            raise _invalid(
                "of a question that asks another one again no shares are known: clear this, or choose no "
                "question to ask again",
                field,
            )
    if edit.after:
        raise _invalid("everybody is asked again: choose everybody", "after")
    if edit.wanted not in ("", "shares"):
        raise _invalid(
            "of a question that asks another one again, only whether both answers are equal is estimated: "
            "choose the share of each choice",
            "wanted",
        )
    for one in kept:
        if one.row.expected:
            raise _invalid(
                "the expected counts of the question that is asked again count for both: clear these",
                f"expected[{one.place}]",
            )


def _require_known(edit: QuestionEdit, kept: Sequence[_Kept], before: QuestionEdit | None) -> None:
    """Raise InvalidInput(definition_invalid) if a field contradicts the known numbers, or one is missing.

    The refusal is at the numbers if the draft has already what contradicts them.
    """
    typed = next(f"known[{one.place}]" for one in kept if one.row.known)
    if edit.after:
        raise _invalid(
            "what is known of all people says nothing about some of them: choose that everybody is asked, or "
            "clear the known numbers",
            typed if before is not None and before.after else "after",
        )
    for role in (one.choice["role"] for one in kept if "role" in one.choice):
        raise _invalid(
            "the known numbers are of people who answer: untick “Prefer not to say” and “Does not apply”, or "
            "clear the known numbers",
            typed if before is not None and role in before.roles else role,
        )
    for one in kept:
        if not one.row.known:
            raise _invalid(
                "write a number for each choice, 0 if nobody is known to choose it",
                f"known[{one.place}]",
            )
    if not edit.known_source:
        raise _invalid("write where these numbers are published", "known_source")


def _taken(edited: Draft, question: Draft, place: str) -> Draft:
    """Return the draft without a question that moves to another place."""
    for block in edited.get("blocks", []):
        if question in block["questions"] and (
            len(block["questions"]) > 1 or set(block) - _WITHOUT_ORDER
        ):
            raise _invalid(
                "this question cannot leave its place: its protection rests on counts or levels for "
                "each choice, or on another question. Change the protection first, in the next step",
                "place",
            )
    lists = [edited.get("form", {}), *edited.get("blocks", [])]
    is_only = sum(len(one.get("questions", [])) for one in lists) == 1
    if is_only and place in ("form", "block"):  # for a moment, the draft has no protected question
        return {name: value for name, value in edited.items() if name not in ("form", "blocks")}
    try:
        return remove_question(edited, question["id"])
    except InvalidInput as refused:
        raise _invalid(refused.detail, "place") from None


def _placed(edited: Draft, question: Draft, place: str) -> Draft:
    """Return the draft with a question added at the end of its place."""
    if place == "public":
        edited.setdefault("strata", []).append(question)
        return edited
    form = edited.get("form")
    if place == "form":
        if form is None:
            edited["form"] = form = {"questions": []}
            if edited.get("blocks"):
                form["epsilon"] = "1"
        form["questions"].append(question)
    else:
        # The form of a survey without blocks has the budget as its level.
        if form is not None and not edited.get("blocks"):
            form.setdefault("epsilon", edited["budget"])
        edited.setdefault("blocks", []).append(
            {"id": question["id"], "questions": [question], "notion": "ldp", "epsilon": "1"}
        )
    return with_budget(edited)


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
    used = item_ids(questions_of(edited))
    for question in duplicate.get("questions", [duplicate]):
        # A copy becomes another question, of which nothing is known, and which asks nothing again.
        question.pop("anchor", None)
        while question["id"] in used or item_ids([question]) & used:
            question["id"] = slug(question["id"], {*used, question["id"]})
        used |= item_ids([question])
    if "questions" in duplicate:
        duplicate["id"] = slug(duplicate["id"], [block["id"] for block in edited["blocks"]])
    listed.insert(place + 1, duplicate)
    return with_budget(edited)


def _place(choices: Sequence[Draft], choice_id: str) -> int | None:
    ids = [choice["id"] for choice in choices]
    return ids.index(choice_id) if choice_id in ids else None


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
    names = {old_id: new_id} | {
        f"{old_id}-{old}": f"{new_id}-{new}" for old, new in choice_ids.items()
    }
    for question in questions_of(draft):
        rule = question.get("ask_if")
        if rule and rule["question"] == old_id:
            rule["choices"] = [choice_ids.get(choice, choice) for choice in rule["choices"]]
        if rule:
            rule["question"] = names.get(rule["question"], rule["question"])
        if question.get("anchor", {}).get("repeats") == old_id:
            question["anchor"]["repeats"] = new_id
    _rename_in_tokens(draft.get("tokens") or {}, old_id, new_id, choice_ids)
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
            _rename_in_prior(prior, old_id, new_id, choice_ids)


def _rename_in_tokens(
    tokens: Draft, old_id: str, new_id: str, choice_ids: Mapping[str, str]
) -> None:
    if tokens.get("question") == old_id:
        tokens["question"] = new_id
        if tokens.get("keys"):
            keys = tokens["keys"].items()
            tokens["keys"] = {choice_ids.get(one, one): key for one, key in keys}


def _rename_in_prior(prior: Draft, old_id: str, new_id: str, choice_ids: Mapping[str, str]) -> None:
    if prior.get("secret") == old_id:
        prior["secret"] = new_id
    for stratum in prior.get("strata", []):
        when = stratum["when"]
        if old_id in when:
            choice = when.pop(old_id)
            when[new_id] = choice_ids.get(choice, choice)


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
