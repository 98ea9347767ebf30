# SPDX-License-Identifier: Apache-2.0
"""Coverage of intervals about several groups: differences, weighted sums and populations.

A cell is one figure of one mechanism and one number of reports. 24 of them run by default and 256
under `--full`, each in 1,000 simulated surveys there. Every one covers between 93.5 and 96.5 %, but
for a Monte Carlo error that has a chance of 1e-6 over all cells.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import pytest
from frankly_protocol.mechanisms import DenseMechanism
from scipy import stats

from tests.frankly_server.analysis.samples import (
    LIP,
    block_about,
    document_of,
    grr,
    law,
    question,
    received,
    result,
)

SHARES = {2: ((0.2, 0.8), (0.35, 0.65), (0.5, 0.5)),
          4: ((0.4, 0.3, 0.2, 0.1), (0.25, 0.25, 0.25, 0.25), (0.3, 0.15, 0.25, 0.3))}  # fmt: skip
"""True shares of the three groups, by the number of choices."""
SIZES = {"c0": 5, "c1": 3, "c2": 2}
SAMPLED = (2, 1, 1)
"""Reports of the groups are in this proportion, unlike the sizes of the population."""
MECHANISMS: Mapping[str, DenseMechanism] = {
    "two choices, ε 1": grr(2, 1), "two choices, ε 3": grr(2, 3), "four choices, ε 1": grr(4, 1),
    "four choices, ε 2": grr(4, 2), "four choices, LIP": LIP,
}  # fmt: skip
Ends = tuple[float, float, float]
"""Both ends of an interval and the truth."""


def _figures(
    mechanism: DenseMechanism,
    counts: Mapping[str, np.ndarray],
    method: str,
    sizes: Mapping[str, int],
) -> Iterator[Ends]:
    """Yield the intervals of the differences of all pairs of groups and of the population."""
    k = mechanism.answers
    shares = np.array(SHARES[k])
    document = document_of((block_about(mechanism, question("q", k)),), (question("region", 3),))
    found = result(
        received(document, counts),
        by="region",
        compare="all",
        method=method,
        group_sizes=json.dumps(sizes),
    )
    (compared,) = found["comparisons"]
    pairs = [shares[j] - shares[i] for i, j in combinations(range(3), 2)]
    for row, truth in zip(compared["rows"], np.concatenate(pairs), strict=True):
        yield row["low"], row["high"], float(truth)
    population = np.array([*SIZES.values()]) / sum(SIZES.values()) @ shares
    for row, truth in zip(found["questions"][-1]["rows"], population, strict=True):
        assert row["by"] == "weighted=region"
        yield row["low"], row["high"], float(truth)


def _covered(
    name: str, n: int, method: str, runs: int, believed: Mapping[str, int] = SIZES
) -> np.ndarray:
    """Return in how many of the surveys each interval contains the truth of the population of `SIZES`."""
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(n)
    rates = np.array(SHARES[mechanism.answers]) @ law(mechanism)
    parts = [n * part // sum(SAMPLED) for part in SAMPLED]
    held = []
    for _ in range(runs):
        counts = {f"c{g}": rng.multinomial(parts[g], rates[g]) for g in range(3)}
        held.append(
            [
                low <= truth <= high
                for low, high, truth in _figures(mechanism, counts, method, believed)
            ]
        )
    return np.sum(held, axis=0)


BOUNDS = (0.935, 0.965)
FEW, MANY = 150, 1000
"""Simulated surveys of a case by default, and under `--full`."""
DEFAULT = (("two choices, ε 1", 1000), ("four choices, ε 1", 1000))
CASES = [
    pytest.param(name, n, marks=() if (name, n) in DEFAULT else pytest.mark.full_only)
    for n in (500, 1000, 2000, 10_000)
    for name in MECHANISMS
]


@pytest.mark.parametrize(("name", "n"), CASES)
def test_differences_and_populations_are_covered_at_their_level(
    name: str, n: int, full: bool
) -> None:
    runs, cells = (MANY, 256) if full else (FEW, 24)
    covered = _covered(name, n, "score", runs)
    # Bonferroni over all cells and both bounds: a right interval fails with a chance below 1e-6.
    chance = 1e-6 / (2 * cells)
    assert covered.min() >= stats.binom(runs, BOUNDS[0]).ppf(chance), covered / runs
    assert covered.max() <= stats.binom(runs, BOUNDS[1]).isf(chance), covered / runs


def test_a_wrong_variance_is_found() -> None:
    """Intervals of weights that are taken for those of the sample miss their level by far."""
    covered = _covered("two choices, ε 1", 1000, "score", FEW, believed={"c0": 1, "c1": 1, "c2": 8})
    assert covered[-2:].max() < stats.binom(FEW, BOUNDS[0]).ppf(1e-6 / 48)
