# SPDX-License-Identifier: Apache-2.0
"""Choices of a design: its notions, mechanism, objective and explicit parameters."""

from fractions import Fraction
from typing import Annotated

from frankly_protocol.problems import Problem
from pydantic import AfterValidator, Field

from frankly_design.engine.request import MECHANISMS
from frankly_design.families import Explicit
from frankly_design.families.family import REGIONS
from frankly_design.notions.lift_criteria import MAX_ORDER, MEASURES, Measure
from frankly_design.optimum.solver import CRITERIA
from frankly_design.requests.fields import Ceiling, ClosedModel, OneOf, Probability, Whole, custom
from frankly_design.requests.levels import Levels
from frankly_design.tables.objectives import OBJECTIVES


def _order(order: int) -> int:
    if not 2 <= order <= MAX_ORDER:
        raise custom(Problem.FIELD_TYPE, f"the order is a whole number from 2 to {MAX_ORDER}")
    return order


class ExplicitParameters(ClosedModel):
    """Parameters of a mechanism that its level does not determine; `design` checks their use.

    p00, p11 : probabilities that answers 0 and 1 are reported unchanged. alpha : the family's
    level, in nats. region : honest or whole, for two answers under dp. lift_measure, lift_order :
    the measure that the watchdog mechanisms bound, and its order. The notion and its level are
    still promised: parameters that break the promise are refused.
    """

    p00: Probability | None = None
    p11: Probability | None = None
    alpha: Ceiling | None = None
    region: Annotated[str, OneOf("regions", REGIONS)] | None = None
    lift_measure: (
        Annotated[Measure, OneOf("measures", tuple(m for m in MEASURES if m != "ldp"))] | None
    ) = None
    lift_order: Annotated[Whole, AfterValidator(_order)] | None = None

    @property
    def explicit(self) -> Explicit:
        """The parameters that are set, as `design` expects them."""
        # Exact, because a rounded probability would define another mechanism.
        exact = {
            name: None if text is None else Fraction(text)
            for name, text in (("p00", self.p00), ("p11", self.p11), ("alpha", self.alpha))
        }
        return Explicit(
            **exact,
            region=self.region or "honest",
            lift_measure=self.lift_measure or "lift",
            lift_order=self.lift_order or 2,
        )

    @property
    def replaces_level(self) -> bool:
        """True if p00, p11 or alpha is given, so that the level may be omitted."""
        return any(value is not None for value in (self.p00, self.p11, self.alpha))


class DesignChoices(ExplicitParameters, Levels):
    """A notion with its levels, or several notions, and the choice of a mechanism.

    notions : several that must all hold, instead of `notion`. ceiling_cap : additional level of LDP
    of the answer, in nats: a backstop in case the prior is false.
    """

    notions: Annotated[tuple[Levels, ...], Field(min_length=1, max_length=16)] = ()
    ceiling_cap: Ceiling | None = None
    mechanism: Annotated[str, OneOf("mechanisms", MECHANISMS)] = "optimal"
    objective: Annotated[str, OneOf("objectives", OBJECTIVES)] = "variance"
    criterion: Annotated[str, OneOf("criteria", CRITERIA)] = "total"

    @property
    def protections(self) -> tuple[Levels, ...]:
        """The requested notions with their levels."""
        return self.notions or (self,)
