# SPDX-License-Identifier: Apache-2.0
"""Plan of two arms (`frankly plan --split`, `POST /v1/plan/split`): reports, power, best chance.

Both arms ask the same question, and a device draws one of them (spec 3.10). The plan is of the test
that a choice has the same share in both.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BeforeValidator, Field, Strict

from frankly_design.engine.engine import design
from frankly_design.engine.request import MECHANISMS
from frankly_design.estimate.estimator import nothing_yet
from frankly_design.estimate.margins import require_level
from frankly_design.estimate.planner import MOST, Setting
from frankly_design.estimate.split_plan import WHOLE
from frankly_design.estimate.split_test import Arm, SplitTest
from frankly_design.kinds.decoder import shares as every_share
from frankly_design.kinds.evidence import Evidence
from frankly_design.numeric.arrays import FloatArray
from frankly_design.requests.design import design_request
from frankly_design.requests.design_fields import DesignFields, Stopped, Timer, never_stopped
from frankly_design.requests.design_form import ChoiceFields
from frankly_design.requests.fields import ClosedModel, Epsilon, Flag, OneOf, RequestModel
from frankly_design.requests.plan_request import exact_number

POWER: Final = 0.8
"""Power of a plan that names none."""
_ROUNDING = 1e-9
_Chance = Annotated[float, Field(ge=0, le=1), BeforeValidator(exact_number)]
_Part = Annotated[float, Field(gt=0, le=1), BeforeValidator(exact_number)]
_Power = Annotated[float, Field(ge=0.5, lt=1), BeforeValidator(exact_number)]
_EvidenceAt = Callable[[str, str], Evidence]
"""Evidence of no reports yet under LDP, by level in nats and mechanism."""


def _level_of_test(value: Any) -> float:
    level = require_level(value)
    if level < 0.5:
        raise InvalidInput(
            Problem.CONFIDENCE_RANGE, "the level of a test is at least 0.5: use 0.95", "level"
        )
    return level


class SplitArm(ClosedModel):
    """One arm: in the clear or with a mechanism under LDP, and its guessed shares.

    Either `clear`, or epsilon and perhaps the mechanism. Either `share`, of the target of two
    choices, or `shares`, of all choices.
    """

    clear: Flag = Field(False, description="True for a public question, which is not randomised.")
    epsilon: Epsilon | None = None
    mechanism: Annotated[str, OneOf("mechanisms", MECHANISMS)] = "optimal"
    share: _Chance | None = Field(
        None, description="Guessed share of the target in this arm, if there are two choices."
    )
    shares: tuple[_Chance, ...] | None = Field(
        None, description="Guessed shares of all choices in this arm, which sum to 1."
    )


class _Choices(ChoiceFields, RequestModel):
    """The choices, which are read before the fields that need their number."""


class SplitRequest(_Choices):
    """Two arms that ask the same question, and the power wanted or the number of reports.

    choices : their number, or the expected count of each, for which mechanisms are designed.
    """

    arms: Annotated[tuple[SplitArm, ...], Field(min_length=2, max_length=2)]
    target: Annotated[int, Strict(), Field(ge=0)] | None = Field(
        None, description="Position from 0 of the choice that is compared, by default the last."
    )
    chance: Annotated[int, Strict(), Field(ge=1, lt=WHOLE)] = Field(
        WHOLE // 2, description="Chance of the first arm, out of 65,536."
    )
    n: Annotated[int, Strict(), Field(ge=2, le=MOST)] | None = Field(
        None, description="Reports of both arms; without it, those needed for the power are found."
    )
    power: _Power | None = Field(
        None,
        description="Chance at which the test detects the difference, by default 0.8; not with n.",
    )
    level: Annotated[float, BeforeValidator(_level_of_test)] = Field(
        0.95, description="From 0.5: the test rejects equal shares with the chance 1 − level."
    )
    response_rate: _Part = 1.0

    @property
    def compared(self) -> int:
        """The position of the target. Raises InvalidInput(targets_invalid) if there is no such choice."""
        last = len(self.prior) - 1
        target = last if self.target is None else self.target
        if target > last:
            raise InvalidInput(
                Problem.TARGETS_INVALID, f"name a choice by its position, 0 to {last}", "target"
            )
        return target


def split_json(obj: Any, timer: Timer, stopped: Stopped = never_stopped) -> dict[str, Any]:
    """Plan two arms from a JSON request.

    In: arms, two of {clear: true} or {epsilon, mechanism}, each with a guessed share (of the target
    of two choices) or shares (of all choices); choices, their number or expected counts; optional
    target (position, the last), chance (of the first arm out of 65,536, 32768), level (0.95),
    response_rate; n (reports of both arms, for the power) or power (0.8, for the reports).
    Out: solve_for ("n" or "power"), target, difference (the first arm's share less the second's),
    level, variances (of one report's estimate in each arm), and the plan: chance, n, per_arm
    (expected), invited,
    power; best, the same with the chance that needs the fewest reports, or has the most power, of those
    with which both arms expect at least 5 reports (null if there are none).
    Powers are those of the test that uses the variance at equal shares, by the normal approximation.

    Raises InvalidInput, naming the field.
    """
    request = SplitRequest.from_json(obj)
    if request.n is not None and request.power is not None:
        raise InvalidInput(
            Problem.UNSUPPORTED, "the power follows from n: leave out one of them", "power"
        )
    target = request.compared
    # All fields are checked first, so that no search is wasted on a refused request.
    guessed = [_guessed(arm, i, target, len(request.prior)) for i, arm in enumerate(request.arms)]
    for i, arm in enumerate(request.arms):
        _require_source(arm, i)
    _require_difference(guessed, target)
    at = _designs(request.prior, timer, stopped)
    first, second = (
        _arm(arm, i, p, at) for i, (arm, p) in enumerate(zip(request.arms, guessed, strict=True))
    )
    test = SplitTest(first, second, target, request.level)
    if max(test.variances) == 0:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "nothing is random in either arm: guess a share above 0 and below 1 in one of them",
            "arms",
        )
    return {
        "solve_for": "n" if request.n is None else "power",
        "target": target,
        "difference": test.difference,
        "level": request.level,
        "variances": list(test.variances),
        **_solution(request, test),
    }


def _solution(request: SplitRequest, test: SplitTest) -> dict[str, Any]:
    """Return the plan with the requested chance, and `best`, that with the best one."""
    power = POWER if request.power is None else request.power
    best = test.best_for_power(power) if request.n is None else test.best_for_reports(request.n)

    def at(chance: int) -> dict[str, Any]:
        n = _reports(test, chance, power) if request.n is None else request.n
        first = round(n * chance / WHOLE)
        return {
            "chance": chance,
            "n": n,
            "per_arm": [first, n - first],
            "invited": Setting(response_rate=request.response_rate).invited(n),
            "power": test.power(n, chance),
        }

    return at(request.chance) | {"best": None if best is None else at(best)}


def _reports(test: SplitTest, chance: int, power: float) -> int:
    try:
        return test.reports(chance, power)
    except ValueError:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the difference is too small: more than {MOST} reports are needed",
            "arms",
        ) from None


def _guessed(arm: SplitArm, i: int, target: int, choices: int) -> FloatArray:
    """Return the guessed shares of an arm's choices."""
    if (arm.share is None) is (arm.shares is None):
        raise InvalidInput(
            Problem.FIELD_MISSING if arm.share is None else Problem.UNSUPPORTED,
            "guess the share of the target of two choices, or the shares of all choices",
            f"arms[{i}].shares",
        )
    if arm.share is not None:
        if choices != 2:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"one share is enough for two choices only: guess the shares of all {choices}",
                f"arms[{i}].share",
            )
        return np.array([arm.share if x == target else 1 - arm.share for x in range(2)])
    guess = np.array(arm.shares, dtype=np.float64)
    if len(guess) != choices:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"guess a share for each of the {choices} choices",
            f"arms[{i}].shares",
        )
    if abs(float(guess.sum()) - 1) > _ROUNDING:
        raise InvalidInput(Problem.PRIOR_SUM, "guessed shares sum to 1", f"arms[{i}].shares")
    return guess


def _require_source(arm: SplitArm, i: int) -> None:
    """Raise InvalidInput unless the arm is either in the clear or has a level."""
    if not arm.clear and arm.epsilon is None:
        raise InvalidInput(
            Problem.FIELD_MISSING,
            "give the arm's level in nats, or clear: true for a public question",
            f"arms[{i}].epsilon",
        )
    for name in ("epsilon", "mechanism") if arm.clear else ():
        if name in arm.model_fields_set:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "a question in the clear is not randomised: leave this out",
                f"arms[{i}].{name}",
            )


def _require_difference(guessed: list[FloatArray], target: int) -> None:
    # rounding: 1 − 0.9 is not exactly 0.1
    if abs(float(guessed[0][target] - guessed[1][target])) <= _ROUNDING:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "the target's share is the same in both arms: guess shares that differ",
            "arms",
        )


def _designs(prior: tuple[int, ...], timer: Timer, stopped: Stopped) -> _EvidenceAt:
    # Cached, because arms of one level have the same mechanism.
    @cache
    def at(epsilon: str, mechanism: str) -> Evidence:
        fields = DesignFields.from_json(
            {
                "prior": {"joint": [list(prior)]},
                "notion": "ldp",
                "epsilon": epsilon,
                "mechanism": mechanism,
            }
        )
        _, design_input = design_request(fields, timer, stopped=stopped)
        designed = design(design_input)
        evidence = nothing_yet(designed.mechanism, every_share(len(prior)), designed.decoder_prior)
        if len(evidence.known) < len(prior):
            raise InvalidInput(
                Problem.NOT_IDENTIFIABLE,
                "some shares cannot be estimated from this mechanism's reports, however many there are",
                "mechanism",
            )
        return evidence

    return at


def _arm(arm: SplitArm, i: int, guess: FloatArray, at: _EvidenceAt) -> Arm:
    if arm.epsilon is None:
        return Arm.in_clear(guess)
    try:
        return Arm.protected(at(arm.epsilon, arm.mechanism), guess)
    except InvalidInput as error:
        name = error.field if error.field in SplitArm.model_fields else "mechanism"
        raise InvalidInput(error.problem, error.detail, f"arms[{i}].{name}") from None
