# SPDX-License-Identifier: Apache-2.0
"""From a definition to a document that keeps its promises: design every block, verify exactly, check the budget."""

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

from frankly_server.design.engine import SMALLER_TABLES, Design, DesignRequest, design
from frankly_server.design.families import FAMILIES
from frankly_server.design.limits import Limits
from frankly_server.estimate.identifiable import answers_of, in_words
from frankly_server.surveys.definition import BlockDefinition, QuestionDefinition, SurveyDefinition
from frankly_server.surveys.devices import expected_form, require_stated
from frankly_server.surveys.priors import BlockRequest, asked_of, named

_OPEN, _GRACE = timedelta(days=90), timedelta(days=30)
_SEARCH_S = 60.0
_TOLD = 4

Progress = Callable[[int, int, str], None]
"""Called before each block with (blocks done, blocks in all, id of the block now being designed)."""


@dataclass(frozen=True, slots=True)
class DraftedBlock:
    """A block of the document, and the design it came from."""

    block: Block
    design: Design


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new version stands: the survey's id, its number, what went before, when and where it is published."""

    survey: str
    version: int
    prev: str | None
    issued: datetime
    collect_url: str


def draft_blocks(
    definition: SurveyDefinition, progress: Progress | None = None, timer: Callable[[], float] = time.monotonic
) -> list[DraftedBlock]:
    """Design the mechanism of every block, each for at most a minute of search: its certificate tells how far it got.

    Raises InvalidInput with the path of the block at fault: whatever `expected_form` and `design` refuse.
    """
    expected_form(definition)  # before any search
    drafted = []
    for i, block in enumerate(definition.blocks):
        if progress:
            progress(i, len(definition.blocks), block.id)
        drafted.append(draft_block(block, f"blocks[{i}]", a_while(timer)))
    if progress:
        progress(len(definition.blocks), len(definition.blocks), "")
    return drafted


def draft_document(definition: SurveyDefinition, blocks: Sequence[DraftedBlock], place: Place) -> SurveyDocument:
    """Return the verified document: every promise re-checked from the integers, the ledger within the budget.

    Raises InvalidInput: mechanism_not_certified, unsupported for a promise that public answers void, budget_exceeded,
    optimiser_limit for tables too large to be sent to a device, or definition_invalid for times that have passed.
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
        # Read back from the bytes and verified as a device will: nothing else decides what is signed.
        document = SurveyDocument.parse(document.payload())
        document.require_private()
    except DocumentRejected as error:
        if error.reason == "size":
            raise InvalidInput(Problem.OPTIMISER_LIMIT, _too_large(blocks), "blocks") from None
        named = {"privacy": Problem.MECHANISM_NOT_CERTIFIED, "work_limit": Problem.OPTIMISER_LIMIT}
        problem = named.get(error.reason, Problem.DEFINITION_INVALID)
        raise InvalidInput(problem, error.detail, error.field) from None
    require_stated(document)
    require_budget(document, definition.budget)
    return document


def _too_large(blocks: Sequence[DraftedBlock]) -> str:
    largest = max(blocks, key=lambda drafted: len(canonical.dumps(drafted.block.mechanism.params_json()))).block
    most = canonical.MAX_BYTES // 2**20
    return f"the document would be larger than {most} MiB, most of it the table of block {largest.id}: {SMALLER_TABLES}"


def require_budget(document: SurveyDocument, budget: str) -> None:
    """Raise InvalidInput(budget_exceeded) if the report tells more than `budget` nats of anything protected."""
    level = document.report_level
    if level.odds is not None and level.odds <= exp_lower(Fraction(budget)):
        return
    about = {name: secret.odds for name, secret in level.secrets.items()} or {"the answers": level.answers.odds}
    parts = ", ".join(f"{ln_up(odds)} of {name}" for name, odds in about.items())
    blocks = ", ".join(f"{line.block} {ln_up(line.odds)}" for line in level.lines)
    words = (
        f"the whole report tells more than the budget of {budget} nats of log-odds: up to {parts}; the bounds of its "
        f"blocks whatever is known: {blocks}"
    )
    raise InvalidInput(Problem.BUDGET_EXCEEDED, words, "budget")


def _window(definition: SurveyDefinition, issued: datetime) -> tuple[datetime, datetime, datetime]:
    """Return opens, closes and expires, settling those that the definition leaves open."""
    opens = max(definition.opens or issued, issued)  # nobody can answer before there is a document
    closes = definition.closes or min(opens + _OPEN, definition.expires or opens + _OPEN)
    if closes <= issued:
        raise InvalidInput(Problem.DEFINITION_INVALID, "the survey would be closed already; move closes", "closes")
    return opens, closes, definition.expires or closes + _GRACE


def a_while(timer: Callable[[], float], seconds: float = _SEARCH_S) -> Limits:
    """Return limits that end a search after so many seconds; what `timer` raises ends it at once."""
    deadline = timer() + seconds
    return Limits(out_of_time=lambda: timer() > deadline)


def in_turns(timer: Callable[[], float], seconds: float, searches: int) -> Iterator[Limits]:
    """Yield the limits of so many searches, one after the other, which end within so many seconds together.

    Each has an equal part of the time that is left when it begins: what one does not need, later ones have.
    """
    deadline = timer() + seconds
    for left in range(searches, 0, -1):
        yield a_while(timer, max(0.0, deadline - timer()) / left)


def request_of(block: BlockDefinition, asked: BlockRequest, limits: Limits) -> DesignRequest:
    """Return what the engine is asked for a block."""
    return DesignRequest(
        prior=asked.prior,
        claims=asked.claims,
        mechanism=block.mechanism,
        explicit=asked.explicit,
        objective=block.objective,
        criterion=block.criterion,
        truths=asked.truths,
        accept_identity=block.accept_identity,
        accept_unidentifiable=block.accept_unidentifiable,
        limits=limits,
    )


def draft_block(block: BlockDefinition, field: str, limits: Limits) -> DraftedBlock:
    """Design one block; `field` is its path. Raises InvalidInput: whatever `asked_of` and `design` refuse."""
    asked = asked_of(block, field)
    request = request_of(block, asked, limits)
    if block.mechanism in FAMILIES:  # made all the same, so that what it cannot tell is refused in the choices' names
        request = replace(request, accept_unidentifiable=True)
    with named(field):
        found = design(request)
        promises = asked.kept(found.claims)
    certificate = Certificate(
        found.objective, _decimal(found.value), None if found.bound is None else _decimal(found.bound)
    )
    drafted = Block(
        id=block.id,
        questions=tuple(_question(question) for question in block.questions),
        mechanism=found.mechanism,
        promises=promises,
        design_prior=found.decoder_prior,
        ceiling=stated_ceiling(found.mechanism),
        mechanism_name=found.mechanism_name,
        certificate=certificate,
    )
    if not (found.identifiable or block.accept_unidentifiable):
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, _unidentifiable(drafted), f"{field}.mechanism")
    return DraftedBlock(drafted, found)


def _unidentifiable(block: Block) -> str:
    words = in_words(block.mechanism, answers_of(block))
    return (
        f"with {block.mechanism_name}, no number of reports tells apart: {_some(words.cannot)}. What can be estimated: "
        f"{_some(words.can)}. Use another mechanism, or set accept_unidentifiable: true"
    )


def _some(told: Sequence[str]) -> str:
    more = len(told) - _TOLD
    return "; ".join(told[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _question(question: QuestionDefinition) -> Question:
    choices = tuple(Choice(choice.id, choice.label) for choice in question.choices)
    return Question(question.id, question.text, choices)


def _decimal(value: float) -> str:
    return f"{value:.12g}"
