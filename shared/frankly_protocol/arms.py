# SPDX-License-Identifier: Apache-2.0
"""Arms: versions of a survey of which a device draws one before it asks anything (spec 3.10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

from frankly_protocol import schema
from frankly_protocol.mechanisms.base import RandomBits

BITS = 16
"""Random bits of the draw of an arm; chances are out of 2^BITS."""
MAX_ARMS = 8


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: what it asks, and how often it is drawn.

    id : its name, which reports contain. chance : out of 2^BITS. strata : ids of its public
    questions. blocks : ids of its blocks, in the order in which it asks them.
    """

    id: str
    chance: int
    strata: tuple[str, ...]
    blocks: tuple[str, ...]

    @property
    def share(self) -> Fraction:
        """The chance that a device draws the arm."""
        return Fraction(self.chance, 1 << BITS)

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Arm":
        """Read an arm; raises DocumentRejected("schema")."""
        data = schema.DOCUMENT.record(value, field, {"id", "chance", "strata", "blocks"})
        return cls(
            id=schema.identifier(data["id"], field + ".id"),
            chance=schema.integer(data["chance"], field + ".chance", 1, (1 << BITS) - 1),
            strata=schema.items(data["strata"], field + ".strata", 0, 8, schema.identifier),
            blocks=schema.items(data["blocks"], field + ".blocks", 0, 100, schema.identifier),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the arm in its JSON form."""
        return {
            "id": self.id,
            "chance": self.chance,
            "strata": list(self.strata),
            "blocks": list(self.blocks),
        }


@dataclass(frozen=True)
class Arms:
    """The arms of a document; `id` names them in reports, as that of a question names its answer."""

    id: str
    arms: tuple[Arm, ...]

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Arms":
        """Read arms, without what `require_of` checks; raises DocumentRejected("schema")."""
        data = schema.DOCUMENT.record(value, field, {"id", "arms"})
        name = schema.identifier(data["id"], field + ".id")
        return cls(name, schema.items(data["arms"], field + ".arms", 2, MAX_ARMS, Arm.from_json))

    def to_json(self) -> dict[str, Any]:
        """Return the arms in their JSON form."""
        return {"id": self.id, "arms": [arm.to_json() for arm in self.arms]}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the arms."""
        return tuple(arm.id for arm in self.arms)

    def draw(self, randbits: RandomBits) -> str:
        """Draw an arm; it depends on random bits alone."""
        number = randbits(BITS)
        ends = accumulate(arm.chance for arm in self.arms)
        return next(arm.id for arm, end in zip(self.arms, ends, strict=True) if number < end)

    def require_of(self, strata: Sequence[str], blocks: Sequence[str]) -> None:
        """Raise DocumentRejected("schema") unless these are arms of a document with these ids.

        strata, blocks : ids of the document's public questions and blocks.
        """
        if sum(arm.chance for arm in self.arms) != 1 << BITS:
            raise schema.reject(f"the chances of the arms must sum to {1 << BITS}", "arms.arms")
        schema.distinct(self.ids, "arms.arms")
        for i, arm in enumerate(self.arms):
            for name, ids, known in (
                ("strata", arm.strata, strata),
                ("blocks", arm.blocks, blocks),
            ):
                field = f"arms.arms[{i}].{name}"
                if not set(ids) <= set(known):
                    raise schema.reject("expected ids of the document's own", field)
                schema.distinct(ids, field)
            if not arm.strata and not arm.blocks:
                raise schema.reject(
                    "an arm without blocks needs a public question", f"arms.arms[{i}].blocks"
                )
        asked = {name for arm in self.arms for name in arm.strata}
        used = {name for arm in self.arms for name in arm.blocks}
        if not asked >= set(strata) or not used >= set(blocks):
            raise schema.reject("every block and public question must be in an arm", "arms.arms")
        schema.distinct(tuple(strata), "strata")
