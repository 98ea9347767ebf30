# SPDX-License-Identifier: Apache-2.0
"""Notions about the answers themselves: ldp, dp and metric-ldp."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from frankly_protocol.audit import products, ratios, sets
from frankly_protocol.audit.bounds import times
from frankly_protocol.audit.declared.faults import Fault, is_delta, pair_faults
from frankly_protocol.audit.declared.notion import ByReport, Notion, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import sizes_of, words
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class Ldp(Notion):
    """Q(y|x) ≤ E·Q(y|z) for all answers x and z, and every report y: ε-LDP of the answers."""

    rests_on_prior = False
    carries = ()
    fields = ("level",)
    is_listed = False
    is_of_forms = True

    def data_faults(self, _claim: "Claim", _answers: int, /) -> Iterator[Fault]:
        yield from ()

    def of_table(self, mechanism: DenseMechanism, _claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.answer_ratios(zip(*mechanism.weights, strict=True))

    def of_product(self, mechanism: ProductMechanism, _claim: "Claim", /) -> Iterator[Candidate]:
        return products.answer_ratios(mechanism)

    def of_sets(self, shape: sets.Sets, _claim: "Claim", /) -> Iterator[Candidate]:
        return sets.answer_ratios(shape)

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        return sum(80 * one.answers * one.reports + 1500 * one.reports for one in factors)

    def sets_work(self, _mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return 0: the ratio follows from two numbers."""
        return 0

    def said(self, claim: "Claim", /) -> Said:
        return Said(("answer",), {"ratio": self.lift_bound(claim)})


class Dp(Notion):
    """Q(T|x) ≤ E·Q(T|z) + δ for every set T of reports; the least δ takes the place of the ratio."""

    rests_on_prior = False
    carries = ("delta",)
    fields = ("level", "delta")
    bounds = ("delta",)
    least = 0
    is_listed = False

    def data_faults(self, claim: "Claim", _answers: int, /) -> Iterator[Fault]:
        if not is_delta(claim.delta):
            yield (
                "delta is a ratio n/d of whole numbers below 2^53, zero or more and less than 1",
                "delta",
            )

    def of_table(self, mechanism: DenseMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.excesses(mechanism.weights, *(claim.level or (1, 1)))

    def of_product(self, mechanism: ProductMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        return products.excesses(mechanism, *(claim.level or (1, 1)))

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.excesses(shape, *(claim.level or (1, 1)))

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        """Return the units of every pair of rows; of a product, those of counting likelihoods."""
        cost_per_report = 2000 if len(factors) > 1 else 120
        return sum(one.answers**2 * (5000 + cost_per_report * one.reports) for one in factors)

    def likelihood_work(self, factors: Sequence[DenseMechanism], /) -> int:
        masses = [sum(map(len, products.likelihoods(factor))) for factor in factors]
        return 650 * (3 + words(factors[0].bits * len(masses))) * prod(masses)

    def sets_work(self, _mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return 0: δ follows from three numbers."""
        return 0

    def approximate(self, claim: "Claim", /) -> tuple[Fraction, Fraction] | None:
        if claim.level is None or claim.delta is None:
            return None
        return Fraction(*claim.level), Fraction(*claim.delta)

    def said(self, claim: "Claim", /) -> Said:
        delta = Fraction(*(claim.delta or (0, 1)))
        return Said(("answer_delta",), {"ratio": self.lift_bound(claim)}, delta)


class MetricLdp(ByReport):
    """Q(y|x) ≤ level·L[x][z]·Q(y|z) for the pairs x, z that have a level."""

    rests_on_prior = False
    carries = ("levels",)
    fields = ("level", "levels")

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        return pair_faults(claim.levels, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.pair_ratios(columns, claim.levels or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.pair_ratios(shape, claim.levels or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
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
