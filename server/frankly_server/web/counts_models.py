# SPDX-License-Identifier: Apache-2.0
"""Models of survey lists and counts for the OpenAPI document (spec 8.11)."""

from typing import Annotated, Literal

from pydantic import Field

from frankly_server.surveys.opened import ListedSurvey
from frankly_server.web.models import Shape

Texts = dict[str, str]
Count = Annotated[int, Field(ge=0)]
Rows = list[list[float] | None]


class CountedChoice(Shape):
    """A choice, with score, role and lower end of its range if the document has them."""

    id: str
    label: Texts
    score: float | None = None
    role: Literal["no_answer", "not_applicable"] | None = None
    from_: int | None = Field(default=None, alias="from")


class CountedQuestion(Shape):
    """A question with its choices."""

    id: str
    text: Texts
    choices: list[CountedChoice]


class CountedFactor(Shape):
    """A mechanism of the part; factors are independent given the answers."""

    name: str = Field(description="Kind of the mechanism, such as `dense`, `unary` or `subset`.")
    denominator: int | None = Field(default=None, description="Sum of a row of `weights`.")
    weights: list[list[int]] | None = Field(
        default=None,
        description="Of a table: P(symbol | answer) times `denominator`, one row per answer.",
    )
    inside: list[int] | None = Field(
        default=None,
        description="Of sets: numerator and denominator of the probability that the set contains the true answer.",
    )
    outside: list[int] | None = Field(
        default=None, description="The same for an answer that is not the truth."
    )
    design_prior: list[int]
    decoder: Rows = Field(
        description="Scores whose mean is the unbiased share of each answer: by symbol or, for sets, one for every "
        "report and one for each answer in the set. Null for a share that cannot be estimated."
    )


class CountedMarginal(Shape):
    """Decoder of the cells of some questions of a part."""

    questions: list[str]
    decoder: Rows


class CountedReports(Shape):
    """Counts of some reports."""

    n: Count
    counts: list[Count] | None = Field(
        default=None, description="Of a table: by joint symbol, the last factor fastest."
    )
    pairs: list[list[Count]] | None = Field(
        default=None,
        description="Of sets: number of sets that contain both answers; one answer on the diagonal.",
    )
    masks: list[list[Count]] | None = Field(
        default=None,
        description="Of sets of up to ten answers: each set as a bit mask, with its number of reports.",
    )


class CountedStratum(CountedReports):
    """Counts of the reports with these public answers."""

    by: dict[str, str]


class Withheld(Shape):
    """Strata with fewer reports than the minimum, and the number of their reports."""

    strata: Count
    reports: Count


class CountedPart(Shape):
    """Counts of one part of a document, which one mechanism randomises, or of two parts jointly."""

    document: str
    version: int
    arm: str | None = Field(None, description="The arm, of a version that has arms.")
    release: int
    block: str
    questions: list[CountedQuestion]
    kind: Literal["table", "sets"]
    n: Count
    minimum: int
    factors: list[CountedFactor]
    marginals: list[CountedMarginal] | None = Field(
        default=None, description="Present if some share of a joint answer cannot be estimated."
    )
    strata: list[CountedStratum]
    withheld: Withheld
    without_stratum: Count = Field(
        description="Reports released without their public answers, or on a document that does not ask for them."
    )
    rest: CountedReports | None = Field(
        description="The reports of `withheld` and `without_stratum` together, as if they were one stratum; null if "
        "there are none, or if the part has fewer reports than the minimum."
    )


class SurveyCounts(Shape):
    """Released counts of noisy symbols of a survey, by part and stratum."""

    survey: str
    title: Texts
    languages: list[str]
    by: list[str]
    questions: list[str] | None
    since: str | None
    until: str | None
    n: Count
    strata_questions: list[CountedQuestion]
    parts: list[CountedPart]
    left_out: list[str] = Field(
        description="Ids of blocks that releases do not count, because they have too many symbols."
    )


class SurveyList(Shape):
    """Surveys that the key gives access to, sorted by name. next : `after` for the next page, or null."""

    surveys: list[ListedSurvey]
    next: str | None


ALL = (SurveyCounts, SurveyList)
