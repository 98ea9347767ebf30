# SPDX-License-Identifier: Apache-2.0
"""Languages of a draft: its texts in each of them, and what is not translated yet."""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_server.surveys.editing import Draft, questions_of
from frankly_server.surveys.question_definition import usual_label
from frankly_server.surveys.question_edit import path_of

_PRIVATE: Final = re.compile("q[a-t][a-z]")  # ISO 639-2


@dataclass(frozen=True, slots=True)
class DraftText:
    """A text of a draft in each language, as stored in it.

    path : its place in the draft, as in refusals. kind : title, consent, question or choice. usual :
    name of the usual label, for a choice that is no, yes or has a role; "" for any other text.
    """

    path: str
    kind: str
    by_language: dict[str, str]
    usual: str = ""


def texts_of(draft: Draft) -> Iterator[DraftText]:
    """Yield every text of a draft, in the order in which its pages show them."""
    for kind in ("title", "consent"):
        if draft.get(kind):
            yield DraftText(kind, kind, draft[kind])
    for question in questions_of(draft):
        path = path_of(draft, question["id"])
        yield DraftText(f"{path}.text", "question", question["text"])
        listed = [
            (f"{path}.{field}[{i}].label", choice)
            for field in ("choices", "boxes")
            for i, choice in enumerate(question.get(field, []))
        ]
        for place, choice in listed:
            name = choice.get("role", choice["id"])
            is_usual = name in ("no", "yes") or "role" in choice
            yield DraftText(place, "choice", choice["label"], name if is_usual else "")


def with_languages(draft: Draft, languages: Sequence[str]) -> Draft:
    """Return the draft with these languages.

    A new one begins with the texts of the first, and with its own words for no, yes and choices with
    a role where the first language has the usual ones. One that takes the place of a tag for private
    use, which stands for a language without a known tag, keeps its texts.
    """
    edited = _renamed(draft, languages)
    first = edited["languages"][0]
    edited["languages"] = list(languages)
    for text in texts_of(edited):
        words, usual = text.by_language, {}
        if text.usual and words[first] == usual_label(text.usual, [first])[first]:
            usual = usual_label(text.usual, [first, *languages])
        kept = {tag: words.get(tag, usual.get(tag, words[first])) for tag in languages}
        words.clear()
        words.update(kept)
    return edited


def _renamed(draft: Draft, languages: Sequence[str]) -> Draft:
    """Return a copy of the draft, with a tag for private use replaced by the one in its place."""
    edited = copy.deepcopy(draft)
    if len(languages) != len(edited["languages"]):
        return edited
    for old, new in zip(draft["languages"], languages, strict=True):
        if not _PRIVATE.fullmatch(old) or new in edited["languages"]:
            continue
        edited["languages"] = [new if tag == old else tag for tag in edited["languages"]]
        for text in texts_of(edited):
            text.by_language[new] = text.by_language.pop(old)
    return edited


def with_translations(draft: Draft, language: str, texts: Sequence[str]) -> Draft:
    """Return the draft with its texts in one language, in the order of `texts_of`.

    An empty text stands for one that is not translated yet.
    """
    edited = copy.deepcopy(draft)
    first = draft["languages"][0]
    for text, words in zip(texts_of(edited), texts, strict=True):
        text.by_language[language] = words or text.by_language[first]
    return edited


def is_untranslated(text: Mapping[str, str], language: str, first: str) -> bool:
    """Return True if a text still equals that of the first language; False without letters."""
    # A text without letters, such as a number, reads the same in every language.
    return text[language] == text[first] and any(map(str.isalpha, text[first]))


def untranslated(draft: Draft) -> dict[str, int]:
    """Return, for each further language, how many texts still equal those of the first."""
    first, *others = draft["languages"]
    texts: list[Any] = [text.by_language for text in texts_of(draft)]
    counts = {tag: sum(is_untranslated(text, tag, first) for text in texts) for tag in others}
    return {language: n for language, n in counts.items() if n}
