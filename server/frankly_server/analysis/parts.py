# SPDX-License-Identifier: Apache-2.0
"""One table from several documents: each estimated with its own mechanism, then pooled (DESIGN §6; BAD_INPUTS 50).

Raw counts of different documents are never added. Estimates are averaged with weights that do not depend on the
answers, so the average of unbiased estimates stays exactly unbiased, and shares still add up to one.

- Respondents drawn from one population: every document estimates the same shares. The weights are the inverse
  covariances at the published design priors, which mechanisms and n determine.
- A census: the respondents of each document are a part of the population, so the weight is that part, n over all n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import sqrt

import numpy as np
from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server import rational
from frankly_server.analysis.received import Tally
from frankly_server.analysis.request import Request
from frankly_server.estimate import Estimate, Joint, SetCounts, estimate
from frankly_server.estimate.decoder import Targets
from frankly_server.estimate.estimator import checked_evidence, nothing_yet
from frankly_server.estimate.inputs import Tally as Counts
from frankly_server.estimate.inputs import checked_targets
from frankly_server.estimate.joint import Source
from frankly_server.estimate.margins import Pairs, Values
from frankly_server.estimate.pooling import combined_ends, kl_ends, matrices
from frankly_server.estimate.set_law import SetMechanism
from frankly_server.store import is_masked

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """What one document says: its blocks, the symbols together, and the wanted targets over the joint answers.

    tally : symbols together -> how many of the n reports; for one block of large sets, pairs of positions x ≤ z.
    """

    blocks: tuple[Block, ...]
    n: int
    tally: Tally
    targets: Targets

    @property
    def mechanism(self) -> Source:
        """The block's own, or the product of several blocks', whose reports were randomised independently."""
        if len(self.blocks) == 1:
            return self.blocks[0].mechanism
        tables: list[DenseMechanism] = []
        factors: list[DenseMechanism | SetMechanism] = []
        for mechanism in (block.mechanism for block in self.blocks):
            own = mechanism.factors if isinstance(mechanism, ProductMechanism) else (mechanism,)
            factors += own
            tables += [factor for factor in own if isinstance(factor, DenseMechanism)]
        return ProductMechanism(tuple(tables)) if len(tables) == len(factors) else Joint(tuple(factors))

    @property
    def design_prior(self) -> tuple[int, ...]:
        """The blocks' priors multiplied: nobody published how they hang together."""

        def times(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(a * b for a in left for b in right)

        return reduce(times, (block.design_prior for block in self.blocks))

    @property
    def counts(self) -> Counts:
        """The tally as the estimator of this kind wants it."""
        mechanism = self.mechanism
        if isinstance(mechanism, ProductMechanism | Joint):
            return dict(self.tally)
        if isinstance(mechanism, DenseMechanism):
            return [self.tally.get((y,), 0) for y in range(mechanism.reports)]
        if is_masked(mechanism):
            return SetCounts.of_symbols(mechanism.answers, {symbol: n for (symbol,), n in self.tally.items()})
        pairs = [[0] * mechanism.answers for _ in range(mechanism.answers)]
        for (x, z), n in self.tally.items():
            pairs[x][z] = pairs[z][x] = n
        return SetCounts(self.n, tuple(map(tuple, pairs)))


@dataclass(frozen=True, slots=True)
class Pooled:
    """Figures per target, None where some part cannot tell; `covariance` likewise. single : the estimate, if only one.

    ends : [low, high] by the method asked for. few : fewer than 5 informative reports in every part.
    """

    n: int
    value: Values
    se: Values
    se_privacy: Values
    se_sampling: Values
    worst_case_se: Values
    up: Values
    down: Values
    ends: Pairs
    few: tuple[bool, ...]
    covariance: FloatArray | None
    single: Estimate | None
    flags: tuple[str, ...]


def pool(parts: Sequence[Part], request: Request) -> Pooled:
    """Return the weighted sum of one or more parts, whose respondents are different people."""
    weighted = [part.targets for part in parts] if len(parts) == 1 else _weighted(parts, census=request.census)
    found = [
        estimate(
            part.mechanism,
            part.counts,
            design_prior=part.design_prior,
            targets=targets,
            census=request.census,
            population=request.population,
            level=request.level,
            # kl stands in for these where they do not exist.
            methods=(request.method, "kl") if request.method in ("exact", "sequence") else (request.method,),
        )
        for part, targets in zip(parts, weighted, strict=True)
    ]
    method = request.method
    if len(found) > 1 and request.population is not None:
        words = "several versions are pooled, whose respondents are different parts of it: leave the population out"
        raise InvalidInput(Problem.UNSUPPORTED, words, "population")
    if len(found) > 1 and method in ("exact", "sequence"):
        words = "several versions are pooled, for which this interval is not known: use kl, or by=version"
        raise InvalidInput(Problem.UNSUPPORTED, words, "method")
    covariances = [each.covariance for each in found]
    return Pooled(
        n=sum(each.n for each in found),
        value=_sum([each.unbiased for each in found]),
        se=_root([each.se for each in found]),
        se_privacy=_root([each.se_privacy for each in found]),
        se_sampling=_root([each.se_sampling for each in found]),
        worst_case_se=_root([each.worst_case_se for each in found]),
        up=_sum([each.poisoning.up for each in found]),
        down=_sum([each.poisoning.down for each in found]),
        ends=_ends(parts, weighted, found, request),
        few=_everywhere("few_informative", found),
        covariance=_covariance(covariances),
        single=found[0] if len(found) == 1 else None,
        flags=tuple(dict.fromkeys(flag for each in found for flag in each.flags)),
    )


def _ends(parts: Sequence[Part], weighted: Sequence[Targets], found: Sequence[Estimate], request: Request) -> Pairs:
    """Return [low, high] of the sum of the parts."""
    if len(found) > 1 and request.method == "kl":
        wanted = [
            (part, checked_targets(part.mechanism, targets)) for part, targets in zip(parts, weighted, strict=True)
        ]
        evidence = [checked_evidence(part.mechanism, part.counts, each, part.design_prior) for part, each in wanted]
        return kl_ends(evidence, request.level)
    ends = [each.margins.ends(request.method, each.unbiased) for each in found]
    return ends[0] if len(found) == 1 else combined_ends([each.unbiased for each in found], ends)


def _weighted(parts: Sequence[Part], *, census: bool) -> list[Targets]:
    """Return each part's targets times its weights; the weights sum to the identity exactly."""
    size = len(parts[0].targets)
    total = sum(part.n for part in parts)
    if census or any(_at_prior(part) is None for part in parts):
        shares = [Fraction(part.n, total) for part in parts]
        return [tuple(tuple(s * w for w in row) for row in p.targets) for s, p in zip(shares, parts, strict=True)]
    floats = matrices([C / part.n for part in parts if (C := _at_prior(part)) is not None])
    exact = [[[Fraction(float(v)) for v in row] for row in B] for B in floats[:-1]]
    last = [
        [Fraction(int(i == j)) - sum((B[i][j] for B in exact), Fraction(0)) for j in range(size)] for i in range(size)
    ]
    return [rational.product(B, part.targets) for B, part in zip([*exact, last], parts, strict=True)]


def _at_prior(part: Part) -> FloatArray | None:
    """Return the covariance of one report's decoded values at the design prior; None if a target cannot be told."""
    found = nothing_yet(part.mechanism, part.targets, part.design_prior)
    if len(found.known) < len(part.targets):
        return None
    prior = np.array([float(n) for n in part.design_prior])
    p = prior / prior.sum()
    mean = found.W @ p
    return np.asarray(found.moment_at(p) - np.outer(mean, mean), dtype=np.float64)


def _everywhere(flag: str, found: Sequence[Estimate]) -> tuple[bool, ...]:
    """Return, per target, whether every estimate has the flag there."""
    return tuple(all(flag in flags for flags in each) for each in zip(*(e.row_flags for e in found), strict=True))


def _sum(columns: Sequence[Values]) -> Values:
    return tuple(None if None in row else sum(v for v in row if v is not None) for row in zip(*columns, strict=True))


def _root(columns: Sequence[Values]) -> Values:
    if len(columns) == 1:
        return columns[0]
    squares = (None if None in row else sum(v * v for v in row if v is not None) for row in zip(*columns, strict=True))
    return tuple(None if v is None else sqrt(v) for v in squares)


def _covariance(covariances: Sequence[tuple[Values, ...] | None]) -> FloatArray | None:
    if any(C is None for C in covariances):
        return None
    return np.asarray(np.sum([np.array(C, dtype=np.float64) for C in covariances], axis=0), dtype=np.float64)
