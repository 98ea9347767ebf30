# SPDX-License-Identifier: Apache-2.0
"""What the verifier of a kind has to know; everything else is the same for all kinds."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.mechanisms import Symbol

Kind = TypeVar("Kind")


def joint_work(claim: Claim, answers: int) -> int:
    """Return the units of reading the counts of a prior."""
    return len(claim.joint or ()) * answers * 100


class Verifier(ABC, Generic[Kind]):
    """One way of verifying mechanisms exactly; `require_sound` has checked every claim."""

    def require_promisable(self, mechanism: Kind, claim: Claim) -> None:
        """Raise DocumentRejected("privacy") if the kind cannot promise the claim, whatever its level."""

    @abstractmethod
    def size_work(self, mechanism: Kind, claim: Claim) -> int:
        """Return the units that follow from sizes alone, with those of counting likelihoods."""

    def likelihood_work(self, _mechanism: Kind, _claim: Claim, /) -> int:
        """Return the units that follow from the number of distinct likelihoods."""
        return 0

    @abstractmethod
    def candidates(self, mechanism: Kind, claim: Claim) -> Iterator[Candidate]:
        """Yield ratios that include the largest one of the claim."""

    @abstractmethod
    def some(self, mechanism: Kind) -> Symbol:
        """Return a symbol that can be sent."""
