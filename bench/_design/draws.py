# SPDX-License-Identifier: Apache-2.0
"""Random requests over all notions, objectives and levels; the number of a request is its seed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_design.engine import DesignRequest
from frankly_design.notions import promises
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.belief import no_violation, side_channels, two_sided
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_protocol.audit import Claim

from _design.designs import request

SEED = 8
OBJECTIVES = ("information", "variance", "hamming")
MOST_ANSWERS, MOST_SECRETS = 16, 5
LEAST_EPSILON, MOST_EPSILON = 0.01, 8.0
_CONCENTRATIONS = (0.3, 1.0, 5.0)
_TOTALS = (10**3, 10**5)
_BETAS = ("0.01", "0.05", "0.5")
_ORDERS = (Fraction(1, 2), 1, 2, 3)
_ATTRIBUTES = (
    (2,),
    (5,),
    (2, 2),
    (2, 3),
    (4, 2),
    (2, 2, 2),
    (3, 3),
    (5, 2),
    (2, 3, 2),
    (3, 4),
    (7, 2),
    (3, 5),
    (2, 2, 2, 2),
    (4, 4),
)

Random = np.random.Generator


@dataclass(frozen=True)
class Draw:
    """A random request, and a description from which it can be rebuilt."""

    kind: str
    request: DesignRequest
    description: str


def draw(number: int, most_answers: int = MOST_ANSWERS) -> Draw:
    """Return request `number`; its kind and objective cycle, everything else is random."""
    generator = np.random.default_rng([SEED, number])
    kind = KINDS[number % len(KINDS)]
    objective = OBJECTIVES[number // len(KINDS) % len(OBJECTIVES)]
    prior, claims, parameters = _MAKERS[kind](generator, most_answers)
    rows = [list(row) for row in prior.joint]
    description = f"draw({number}, {most_answers}): {kind}, {objective}, {parameters}, prior {rows}"
    return Draw(kind, request(prior, claims, objective), description)


_Made = tuple[Prior, list[Claim], str]


def _ldp(generator: Random, max_answers: int) -> _Made:
    answers = int(generator.integers(2, max_answers + 1))
    counts = _counts(generator, 1, answers)[0]
    if generator.random() < 0.2 and np.count_nonzero(counts) > 1:
        counts[int(np.argmin(counts))] = 0  # only ldp protects an answer of share 0
    epsilon = _epsilon(generator)
    return Prior.from_rows([counts.tolist()]), [answer_ldp(epsilon)], f"ε {epsilon}"


def _one_level(notion: str) -> Callable[[Random, int], _Made]:
    def make(generator: Random, max_answers: int) -> _Made:
        prior, epsilon = _prior(generator, max_answers), _epsilon(generator)
        return prior, [promises.promise(notion, prior, epsilon)], f"ε {epsilon}"

    return make


def _alip(generator: Random, max_answers: int) -> _Made:
    prior = _prior(generator, max_answers)
    sides: list[Fraction | None] = [_epsilon(generator), _epsilon(generator)]
    if generator.random() < 0.3:
        sides[int(generator.integers(2))] = None
    return prior, [two_sided(prior, sides[0], sides[1])], f"ε_l {sides[0]}, ε_u {sides[1]}"


def _srlip(generator: Random, max_answers: int) -> _Made:
    fitting = [sizes for sizes in _ATTRIBUTES if math.prod(sizes) <= max_answers]
    attributes, epsilon = fitting[int(generator.integers(len(fitting)))], _epsilon(generator)
    prior = _joint(generator, int(generator.integers(2, MOST_SECRETS + 1)), math.prod(attributes))
    return (
        prior,
        [side_channels(prior, epsilon, attributes)],
        f"ε {epsilon}, attributes {attributes}",
    )


def _rldp(generator: Random, max_answers: int) -> _Made:
    shapes = [(s, u) for s in range(2, 6) for u in range(2, 9) if s * u <= max_answers]
    secrets, values = shapes[int(generator.integers(len(shapes)))]
    joint = _joint(generator, secrets, values)
    order, beta = _ORDERS[int(generator.integers(4))], _BETAS[int(generator.integers(3))]
    bounds = lower_bounds(joint.joint, order, joint.total, beta)
    epsilon, diagonal = _epsilon(generator), bool(generator.random() < 0.3)
    parameters = f"ε {epsilon}, order {order}, β {beta}, n {joint.total}, diagonal {diagonal}"
    return pairs(joint), [robust(bounds, epsilon, diagonal=diagonal)], parameters


def _dpv(generator: Random, max_answers: int) -> _Made:
    prior = _prior(generator, max_answers)
    sensitive = int(generator.integers(prior.secrets))
    share = Fraction(prior.masses[sensitive], prior.total)
    # between the share itself (no information) and 1 (certainty)
    bound = 1 - (1 - share) * Fraction(round(math.exp(-float(_epsilon(generator))), 6))
    return (prior, [no_violation(prior, bound, sensitive)], f"α {bound}, sensitive {sensitive}")


def _both(generator: Random, max_answers: int) -> _Made:
    names = [name for name in KINDS if name not in ("ldp", "intersection")]
    name = names[int(generator.integers(len(names)))]
    prior, claims, parameters = _MAKERS[name](generator, max_answers)
    epsilon = _epsilon(generator)
    return (
        prior,
        [*claims, answer_ldp(epsilon)],
        f"{name} with {parameters} and ldp with ε {epsilon}",
    )


_MAKERS: dict[str, Callable[[Random, int], _Made]] = {
    "ldp": _ldp,
    "secret-ldp": _one_level("secret-ldp"),
    "lip": _one_level("lip"),
    "alip": _alip,
    "srlip": _srlip,
    "rldp": _rldp,
    "dpv": _dpv,
    "intersection": _both,
}
KINDS = tuple(_MAKERS)


def _epsilon(generator: Random) -> Fraction:
    """Return a level with four decimals, evenly spread over the orders of magnitude."""
    return Fraction(
        round(10**4 * LEAST_EPSILON * (MOST_EPSILON / LEAST_EPSILON) ** generator.random()), 10**4
    )


def _prior(generator: Random, max_answers: int) -> Prior:
    return _joint(
        generator,
        int(generator.integers(2, MOST_SECRETS + 1)),
        int(generator.integers(2, max_answers + 1)),
    )


def _joint(generator: Random, secrets: int, answers: int) -> Prior:
    return Prior.from_rows(_counts(generator, secrets, answers).tolist())


def _counts(
    generator: Random, secrets: int, answers: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return counts that range from even to very uneven; cells may be 0, but not whole rows or columns."""
    concentration = _CONCENTRATIONS[int(generator.integers(len(_CONCENTRATIONS)))]
    total = _TOTALS[int(generator.integers(len(_TOTALS)))]
    cells = generator.dirichlet(np.full(secrets * answers, concentration)).reshape(secrets, answers)
    counts = np.rint(total * cells).astype(np.int64)
    for s in np.flatnonzero(counts.sum(axis=1) == 0):
        counts[s, generator.integers(answers)] = 1
    for x in np.flatnonzero(counts.sum(axis=0) == 0):
        counts[generator.integers(secrets), x] = 1
    return counts
