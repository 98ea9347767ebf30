# SPDX-License-Identifier: Apache-2.0
"""What protection an admin asks for: notions and their levels, in the keys of `frankly design --json` (DESIGN §7)."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from frankly_protocol.audit import PRIOR_BASED
from frankly_protocol.problems import Problem
from pydantic import Field, ValidationInfo, field_validator

from frankly_server.surveys.fields import Cell, Epsilon, Flag, Part, Side, Slug, Whole, custom

NotionName = Literal["ldp", "dp", "secret-ldp", "lip", "alip", "srlip", "rldp", "dpv"]
_ONE_LEVEL: Final = ("ldp", "dp", "secret-ldp", "lip", "srlip", "rldp")
_WORDS: Final = ("epsilon", "epsilon_low", "epsilon_high", "delta", "dpv")


class RobustDefinition(Part):
    """How far counts of n people may be from the truth: a ball of Rényi order `order`, of confidence 1 − beta."""

    order: Cell
    n: Whole
    beta: Cell

    def asked(self) -> dict[str, Any]:
        """Return the ball as `design` reads it."""
        order = Decimal(self.order)
        return {"order": int(order) if order == int(order) else order, "n": self.n, "beta": self.beta}


class Levels(Part):
    """A notion with its levels: which of them it takes, `design` says.

    epsilon, epsilon_low, epsilon_high : nats as decimal texts; "inf" for a side of alip that is not promised.
    delta, dpv : probabilities. attributes : how many values each attribute has. robust, diagonal : of rldp.
    sensitive : the name of the secret's value that dpv is about.
    """

    notion: NotionName | None = None
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
            raise custom(Problem.FIELD_MISSING, f"{info.data['notion']} has a level: say how many nats")
        return value

    def asked(self, secrets: Sequence[str]) -> dict[str, Any]:
        """Return the notion and its levels as `design` reads them; `secrets` are the prior's rows by name."""
        given: dict[str, Any] = {name: getattr(self, name) for name in _WORDS if getattr(self, name) is not None}
        if self.notion is not None:
            given["notion"] = self.notion
        if self.attributes:
            given["attributes"] = list(self.attributes)
        if self.robust is not None:
            given["robust"] = self.robust.asked()
        if self.diagonal:
            given["diagonal"] = True
        if self.sensitive is not None:
            given["sensitive"] = secrets.index(self.sensitive) if self.sensitive in secrets else -1
        return given

    @property
    def is_prior_based(self) -> bool:
        """Whether the notion rests on a prior."""
        return self.notion in PRIOR_BASED


class NotionDefinition(Levels):
    """One of several notions that must all be kept."""

    notion: NotionName
