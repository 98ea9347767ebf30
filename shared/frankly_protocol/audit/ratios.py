# SPDX-License-Identifier: Apache-2.0
"""The extreme ratios n/d of each report's column w under each notion, as integers (spec 2.3).

With A_s = Σ_x N[s][x]·w_x and N_s = Σ_x N[s][x], P(y|s) is proportional to A_s/N_s and P(y) to
ΣA_s/ΣN_s. Each function yields candidates that include the notion's largest ratio. A report that no
answer with mass under the prior ever sends gives 0/0, which is not a ratio; comparisons by cross
products skip it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations, product
from math import lcm
from operator import mul, sub
from typing import NamedTuple

from frankly_protocol.audit.data import Joint, LowerBounds, PairLevels
from frankly_protocol.mechanisms import Symbol

AVERAGE = -1
"""Marks the prior's average over all secrets in a pair."""

Columns = Iterable[Sequence[int]]
Condition = tuple[int | None, ...]
"""Attribute values x_J that are known, None for an attribute outside J."""


class Candidate(NamedTuple):
    """The ratio n/d (infinite for d = 0) of a pair in a report's column.

    `low` is True for the ratio P(y) / P(y|s).
    """

    n: int
    d: int
    report: Symbol
    pair: tuple[int, int]
    low: bool = False
    condition: Condition | None = None


def answer_ratios(columns: Columns) -> Iterator[Candidate]:
    """Yield max_x w_x / min_x w_x."""
    for y, column in enumerate(columns):
        high, low = max(column), min(column)
        yield Candidate(high, low, y, (column.index(high), column.index(low)))


def pair_ratios(columns: Columns, levels: PairLevels) -> Iterator[Candidate]:
    """Yield the largest w_x / (L[x][z]·w_z) of each report over the pairs that have a level."""
    pairs = listed_pairs(levels)
    for y, column in enumerate(columns):
        n, d, pair = 0, 1, pairs[0][:2]
        # Compared here instead of in `_largest`: a Candidate for every pair would take most of the
        # time.
        for x, z, p, q in pairs:
            up, down = column[x] * q, column[z] * p
            if up * d > n * down:
                n, d, pair = up, down, (x, z)
        yield Candidate(n, d, y, pair)


def listed_pairs(levels: PairLevels) -> list[tuple[int, int, int, int]]:
    """Return (x, z, p, q) for every level p/q of an answer x against another z."""
    return [(x, z, *ratio) for x, row in enumerate(levels) for z, ratio in enumerate(row) if ratio]


def secret_ratios(columns: Columns, joint: Joint) -> Iterator[Candidate]:
    """Yield max_s P(y|s) / min_s P(y|s)  [Funnel, Definition 1]."""
    sizes, weighted = [sum(row) for row in joint], _weighted(joint)
    for y, column in enumerate(columns):
        sums = weighted(column)
        high, low = _extremes(sums, sizes, range(len(sizes)))
        yield Candidate(sums[high] * sizes[low], sums[low] * sizes[high], y, (high, low))


def average_ratios(columns: Columns, joint: Joint) -> Iterator[Candidate]:
    """Yield max_s P(y|s) / P(y), and P(y) / min_s P(y|s) as `low`.

    Sources: Funnel, Definition 2; Lift, Definition 3.
    """
    sizes, weighted = [sum(row) for row in joint], _weighted(joint)
    secrets, total = range(len(sizes)), sum(sizes)
    for y, column in enumerate(columns):
        yield from _around_average(weighted(column), sizes, total, secrets, y, None)


def side_channel_ratios(
    columns: Columns, joint: Joint, attributes: Sequence[int]
) -> Iterator[Candidate]:
    """Yield the ratios of `average_ratios` given x_J, for every attribute subset J and x_J.

    Funnel, Definition 3. A secret with N(s, x_J) = 0 cannot occur together with x_J: it is skipped.
    """
    masses = list(zip(*(_margins(row, attributes) for row in joint), strict=True))
    conditions = product(*((*range(size), None) for size in attributes))
    cells = [
        (i, sizes, sum(sizes), [s for s, size in enumerate(sizes) if size], condition)
        for i, (sizes, condition) in enumerate(zip(masses, conditions, strict=True))
    ]
    for y, column in enumerate(columns):
        sums = list(
            zip(*(_margins(list(map(mul, column, row)), attributes) for row in joint), strict=True)
        )
        for i, sizes, total, present, condition in cells:
            if len(present) > 1:  # a single secret would be determined by x_J alone
                yield from _around_average(sums[i], sizes, total, present, y, condition)


def robust_ratios(columns: Columns, bounds: LowerBounds, *, diagonal: bool) -> Iterator[Candidate]:
    """Yield sup over D_s of R·w_s / inf over D_t of R·w_t for s ≠ t, or all s, t if `diagonal`.

    D_s is the set of distributions R ≥ L[s]: the mass that L leaves free goes to the largest weight
    for the supremum, to the least for the infimum [Robust, Definition 1, Theorem 2; erratum 9.11].
    """
    scale, fixed = scaled_bounds(bounds)
    free = [scale - sum(row) for row in fixed]
    width = len(fixed[0])
    for y, column in enumerate(columns):
        sups, infs = [], []
        for s, row in enumerate(fixed):
            weights = column[s * width : (s + 1) * width]
            fixed_mass = sum(map(mul, row, weights))
            sups.append(fixed_mass + free[s] * max(weights))
            infs.append(fixed_mass + free[s] * min(weights))
        # The two largest suprema and the two least infima give the largest ratio, whether or not
        # s = t is allowed.
        highs = sorted(range(len(sups)), key=lambda s: -sups[s])[:2]
        lows = sorted(range(len(infs)), key=lambda s: infs[s])[:2]
        for s, t in product(highs, lows):
            if diagonal or s != t:
                yield Candidate(sups[s], infs[t], y, (s, t))


def scaled_bounds(bounds: LowerBounds) -> tuple[int, list[list[int]]]:
    """Return a common denominator of the bounds, and their numerators over it."""
    # One common denominator turns all later comparisons into integer arithmetic.
    scale = lcm(*(d for row in bounds for _, d in row))
    return scale, [[n * (scale // d) for n, d in row] for row in bounds]


def excesses(rows: Sequence[Sequence[int]], p: int, q: int) -> Iterator[Candidate]:
    """Yield Σ_y max(0, Q(y|x) − p/q·Q(y|z)), the δ for a level ln p/q, for all pairs x ≠ z.

    The candidate's report has the largest term. The sum covers all sets of reports, not only single
    reports [Thesis, Definition 3.1; erratum 9.4].
    """
    ours, theirs = [[q * w for w in row] for row in rows], [[p * w for w in row] for row in rows]
    D = q * sum(rows[0])
    for x, z in permutations(range(len(rows)), 2):
        gains = list(map(sub, ours[x], theirs[z]))
        yield Candidate(sum(g for g in gains if g > 0), D, gains.index(max(gains)), (x, z))


def posteriors(columns: Columns, joint: Joint, sensitive: int) -> Iterator[Candidate]:
    """Yield P(S = sensitive | y), the degree of privacy violation  [Thesis, 6.24]."""
    totals = [sum(column) for column in zip(*joint, strict=True)]
    for y, column in enumerate(columns):
        sensitive_mass = sum(map(mul, column, joint[sensitive]))
        yield Candidate(sensitive_mass, sum(map(mul, column, totals)), y, (sensitive, AVERAGE))


def _weighted(joint: Joint) -> Callable[[Sequence[int]], list[int]]:
    """Return a function from a column w to the sums Σ_x N[s][x]·w_x, one for each secret s.

    The counts N[·][x] are lanes of one large integer, each wide enough for its sum, at most max w ·
    Σ_x N[s][x], so one multiplication per answer serves every secret.
    """
    # Without these extra bits, a sum could overflow into the next lane.
    room = max(sum(row) for row in joint).bit_length()
    packed: dict[int, list[int]] = {}

    def weighted(column: Sequence[int]) -> list[int]:
        # Width in bytes, rounded up to whole words: most columns then have the same width and can
        # use the same packed table.
        width = -(-(max(column).bit_length() + room) // 64) * 8
        if width not in packed:
            lanes = (
                b"".join(n.to_bytes(width, "little") for n in counts)
                for counts in zip(*joint, strict=True)
            )
            packed[width] = [int.from_bytes(lane, "little") for lane in lanes]
        data = sum(map(mul, column, packed[width])).to_bytes(width * len(joint), "little")
        return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]

    return weighted


def _around_average(
    sums: Sequence[int],
    sizes: Sequence[int],
    total: int,
    secrets: Sequence[int],
    y: int,
    condition: Condition | None,
) -> Iterator[Candidate]:
    sum_of_sums = sum(sums)
    high, low = _extremes(sums, sizes, secrets)
    yield Candidate(
        sums[high] * total, sum_of_sums * sizes[high], y, (high, AVERAGE), False, condition
    )
    yield Candidate(sum_of_sums * sizes[low], sums[low] * total, y, (AVERAGE, low), True, condition)


def _extremes(sums: Sequence[int], sizes: Sequence[int], secrets: Sequence[int]) -> tuple[int, int]:
    """Return the secrets with the largest and the least sums[s] / sizes[s]."""
    high = low = secrets[0]
    for s in secrets[1:]:
        if sums[s] * sizes[high] > sums[high] * sizes[s]:
            high = s
        elif sums[s] * sizes[low] < sums[low] * sizes[s]:
            low = s
    return high, low


def _margins(cells: Sequence[int], attributes: Sequence[int]) -> Sequence[int]:
    """Return a row-major table with an extra last entry along every axis, the sum over that axis.

    The result contains the margin of every subset J at every x_J, each computed once.
    """
    inner = 1
    for size in reversed(attributes):
        step = size * inner
        table: list[int] = []
        for start in range(0, len(cells), step):
            block = cells[start : start + step]
            table += block
            table += map(
                sum, zip(*(block[i : i + inner] for i in range(0, step, inner)), strict=True)
            )
        cells, inner = table, inner * (size + 1)
    return cells
