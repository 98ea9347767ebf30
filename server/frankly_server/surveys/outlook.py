# SPDX-License-Identifier: Apache-2.0
"""What the protection of a draft means: for one respondent, in the words of devices, and for the margins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.label import beliefs, consequences

from frankly_server.surveys.asked import asked_in_words, without_refusal
from frankly_server.surveys.correction import correction_in_words
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.summary import NO_RESULT, SummaryRow, summary_rows
from frankly_server.surveys.trial import drafted, wanted_pairs


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a protection means.

    sentences : what the respondents' page says about certainty. rows : margins of the chosen
    questions. example : a sentence that says what the widest margin of a share means; "" without one.
    notes : why there is no result, how many questions are asked, and who cannot refuse.
    """

    sentences: tuple[str, ...]
    rows: tuple[SummaryRow, ...]
    example: str
    notes: tuple[str, ...]


def outlook(
    definition: SurveyDefinition, questions: Sequence[str], now: datetime, url: str
) -> Outlook:
    """Return what the protection of these questions of a draft means. questions : ids, of boxes too.

    Raises the InvalidInput errors of `trial.drafted`.
    """
    document, asked = drafted(definition, now, url), set(questions)
    rows = [
        row
        for row in summary_rows(document, definition.expected_reports, wanted_pairs(definition))
        if asked.issuperset(row.questions)
    ]
    secrets = [f"“{name}”" for name in document.report_level.secrets]
    widest = max((row.points for row in rows if row.points is not None), default=None)
    return Outlook(
        # What is protected comes first: the answer itself may need no secret.
        tuple(
            sorted(
                _sentences(document, asked),
                key=lambda one: not any(name in one for name in secrets),
            )
        ),
        tuple(rows),
        "" if widest is None else _example(widest),
        (
            *_without_result(rows, document),
            *_alone(document, asked),
            asked_in_words(document),
            *correction_in_words(document),
            *without_refusal(document),
        ),
    )


def _sentences(document: SurveyDocument, asked: set[str]) -> Iterator[str]:
    """Yield the label's sentences on how sure anybody can become, in the language of the pages."""
    texts, language = Texts("en", "label"), document.languages[0]
    guesses = [""] * len(document.blocks)
    for one in consequences(document, guesses, language, texts):
        if asked.intersection(one.questions):
            if one.fit is not None and one.fit.is_plain:
                yield from one.sentences
            yield from one.notes
    yield from beliefs(
        document.report_level,
        texts,
        has_open=bool(document.open_questions),
        is_random=not all(block.mechanism.sends_unchanged for block in document.blocks),
    )


def _without_result(rows: Sequence[SummaryRow], document: SurveyDocument) -> Iterator[str]:
    if any(row.margin == NO_RESULT for row in rows):
        yield (
            f"“No result”: a result needs {document.min_reports:,} answers about its question, and fewer are "
            "expected. More people or fewer questions give one, and so does a lower minimum (page Questions)."
        )


def _alone(document: SurveyDocument, asked: set[str]) -> Iterator[str]:
    """Yield what a part tells by itself, if the survey has several, whose reports add up."""
    for block in document.blocks if len(document.blocks) > 1 else ():
        odds = block.ceiling
        if odds is not None and asked.issuperset(question.id for question in block.questions):
            sure = ceil(100 * odds / (1 + odds))
            yield (
                f"This survey has {len(document.blocks)} parts that are protected by themselves, and what they tell "
                "adds up. From this part alone, somebody who was 50% sure of an answer can become "
                f"{min(sure, 100)}% sure at most."
            )


def _example(points: float) -> str:
    """Return what a margin of shares means for a share of one half."""
    low, high = max(0.0, 50 - points), min(100.0, 50 + points)
    return (
        f"For example: if the share of an answer is 50%, the result shows something from {low:.1f}% to {high:.1f}%, in "
        "about 19 of 20 such surveys."
    )
