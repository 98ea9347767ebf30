# SPDX-License-Identifier: Apache-2.0
"""secret-ldp: ε-LDP of a secret, under a public prior (Funnel, Definition 1)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from frankly_protocol.audit import ratios, sets
from frankly_protocol.audit.declared.cost import average_work, positive
from frankly_protocol.audit.declared.faults import Fault, joint_faults
from frankly_protocol.audit.declared.notion import ByReport
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.units import search_steps
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


class SecretLdp(ByReport):
    """P(y|s) ≤ E·P(y|t) for all secrets s and t, and every report y."""

    unit = "odds"

    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of the prior."""
        return joint_faults(claim.joint, answers)

    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the ratio of every report."""
        return ratios.secret_ratios(columns, claim.joint or ())

    def of_sets(self, shape: sets.Sets, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield the ratios of the worst sets."""
        return sets.secret_ratios(shape, claim.joint or ())

    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        """Return the units of an average for every secret."""
        joint = claim.joint or ()
        return average_work(factors, len(joint), positive(joint))

    def sets_work(self, mechanism: SetSymbols, claim: "Claim", /) -> int:
        """Return the units of a search for every ordered pair of secrets."""
        searches = len(claim.joint or ()) * (len(claim.joint or ()) - 1)
        return 800 * mechanism.answers * search_steps(searches) + 8000 * searches
