# SPDX-License-Identifier: Apache-2.0
"""Drafting of documents: design every block, verify it exactly, check the budget."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction

from frankly_protocol import canonical
from frankly_protocol.audit import exp_lower, ln_up, stated_ceiling
from frankly_protocol.blocks import Block, Certificate, Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.api.engine import SMALLER_TABLES, Design, DesignRequest, design
from frankly_server.design.families import FAMILIES
from frankly_server.design.tables.limits import Limits
from frankly_server.estimate.identifiable import answers_of, in_words
from frankly_server.surveys.definition import BlockDefinition, QuestionDefinition, SurveyDefinition
from frankly_server.surveys.devices import expected_form, require_stated
from frankly_server.surveys.priors import BlockRequest, block_request, named

# Defaults of a survey file without times: it closes 90 days after it opens and expires 30 days later.
_OPEN, _GRACE = timedelta(days=90), timedelta(days=30)
_SEARCH_S = 60.0
_MAX_LISTED = 4

Progress = Callable[[int, int, str], None]
"""Callback before each block and at the end: finished blocks, all blocks, id of the next or ""."""


@dataclass(frozen=True, slots=True)
class DraftedBlock:
    """A block of the document, and the design it came from."""

    block: Block
    design: Design


@dataclass(frozen=True, slots=True)
class Place:
    """Identity of a new version: survey, number, predecessor, time and address.

    prev : digest of the previous version, None for the first. issued : time of publication.
    collect_url : address that devices send reports to.
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
) -> list[DraftedBlock]:
    """Design every block with at most a minute of search each; certificates bound the optimum.

    Raises InvalidInput as `expected_form` and `design` do, with the path of the block.
    """
    expected_form(definition)  # refuses before any search
    drafted = []
    for i, block in enumerate(definition.blocks):
        if progress:
            progress(i, len(definition.blocks), block.id)
        drafted.append(draft_block(block, f"blocks[{i}]", time_limit(timer)))
    if progress:
        progress(len(definition.blocks), len(definition.blocks), "")
    return drafted


def draft_document(
    definition: SurveyDefinition,
    blocks: Sequence[DraftedBlock],
    place: Place,
) -> SurveyDocument:
    """Return the document after verifying every promise (from the integers) and the budget.

    Raises InvalidInput: mechanism_not_certified, unsupported for a promise that public answers
    void, budget_exceeded, optimiser_limit for tables too large for a device, or definition_invalid
    for times that have passed and anything else that a device would refuse.
    """
    opens, closes, expires = _window(definition, place.issued)
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
            strata=tuple(_question(question) for question in definition.strata),
            blocks=tuple(drafted.block for drafted in blocks),
            token=definition.tokens.rule if definition.tokens else None,
        )
        # Parsed from the bytes and verified as on a device, so that devices accept what is signed.
        document = SurveyDocument.parse(document.payload())
        document.require_private()
    except DocumentRejected as error:
        # The parser does not name a block; the largest table is the one to make smaller.
        if error.reason == "size":
            raise InvalidInput(Problem.OPTIMISER_LIMIT, _too_large(blocks), "blocks") from None
        problems = {
            "privacy": Problem.MECHANISM_NOT_CERTIFIED,
            "work_limit": Problem.OPTIMISER_LIMIT,
        }
        problem = problems.get(error.reason, Problem.DEFINITION_INVALID)
        raise InvalidInput(problem, error.detail, error.field) from None
    require_stated(document)
    require_budget(document, definition.budget)
    return document


def _too_large(blocks: Sequence[DraftedBlock]) -> str:
    largest = max(
        blocks, key=lambda drafted: len(canonical.dumps(drafted.block.mechanism.params_json()))
    ).block
    max_mib = canonical.MAX_BYTES // 2**20
    table = f"most of which is the table of block {largest.id}"
    return f"the document would be larger than {max_mib} MiB, {table}: {SMALLER_TABLES}"


def require_budget(document: SurveyDocument, budget: str) -> None:
    """Raise InvalidInput(budget_exceeded) if a report reveals more than `budget` nats."""
    level = document.report_level
    if level.odds is not None and level.odds <= exp_lower(Fraction(budget)):
        return
    secret_odds = {name: secret.odds for name, secret in level.secrets.items()}
    secret_odds = secret_odds or {"the answers": level.answers.odds}
    secrets_text = ", ".join(f"{ln_up(odds)} about {name}" for name, odds in secret_odds.items())
    # Blocks are shown with their prior-free bounds, which hold for any prior.
    blocks_text = ", ".join(f"{line.block} {ln_up(line.odds)}" for line in level.lines)
    message = (
        f"the whole report reveals more than the budget of {budget} nats of log-odds: up to {secrets_text}; "
        f"the bounds of its blocks under any prior knowledge: {blocks_text}"
    )
    raise InvalidInput(Problem.BUDGET_EXCEEDED, message, "budget")


def _window(definition: SurveyDefinition, issued: datetime) -> tuple[datetime, datetime, datetime]:
    """Return opens, closes and expires, with defaults for those that the definition leaves out."""
    opens = max(definition.opens or issued, issued)  # no answers before the document exists
    closes = definition.closes or min(opens + _OPEN, definition.expires or opens + _OPEN)
    if closes <= issued:
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            "closes lies in the past: give a later time",
            "closes",
        )
    return opens, closes, definition.expires or closes + _GRACE


def time_limit(timer: Callable[[], float], seconds: float = _SEARCH_S) -> Limits:
    """Return limits that end a search after `seconds`; an exception of `timer` ends it at once."""
    deadline = timer() + seconds
    return Limits(out_of_time=lambda: timer() > deadline)


def time_slices(timer: Callable[[], float], seconds: float, searches: int) -> Iterator[Limits]:
    """Yield limits for `searches` consecutive searches, which together end within `seconds`.

    Each gets an equal share of the time that remains when it begins, so that later searches can use
    the time that earlier ones saved.
    """
    deadline = timer() + seconds
    for remaining in range(searches, 0, -1):
        yield time_limit(timer, max(0.0, deadline - timer()) / remaining)


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
    """Design one block; `field` is its path.

    Raises InvalidInput as `block_request` and `design` do.
    """
    requested = block_request(block, field)
    request = request_of(block, requested, limits)
    if block.mechanism in FAMILIES:
        # Designed in any case: the error below names the choices, which `design` does not know.
        request = replace(request, accept_unidentifiable=True)
    # Settling the promises may refuse the mechanism too, so both errors need the path.
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
        questions=tuple(_question(question) for question in block.questions),
        mechanism=designed.mechanism,
        promises=promises,
        design_prior=designed.decoder_prior,
        ceiling=stated_ceiling(designed.mechanism),
        mechanism_name=designed.mechanism_name,
        certificate=certificate,
    )
    # Refused here, because the request above accepts it for families.
    if not (designed.identifiable or block.accept_unidentifiable):
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, _unidentifiable(drafted), f"{field}.mechanism")
    return DraftedBlock(drafted, designed)


def _unidentifiable(block: Block) -> str:
    estimability = in_words(block.mechanism, answers_of(block))
    return (
        f"with {block.mechanism_name}, no number of reports separates: {_some(estimability.cannot)}. "
        f"What can be estimated: {_some(estimability.can)}. Use another mechanism, or set accept_unidentifiable: true"
    )


def _some(sentences: Sequence[str]) -> str:
    unlisted = len(sentences) - _MAX_LISTED
    return "; ".join(sentences[:_MAX_LISTED]) + (f"; and {unlisted} more" if unlisted > 0 else "")


def _question(question: QuestionDefinition) -> Question:
    choices = tuple(Choice(choice.id, choice.label) for choice in question.choices)
    return Question(question.id, question.text, choices)


def _decimal(value: float) -> str:
    # rounding: certificates inform about the design; no privacy decision reads them.
    return f"{value:.12g}"
