# SPDX-License-Identifier: Apache-2.0
"""Privacy notions on unary and subset mechanisms, verified without listing their reports.

**One shape.** For either kind, the column of a report B ⊆ answers is `high` on a set H of answers
and `low` elsewhere, up to a factor that depends only on |H| and cancels in every ratio; H is B, or
its complement if an answer is less likely when B contains it. With k = keep, f = flip, D = 2^bits,
a unary report gives high : low = k·(D − f) : (D − k)·f (or its inverse), and every H except the
empty and the full set occurs; if f is 0 or D, only |H| = 1 does. A subset report of size d with
inside weight i gives i·(a − d) : (D − i)·d, and |H| is fixed.

**The largest ratio.** For distributions A, C over answers the ratio of the report's averages is
R(H) = (low + g·A(H)) / (low + g·C(H)), g = high − low ≥ 0. R(H) > λ iff low·(1 − λ) + g·Σ_{x∈H}
(A_x − λ·C_x) > 0, and the left side is largest for the answers with A_x > λ·C_x or, with |H| = h,
for the h largest A_x − λ·C_x. So (Dinkelbach 1967): begin with a λ ≤ the maximum, take this H,
set λ to R(H), and stop when R no longer grows. R takes finitely many values and grows strictly
until then, so this ends, and it ends at the maximum: if some H' had R(H') > λ, the left side would
be positive for it, hence for the H that maximises it. If every H may occur, the sets visited are
shorter and shorter prefixes of the answers sorted by A_x / C_x, so the maximum is attained on such a
prefix (for lift: Funnel, eq. 27-29, where the paper lists 2^a subsets). If some H has C-average 0
and A-average above 0, the left side is positive for every λ, so the search ends there, with an
infinite ratio. All arithmetic is in integers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product
from math import gcd, prod
from typing import NamedTuple

from frankly_protocol.audit.data import Joint, LowerBounds, PairLevels
from frankly_protocol.audit.ratios import AVERAGE, Candidate, Condition, listed_pairs, scaled_bounds
from frankly_protocol.audit.units import search_steps
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms.numbered import SetSymbols


@dataclass(frozen=True, slots=True)
class Sets:
    """The shape of all reports: weight `high` on H, `low` ≤ `high` outside H.

    size : |H|, or None if H may have any size.
    inverted : True if a symbol is the set of the answers outside H.
    scale : high/scale is the chance, given x, that H contains x but not another answer z.
    """

    answers: int
    high: int
    low: int
    size: int | None
    inverted: bool
    scale: int

    @classmethod
    def of(cls, mechanism: SetSymbols) -> "Sets":
        """Return the shape of a mechanism's reports."""
        a, shape = mechanism.answers, mechanism.set_shape
        on, off, size, scale = shape.on, shape.off, shape.size, shape.scale
        # The shape needs high ≥ low; otherwise H is the complement of B.
        if on >= off:
            return cls(a, on, off, size, False, scale)
        return cls(a, off, on, None if size is None else a - size, True, scale)

    def symbol(self, H: Sequence[int]) -> int:
        """Return the bit mask of the report whose column is high on H."""
        mask = sum(1 << x for x in H)
        return mask ^ ((1 << self.answers) - 1) if self.inverted else mask

    def some(self, inside: Sequence[int] = (), outside: Sequence[int] = ()) -> int:
        """Return a report that can occur, with `inside` in H and `outside` outside H."""
        size = max(1, len(inside)) if self.size is None else self.size
        free = [x for x in range(self.answers) if x not in inside and x not in outside]
        return self.symbol([*inside, *free][:size])


class _Cell(NamedTuple):
    """An answer with its counts under two distributions."""

    x: int
    a: int
    c: int


@dataclass(slots=True)
class _Search:
    """The largest ratio so far, from which every further search begins, and the remaining steps."""

    sets: Sets
    steps: int
    n: int = 1
    d: int = 1
    spare: Sequence[int] = field(default_factory=list)

    def better(self, cells: Sequence[_Cell], A: int, C: int) -> tuple[int, int, int] | None:
        """Return (n, d, symbol) of the largest R(H), or None unless it exceeds the largest so far.

        A and C are the totals of the counts. `spare` lists the answers that are not in `cells`.
        """
        best_set = None
        low, g = self.sets.low, self.sets.high - self.sets.low
        while self.d:  # d = 0 is an infinite ratio, which nothing exceeds
            self.steps -= 1
            # The cost model assumes at most this many steps, so no prior may cause more.
            if self.steps < 0:
                raise DocumentRejected("work_limit", "this prior takes too long to verify", "prior")
            H = self._best_set(cells, A, C)
            inside = set(H)
            a = sum(cell.a for cell in cells if cell.x in inside)
            c = sum(cell.c for cell in cells if cell.x in inside)
            n, d = (low * A + g * a) * C, (low * C + g * c) * A
            if n * self.d <= self.n * d:
                break
            # The ratio is reduced, so that the integers do not grow from step to step.
            common = gcd(n, d)
            self.n, self.d, best_set = n // common, d // common, H
        return None if best_set is None else (self.n, self.d, self.sets.symbol(best_set))

    def _best_set(self, cells: Sequence[_Cell], A: int, C: int) -> list[int]:
        # With λ = n/d, c·q − a·p is (λ·C_x − A_x)·d·A·C: the same sign and order, in integers.
        p, q = C * self.d, A * self.n
        if self.sets.size is None:
            return [x for x, a, c in cells if a * p > c * q]
        gains = sorted([(c * q - a * p, x) for x, a, c in cells] + [(0, x) for x in self.spare])
        return [x for _, x in gains[: self.sets.size]]


def answer_ratios(sets: Sets) -> Iterator[Candidate]:
    """Yield high / low, with a report that has the first answer in H and the last one outside."""
    yield Candidate(sets.high, sets.low, sets.some([0], [sets.answers - 1]), (0, sets.answers - 1))


def pair_ratios(sets: Sets, levels: PairLevels) -> Iterator[Candidate]:
    """Yield high / (L[x][z]·low) for the pair with the least level.

    Some report has x in H and z outside, whichever they are, because H is neither empty nor full.
    """
    x, z, p, q = min(listed_pairs(levels), key=lambda pair: Fraction(pair[2], pair[3]))
    yield Candidate(sets.high * q, sets.low * p, sets.some([x], [z]), (x, z))


def excesses(sets: Sets, p: int, q: int) -> Iterator[Candidate]:
    """Yield the δ of (ln p/q, δ)-DP: Σ_B max(0, Q(B|x) − p/q·Q(B|z)), equal for all x ≠ z.

    Reports with both answers in H, or neither, are equally likely under both; `scale` gives the
    total chance of the others.
    """
    n = max(0, q * sets.high - p * sets.low)
    yield Candidate(n, q * sets.scale, sets.some([0], [sets.answers - 1]), (0, sets.answers - 1))


def secret_ratios(sets: Sets, joint: Joint) -> Iterator[Candidate]:
    """Yield max_s P(B|s) / min_s P(B|s)  [Funnel, Definition 1]."""
    search = _Search(sets, search_steps(len(joint) * (len(joint) - 1)))
    for s, t in permutations(range(len(joint)), 2):
        cells = [_Cell(x, a, c) for x, (a, c) in enumerate(zip(joint[s], joint[t], strict=True))]
        if improved := search.better(cells, sum(joint[s]), sum(joint[t])):
            yield Candidate(*improved, (s, t))


def average_ratios(sets: Sets, joint: Joint) -> Iterator[Candidate]:
    """Yield P(B|s) / P(B), and P(B) / P(B|s) as `low`.

    Sources: Funnel, Definition 2; Lift, Definition 3.
    """
    upper, lower = (_Search(sets, search_steps(len(joint))) for _ in range(2))
    yield from _around_average(upper, lower, joint, range(sets.answers), None)


def side_channel_ratios(sets: Sets, joint: Joint, attributes: Sequence[int]) -> Iterator[Candidate]:
    """Yield the ratios of `average_ratios` given x_J, for every attribute subset J and x_J."""
    searches = len(joint) * prod(size + 1 for size in attributes)
    upper, lower = (_Search(sets, search_steps(searches)) for _ in range(2))
    strides = [prod(attributes[j + 1 :]) for j in range(len(attributes))]
    for condition in product(*((*range(size), None) for size in attributes)):
        steps = zip(condition, attributes, strides, strict=True)
        offsets = ([k * n] if k is not None else range(0, size * n, n) for k, size, n in steps)
        inside = [sum(offset_sum) for offset_sum in product(*offsets)]
        if sets.size is not None:
            inside_set = set(inside)
            upper.spare = lower.spare = [x for x in range(sets.answers) if x not in inside_set]
        yield from _around_average(upper, lower, joint, inside, condition)


def _around_average(
    upper: _Search, lower: _Search, joint: Joint, inside: Sequence[int], condition: Condition | None
) -> Iterator[Candidate]:
    counts = [sum(row[x] for row in joint) for x in inside]
    total = sum(counts)
    for s, row in enumerate(joint):
        secret_counts = [row[x] for x in inside]
        mass = sum(secret_counts)
        if mass in (0, total):
            continue  # a secret that is impossible or certain given x_J
        counted = list(zip(inside, secret_counts, counts, strict=True))
        if improved := upper.better([_Cell(x, a, c) for x, a, c in counted], mass, total):
            yield Candidate(*improved, (s, AVERAGE), False, condition)
        if improved := lower.better([_Cell(x, c, a) for x, a, c in counted], total, mass):
            yield Candidate(*improved, (AVERAGE, s), True, condition)


def robust_ratios(sets: Sets, bounds: LowerBounds) -> Iterator[Candidate]:
    """Yield sup over D_s / inf over D_t of P(B|·) for all s ≠ t.

    Let H contain j answers of s and l answers of t. The supremum comes from the j largest L[s][u],
    with the free mass (the mass that L does not bound) on one of them; the infimum from the l
    smallest L[t][u], with the free mass outside H. So the largest j and the smallest l that |H|
    allows are best for every pair; H is never all answers, so it can leave out one of t. If every H
    may occur, it is all of s and nothing of t, and the ratio is high / low.

    A secret compared with itself (claims with `diagonal`) has no larger ratio. If H can leave out a
    whole secret, the infimum of some t ≠ s is low, and no supremum of s exceeds that of j answers.
    Otherwise H can contain all of some t ≠ s, whose supremum is then high, together with the fewest
    answers of s, and no infimum of s is less than theirs.
    """
    scale, fixed = scaled_bounds(bounds)
    width, low, g = len(fixed[0]), sets.low * scale, sets.high - sets.low
    h = width if sets.size is None else sets.size
    j, l = min(h, width), max(0, h - (sets.answers - width))  # noqa: E741 - the letters of the docstring
    # As in `ratios.robust_ratios`: the two largest suprema and the two least infima give the largest
    # ratio of two different secrets.
    suprema = [sum(sorted(row, reverse=True)[:j]) + scale - sum(row) for row in fixed]
    infima = [sum(sorted(row)[:l]) for row in fixed]
    highs = sorted(range(len(fixed)), key=lambda s: -suprema[s])[:2]
    lows = sorted(range(len(fixed)), key=lambda s: infima[s])[:2]
    for s, t in ((s, t) for s, t in product(highs, lows) if s != t):
        inside_places = _places(fixed[s], s, j, largest=True)
        held_places = _places(fixed[t], t, l, largest=False)
        outside_places = [x for x in range(t * width, (t + 1) * width) if x not in held_places]
        yield Candidate(
            low + g * suprema[s],
            low + g * infima[t],
            sets.some([*inside_places, *held_places], outside_places),
            (s, t),
        )


def posteriors(sets: Sets, joint: Joint, sensitive: int) -> Iterator[Candidate]:
    """Yield P(S = sensitive | B): the prior share times the largest P(B|sensitive) / P(B).

    Source: Thesis, 6.24.
    """
    sensitive_counts = joint[sensitive]
    counts = [sum(column) for column in zip(*joint, strict=True)]
    mass, total = sum(sensitive_counts), sum(counts)
    cells = [_Cell(x, a, c) for x, (a, c) in enumerate(zip(sensitive_counts, counts, strict=True))]
    # The ratio is 1 on average over the reports, so the search begins at 1. If no report exceeds
    # it, every report that can occur under the prior has ratio 1; one of these is a report whose H
    # contains an answer with mass.
    likely = next(x for x, n in enumerate(counts) if n)
    yield Candidate(mass, total, sets.some([likely]), (sensitive, AVERAGE))
    if improved := _Search(sets, search_steps(1)).better(cells, mass, total):
        n, d, symbol = improved
        yield Candidate(n * mass, d * total, symbol, (sensitive, AVERAGE))


def _places(row: Sequence[int], s: int, count: int, *, largest: bool) -> list[int]:
    """Return the answers (s, u) of the `count` largest or smallest bounds."""
    order = sorted(range(len(row)), key=lambda u: -row[u] if largest else row[u])
    return [s * len(row) + u for u in order[:count]]
