# SPDX-License-Identifier: Apache-2.0
"""Notions in survey files; a notion with a single level must state the level."""

from typing import Annotated, Final

from frankly_design.requests.fields import Epsilon, custom
from frankly_design.requests.levels import Levels, NotionName
from frankly_protocol.problems import Problem
from pydantic import Field, ValidationInfo, field_validator

# alip has two levels instead, and dpv a probability.
_ONE_LEVEL: Final = ("ldp", "dp", "secret-ldp", "lip", "srlip", "rldp", "pml", "pmc")


class StatedLevels(Levels):
    """Levels in a survey file; required, because the budget is checked before any design."""

    # validate_default, because otherwise the validator would not run for a missing level.
    epsilon: Annotated[Epsilon | None, Field(validate_default=True)] = None

    @field_validator("epsilon", mode="after")
    @classmethod
    def _needed(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("notion") in _ONE_LEVEL:
            raise custom(
                Problem.FIELD_MISSING, f"{info.data['notion']} needs a level: give it in nats"
            )
        return value


class NotionDefinition(StatedLevels):
    """One of several notions that must all hold."""

    notion: NotionName
