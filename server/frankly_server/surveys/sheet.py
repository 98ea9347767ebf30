# SPDX-License-Identifier: Apache-2.0
"""Sheets for people who decide about taking part, and for ethics boards, from a signed document alone."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.label import host_of

from frankly_server.surveys.summary import ReadTexts, read_texts, releases


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as a person sees it, with its choices; a question with boxes once, with all of them."""

    text: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the sheets say.

    public : questions whose answers are sent as given. randomised : all others. item : the text of an
    instructed item, of which only whether it was passed is sent; "" without one. is_invited : True if
    whoever invites can tell which report is whose. results : sentences, in English.
    """

    read: ReadTexts
    version: int
    digest: str
    public: tuple[AskedQuestion, ...]
    randomised: tuple[AskedQuestion, ...]
    item: str
    is_invited: bool
    host: str
    closes: datetime
    results: tuple[str, ...]


def sheet_of(payload: bytes, language: str) -> Sheet:
    """Return the sheet of a document, of which `payload` are the bytes, in one of its languages."""
    document = SurveyDocument.parse(payload)
    item, token = document.instructed, document.token
    return Sheet(
        read=read_texts(document, language),
        version=document.version,
        digest=document.digest,
        public=tuple(
            AskedQuestion(one.text[language], tuple(c.label[language] for c in one.choices))
            for one in document.strata
        ),
        randomised=_randomised(document, language),
        item="" if item is None else item.question.text[language],
        is_invited=token is not None and token.kind == "invite",
        host=host_of(document),
        closes=document.closes,
        results=releases(document),
    )


def _randomised(document: SurveyDocument, language: str) -> tuple[AskedQuestion, ...]:
    asked = []
    for _, group in groupby(
        document.questions.values(), lambda one: one.box.of if one.box else one.id
    ):
        first, *more = group
        if first.box is None:
            choices = tuple(choice.label[language] for choice in first.choices)
            asked.append(AskedQuestion(first.text[language], choices))
            continue
        boxes = [one.box for one in (first, *more) if one.box is not None]
        labels = tuple(box.label[language] for box in boxes)
        asked.append(AskedQuestion(first.box.text[language], labels))
    return tuple(asked)
