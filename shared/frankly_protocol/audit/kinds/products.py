# SPDX-License-Identifier: Apache-2.0
"""Products are verified factor by factor, or by listing their reports if a notion requires it."""

from collections.abc import Iterator

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.kinds.verifier import Verifier, joint_work
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import ProductMechanism
from frankly_protocol.mechanisms.base import MAX_REPORTS


class ProductVerifier(Verifier[ProductMechanism]):
    """Verifies the product kind."""

    def require_promisable(self, mechanism: ProductMechanism, claim: Claim) -> None:
        """Raise DocumentRejected("privacy") if too many reports would have to be listed."""
        if DECLARED[claim.notion].is_listed and mechanism.reports > MAX_REPORTS:
            others = " and ".join(name for name, one in DECLARED.items() if not one.is_listed)
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: a product of more than {MAX_REPORTS} reports can be verified for "
                f"{others} only",
                "notion",
            )

    def size_work(self, mechanism: ProductMechanism, claim: Claim) -> int:
        """Return the units that follow from sizes; for dp, those of counting likelihoods."""
        work = DECLARED[claim.notion].columns_work(mechanism.factors, claim)
        return joint_work(claim, mechanism.answers) + work

    def likelihood_work(self, mechanism: ProductMechanism, claim: Claim) -> int:
        """Return the units of convolving the likelihoods of the factors, for dp."""
        return DECLARED[claim.notion].likelihood_work(mechanism.factors)

    def candidates(self, mechanism: ProductMechanism, claim: Claim) -> Iterator[Candidate]:
        """Yield ratios that include the largest one of the claim."""
        return DECLARED[claim.notion].of_product(mechanism, claim)

    def some(self, mechanism: ProductMechanism) -> tuple[int, ...]:
        """Return the first symbol."""
        return (0,) * len(mechanism.factors)
