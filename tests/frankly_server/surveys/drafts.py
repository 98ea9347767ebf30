# SPDX-License-Identifier: Apache-2.0
"""Drafts for tests: questions added as on the page, and rows that change nothing."""

from collections.abc import Sequence

from frankly_server.surveys.editing import Draft
from frankly_server.surveys.question_edit import ChoiceRow, QuestionEdit, edit_of
from frankly_server.surveys.question_editing import new_id, with_question
from frankly_server.surveys.question_types import TYPES


def add_question(
    draft: Draft, text: str, choices: Sequence[str], *, public: bool = False, wanted: str = ""
) -> Draft:
    """Return the draft with a further question; the choices of a wanted mean have the scores 1, 2, 3, …"""
    first = draft["languages"][0]
    own = "form" if "form" in draft and not draft.get("blocks") else "block"
    edit = QuestionEdit(
        new_id(draft, text),
        {first: text},
        TYPES["scale" if wanted == "mean" else "single"],
        "public" if public else own,
        tuple(ChoiceRow("", "", {first: label}) for label in choices),
        wanted=wanted,
    )
    return with_question(draft, edit)


def rows_of(draft: Draft, question_id: str) -> list[ChoiceRow]:
    """Return the rows that change nothing."""
    return list(edit_of(draft, question_id).rows)
