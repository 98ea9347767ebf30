# SPDX-License-Identifier: Apache-2.0
"""The plan of a survey file: how many people, and what each of its wishes costs in respondents.

The ladder adds one wish after the other, from answers in the clear to the whole survey, and finds for each
the least number of reports with which every question's figure has the margin. Margins are those of
`estimate.planner`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from math import ceil, sqrt
from statistics import NormalDist
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.arrays import FloatArray
from frankly_server.estimate.margins import normal_quantile
from frankly_server.estimate.planner import MOST, Margins, Plan, Setting, least_reports
from frankly_server.estimate.validity import SHOWN
from frankly_server.surveys.definition import FORM_ID, SurveyDefinition
from frankly_server.surveys.drafting import Progress
from frankly_server.surveys.plan_request import POWER, SurveyPlanFields, SurveyPlanRequest
from frankly_server.surveys.planned_figures import (
    PlannedFigure,
    document_of,
    planned_figures,
    plans_alone,
)
from frankly_server.surveys.strengths import STOPS, WORDS, level_at, stop_of

SEARCH_S: Final = 8.0
"""Seconds for the designs of the survey; those of its questions alone, and of each other strength, get half."""
PLAN_S: Final = 2.5 * SEARCH_S
"""Seconds for all designs of a plan."""
_SURE: Final = 1e-9  # rounding: a whole number can come out slightly above itself
_FAR: Final = 0.8
_MOST_BUDGET: Final = "60"


def survey_plan_json(
    obj: Any,
    timer: Callable[[], float] = time.monotonic,
    stopped: Callable[[], bool] | None = None,  # noqa: ARG001 - the signature of a Planner
) -> dict[str, Any]:
    """Plan a survey file from a JSON request; see `SurveyPlanRequest` and `survey_plan`."""
    request = SurveyPlanRequest.from_json(obj)
    return survey_plan(request.definition, request, timer)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What holds at a step of the ladder.

    how : "clear", "alone" (each question has its level alone) or "asked" (as the survey asks it). corrected : for
    random answers. group : share of the smallest group. arms : True if each arm has its share of the reports only.
    population : people who can answer, None for many.
    """

    how: str = "asked"
    corrected: bool = False
    group: float = 1.0
    arms: bool = False
    population: int | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of the ladder. text : what it adds. n : reports. at_most : True if fewer may do."""

    step: str
    text: str
    n: int
    at_most: bool = False


def survey_plan(
    definition: SurveyDefinition,
    asked: SurveyPlanFields,
    timer: Callable[[], float] = time.monotonic,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the plan of a survey file.

    Out: solve_for ("n" or "margin"), n (reports), margin (the wanted one, or the widest of all questions), level,
    invited, group (share), arms, random; ladder, a list of {step, text, n, added, factor, at_most}; questions, each
    with its margin at n; strengths, a list of {strength, epsilon, n, invited, is_current}, null if not asked
    for or not known; and notes, sentences.

    Raises InvalidInput, naming the field of `asked`, or of the file below `survey`.
    """
    asked.require_coherent()
    group = asked.group(definition)
    document = document_of(definition, timer, SEARCH_S, progress)
    alone = plans_alone(definition, document, timer, SEARCH_S / 2, progress)
    planner = _Planner(definition, document, asked, group, alone)
    planner.require_possible()
    steps, margin = planner.solved()
    n = steps[-1].n if asked.n is None else asked.n
    invited = Setting(response_rate=asked.response_rate).invited(n)
    body: dict[str, Any] = {
        "solve_for": "n" if asked.n is None else "margin",
        "n": n,
        "margin": margin,
        "level": asked.level,
        "invited": invited,
        "group": group,
        "arms": 0 if document.arms is None else len(document.arms.arms),
        "random": asked.random,
        "ladder": [*_rows(steps), *_invited(steps, asked)],
        "questions": planner.questions(n),
        "strengths": None,
        "notes": list(planner.notes(n, invited)),
    }
    if asked.strengths:
        strengths = _strengths(planner, margin, n, timer, progress)
        body["strengths"] = strengths or None
        if not strengths:
            body["notes"].append(
                "Other strengths are compared only if every part has one level on the scale of the protection page."
            )
    if progress:
        progress(1, 1, "")
    return body


class _Planner:
    """The figures of one document, under the assumptions of a request."""

    def __init__(
        self,
        definition: SurveyDefinition,
        document: SurveyDocument,
        asked: SurveyPlanFields,
        group: float,
        alone: dict[str, Any],
    ) -> None:
        self.definition, self.document, self.asked, self.group = definition, document, asked, group
        self.figures = planned_figures(definition, document, asked.random, alone)
        self.goals = [figure for figure in self.figures if figure.is_goal]
        self.has_alone = bool(alone)
        self.last = _Stage(
            corrected=any(figure.attention for figure in self.goals),
            group=group,
            arms=document.arms is not None,
            population=asked.population,
        )

    def require_possible(self) -> None:
        """Raise InvalidInput for what the survey cannot have."""
        if not self.goals:
            raise InvalidInput(
                Problem.NOT_IDENTIFIABLE,
                "no question has a figure that can be estimated, however many reports there are",
                "survey",
            )
        if self.asked.random > 0 and not self.last.corrected:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "the survey has no instructed item and no known shares, so that nothing shows who answers at "
                "random: add one of them, or leave this out",
                "random",
            )
        if self.asked.difference is not None and not list(self._compared()):
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "a difference is between two arms that ask the same question: the survey has no such arms",
                "difference",
            )

    def margins_of(self, figure: PlannedFigure, stage: _Stage, shares: str = "") -> Margins:
        """Return the half-widths of a figure, by the number of all reports. shares : by default as asked."""
        plan, guess = (figure.wanted.plan, figure.guess) if stage.how != "alone" else figure.alone
        if plan is None:
            plan, guess = figure.wanted.plan, figure.guess
        assert plan is not None  # noqa: S101 - figures without a plan are no goals
        if stage.how == "clear":
            plan = plan.in_the_clear()
        guess = guess if (shares or self.asked.shares) == "expected" else None
        plan = plan.under(
            Setting(self.asked.level, population=stage.population, subgroup=stage.group)
        )
        about = float(figure.share if stage.how == "asked" else 1)
        about *= float(figure.arm) if stage.arms else 1
        arm = float(figure.arm) if stage.arms else 1.0
        correction = (
            figure.correction(self.asked.random, stage.group * arm) if stage.corrected else None
        )
        at = _by_reports(plan, correction, guess)
        if stage.population is not None:
            return lambda n: at(n * about)
        # Without a population margins fall with the root of n.
        once = at(about)
        return lambda n: [width / sqrt(n) for width in once]

    def margins(self, stage: _Stage) -> Margins:
        """Return every goal's widest half-width, by the number of all reports."""
        each = [self.margins_of(figure, stage) for figure in self.goals]
        return lambda n: [max(margins(n)) for margins in each]

    def reports(self, stage: _Stage, margin: float, floor: int = 1) -> int:
        """Return the least number of reports of a step, at least `floor`."""
        found = least_reports(
            self.margins(stage), repeat(margin), Setting(population=stage.population)
        )
        return max(found, floor)

    def solved(self) -> tuple[list[_Step], float]:
        """Return the ladder without the invitations, and its margin."""
        margin = self.asked.margin
        if margin is None:
            margin = max(self.margins(self.last)(self.asked.n or 1))
        if margin <= _SURE:
            return [_Step("all", "Everybody answers, in the clear", self.asked.n or 1)], margin
        return list(self._steps(margin)), margin

    def solved_for(self, margin: float) -> int:
        """Return the reports of the last step."""
        return list(self._steps(margin))[-1].n

    def _steps(self, margin: float) -> Iterator[_Step]:
        stage = _Stage("clear")
        yield _Step("clear", "Every question asked in the clear", self.reports(stage, margin))
        stage = replace(stage, how="alone" if self.has_alone else "asked")
        text = "Protected, each question alone" if self.has_alone else "Protected as in the file"
        yield _Step("protection", text, self.reports(stage, margin))
        if self.has_alone:
            stage = replace(stage, how="asked")
            text = "Questions of the form share one level"
            yield _Step("form", text, self.reports(stage, margin))
        bound = False
        if self.last.corrected:
            bound = any(figure.is_bound for figure in self.goals)
            stage = replace(stage, corrected=True)
            text = f"Corrected for random answers, if {_percent(self.asked.random)} give them"
            yield _Step("random", text, self.reports(stage, margin), bound)
        yield from self._wishes(stage, margin, bound)

    def _wishes(self, stage: _Stage, margin: float, bound: bool) -> Iterator[_Step]:
        """Yield the steps of groups, arms, results, a difference and a population."""
        corrected = self.last.corrected
        if self.group < 1:
            stage, bound = replace(stage, group=self.group), bound or corrected
            text = f"The same margin in a group of {_percent(self.group)}"
            yield _Step("group", text, self.reports(stage, margin), bound)
        if self.last.arms:
            stage, bound = replace(stage, arms=True), bound or corrected
            yield _Step("arms", "The same margin in each arm", self.reports(stage, margin), bound)
        floor = n = self.reports(stage, margin)
        floor = max(floor, self.least)
        if floor > n:
            yield _Step("results", "Enough answers for every result to be shown", floor, bound)
        least = self.least
        if self.asked.difference is not None:
            least = max(least, self.for_difference(stage, self.asked.difference))
            floor = max(floor, least)
            text = (
                f"A difference of {_percent(self.asked.difference)} between the arms is found with "
                f"{_percent(self.asked.power or POWER)}"
            )
            yield _Step("difference", text, floor, bound)
        people = self.asked.population
        if people is not None:
            if least > people:
                raise InvalidInput(
                    Problem.UNSUPPORTED,
                    f"this takes {least} answers, from fewer people",
                    "population",
                )
            stage = replace(stage, population=people)
            text = f"Only {people:,} people can answer"
            yield _Step("population", text, self.reports(stage, margin, least), bound)

    @property
    def least(self) -> int:
        """The least number of reports with which every figure is shown, whatever its margin."""
        rarest = min(float(one.share * one.arm) for one in self.goals) * self.group
        return max(ceil(self.definition.min_reports / rarest - _SURE), self._least_corrected)

    @property
    def _least_corrected(self) -> int:
        """The least number of reports with which corrected figures are shown; 1 without a correction."""
        wanted = (SHOWN * (1 - self.asked.random)) ** 2
        needed = (
            one.attention.variance / wanted / float(one.arm)
            for one in self.goals
            if one.attention is not None
        )
        return max(1, ceil(max(needed, default=1.0) - _SURE))

    def _compared(self) -> Iterator[tuple[PlannedFigure, PlannedFigure]]:
        """Yield the pairs of arms that ask the same question."""
        for i, first in enumerate(self.goals):
            for second in self.goals[i + 1 :]:
                if first.ids == second.ids and first.stated.arm != second.stated.arm:
                    yield first, second

    def for_difference(self, stage: _Stage, difference: float) -> int:
        """Return the reports with which a difference between any two arms is found.

        The test rejects equal figures with the chance 1 − level; normal approximation, at the variances of the plan.
        """
        z = normal_quantile(self.asked.level, 1)
        scale = (z + NormalDist().inv_cdf(self.asked.power or POWER)) / z / difference
        needed = max(
            scale**2 * sum(max(self.margins_of(one, stage)(1)) ** 2 for one in pair)
            for pair in self._compared()
        )
        if needed > MOST:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"the difference is too small: more than {MOST} reports are needed",
                "difference",
            )
        return ceil(needed * (1 - _SURE))

    def questions(self, n: int) -> list[dict[str, Any]]:
        """Return what to expect of every question and table with n reports, in the order of the file."""
        places = {question.id: i for i, question in enumerate(self.definition.questions)}
        ordered = sorted(self.figures, key=lambda one: (len(one.ids), places[one.ids[0]]))
        return [self._question(figure, n) for figure in ordered]

    def _question(self, figure: PlannedFigure, n: int) -> dict[str, Any]:
        stage, known = self.last, figure.wanted.plan is not None
        about = int(n * figure.share * figure.arm * Fraction(self.group))
        guessed = figure.guess is not None and self.asked.shares == "expected"
        widths = {
            name: max(self.margins_of(figure, stage, shares)(n)) if known else None
            for name, shares in (("margin", ""), ("margin_any", "any"))
        }
        correction = stage.corrected and figure.attention is not None and figure.law is not None
        return {
            "questions": list(figure.ids),
            "text": figure.text,
            "arm": figure.stated.arm,
            "figure": figure.wanted.figure,
            "span": figure.wanted.span if figure.stated.is_number else None,
            "reports": about,
            "shares": "expected" if guessed else "any",
            **widths,
            "is_goal": figure.is_goal,
            "is_corrected": correction,
            "has_result": about >= self.definition.min_reports,
        }

    def notes(self, n: int, invited: int) -> Iterator[str]:
        """Yield what was assumed, and what is not computed."""
        yield from self._of_shares()
        yield from self._of_the_widest(n)
        if any(len(figure.stated.questions) > 1 for figure in self.figures):
            yield "The margins of joint tables are those at this number of reports; the plan is for the questions."
        unknown = [one.text for one in self.figures if one.wanted.plan is None]
        if unknown:
            yield (
                f"Not in the plan, because no number of reports estimates what is wanted: {_listed(unknown)}."
            )
        if self.last.corrected:
            yield from self._of_correction(n)
        if self.last.arms and not list(self._compared()):
            yield "No two arms ask the same question, so no difference between arms is planned."
        few = [row["text"] for row in self.questions(n) if not row["has_result"]]
        if few:
            yield f"Fewer answers than the minimum of {self.definition.min_reports}, so no result: {_listed(few)}."
        people = self.asked.population
        if people is not None and invited > people:
            yield f"With this response rate, {people:,} people are too few to invite."

    def _of_shares(self) -> Iterator[str]:
        guessed = [one for one in self.goals if one.guess is not None]
        if self.asked.shares == "any" or not guessed:
            yield "The margins hold whatever the true shares are."
        elif len(guessed) < len(self.goals):
            yield (
                f"The file's expected shares are assumed where it has some: {_listed([o.text for o in guessed])}. The "
                "other margins hold whatever the true shares are."
            )
        else:
            yield "The file's expected shares are assumed; with other shares margins can be wider, up to those for any."

    def _of_the_widest(self, n: int) -> Iterator[str]:
        """Yield which question of a form decides, if another one is far more precise."""
        widths = [max(self.margins_of(one, self.last)(n)) for one in self.goals]
        widest = self.goals[widths.index(max(widths))]
        if widest.stated.block.id == FORM_ID and min(widths) < _FAR * max(widths):
            yield (
                f"“{widest.text}” decides: its margin is the widest. A larger importance in the file makes it more "
                "precise, and other questions less."
            )

    def _of_correction(self, n: int) -> Iterator[str]:
        precise = self._least_corrected
        if n < precise:
            yield f"With fewer than {precise:,} answers nothing is corrected: too few show who answers at random."
        attentions = [one.attention for one in self.goals if one.attention is not None]
        if any(anchor.form is not None for one in attentions for anchor in one.anchors):
            yield "What the known question takes from the reports of the form is in the step of the shared level."
        if any(figure.is_bound for figure in self.goals):
            yield (
                "Corrected figures can need fewer reports: what is known of single reports, and what reports with a "
                "question and the known one tell together, is left out."
            )
        without = [one.text for one in self.goals if one.attention is None or one.law is None]
        if without:
            yield f"No correction is planned for {_listed(without)}, as its precision is not known."
        yield (
            "The correction is as good as its two assumptions: how people tick at random, and that as many do so "
            "everywhere."
        )


def _by_reports(
    plan: Plan, correction: Any, guess: FloatArray | None
) -> Callable[[float], list[float]]:
    if correction is not None:
        return lambda n: plan.corrected_margins(correction, n, guess)
    if guess is not None:
        return lambda n: plan.margins_at(guess, n)
    return plan.margins


def _rows(steps: Sequence[_Step]) -> list[dict[str, Any]]:
    """Return the ladder with what each step adds."""
    before = [None, *(step.n for step in steps)]
    return [_row(step, n) for step, n in zip(steps, before, strict=False)]


def _row(step: _Step, before: int | None) -> dict[str, Any]:
    return {
        "step": step.step,
        "text": step.text,
        "n": step.n,
        "added": step.n - (before or 0),
        "factor": None if before is None else step.n / before,
        "at_most": step.at_most,
    }


def _invited(steps: Sequence[_Step], asked: SurveyPlanFields) -> Iterator[dict[str, Any]]:
    """Yield the people to invite, if not all of them answer."""
    if asked.response_rate < 1:
        last = steps[-1]
        invited = Setting(response_rate=asked.response_rate).invited(last.n)
        text = f"People to invite, if {_percent(asked.response_rate)} answer"
        yield _row(_Step("invited", text, invited, last.at_most), last.n)


def _strengths(
    planner: _Planner, margin: float, n: int, timer: Callable[[], float], progress: Progress | None
) -> list[dict[str, Any]]:
    """Return the reports at the next stronger and weaker protection; empty if some part has no such scale."""
    definition, rows = planner.definition, []
    if margin <= _SURE:
        return []
    for shift in (-1, 0, 1):
        if shift == 0:
            rows.append(_strength(planner, definition, n, is_current=True))
            continue
        other = _at_strength(definition, shift)
        if other is not None:
            rows.append(
                _strength(
                    planner,
                    other,
                    _moved(planner, other, margin, timer, progress),
                    is_current=False,
                )
            )
    return rows if len(rows) > 1 else []


def _moved(
    planner: _Planner,
    definition: SurveyDefinition,
    margin: float,
    timer: Callable[[], float],
    progress: Progress | None,
) -> int | None:
    """Return the reports of a file at another strength; None if no number of them has the margin."""
    try:
        document = document_of(definition, timer, SEARCH_S / 2, progress)
        # The questions alone are not needed for the last step.
        return _Planner(definition, document, planner.asked, planner.group, {}).solved_for(margin)
    except InvalidInput:
        return None


def _strength(
    planner: _Planner, definition: SurveyDefinition, n: int | None, *, is_current: bool
) -> dict[str, Any]:
    levels = list(dict.fromkeys(level for _, level in _levels(definition) if level is not None))
    invite = Setting(response_rate=planner.asked.response_rate)
    stops = {stop_of(level, notion) for notion, level in _levels(definition)}
    stop = stops.pop() if len(stops) == 1 else None
    return {
        "strength": None if stop is None else WORDS[stop],
        "epsilon": levels,
        "n": n,
        "invited": None if n is None else invite.invited(n),
        "is_current": is_current,
    }


def _levels(definition: SurveyDefinition) -> list[tuple[str | None, str | None]]:
    """Return notion and level of every part."""
    blocks = [(block.notion, block.epsilon) for block in definition.blocks]
    form = [] if definition.form is None else [("ldp", definition.form_epsilon)]
    return [*blocks, *form]


def _at_strength(definition: SurveyDefinition, shift: int) -> SurveyDefinition | None:
    """Return the file with every part at the next stop of the scale; None if some part has none."""
    moved: list[str] = []
    for notion, level in _levels(definition):
        stop = stop_of(level, notion)
        if stop is None or notion is None or not 0 <= stop + shift < len(STOPS):
            return None
        moved.append(level_at(stop + shift, notion))
    blocks = tuple(
        block.model_copy(update={"epsilon": level})
        for block, level in zip(definition.blocks, moved, strict=False)
    )
    update: dict[str, Any] = {"blocks": blocks, "budget": _MOST_BUDGET}
    if definition.form is not None:
        update["form"] = definition.form.model_copy(update={"epsilon": moved[-1]})
    return definition.model_copy(update=update)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _listed(texts: Sequence[str]) -> str:
    named = ", ".join(f"“{text}”" for text in texts[:4])
    return named if len(texts) <= 4 else f"{named} and {len(texts) - 4} more"
