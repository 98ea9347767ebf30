# SPDX-License-Identifier: Apache-2.0
"""What a block's protection will cost, before it is published: margins, alternatives, the frontier."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from frankly_protocol.audit import ln_up
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_server.design import engine
from frankly_server.design.limits import Limits
from frankly_server.design.regret import Regret, regret
from frankly_server.estimate.decoder import shares
from frankly_server.estimate.planner import Plan, Setting
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.drafting import DraftedBlock, a_while, draft_block, in_turns, request_of
from frankly_server.surveys.priors import asked_of

REPORTS: Final = (500, 5_000, 50_000)
OFFERED: Final = ("optimal", "grr", "oue", "subset-selection")
_SECONDS: Final = 4.0
_LEVELS: Final = ("0.25", "0.5", "1", "1.5", "2", "3", "4")

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A mechanism for a block, or why there is none.

    margins : half-widths at 95% for `numbers`, kept whatever the true shares are; None if some shares cannot be
    estimated. information : nats about the answer, at the design prior. ceiling : nats under every prior, as text.
    unchanged : answers would be sent as they are. certified : the distance to the best possible is known and tiny.
    regret : what it costs if all choices are equally common; None if nothing.
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
    """A mechanism between least variance and most information: nats, and the margin at `usual` reports."""

    information: float
    margin: float | None


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A level in nats, the margin at `usual` reports it gives, the information; own : it is the block's."""

    epsilon: str
    margin: float
    information: float
    own: bool


def numbers(people: int | None) -> tuple[int, ...]:
    """Return for how many reports margins are told; people : how many there are to be asked, None if endlessly many."""
    return REPORTS if people is None else tuple(sorted({min(n, people) for n in REPORTS}))


def usual(people: int | None) -> int:
    """Return the number of reports at which mechanisms are compared."""
    return REPORTS[1] if people is None else min(REPORTS[1], people)


def alternatives(block: BlockDefinition, timer: Timer = time.monotonic, people: int | None = None) -> list[Alternative]:
    """Return the block's own mechanism first, then the others offered, all searched for a few seconds together."""
    names = [block.mechanism, *(name for name in OFFERED if name != block.mechanism)]
    turns = in_turns(timer, 2 * _SECONDS, len(names))
    return [_alternative(block.model_copy(update={"mechanism": name}), next(turns), people) for name in names]


def frontier(
    block: BlockDefinition, points: int = 6, timer: Timer = time.monotonic, people: int | None = None
) -> list[FrontierRow]:
    """Return the exact trade between information and margin under the block's protection.

    Raises InvalidInput: what the engine refuses, such as identity_mechanism.
    """
    asked = asked_of(block, block.id)
    request = request_of(block.model_copy(update={"mechanism": "optimal"}), asked, a_while(timer, 2 * _SECONDS))
    found = engine.frontier(request, points)
    return [FrontierRow(point.information, margin_of(point.mechanism, asked.prior.shares, people)) for point in found]


def by_level(block: BlockDefinition, timer: Timer = time.monotonic, people: int | None = None) -> list[LevelRow]:
    """Return what other levels would give, with the block's own among them, as many as a few seconds allow.

    Empty for a block without a single level: several notions, alip, dpv. Levels at which nothing can be made are left
    out, as are those whose shares cannot all be estimated.
    """
    if block.epsilon is None or block.notions:
        return []
    deadline, found = timer() + _SECONDS, {}
    for level in (block.epsilon, *_LEVELS):
        if timer() > deadline or Decimal(level) in found:
            continue
        asked = {"epsilon": level, "accept_identity": True, "accept_unidentifiable": True}
        try:
            drafted = draft_block(block.model_copy(update=asked), block.id, a_while(timer, _SECONDS / 4))
            margin = margin_of(drafted.block.mechanism, drafted.block.design_prior, people)
        except InvalidInput:
            continue
        if margin is not None:
            found[Decimal(level)] = LevelRow(level, margin, drafted.design.information, own=level == block.epsilon)
    return [found[level] for level in sorted(found)]


def planned(mechanism: Mechanism, prior: tuple[int, ...] | None, people: int | None = None) -> Plan | None:
    """Return the plan of a mechanism's shares at 95%, or None if some cannot be estimated.

    people : how many there are, of whom each is asked once at most; None if endlessly many.
    """
    try:
        return Plan(mechanism, shares(mechanism.answers), prior, Setting(population=people))
    except InvalidInput as refused:
        if refused.problem is Problem.NOT_IDENTIFIABLE:
            return None
        raise


def margin_of(mechanism: Mechanism, prior: tuple[int, ...] | None, people: int | None) -> float | None:
    """Return the widest half-width of the shares at `usual` reports, or None if some cannot be estimated."""
    plan = planned(mechanism, prior, people)
    return None if plan is None else plan.margin(usual(people))


def previewed(block: BlockDefinition, timer: Timer = time.monotonic) -> DraftedBlock:
    """Return a block with the design that a few seconds find. Raises InvalidInput."""
    return draft_block(block, block.id, a_while(timer, _SECONDS))


def chances(mechanism: Mechanism) -> Sequence[Sequence[float]] | None:
    """Return how likely each report is by answer, rows = answers; None for mechanisms that are no table."""
    weights = getattr(mechanism, "weights", None)
    return None if weights is None else [[w / sum(row) for w in row] for row in weights]


def _alternative(block: BlockDefinition, limits: Limits, people: int | None) -> Alternative:
    # Asked for comparison only: whether sending answers unchanged is accepted is settled when publishing.
    asked = {"accept_identity": True, "accept_unidentifiable": True}
    try:
        found = draft_block(block.model_copy(update=asked), block.id, limits).design
        plan = planned(found.mechanism, found.decoder_prior, people)
    except InvalidInput as refused:
        return Alternative(block.mechanism, refusal=refused.detail)
    return Alternative(
        mechanism=block.mechanism,
        margins=None if plan is None else tuple(plan.margin(n) for n in numbers(people)),
        information=found.information,
        ceiling=ln_up(found.ceiling),
        unchanged=found.mechanism.sends_unchanged,
        certified=found.certified,
        regret=regret(found.mechanism, found.claims, found.decoder_prior),
    )
