# SPDX-License-Identifier: Apache-2.0
"""Preview of a block's protection: margins, alternative mechanisms, and the frontier."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Final

from frankly_design.engine import engine
from frankly_design.engine.regret import Regret, regret
from frankly_design.engine.result import DesignResult
from frankly_design.estimate.planner import Plan, Setting
from frankly_design.estimate.scales import linear_row, number_span, wanted_figures
from frankly_design.kinds.decoder import Targets, shares
from frankly_design.kinds.parts import estimated_in_arms
from frankly_design.tables.limits import Limits, TimeExceeded
from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.drafting import DraftedBlock, draft_block, request_of, time_slices
from frankly_server.surveys.priors import block_request
from frankly_server.surveys.strengths import STOPS

REPORTS: Final = (500, 5_000, 50_000)
OFFERED: Final = ("optimal", "grr", "oue", "subset-selection")
_SECONDS: Final = 4.0  # a page waits for these searches; publishing searches longer
PREVIEW_S: Final = 40.0
"""Seconds within which a preview is complete: its searches take at most 20, then they finish."""

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A mechanism for a block, or the reason why there is none.

    margins : half-widths at 95% for `margin_points`, valid for all true shares; None if some shares
    cannot be estimated. information : nats about the answer, at the design prior. ceiling : upper
    bound in nats under any prior, as text. unchanged : True if answers are sent unchanged.
    certified : as in `DesignResult`. regret : the loss if all choices are equally common; None if small
    or unknown.
    """

    mechanism: str
    refusal: str | None = None
    margins: tuple[float, ...] | None = None
    information: float | None = None
    ceiling: str = ""
    unchanged: bool = False
    certified: bool = False
    regret: Regret | None = None


@dataclass(frozen=True, slots=True)
class FrontierRow:
    """A mechanism of the frontier: information in nats, margin at `comparison_point` reports."""

    information: float
    margin: float | None


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A level in nats, its margin at the number of reports asked for, and its information in nats.

    is_current : True for the block's current level.
    """

    epsilon: str
    margin: float
    information: float
    is_current: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """Comparisons of a block's mechanism; no_frontier : the reason if `frontier` is empty."""

    alternatives: list[Alternative]
    levels: list[LevelRow]
    frontier: list[FrontierRow]
    no_frontier: str | None = None


def preview(block: BlockDefinition, people: int | None, expected: int | None = None) -> Preview:
    """Compare the block's mechanism with others, with other levels, and with the frontier.

    people, expected : as in `margin_points`.
    """
    rows = alternatives(block, people=people, expected=expected)
    levels = by_level(block, people=people)
    try:
        return Preview(rows, levels, frontier(block, people=people))
    except InvalidInput as refused:
        return Preview(rows, levels, [], refused.detail)


def margin_points(people: int | None, expected: int | None = None) -> tuple[int, ...]:
    """Return the numbers of reports for which margins are shown, sorted.

    people : size of the population, None if it is unlimited. expected : a further number, such as
    the survey's expected one.
    """
    numbers = {*REPORTS} if expected is None else {*REPORTS, expected}
    return tuple(sorted(numbers if people is None else {min(n, people) for n in numbers}))


def comparison_point(people: int | None) -> int:
    """Return the number of reports at which mechanisms are compared."""
    return REPORTS[1] if people is None else min(REPORTS[1], people)


def alternatives(
    block: BlockDefinition,
    timer: Timer = time.monotonic,
    people: int | None = None,
    expected: int | None = None,
) -> list[Alternative]:
    """Return the block's mechanism, then alternatives; their searches share 8 seconds."""
    names = [block.mechanism, *(name for name in OFFERED if name != block.mechanism)]
    slices = time_slices(timer, 2 * _SECONDS, len(names))
    points = margin_points(people, expected)
    return [
        _alternative(block.model_copy(update={"mechanism": name}), next(slices), people, points)
        for name in names
    ]


def frontier(
    block: BlockDefinition,
    points: int = 6,
    timer: Timer = time.monotonic,
    people: int | None = None,
) -> list[FrontierRow]:
    """Return mechanisms from the least margin to the most information under the block's protection.

    Raises the InvalidInput errors of the engine, such as identity_mechanism.
    """
    requested = block_request(block, block.id)
    request = request_of(
        block.model_copy(update={"mechanism": "optimal"}),
        requested,
        Limits.within(2 * _SECONDS, timer),
    )
    frontier_points = engine.frontier(request, points)
    return [
        FrontierRow(point.information, margin_of(point.mechanism, requested.prior.shares, people))
        for point in frontier_points
    ]


def by_level(
    block: BlockDefinition, timer: Timer = time.monotonic, people: int | None = None
) -> list[LevelRow]:
    """Return rows for the block's level, then for other levels until a few seconds have passed.

    Empty for a block without a single level (several notions, alip, dpv). Levels without a
    mechanism are left out, as are those at which some shares cannot be estimated.
    """
    if block.epsilon is None or block.notions:
        return []
    deadline, row_by_level = timer() + _SECONDS, {}
    # The block's level comes first, so that the table has it even if time runs out.
    for level in (block.epsilon, *STOPS):
        if timer() > deadline or Decimal(level) in row_by_level:
            continue
        update = {"epsilon": level, "accept_identity": True, "accept_unidentifiable": True}
        try:
            drafted = draft_block(
                block.model_copy(update=update), block.id, Limits.within(_SECONDS / 4, timer)
            )
            margin = margin_of(drafted.block.numbered_mechanism, drafted.block.design_prior, people)
        except InvalidInput:
            continue
        if margin is not None:
            row_by_level[Decimal(level)] = LevelRow(
                level, margin, drafted.design.information, is_current=level == block.epsilon
            )
    return [row_by_level[level] for level in sorted(row_by_level)]


def planned(
    mechanism: Mechanism, prior: tuple[int, ...] | None, people: int | None = None
) -> Plan | None:
    """Return the plan of a mechanism's shares at 95%, or None if some cannot be estimated.

    people : size of the population, in which each person answers at most once; None if unlimited.
    """
    return _plan(mechanism, shares(mechanism.answers), prior, people)


def _plan(
    mechanism: Mechanism, targets: Targets, prior: tuple[int, ...] | None, people: int | None
) -> Plan | None:
    try:
        return Plan(mechanism, targets, prior, Setting(population=people))
    except InvalidInput as refused:
        # Other errors are mistakes in the request.
        if refused.problem is Problem.NOT_IDENTIFIABLE:
            return None
        raise


@dataclass(frozen=True, slots=True)
class WantedPlan:
    """The plan of what is wanted of a question or table.

    figure : "shares", or one of frankly_protocol.questions.FIGURES. plan : of the shares, or of the
    figures divided by `span`; None if some cannot be estimated. A ratio is planned as if as many
    people answer as the design expects. span : largest minus smallest value of a number over the
    answers; None if the figures are shares, or differences of shares.
    """

    figure: str
    plan: Plan | None
    span: float | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """What a counted block is stated about: all its questions, or one of several.

    share : share of the reports that contain the block. arm : the arm that asks it, "" without arms and
    for a block of all arms.
    """

    block: Block
    questions: tuple[Question, ...]
    share: Fraction
    arm: str = ""

    @property
    def figure(self) -> str:
        """What is wanted: "shares" of a table, or of a question that asks for nothing else."""
        wanted = self.questions[0].wanted if len(self.questions) == 1 else None
        return wanted.figure if wanted else "shares"

    @property
    def is_number(self) -> bool:
        """True if margins are in the unit of scores."""
        return (
            self.figure != "shares" and number_span(wanted_figures(self.questions[0])) is not None
        )


def stated_of(document: SurveyDocument) -> list[Stated]:
    """Return every question and joint table of a document about which margins are stated."""
    stated: list[Stated] = []
    seen: set[tuple[str, str]] = set()
    for arm, block, share in estimated_in_arms(document):
        if any(question.is_repeated for question in block.questions):
            continue
        alone = [question for question in block.questions if (arm, question.id) not in seen]
        seen.update((arm, question.id) for question in alone)
        # A question of a joint part is wanted by itself too.
        stated += [Stated(block, (question,), share, arm) for question in alone]
        if len(block.questions) > 1:
            stated.append(Stated(block, block.questions, share, arm))
    return stated


def wanted_plan(stated: Stated) -> WantedPlan:
    """Return the plan of a question's wanted figure, or of the joint shares of several questions."""
    block = stated.block
    mechanism, prior = block.numbered_mechanism, block.design_prior
    if len(stated.questions) > 1 or (len(block.questions) == 1 and stated.figure == "shares"):
        return WantedPlan("shares", planned(mechanism, prior))
    (asked,) = stated.questions
    place = block.questions.index(asked)
    cells = list(product(*(range(len(question.choices)) for question in block.questions)))
    own_prior = [0] * len(asked.choices)
    for cell, count in zip(cells, prior, strict=True):
        own_prior[cell[place]] += count
    figures = wanted_figures(asked)
    span = number_span(figures)
    rows = [linear_row(figure, own_prior) for figure in figures] or shares(len(asked.choices))
    over_cells = tuple(tuple(row[cell[place]] / (span or 1) for cell in cells) for row in rows)
    plan = _plan(mechanism, over_cells, prior, None)
    return WantedPlan(stated.figure, plan, None if span is None else float(span))


def margin_of(
    mechanism: Mechanism, prior: tuple[int, ...] | None, people: int | None
) -> float | None:
    """Return the largest half-width at `comparison_point`; None if a share cannot be estimated."""
    plan = planned(mechanism, prior, people)
    return None if plan is None else plan.margin(comparison_point(people))


def previewed(block: BlockDefinition, timer: Timer = time.monotonic) -> DraftedBlock:
    """Design a block within a few seconds. Raises InvalidInput."""
    return draft_block(block, block.id, Limits.within(_SECONDS, timer))


def chances(mechanism: Mechanism) -> Sequence[Sequence[float]] | None:
    """Return P(report | answer), rows = answers; None for mechanisms without a table."""
    weights = getattr(mechanism, "weights", None)
    return None if weights is None else [[w / sum(row) for w in row] for row in weights]


def _alternative(
    block: BlockDefinition, limits: Limits, people: int | None, points: Sequence[int]
) -> Alternative:
    # Both are accepted here, for comparison; publishing checks whether the block allows them.
    update = {"accept_identity": True, "accept_unidentifiable": True}
    try:
        designed = draft_block(block.model_copy(update=update), block.id, limits).design
        plan = planned(designed.mechanism, designed.decoder_prior, people)
    except InvalidInput as refused:
        return Alternative(block.mechanism, refusal=refused.detail)
    return Alternative(
        mechanism=block.mechanism,
        margins=None if plan is None else tuple(plan.margin(n) for n in points),
        information=designed.information,
        ceiling=ln_up(designed.ceiling),
        unchanged=designed.mechanism.sends_unchanged,
        certified=designed.certified,
        regret=_regret_in_time(designed, limits),
    )


def _regret_in_time(designed: DesignResult, limits: Limits) -> Regret | None:
    try:
        return regret(designed.mechanism, designed.claims, designed.decoder_prior, limits)
    except TimeExceeded:
        return None
