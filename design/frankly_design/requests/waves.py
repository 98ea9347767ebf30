# SPDX-License-Identifier: Apache-2.0
"""Plan of several waves (`frankly waves --json`, `POST /v1/waves`): groups, and the waves of each.

Every person spends at most `epsilon` over all waves together. The result compares three designs:
everyone answers every wave, everyone answers one wave, and the division of respondents with the
least variance of the changes.
"""

import math
from typing import Annotated, Any, Final

import numpy as np
from frankly_protocol.audit import parse_nats
from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BeforeValidator, Field, Strict

from frankly_design.engine.engine import DesignResult, design
from frankly_design.estimate.estimator import nothing_yet
from frankly_design.estimate.margins import normal_quantile, require_level
from frankly_design.estimate.wave_plan import (
    WaveDesign,
    WaveVariances,
    best_division,
    equal_split,
    single_waves,
)
from frankly_design.kinds.decoder import shares
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.requests.design import design_request
from frankly_design.requests.design_fields import DesignFields, Stopped, Timer, never_stopped
from frankly_design.requests.plan_request import exact_number, nats

MAX_WAVES = 52
DIVISIONS: Final = ("equal", "once", "best")
"""Divisions of respondents that a plan compares."""

_MAX_WORK: Final = 50_000
"""Largest answers × waves²: the search stores this many numbers for each run length."""
_Changed = Annotated[float, Field(ge=0, lt=1), BeforeValidator(exact_number)]


class WavesRequest(DesignFields):
    """A design input whose `epsilon` is one person's level over all waves together.

    changed : guessed share of people whose answer differs from one wave to the next.
    """

    waves: Annotated[int, Strict(), Field(ge=2, le=MAX_WAVES)]
    n: Annotated[int, Strict(), Field(ge=1, le=10**12)] = Field(
        description="Number of people, each of whom answers one or several waves."
    )
    changed: _Changed = Field(
        0.2, description="Guessed share of people whose answer differs from one wave to the next."
    )
    level: Annotated[float, BeforeValidator(require_level)] = 0.95


def waves_json(obj: Any, timer: Timer, stopped: Stopped = never_stopped) -> dict[str, Any]:
    """Plan waves from a JSON request.

    In: a design input with notion "ldp" and an epsilon, which is one person's level over all waves;
    waves (2 to 52), n (people), optionally changed (0.2) and level (0.95). The prior is a guess of
    the shares in every wave.
    Out: waves, epsilon, changed, persistence; and the designs `equal` (everybody answers every
    wave), `once` (everybody answers one) and `best`, each with groups (first and last wave, share
    and number of people, epsilon of each wave, total over their waves), changes (for each wave from
    the second one, the margin of the change of each answer's share since the wave before), total
    (sum of the variances for one person) and ratio (of its total to that of `best`, which is the
    number of people needed for equal variances). excess: the total of `best` is at most this
    multiple of the least possible one for these mechanisms.

    Raises InvalidInput, naming the field.
    """
    request = WavesRequest.from_json(obj)
    levels = _levels(request)
    variances = _variances(request, levels, timer, stopped)
    # All three use the same variances, so that their ratios compare only the divisions.
    best = best_division(variances, timer)
    designs = {"equal": equal_split(variances), "once": single_waves(variances), "best": best}
    return {
        "waves": request.waves,
        "epsilon": request.epsilon,
        "changed": request.changed,
        "persistence": variances.persistence,
        "n": request.n,
        "level": request.level,
        "excess": best.excess,
        **{
            name: _design_body(division, request, levels) | {"ratio": division.total / best.total}
            for name, division in designs.items()
        },
    }


def _levels(request: WavesRequest) -> list[int]:
    """Return the level of one wave in a run of m waves, m = 1, 2, …, in thousandths of a nat."""
    if request.notion != "ldp" or request.notions:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "levels of waves add up only under ldp: a promise that rests on a prior is counted "
            'by its ceiling, so plan with "ldp" at the ceiling',
            "notion",
        )
    if request.epsilon is None:
        raise InvalidInput(
            Problem.FIELD_MISSING, "give the level of one person over all waves, in nats", "epsilon"
        )
    total = parse_nats(request.epsilon, "epsilon", MIN_EPSILON, MAX_EPSILON)
    # Rounded down, so that no run spends more than the total.
    levels = [int(1000 * total / m) for m in range(1, request.waves + 1)]
    if levels[-1] < 1000 * MIN_EPSILON:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE,
            f"{request.waves} waves leave less than {MIN_EPSILON} nats for each: plan fewer",
            "waves",
        )
    return levels


def _variances(
    request: WavesRequest, levels: list[int], timer: Timer, stopped: Stopped
) -> WaveVariances:
    """Return the variances at the prior's shares, with one designed mechanism per level."""
    designed: dict[int, FloatArray] = {}
    if request.prior is None:
        raise InvalidInput(
            Problem.FIELD_MISSING,
            'give guessed shares or counts, such as {"joint": [[7, 3]]}',
            "prior",
        )
    p = Prior.from_rows(request.prior).probabilities()
    if len(p) * request.waves**2 > _MAX_WORK:
        most = math.isqrt(_MAX_WORK // len(p))
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"with {len(p)} answers at most {most} waves can be planned: plan fewer",
            "waves",
        )
    if not p.min():
        raise InvalidInput(
            Problem.PRIOR_VALUE,
            "guess a share above 0 for every answer: nobody could change to or from it",
            "prior",
        )
    # Long runs may share a level, because levels are rounded.
    for level in dict.fromkeys(levels):
        at_level = request.model_copy(update={"epsilon": nats(level)})
        _, design_input = design_request(at_level, timer, stopped=stopped)
        designed[level] = _noise(design(design_input), p)
    # A redrawn answer equals the previous one with probability Σp².
    redrawn = request.changed / (1 - float(p @ p))
    # There cannot be more change than with independent answers.
    if redrawn > 1:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"with these shares at most {1 - float(p @ p):.3f} of the people change their answer, "
            "even if nobody's answers are related: give a smaller share",
            "changed",
        )
    return WaveVariances(np.array([designed[level] for level in levels]), p * (1 - p), 1 - redrawn)


def _noise(designed: DesignResult, p: FloatArray) -> FloatArray:
    """Return the variance of each share due to randomisation, for one report at shares p."""
    mechanism = designed.mechanism
    evidence = nothing_yet(mechanism, shares(mechanism.answers), designed.decoder_prior)
    # E[d²|x] − w_x², where w_x is 1 for the answer whose share is estimated, otherwise 0.
    return np.asarray((evidence.truth_moments() - np.eye(mechanism.answers)) @ p, dtype=np.float64)


def _design_body(division: WaveDesign, request: WavesRequest, levels: list[int]) -> dict[str, Any]:
    factor = normal_quantile(request.level)
    people = _people([share for *_, share in division.runs], request.n)
    groups = [
        {
            "first": first + 1,
            "last": last + 1,
            "share": share,
            "n": n,
            "epsilon": nats(levels[last - first]),
            "total": nats(levels[last - first] * (last - first + 1)),
        }
        for (first, last, share), n in zip(division.runs, people, strict=True)
    ]
    # The variances are those for a single respondent, and scale with 1/n.
    margins = factor * np.sqrt(division.changes / request.n)
    return {
        "groups": groups,
        "changes": [
            {"wave": t + 2, "margins": row.tolist(), "margin": float(row.max())}
            for t, row in enumerate(margins)
        ],
        "total": division.total,
    }


def _people(fractions: list[float], n: int) -> list[int]:
    """Return integers that sum to n, by largest remainders."""
    people = [int(n * fraction) for fraction in fractions]
    # Largest remainders come first, so that no group is off by a whole person.
    order = sorted(range(len(people)), key=lambda i: people[i] - n * fractions[i])
    for i in order[: n - sum(people)]:
        people[i] += 1
    return people
