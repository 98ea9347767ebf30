# SPDX-License-Identifier: Apache-2.0
"""How many people of each source answer at random, and which sources have more than the others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from frankly_analyst.declared import described
from frankly_analyst.plots import percent


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The random answers of one source of a survey, such as a panel."""

    source: str = field(metadata={"description": "Id of the source: a choice of `question`."})
    n: int = field(metadata={"description": "Number of its reports."})
    random: float = field(
        metadata={
            "description": "Estimated share of its people who answer at random, as in `random_answers`."
        }
    )
    random_low: float = field(metadata={"description": "Lower end of its interval at `level`."})
    random_high: float = field(metadata={"description": "Upper end of its interval."})
    p: float | None = field(
        metadata={
            "description": "One-sided p-value of the test that it has no more of them than all other sources "
            "together; null if there is only one source, or if versions have different items or anchors."
        }
    )
    flagged: bool = field(
        metadata={
            "description": "Whether `p` is at most 0.05 divided by the number of sources. Without random answers "
            "beyond those of all sources, some source is flagged in at most 5% of surveys, by anchors about."
        }
    )

    def __str__(self) -> str:
        ends = f"{percent(self.random_low)} to {percent(self.random_high)}"
        mark = "  more than the others" if self.flagged else ""
        return f"{self.source}: {percent(self.random)} ({ends}) of {self.n} at random{mark}"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a survey. question : the public question whose choices they are.

    others : ids of the sources of which too little is known.
    """

    question: str
    sources: tuple[Source, ...]
    others: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Self | None:
        """Read a response's entry; None without one. Raises KeyError or TypeError if malformed."""
        if value is None:
            return None
        names = [item.name for item in fields(Source)]
        read = (Source(**{name: one[name] for name in names}) for one in value["sources"])
        return cls(value["question"], tuple(read), tuple(value["others"]))

    @property
    def flagged(self) -> tuple[str, ...]:
        """Ids of the sources with more random answers than the others."""
        return tuple(one.source for one in self.sources if one.flagged)

    def __iter__(self) -> Iterator[Source]:
        return iter(self.sources)

    def __str__(self) -> str:
        return "\n".join(map(str, self.sources))
