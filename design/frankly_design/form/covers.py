# SPDX-License-Identifier: Apache-2.0
"""Candidate covers of a part: random sets that cover every answer equally often (docs/maths/forms.md).

For shares, a cover consists of all sets of one size. Other covers come from the optimum for one
question at a level E': its columns have values in {c, cE'}, and the answers with value cE' in a
column form a set. The table's rows sum to 1, so every answer is covered equally often (plug-in
theorem).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import count
from math import comb, exp
from typing import Final

import numpy as np
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import FranklyError
from frankly_protocol.mechanisms.agreement import Cover

from frankly_design.engine.engine import DesignRequest, design
from frankly_design.kinds.dense import table_of
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance import many_answers
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.objective import Objective
from frankly_design.optimum.variance.patterns import intervals
from frankly_design.tables.limits import Limits

MOST_SETS: Final = 1024
"""Largest number of sets of a candidate; a part's table has at most 4096 columns in total."""
# Scale of the integer weights of listed sets; a finer one would change variances by less than 1e-5.
_SCALE: Final = 1 << 20
_MOST_CERTIFIED: Final = 12
"""Largest number of answers for which `design` finds the one-question optimum for many targets."""
_GAP: Final = 0.01
"""Relative gap to the bound at which the search for larger numbers of answers ends."""


@dataclass(frozen=True, slots=True, eq=False)
class FloatCover:
    """A cover in floats.

    member : member[s][x] is 1 if set s contains answer x, otherwise 0. chance : probability of each
    set. inside : probability that the drawn set contains any one answer.
    """

    cover: Cover
    member: FloatArray
    chance: FloatArray
    inside: float

    @classmethod
    def of(cls, cover: Cover) -> "FloatCover":
        """Return a cover in floats."""
        member = np.array(
            [[mask >> x & 1 for x in range(cover.answers)] for mask in cover.masks],
            dtype=np.float64,
        )
        weights = np.array(cover.weights, dtype=np.float64)
        total = cover.inside + cover.outside
        return cls(cover, member, weights / weights.sum(), cover.inside / total)

    @classmethod
    def of_equality(cls, choices: int) -> "FloatCover":
        """Return {equal, different}, one as likely as the other, for two answers with these choices.

        Reports depend only on which of the two holds. So `member` has a column for each of the two,
        not for each of the joint answers, about which the information would have a rank of 2.
        """
        equal = sum(1 << x * (choices + 1) for x in range(choices))
        full = (1 << choices**2) - 1
        cover = Cover(choices**2, None, ((equal, 1), (full ^ equal, 1)))
        return cls(cover, np.eye(2), np.full(2, 0.5), 0.5)

    def spread(self, shares: FloatArray) -> float | None:
        """Return the eigenvalue v of the covariance of membership, v·(I − 11ᵀ/k).

        Returns None unless all sets have the same size and the prior is even. The value is exact if
        the sets cover all pairs of answers equally often; otherwise it is an approximation, good
        enough for prices.
        """
        sizes_of_sets = self.member.sum(axis=1)
        k = len(shares)
        if np.ptp(sizes_of_sets) or np.ptp(shares) > 1e-12:
            return None
        size = float(sizes_of_sets[0])
        return size * (k - size) / (k * (k - 1))

    def information(self, shares: FloatArray, agree: float, other: float) -> FloatArray:
        """Return QᵀD⁻¹Q, shape (answers, answers), of the table q(s)·(agree or other).

        D is the diagonal of the reports' probabilities if the answers are distributed as `shares`.
        """
        law = self.member * (agree - other) + other
        weights = self.chance / (law @ shares)
        result: FloatArray = (law * weights[:, None]).T @ law
        return result


def sizes(answers: int) -> list[int]:
    """Return the sizes of sets to try."""
    return [size for size in range(1, answers) if comb(answers, size) <= MOST_SETS]


def candidates(
    answers: int,
    prior: Sequence[int],
    targets: FloatArray,
    epsilon: float,
    limits: Limits,
    *,
    are_shares: bool,
) -> list[FloatCover]:
    """Return covers for a part with these targets (rows over its answers).

    epsilon : the level of the whole form, an upper bound on that of a single part.
    """
    covers = [Cover(answers, size) for size in sizes(answers)]
    if not covers:
        covers = [Cover(answers, 1)]
    is_even = len(set(prior)) == 1
    # The best size for even shares of one question (Ye and Barg 2018).
    best = round(answers / (1 + exp(epsilon)))
    if are_shares and best > 1 and comb(answers, best) > MOST_SETS:
        covers.append(rotations(answers, best))
    if not (are_shares and is_even):
        covers += ordered(answers)
        # If there are several questions, each has a lower level than the form.
        for level in {round(epsilon, 2), round(epsilon / 2, 2)}:
            plugged = optimum(prior, targets, level, limits)
            covers += [] if plugged is None else [plugged]
    # The steps above can find the same sets more than once.
    unique = {(cover.size, cover.listed): cover for cover in covers}
    return [FloatCover.of(cover) for cover in unique.values()]


def ordered(answers: int) -> Iterator[Cover]:
    """Yield covers for a scale: both sides of the middle cut, then both sides of every cut."""
    full, middle = (1 << answers) - 1, answers // 2
    for cuts in ([middle], range(1, answers)):
        lower = [(1 << cut) - 1 for cut in cuts]
        masks = {mask: 1 for low in lower for mask in (low, full ^ low)}
        if len(masks) > 1:
            yield Cover(answers, None, tuple(masks.items()))


def rotations(answers: int, size: int) -> Cover:
    """Return the rotations of some sets of this size, chosen so that pairs are covered evenly.

    Every answer is in `size` rotations of each set. If all pairs of answers are covered equally
    often, the table is as informative as the table of all sets of this size, which may be too many
    to
    list.
    """
    turns = range(answers)
    masks: set[int] = set()
    covered, numbers = np.zeros(answers), count()
    while len(masks) + answers <= MOST_SETS // 2:
        # The best of 50 sets is added: the one with which the differences within all sets are most
        # even.
        choices = [_scattered(answers, size, next(numbers)) for _ in range(50)]
        spreads = [covered + _differences(chosen, answers) for chosen in choices]
        best = min(range(len(choices)), key=lambda i: float((spreads[i][1:] ** 2).sum()))
        turned = {sum(1 << (x + turn) % answers for x in choices[best]) for turn in turns}
        # Rotations of a symmetric set, or of an earlier set, would be listed twice.
        if len(turned) == answers and not turned & masks:
            masks |= turned
            covered = spreads[best]
    return Cover(answers, None, tuple((mask, 1) for mask in sorted(masks)))


def _scattered(answers: int, size: int, number: int) -> tuple[int, ...]:
    """Return a pseudorandom set of positions, determined by the arguments."""
    # A hash instead of random numbers, because the design of a survey must be reproducible.
    digests = [sha256(f"{answers} {size} {number} {x}".encode()).digest() for x in range(answers)]
    return tuple(sorted(range(answers), key=digests.__getitem__)[:size])


def _differences(chosen: tuple[int, ...], answers: int) -> FloatArray:
    """Return how often each difference, modulo the number of answers, occurs within a set."""
    places = np.array(chosen)
    return np.bincount(
        ((places[:, None] - places[None, :]) % answers).reshape(-1), minlength=answers
    ).astype(np.float64)


def optimum(
    prior: Sequence[int], targets: FloatArray, epsilon: float, limits: Limits
) -> Cover | None:
    """Return the cover of the one-question optimum at `epsilon` nats; None if there is none."""
    if epsilon < 0.02 or limits.out_of_time():
        return None
    several = _by_engine if len(prior) <= _MOST_CERTIFIED else _by_sets
    try:
        columns = (_by_intervals if len(targets) == 1 else several)(prior, targets, epsilon, limits)
    except FranklyError:
        return None
    return _uniform(columns)


def _by_engine(
    prior: Sequence[int], targets: FloatArray, epsilon: float, limits: Limits
) -> FloatArray:
    """Return the columns of the optimum from `design`, shape (reports, answers)."""
    rows = tuple(tuple(Fraction(float(v)).limit_denominator(10**6) for v in row) for row in targets)
    level = level_for(Fraction(round(epsilon * 100), 100))
    request = DesignRequest(
        prior=Prior.from_rows([list(prior)]),
        claims=(Claim("ldp", level),),
        targets=rows,
        accept_unidentifiable=True,
        limits=replace(limits, gap=1e-3),
    )
    table = table_of(design(request).mechanism)
    if table is None:
        return np.empty((0, len(prior)))
    return np.array(table.weights, dtype=np.float64).T / table.denominator


def _by_sets(
    prior: Sequence[int], targets: FloatArray, epsilon: float, limits: Limits
) -> FloatArray:
    """Return good columns for many answers, shape (reports, answers); none unless of full rank."""
    shares, ratio = np.array(prior) / sum(prior), exp(epsilon)
    objective = Objective(many_answers.complete(targets), shares)
    if np.linalg.matrix_rank(objective.W) < len(shares):
        return np.empty((0, len(shares)))
    base = Listed(np.ones((1, len(shares))), shares, ratio=ratio)
    solution = many_answers.optimum(base, objective, replace(limits, gap=_GAP))
    result: FloatArray = solution.columns * solution.theta[:, None]
    return result


def _by_intervals(
    prior: Sequence[int], targets: FloatArray, epsilon: float, limits: Limits
) -> FloatArray:
    """Return the best columns for one target, with value E inside or outside an interval of scores.

    A test compares the resulting values with those of the engine.
    """
    shares, ratio = np.array(prior) / sum(prior), exp(epsilon)
    scaled = intervals(targets[0], shares, ratio)
    solution = least_variance(Listed(scaled, shares), targets, None, limits)
    result: FloatArray = solution.columns * solution.theta[:, None]
    return result


def _uniform(columns: FloatArray) -> Cover | None:
    """Return the sets of two-valued columns with integer weights, completed by single answers."""
    weights: dict[int, int] = {}
    answers = columns.shape[1] if columns.ndim == 2 else 0
    for column in columns:
        low, high = column.min(), column.max()
        if high - low < low * 1e-6:
            continue  # a constant column carries no information
        mask = sum(1 << x for x in range(answers) if column[x] > (low + high) / 2)
        # The probability of the set of a column c·(1, E) is proportional to c.
        weights[mask] = weights.get(mask, 0) + int(low * _SCALE)
    weights = {mask: weight for mask, weight in weights.items() if weight}
    coverage = [
        sum(weight for mask, weight in weights.items() if mask >> x & 1) for x in range(answers)
    ]
    # After rounding, or if the optimum is not uniform, some answers are covered less often.
    for x, covered in enumerate(coverage):
        if covered < max(coverage):
            weights[1 << x] = weights.get(1 << x, 0) + max(coverage) - covered
    if not 2 <= len(weights) <= MOST_SETS:
        return None
    return Cover(answers, None, tuple(sorted(weights.items())))
