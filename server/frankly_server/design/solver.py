# SPDX-License-Identifier: Apache-2.0
"""The best mechanism of a cone: by listing its rays where that takes a moment, by generating columns elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.design import programme
from frankly_server.design.base import Base
from frankly_server.design.cones import Cone
from frankly_server.design.gains import Guessing, Information
from frankly_server.design.generation import generate
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.prior import Prior
from frankly_server.design.programme import Optimum
from frankly_server.design.vertices import Ray

METHODS = ("auto", "vertices")
REPAIR_LOSS = 0.01
"""The share of the objective given up, at most, to make every share estimable."""
_REPAIRED_ANSWERS = 40
_GAINS: dict[str, type[Information] | type[Guessing]] = {"information": Information, "hamming": Guessing}


@dataclass(frozen=True, slots=True)
class Found:
    """An optimum, and whether its bound covers every ray of the cone one by one (`exact`) or bounds them together."""

    optimum: Optimum
    exact: bool


def most_gain(cone: Cone, prior: Prior, objective: str, limits: Limits, method: str, *, deficient: bool) -> Found:
    """Maximise the information or the chance of guessing right; see `programme.most_gain` and `generation.generate`.

    deficient : whether a mechanism that does not identify every share will do. If not, ties are broken, then at most
    REPAIR_LOSS is given up.

    Raises InvalidInput: optimiser_limit, not_identifiable.
    """
    if method == "vertices" or (cone.is_small() and not limits.out_of_time()):
        rays: Sequence[Ray] = cone.rays()
        best, exact = programme.most_gain(rays, prior, objective), True
    else:
        base = Base(cone, prior)
        gain = _GAINS[objective](base)
        made = generate(base, gain, limits)
        best, exact = programme.generated(made.columns, made.theta, made.bound, made.multipliers), False
        rays = _spread(made.columns)
    return Found(_identifying(rays, prior, best, objective, deficient=deficient), exact)


def least_variance(cone: Cone, prior: Prior, limits: Limits, method: str) -> Found:
    """Minimise the total variance of the unbiased shares, up to the constant p·p; see `programme.least_variance`."""
    rays = cone.rays()
    return Found(programme.least_variance(rays, prior), exact=True)


def _identifying(rays: Sequence[Ray], prior: Prior, best: Optimum, objective: str, *, deficient: bool) -> Optimum:
    if rational.rank(best.rays) == prior.answers:
        return best
    for loss in (0.0,) if deficient else (0.0, REPAIR_LOSS):
        better = programme.repaired(rays, prior, best, loss, objective) if rays else None
        if better is not None:
            return better
    if not deficient:
        words = f"the optimum of {objective} does not let every share be estimated: use the objective variance"
        raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "objective")
    return best


def _spread(columns: FloatArray) -> list[Ray]:
    """Return generated columns for repair, none where there are too many answers to optimise a variance over them."""
    return programme.whole_columns(columns) if columns.shape[1] <= _REPAIRED_ANSWERS else []
