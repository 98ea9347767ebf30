# SPDX-License-Identifier: Apache-2.0
"""Drafting of documents: design every block, verify it exactly, check the budget."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction

from frankly_design.engine.engine import SMALLER_TABLES, DesignRequest, DesignResult, design
from frankly_design.estimate.identifiable import answers_of, in_words
from frankly_design.estimate.scales import DesignRows, wanted_figures
from frankly_design.families import FAMILIES
from frankly_design.form import FormDesign, FormQuestion, FormRequest, design_form
from frankly_design.kinds.decoder import decoder
from frankly_design.kinds.dense import table_of
from frankly_design.kinds.parts import part_blocks
from frankly_design.numeric import rational
from frankly_design.requests.faults import named
from frankly_design.tables.limits import Limits
from frankly_protocol import canonical
from frankly_protocol.audit import Claim, ReportLevel, level_for, stated_ceiling
from frankly_protocol.blocks import Block, Certificate, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem
from frankly_protocol.questions import Instructed

from frankly_server.surveys.anchors import asks_again, require_telling, require_together
from frankly_server.surveys.arms_definition import arms_of
from frankly_server.surveys.asked import asks_less
from frankly_server.surveys.definition import (
    FORM_ID,
    BlockDefinition,
    FormDefinition,
    SurveyDefinition,
)
from frankly_server.surveys.devices import expected_form, is_within, require_budget, require_stated
from frankly_server.surveys.priors import BlockRequest, block_request
from frankly_server.surveys.question_definition import FormItem

# Default times: a survey closes 90 days after it opens, and expires 30 days later.
_OPEN, _GRACE = timedelta(days=90), timedelta(days=30)
SEARCH_S = 60.0
_MAX_LISTED = 4

Progress = Callable[[int, int, str], None]
"""Callback with the numbers of finished and of all blocks, and the next id ("" at the end)."""
Drafter = Callable[[SurveyDefinition, Progress | None, Callable[[], float]], Sequence["Drafted"]]
"""A function like `draft_blocks`."""


@dataclass(frozen=True, slots=True)
class DraftedBlock:
    """A block of the document, and its design."""

    block: Block
    design: DesignResult


@dataclass(frozen=True, slots=True)
class DraftedForm:
    """The block of a form, and its design."""

    block: Block
    design: FormDesign


Drafted = DraftedBlock | DraftedForm


@dataclass(frozen=True, slots=True)
class Place:
    """Identity of a new version: survey id, number, predecessor, time and address.

    version : 1, 2, … within the survey. prev : digest of the previous version, None for the first.
    issued : time of publication. collect_url : address to which devices send reports.
    """

    survey: str
    version: int
    prev: str | None
    issued: datetime
    collect_url: str


def draft_blocks(
    definition: SurveyDefinition,
    progress: Progress | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> list[Drafted]:
    """Design every block, with a bound on the gap to the optimum; searches take at most a minute.

    Raises the InvalidInput errors of `expected_form` and `design`, with the path of the block.
    """
    expected_form(definition)  # raises errors before any search
    drafted: list[Drafted] = []
    for i, part in enumerate(definition.parts):
        if progress:
            progress(i, len(definition.parts), part)
        drafted.append(_bounded(draft_part(definition, i, Limits.within(SEARCH_S, timer))))
    if progress:
        progress(len(definition.parts), len(definition.parts), "")
    return drafted


def level_within_budget(
    definition: SurveyDefinition,
    progress: Progress | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> ReportLevel:
    """Return an upper bound on the level of the whole report that is within the budget.

    The promises and ceilings of the definition usually suffice. Otherwise every block is designed,
    because the level then depends on the tables: a mechanism without a ceiling_cap may still have
    a low ceiling.

    Raises InvalidInput: budget_exceeded if publishing would raise it, and the errors of
    `expected_form` and `draft_blocks`.
    """
    form = expected_form(definition)
    if is_within(form.report_level, definition.budget):
        return form.report_level
    blocks = [drafted.block for drafted in draft_blocks(definition, progress, timer)]
    level = replace(form, blocks=blocks).report_level
    require_budget(level, definition.budget)
    return level


def _bounded(drafted: Drafted) -> Drafted:
    """Return a form with the bound of its certificate, which takes longer than most designs.

    Its request has no limits any more: they hold the clock of this process, and cannot be sent from it.
    """
    if isinstance(drafted, DraftedBlock):
        return drafted
    block, design = drafted.block, drafted.design
    if block.certificate is not None:
        bound = _decimal(design.bound)
        block = replace(block, certificate=replace(block.certificate, bound=bound))
    return DraftedForm(block, replace(design, request=replace(design.request, limits=Limits())))


def draft_part(definition: SurveyDefinition, i: int, limits: Limits) -> Drafted:
    """Design `definition.parts[i]`: a block, or the form, whose certificate then has no bound.

    Raises InvalidInput with its path.
    """
    if i < len(definition.blocks):
        return draft_block(definition.blocks[i], f"blocks[{i}]", limits)
    assert definition.form is not None  # noqa: S101 - the only part that is no block
    return draft_form(definition.form, definition.form_epsilon, limits)


def draft_form(form: FormDefinition, epsilon: str, limits: Limits) -> DraftedForm:
    """Design a form for the requested estimates of its questions.

    Raises the InvalidInput errors of `design_form`, with the path of the form, and not_identifiable if
    the mechanism cannot estimate a wanted figure.
    """
    with named("form"):
        designed = design_form(form_request(form, epsilon, limits))
    mechanism = designed.mechanism
    block = Block(
        id=FORM_ID,
        questions=tuple(item.for_devices() for item in form.items),
        mechanism=mechanism,
        promises=(Promise(Claim("ldp", level_for(Fraction(epsilon)))),),
        design_prior=tuple(n for item in form.items for n in item.expected),
        ceiling=stated_ceiling(mechanism),
        mechanism_name=AgreementMechanism.kind,
        certificate=Certificate("variance", _decimal(designed.value), None),
        asks_drawn=form.ask != "all",
    )
    for part in part_blocks(block):
        if not asks_again(part):
            _require_estimable(part)
        require_telling(part, "form.questions", "leave its field wanted out")
    return DraftedForm(block, designed)


def _require_estimable(part: Block) -> None:
    """Raise InvalidInput(not_identifiable) for a wanted figure that no number of reports can estimate.

    Decided in exact arithmetic; the design's own figures are floats.
    """
    table, asked = table_of(part.mechanism), part.questions[0]
    figures = wanted_figures(asked) if len(part.questions) == 1 else ()
    rows = [row for figure in figures for row in (figure.weights, figure.over) if row is not None]
    if table is None:
        return
    if rows:
        is_known = None not in decoder(table, tuple(rows), part.design_prior).rows
    else:
        is_known = rational.least_rank(table.weights) == table.answers
    if not is_known:
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            f"no mechanism was found that can estimate what is wanted of {asked.id}: merge choices, or raise the "
            "level",
            "form.questions",
        )


def form_request(form: FormDefinition, epsilon: str, limits: Limits) -> FormRequest:
    """Return the designer's request for a form."""
    places = {item.id: i for i, item in enumerate(form.items)}
    return FormRequest(
        questions=tuple(_form_question(item) for item in form.items),
        epsilon=Fraction(epsilon),
        cross_tables=tuple((places[a], places[b]) for a, b in form.cross_tables),
        limits=limits,
        repeats=tuple(
            (places[item.question.anchor.repeats], i)
            for i, item in enumerate(form.items)
            if item.question.anchor is not None and item.question.anchor.repeats is not None
        ),
    )


def _form_question(item: FormItem) -> FormQuestion:
    wanted = DesignRows.of(wanted_figures(item.for_devices()), item.expected)
    importance = Fraction(item.question.importance) * wanted.weight
    return FormQuestion(item.expected, wanted.rows, importance, wanted.denominators)


def draft_document(
    definition: SurveyDefinition, blocks: Sequence[Drafted], place: Place
) -> SurveyDocument:
    """Return the document after verifying every promise from its integers, and the budget.

    Raises InvalidInput: mechanism_not_certified, unsupported for a promise that public answers void or
    for an anchor asked alone, budget_exceeded, optimiser_limit for tables too large for a device, or
    definition_invalid for times that have passed and anything else that a device would refuse.
    """
    opens, closes, expires = window_of(definition, place.issued)
    item = definition.instructed
    designed = [drafted.block for drafted in blocks]
    if definition.form is not None and definition.form.ask is None and not asks_less(designed):
        # A plan that asks everything would only delay the report.
        designed = [replace(block, asks_drawn=False) for block in designed]
    require_together(designed)
    try:
        document = SurveyDocument(
            survey=place.survey,
            version=place.version,
            prev=place.prev,
            issued=place.issued,
            opens=opens,
            closes=closes,
            expires=expires,
            languages=definition.languages,
            title=definition.title,
            consent=definition.consent,
            collect_url=place.collect_url,
            min_reports=definition.min_reports,
            release_every=definition.release_every,
            release_step=definition.step,
            strata=tuple(question.for_devices() for question in definition.strata),
            instructed=None if item is None else Instructed(item.for_devices(), item.answer),
            arms=arms_of(definition),
            blocks=tuple(designed),
            token=definition.tokens.rule(definition.strata) if definition.tokens else None,
        )
        # Parsed from the bytes and verified like on a device, so that devices accept the document.
        document = SurveyDocument.parse(document.payload())
        document.require_private()
    except DocumentRejected as error:
        # The parser's error does not name a block; the message names the block with the largest
        # table.
        if error.reason == "size":
            raise InvalidInput(Problem.OPTIMISER_LIMIT, _too_large(blocks), "blocks") from None
        problems = {
            "privacy": Problem.MECHANISM_NOT_CERTIFIED,
            "work_limit": Problem.OPTIMISER_LIMIT,
        }
        problem = problems.get(error.reason, Problem.DEFINITION_INVALID)
        raise InvalidInput(problem, error.detail, error.field) from None
    require_stated(document)
    require_budget(document.report_level, definition.budget)
    return document


def _too_large(blocks: Sequence[Drafted]) -> str:
    largest = max(
        blocks, key=lambda drafted: len(canonical.dumps(drafted.block.mechanism.params_json()))
    ).block
    max_mib = canonical.MAX_BYTES // 2**20
    table = f"most of which is the table of block {largest.id}"
    return f"the document would be larger than {max_mib} MiB, {table}: {SMALLER_TABLES}"


def window_of(
    definition: SurveyDefinition, issued: datetime
) -> tuple[datetime, datetime, datetime]:
    """Return opens, closes and expires, with defaults for missing values.

    Raises InvalidInput(definition_invalid) if the survey would already be closed.
    """
    opens = max(definition.opens or issued, issued)  # no answers before the document exists
    closes = definition.closes or min(opens + _OPEN, definition.expires or opens + _OPEN)
    expires = definition.expires or closes + _GRACE
    if closes <= issued:
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "closes lies in the past: give a later time", "closes"
        )
    return opens, closes, expires


def time_slices(timer: Callable[[], float], seconds: float, searches: int) -> Iterator[Limits]:
    """Yield limits for `searches` consecutive searches, which end within `seconds` in total.

    Each search gets an equal share of the remaining time when it begins, so that later searches can
    use time saved by earlier ones.
    """
    deadline = timer() + seconds
    for remaining in range(searches, 0, -1):
        yield Limits.within(max(0.0, deadline - timer()) / remaining, timer)


def request_of(block: BlockDefinition, requested: BlockRequest, limits: Limits) -> DesignRequest:
    """Return the engine's request for a block."""
    return DesignRequest(
        prior=requested.prior,
        claims=requested.claims,
        mechanism=block.mechanism,
        explicit=requested.explicit,
        objective=block.objective,
        criterion=block.criterion,
        truths=requested.truths,
        accept_identity=block.accept_identity,
        accept_unidentifiable=block.accept_unidentifiable,
        limits=limits,
    )


def draft_block(block: BlockDefinition, field: str, limits: Limits) -> DraftedBlock:
    """Design one block. field : path of the block.

    Raises the InvalidInput errors of `block_request`, `design` and `require_telling`.
    """
    requested = block_request(block, field)
    request = request_of(block, requested, limits)
    if block.mechanism in FAMILIES:
        # Accepted here and refused below, where the error can name the choices; `design` knows
        # only their positions.
        request = replace(request, accept_unidentifiable=True)
    # Both calls may refuse the mechanism, and the error needs the block's path.
    with named(field):
        designed = design(request)
        promises = requested.settled_promises(designed.claims)
    certificate = Certificate(
        designed.objective,
        _decimal(designed.value),
        None if designed.bound is None else _decimal(designed.bound),
    )
    drafted = Block(
        id=block.id,
        questions=tuple(question.for_devices() for question in block.questions),
        mechanism=designed.mechanism,
        promises=promises,
        design_prior=designed.decoder_prior,
        ceiling=stated_ceiling(designed.mechanism),
        mechanism_name=designed.mechanism_name,
        certificate=certificate,
    )
    # Families are refused here; `design` has already refused other mechanisms.
    if not (designed.identifiable or block.accept_unidentifiable):
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, _unidentifiable(drafted), f"{field}.mechanism")
    require_telling(drafted, f"{field}.mechanism")
    return DraftedBlock(drafted, designed)


def _unidentifiable(block: Block) -> str:
    estimability = in_words(block.numbered_mechanism, answers_of(block))
    return (
        f"with {block.mechanism_name}, these cannot be distinguished from any number of reports: "
        f"{_some(estimability.cannot)}. These can be estimated: {_some(estimability.can)}. "
        "Use another mechanism, or set accept_unidentifiable: true"
    )


def _some(sentences: Sequence[str]) -> str:
    unlisted = len(sentences) - _MAX_LISTED
    return "; ".join(sentences[:_MAX_LISTED]) + (f"; and {unlisted} more" if unlisted > 0 else "")


def _decimal(value: float) -> str:
    # rounding: a certificate is for people to read; no privacy decision uses it.
    return f"{value:.12g}"
