# SPDX-License-Identifier: Apache-2.0
"""Relative completion of the questions of a form: where people gave up more often."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from frankly_analyst.comparisons import WaldTest
from frankly_analyst.declared import described
from frankly_analyst.rows import localised

DRAWN, ALL = "drawn", "all"


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class PartCompletion:
    """The reports about one part of a form: a question, or a few that are treated as one."""

    questions: tuple[str, ...] = field(
        metadata={"description": "Ids of the part's questions.", "json": list[str]}
    )
    n: int = field(metadata={"description": "Number of reports that show the part."})
    chance: float = field(metadata={"description": "Published chance that a device draws it."})
    relative: float = field(
        metadata={
            "description": "`n` divided by the number that is expected if giving up does not depend on what a "
            "device draws: all reports times `chance`."
        }
    )
    low: float = field(metadata={"description": "Lower end of its interval at `level`."})
    high: float = field(metadata={"description": "Upper end of its interval."})


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBounds:
    """Bounds of a share among all who would have answered the question that is given up least.

    They hold at `level` whatever the answers of those who gave up at this question are, if whoever
    answers this question would have answered that one too.
    """

    question: str = field(metadata={"description": "Id of the question."})
    choice: str = field(metadata={"description": "Id of the choice."})
    label: str = field(
        metadata={
            "description": "Label of the choice; in JSON by language.",
            "json": dict[str, str],
        }
    )
    low: float = field(metadata={"description": "Lower bound."})
    high: float = field(metadata={"description": "Upper bound."})


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion of one form of one version of a survey.

    ask : "drawn" if people were asked only what their device drew, "all" if everything. If it is
    "all", nothing that people do can cause a difference: it is a sign of forged reports or of
    devices that do not follow the document. n, needed : number of reports and the minimum; below
    it there are no parts. test : the χ² test that giving up does not depend on what is drawn, None if
    there are too few reports or if every report is about the same parts. bounds : () unless `ask` is
    "drawn" and every report is about one part.
    """

    version: int
    block: str
    ask: str
    n: int
    needed: int
    test: WaldTest
    parts: tuple[PartCompletion, ...]
    bounds: tuple[ShareBounds, ...]

    @classmethod
    def all_from_json(
        cls, body: Mapping[str, Any], language: str | None = None
    ) -> tuple[Self, ...]:
        """Read the completions of a response. Raises KeyError or TypeError if malformed."""
        return tuple(
            cls._from_json(one, language, body["languages"]) for one in body["completions"]
        )

    @classmethod
    def _from_json(
        cls, body: Mapping[str, Any], language: str | None, languages: Sequence[str]
    ) -> Self:
        about = f"{body['block']} of version {body['version']}"
        return cls(
            **{name: body[name] for name in ("version", "block", "ask", "n", "needed")},
            test=WaldTest.from_json("equal completion", about, body["test"]),
            parts=tuple(
                PartCompletion(**part | {"questions": tuple(part["questions"])})
                for part in body["parts"]
            ),
            bounds=tuple(
                ShareBounds(**bound | {"label": localised(bound["label"], language, languages)})
                for bound in body["bounds"]
            ),
        )

    def __iter__(self) -> Iterator[PartCompletion]:
        return iter(self.parts)

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.test.about}: {self.needed - self.n} more reports needed"
        table = [
            (
                " + ".join(part.questions),
                f"{part.n} reports",
                f"{self.n * part.chance:.1f} expected",
                f"{100 * part.relative:.0f}% ({100 * part.low:.0f} to {100 * part.high:.0f}%)",
            )
            for part in self.parts
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        return "\n".join([str(self.test), *(line.rstrip() for line in lines)])
