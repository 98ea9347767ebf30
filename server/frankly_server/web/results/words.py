# SPDX-License-Identifier: Apache-2.0
"""Texts of the pages of results by language, from the files in texts/, and the notation of numbers and dates.

Plural forms and decimals are those of the explanations that respondents read (`frankly_protocol.explanation`). No
native speaker has read the texts yet, except the English ones; the page says so, as explanations do.
"""

import json
import pkgutil
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any, Final

from frankly_analyst import words
from frankly_design.estimate.flags import SENTENCES as OF_ESTIMATES
from frankly_protocol.explanation.catalogue import Texts, plural
from frankly_protocol.languages import explained_in

FLAGS: Final = OF_ESTIMATES | {
    "pooled": "Several versions of the survey, or its arms, are combined.",
    "versions_differ": "They differ by more than chance does in 95 of 100 surveys: look at each separately.",
    "corrected_uncounted": "Reports with this and what tells how many answer at random are not counted: no correction.",
    "too_few_attentive": "Too little is known of how many people answer at random: no figure is corrected for them.",
    "random_law_unknown": "What an answer at random would be is not known here: no figure is corrected for them.",
    "corrected_impossible": "No possible value is in the corrected interval: chance, or another law of random answers.",
    "corrected_unbounded": "Corrected for people who answer at random, the figure could be anything.",
    "exact_not_available": "The requested method is not available here: the interval is by kl, always valid.",
    "unbounded": "The denominator of this ratio may be zero: its interval has no ends, so nothing is known about it.",
    "interval_unknown": "The estimate has no interval: its error is unknown because not all shares can be estimated.",
    "score_instead": "Ratios have no interval by the requested method: the usual approximate one is shown.",
}
WARNED: Final = (
    "outside_unit_interval",
    "imprecise",
    "margin_too_wide",
    "few_informative",
    "not_identifiable",
    "reports_do_not_fit",
    "unbounded",
    "interval_unknown",
    "score_instead",
)
"""Flags that are explained next to the findings, in every language; the page of estimates explains all flags."""

NAMES: Final = {
    "ar": "العربية",
    "de": "Deutsch",
    "en": "English",
    "es": "Español",
    "fr": "Français",
    "it": "Italiano",
    "ja": "日本語",
    "nl": "Nederlands",
    "pl": "Polski",
    "pt": "Português",
    "tr": "Türkçe",
    "uk": "Українська",
    "zh": "中文",
}
"""Languages by their own names."""


class Words(words.Words):
    """Texts of one language. labels : language of the survey's own texts. tag : of the others, English by default."""

    def __init__(self, labels: str, tag: str = "en") -> None:
        self.labels = labels
        self.language = explained_in(tag) or "en"
        self._texts = texts_of(self.language)
        self._explained = Texts(self.language, "explanation")

    def say(self, name: str, /, **values: str | int) -> str:
        """Return a text with its values; the number `n` selects the plural form."""
        text = self._texts[name]
        if not isinstance(text, str):
            number = values["n"]
            assert isinstance(number, int)  # noqa: S101 - a fault of the caller
            text = text[plural(self.language, number)]
        return str(text.format_map(self.written(values)))

    @property
    def unread(self) -> str:
        """A sentence that no native speaker has read the texts yet; "" in English."""
        return self._explained.say("unread")

    def figure(self, number: str) -> str:
        """Return a number such as ``2.72`` or ``73.1%`` in the notation of the language."""
        return self._explained.figure(number)

    def count(self, number: int) -> str:
        """Return a whole number, with the language's sign between its thousands."""
        return f"{number:,}".replace(",", self._texts["thousands"])

    def date(self, day: date) -> str:
        """Return a day."""
        year, month, number = day.isoformat().split("-")
        return self.say("date", year=year, month=month, day=number)

    def listed(self, names: Sequence[str]) -> str:
        """Return names between commas."""
        comma: str = self._texts["comma"]
        return comma.join(names)

    def together(self, names: Sequence[str]) -> str:
        """Return two names or more, the last after "and"."""
        return self.say("and", others=self.listed(names[:-1]), last=names[-1])

    def text(self, texts: Mapping[str, str]) -> str:
        """Return a text of the survey in the language of its labels, or else in its first language."""
        return texts.get(self.labels) or next(iter(texts.values()))

    def label(self, row: Mapping[str, Any]) -> str:
        """Return the label of a row of the analysis between quotation marks."""
        return self.quoted(self.text(row["label"]))


def own_name(tag: str) -> str:
    """Return a language's own name; the tag for one that is not in EXPLAINED."""
    name = NAMES.get(explained_in(tag) or "", tag)
    return name if tag in NAMES or name == tag else f"{name} ({tag})"


@cache
def texts_of(language: str) -> Mapping[str, Any]:
    """Return the texts of a language of EXPLAINED by name; a text with plural forms is a mapping of them."""
    english = words.TEXTS | {f"flag_{flag}": FLAGS[flag] for flag in WARNED} | _file("en")
    return english if language == "en" else english | _file(language)


def _file(language: str) -> dict[str, Any]:
    content = pkgutil.get_data(__package__, f"texts/{language}.json")
    assert content is not None  # noqa: S101 - every loader of packages with data reads them
    texts: dict[str, Any] = json.loads(content)
    return texts
