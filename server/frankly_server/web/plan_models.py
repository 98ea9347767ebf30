# SPDX-License-Identifier: Apache-2.0
"""Models of plans, plans of two arms, of survey files and wave plans for the OpenAPI document (spec 8.8, 8.14)."""

from typing import Literal

from frankly_design.requests.plan_request import PlanRequest
from frankly_design.requests.split import SplitRequest
from frankly_design.requests.waves import WavesRequest
from pydantic import Field

from frankly_server.surveys.plan_request import SurveyPlanRequest
from frankly_server.web.models import Shape


class PlannedMargin(Shape):
    """A point of the curve around a plan."""

    n: int
    margin: float


class PlannedLevel(Shape):
    """A point of the frontier: margin and information (nats) at a level (nats)."""

    epsilon: str
    margin: float
    information: float


class PlannedTable(Shape):
    """A joint table of two questions (by position), with the widest margin of its cells."""

    questions: tuple[int, int]
    margin: float


class AskedQuestions(Shape):
    """How many of its questions a person is asked: on average, at most, and of how many."""

    mean: float
    most: int
    of: int


class RegretFigures(Shape):
    """Cost of a design if the true shares differ from its prior."""

    at: Literal["equal shares"]
    ratio: str = Field(
        description="Reports that the design needs there, divided by those that `against` needs."
    )
    against: str


class GuessedMargins(Shape):
    """Margins if the guessed shares are true; n is the least number of reports in that case."""

    margin: float
    margins: list[float]
    n: int | None = Field(description="Null unless n is solved for.")


class PlannedBlockLevel(Shape):
    """The level of one block (its part of ε), and the margin of its widest share."""

    epsilon: str
    margin: float


class PlanResult(Shape):
    """A plan, whose margin is valid for any true shares, with the accuracy of `method`."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: int = Field(description="Number of reports.")
    epsilon: str | None = Field(
        description="Level in nats; null for a given mechanism, and where there is no single one."
    )
    factor: str | None = Field(
        None, description="Of metric-ldp: the factor on all levels, if epsilon was solved for."
    )
    epsilons: list[list[str | None]] | None = Field(
        None, description="With factor: the levels of all pairs, in nats."
    )
    margin: float = Field(description="Half-width of the interval of the worst target.")
    margins: list[float]
    invited: int = Field(description="Number of people to ask, given the response rate.")
    level: float
    method: Literal["clt", "chebyshev", "simultaneous"]
    power: float | None = Field(
        description="If given, margin is the difference that a test detects with this chance."
    )
    against: Literal["groups", "value"] | None = Field(
        description="With power: n is of each of two groups or waves, or the difference is from a value."
    )
    curve: list[PlannedMargin]
    regret: RegretFigures | None = Field(
        description="Cost of the design if all answers are equally common; null if there is none."
    )
    at_guess: GuessedMargins | None = None
    frontier: list[PlannedLevel] | None = None
    blocks: list[PlannedBlockLevel] | None = Field(
        None, description="For several blocks: the levels with equal margins."
    )
    equal_split_margin: float | None = Field(
        None, description="For several blocks: the widest margin if all levels were equal."
    )
    shown: list[float] | None = Field(
        None, description="For a form: the share of reports that show each question."
    )
    asked: AskedQuestions | None = Field(
        None,
        description="For a form: the questions that a person is asked if only those drawn are.",
    )
    cross_tables: list[PlannedTable] | None = Field(
        None, description="For a form: the requested pairs of questions."
    )
    notes: list[str] | None = Field(
        None, description="For a form: what it gains over known methods, as sentences."
    )


class SplitFigures(Shape):
    """Reports and power of a comparison of two arms with one chance."""

    chance: int = Field(description="Of the first arm, out of 65,536.")
    n: int = Field(description="Reports of both arms.")
    per_arm: tuple[int, int] = Field(description="Expected reports of each arm.")
    invited: int = Field(description="Number of people to ask, given the response rate.")
    power: float = Field(description="Chance that the test detects the difference.")


class SplitPlan(SplitFigures):
    """A plan of two arms; `best` is that with the best chance."""

    solve_for: Literal["n", "power"]
    target: int = Field(description="Position of the choice that is compared.")
    difference: float = Field(
        description="Guessed share of the target in the first arm, less that in the second."
    )
    level: float
    variances: tuple[float, float] = Field(
        description="Variance of one report's estimate in each arm, at the guessed shares."
    )
    best: SplitFigures | None = Field(
        description="With the chance that needs the fewest reports, or with n has the most power; "
        "null if an arm would expect fewer than 5 reports with every chance."
    )


class PlanStep(Shape):
    """A step of the ladder: one wish more than the step before."""

    step: Literal[
        "clear",
        "protection",
        "form",
        "random",
        "group",
        "arms",
        "results",
        "difference",
        "population",
        "invited",
        "all",
    ]
    text: str
    n: int = Field(description="Reports; of the last step, invited, people to invite.")
    added: int = Field(description="Reports more than in the step before; below 0 for a saving.")
    factor: float | None = Field(description="n over that of the step before; null in the first.")
    at_most: bool = Field(description="True if fewer may do.")


class SurveyPlanQuestion(Shape):
    """A question or table, with the margin of the widest of its figures at n reports."""

    questions: list[str]
    text: str
    arm: str = Field(description="Empty without arms, and for what every arm asks.")
    figure: str
    span: float | None = Field(
        description="Of a number: its largest less its smallest value, by which margins are divided."
    )
    reports: int = Field(description="Expected number of reports about it, within the group.")
    shares: Literal["expected", "any"] = Field(
        description="Whether margin is that at the expected shares of the file."
    )
    margin: float | None = Field(description="Half-width; null if the figure cannot be estimated.")
    margin_any: float | None = Field(description="The same for any true shares.")
    is_goal: bool = Field(description="False for joint tables, which the plan is not for.")
    is_corrected: bool
    has_result: bool = Field(
        description="True if it has the minimum of reports with a chance of 95 % or more."
    )


class PlannedStrength(Shape):
    """Reports for the same margin at another strength of the protection."""

    strength: str | None = Field(description="Its name; null if the parts have several.")
    epsilon: list[str] = Field(description="The different levels of the parts, in nats.")
    n: int | None = Field(description="Null if no number of reports has the margin.")
    invited: int | None
    is_current: bool


class SurveyPlanResult(Shape):
    """The plan of a survey file."""

    solve_for: Literal["n", "margin"]
    n: int = Field(description="Number of reports.")
    margin: float = Field(description="The wanted margin, or the widest of all questions.")
    level: float
    invited: int = Field(description="Number of people to ask, given the response rate.")
    group: float = Field(description="Share of the smallest group; 1 without groups.")
    arms: int
    random: float
    ladder: list[PlanStep]
    questions: list[SurveyPlanQuestion]
    strengths: list[PlannedStrength] | None
    notes: list[str]


class WaveGroup(Shape):
    """People who answer the waves from `first` to `last`, counted from 1."""

    first: int
    last: int
    share: float
    n: int = Field(description="Number of people.")
    epsilon: str = Field(description="Level of each wave, in nats.")
    total: str = Field(description="Level of all waves of the group, in nats.")


class WaveChange(Shape):
    """Precision of the change from the previous wave to `wave`."""

    wave: int
    margins: list[float] = Field(description="Half-width for each answer's share.")
    margin: float = Field(description="The widest of them.")


class WaveDivision(Shape):
    """One division of the people into groups, and its precision at the guessed shares."""

    groups: list[WaveGroup]
    changes: list[WaveChange]
    total: float = Field(description="Sum of the variances of all changes for one person.")
    ratio: float = Field(
        description="People needed relative to `best`, for equal sums of variances."
    )


class WavePlan(Shape):
    """A plan of several waves: everyone in every wave, everyone in one, and the best division."""

    waves: int
    epsilon: str = Field(description="Level of one person over all waves, in nats.")
    changed: float
    persistence: float = Field(
        description="Correlation of one person's answers in consecutive waves that `changed` implies."
    )
    n: int
    level: float
    excess: float = Field(
        description="`best` needs at most this many times the people that the best possible division needs."
    )
    equal: WaveDivision
    once: WaveDivision
    best: WaveDivision


ALL = (
    PlanRequest,
    PlannedMargin,
    PlannedLevel,
    GuessedMargins,
    PlannedBlockLevel,
    PlannedTable,
    RegretFigures,
    PlanResult,
    SplitRequest,
    SplitFigures,
    SplitPlan,
    SurveyPlanRequest,
    PlanStep,
    SurveyPlanQuestion,
    PlannedStrength,
    SurveyPlanResult,
    WavesRequest,
    WaveGroup,
    WaveChange,
    WaveDivision,
    WavePlan,
)
