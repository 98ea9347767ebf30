# SPDX-License-Identifier: Apache-2.0
"""What a survey's earlier versions go on doing: their links accept answers, their minimum counts.

Each link pins the document of one version, so publishing again changes no link that was given out.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.label import name_of

_LINKS: Final = (
    "Links of earlier versions show the text of their version; while the survey is open they accept answers until "
    "it closes ({}). {} A device that has answered one version does not answer another."
)
_POOLED: Final = "Estimates include these answers, which are released in batches of their own."
_PARTLY: Final = (
    "Estimates include these answers, except those to {}: version {} asks this with other choices or not at all, so "
    "they are estimated apart. They are released in batches of their own."
)
_APART: Final = (
    "These answers are estimated apart, because version {} asks every question with other choices or not at all. They "
    "are released in batches of their own."
)
_MOST_NAMED: Final = 4
_MINIMUM: Final = (
    "Version {} promised its respondents no result with fewer than {} answers. Every result that includes answers to "
    "that version needs {}, not {}."
)


class Asked(Protocol):
    """A question of a document or of a draft."""

    @property
    def id(self) -> str:
        """The question's id."""

    @property
    def choices(self) -> Sequence[Any]:
        """Choices with ids."""


def older_links(
    documents: Sequence[SurveyDocument], newest: int, questions: Iterable[Asked]
) -> str:
    """Return a sentence about the links older than version `newest`; "" if none accepts answers.

    documents : the versions that have not closed (`Surveys.open_versions`). questions : the
    randomised ones of version `newest`.
    """
    older = [document for document in documents if document.version < newest]
    times = [
        f"version {document.version}: {document.closes:%Y-%m-%d %H:%M} UTC" for document in older
    ]
    return _LINKS.format("; ".join(times), _pooling(older, newest, questions)) if times else ""


def _pooling(older: Sequence[SurveyDocument], newest: int, questions: Iterable[Asked]) -> str:
    """Return which answers to earlier versions are estimated together with those to the newest.

    Versions are pooled for a question with the same id and the same choices (analysis/tables.py).
    """
    now = {_key(question) for question in questions}
    before = [
        (_key(question) in now, name_of(question, document.languages[0]))
        for document in reversed(older)
        for question in document.questions.values()
    ]
    if not any(is_pooled for is_pooled, _ in before):
        return _APART.format(newest)
    names = list(dict.fromkeys(name for is_pooled, name in before if not is_pooled))
    if not names:
        return _POOLED
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(f"“{name}”" for name in names[:_MOST_NAMED])
    return _PARTLY.format(listed + more, newest)


def _key(question: Asked) -> tuple[str, ...]:
    return (question.id, *(choice.id for choice in question.choices))


def larger_minimum(documents: Sequence[SurveyDocument], min_reports: int) -> tuple[str, ...]:
    """Return a warning if a version has a larger minimum than `min_reports`; () if none has.

    documents : every version (`Surveys.versions`), because estimates include closed ones too.
    """
    if not documents:
        return ()
    largest = max(documents, key=lambda document: document.min_reports)
    if largest.min_reports <= min_reports:
        return ()
    needed = largest.min_reports
    return (_MINIMUM.format(largest.version, needed, needed, min_reports),)
