# SPDX-License-Identifier: Apache-2.0
"""Questions and choices of a survey, with a text per language."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frankly_protocol import schema

Words = Mapping[str, str]
Languages = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that can be given; `label` holds a text per language."""

    id: str
    label: Words


@dataclass(frozen=True, slots=True)
class Question:
    """A question with 2 to 64 choices."""

    id: str
    text: Words
    choices: tuple[Choice, ...]
    _positions: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A frozen dataclass refuses an ordinary assignment.
        object.__setattr__(
            self,
            "_positions",
            {choice.id: i for i, choice in enumerate(self.choices)},
        )

    def index(self, choice: str) -> int | None:
        """Return the position of a choice id, None if it is not one of the choices.

        The time does not depend on which choice it is, because a dictionary is used.
        """
        return self._positions.get(choice)

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Question":
        """Read a question; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"id", "text", "choices"})

        def choice(entry: Any, where: str) -> Choice:
            choice_data = schema.DOCUMENT.record(entry, where, {"id", "label"})
            return Choice(
                schema.identifier(choice_data["id"], where + ".id"),
                schema.words(choice_data["label"], where + ".label", languages),
            )

        choices = schema.items(data["choices"], field + ".choices", 2, 64, choice)
        schema.distinct(tuple(c.id for c in choices), field + ".choices")
        return cls(
            schema.identifier(data["id"], field + ".id"),
            schema.words(data["text"], field + ".text", languages),
            choices,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the question in its JSON form."""
        choices = [{"id": c.id, "label": dict(c.label)} for c in self.choices]
        return {"id": self.id, "text": dict(self.text), "choices": choices}
