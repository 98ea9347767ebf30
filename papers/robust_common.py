# SPDX-License-Identifier: Apache-2.0
"""Shared code of Robust's figures: an estimate with its ball, and the mechanisms for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from frankly_design.families.robust.independent_reporting import ValueLeak, best_split, grr_rows
from frankly_design.families.robust.secret_rr import secret_rr
from frankly_design.notions import promises
from frankly_design.notions.ball_bounds import Bounds, ball_bounds
from frankly_design.notions.balls import Ball, confidence_ball
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior
from frankly_design.notions.prior import pairs as over_pairs
from frankly_protocol.audit import level_for

from papers import channel
from papers.channel import FloatArray
from papers.draws import jeffreys, sample
from papers.figure import Run
from papers.optimum import most_informative, table_of, weights_of
from papers.value_leak import distance_bound, leak_of_ball, leak_of_distance, split_table

PEOPLE, BETA = 32_561, "0.05"
SEED = "robust-synthetic"
SHAPES = ((2, 5), (5, 2), (15, 16), (42, 6))
POLYOPT, POLYOPT_PRINTED = "PolyOpt", "PolyOpt, s₁ = s₂ kept (as printed)"
IR, IR_BALL, SRR, GRR, NR = "IR", "IR, bounds value by value (ours)", "SRR", "GRR", "NR"
QUICKLY = {"a quick run": "alphabets of 2×3, 3×2, 3×4 and 4×3"}
QUICK_SHAPES = ((2, 3), (3, 2), (3, 4), (4, 3))
STEPS, QUICK_STEPS = 300, 10

Matrix = FloatArray


@dataclass(frozen=True)
class Estimate:
    """Counts N[s][u] of n people, and the confidence ball around them of order 2 and error probability β."""

    counts: tuple[tuple[int, ...], ...]
    beta: str = BETA

    @cached_property
    def ball(self) -> Ball:
        """The χ² ball  [Robust (86)]."""
        return confidence_ball(self.counts, 2, sum(map(sum, self.counts)), self.beta)

    @cached_property
    def bounds(self) -> Bounds:
        """The lower bounds L(u|s), exact."""
        return ball_bounds(self.ball)

    @cached_property
    def pairs(self) -> Prior:
        """The prior of answers (s, u)."""
        return over_pairs(Prior(self.counts))

    @cached_property
    def leak(self) -> ValueLeak:
        """Theorem 5's bound on the leakage from reporting U."""
        return leak_of_distance(distance_bound(self.ball))

    @cached_property
    def shares(self) -> FloatArray:
        """P̂(s, u), shape (secrets · values,)."""
        flat = np.array(self.counts, dtype=float).ravel()
        return np.asarray(flat / flat.sum())

    def table(self, name: str, epsilon: Fraction, steps: int) -> Matrix:
        """Return Q(y|s,u) of a mechanism, shape (answers, reports)."""
        secrets, values = len(self.counts), len(self.counts[0])
        if name == SRR:
            return _secret_rr(secrets, values, epsilon)
        if name == GRR:
            return grr_rows(secrets * values, float(epsilon))
        if name in (IR, IR_BALL):
            leak = self.leak if name == IR else leak_of_ball(self.ball)
            return split_table(best_split(self.counts, float(epsilon), leak))
        table = np.array(self.weights(name, epsilon, steps), dtype=float)
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def weights(self, name: str, epsilon: Fraction, steps: int) -> tuple[tuple[int, ...], ...]:
        """Return the integer weights of PolyOpt or of the non-robust optimum."""
        if name == NR:
            # A pair without counts gets the count 1, because at probability 0 no row would be
            # defined for it.
            counted_pairs = over_pairs(
                Prior(tuple(tuple(max(1, n) for n in row) for row in self.counts))
            )
            claim = promises.promise("secret-ldp", counted_pairs, epsilon)
            return weights_of(most_informative(counted_pairs, [claim], steps).mechanism)
        claim = robust(self.bounds, epsilon, diagonal=name == POLYOPT_PRINTED)
        return weights_of(most_informative(self.pairs, [claim], steps).mechanism)

    def utility(self, Q: Matrix) -> float:
        """Return I(X;Y)/H(X) under the estimate."""
        return channel.information(Q, self.shares) / channel.entropy(self.shares)


@cache
def _secret_rr(secrets: int, values: int, epsilon: Fraction) -> Matrix:
    return table_of(secret_rr(secrets, values, level_for(epsilon)))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A true distribution, shape (secrets, values), and the counts of `PEOPLE` draws from it."""

    truth: FloatArray
    counts: tuple[tuple[int, ...], ...]

    def estimate(self, beta: str = BETA) -> Estimate:
        """Return the estimate from the counts."""
        return Estimate(self.counts, beta)


def drawn(shape: tuple[int, int], run: Run) -> Iterator[Drawn]:
    """Yield the synthetic data of §8.2: P* from the Jeffreys prior, then 32,561 people from P*."""
    case = f"{SEED}/{shape[0]}x{shape[1]}"
    for i, truth in enumerate(jeffreys(*shape, case, run.draws)):
        counts = sample(truth, PEOPLE, f"{case}/{i}/people")
        yield Drawn(truth, tuple(map(tuple, counts)))


def steps(run: Run) -> int:
    """Return the largest number of branch-and-bound steps of a design."""
    return QUICK_STEPS if run.quick else STEPS


def shapes(run: Run) -> tuple[tuple[int, int], ...]:
    """Return the alphabets (a₁, a₂) of the four panels; small ones in a quick run."""
    return QUICK_SHAPES if run.quick else SHAPES
