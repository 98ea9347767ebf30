# SPDX-License-Identifier: Apache-2.0
"""What `frankly survey apply` says of each question, for the number of people who are expected."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frankly_analyst.plots import NUMBER, SHARE
from frankly_protocol.errors import InvalidInput
from rich.table import Table

from frankly_server.cli.console import table
from frankly_server.lazy import LazyModule

if TYPE_CHECKING:
    from frankly_server.surveys import trial
    from frankly_server.surveys.definition import SurveyDefinition
    from frankly_server.surveys.drafting import Progress
else:
    trial = LazyModule("frankly_server.surveys.trial")  # imports the design engine


@dataclass(frozen=True, slots=True)
class ExpectedQuestion:
    """A question or table if the expected number of people answer.

    text : its questions. reports : number of reports about it. figure : what is wanted of it: shares,
    mean, distribution or contrast. unit : "number", or "share" (1 is all). margin : half-width at 95%
    of that figure, the widest of several; None without a result, or if some figure cannot be
    estimated. has_result : False if there are fewer reports than `min_reports`.
    """

    text: str
    reports: int
    figure: str
    unit: str
    margin: float | None
    has_result: bool


def questions_of(
    definition: "SurveyDefinition", progress: "Progress | None" = None
) -> list[ExpectedQuestion] | str:
    """Return what to expect of each question, or the reason why it is not known."""
    if progress:
        progress(0, 1, "margins")
    try:
        # The address is in no margin.
        _, rows = trial.expectations(definition, datetime.now(UTC), "https://unused.example")
    except InvalidInput as fault:
        return fault.detail
    finally:
        if progress:
            progress(1, 1, "")
    place = trial.answer_points(definition).index(definition.expected_reports)
    questions = []
    for row in rows:
        has_result = row.about[place] >= definition.min_reports
        margin = row.margins[place] if has_result else None
        about, unit = row.about[place], NUMBER if row.is_number else SHARE
        questions.append(ExpectedQuestion(row.text, about, row.figure, unit, margin, has_result))
    return questions


def expected_json(
    definition: "SurveyDefinition", questions: Sequence[ExpectedQuestion] | str
) -> dict[str, Any]:
    """Return the same for --json; `questions` is null if it is not known."""
    return {
        "people": definition.expected_reports,
        "min_reports": definition.min_reports,
        "questions": None if isinstance(questions, str) else list(map(asdict, questions)),
    }


def shown(
    definition: "SurveyDefinition", questions: Sequence[ExpectedQuestion] | str
) -> Table | str:
    """Return the table for people, or a sentence if it is not known."""
    if isinstance(questions, str):
        return f"What to expect of each question is not known: {questions}."
    title = (
        f"If {definition.expected_reports} people answer (a result needs {definition.min_reports} "
        "answers about its question)"
    )
    columns = ("question", "answers about it", "wanted", "margin")
    rows = [(one.text, str(one.reports), one.figure, _margin(one)) for one in questions]
    return table(title, columns, rows)


def _margin(question: ExpectedQuestion) -> str:
    if not question.has_result:
        return "no result"
    if question.margin is None:
        return "unknown"
    is_number = question.unit == NUMBER
    return f"±{question.margin:.2g}" if is_number else f"±{100 * question.margin:.1f} points"
