# SPDX-License-Identifier: Apache-2.0
"""How many people answer at random, by an instructed item or anchors, and what that does to figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from frankly_analyst.declared import described
from frankly_analyst.plots import SHARE, figure
from frankly_analyst.rows import Estimate

UNCOUNTED: Final = "corrected_uncounted"
"""Flag of figures in the same form as an anchor, if the reports with both are not counted."""
UNLIKELY: Final = 0.05
"""p-value of the random law below which corrected figures are warned of."""


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomAnswers:
    """People who answer at random, by an instructed item or by anchors, of one question or table."""

    n: int = field(
        metadata={
            "description": "Number of reports with a result of the item, or that show the anchor; of several "
            "anchors, that show the rarest."
        }
    )
    failed: int | None = field(
        metadata={"description": "Those that failed the item; null with anchors."}
    )
    choices: int | None = field(
        metadata={
            "description": "Number of choices of the item, in the newest version; null with anchors."
        }
    )
    anchors: Sequence[str] = field(
        metadata={
            "description": "Ids of the anchors of the newest version: questions with known shares, or asked again.",
            "json": list[str],
        }
    )
    random: float = field(
        metadata={
            "description": "Estimated share of people who answer at random, if all others pass the item, or answer the "
            "anchors with the known shares; unbiased, may be above 1, and by anchors below 0. Of several versions the "
            "mean, weighted by reports."
        }
    )
    random_low: float = field(metadata={"description": "Lower end of its interval at `level`."})
    random_high: float = field(metadata={"description": "Upper end of its interval."})
    shown: bool = field(
        metadata={
            "description": "Whether rows have corrected figures: the share of all others must be known to a quarter."
        }
    )
    missing: int | None = field(
        metadata={
            "description": "About how many more reports that takes; 0 if `shown`, null if no number is enough."
        }
    )
    common: bool = field(
        metadata={
            "description": "Whether the results are those of all groups together, as those of single groups are too "
            "imprecise."
        }
    )
    common_p: float | None = field(
        metadata={
            "description": "p-value of the test that equally many answer at random in all groups; null without groups."
        }
    )
    law: Mapping[str, Mapping[str, float]] | None = field(
        metadata={
            "description": "The assumed chances of a random answer, by question and choice of the newest version; "
            "null if there are too many combinations, or a version has none of the choices that `random` states.",
            "json": dict[str, dict[str, float]] | None,
        }
    )
    law_n: int = field(
        metadata={
            "description": "Reports by which the law is tested: those known to have failed, or those that show the "
            "anchors; 0 if they are fewer than 30 or the survey's minimum."
        }
    )
    law_p: float | None = field(
        metadata={
            "description": "p-value of the test that those who failed answer by the law, or that the anchors have "
            "answers between the known shares and the law; null if they are too few, or if one anchor has two choices."
        }
    )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a response's entry. Raises KeyError or TypeError if malformed."""
        return cls(**{item.name: value[item.name] for item in fields(cls)})

    def sentences(self, rows: Sequence[Estimate]) -> list[str]:
        """Return what these numbers mean: how many people, and what that does to the figures in `rows`.

        rows : those of the question or table, in one language.
        """
        if self.random_low >= 1:
            everybody = "than if everybody had answered at random: no figure is corrected."
            return [f"{self._source()} It is more {everybody}"]
        ends = f"{figure(self.random_low, SHARE)} to {figure(self.random_high, SHARE)}"
        level = f", at a confidence of {100 * rows[0].level:.10g}%" if rows else ""
        share = f"About {figure(self.random, SHARE)} of the people ({ends}{level}) seem to have answered at random"
        if self.random < 0:
            share = (
                f"The share of people who answered at random is estimated as {figure(self.random, SHARE)} "
                f"({ends}{level}), which chance can put below 0"
            )
        together = ", as all groups together tell" if self.common else ""
        return [f"{self._source()} {share}{together}.", self._effect(rows), *self._doubt()]

    def _source(self) -> str:
        if self.failed is not None:
            return f"{self.failed:,} of {self.n:,} reports failed the item that asks for a given choice."
        told = (
            "a question that tells"
            if len(self.anchors) == 1
            else f"{len(self.anchors)} questions that tell"
        )
        return f"{self.n:,} reports show {told} how many people answer at random."

    def _effect(self, rows: Sequence[Estimate]) -> str:
        changed = [row for row in rows if row.corrected is not None and row.estimate is not None]
        if not self.shown and any(UNCOUNTED in row.flags for row in rows):
            return (
                "Figures are not corrected for them here: reports that show both are not counted."
            )
        if not self.shown and self.law is None:
            return "Figures are not corrected for them: what an answer at random would be has too many combinations."
        if not self.shown:
            more = "" if not self.missing else f": about {self.missing:,} more reports are needed"
            return f"That is known too roughly to correct figures for them{more}."
        if not changed:
            return "No figure here can be corrected for them."
        most = max(changed, key=lambda row: abs((row.corrected or 0) - (row.estimate or 0)))
        return (
            f"Without their answers “{most.label}” would be {figure(most.corrected, most.unit)} instead of "
            f"{figure(most.estimate, most.unit)}, if they choose as assumed. If they choose in another way, "
            "the corrected figure can be further from the truth than the uncorrected one."
        )

    def _doubt(self) -> list[str]:
        if self.law_p is None or self.law_p >= UNLIKELY:
            return []
        tested = (
            f"the {self.law_n:,} reports that failed do not look as assumed"
            if self.failed is not None
            else "the questions that tell it have answers neither as of people who read nor as assumed of the others"
        )
        return [f"Do not rely on the corrected figures: {tested} (p = {self.law_p:.2g})."]
