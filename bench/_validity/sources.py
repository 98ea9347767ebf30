# SPDX-License-Identifier: Apache-2.0
"""Flags of sources: five of 2,000 people each, one of which perhaps has fakes that tick at random.

The anchor is a yes/no question to which everybody who reads says no, asked of everybody at ε = 2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from frankly_design.estimate.anchors import Anchored, AnchorScore, Counted, Stack
from frankly_design.estimate.source_flags import is_flagged, source_tests
from frankly_protocol.mechanisms import DenseMechanism

SOURCES, PEOPLE, BITS = 5, 2000, 32


@dataclass(frozen=True)
class Case:
    """base : share of people who answer at random; fakes : of one source, the share that is forged.

    demand : in per cent of the surveys in which that source is flagged; without fakes, in which any is.
    """

    base: float
    fakes: float
    demand: tuple[float, float]

    @property
    def name(self) -> str:
        """The case in words."""
        forged = f"{self.fakes:.0%} of one source forged" if self.fakes else "no fakes"
        return f"{forged}, {self.base:.0%} of all others answer at random"


FOUND = (Case(0.0, 0.1, (97, 100)), Case(0.1, 0.1, (89, 92)), Case(0.2, 0.1, (73, 78)))
UNFOUNDED = tuple(Case(base, 0.0, (0, 6)) for base in (0.0, 0.1, 0.2))
BESIDE = (0.0, 1.0)


def flags(case: Case, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return in how many surveys the first source is flagged, and in how many another one, in per cent."""
    keep = round((1 << BITS) / (1 + exp(-2)))
    mechanism = DenseMechanism(BITS, ((keep, (1 << BITS) - keep), ((1 << BITS) - keep, keep)))
    score = AnchorScore.of(mechanism, (Fraction(1), Fraction(0)), (Fraction(1, 2),) * 2)
    assert score is not None  # noqa: S101 - the shares differ from those of random answers
    random = [case.base + case.fakes * (1 - case.base) * (source == 0) for source in range(SOURCES)]
    share = keep / (1 << BITS)
    said = rng.binomial(PEOPLE, [(1 - r) * share + r / 2 for r in random], (runs, SOURCES))
    first = others = 0
    for counts in said:
        sources = [
            Anchored(PEOPLE, (Stack(PEOPLE, (Counted(score, np.array([n, PEOPLE - n])),), (1.0,)),))
            for n in counts
        ]
        flagged = [is_flagged(p, SOURCES) for p in source_tests(sources) or ()]
        first, others = first + flagged[0], others + any(flagged[1:])
    return 100 * first / runs, 100 * others / runs


def measured(
    runs: int, rng: np.random.Generator
) -> Iterator[tuple[str, float, tuple[float, float]]]:
    """Yield case, per cent of the surveys and demand."""
    for case in FOUND:
        found, beside = flags(case, runs, rng)
        yield f"found: {case.name}", found, case.demand
        yield f"another one flagged: {case.name}", beside, BESIDE
    for case in UNFOUNDED:
        first, others = flags(case, runs, rng)
        # At most: surveys in which the first and another one are flagged count twice.
        yield f"any flagged, at most: {case.name}", first + others, case.demand
