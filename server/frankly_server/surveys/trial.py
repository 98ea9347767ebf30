# SPDX-License-Identifier: Apache-2.0
"""Trying a draft out: exactly what a device would send, drawn by exactly the code that draws it there.

Nothing is signed, stored or counted.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report, SymbolJson

from frankly_server.estimate import Estimate, SetCounts, estimate
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.drafting import Place, draft_block, draft_document, in_turns

RandomBits = Callable[[int], int]
PEOPLE: Final = 1000
SECONDS: Final = 8.0
"""For all searches of a draft together: somebody waits for the page, and a thread of the server's with them."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would leave: the report's bytes without padding, its padded length, and each block with its symbol.

    chance : how likely this very symbol was, given what was answered; least, most : over all answers.
    """

    report: str
    length: int
    sent: tuple["Sent", ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """One block's symbol as it travels."""

    block: str
    symbol: SymbolJson
    chance: Fraction
    least: Fraction
    most: Fraction


def drafted(definition: SurveyDefinition, now: datetime, url: str, timer: Callable[[], float] = time.monotonic
            ) -> SurveyDocument:  # fmt: skip
    """Return the document that publishing the draft now would sign, with the designs that SECONDS find for all of it.

    Raises InvalidInput: whatever publishing refuses.
    """
    turns = in_turns(timer, SECONDS, len(definition.blocks))
    blocks = [draft_block(block, f"blocks[{i}]", next(turns)) for i, block in enumerate(definition.blocks)]
    return draft_document(definition, blocks, Place("0" * 32, 1, None, now, url))


def rehearse(
    document: SurveyDocument, answers: Mapping[str, str], randbits: RandomBits = secrets.randbits
) -> Rehearsal:
    """Return what a device would send for made-up answers, by question id; public questions are among them.

    Raises InvalidInput(field_missing) for a question without one of its choices.
    """
    for question in (*document.questions.values(), *document.strata):
        if question.index(answers.get(question.id, "")) is None:
            raise InvalidInput(Problem.FIELD_MISSING, "choose an answer to every question", question.id)
    sent = tuple(_sent(block, block.truth(answers), randbits) for block in document.blocks)
    strata = {question.id: answers[question.id] for question in document.strata}
    token = "0" * 43 if document.token else None  # what a real one looks like; this one opens nothing
    report = Report(document.digest, f"{randbits(128):032x}", tuple(each.symbol for each in sent), strata, token)
    return Rehearsal(report.to_bytes(0).decode("ascii"), document.report_length, sent)


def everybody(block: Block, truth: int, people: int = PEOPLE, randbits: RandomBits = secrets.randbits) -> Estimate:
    """Return the estimate from so many people who all gave the same joint answer."""
    mechanism: Any = block.mechanism
    told = Counter(mechanism.sample(truth, randbits) for _ in range(people))
    counts: Any = told
    if isinstance(mechanism, DenseMechanism):
        counts = [told.get(y, 0) for y in range(mechanism.reports)]
    elif not isinstance(mechanism, ProductMechanism):
        counts = SetCounts.of_symbols(mechanism.answers, told)
    return estimate(mechanism, counts, design_prior=block.design_prior)


def _sent(block: Block, truth: int, randbits: RandomBits) -> Sent:
    mechanism: Any = block.mechanism
    symbol = mechanism.sample(truth, randbits)
    chances = [mechanism.probability(symbol, x) for x in range(mechanism.answers)]
    return Sent(block.id, mechanism.symbol_json(symbol), chances[truth], min(chances), max(chances))
