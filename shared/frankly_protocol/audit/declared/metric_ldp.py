# SPDX-License-Identifier: Apache-2.0
"""metric-ldp: a level for each pair of answers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from frankly_protocol.audit import ratios, sets
from frankly_protocol.audit.bounds import times
from frankly_protocol.audit.declared.cost import sizes_of
from frankly_protocol.audit.declared.faults import Fault, pair_faults
from frankly_protocol.audit.declared.notion import ByReport, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class MetricLdp(ByReport):
    """Q(y|x) ≤ level·L[x][z]·Q(y|z) for the pairs x, z that have a level."""

    rests_on_prior = False
    carries = ("levels",)
    fields = ("level", "levels")

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of the levels."""
        return pair_faults(claim.levels, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the largest ratio of every report."""
        return ratios.pair_ratios(columns, claim.levels or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the ratio of the pair with the least level."""
        return sets.pair_ratios(shape, claim.levels or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        """Return the units of every pair that has a level, in every column."""
        a, b, size = sizes_of(factors)
        pairs = sum(map(bool, (ratio for row in claim.levels or () for ratio in row)))
        return a * a * 3000 + b * (a * 40 * size + pairs * 200 * size)

    def sets_work(self, mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return the units of reading the levels."""
        return mechanism.answers**2 * 3000

    def lift_bound(self, claim: "Claim", /) -> Fraction | None:
        """Return the largest level of a pair; None if a pair has none."""
        if claim.level is None:
            return None
        levels = _levels(claim)
        finite = [level for level in levels if level is not None]
        return max(finite) if len(finite) == len(levels) else None

    def said(self, claim: "Claim", /) -> Said:
        """Return the sentence with the least and the largest level, and how many pairs have none."""
        levels = _levels(claim)
        finite = sorted(level for level in levels if level is not None)
        least, most = finite[0], finite[-1]
        # Levels that look the same are shown as one.
        name = "pairs" if times(least) == times(most) else "pairs_range"
        unlimited = len(levels) - len(finite)
        names = (name, "pairs_open") if unlimited else (name,)
        numbers = {"open": unlimited, "all": len(levels)}
        return Said(names, {"least": least, "most": most}, numbers=numbers)


def _levels(claim: "Claim") -> list[Fraction | None]:
    """Return the level of every pair of different answers, None if it has none."""
    factor = Fraction(*(claim.level or (1, 1)))
    return [
        ratio and factor * Fraction(*ratio)
        for x, row in enumerate(claim.levels or ())
        for z, ratio in enumerate(row)
        if x != z
    ]
