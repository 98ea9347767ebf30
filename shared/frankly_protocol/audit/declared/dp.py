# SPDX-License-Identifier: Apache-2.0
"""dp: (ε, δ)-DP of the answers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from frankly_protocol.audit import products, ratios, sets
from frankly_protocol.audit.declared.faults import Fault, is_delta
from frankly_protocol.audit.declared.notion import Notion, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import words
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class Dp(Notion):
    """Q(T|x) ≤ E·Q(T|z) + δ for every set T of reports; the least δ takes the place of the ratio."""

    rests_on_prior = False
    carries = ("delta",)
    fields = ("level", "delta")
    bounds = ("delta",)
    least = 0
    is_listed = False

    def data_faults(self, claim: "Claim", _answers: int, /) -> Iterator[Fault]:
        """Yield the fault of δ."""
        if not is_delta(claim.delta):
            yield (
                "delta is a ratio n/d of whole numbers below 2^53, zero or more and less than 1",
                "delta",
            )

    def of_table(self, mechanism: DenseMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the δ of every pair of answers."""
        return ratios.excesses(mechanism.weights, *(claim.level or (1, 1)))

    def of_product(self, mechanism: ProductMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the largest δ, from the likelihoods of the factors."""
        return products.excesses(mechanism, *(claim.level or (1, 1)))

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the δ that all pairs of answers share."""
        return sets.excesses(shape, *(claim.level or (1, 1)))

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        """Return the units of every pair of rows; of a product, those of counting likelihoods."""
        cost_per_report = 2000 if len(factors) > 1 else 120
        return sum(one.answers**2 * (5000 + cost_per_report * one.reports) for one in factors)

    def likelihood_work(self, factors: Sequence[DenseMechanism], /) -> int:
        """Return the units of convolving the likelihoods of the factors."""
        masses = [sum(map(len, products.likelihoods(factor))) for factor in factors]
        return 650 * (3 + words(factors[0].bits * len(masses))) * prod(masses)

    def sets_work(self, _mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return 0: δ follows from three numbers."""
        return 0

    def approximate(self, claim: "Claim", /) -> tuple[Fraction, Fraction] | None:
        """Return (E, δ)."""
        if claim.level is None or claim.delta is None:
            return None
        return Fraction(*claim.level), Fraction(*claim.delta)

    def said(self, claim: "Claim", /) -> Said:
        """Return the sentence about the answer itself, up to δ."""
        delta = Fraction(*(claim.delta or (0, 1)))
        return Said(("answer_delta",), {"ratio": self.lift_bound(claim)}, delta)
