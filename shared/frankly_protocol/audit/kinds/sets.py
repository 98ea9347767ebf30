# SPDX-License-Identifier: Apache-2.0
"""Unary and subset mechanisms are verified by the shape that all their reports share."""

from collections.abc import Iterator

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.kinds.verifier import Verifier, joint_work
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.sets import Sets
from frankly_protocol.mechanisms.numbered import SetSymbols


class SetVerifier(Verifier[SetSymbols]):
    """Verifies the unary and the subset kind."""

    def size_work(self, mechanism: SetSymbols, claim: Claim) -> int:
        """Return the units that follow from sizes."""
        work = DECLARED[claim.notion].sets_work(mechanism, claim)
        return joint_work(claim, mechanism.answers) + work

    def candidates(self, mechanism: SetSymbols, claim: Claim) -> Iterator[Candidate]:
        """Yield the ratios of the worst sets."""
        return DECLARED[claim.notion].of_sets(Sets.of(mechanism), claim)

    def some(self, mechanism: SetSymbols) -> int:
        """Return a set that can be sent."""
        return Sets.of(mechanism).some()
