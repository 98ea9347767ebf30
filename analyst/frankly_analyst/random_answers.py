# SPDX-License-Identifier: Apache-2.0
"""How many people answer at random, by an instructed item or anchors, and what that does to figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from frankly_analyst.declared import described
from frankly_analyst.plots import SHARE, figure
from frankly_analyst.rows import Estimate
from frankly_analyst.words import ENGLISH, Words

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

    def sentences(self, rows: Sequence[Estimate], words: Words = ENGLISH) -> list[str]:
        """Return what these numbers mean: how many people, and what that does to the figures in `rows`.

        rows : those of the question or table, in one language. words : the language of the sentences.
        """
        if self.random_low >= 1:
            return [f"{self._source(words)} {words.say('random_more')}"]
        share, low, high = (
            words.figure(figure(one, SHARE))
            for one in (self.random, self.random_low, self.random_high)
        )
        ends = words.say("ends", low=low, high=high)
        if rows:
            level = words.figure(f"{100 * rows[0].level:.10g}%")
            ends = words.say("random_ends", ends=ends, level=level)
        together = words.say("random_together") if self.common else ""
        name = "random_share" if self.random >= 0 else "random_below"
        said = words.say(name, share=share, ends=ends, together=together)
        return [f"{self._source(words)} {said}", self._effect(rows, words), *self._doubt(words)]

    def _source(self, words: Words) -> str:
        if self.failed is not None:
            return words.say("random_failed", failed=self.failed, n=self.n)
        if len(self.anchors) == 1:
            return words.say("random_anchor", n=self.n)
        return words.say("random_anchors", n=self.n, anchors=len(self.anchors))

    def _effect(self, rows: Sequence[Estimate], words: Words) -> str:
        changed = [row for row in rows if row.corrected is not None and row.estimate is not None]
        if not self.shown and any(UNCOUNTED in row.flags for row in rows):
            return words.say("random_uncounted")
        if not self.shown and self.law is None:
            return words.say("random_no_law")
        if not self.shown and self.missing:
            return words.say("random_rough_more", missing=self.missing)
        if not self.shown:
            return words.say("random_rough")
        if not changed:
            return words.say("random_no_figure")
        most = max(changed, key=lambda row: abs((row.corrected or 0) - (row.estimate or 0)))
        return words.say(
            "random_effect",
            answer=words.quoted(most.label),
            corrected=words.figure(figure(most.corrected, most.unit)),
            estimate=words.figure(figure(most.estimate, most.unit)),
        )

    def _doubt(self, words: Words) -> list[str]:
        if self.law_p is None or self.law_p >= UNLIKELY:
            return []
        p = words.p(self.law_p)
        if self.failed is None:
            return [words.say("random_doubt_anchors", p=p)]
        return [words.say("random_doubt_failed", n=self.law_n, p=p)]
