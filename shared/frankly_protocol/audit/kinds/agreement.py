# SPDX-License-Identifier: Apache-2.0
"""The agreement kind has two weights, whose ratio is its level for all answers together."""

from collections.abc import Iterator

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.kinds.verifier import Verifier
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import AgreementMechanism


class AgreementVerifier(Verifier[AgreementMechanism]):
    """Verifies the agreement kind, which can promise ldp only."""

    def require_promisable(self, _mechanism: AgreementMechanism, claim: Claim, /) -> None:
        """Raise DocumentRejected("privacy") unless a form can promise the notion."""
        if not DECLARED[claim.notion].is_of_forms:
            promised = " and ".join(name for name, one in DECLARED.items() if one.is_of_forms)
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: of the agreement kind only {promised} can be promised",
                "notion",
            )

    def size_work(self, _mechanism: AgreementMechanism, _claim: Claim, /) -> int:
        """Return 0: two numbers determine the level, and the constructor has checked the covers."""
        return 0

    def candidates(self, mechanism: AgreementMechanism, _claim: Claim, /) -> Iterator[Candidate]:
        """Yield the ratio of the two weights.

        Every cover is uniform and every class of outcomes is possible (checked by the constructor),
        so some report has both weights, and no ratio exceeds theirs.
        """
        yield Candidate(mechanism.agree, mechanism.disagree, self.some(mechanism), (0, 0))

    def some(self, mechanism: AgreementMechanism) -> tuple[int, ...]:
        """Return the first symbol."""
        component = mechanism.components[0]
        # Not the first of `symbols()`, which lists all choices of parts before it yields one.
        parts = (part for pool in component.pools for part in pool.parts[: pool.pick])
        return (0, *(number for part in parts for number in (part, 0)))
