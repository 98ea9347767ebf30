# SPDX-License-Identifier: Apache-2.0
"""Fields of a form's question for its wanted estimates, in survey files and requests."""

from collections.abc import Sized
from decimal import Decimal
from typing import Final, Literal

from frankly_protocol.problems import Problem
from pydantic import Field, ValidationInfo, field_validator

from frankly_server.requests.fields import ClosedModel, Number, Positive, custom

NEEDED_BY: Final = {"scores": "mean", "contrast": "contrast"}


class Wanted(ClosedModel):
    """Wanted estimates of a question; a subclass adds `choices`, a list of them or their number.

    wanted : the estimates that the design makes precise. shares : of every choice. mean : of the
    `scores`. distribution : the share of every choice together with those before it, for choices in
    order. contrast : the sum of the shares times the numbers in `contrast`.
    scores, contrast : one number for each choice, in their order. importance : weight of the
    question's variance in the design.
    """

    wanted: Literal["shares", "mean", "distribution", "contrast"] = "shares"
    # Defaults are validated, so that the error for missing numbers has the right field.
    scores: tuple[Number, ...] | None = Field(None, validate_default=True)
    contrast: tuple[Number, ...] | None = Field(None, validate_default=True)
    importance: Positive = "1"

    @field_validator("scores", "contrast")
    @classmethod
    def _one_for_each_choice(
        cls, numbers: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        if numbers is None:
            if info.data.get("wanted") == NEEDED_BY[str(info.field_name)]:
                raise custom(
                    Problem.FIELD_MISSING,
                    "the field wanted needs this: one number for each choice, in order",
                )
            return None
        require_one_each(numbers, info)
        if len({Decimal(text) for text in numbers}) == 1:
            raise ValueError("the numbers are all equal: nothing would be left to estimate")
        return numbers


def require_one_each(numbers: Sized, info: ValidationInfo) -> None:
    """Raise ValueError unless there is one number per choice; skipped for invalid choices."""
    choices = info.data.get("choices")
    if choices is None:
        return
    wanted = choices if isinstance(choices, int) else len(choices)
    if len(numbers) != wanted:
        raise ValueError(f"give one number for each choice: {wanted} numbers, not {len(numbers)}")
