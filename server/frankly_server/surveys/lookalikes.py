# SPDX-License-Identifier: Apache-2.0
"""Confusable choices of a question: labels with equal skeletons [UTS 39, section 4] (ADR 0025).

A pair is **refused** if no reader could distinguish the two: the labels differ only in invisible
characters or repeated marks, or in characters of different scripts (Latin Y, Cyrillic У). It is
**doubtful**, which is a warning, if the characters belong to one writing system ("O" and "0",
"modern" and "modem"): such labels may be intended, and a font or other words may separate them.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final, Protocol

from frankly_server.surveys.fields import folded

# Default_Ignorable_Code_Point of Unicode 15.1, without its private or unassigned specials.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK_BRAILLE: Final = "\u2800"  # a symbol by its category, but as blank as a space
_REPEATED: Final = re.compile(r"(.)\1+", re.DOTALL)
_UNSCRIPTED: Final = frozenset({"COMMON", "INHERITED", "Unknown"})
# Scripts that one text may mix [UTS 39, section 5.1]. Bopomofo is not needed, because it has no
# letter that looks like Han. UTS 39 warns of Latin letters next to those of another script.
_SYSTEMS: Final = (frozenset({"HAN", "HIRAGANA", "KATAKANA"}), frozenset({"HAN", "HANGUL"}))
_MAX_LISTED: Final = 4


class LabelledChoice(Protocol):
    """A choice of a survey file or of a document."""

    @property
    def label(self) -> Mapping[str, str]:
        """A text for each language."""
        ...


class LabelledQuestion(Protocol):
    """A question of a survey file or of a document."""

    @property
    def id(self) -> str:
        """The question's id."""
        ...

    @property
    def choices(self) -> Sequence[LabelledChoice]:
        """The choices in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Lookalike:
    """Two choices of a question whose labels in `language` are confusable.

    is_refused : True if no reader could distinguish them.
    """

    question: str
    language: str
    first: str
    second: str
    is_refused: bool

    def __str__(self) -> str:
        """Describe the pair, with the code points that differ, as a clause without a full stop."""
        return (
            f"the choices “{self.first}” and “{self.second}” of {self.question} ({self.language}) "
            f"look alike: {code_points(self.first, self.second)}"
        )


def lookalikes(question: LabelledQuestion) -> Iterator[Lookalike]:
    """Yield every confusable pair of a question's choices, each pair of labels only once."""
    pairs = set()
    for language in question.choices[0].label:
        labels = [choice.label[language] for choice in question.choices if language in choice.label]
        # Only labels with a form in common are compared: a question has up to 1,000 choices.
        alike: dict[tuple[int, str], list[int]] = {}
        for place, label in enumerate(labels):
            for form in enumerate(_forms(label)):
                alike.setdefault(form, []).append(place)
        places = {pair for same in alike.values() for pair in combinations(same, 2)}
        for a, b in ((labels[i], labels[j]) for i, j in sorted(places)):
            if (a, b) not in pairs:
                pairs.add((a, b))
                yield Lookalike(question.id, language, a, b, _is_hopeless(a, b))


def skeleton(text: str) -> str:
    """Return the skeleton of UTS 39 (internalSkeleton, without reordering bidirectional text).

    The standard's table maps characters to prototypes; one pass is sufficient.
    """
    prototypes = _prototypes()
    return _nfd("".join(prototypes.get(char, char) for char in _nfd(_INVISIBLE.sub("", text))))


def code_points(first: str, second: str) -> str:
    """Describe the characters that only one of two labels has, by code point and name.

    If both have the same characters, describes the first characters of both.
    """
    texts = []
    for label, other in ((first, second), (second, first)):
        chars = [char for char in dict.fromkeys(label) if char not in other]
        if chars or set(first) == set(second):
            listed = ", ".join(map(_named, (chars or label)[:_MAX_LISTED]))
            more = ", …" if len(chars or label) > _MAX_LISTED else ""
            texts.append(f"“{label}” has {listed}{more}")
    return "; ".join(texts)


def _forms(label: str) -> tuple[str, str, str]:
    """Return three forms of a label, of which confusable labels share at least one.

    The first covers characters that need compatibility normalisation, such as full-width digits.
    The last compares labels of different case: they must look alike in capitals and in small
    letters, because γ looks like y, but Γ does not look like Y.
    """
    text = _visible(label)
    return folded(text), skeleton(text), f"{skeleton(text.lower())}\n{skeleton(text.upper())}"


def _is_hopeless(first: str, second: str) -> bool:
    visible_first, visible_second = _visible(first), _visible(second)
    if folded(visible_first) == folded(visible_second):
        return True
    # Characters of only one label. If there are none, the labels differ only in the order.
    differing = set(visible_first) ^ set(visible_second)
    scripts = _scripts(differing or set(visible_first))
    return len(scripts) > 1 and not any(scripts <= system for system in _SYSTEMS)


def _visible(label: str) -> str:
    """Return the decomposed label without invisible characters, repeated marks and extra spaces."""
    text = _nfd(_INVISIBLE.sub("", label.replace(_BLANK_BRAILLE, " ")))
    # A mark that is drawn twice in the same place looks like one; other characters may repeat.
    text = _REPEATED.sub(lambda m: m[1] if unicodedata.category(m[1]) == "Mn" else m[0], text)
    return " ".join(text.split())


@cache
def _prototypes() -> Mapping[str, str]:
    """Return the table of UTS 39: each confusable character with its prototype."""
    # Imported on first use, because the import reads a megabyte of JSON.
    from confusable_homoglyphs.confusables import confusables_data  # noqa: PLC0415

    # The library lists each pair under both members; a prototype may consist of several characters.
    # Only a prototype has more than one partner. If two characters have only each other, the
    # standard maps the first one in the data. Direction marks surround Arabic and Hebrew letters.
    prototypes: dict[str, str] = {}
    for entry, partners in confusables_data.items():
        char = entry.replace("\u200e", "")
        partner = _nfd(partners[0]["c"].replace("\u200e", ""))
        if len(char) == 1 and len(partners) == 1 and prototypes.get(partner) != char:
            prototypes[char] = partner
    return prototypes


def _scripts(chars: set[str]) -> set[str]:
    from confusable_homoglyphs.categories import alias  # noqa: PLC0415 - as above

    return {alias(char) for char in chars} - _UNSCRIPTED


def _named(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip()


def _nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)
