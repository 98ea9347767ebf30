# SPDX-License-Identifier: Apache-2.0
"""Questions with known answers, which tell how many people answer at random (spec 8.15)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
from frankly_design.estimate.anchors import (
    Anchored,
    AnchorScore,
    Counted,
    Stack,
    anchor_weights,
    fit_test,
)
from frankly_design.estimate.estimator import checked_evidence
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.dense import table_of
from frankly_design.kinds.parts import (
    are_drawn_together,
    counted_blocks,
    estimated_blocks,
    form_of,
    once_per_document,
    part_of,
)
from frankly_design.numeric.arrays import FloatArray
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.questions import Question

from frankly_server.analysis.counted_document import Blocks, Received
from frankly_server.analysis.groups import Group
from frankly_server.analysis.part import Part
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.random_law import Stated, random_law
from frankly_server.analysis.versions import covariance_at


@dataclass(frozen=True, slots=True)
class Fit:
    """Test of anchors by `n` reports; of several anchors, by as many as show the rarest."""

    n: int
    statistic: float
    freedom: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """A question with known answers, in a block or a part of a form of its own.

    A repeated question shares its part with the question that it repeats. position : among the
    counted blocks. shown : share of the reports that show it, by design. known, at_random : shares of the
    (joint) answers among those who read, and those who answer at random. questions : of its part.
    """

    question: Question
    position: int
    mechanism: DenseMechanism
    shown: float
    known: tuple[Fraction, ...]
    at_random: tuple[Fraction, ...]
    score: AnchorScore

    questions: tuple[Question, ...] = ()

    @property
    def form(self) -> AgreementMechanism | None:
        """The form that the anchor is in, or None."""
        return form_of(self.mechanism)


def has_anchors(document: SurveyDocument) -> bool:
    """Return True if some question of the document has known shares."""
    return any(question.anchor is not None for question in document.questions.values())


def anchors_of(document: SurveyDocument, stated: Stated) -> list[Anchor]:
    """Return the anchors that tell something under a law of random answers, which may be stated."""
    if not has_anchors(document):
        return []
    return _stated_anchors(document, stated) if stated else _anchors(document)


@once_per_document
def _anchors(document: SurveyDocument) -> list[Anchor]:
    return _stated_anchors(document, {})


def _stated_anchors(document: SurveyDocument, stated: Stated) -> list[Anchor]:
    stated = with_copies(document, stated)
    shown = {id(block): float(share) for block, share in estimated_blocks(document)}
    found = []
    for position, block in enumerate(counted_blocks(document)):
        mechanism, known = table_of(block.mechanism), known_shares(block)
        if known is None or mechanism is None:
            continue
        law = random_law(document, block.questions, stated)
        score = law and AnchorScore.of(mechanism, known, law)
        if law and score:
            share, question = shown[id(block)], block.questions[-1]
            found.append(
                Anchor(question, position, mechanism, share, known, law, score, block.questions)
            )
    return found


def with_copies(document: SurveyDocument, stated: Stated) -> Stated:
    """Return a stated law in which a repeated question has that of the first one, unless it has its own."""
    copies = {}
    for question in document.questions.values():
        first = question.anchor and question.anchor.repeats
        if first and first in stated:
            copies[question.id] = stated[first]
    return {**copies, **stated}


def known_shares(block: Block) -> tuple[Fraction, ...] | None:
    """Return the known shares of a block's joint answers; None unless it is an anchor's own.

    Of a repeated question it is known that both answers are equal; how they are spread does not matter if
    the mechanism has one law for them all, as otherwise nothing is known.
    """
    *others, question = block.questions
    table = table_of(block.mechanism)
    if question.anchor is None or table is None:
        return None
    if not question.is_repeated:
        return None if others else question.anchor.shares
    size = len(question.choices)
    rows = {table.weights[i * (size + 1)] for i in range(size)} if others else ()
    if [other.id for other in others] != [question.anchor.repeats] or len(rows) != 1:
        return None
    return tuple(Fraction(int(x == z), size) for x, z in product(range(size), repeat=2))


def pairs_with_anchors(document: SurveyDocument, blocks: Blocks) -> list[Blocks]:
    """Return the pairs of a block and an anchor whose noise is drawn together, as in one form.

    Of other anchors the covariance with an estimate needs no joint counts.
    """
    if len(blocks) != 1 or not has_anchors(document):
        return []
    counted, (position,) = counted_blocks(document), blocks
    return [
        (min(position, other), max(position, other))
        for other, block in enumerate(counted)
        if known_shares(block) is not None
        and other != position
        and are_drawn_together(counted[position].mechanism, block.mechanism)
    ]


def anchored(source: Received, group: Group, stated: Stated) -> Anchored | None:
    """Return κ̂ by the anchors of a group's reports; None unless two or more reports show each anchor."""
    anchors = anchors_of(source.document, stated)
    counted = [Counted(anchor.score, _counts(source, group, anchor)) for anchor in anchors]
    if not anchors or any(one.n < _FEWEST for one in counted):
        return None
    weights = anchor_weights([one.score for one in anchors], [one.shown for one in anchors])
    n = _reports(source, group)
    return Anchored(n, (Stack(n, tuple(counted), tuple(weights)),))


_FEWEST: Final = 2
"""Fewest reports with a variance."""


def _reports(source: Received, group: Group) -> int:
    """Return the number of a group's reports on a document; each has a symbol of its first block."""
    keys = source.within((0,), group.by, group.choice, group.period)
    return sum(source.cells[key].n for key in keys)


def _counts(source: Received, group: Group, anchor: Anchor) -> FloatArray:
    """Return the number of reports with each symbol of the anchor."""
    counts = np.zeros(anchor.mechanism.reports)
    for key in source.within((anchor.position,), group.by, group.choice, group.period):
        for (symbol,), n in source.cells[key].tally.items():
            counts[symbol] += n
    return counts


@dataclass(frozen=True, slots=True)
class Overlap:
    """Covariance of a part's targets with κ̂ by the anchor of the same form, in a group of `n` reports.

    weight : of that anchor in κ̂. covariance : shape (identifiable targets,).
    """

    n: int
    weight: float
    covariance: FloatArray

    def beside(self, apart: FloatArray, places: Sequence[int], n: int) -> FloatArray:
        """Return the covariance of some targets with λ̂ from `n` reports of this and other groups.

        apart : the covariance if all anchors were in other blocks. places : among the targets.
        """
        return (1 - self.weight) * apart - self.weight * self.n / n * self.covariance[places]


def overlap_of(source: Received, group: Group, part: Part, stated: Stated) -> Overlap | None:
    """Return what a part of a form has in common with an anchor in the same form.

    None if there is no such anchor: noise of different blocks is drawn apart. Raises LookupError if the
    reports with both are not counted: of several parts of a form, by day, or if they are not asked for.
    """
    anchors = anchors_of(source.document, stated)
    tables = [table for table in map(part_of, part.mechanisms) if table is not None]
    inside = [one for one in anchors if any(one.form is table.form for table in tables)]
    if not inside:
        return None
    anchor, *others = inside
    if others or len(part.blocks) > 1 or group.period != ALL_TIME:
        raise LookupError("no counts of these questions together with the anchor")
    weights = anchor_weights([one.score for one in anchors], [one.shown for one in anchors])
    solved = decoder(tables[0], part.targets, part.design_prior)
    counts, scores = _counts(source, group, anchor), solved.floats()
    both = _joint_counts(source, group, counted_position(source.document, part), anchor)
    shown, covariance = both.sum(), np.zeros(len(scores))
    if shown > 0:
        off = scores - (scores @ both.sum(axis=1) / shown)[:, None]
        # Of the pairs of a report with one and a report with the other, so many are of one report.
        covariance = off @ both @ anchor.score.values / (part.n * counts.sum())
    weight = weights[anchors.index(anchor)]
    return Overlap(_reports(source, group), weight, covariance)


def _joint_counts(source: Received, group: Group, position: int, anchor: Anchor) -> FloatArray:
    """Return the number of reports by symbols of the counted block at `position` and the anchor.

    Raises LookupError if some reports show both but these counts were not asked for.
    """
    sizes = counted_blocks(source.document)[position].mechanism.reports, anchor.mechanism.reports
    joint, pair = np.zeros(sizes), sorted((position, anchor.position))
    keys = source.within((pair[0], pair[1]), group.by, group.choice, group.period)
    if not keys and pairs_with_anchors(source.document, (position,)):
        raise LookupError("no counts of this question together with the anchor")
    for key in keys:
        for symbols, n in source.cells[key].tally.items():
            first, second = symbols if position < anchor.position else symbols[::-1]
            joint[first, second] += n
    return joint


def counted_position(document: SurveyDocument, part: Part) -> int:
    """Return the position of a part's only block among the counted ones."""
    (block,) = part.blocks
    return next(i for i, other in enumerate(counted_blocks(document)) if other is block)


def fit_of(source: Received, group: Group, stated: Stated, attentive: float) -> Fit | None:
    """Return how well the anchors fit their known shares and the law of random answers.

    attentive : κ̂ of the group. Anchors of which not all shares can be estimated have no part in it. None
    if there is nothing to test, as with one anchor of two choices.
    """
    anchors = anchors_of(source.document, stated)
    kept = min(max(attentive, 0.0), 1.0)
    off, along, blocks, least = [], [], [], 0
    for anchor in anchors:
        counts = [int(n) for n in _counts(source, group, anchor)]
        known = np.array([float(share) for share in anchor.known])
        law = np.array([float(share) for share in anchor.at_random])
        block = counted_blocks(source.document)[anchor.position]
        evidence = checked_evidence(anchor.mechanism, counts, shares(len(law)), block.design_prior)
        if evidence.shares is None:
            continue
        off.append(np.array([float(share or 0) for share in evidence.shares]) - law)
        along.append(known - law)
        blocks.append(covariance_at(evidence, kept * known + (1 - kept) * law))
        least = min(least or sum(counts), sum(counts))
    if not off:
        return None
    direction = np.concatenate(along)
    # Two anchors have in common who reads: κ(1 − κ) times both directions.
    covariance = kept * (1 - kept) / _reports(source, group) * np.outer(direction, direction)
    start = 0
    for block_covariance in blocks:
        end = start + len(block_covariance)
        covariance[start:end, start:end] = block_covariance
        start = end
    tested = fit_test(np.concatenate(off), direction, covariance)
    return None if tested is None else Fit(least, *tested)
