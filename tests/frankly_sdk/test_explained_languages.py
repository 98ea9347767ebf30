# SPDX-License-Identifier: Apache-2.0
"""Every number of an explanation is as true in other languages: the same texts, with the numbers of the English ones.

test_explained_levels.py compares the English sentences on the same documents with the law of their reports.
"""

import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation import catalogue
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.explain import explain

from tests.browser.sdk.english import OTHERS, forms
from tests.frankly_sdk.test_explained_levels import COUNT
from tests.frankly_sdk.texts import ENGLISH, PARTS, file_of
from tests.frankly_sdk.told import Told

SOME = 30
"""Documents of each language without --full; with it there are as many as in English."""
Said = list[tuple[str, str, str]]
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
# Idioms of a language with numbers that are not in the English text, and what stands for them here.
IDIOMS: dict[str, list[tuple[str, str]]] = {
    "ja": [("1600 万", "16"), ("16 進", ""), (r"(?<!\d)[12] (?:つ|通り|回)", "")],
    "zh": [("1600 万", "16"), (r"1/(?=\d)", "")],
}
# Arabic has forms for one and two that need no digit.
WITHOUT_DIGIT = {("ar", "hex_digits"), ("ar", "picked"), ("ar", "numbers")}
# Texts whose values may come in another order: each has its own unit or place, so readers cannot confuse them.
IN_ANY_ORDER = {
    ("label", "few"), ("explanation", "chance_of"), ("explanation", "picked"), ("explanation", "picked_range"),
    ("explanation", "subset"), ("promises", "by_table"), ("promises", "by_table_beside"),
    ("promises", "by_table_within"), ("promises", "pairs_open"), ("promises", "sure"), ("whole", "delta"),
    ("whole", "delta_lift"), ("whole", "sure"), ("budget", "left"), ("element", "drawn"), ("element", "progress"),
}  # fmt: skip


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """Part, name and words of every text, as it is said."""
    found, say = Said(), Texts.say

    def recording(self: Texts, name: str, **values: object) -> str:
        words = say(self, name, **values)
        # English has no note that nobody has read it. The template of a report is made of the other texts.
        if name not in ("unread", "sent"):
            found.append((self._part, name, words))
        return words

    monkeypatch.setattr(Texts, "say", recording)
    return found


def numbers(words: str, language: str) -> Counter[str]:
    for idiom, meant in IDIOMS.get(language, []):
        words = re.sub(idiom, meant, words)
    return Counter(one.replace(file_of(language)["decimal"], ".") for one in NUMBER.findall(words))


def require_same(told: Told, language: str, said: Said) -> None:
    """Fail unless the explanation says the same as the English one, with the same numbers."""
    said.clear()
    explain(told.document, told.level, ("ab" * 32,), None, told.budget)
    english = list(said)
    payload = told.document.payload().decode().replace('"en"', f'"{language}"')
    said.clear()
    document = SurveyDocument.parse(payload.encode())
    explanation = explain(document, told.level, ("ab" * 32,), language, told.budget)
    assert explanation.language == language
    assert [one[:2] for one in said] == [one[:2] for one in english]
    for (part, name, words), (_, _, spoken) in zip(english, said, strict=True):
        missing = numbers(words, "en")
        missing.subtract(numbers(spoken, language))
        wrong = {one: count for one, count in missing.items() if count}
        is_word = (language, name) in WITHOUT_DIGIT and set(wrong.items()) <= {("1", 1), ("2", 1)}
        assert not wrong or is_word, (part, name, words, spoken)


@pytest.mark.parametrize("language", OTHERS)
def test_the_numbers_are_those_of_the_english_texts(language: str, said: Said, full: bool) -> None:
    for seed in range(COUNT if full else SOME):
        require_same(Told.of(seed), language, said)


def reordered(language: str) -> Iterator[tuple[str, str]]:
    """Yield part and name of each text whose values are not in the order of the English one."""
    texts = catalogue._file(language)
    for part in PARTS:
        for name, text in ENGLISH[part].items():
            *_, last = forms(text)
            order = re.findall(r"\{\w+\}", last)
            for form in forms(texts[part][name]):
                own = re.findall(r"\{\w+\}", form)
                if own != [one for one in order if one in own]:
                    yield part, name


@pytest.mark.parametrize("language", OTHERS)
def test_values_that_could_be_confused_are_in_the_english_order(language: str) -> None:
    assert set(reordered(language)) <= IN_ANY_ORDER


# What a translator could get wrong: part, name, and what stands there instead of what
FAULTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "another number": ("label", "belief", {"50": "60"}),
    "a number left out": ("label", "fits", {"100": ""}),
    "one value twice": ("label", "belief", {"{few}": "{half}"}),
    "a value left out": ("promises", "pairs_range", {"{least}": ""}),
    "two values for each other": ("label", "belief", {"{few}": "{half}", "{half}": "{few}"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_false_translation_is_found(
    fault: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, name, instead = FAULTS[fault]
    texts: Any = deepcopy(file_of("de"))
    true = texts[part][name]
    texts[part][name] = re.sub("|".join(instead), lambda one: instead[one[0]], true)
    assert texts[part][name] != true
    read = catalogue._file
    monkeypatch.setattr(catalogue, "_file", lambda tag: texts if tag == "de" else read(tag))
    with pytest.raises(AssertionError):
        _require_true_in_german(said)


def _require_true_in_german(said: Said) -> None:
    assert set(reordered("de")) <= IN_ANY_ORDER
    for seed in range(SOME):
        require_same(Told.of(seed), "de", said)
