# SPDX-License-Identifier: Apache-2.0
"""Privacy notions with their levels, as in requests and survey files (spec 1.4)."""

from typing import Annotated, Any, Final

from frankly_protocol.mechanisms.base import MAX_ANSWERS
from pydantic import Field, PlainValidator, WithJsonSchema

from frankly_design.notions.declared.registry import DECLARED, ONE_SIDED
from frankly_design.requests.fields import (
    ClosedModel,
    Delta,
    Epsilon,
    Flag,
    Number,
    OneOf,
    PairLevel,
    Side,
    Whole,
    slug,
)

__all__ = ["LEVELS", "ONE_SIDED", "Levels", "NotionName", "RobustBall"]

NotionName = Annotated[str, OneOf("notions", tuple(DECLARED))]


def _secret(value: Any) -> str | int:
    # type() instead of isinstance, because bool is a subclass of int.
    return value if type(value) is int else slug(value)


class RobustBall(ClosedModel):
    """A Rényi ball of `order` around counts of n people, with confidence 1 − beta [Robust Def 2].

    `design.notions.balls.confidence_ball` checks the ranges.
    """

    order: Number
    n: Whole
    beta: Number


class Levels(ClosedModel):
    """A notion with its levels; `claims` checks which levels the notion has.

    epsilon, epsilon_low, epsilon_high : nats as decimal texts; "inf" for a side of alip that is not
    promised. pml and pmc, alip with one side, have an epsilon. epsilons : for metric-ldp, nats of
    every answer (row) against every other (column); "inf" for a pair without a promise. delta,
    dpv : probabilities. attributes : number of values of each attribute. robust, diagonal : for
    rldp. sensitive : name or row of the secret's value that dpv protects.
    """

    notion: NotionName | None = None
    epsilon: Epsilon | None = None
    epsilon_low: Side = None
    epsilon_high: Side = None
    delta: Delta | None = None
    dpv: Number | None = None
    epsilons: Annotated[tuple[tuple[PairLevel, ...], ...], Field(max_length=MAX_ANSWERS)] = ()
    attributes: Annotated[tuple[Whole, ...], Field(max_length=8)] = ()
    robust: RobustBall | None = None
    diagonal: Flag = False
    sensitive: Annotated[
        str | int | None,
        PlainValidator(_secret),
        WithJsonSchema({"type": ["string", "integer"], "description": "A secret: name or row."}),
    ] = None

    @property
    def given(self) -> frozenset[str]:
        """The levels that are not at their defaults."""
        return frozenset(name for name in LEVELS if getattr(self, name) != _DEFAULTS[name])

    @property
    def is_prior_based(self) -> bool:
        """True if the notion needs a prior."""
        return self.notion is not None and DECLARED[self.notion].is_prior_based

    @property
    def has_pair_levels(self) -> bool:
        """True if the notion has a level for each pair of answers."""
        return self.notion is not None and DECLARED[self.notion].has_pair_levels

    @property
    def has_pairs(self) -> bool:
        """True if answers are pairs (s, u) under the notion."""
        return self.notion is not None and DECLARED[self.notion].has_pairs


# Every field is a level except the notion.
_DEFAULTS: Final = {
    name: field.default for name, field in Levels.model_fields.items() if name != "notion"
}
LEVELS: Final = frozenset(_DEFAULTS)
