# SPDX-License-Identifier: Apache-2.0
"""The verifier of every kind of mechanism: one class for each way of verifying."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.sets import Sets
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    Symbol,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.base import MAX_REPORTS
from frankly_protocol.mechanisms.numbered import SetSymbols

Kind = TypeVar("Kind")


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


class TableVerifier(Verifier[DenseMechanism]):
    """Verifies the dense kind."""

    def size_work(self, mechanism: DenseMechanism, claim: Claim) -> int:
        work = DECLARED[claim.notion].columns_work((mechanism,), claim)
        return _joint_work(claim, mechanism.answers) + work

    def candidates(self, mechanism: DenseMechanism, claim: Claim) -> Iterator[Candidate]:
        return DECLARED[claim.notion].of_table(mechanism, claim)

    def some(self, _mechanism: DenseMechanism, /) -> int:
        return 0


class SetVerifier(Verifier[SetSymbols]):
    """Verifies the unary and the subset kind."""

    def size_work(self, mechanism: SetSymbols, claim: Claim) -> int:
        work = DECLARED[claim.notion].sets_work(mechanism, claim)
        return _joint_work(claim, mechanism.answers) + work

    def candidates(self, mechanism: SetSymbols, claim: Claim) -> Iterator[Candidate]:
        return DECLARED[claim.notion].of_sets(Sets.of(mechanism), claim)

    def some(self, mechanism: SetSymbols) -> int:
        return Sets.of(mechanism).some()


class ProductVerifier(Verifier[ProductMechanism]):
    """Verifies the product kind."""

    def require_promisable(self, mechanism: ProductMechanism, claim: Claim) -> None:
        if DECLARED[claim.notion].is_listed and mechanism.reports > MAX_REPORTS:
            others = " and ".join(name for name, one in DECLARED.items() if not one.is_listed)
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: a product of more than {MAX_REPORTS} reports can be verified for "
                f"{others} only",
                "notion",
            )

    def size_work(self, mechanism: ProductMechanism, claim: Claim) -> int:
        work = DECLARED[claim.notion].columns_work(mechanism.factors, claim)
        return _joint_work(claim, mechanism.answers) + work

    def likelihood_work(self, mechanism: ProductMechanism, claim: Claim) -> int:
        return DECLARED[claim.notion].likelihood_work(mechanism.factors)

    def candidates(self, mechanism: ProductMechanism, claim: Claim) -> Iterator[Candidate]:
        return DECLARED[claim.notion].of_product(mechanism, claim)

    def some(self, mechanism: ProductMechanism) -> tuple[int, ...]:
        return (0,) * len(mechanism.factors)


class AgreementVerifier(Verifier[AgreementMechanism]):
    """Verifies the agreement kind, which can promise ldp only."""

    def require_promisable(self, _mechanism: AgreementMechanism, claim: Claim, /) -> None:
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
        component = mechanism.components[0]
        # Not the first of `symbols()`, which lists all choices of parts before it yields one.
        parts = (part for pool in component.pools for part in pool.parts[: pool.pick])
        return (0, *(number for part in parts for number in (part, 0)))


def _joint_work(claim: Claim, answers: int) -> int:
    """Return the units of reading the counts of a prior."""
    return len(claim.joint or ()) * answers * 100


_VERIFIERS: Final[Mapping[str, Verifier[Any]]] = {
    DenseMechanism.kind: TableVerifier(),
    UnaryMechanism.kind: SetVerifier(),
    SubsetMechanism.kind: SetVerifier(),
    ProductMechanism.kind: ProductVerifier(),
    AgreementMechanism.kind: AgreementVerifier(),
}


def verifier_of(mechanism: AnyMechanism) -> Verifier[Any]:
    """Return the verifier of a mechanism's kind; a subclass has the one of its kind."""
    return _VERIFIERS[mechanism.kind]
