# SPDX-License-Identifier: Apache-2.0
"""Privacy notions and levels in survey files, with the keys of `frankly design`."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from frankly_protocol.audit import PRIOR_BASED
from frankly_protocol.problems import Problem
from pydantic import Field, ValidationInfo, field_validator

from frankly_server.surveys.fields import (
    Cell,
    ClosedModel,
    Epsilon,
    Flag,
    Side,
    Slug,
    Whole,
    custom,
)

NotionName = Literal["ldp", "dp", "secret-ldp", "lip", "alip", "srlip", "rldp", "dpv"]
# alip has two levels, and dpv a probability instead.
_ONE_LEVEL: Final = ("ldp", "dp", "secret-ldp", "lip", "srlip", "rldp")
_TEXT_FIELDS: Final = ("epsilon", "epsilon_low", "epsilon_high", "delta", "dpv")


class RobustDefinition(ClosedModel):
    """A Rényi ball of `order` around counts of n people, with confidence 1 − beta."""

    order: Cell
    n: Whole
    beta: Cell

    def request_fields(self) -> dict[str, Any]:
        """Return the ball as `design` reads it."""
        order = Decimal(self.order)
        return {
            "order": int(order) if order == int(order) else order,
            "n": self.n,
            "beta": self.beta,
        }


class Levels(ClosedModel):
    """A notion with its levels; `design` checks which levels it takes.

    epsilon, epsilon_low, epsilon_high : nats as decimal texts; "inf" for a side of alip that is not
    promised. delta, dpv : probabilities. attributes : number of values of each attribute. robust,
    diagonal : for rldp. sensitive : name of the secret's value that dpv protects.
    """

    notion: NotionName | None = None
    # validate_default, because the check of a missing level must run too.
    epsilon: Annotated[Epsilon | None, Field(validate_default=True)] = None
    epsilon_low: Side | None = None
    epsilon_high: Side | None = None
    delta: Cell | None = None
    dpv: Cell | None = None
    attributes: Annotated[tuple[Whole, ...], Field(max_length=8)] = ()
    robust: RobustDefinition | None = None
    diagonal: Flag = False
    sensitive: Slug | None = None

    @field_validator("epsilon", mode="after")
    @classmethod
    def _needed(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("notion") in _ONE_LEVEL:
            raise custom(
                Problem.FIELD_MISSING,
                f"{info.data['notion']} needs a level: give it in nats",
            )
        return value

    def request_fields(self, secrets: Sequence[str]) -> dict[str, Any]:
        """Return the fields as `design` reads them; `secrets` are the names of the prior's rows."""
        request: dict[str, Any] = {
            name: getattr(self, name) for name in _TEXT_FIELDS if getattr(self, name) is not None
        }
        if self.notion is not None:
            request["notion"] = self.notion
        if self.attributes:
            request["attributes"] = list(self.attributes)
        if self.robust is not None:
            request["robust"] = self.robust.request_fields()
        if self.diagonal:
            request["diagonal"] = True
        if self.sensitive is not None:
            # -1 for an unknown name: `design` refuses it with the error for this field.
            request["sensitive"] = (
                secrets.index(self.sensitive) if self.sensitive in secrets else -1
            )
        return request

    @property
    def is_prior_based(self) -> bool:
        """True if the notion needs a prior."""
        return self.notion in PRIOR_BASED


class NotionDefinition(Levels):
    """One of several notions that must all hold."""

    notion: NotionName
