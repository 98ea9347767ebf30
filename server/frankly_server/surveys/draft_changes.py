# SPDX-License-Identifier: Apache-2.0
"""What changed between two drafts, in phrases for people."""

from typing import Any, Final

from frankly_server.surveys.editing import Draft, questions_of

_NAMES: Final = {
    "accept_small_cells": "small groups of public answers",
    "blocks": "protection of single questions",
    "budget": "limit of the whole report",
    "closes": "closing time",
    "consent": "text before the questions",
    "expected_reports": "number of people expected",
    "expires": "last moment on devices",
    "form": "protection or pairs of the questions together",
    "min_reports": "answers that a result needs",
    "opens": "opening time",
    "page": "look of the page",
    "release_every": "time between releases",
    "release_step": "answers released together",
    "tokens": "invitations",
}


def summary(old: Draft, new: Draft) -> list[str]:
    """Return what changed between two drafts as phrases: a question by its text, other fields in words."""
    before, after = ({one["id"]: one for one in questions_of(draft)} for draft in (old, new))
    phrases = [
        *(f"removed “{_text(old, one)}”" for name, one in before.items() if name not in after),
        *(f"added “{_text(new, one)}”" for name, one in after.items() if name not in before),
        *(
            f"changed “{_text(new, one)}”"
            for name, one in after.items()
            if name in before and before[name] != one
        ),
    ]
    kept = [
        [name for name in one if name in other] for one, other in ((before, after), (after, before))
    ]
    if kept[0] != kept[1]:
        phrases.append("moved questions")
    others = sorted(
        name
        for name in {*old, *new}
        if _without_questions(old, name) != _without_questions(new, name)
    )
    if others:
        phrases.append(f"changed {', '.join(_NAMES.get(name, name) for name in others)}")
    return phrases


def _text(draft: Draft, question: Draft) -> str:
    return str(question["text"][draft["languages"][0]])


def _without_questions(draft: Draft, name: str) -> Any:
    """Return a field of a draft without the questions in it."""
    value = draft.get(name)
    if name in ("strata", "instructed"):
        return None
    if name == "blocks":
        return [{key: block[key] for key in block if key != "questions"} for block in value or []]
    if isinstance(value, dict) and name == "form":
        return {key: one for key, one in value.items() if one and key != "questions"}
    return value
