# SPDX-License-Identifier: Apache-2.0
"""Sheets for people who decide about taking part, and for ethics boards, from a signed document alone."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.label import host_of

from frankly_server.surveys.summary import ReadTexts, arm_name, read_texts, releases


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as a person sees it, with its choices; a question with boxes once, with all of them."""

    text: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the sheets say; of a survey with arms, to those whose device draws one of them.

    arm : its name and its chance, "" without arms. public : questions whose answers are sent as given.
    randomised : all others. item : the text of an instructed item, of which only whether it was passed
    is sent; "" without one. is_invited : True if whoever made an invitation can tell which
    report has it; people of other sources may have blind tokens.
    results : sentences, in English.
    """

    arm: str
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


def sheets_of(payload: bytes, language: str) -> tuple[Sheet, ...]:
    """Return the sheets of a document, of which `payload` are the bytes, in one of its languages.

    One for each arm, as people with different arms are asked and read different things; or the only one.
    """
    document = SurveyDocument.parse(payload)
    return tuple(_sheet(document, version, language) for version in document.versions)


def _sheet(document: SurveyDocument, version: SurveyDocument, language: str) -> Sheet:
    """Return the sheet of the view of an arm, or of a document without arms, which is its own version."""
    item, token = version.instructed, version.token
    return Sheet(
        arm=arm_name(version),
        read=read_texts(version, language),
        version=document.version,
        digest=document.digest,
        public=tuple(
            AskedQuestion(one.text[language], tuple(c.label[language] for c in one.choices))
            for one in version.strata
        ),
        randomised=_randomised(version, language),
        item="" if item is None else item.question.text[language],
        is_invited=token is not None and bool(token.invites),
        host=host_of(document),
        closes=document.closes,
        results=releases(version),
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
