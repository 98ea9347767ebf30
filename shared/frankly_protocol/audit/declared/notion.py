# SPDX-License-Identifier: Apache-2.0
"""What the declaration of a notion says, and what notions share that are verified report by report."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from frankly_protocol.audit import products, ratios
from frankly_protocol.audit.declared.faults import Fault, ratio_faults
from frankly_protocol.audit.ratios import Candidate
from frankly_protocol.audit.sets import Sets
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.mechanisms.numbered import SetSymbols

if TYPE_CHECKING:
    from frankly_protocol.audit.claims import Claim


@dataclass(frozen=True, slots=True)
class Said:
    """How the bound of a claim is said: texts in the part "promises" and the exact figures in them.

    names : of the texts; each contains the one before it as {bound}. ratios : as factors, None if
    infinite. chance : in per cent. Both are rounded up. numbers : whole numbers.
    """

    names: tuple[str, ...]
    ratios: Mapping[str, Fraction | None] = field(default_factory=dict)
    chance: Fraction | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)


class Notion(ABC):
    """One privacy notion: everything about it that is not the same for all notions.

    A class that leaves an abstract method out cannot be listed, so what is listed is verified.

    rests_on_prior : True if it depends on a public prior or on lower bounds, and promises nothing
    if they are wrong. carries : fields of a claim, besides notion and level. fields : those of a
    promise in JSON, in their order, besides the name. bounds : fields of a claim that bound its
    ratios; of two, the second bounds the `low` ratios, and one may be left out. least : the ratio
    that every mechanism needs. is_listed : True if the reports of a product have to be listed.
    is_of_forms : True if the agreement kind can promise it. is_posterior : True if it bounds the
    chance of a value, not a ratio, so that it has no level. unit : "odds" or "lift", that of its
    level for a secret.

    `require_sound` has checked all claims but those of `faults`, the bounds and the units of work.
    """

    rests_on_prior: ClassVar[bool] = True
    carries: ClassVar[tuple[str, ...]] = ("joint",)
    fields: ClassVar[tuple[str, ...]] = ("level", "prior")
    bounds: ClassVar[tuple[str, ...]] = ("level",)
    least: ClassVar[int] = 1
    is_listed: ClassVar[bool] = True
    is_of_forms: ClassVar[bool] = False
    is_posterior: ClassVar[bool] = False
    unit: ClassVar[str] = "lift"

    def __init__(self, name: str) -> None:
        self.name = name

    def display_name(self, _claim: "Claim", /) -> str:
        """Return the name to show for a claim."""
        return self.name

    def faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of a claim's level and data; each check may rely on those before it."""
        yield from ratio_faults(claim.level, "level")
        yield from self.data_faults(claim, answers)

    @abstractmethod
    def data_faults(self, claim: "Claim", answers: int, /) -> Iterator[Fault]:
        """Yield the faults of what the claim carries."""

    @abstractmethod
    def of_table(self, mechanism: DenseMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield ratios of a table that include the largest one."""

    @abstractmethod
    def of_product(self, mechanism: ProductMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield ratios of a product that include the largest one."""

    @abstractmethod
    def of_sets(self, sets: Sets, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield ratios of a unary or subset mechanism that include the largest one."""

    @abstractmethod
    def columns_work(self, factors: Sequence[DenseMechanism], claim: "Claim", /) -> int:
        """Return the units of verifying a product of these tables, or a single one."""

    @abstractmethod
    def sets_work(self, mechanism: SetSymbols, claim: "Claim", /) -> int:
        """Return the units of verifying a mechanism whose symbols are sets."""

    def likelihood_work(self, _factors: Sequence[DenseMechanism], /) -> int:
        """Return the units for a product that follow from the likelihoods of its factors."""
        return 0

    def lift_bound(self, claim: "Claim", /) -> Fraction | None:
        """Return E with P(y|s) / P(y) within [1/E, E] under the claim, or None if there is none."""
        return None if claim.level is None else Fraction(*claim.level)

    def odds_bound(self, claim: "Claim", /) -> Fraction | None:
        """Return E with P(y|s) / P(y|t) ≤ E under the claim, or None if there is none."""
        return self.lift_bound(claim)

    def approximate(self, _claim: "Claim", /) -> tuple[Fraction, Fraction] | None:
        """Return (E, δ) if the claim bounds all answers up to δ under every prior, else None."""
        return None

    def said(self, claim: "Claim", /) -> Said:
        """Return how the bound is said."""
        return Said(("odds",), {"up": self.lift_bound(claim)})


class ByReport(Notion):
    """A notion that is verified report by report."""

    @abstractmethod
    def of_columns(self, columns: ratios.Columns, claim: "Claim", /) -> Iterator[Candidate]:
        """Yield ratios of these columns, each with the number of its column as the report."""

    def of_table(self, mechanism: DenseMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        return self.of_columns(zip(*mechanism.weights, strict=True), claim)

    def of_product(self, mechanism: ProductMechanism, claim: "Claim", /) -> Iterator[Candidate]:
        symbols = list(mechanism.symbols())
        return (
            c._replace(report=symbols[int(c.report)])  # type: ignore[arg-type]
            for c in self.of_columns(products.columns(mechanism), claim)
        )
