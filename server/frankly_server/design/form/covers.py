# SPDX-License-Identifier: Apache-2.0
"""Candidate covers of a part: random sets that cover every answer equally often (docs/maths/forms.md).

For shares, a cover is all sets of one size. Others come from the optimum for one question at a
level E': its columns have values in {c, cE'}, and the answers with cE' in a column are a set. The
table's rows sum to 1, so every answer is covered equally often (plug-in theorem).
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
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.agreement import Cover

from frankly_server.design.api.engine import DesignRequest, design
from frankly_server.design.notions.prior import Prior
from frankly_server.design.optimum.variance.column_base import Listed
from frankly_server.design.optimum.variance.criteria import least_variance
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray

MOST_SETS: Final = 1024
"""Largest number of sets of a candidate; a part's table has at most 4096 columns in all."""
# Scale of the whole weights of listed sets; a finer one would change a variance by less than 1e-5.
_SCALE: Final = 1 << 20
_MOST_OPTIMISED: Final = 12
"""Largest number of answers for which the one-question optimum of several targets is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class FloatCover:
    """A cover in floats.

    member : member[s][x] is 1 if set s contains answer x, otherwise 0. chance : probability of each
    set. inside : probability that the set contains a given answer.
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

    def spread(self, shares: FloatArray) -> float | None:
        """Return the eigenvalue v of the covariance of membership, v·(I − 11ᵀ/k).

        Returns None unless the sets have one size and the prior is even. Exact if the sets cover all
        pairs of answers equally often; otherwise an approximation, good enough for prices.
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
    answers: int, prior: Sequence[int], targets: FloatArray, epsilon: float,
    limits: Limits, *, are_shares: bool,
) -> list[FloatCover]:  # fmt: skip
    """Return covers for a part with these targets (rows over its answers).

    epsilon : the level of the whole form, an upper bound on that of a single part.
    """
    found = [Cover(answers, size) for size in sizes(answers)]
    if not found:
        found = [Cover(answers, 1)]
    is_even = len(set(prior)) == 1
    # The best size for even shares of one question (Ye and Barg 2018).
    best = round(answers / (1 + exp(epsilon)))
    if are_shares and best > 1 and comb(answers, best) > MOST_SETS:
        found.append(rotations(answers, best))
    if not (are_shares and is_even):
        found += ordered(answers)
        if answers <= _MOST_OPTIMISED or len(targets) == 1:
            # Each of several questions has a lower level than the form.
            for level in {round(epsilon, 2), round(epsilon / 2, 2)}:
                plugged = optimum(prior, targets, level, limits)
                found += [] if plugged is None else [plugged]
    # The steps above can find the same sets more than once.
    unique = {(cover.size, cover.listed): cover for cover in found}
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

    Every answer lies in `size` rotations of each set. If all pairs of answers are covered equally
    often, the table is as informative as that of all sets of the size, which may be too many to list.
    """
    turns = range(answers)
    masks: set[int] = set()
    covered, numbers = np.zeros(answers), count()
    while len(masks) + answers <= MOST_SETS // 2:
        # The best of 50 sets is added: it makes the differences within all sets most even.
        choices = [_scattered(answers, size, next(numbers)) for _ in range(50)]
        spreads = [covered + _differences(chosen, answers) for chosen in choices]
        best = min(range(len(choices)), key=lambda i: float((spreads[i][1:] ** 2).sum()))
        turned = {sum(1 << (x + turn) % answers for x in choices[best]) for turn in turns}
        # A set that equals a rotation of itself, or of an earlier set, would be listed twice.
        if len(turned) == answers and not turned & masks:
            masks |= turned
            covered = spreads[best]
    return Cover(answers, None, tuple((mask, 1) for mask in sorted(masks)))


def _scattered(answers: int, size: int, number: int) -> tuple[int, ...]:
    """Return a scattered set of positions, the same for the same arguments."""
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
    """Return the cover of the one-question optimum at `epsilon` nats; None if none is found."""
    if epsilon < 0.02 or limits.out_of_time():
        return None
    try:
        columns = (_by_intervals if len(targets) == 1 else _by_engine)(
            prior, targets, epsilon, limits
        )
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
    designed = design(request).mechanism
    weights = designed.weights if isinstance(designed, DenseMechanism) else ()
    return np.array(weights, dtype=np.float64).T / (1 << designed.bits)


def _by_intervals(
    prior: Sequence[int], targets: FloatArray, epsilon: float, limits: Limits
) -> FloatArray:
    """Return the best columns for one target with E inside or outside an interval of scores.

    The worth (z·v)² − ν·v of a column is largest at a vertex. In all observed cases z is a line and
    ν a parabola in the score at the optimum, so the answers at E have scores within an interval, or
    outside one. A test compares the values with those of the engine.
    """
    shares, ratio = np.array(prior) / sum(prior), exp(epsilon)
    order, answers = np.argsort(targets[0], kind="stable"), len(prior)
    sets = {
        tuple(sorted(chosen))
        for low in range(answers)
        for high in range(low + 1, answers + 1)
        for chosen in (order[low:high].tolist(), [*order[:low].tolist(), *order[high:].tolist()])
        if 0 < len(chosen) < answers
    }
    columns = np.array(
        [[ratio if x in chosen else 1.0 for x in range(answers)] for chosen in sorted(sets)]
    )
    scaled = columns / (columns @ shares)[:, None]
    found = least_variance(Listed(scaled, shares), targets, None, limits)
    result: FloatArray = found.columns * found.theta[:, None]
    return result


def _uniform(columns: FloatArray) -> Cover | None:
    """Return the sets of two-valued columns with whole weights; single answers make it uniform."""
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
    # Rounding, and optima that are not uniform, leave some answers covered less often.
    for x, covered in enumerate(coverage):
        if covered < max(coverage):
            weights[1 << x] = weights.get(1 << x, 0) + max(coverage) - covered
    if not 2 <= len(weights) <= MOST_SETS:
        return None
    return Cover(answers, None, tuple(sorted(weights.items())))
