# SPDX-License-Identifier: Apache-2.0
"""LDP of a secret: under a prior, or for all distributions above lower bounds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from frankly_protocol.audit import ratios, sets
from frankly_protocol.audit.declared.faults import Fault, bound_faults, joint_faults
from frankly_protocol.audit.declared.notion import ByReport
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import (
    average_work,
    listed_work,
    positive,
    scale_bits,
    search_steps,
    sizes_of,
    words,
)
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class SecretLdp(ByReport):
    """P(y|s) ≤ E·P(y|t) for all secrets s and t, and every report y (Funnel, Def. 1)."""

    unit = "odds"

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        return joint_faults(claim.joint, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.secret_ratios(columns, claim.joint or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.secret_ratios(shape, claim.joint or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        joint = claim.joint or ()
        return average_work(factors, len(joint), positive(joint))

    def sets_work(self, mechanism: SetSymbols, claim: "Claim", /) -> int:
        searches = len(claim.joint or ()) * (len(claim.joint or ()) - 1)
        return 800 * mechanism.answers * search_steps(searches) + 8000 * searches


class Rldp(ByReport):
    """secret-ldp, whichever distributions above the lower bounds are true (Robust, Def. 1)."""

    carries = ("lower_bounds", "diagonal")
    fields = ("level", "lower_bounds", "diagonal", "secret", "source")
    unit = "odds"

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        yield from bound_faults(claim.lower_bounds, answers)
        if type(claim.diagonal) is not bool:
            yield "expected true or false", "diagonal"

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        return ratios.robust_ratios(columns, claim.lower_bounds or (), diagonal=claim.diagonal)

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        return sets.robust_ratios(shape, claim.lower_bounds or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        """Return the units of a supremum and an infimum for every secret."""
        a, b, size = sizes_of(factors)
        bounds = claim.lower_bounds or ()
        secrets, large = len(bounds), size + words(scale_bits(bounds))
        return (
            listed_work(factors)
            + a * 300 * large
            + b * (a * (250 + 3 * large) + secrets * (800 + 3 * large) + 24 * large**2)
        )

    def sets_work(self, mechanism: SetSymbols, claim: "Claim", /) -> int:
        """Return the units of sorting the bounds of every secret."""
        a, bounds = mechanism.answers, claim.lower_bounds or ()
        return a * 300 * (3 + words(scale_bits(bounds))) + len(bounds) * 2000 + a**2 * 40
