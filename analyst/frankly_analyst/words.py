# SPDX-License-Identifier: Apache-2.0
"""Texts and the notation of numbers in charts, figures and sentences: English, unless somebody has another language."""

from typing import Final

TEXTS: Final = {
    "ends": "{low} to {high}",
    "from_ends": "from {ends}",
    "beyond": "beyond what is possible",
    "no_interval": "no interval",
    "unknown": "unknown",
    "across": "Across: {question}",
    "down": "Down: {question}",
    "each_by_itself": "{question}, each by itself",
    "group_n": "{group} (n={n})",
    "mean": "mean",
    "median": "median",
    "contrast": "contrast",
    "up_to": "up to {value}",
    "quantile": "quantile {value}",
    "quoted": "“{text}”",
    "p_less": "p < {p}",
    "p_is": "p = {p}",
    "random_failed": "{failed} of {n} reports failed the item that asks for a given choice.",
    "random_anchor": "{n} reports show a question that tells how many people answer at random.",
    "random_anchors": "{n} reports show {anchors} questions that tell how many people answer at random.",
    "random_more": "It is more than if everybody had answered at random: no figure is corrected.",
    "random_ends": "{ends}, at a confidence of {level}",
    "random_share": "About {share} of the people ({ends}) seem to have answered at random{together}.",
    "random_below": (
        "The share of people who answered at random is estimated as {share} ({ends}), which chance can put below 0"
        "{together}."
    ),
    "random_together": ", as all groups together tell",
    "random_uncounted": "Figures are not corrected for them here: reports that show both are not counted.",
    "random_no_law": (
        "Figures are not corrected for them: what an answer at random would be has too many combinations."
    ),
    "random_rough": "That is known too roughly to correct figures for them.",
    "random_rough_more": (
        "That is known too roughly to correct figures for them: about {missing} more reports are needed."
    ),
    "random_no_figure": "No figure here can be corrected for them.",
    "random_effect": (
        "Without their answers {answer} would be {corrected} instead of {estimate}, if they choose as assumed. "
        "If they choose in another way, the corrected figure can be further from the truth than the uncorrected one."
    ),
    "random_doubt_failed": (
        "Do not rely on the corrected figures: the {n} reports that failed do not look as assumed ({p})."
    ),
    "random_doubt_anchors": (
        "Do not rely on the corrected figures: the questions that tell it have answers neither as of people who "
        "read nor as assumed of the others ({p})."
    ),
}
"""English texts by name; a text has its values' names in braces."""


class Words:
    """Texts and notation of English; a subclass has those of another language, under the same names."""

    def say(self, name: str, /, **values: str | int) -> str:
        """Return a text of `TEXTS` with its values; whole numbers are written by `count`."""
        return TEXTS[name].format_map(self.written(values))

    def written(self, values: dict[str, str | int]) -> dict[str, str]:
        """Return values as text."""
        return {
            name: self.count(value) if isinstance(value, int) else value
            for name, value in values.items()
        }

    def figure(self, number: str) -> str:
        """Return a number such as ``2.72`` or ``73.1%`` in the notation of the language."""
        return number

    def count(self, number: int) -> str:
        """Return a whole number, with a sign between its thousands."""
        return f"{number:,}"

    def p(self, p: float) -> str:
        """Return a p-value, never "p = 0"."""
        if p < 0.001:
            return self.say("p_less", p=self.figure("0.001"))
        return self.say("p_is", p=self.figure(f"{p:.3f}"))

    def quoted(self, text: str) -> str:
        """Return a text between quotation marks."""
        return self.say("quoted", text=text)


ENGLISH: Final = Words()
