# SPDX-License-Identifier: Apache-2.0
"""Privacy notions on products of tables.

A report's column is the product of its factors' columns, so the extremes of a column, and with them
LDP and the ceiling, multiply over the factors, however many reports there are. Prior-based notions
compare averages, which only multiply if the prior does: for them the columns are computed one by
one (`work` limits their number).
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from math import gcd, prod

from frankly_protocol.audit import ratios
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.radix import number_of

Pair = tuple[tuple[int, ...], tuple[int, ...]]
Likelihoods = tuple[tuple[int, int], ...]
"""Masses (P, P') of the reports under two answers, merged by ratio P : P' and sorted."""


def columns(mechanism: ProductMechanism) -> Iterator[Sequence[int]]:
    """Yield the column of every report, in the order of `symbols()`."""
    for factor_columns in product(
        *(list(zip(*factor.weights, strict=True)) for factor in mechanism.factors)
    ):
        column: Sequence[int] = (1,)
        for factor_column in factor_columns:
            column = [w * v for w in column for v in factor_column]
        yield column


def answer_ratios(mechanism: ProductMechanism) -> Iterator[Candidate]:
    """Yield max_x Q(y|x) / min_x Q(y|x) of the worst report, which is worst in every factor."""
    worst = []
    for factor in mechanism.factors:
        best = Candidate(1, 1, 0, (0, 0))
        for candidate in ratios.answer_ratios(zip(*factor.weights, strict=True)):
            if candidate.n * best.d > best.n * candidate.d:
                best = candidate
        worst.append(best)
    pair = (
        index(mechanism, [w.pair[0] for w in worst]),
        index(mechanism, [w.pair[1] for w in worst]),
    )
    report = tuple(w.report for w in worst)
    yield Candidate(prod(w.n for w in worst), prod(w.d for w in worst), report, pair)  # type: ignore[arg-type]


def excesses(mechanism: ProductMechanism, p: int, q: int) -> Iterator[Candidate]:
    """Yield the largest Σ_y max(0, Q(y|x) − p/q·Q(y|z)) over pairs of answers x, z.

    The candidate's report is one with the largest likelihood ratio.

    Only the mass of each likelihood ratio matters, and these masses of a product are convolutions
    of the factors' masses. Pairs that agree in a part are omitted: by the data processing
    inequality, some pair that also differs in that part has an excess at least as large.
    """
    totals = [
        (sum(max(0, q * a - p * b) for a, b in masses), pair)
        for masses, pair in pairs_of(mechanism).items()
    ]
    excess, (x, z) = max(totals)
    report = tuple(
        _most_revealing_report(f.weights[i], f.weights[j])
        for f, i, j in zip(mechanism.factors, x, z, strict=True)
    )
    yield Candidate(
        excess, q * mechanism.denominator, report, (index(mechanism, x), index(mechanism, z))
    )


def likelihoods(factor: DenseMechanism) -> dict[Likelihoods, tuple[int, int]]:
    """Return the distinct likelihoods over pairs of a factor's answers, each with one such pair."""
    pairs: dict[Likelihoods, tuple[int, int]] = {}
    # Ordered pairs: (ε, δ) is not symmetric in the two answers.
    for i, j in permutations(range(factor.answers), 2):
        pairs.setdefault(_merged(zip(factor.weights[i], factor.weights[j], strict=True)), (i, j))
    return pairs


def pairs_of(mechanism: ProductMechanism) -> dict[Likelihoods, Pair]:
    """Return the distinct likelihoods over pairs of answers that differ in every part.

    Each likelihood is returned with one such pair.
    """
    pairs: dict[Likelihoods, Pair] = {((1, 1),): ((), ())}
    for factor in mechanism.factors:
        factor_pairs = likelihoods(factor)
        pairs = {
            _merged((a * c, b * d) for (a, b), (c, d) in product(before, now)): ((*x, i), (*z, j))
            for (before, (x, z)), (now, (i, j)) in product(pairs.items(), factor_pairs.items())
        }
    return pairs


def index(mechanism: ProductMechanism, parts: Sequence[int]) -> int:
    """Return the row of the answer with these parts."""
    return number_of(parts, (factor.answers for factor in mechanism.factors))


def _merged(masses: Iterable[tuple[int, int]]) -> Likelihoods:
    """Return the masses, summed per likelihood ratio P : P'.

    Reports of equal ratio carry the same information, so they are treated as one report.
    """
    merged: dict[tuple[int, int], tuple[int, int]] = {}
    for a, b in masses:
        common = gcd(a, b)
        if common:
            # The reduced pair is an exact key for the likelihood ratio.
            key = (a // common, b // common)
            before = merged.get(key, (0, 0))
            merged[key] = (before[0] + a, before[1] + b)
    return tuple(sorted(merged.values()))


def _most_revealing_report(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Return the position of a report with the largest ratio ours : theirs."""
    share = [
        Fraction(a, a + b) if a + b else Fraction(-1) for a, b in zip(ours, theirs, strict=True)
    ]
    return share.index(max(share))
