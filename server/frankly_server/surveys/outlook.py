# SPDX-License-Identifier: Apache-2.0
"""What the protection of a draft means: for one respondent, in the words of devices, and for the margins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.label import beliefs, of_answers

from frankly_server.surveys.asked import asked_in_words, without_refusal
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
    widest = max((row.points for row in rows if row.points is not None), default=None)
    return Outlook(
        tuple(_sentences(document, asked)),
        tuple(rows),
        "" if widest is None else _example(widest),
        (*_without_result(rows, document), asked_in_words(document), *without_refusal(document)),
    )


def _sentences(document: SurveyDocument, asked: set[str]) -> Iterator[str]:
    """Yield the label's sentences on how sure anybody can become, in the language of the pages."""
    texts = Texts("en", "label")
    for block in document.blocks:
        if len(block.questions) == 1 and block.questions[0].id in asked:
            language, (question,) = document.languages[0], block.questions
            yield from of_answers(question, block.promises, block.ceiling, language, texts)
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


def _example(points: float) -> str:
    """Return what a margin of shares means for a share of one half."""
    low, high = max(0, floor(50 - points)), min(100, ceil(50 + points))
    return (
        f"For example: if half of the people would answer “yes”, the result shows something from {low}% to "
        f"{high}%, in about 19 of 20 such surveys."
    )
