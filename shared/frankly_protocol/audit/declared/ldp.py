# SPDX-License-Identifier: Apache-2.0
"""ldp: ε-LDP of the answers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from frankly_protocol.audit import products, ratios, sets
from frankly_protocol.audit.declared.faults import Fault
from frankly_protocol.audit.declared.notion import Notion, Said
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class Ldp(Notion):
    """Q(y|x) ≤ E·Q(y|z) for all answers x and z, and every report y."""

    rests_on_prior = False
    carries = ()
    fields = ("level",)
    is_listed = False
    is_of_forms = True

    def data_faults(self, _claim: "Claim", _answers: int, /) -> Iterator[Fault]:
        """Yield nothing: there is no data."""
        yield from ()

    def of_table(self, mechanism: DenseMechanism, _claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the ratio of every report."""
        return ratios.answer_ratios(zip(*mechanism.weights, strict=True))

    def of_product(self, mechanism: ProductMechanism, _claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the product of the factors' ratios."""
        return products.answer_ratios(mechanism)

    def of_sets(self, shape: sets.Sets, _claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the ratio that all reports share."""
        return sets.answer_ratios(shape)

    def columns_work(self, factors: Sequence[DenseMechanism], _claim: "Claim", /) -> int:
        """Return the units of reading every table."""
        return sum(80 * one.answers * one.reports + 1500 * one.reports for one in factors)

    def sets_work(self, _mechanism: SetSymbols, _claim: "Claim", /) -> int:
        """Return 0: the ratio follows from two numbers."""
        return 0

    def said(self, claim: "Claim", /) -> Said:
        """Return the sentence about the answer itself."""
        return Said(("answer",), {"ratio": self.lift_bound(claim)})
