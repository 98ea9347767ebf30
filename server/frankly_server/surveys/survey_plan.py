# SPDX-License-Identifier: Apache-2.0
"""The plan of a survey file: how many people, and what each of its wishes costs in respondents.

The ladder adds one wish after the other, from answers in the clear to the whole survey, and finds for each
the least number of reports with which every question's figure has the margin. Margins are those of
`estimate.planner`.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import repeat
from math import ceil, sqrt
from statistics import NormalDist
from typing import Any, Final

from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.planner import MOST, Margins, Plan, Setting, least_reports
from frankly_design.estimate.sure_counts import SURE, Part, is_sure, sure_reports
from frankly_design.estimate.validity import SHOWN
from frankly_design.kinds.parts import part_of
from frankly_design.numeric.arrays import FloatArray
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

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
_SURELY: Final = f"with a chance of {SURE:.0%}"
_NO_TABLES: Final = "no tables that are small enough were found in this time."


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
    with _small_enough():
        document = document_of(definition, timer, SEARCH_S, progress)
    alone = plans_alone(definition, document, timer, SEARCH_S / 2, progress)
    with _small_enough():
        planner = _Planner(definition, document, asked, group, alone or {})
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
        "ladder": [*_rows(steps), *_invited(steps[-1], n, invited, asked.response_rate)],
        "questions": planner.questions(n),
        "strengths": None,
        "notes": list(planner.notes(n, invited)),
    }
    if alone is None:
        body["notes"].append(f"What each question needs alone is left out: {_NO_TABLES}")
    if asked.strengths:
        compared = _strengths(planner, margin, n, timer, progress)
        body["strengths"] = compared.rows or None
        body["notes"] += compared.notes
    if progress:
        progress(1, 1, "")
    return body


@contextmanager
def _small_enough() -> Iterator[None]:
    """Name the survey where a table is too large for estimates, as a short search can find."""
    try:
        yield
    except InvalidInput as refused:
        if (refused.problem, refused.field) != (Problem.UNSUPPORTED, "targets"):
            raise
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT,
            "the tables found in this time are too large for estimates: plan again when the computer has less to do, "
            "or ask fewer questions together",
            "survey",
        ) from None


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
        self._require_people()

    def _require_people(self) -> None:
        """Raise InvalidInput if the margin is wanted, and too small even with reports of all people."""
        people, margin = self.asked.population, self.asked.margin
        if people is None or margin is None:
            return
        widest = max(self.margins(self.last)(people))
        if widest > margin:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"even if all {people:,} people answer, the margin is {widest:.2g}: give a wider margin, or "
                "weaken the protection",
                "margin",
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
        margins = self.margins(stage)
        if stage.population is None and max(margins(MOST)) > margin and self.asked.population:
            # The people suffice (`_require_people`), but the steps before this one are without them.
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"a step of the plan takes more than {MOST:,} answers: give a wider margin",
                "margin",
            )
        found = least_reports(margins, repeat(margin), Setting(population=stage.population))
        return max(found, floor)

    def solved(self) -> tuple[list[_Step], float]:
        """Return the ladder without the invitations, and its margin."""
        margin = self.asked.margin
        if margin is None:
            margin = max(self.margins(self.last)(self.asked.n or 1))
        if self.is_of_all(margin):
            people = "Everybody answers"
            if self.asked.n != self.asked.population:
                people = "Almost everybody answers"
            return [_Step("all", people, self.asked.n or 1)], margin
        return list(self._steps(margin)), margin

    def is_of_all(self, margin: float) -> bool:
        """Return True if only (almost) everybody's reports have the margin, so that there is no ladder."""
        if margin <= _SURE:
            return True
        many = replace(self.last, population=None)
        return self.asked.n is not None and max(self.margins(many)(MOST)) > margin

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
        if self.asked.n is not None:
            least = 1  # n is what it is: notes say from which number on results are shown
        else:
            least = yield from self._floors(stage, self.reports(stage, margin), bound)
        people = self.asked.population
        if people is not None:
            stage = replace(stage, population=people)
            text = f"Only {people:,} people can answer"
            yield _Step("population", text, self.reports(stage, margin, least), bound)

    def _floors(self, stage: _Stage, n: int, bound: bool) -> Generator[_Step, None, int]:
        """Yield the steps of results and a difference, and return the reports that they need at least.

        Raises InvalidInput if fewer people can answer.
        """
        least, people = self.least, self.asked.population
        if people is not None and least > people:
            lower = "" if self.last.corrected else ", or lower min_reports in the file"
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"every result is shown, {_SURELY}, from {least:,} answers on, and only {people:,} people can answer: "
                f"plan a number of answers instead of a margin{lower}",
                "population",
            )
        floor = max(n, least)
        if floor > n:
            yield _Step("results", f"{self._shown}, {_SURELY}", floor, bound)
        if self.asked.difference is None:
            return least
        needed = self.for_difference(stage, self.asked.difference)
        if people is not None and needed > people:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"this difference is found from {needed:,} answers on, and only {people:,} people can answer: give a "
                "larger difference",
                "difference",
            )
        yield _Step("difference", self._found, max(floor, needed), bound)
        return max(least, needed)

    @property
    def _shown(self) -> str:
        where = " in the smallest group" if self.group < 1 else ""
        return f"Enough answers for every result{where} to be shown"

    @property
    def _found(self) -> str:
        whom = ", among everybody," if self.group < 1 else ""
        return (
            f"A difference of {_percent(self.asked.difference or 0)} between the arms{whom} is found with "
            f"{_percent(self.asked.power or POWER)}"
        )

    @property
    def least(self) -> int:
        """The least number of reports with which every figure is shown with the chance SURE, whatever its margin."""
        parts = {}
        for one in self.goals:
            # Questions of one arm that every report is about have the same reports.
            table = part_of(one.stated.block.mechanism) if one.share < 1 else None
            key = one.stated.arm, one.share, table and table.parts
            parts[key] = Part(self._chance(one), self.definition.min_reports)
        corrected = {
            (one.stated.arm, "κ"): Part(float(one.arm), self._least_corrected_of(one))
            for one in self.goals
            if one.attention is not None
        }
        return sure_reports((*parts.values(), *corrected.values()))

    def _chance(self, figure: PlannedFigure) -> float:
        """Return the chance that a report is about a figure, and from the group."""
        return float(figure.share * figure.arm) * self.group

    def _least_corrected_of(self, figure: PlannedFigure) -> int:
        """Return the least number of reports of its arm with which a corrected figure is shown."""
        assert figure.attention is not None  # noqa: S101 - asked of corrected figures only
        wanted = (SHOWN * (1 - self.asked.random)) ** 2
        return max(1, ceil(figure.attention.variance / wanted - _SURE))

    @property
    def _least_corrected(self) -> int:
        """The expected number of reports with which corrected figures are shown; 1 without a correction."""
        needed = (
            self._least_corrected_of(one) / float(one.arm)
            for one in self.goals
            if one.attention is not None
        )
        return ceil(max(needed, default=1.0) - _SURE)

    def _compared(self) -> Iterator[tuple[PlannedFigure, PlannedFigure]]:
        """Yield the pairs of arms that ask the same question."""
        for i, first in enumerate(self.goals):
            for second in self.goals[i + 1 :]:
                if first.ids == second.ids and first.stated.arm != second.stated.arm:
                    yield first, second

    def for_difference(self, stage: _Stage, difference: float) -> int:
        """Return the reports with which a difference between any two arms is found.

        The test rejects equal figures with the chance 1 − level; normal approximation, at the variances of the plan.
        The arms are compared among everybody, not within groups.
        """
        stage = replace(stage, group=1.0)
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
            "has_result": is_sure([Part(self._chance(figure), self.definition.min_reports)], n),
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
        yield from self._of_results(n)
        people = self.asked.population
        if people is not None and invited > people:
            yield f"With this response rate, {people:,} people are too few to invite."

    def _of_results(self, n: int) -> Iterator[str]:
        """Yield which results may not be shown, and what n is too small for."""
        minimum = self.definition.min_reports
        few = [row["text"] for row in self.questions(n) if not row["has_result"]]
        if n < minimum:
            yield f"No result is shown: a result needs at least {minimum:,} answers."
        elif few:
            yield (
                f"A result needs at least {minimum:,} answers; the chance of fewer, and so of no result, is above "
                f"{_percent(1 - SURE)} for {_listed(few)}."
            )
        if self.asked.n is None:
            return
        if n < self.least:
            yield f"{self._shown}, {_SURELY}: {self._from(self.least)}."
        if self.asked.difference is not None:
            stage = replace(self.last, population=None)
            needed = self.for_difference(stage, self.asked.difference)
            yield f"{self._found}: {self._from(needed)}."

    def _from(self, needed: int) -> str:
        """Return from how many answers on something holds, in words."""
        people = self.asked.population
        more = (
            ""
            if people is None or needed <= people
            else f", more than the {people:,} people can give"
        )
        return f"from {needed:,} answers on{more}"

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
                "Corrected figures can need fewer reports than this: the plan leaves out that single reports may be "
                "known to be random, and what reports that show a question and the known one tell."
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


def _invited(last: _Step, n: int, invited: int, rate: float) -> Iterator[dict[str, Any]]:
    """Yield the people to invite for n reports, if not all of them answer."""
    if rate < 1:
        text = f"People to invite, if {_percent(rate)} answer"
        yield _row(_Step("invited", text, invited, last.at_most), n)


@dataclass(slots=True)
class _Compared:
    """Other strengths, and what is said about them."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _strengths(
    planner: _Planner, margin: float, n: int, timer: Callable[[], float], progress: Progress | None
) -> _Compared:
    """Return the reports at the next stronger and weaker protection; no rows if some part has no such scale."""
    definition, found = planner.definition, _Compared()
    if planner.is_of_all(margin):
        found.notes.append("Other strengths are not compared if (almost) everybody answers.")
        return found
    others = {shift: _at_strength(definition, shift) for shift in (-1, 1)}
    if not any(others.values()):
        found.notes.append(
            "Other strengths are compared only if every part has one level on the scale of the protection page."
        )
        return found
    for shift in (-1, 0, 1):
        if shift == 0:
            found.rows.append(_strength(planner, definition, n, is_current=True))
            continue
        other = others[shift]
        if other is None:
            continue
        try:
            moved = _moved(planner, other, margin, timer, progress)
        except InvalidInput as refused:
            if refused.problem is not Problem.OPTIMISER_LIMIT:
                raise
            which = "stronger" if shift < 0 else "weaker"
            found.notes.append(f"The next {which} protection is left out: {_NO_TABLES}")
            continue
        found.rows.append(_strength(planner, other, moved, is_current=False))
    if any(block.ceiling_cap is not None for block in definition.blocks):
        found.notes.append(
            "A ceiling in the file (ceiling_cap) stays the same at other strengths, which can then cost as much."
        )
    return found


def _moved(
    planner: _Planner,
    definition: SurveyDefinition,
    margin: float,
    timer: Callable[[], float],
    progress: Progress | None,
) -> int | None:
    """Return the reports of a file at another strength; None if no number of them has the margin.

    Raises InvalidInput(optimiser_limit) if the search finds no tables that are small enough.
    """
    try:
        with _small_enough():
            document = document_of(definition, timer, SEARCH_S / 2, progress)
            # The questions alone are not needed for the last step.
            other = _Planner(definition, document, planner.asked, planner.group, {})
        return other.solved_for(margin)
    except InvalidInput as refused:
        if refused.problem is Problem.OPTIMISER_LIMIT:
            raise
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
