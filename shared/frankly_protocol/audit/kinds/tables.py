# SPDX-License-Identifier: Apache-2.0
"""Tables are verified report by report, or row by row."""

from collections.abc import Iterator

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.kinds.verifier import Verifier, joint_work
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.mechanisms import DenseMechanism


class TableVerifier(Verifier[DenseMechanism]):
    """Verifies the dense kind."""

    def size_work(self, mechanism: DenseMechanism, claim: Claim) -> int:
        """Return the units that follow from sizes."""
        work = DECLARED[claim.notion].columns_work((mechanism,), claim)
        return joint_work(claim, mechanism.answers) + work

    def candidates(self, mechanism: DenseMechanism, claim: Claim) -> Iterator[Candidate]:
        """Yield ratios that include the largest one of the claim."""
        return DECLARED[claim.notion].of_table(mechanism, claim)

    def some(self, _mechanism: DenseMechanism, /) -> int:
        """Return the first symbol."""
        return 0
