# SPDX-License-Identifier: Apache-2.0
"""Notions in survey files; a notion with a single level must state the level."""

from typing import Annotated

from frankly_design.notions.declared.registry import DECLARED
from frankly_design.requests.fields import Epsilon, custom
from frankly_design.requests.levels import Levels, NotionName
from frankly_protocol.problems import Problem
from pydantic import Field, ValidationInfo, field_validator


class StatedLevels(Levels):
    """Levels in a survey file; required, because the budget is checked before any design."""

    # validate_default, because otherwise the validator would not run for a missing level.
    epsilon: Annotated[Epsilon | None, Field(validate_default=True)] = None

    @field_validator("epsilon", mode="after")
    @classmethod
    def _needed(cls, value: str | None, info: ValidationInfo) -> str | None:
        notion = info.data.get("notion")
        if value is None and notion is not None and "epsilon" in DECLARED[notion].required:
            raise custom(Problem.FIELD_MISSING, f"{notion} needs a level: give it in nats")
        return value


class NotionDefinition(StatedLevels):
    """One of several notions that must all hold."""

    notion: NotionName
