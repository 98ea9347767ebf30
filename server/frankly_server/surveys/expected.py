# SPDX-License-Identifier: Apache-2.0
"""What to expect of each question of a draft, for the number of people who are expected."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frankly_analyst.plots import NUMBER, SHARE
from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.asking import Asking
from frankly_protocol.errors import InvalidInput

if TYPE_CHECKING:
    from frankly_protocol.documents import SurveyDocument

    from frankly_server.surveys import trial
    from frankly_server.surveys.definition import SurveyDefinition
    from frankly_server.surveys.drafting import Progress
else:
    # Lazy, because it imports the design engine.
    trial = LazyModule("frankly_server.surveys.trial")


@dataclass(frozen=True, slots=True)
class ExpectedQuestion:
    """A question or table if the expected number of people answer.

    text : its questions. reports : number of reports about it. figure : what is wanted of it: shares,
    mean, distribution or contrast. unit : "number", or "share" (1 is all). margin : half-width at 95%
    of that figure, the widest of several; None without a result, or if some figure cannot be
    estimated. has_result : False if there are fewer reports than `min_reports`. factor : largest standard
    error of the figure corrected by anchors over that of the uncorrected one; None if nothing corrects it.
    """

    text: str
    reports: int
    figure: str
    unit: str
    margin: float | None
    has_result: bool
    factor: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What to expect of a draft. document : as it would be published."""

    document: "SurveyDocument"
    questions: Sequence[ExpectedQuestion]


def expected_of(
    definition: "SurveyDefinition", progress: "Progress | None" = None
) -> Expected | str:
    """Return what to expect of each question, or the reason why it is not known.

    definition : as `Surveys.next_version` returns it.
    """
    if progress:
        progress(0, 1, "margins")
    try:
        # The address is in no margin.
        document, rows = trial.expectations(definition, datetime.now(UTC), "https://unused.example")
    except InvalidInput as fault:
        return fault.detail
    finally:
        if progress:
            progress(1, 1, "")
    return Expected(document, expected_questions(definition, rows))


def expected_questions(
    definition: "SurveyDefinition", rows: "Sequence[trial.ExpectedRow]"
) -> list[ExpectedQuestion]:
    """Return what to expect of each question for the expected number of people.

    rows : of `trial.expectations`.
    """
    place = trial.answer_points(definition).index(definition.expected_reports)
    questions = []
    for row in rows:
        has_result = row.about[place] >= definition.min_reports
        margin = row.margins[place] if has_result else None
        about, unit = row.about[place], NUMBER if row.is_number else SHARE
        questions.append(
            ExpectedQuestion(row.text, about, row.figure, unit, margin, has_result, row.factor)
        )
    return questions


def expected_json(definition: "SurveyDefinition", expected: Expected | str) -> dict[str, Any]:
    """Return the same for --json; `asked` and `questions` are null if it is not known.

    asked : numbers of questions without the public ones, boxes of one question counted as one: of the
    survey, and asked of a person at most and on average, before rules skip any.
    """
    known = None if isinstance(expected, str) else expected
    asking = known and Asking(known.document.blocks)
    return {
        "people": definition.expected_reports,
        "min_reports": definition.min_reports,
        "asked": asking and {"of": asking.groups, "most": asking.most, "mean": float(asking.mean)},
        "questions": known and list(map(asdict, known.questions)),
    }
