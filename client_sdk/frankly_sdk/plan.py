# SPDX-License-Identifier: Apache-2.0
"""What to ask one respondent, for the app to show."""

from dataclasses import dataclass
from typing import Never


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """The questions to ask one respondent, besides the public ones.

    questions : ids, in the order of the document; a question with boxes has the ids of all its
        boxes. Rules still apply: a question that an earlier answer rules out need not be shown.
    asked : their number; the boxes of one question count as one.
    of : the number of questions of the document, or of the arm, counted in the same way.
    arm : the drawn arm, of which `Survey.arms` has the questions and their words; None if the survey
        has no arms.

    The questions were drawn before any answer was known, so they reveal nothing about the
    respondent. But a report shows what it is about: whoever knows somebody's plan may tell which
    report is theirs. Therefore an app must not log or send it; the repr is empty, and pickling or
    copying raises TypeError.
    """

    questions: tuple[str, ...]
    asked: int
    of: int
    arm: str | None = None

    def __repr__(self) -> str:
        return "Plan(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a Plan cannot be copied or pickled")
