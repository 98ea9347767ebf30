# SPDX-License-Identifier: Apache-2.0
"""Item 2, random requests of every notion, objective and rank of targets, as for `frankly design`.

Times are CPU seconds, so that other work on the machine does not end a search.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from frankly_design.requests.design import design_json
from frankly_protocol.errors import FranklyError

from _design.row import Progress, Row

REQUESTS, QUICK_REQUESTS = 600, 24
SEED, MOST_ANSWERS, MOST_SECRETS = 9, 10, 5
LEAST_EPSILON, MOST_EPSILON = 0.01, 8.0
SEARCH_S, REQUEST_S = 4.0, 5.0
LEAST_CERTIFIED = 0.95
OBJECTIVES = ("variance", "information", "both")
# Variance cap of the objective "both", as a multiple of the least variance.
_CAP = 1.5
_ATTRIBUTES = ((2,), (5,), (2, 2), (2, 3), (4, 2), (2, 2, 2), (3, 3), (5, 2))

Random = np.random.Generator
Request = dict[str, Any]


@dataclass(frozen=True)
class _Tried:
    """One request: its error if it was refused, the gap relative to the value, and seconds."""

    kind: str
    objective: str
    request: Request
    refused: str
    certified: bool
    gap: float
    seconds: float


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for every refusal, one for each kind of request, and one for all."""
    tried: list[_Tried] = []
    for number in range(QUICK_REQUESTS if quick else REQUESTS):
        case = _tried(number)
        tried.append(case)
        if case.refused:
            yield _line(f"refused, {case.refused}: request {number}, {case.kind}", [case], None)
        if (number + 1) % len(KINDS) == 0:
            open_count = sum(not one.certified for one in tried)
            progress(f"{number + 1} requests, {open_count} open, {case.seconds:.1f} s for the last")
    for kind in KINDS:
        yield _line(kind, [case for case in tried if case.kind == kind], None)
    for objective in OBJECTIVES:
        yield _line(objective, [case for case in tried if case.objective == objective], None)
    share = sum(case.certified for case in tried) / len(tried)
    refused, late = any(c.refused for c in tried), any(c.seconds > REQUEST_S for c in tried)
    yield _line("all", tried, share >= LEAST_CERTIFIED and not refused and not late)


def draw(number: int) -> tuple[str, str, Request]:
    """Return (kind, objective, request) of a number; the kind and the objective cycle with it."""
    generator = np.random.default_rng([SEED, number])
    kind = KINDS[number % len(KINDS)]
    objective = OBJECTIVES[number // len(KINDS) % len(OBJECTIVES)]
    request = _MAKERS[kind](generator)
    if generator.random() < 0.3:
        request["ceiling_cap"] = _epsilon(generator)
    if generator.random() < 0.5 and objective != "information":
        request["targets"] = _targets(generator, _answers(request))
    return kind, objective, request


def answer(objective: str, request: Request, seconds: float) -> dict[str, Any]:
    """Return the response; "both" maximises information at up to 1.5 times the least variance.

    The search for the least variance gets half of the time.
    """
    if objective != "both":
        limits = {"limits": {"seconds": seconds}, "objective": objective}
        return design_json(request | limits, time.process_time)
    started = time.process_time()
    least = design_json(request | {"limits": {"seconds": seconds / 2}}, time.process_time)
    remaining = seconds - (time.process_time() - started)
    cap = {"objective": "information", "variance_cap": _CAP * least["parameters"]["value"]}
    return design_json(request | cap | {"limits": {"seconds": remaining}}, time.process_time)


def _tried(number: int) -> _Tried:
    kind, objective, request = draw(number)
    started = time.process_time()
    try:
        response = answer(objective, request, SEARCH_S)
    except FranklyError as error:
        seconds = time.process_time() - started
        return _Tried(kind, objective, request, str(error), False, math.nan, seconds)
    seconds = time.process_time() - started
    value, gap = response["parameters"]["value"], response["gap"]
    known = isinstance(gap, float) and value > 0
    relative = gap / value if known else math.nan
    return _Tried(kind, objective, request, "", response["certified"], relative, seconds)


def _line(case: str, tried: list[_Tried], holds: bool | None) -> Row:
    certified = sum(one.certified for one in tried)
    gaps = [one.gap for one in tried if math.isfinite(one.gap)]
    longest = max(one.seconds for one in tried)
    return Row(
        item=2,
        case=f"{case}: share of {len(tried)} that is certified; largest gap / value, mean s",
        value=certified / len(tried),
        bound=None,
        gap=max(gaps, default=None),
        seconds=fmean(one.seconds for one in tried),
        baseline="the longest",
        baseline_value=None,
        baseline_seconds=longest,
        limit=""
        if holds is None
        else f"no refusal, certified ≥ {LEAST_CERTIFIED}, ≤ {REQUEST_S:g} s",
        holds=holds,
    )


def _epsilon(generator: Random) -> str:
    """Return a level with four decimals, evenly spread over the orders of magnitude."""
    return f"{LEAST_EPSILON * (MOST_EPSILON / LEAST_EPSILON) ** generator.random():.4f}"


def _joint(generator: Random, secrets: int, answers: int) -> dict[str, Any]:
    """Return counts from even to very uneven; cells may be 0, but not whole rows or columns."""
    concentration = (0.3, 1.0, 5.0)[int(generator.integers(3))]
    total = (10**3, 10**5)[int(generator.integers(2))]
    cells = generator.dirichlet(np.full(secrets * answers, concentration)).reshape(secrets, answers)
    counts = np.rint(total * cells).astype(np.int64)
    for s in np.flatnonzero(counts.sum(axis=1) == 0):
        counts[s, generator.integers(answers)] = 1
    for x in np.flatnonzero(counts.sum(axis=0) == 0):
        counts[generator.integers(secrets), x] = 1
    return {"joint": counts.tolist()}


def _any_joint(generator: Random, least_secrets: int = 2) -> dict[str, Any]:
    secrets = int(generator.integers(least_secrets, MOST_SECRETS + 1))
    return _joint(generator, secrets, int(generator.integers(2, MOST_ANSWERS + 1)))


def _ldp(generator: Random) -> Request:
    answers = int(generator.integers(2, MOST_ANSWERS + 1))
    return {"prior": _joint(generator, 1, answers), "notion": "ldp", "epsilon": _epsilon(generator)}


def _one_level(notion: str) -> Callable[[Random], Request]:
    def make(generator: Random) -> Request:
        return {"prior": _any_joint(generator), "notion": notion, "epsilon": _epsilon(generator)}

    return make


def _alip(generator: Random) -> Request:
    return {
        "prior": _any_joint(generator),
        "notion": "alip",
        "epsilon_low": _epsilon(generator),
        "epsilon_high": _epsilon(generator),
    }


def _srlip(generator: Random) -> Request:
    attributes = _ATTRIBUTES[int(generator.integers(len(_ATTRIBUTES)))]
    secrets = int(generator.integers(2, MOST_SECRETS + 1))
    return {
        "prior": _joint(generator, secrets, math.prod(attributes)),
        "notion": "srlip",
        "epsilon": _epsilon(generator),
        "attributes": list(attributes),
    }


def _rldp(generator: Random) -> Request:
    shapes = [(s, u) for s in range(2, 6) for u in range(2, 6) if s * u <= MOST_ANSWERS]
    secrets, values = shapes[int(generator.integers(len(shapes)))]
    prior = _joint(generator, secrets, values)
    people = int(np.sum(prior["joint"]))
    order = (0.5, 1, 2, 3)[int(generator.integers(4))]
    beta = ("0.01", "0.05", "0.5")[int(generator.integers(3))]
    return {
        "prior": prior,
        "notion": "rldp",
        "epsilon": _epsilon(generator),
        "robust": {"order": order, "n": people, "beta": beta},
    }


def _dpv(generator: Random) -> Request:
    prior = _any_joint(generator)
    masses = np.sum(prior["joint"], axis=1)
    sensitive = int(generator.integers(len(masses)))
    share = float(masses[sensitive] / masses.sum())
    bound = 1 - (1 - share) * math.exp(-float(_epsilon(generator)))
    return {"prior": prior, "notion": "dpv", "dpv": f"{bound:.6f}", "sensitive": sensitive}


def _metric(generator: Random) -> Request:
    answers = int(generator.integers(2, MOST_ANSWERS + 1))
    places = np.sort(generator.random(answers))
    widest = float(_epsilon(generator))
    # At most 20 nats and at least 0.01, the range of levels of pairs.
    levels = np.clip(widest * np.abs(places[:, None] - places) / np.ptp(places), 0.01, 20)
    rows = [
        [None if x == z else f"{levels[x, z]:.4f}" for z in range(answers)] for x in range(answers)
    ]
    return {"prior": _joint(generator, 1, answers), "notion": "metric-ldp", "epsilons": rows}


def _intersection(generator: Random) -> Request:
    names = [name for name in KINDS if name not in ("ldp", "metric-ldp", "intersection")]
    request = _MAKERS[names[int(generator.integers(len(names)))]](generator)
    return request | {"ceiling_cap": _epsilon(generator)}


def _answers(request: Request) -> int:
    joint = request["prior"]["joint"]
    # Under rldp an answer is a pair of secret and value.
    return len(joint[0]) * (len(joint) if request["notion"] == "rldp" else 1)


def _targets(generator: Random, answers: int) -> list[list[int]]:
    """Return 1 to `answers` rows of small whole numbers, none constant: targets of any rank."""
    count = int(generator.integers(1, answers + 1))
    rows = generator.integers(-1, 3, (count, answers))
    rows[:, 0] += (rows == rows[:, :1]).all(axis=1)
    return [[int(v) for v in row] for row in rows]


_MAKERS: dict[str, Callable[[Random], Request]] = {
    "ldp": _ldp,
    "secret-ldp": _one_level("secret-ldp"),
    "lip": _one_level("lip"),
    "alip": _alip,
    "pml": _one_level("pml"),
    "pmc": _one_level("pmc"),
    "srlip": _srlip,
    "rldp": _rldp,
    "dpv": _dpv,
    "metric-ldp": _metric,
    "intersection": _intersection,
}
KINDS = tuple(_MAKERS)
