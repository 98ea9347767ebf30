# SPDX-License-Identifier: Apache-2.0
"""The figures of a survey file with what a plan needs of them: precision, guessed shares, correction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import isclose
from typing import Final

import numpy as np
from frankly_design.estimate.anchors import anchor_weights
from frankly_design.estimate.planner import Correction, Plan
from frankly_design.form import FormRequest, design_form
from frankly_design.kinds.parts import (
    PartTable,
    are_drawn_together,
    chance_shown,
    form_of,
    part_of,
    part_table,
)
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem

from frankly_server.analysis.anchors import Anchor, anchors_of
from frankly_server.analysis.random_law import random_law
from frankly_server.surveys.definition import FORM_ID, SurveyDefinition
from frankly_server.surveys.drafting import (
    Place,
    Progress,
    draft_document,
    draft_part,
    form_request,
    time_slices,
)
from frankly_server.surveys.live import text_of
from frankly_server.surveys.preview import Stated, WantedPlan, stated_of, wanted_plan
from frankly_server.surveys.trial import separate_pairs, wanted_pairs

_NO_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
Timer = Callable[[], float]
Alone = tuple[Plan, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Attention:
    """How well an item or anchors tell the share κ of attentive people, in the reports of an arm.

    variance : of κ̂, times the number of reports, at the guessed share. item : True for an instructed
    item. anchors, weights : the anchors and their weights in κ̂.
    """

    variance: float
    item: bool = False
    anchors: tuple[Anchor, ...] = ()
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedFigure:
    """What is wanted of a question or table, and how precise reports about it are.

    text : its words. wanted : its plan as the survey asks it. alone : plan and guessed shares if the
    question has the level of its form alone; elsewhere those of `wanted` and `guess`. share : of the
    reports of its arm that are about it. arm : chance of its arm. guess : expected shares of the joint
    answers of its block, None if the file has none. law : their chances if somebody answers at random;
    None if it has too many answers. attention : None if nothing corrects it.
    """

    stated: Stated
    text: str
    wanted: WantedPlan
    alone: tuple[Plan | None, FloatArray | None]
    share: Fraction
    arm: Fraction
    guess: FloatArray | None
    law: FloatArray | None
    attention: Attention | None

    @property
    def is_goal(self) -> bool:
        """True if the plan's margin is that of this figure; False for joint tables."""
        return len(self.stated.questions) == 1 and self.wanted.plan is not None

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the questions."""
        return tuple(question.id for question in self.stated.questions)

    def correction(self, random: float, group: float) -> Correction | None:
        """Return how the figure is corrected if a share `random` answers at random; None if it is not.

        group : share of a group among all reports. It is corrected by its own κ̂, or by that of all reports: the
        less precise of both is assumed.
        """
        if self.attention is None or self.law is None:
            return None
        inside = sum(
            weight
            for anchor, weight in zip(self.attention.anchors, self.attention.weights, strict=True)
            if self._in_one_form(anchor)
        )
        # Claims 3, 16 and 17 of docs/maths/validity.md.
        covariance = (1 - inside) * (1 - random) * random
        own = float(self.share) * (self.attention.variance - 2 * covariance)
        return Correction(self.law, random, max(own, group * own))

    @property
    def is_bound(self) -> bool:
        """True if the corrected figure may be more precise than its correction says."""
        attention = self.attention
        return attention is not None and (
            attention.item or any(self._overlaps(anchor) for anchor in attention.anchors)
        )

    def _in_one_form(self, anchor: Anchor) -> bool:
        form = form_of(self.stated.block.mechanism)
        return form is not None and form is anchor.form

    def _overlaps(self, anchor: Anchor) -> bool:
        return are_drawn_together(self.stated.block.mechanism, anchor.mechanism)


def document_of(
    definition: SurveyDefinition, timer: Timer, seconds: float, progress: Progress | None = None
) -> SurveyDocument:
    """Return the document of a draft, designed within these seconds; its times and address are made up.

    Raises the InvalidInput errors of publishing.
    """
    blocks = []
    for i, limits in enumerate(time_slices(timer, seconds, len(definition.parts))):
        if progress:
            progress(i, len(definition.parts), definition.parts[i])
        blocks.append(draft_part(definition, i, limits))
    # A plan does not depend on times, so that of a closed survey can be planned again.
    timeless = definition.model_copy(update=dict.fromkeys(("opens", "closes", "expires")))
    place = Place("0" * 32, 1, None, _NO_TIME, "https://unused.example")
    return draft_document(timeless, blocks, place)


def planned_figures(
    definition: SurveyDefinition,
    document: SurveyDocument,
    random: float,
    alone: Mapping[str, Alone],
) -> list[PlannedFigure]:
    """Return the figures of a document, without those whose answers are known already.

    random : guessed share of people who answer at random. alone : as `plans_alone` returns them.
    """
    views = dict(document.views) if document.arms is not None else {"": document}
    known = {name: attention_of(view, random) for name, view in views.items()}
    chances = {arm.id: arm.share for arm in document.arms.arms} if document.arms else {}
    guessed, found = _guessed(definition), []
    for stated in (*stated_of(document), *separate_pairs(document, wanted_pairs(definition))):
        if any(question.anchor is not None for question in stated.questions):
            continue
        chance = chances.get(stated.arm, Fraction(1))
        view = views.get(stated.arm) or next(iter(views.values()))
        law = random_law(view, stated.block.questions, {})
        wanted = wanted_plan(stated)
        ids = [question.id for question in stated.block.questions]
        is_guessed = stated.block.id in guessed or guessed.issuperset(ids)
        guess = _shares_of(stated.block.design_prior) if is_guessed else None
        found.append(
            PlannedFigure(
                stated,
                text_of(stated.questions, document, stated.arm),
                wanted,
                _alone(stated, alone, is_guessed) or (wanted.plan, guess),
                stated.share / chance,
                chance,
                guess,
                None if law is None else np.array([float(p) for p in law]),
                _common(list(known.values())) if stated.arm == "" else known[stated.arm],
            )
        )
    return found


def _alone(
    stated: Stated, plans: Mapping[str, Alone], is_guessed: bool
) -> tuple[Plan, FloatArray | None] | None:
    """Return the plan of one question of the form alone, with its guessed shares."""
    if len(stated.questions) > 1 or part_of(stated.block.mechanism) is None:
        return None
    found = plans.get(stated.questions[0].id)
    return found and (found[0], _shares_of(found[1]) if is_guessed else None)


def _guessed(definition: SurveyDefinition) -> set[str]:
    """Return the ids of blocks with a prior, and of items of the form with expected counts."""
    blocks = {block.id for block in definition.blocks if block.prior is not None}
    items = () if definition.form is None else definition.form.items
    return blocks | {item.id for item in items if item.question.expected is not None}


def _shares_of(prior: tuple[int, ...] | None) -> FloatArray | None:
    if prior is None:
        return None
    total = sum(prior)
    return np.array([count / total for count in prior])


def attention_of(view: SurveyDocument, random: float) -> Attention | None:
    """Return how well a document without arms, or the view of an arm, tells κ; None if nothing does."""
    kept = 1 - random
    if view.instructed is not None:
        k = len(view.instructed.question.choices)
        failed = random * (1 - 1 / k)
        return Attention(failed * (1 - failed) * (k / (k - 1)) ** 2, item=True)
    anchors = anchors_of(view, {})
    if not anchors:
        return None
    weights = anchor_weights([one.score for one in anchors], [one.shown for one in anchors])
    each = sum(
        weight**2 * anchor.score.variance(kept) / anchor.shown
        for weight, anchor in zip(weights, anchors, strict=True)
    )
    # Two values of one report have the covariance κλ (claim 15), however often they are shown.
    across = 1 - sum(weight**2 for weight in weights)
    return Attention(each + kept * random * across, False, tuple(anchors), tuple(weights))


def _common(known: Sequence[Attention | None]) -> Attention | None:
    """Return the attention of all arms, None if it is not the same in all of them."""
    first = known[0]
    if first is None or any(
        one is None or one.item != first.item or not isclose(one.variance, first.variance)
        for one in known
    ):
        return None
    return first


def plans_alone(
    definition: SurveyDefinition,
    document: SurveyDocument,
    timer: Timer,
    seconds: float,
    progress: Progress | None = None,
) -> dict[str, Alone] | None:
    """Return plan and expected counts of every item of the form if it had the form's level alone, by its id.

    Empty without a form, or for one of a single item; None if the search found a table that is too large for
    estimates. Items of the same design are designed once.
    """
    form = definition.form
    if form is None or len(form.items) < 2:
        return {}
    block = next(
        block
        for view in (document, *document.views.values())
        for block in view.blocks
        if block.id == FORM_ID
    )
    request = form_request(form, definition.form_epsilon, Limits())
    tables: dict[object, AgreementMechanism] = {}
    plans, names = {}, [q.id for q in block.questions]
    distinct = len(set(request.questions))
    slices: Iterator[Limits] = time_slices(timer, seconds, distinct)
    for name, asked, question in zip(names, block.questions, request.questions, strict=True):
        if asked.anchor is not None:
            continue
        if question not in tables:
            if progress:
                progress(len(tables), distinct, name)
            one = FormRequest((question,), request.epsilon, limits=next(slices))
            tables[question] = design_form(one).mechanism
        mechanism = tables[question]
        table = _table_of(mechanism)
        if table is None:
            return None
        own = replace(
            block,
            questions=(asked,),
            mechanism=table,
            design_prior=question.prior,
            ceiling=stated_ceiling(table),
        )
        plan = wanted_plan(Stated(own, (asked,), chance_shown(mechanism, (0,)))).plan
        if plan is not None:
            plans[name] = plan, question.prior
    return plans


def _table_of(mechanism: AgreementMechanism) -> PartTable | None:
    """Return the table of a form of one question; None if it is too large, as of a search without time."""
    try:
        return part_table(mechanism, (0,))
    except InvalidInput as refused:
        if refused.problem is not Problem.UNSUPPORTED:
            raise
        return None
