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
from frankly_server.surveys.trial import answer_points, expectations
from frankly_server.surveys.verdicts import verdict


@dataclass(frozen=True, slots=True)
class MarginRow:
    """What to expect of one question or table at the expected number of answers.

    text : its questions. about : number of answers about it. margin : half-width at 95% in words,
    or why there is none. verdict : of `verdicts.verdict`, "" for figures that are no shares.
    """

    text: str
    about: int
    margin: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a protection means.

    sentences : what the respondents' page says about certainty. rows : margins of the chosen
    questions. example : a sentence that says what the widest margin of a share means; "" without one.
    notes : how many questions are asked, and who cannot refuse.
    """

    sentences: tuple[str, ...]
    rows: tuple[MarginRow, ...]
    example: str
    notes: tuple[str, ...]


def outlook(
    definition: SurveyDefinition, questions: Sequence[str], now: datetime, url: str
) -> Outlook:
    """Return what the protection of these questions of a draft means. questions : ids, of boxes too.

    Raises the InvalidInput errors of `trial.drafted`.
    """
    document, expected = expectations(definition, now, url)
    point, asked = answer_points(definition).index(definition.expected_reports), set(questions)
    rows, widest = list[MarginRow](), 0.0
    for row in expected:
        if not asked.issuperset(row.questions):
            continue
        about, margin = row.about[point], row.margins[point]
        if about < document.min_reports:
            rows.append(
                MarginRow(row.text, about, f"no result: that needs {document.min_reports}", "")
            )
        elif margin is None:
            rows.append(MarginRow(row.text, about, "some shares cannot be estimated", ""))
        elif row.is_number:
            rows.append(MarginRow(row.text, about, f"{margin:.2g}", ""))
        else:
            widest = max(widest, margin)
            rows.append(MarginRow(row.text, about, f"{margin * 100:.1f} points", verdict(margin)))
    return Outlook(
        tuple(_sentences(document, asked)),
        tuple(rows),
        _example(widest) if widest else "",
        (asked_in_words(document), *without_refusal(document)),
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


def _example(margin: float) -> str:
    """Return what a margin of shares means for a share of one half."""
    points = round(margin * 100, 1)
    low, high = max(0, floor(50 - points)), min(100, ceil(50 + points))
    return (
        f"For example: if half of the people would answer “yes”, the result shows something from {low}% to "
        f"{high}%, in about 19 of 20 such surveys."
    )
