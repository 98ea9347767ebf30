# SPDX-License-Identifier: Apache-2.0
"""Plans of several separate blocks under one ε, divided so that their margins are equal."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.api.engine import design
from frankly_server.estimate.decoder import shares
from frankly_server.estimate.planner import Plan, least_level
from frankly_server.requests.design import design_request
from frankly_server.requests.plan_parts import (
    LEVELS,
    Timer,
    guessed,
    nats,
    no_level,
    require_reports,
    require_the_others,
    solved,
)
from frankly_server.requests.plan_request import PlannedBlock, PlanRequest, guessed_shares

_ROUNDS: Final = 16
"""Bisection steps of the margin's logarithm; they give more precision than levels have."""
_SOME_REPORTS: Final = 1000


def plan_blocks(
    request: PlanRequest, blocks: Sequence[PlannedBlock], timer: Timer, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Plan a survey of several blocks under LDP.

    In: blocks, a list of {choices}; epsilon, the sum of their levels; mechanism; and the other
    fields of any plan, except targets and frontier. A block may have a `guess`.
    Out: as `plan_json`, with a margin for each block (also in at_guess); blocks, the level and the margin of each; and
    equal_split_margin, the widest margin if the levels were equal.

    Raises InvalidInput, naming the field.
    """
    solve_for, setting = request.solve_for, request.setting
    require_the_others(request, *(name for name in ("n", "epsilon", "margin") if name != solve_for))
    if getattr(request, solve_for) is not None:
        raise InvalidInput(Problem.UNSUPPORTED, "leave out the quantity to solve for", solve_for)
    n, goal = request.n or 0, request.margin or 0.0
    if solve_for != "n":
        require_reports(n, setting)
    plans = [_BlockPlans(request, block.prior, timer, stopped) for block in blocks]
    least = LEVELS[0] * len(plans)
    if solve_for == "epsilon":
        levels = _levels(plans, goal, n, LEVELS[1])
        if levels is None or sum(levels) > LEVELS[1]:
            raise no_level(n)
        total = sum(levels)
    else:
        # Exact decimals: as floats, 1.001 · 1000 is less than 1001.
        total = int(Decimal(str(request.epsilon)) * 1000)
        if total < least:
            raise InvalidInput(
                Problem.EPS_OUT_OF_RANGE,
                f"{len(plans)} blocks need a level of {nats(least)} or more",
                "epsilon",
            )
        # If n is solved for, any number works: the margins of all blocks decrease alike with n.
        levels = _split(plans, total, n or min(_SOME_REPORTS, setting.population or _SOME_REPORTS))
    if solve_for == "n":
        n = max(b.at(level).reports(goal) for b, level in zip(plans, levels, strict=True))
    chosen = [block.at(level) for block, level in zip(plans, levels, strict=True)]
    guess = guessed_shares(blocks)

    def margins_at(m: int) -> list[float]:
        return [
            max(plan.margins_at(np.array(shares_of_block), m))
            for plan, shares_of_block in zip(chosen, guess or (), strict=True)
        ]

    # The gain of the division over equal levels.
    equal = [block.at(max(LEVELS[0], total // len(plans))).margin(n) for block in plans]
    return {
        "solve_for": solve_for,
        **solved(n, nats(total), lambda m: [plan.margin(m) for plan in chosen], setting),
        **guessed(None if guess is None else margins_at, [goal] * len(chosen), n, request),
        "regret": None,
        "blocks": [
            {"epsilon": nats(level), "margin": plan.margin(n)}
            for level, plan in zip(levels, chosen, strict=True)
        ],
        "equal_split_margin": max(equal),
    }


class _BlockPlans:
    """Plans of one block by level (in thousandths of a nat)."""

    def __init__(
        self,
        request: PlanRequest,
        prior: tuple[int, ...],
        timer: Timer,
        stopped: Callable[[], bool],
    ) -> None:
        self._request, self._timer, self._stopped = request, timer, stopped
        self._prior, self._plans = prior, dict[int, Plan]()

    def at(self, level: int) -> Plan:
        """Return the plan at a level; cached, because a search revisits levels."""
        if level not in self._plans:
            question = PlanRequest.from_json(
                {
                    "solve_for": "margin",
                    "prior": {"joint": [list(self._prior)]},
                    "notion": "ldp",
                    "mechanism": self._request.mechanism,
                    "epsilon": nats(level),
                }
            )
            question = question.model_copy(update={"limits": self._request.limits})
            _, design_input = design_request(question, self._timer, stopped=self._stopped)
            designed = design(design_input)
            targets = shares(designed.mechanism.answers)
            self._plans[level] = Plan(
                designed.mechanism, targets, designed.decoder_prior, self._request.setting
            )
        return self._plans[level]


def _levels(plans: Sequence[_BlockPlans], margin: float, n: int, most: int) -> list[int] | None:
    """Return the least level of each block with this margin; None if a block has no such level."""
    levels = []
    for block in plans:
        # A margin decreases with the level, so bisection finds the least level.
        level = least_level(lambda e, b=block: b.at(e).margin(n) <= margin, LEVELS[0], most)  # type: ignore[misc]
        if level is None:
            return None
        levels.append(level)
    return levels


def _split(plans: Sequence[_BlockPlans], total: int, n: int) -> list[int]:
    """Return levels that sum to `total` and minimise the widest margin, to a thousandth."""
    # With all of ε, every margin is at most `low`; with the smallest levels, at most `high`.
    low = max(block.at(total).margin(n) for block in plans)
    high = max(block.at(LEVELS[0]).margin(n) for block in plans)
    affordable = [LEVELS[0]] * len(plans)
    for _ in range(_ROUNDS):
        middle = (low * high) ** 0.5
        levels = _levels(plans, middle, n, total)
        if levels is not None and sum(levels) <= total:
            affordable, high = levels, middle
        else:
            low = middle
    # The remaining thousandths go to the widest blocks, so that all of ε is used.
    for _ in range(total - sum(affordable)):
        margins = [
            block.at(level).margin(n) for block, level in zip(plans, affordable, strict=True)
        ]
        affordable[margins.index(max(margins))] += 1
    return affordable
