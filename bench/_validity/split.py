# SPDX-License-Identifier: Apache-2.0
"""Split ballots: surveys whose devices draw one of two arms that ask the same question."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt

import numpy as np
from frankly_design.estimate.effects import two_sided
from frankly_design.estimate.split_plan import (
    WHOLE,
    best_share,
    power_of,
    reports_needed,
    sizes_test,
)
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis.contrasts import Contrast, Sample
from frankly_server.analysis.pooling import pool
from frankly_server.analysis.request import Request

from _validity.cells import Counts, Table, randomised_response
from _validity.surveys import truth
from tests.frankly_server.analysis.samples import part

POWER, LEVEL = 0.8, 0.05
PAIRS = ((0.08, 0.03), (0.2, 0.15), (0.5, 0.4))
"""Shares of the first choice in the two arms of a plan."""
EPSILONS = ((2.0, 2.0), (4.0, 4.0), (4.0, 2.0))


@dataclass(frozen=True)
class Ballot:
    """One kind of split ballot, with as many reports as a plan needs.

    tables : mechanisms of the arms. planned : shares of the first choice that the plan assumes;
    actual : the true ones. chance : of the first arm, out of 65,536.
    """

    tables: tuple[Table, Table]
    planned: tuple[float, float]
    actual: tuple[float, float]
    chance: int
    name: str

    @property
    def plan(self) -> tuple[float, float, float, float]:
        """Difference, variances of one report in each arm, and the chance of the first arm."""
        v1, v2 = map(_variance, self.tables, self.planned)
        return self.planned[0] - self.planned[1], v1, v2, self.chance / WHOLE

    @cached_property
    def n(self) -> int:
        """Number of reports of both arms."""
        return reports_needed(*self.plan, POWER, LEVEL)

    @property
    def power(self) -> float:
        """The power by the variances at the planned shares alone."""
        return power_of(self.n, *self.plan, LEVEL)

    @property
    def power_of_test(self) -> float:
        """The power of the test, whose standard error is that at common shares."""
        whole = np.array([self.chance, WHOLE - self.chance], dtype=float)
        weights = whole / [_spread(table) for table in self.tables]
        common = float(np.average(self.planned, weights=weights))
        v1, v2 = (_variance(table, common) for table in self.tables)
        return power_of(self.n, *self.plan, LEVEL, (v1, v2))

    def without_difference(self) -> "Ballot":
        """Return the ballot whose arms both have the share of the first one."""
        return replace(self, actual=(self.planned[0],) * 2)

    def draw(self, ballots: int, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """Return the counts of symbols of both arms, each of shape (ballots, symbols)."""
        first = rng.binomial(self.n, self.chance / WHOLE, ballots)
        laws = [
            truth(share, len(table.law)) @ table.law
            for share, table in zip(self.actual, self.tables, strict=True)
        ]
        return rng.multinomial(first, laws[0]), rng.multinomial(self.n - first, laws[1])


def _variance(table: Table, share: float) -> float:
    """Return the variance of one report's score of the first choice."""
    seen, scores = truth(share, len(table.law)) @ table.law, table.decoder[0]
    return float(seen @ scores**2 - (seen @ scores) ** 2)


def p_values(ballot: Ballot, drawn: tuple[Counts, Counts]) -> FloatArray:
    """Return the p-value of every ballot's test, with the formulas of `analysis.contrasts`."""
    sizes = [counts.sum(axis=1) for counts in drawn]
    every = [
        counts @ table.decoder.T / n[:, None]
        for counts, table, n in zip(drawn, ballot.tables, sizes, strict=True)
    ]
    precisions = np.array(
        [n / _spread(table) for table, n in zip(ballot.tables, sizes, strict=True)]
    )
    mean = np.einsum("as,asx->sx", precisions, np.array(every)) / precisions.sum(axis=0)[:, None]
    common = np.array([onto_simplex(row) for row in mean])
    variance = np.zeros(len(common))
    for table, n in zip(ballot.tables, sizes, strict=True):
        variance += (common @ table.law @ table.decoder[0] ** 2 - common[:, 0] ** 2) / n
    z = (every[0][:, 0] - every[1][:, 0]) / np.sqrt(variance)
    return np.asarray(special.erfc(np.abs(z) / sqrt(2)))


def _spread(table: Table) -> float:
    """Return the summed variance of one report's shares if all choices are equally frequent."""
    size = len(table.law)
    seen = np.full(size, 1 / size) @ table.law
    return float(np.sum(table.decoder**2 @ seen) - 1 / size)


def differences(ballot: Ballot, drawn: tuple[Counts, Counts], checked: int) -> Iterator[float]:
    """Yield the differences from the server's own p-values, for some ballots."""
    found = p_values(ballot, drawn)
    for i in range(checked):
        arms = [counts[i] for counts in drawn]
        yield abs(float(found[i]) - _of_server(ballot, arms))


def _of_server(ballot: Ballot, arms: list[Counts]) -> float:
    request = Request()
    samples = [
        _sample(table.mechanism, counts, request)
        for table, counts in zip(ballot.tables, arms, strict=True)
    ]
    contrast = Contrast(samples, (1.0, -1.0), request, 1)
    found, variance = contrast.of("first"), contrast.tested("first", equal=True)
    if found is None or variance is None:
        raise ValueError(f"{ballot.name}: the server tests nothing")
    return two_sided(found.value / sqrt(variance))


def _sample(mechanism: DenseMechanism, counts: Counts, request: Request) -> Sample:
    own = part(mechanism, [int(n) for n in counts])
    pooled = pool([own], request)
    rows = {"first": {"estimate": pooled.mean.unbiased[0], "se": pooled.mean.se[0]}}
    return Sample("", "", [own], [""], pooled, rows, {"first": (0,)})


def size_rejected(ballot: Ballot, drawn: tuple[Counts, Counts]) -> float:
    """Return the share of ballots whose arms' sizes the exact test rejects."""
    first = drawn[0].sum(axis=1)
    chances = ballot.chance, WHOLE - ballot.chance
    values, times = np.unique(first, return_counts=True)
    p = np.array([sizes_test((int(k), ballot.n - int(k)), chances) for k in values])
    return float(times[p <= LEVEL].sum() / len(first))


def ballots() -> Iterator[Ballot]:
    """Yield the split ballots of the bench."""
    for shares, epsilons, choices in product(PAIRS, EPSILONS, (2, 5)):
        first, second = (randomised_response(choices, epsilon) for epsilon in epsilons)
        best = best_share(_variance(first, shares[0]), _variance(second, shares[1]))
        for chance, drawn in (
            (WHOLE // 2, "½"),
            (best, "the best chance"),
            (WHOLE // 5, "a fifth"),
        ):
            percents = " and ".join(f"{100 * share:g} %" for share in shares)
            levels = " and ".join(f"{epsilon:g}" for epsilon in dict.fromkeys(epsilons))
            name = f"{percents}, {choices} choices, ε = {levels}, {drawn}"
            yield Ballot((first, second), shares, shares, chance, name)
