# SPDX-License-Identifier: Apache-2.0
"""Sources of a draft, such as panels, classes and lists: a public question, and tokens of each choice."""

import copy
from collections.abc import Sequence
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import SOURCES

from frankly_server.surveys.editing import Draft, item_ids, questions_of, slug

SOURCE_ID: Final = "source"
"""Id of a new question whose choices are sources."""
_TEXTS: Final = {
    "de": "Von wem kommt Ihre Einladung?",
    "en": "Who invited you?",
    "es": "¿Quién le ha invitado?",
    "fr": "Qui vous a invité ?",
    "it": "Chi l’ha invitata?",
    "nl": "Wie heeft u uitgenodigd?",
}


def source_question(draft: Draft) -> Draft | None:
    """Return the public question whose choices are the sources; None without sources."""
    name = (draft.get("tokens") or {}).get("question")
    return next((one for one in draft.get("strata", []) if one["id"] == name), None)


def source_names(draft: Draft) -> list[str]:
    """Return the names of the sources in the first language."""
    question, language = source_question(draft), draft["languages"][0]
    return (
        [] if question is None else [one["label"][language].strip() for one in question["choices"]]
    )


def with_sources(draft: Draft, names: Sequence[str], *, invited: bool) -> Draft:
    """Return the draft with these sources, each with invitations, unless a file gave it an issuer's key.

    names : in the first language; a source that keeps its name keeps its id, its place in results and its
    translations. Empty for no sources; then `invited` says whether people need an invitation.
    Raises InvalidInput(definition_invalid) for a single source, or if one with a key is gone.
    """
    edited = copy.deepcopy(draft)
    question = source_question(edited)
    if question is not None:
        _require_keyed(edited, question, names)
    if not names:
        if question is not None:
            edited["strata"].remove(question)
        edited["tokens"] = {"kind": "invite"} if invited else None
        return edited
    if len(names) < 2:
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            "name two or more sources, one on each line, or none",
            "sources",
        )
    if question is None:
        languages = edited["languages"]
        text = {one: _TEXTS.get(one.partition("-")[0].lower(), _TEXTS["en"]) for one in languages}
        question = {
            "id": slug(SOURCE_ID, item_ids(questions_of(edited))),
            "text": text,
            "choices": [],
        }
        edited.setdefault("strata", []).append(question)
    question["choices"] = _choices(edited, question["choices"], names)
    ids = {one["id"] for one in question["choices"]}
    keys = (edited.get("tokens") or {}).get("keys") or {}
    kept = {name: key for name, key in keys.items() if name in ids}
    edited["tokens"] = {"kind": SOURCES, "question": question["id"]} | (
        {"keys": kept} if kept else {}
    )
    return edited


def _require_keyed(draft: Draft, question: Draft, names: Sequence[str]) -> None:
    """Raise InvalidInput if a source with an issuer's key has no name any more: only a file has keys."""
    language, keys = draft["languages"][0], (draft.get("tokens") or {}).get("keys") or {}
    for choice in question["choices"]:
        name = choice["label"][language].strip()
        if choice["id"] in keys and name not in names:
            raise InvalidInput(
                Problem.DEFINITION_INVALID,
                f"“{name}” has tokens of an outside issuer: change or remove it on the page File",
                "sources",
            )


def _choices(draft: Draft, before: Sequence[Draft], names: Sequence[str]) -> list[Draft]:
    languages = draft["languages"]
    known = {one["label"][languages[0]].strip(): one for one in before}
    used, choices = {one["id"] for one in before}, list[Draft]()
    for name in names:
        choice = known.get(name)
        if choice is None:
            choice = {"id": slug(name, used), "label": dict.fromkeys(languages, name)}
            used.add(choice["id"])
        choices.append(choice)
    return choices
