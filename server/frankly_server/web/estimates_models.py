# SPDX-License-Identifier: Apache-2.0
"""Models of estimates and comparisons for the OpenAPI document, derived from the client's."""

from dataclasses import Field as DeclaredField
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

from frankly_analyst import (
    Comparison,
    EstimatesRequest,
    PartCompletion,
    RandomAnswers,
    ShareBounds,
    Source,
    rows,
)
from pydantic import Field, create_model

from frankly_server.web.models import Shape


def _shape_of(declared: type, *left_out: str) -> Any:
    """Return a model with the JSON fields of a dataclass of `frankly_analyst`."""
    hints = get_type_hints(declared)
    shapes: dict[str, Any] = {
        item.name: (
            _json_type(item, hints[item.name]),
            Field(description=item.metadata["description"]),
        )
        for item in fields(declared)
        if item.name not in left_out
    }
    return create_model(declared.__name__, __base__=Shape, **shapes)


def _json_type(item: DeclaredField[Any], hint: Any) -> Any:
    choices = item.metadata.get("choices")
    legal = Literal[choices] if choices else hint
    return item.metadata.get("json", legal | None if NoneType in get_args(hint) else legal)


# Derived, so that the analyst's client and the OpenAPI document cannot differ.
class EstimateRow(_shape_of(rows.Estimate)):  # type: ignore[misc]  # made from the declared row
    """One estimate and its uncertainty; unknown values are null."""


class EffectSize(Shape):
    """Association between two questions, with the ends of its interval at `level`."""

    name: Literal["Cramér's V", "phi"]
    estimate: float
    low: float
    high: float


class ChiSquaredTest(Shape):
    """A Wald test; all figures are null if no test is possible."""

    statistic: float | None
    df: int | None
    p: float | None
    flags: list[str]


class IndependenceTest(ChiSquaredTest):
    """The test that two questions are independent."""

    effect: EffectSize | None


class RandomAnswering(_shape_of(RandomAnswers)):  # type: ignore[misc]  # made from the declared row
    """People who answer at random, by an instructed item or anchors; `corrected` of the rows takes them out."""


class ComparisonRow(_shape_of(Comparison)):  # type: ignore[misc]  # made from the declared row
    """A difference of groups, a weighted sum of groups, or a slope; unknown values are null."""


class CompletedPart(_shape_of(PartCompletion)):  # type: ignore[misc]  # made from the declared row
    """The reports about one part of a form."""


class BoundedShare(_shape_of(ShareBounds)):  # type: ignore[misc]  # made from the declared row
    """Bounds of a share, whatever the answers of those who gave up are."""


class FormCompletion(Shape):
    """Completion of one form of one version.

    ask : `all` if every question is asked; a difference then means forged reports or faulty
    devices. n : number of reports; without parts while it is below `needed`. test : that giving up
    does not depend on what is drawn. bounds : empty unless every report is about one part, and
    `ask` is `drawn`.
    """

    document: str
    version: int
    arm: str | None = Field(None, description="The arm, of a version that has arms.")
    block: str
    ask: Literal["drawn", "all"]
    n: int
    needed: int
    test: ChiSquaredTest
    parts: list[CompletedPart]
    bounds: list[BoundedShare]


class ComparedGroup(Shape):
    """A compared group and its number of reports."""

    by: str
    n: int


class TestFamily(Shape):
    """The tests over which p-values are adjusted."""

    size: int
    of: str


class GroupTrend(Shape):
    """Slopes of the least-squares lines through the groups, weighted by their reports."""

    per: str
    rows: list[ComparisonRow]


class GroupComparisons(Shape):
    """Comparisons of the groups of one question or table.

    documents : digests of the versions whose reports are compared, because versions may ask different
    questions under one id. within : the other group or period that all groups belong to. left_out : groups with too few
    reports. homogeneity : test that all groups have the same shares; null for a single group and
    for ratios. trend : null unless at least three groups are ordered: periods, or choices with
    scores.
    """

    question: str
    documents: list[str]
    over: str
    within: str
    groups: list[ComparedGroup]
    left_out: list[str]
    rows: list[ComparisonRow]
    family: TestFamily
    homogeneity: ChiSquaredTest | None
    trend: GroupTrend | None


class QuestionEstimates(Shape):
    """One question or table; without rows while `n` is below `needed`.

    n : number of reports used for the estimate; in a form, those whose device drew the question.
    received : number of all reports of the same versions and group.
    """

    id: str
    block: str
    text: dict[str, str]
    by: dict[str, str] | None
    status: Literal["ok", "insufficient", "not_identifiable"]
    n: int
    received: int
    needed: int
    documents: list[str]
    arms: list[str] = Field(
        [], description="The arms whose reports are used, of versions that have arms."
    )
    rows: list[EstimateRow]
    covariance: list[list[float | None]] | None = Field(
        description="Unbiased covariance matrix of the rows' estimates, in the order of the rows; null for a row "
        "without an estimate."
    )
    independence: IndependenceTest | None = Field(
        description="Of a joint table of two questions: the test that they are independent."
    )
    random_answers: RandomAnswering | None = Field(
        description="Of versions that all have an instructed item or anchors: how many people answer at random."
    )
    projected: dict[str, float] | None = Field(
        description="The nearest shares on the simplex; `se` is not their standard error."
    )
    projected_interval: dict[str, tuple[float, float]] | None = Field(
        description="[low, high] at `level`: the score interval, cut to possible shares and widened to this share."
    )
    mle: dict[str, float] | None = Field(
        description="The maximum-likelihood shares; `se` is not their standard error."
    )
    mle_interval: dict[str, tuple[float, float]] | None = Field(
        description="Like `projected_interval`, for the maximum-likelihood shares."
    )
    mle_gap: float | None = Field(
        description="Upper bound, in nats over all reports, on how far the log-likelihood is below its maximum."
    )
    fit_p: float | None = Field(
        description="p-value of the test that the reports come from the mechanism; null if untestable."
    )


class Inputs(Shape):
    """Identifiers of all inputs of the result."""

    code: str
    request: dict[str, Any]
    documents: list[dict[str, Any]] = Field(
        description="Digests of the documents, and the newest release that was read from each."
    )


class DocumentCount(Shape):
    """Number of released reports of one version of the survey."""

    digest: str
    version: int
    n: int
    arm: str | None = Field(None, description="The arm, of a version that has arms.")


class ArmSize(Shape):
    """Number of released reports of one arm; `chance` is out of 65,536."""

    arm: str
    n: int
    chance: int


class Arms(Shape):
    """The arms of one version, and the test that devices drew them with the signed chances."""

    document: str = Field(description="Digest of the version.")
    version: int
    name: str = Field(description="Estimates are grouped by arm with `by` of this name.")
    arms: list[ArmSize]
    p: float | None = Field(
        description="The largest p-value over the reports that may wait for a release; null with "
        "fewer reports than the minimum. If it is small, look for the reason before arms are compared."
    )


class SourceAnswers(_shape_of(Source)):  # type: ignore[misc]  # made from the declared row
    """The random answers of one source, and the test against all others."""


class SourcesTested(Shape):
    """The sources of a survey; `level` is the largest chance that any is flagged without a reason."""

    question: str = Field(description="The public question whose choices are the sources.")
    level: float
    sources: list[SourceAnswers]
    others: list[str] = Field(
        description="Ids of the sources of which too little is known: they have no part in the tests."
    )


class SurveyEstimates(_shape_of(EstimatesRequest, "targets", "simultaneous")):  # type: ignore[misc]
    """Estimates for all questions of a survey."""

    survey: str
    title: dict[str, str]
    languages: list[str] = Field(
        description="Languages of the newest version; the first one is the survey's main language."
    )
    n: int = Field(description="Number of released reports, of all days.")
    documents: list[DocumentCount]
    arms: list[Arms] = Field(description="One entry per version that has arms.")
    sources: SourcesTested | None = Field(
        description="Random answers by source; null unless `by` is the question of the sources, of all days, and "
        "an instructed item or anchors tell them."
    )
    questions: list[QuestionEstimates]
    comparisons: list[GroupComparisons] = Field(
        description="One entry per table, and per group or period in which others are compared; empty unless requested."
    )
    completions: list[FormCompletion] = Field(
        description="One entry per form of each version; empty unless requested by `completion`."
    )
    beta: str = Field(
        description="The share of fake reports that `poisoning_up` and `poisoning_down` assume."
    )
    notes: list[str]
    inputs: Inputs


ALL = (SurveyEstimates,)
