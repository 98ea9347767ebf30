# SPDX-License-Identifier: Apache-2.0
"""Published versions: promises of blocks, level of the report, sentences about forms."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from frankly_design.engine.regret import Regret, regret
from frankly_design.estimate.identifiable import answers_of, in_words
from frankly_design.form.joint_tables import estimable_pairs, excess_in_words, joint_tables_in_words
from frankly_design.kinds.parts import part_blocks
from frankly_protocol.audit import ReportLevel, is_endless, ln_up
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument

from frankly_server.surveys.asked import asked_in_words
from frankly_server.surveys.devices import is_void


@dataclass(frozen=True, slots=True)
class PublishedBlock:
    """Promises of a published block; epsilon and ceiling are nats as text, ``inf`` if unbounded.

    epsilon : level of the first promise; also ``inf`` if public answers void the promise, so that
    only the ceiling is stated. rules_out : True if some reports practically exclude some answers,
    because the ceiling is infinite or very large (`is_endless`). estimable, untold : descriptions
    of shares that can be estimated, and of shares that cannot be distinguished. regret : the loss
    of the mechanism if all choices are equally common; None if there is no loss. notes : sentences
    about a form: content of a report, joint tables that can be estimated, quality of the design.
    """

    id: str
    mechanism: str
    notion: str
    epsilon: str
    ceiling: str
    counted_by: str
    answers_unchanged: bool
    rules_out: bool
    estimable: Sequence[str]
    untold: Sequence[str]
    regret: Regret | None
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(values[name]) for name in ("estimable", "untold", "notes")}
        return {**values, **lists, "regret": self.regret and self.regret.to_json()}


@dataclass(frozen=True, slots=True)
class Published:
    """A published version.

    status : ``published``, or ``unchanged`` if the newest version already has this definition.
    level : how much the complete report reveals about each secret (at most `budget`), and the cost
    of answering for a device. warnings : sentences about devices that would refuse the survey.
    """

    status: str
    survey_id: str
    name: str
    version: int
    digest: str
    link: str
    level: ReportLevel
    has_strata: bool
    budget: str
    blocks: Sequence[PublishedBlock]
    warnings: Sequence[str] = ()


def promised(document: SurveyDocument) -> list[PublishedBlock]:
    """Return the promises of every block of a document."""
    level = document.report_level
    # A block may count with its promise in the sum for one secret, and with its ceiling for other
    # secrets. One such promise is enough to show the block as counted by its level.
    by_level = {secret.counted for secret in level.secrets.values()}
    counted_by = {
        line.block: "level" if line.block in by_level else line.counted_by for line in level.lines
    }
    return [
        PublishedBlock(
            id=block.id,
            mechanism=block.mechanism_name,
            notion=block.notion,
            epsilon=ln_up(None if is_void(block, document) else block.ratio),
            ceiling=ln_up(block.ceiling),
            counted_by=counted_by[block.id],
            answers_unchanged=block.mechanism.sends_unchanged,
            rules_out=is_endless(block.ceiling),
            estimable=can,
            untold=cannot,
            regret=regret_of(block),
            notes=form_notes(block, document),
        )
        for block in document.blocks
        # A loop over one element binds a costly result (exact linear algebra) that is used twice.
        for can, cannot in [_estimability(block)]
    ]


def _estimability(block: Block) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the estimable combinations of shares, and the undetectable changes of shares.

    For a form, these are the combinations and changes of its parts, with the ids of their questions.
    """
    can: list[str] = []
    cannot: list[str] = []
    for part in part_blocks(block) or (block,):
        words = in_words(part.numbered_mechanism, answers_of(part))
        name = " × ".join(question.id for question in part.questions)
        prefix = f"{name}: " if part is not block else ""
        can += [prefix + sentence for sentence in words.can]
        cannot += [prefix + sentence for sentence in words.cannot]
    return tuple(can), tuple(cannot)


def regret_of(block: Block) -> Regret | None:
    """Return the loss of a block's mechanism for equally common choices, None if there is none.

    Also returns None for a form, whose notes compare it with the best possible design.
    """
    if block.form is not None:
        return None
    claims = tuple(claim for promise in block.promises for claim in promise.claims)
    return regret(block.numbered_mechanism, claims, block.design_prior)


def form_notes(block: Block, document: SurveyDocument) -> tuple[str, ...]:
    """Return sentences about a form of a document, none for other blocks."""
    form = block.form
    if form is None:
        return ()
    low, high = form.questions_drawn
    number = str(low) if low == high else f"{low} to {high}"
    has_boxes = any(question.box for question in block.questions)
    what = "questions and boxes" if has_boxes else "questions"
    notes = []
    if len(form.choices) > 1:
        notes.append(
            f"Each report is about {number} of its {len(form.choices)} {what}, drawn at random."
        )
    notes.append(asked_in_words(document))
    if len(form.choices) > 1:
        names = [question.id for question in block.questions]
        notes.append(joint_tables_in_words(estimable_pairs(form), names))
    certificate = block.certificate
    if certificate is not None and certificate.bound is not None and float(certificate.bound) > 0:
        notes.append(excess_in_words(float(certificate.value), float(certificate.bound)))
    return tuple(notes)
