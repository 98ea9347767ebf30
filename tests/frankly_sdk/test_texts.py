# SPDX-License-Identifier: Apache-2.0
"""Texts of explanations in all languages: complete, with the same values and all plural forms."""

import re
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.catalogue import Texts, plural
from frankly_protocol.explanation.explain import explain
from frankly_protocol.languages import EXPLAINED, explained_in

from tests.browser.sdk.english import OTHERS, forms, is_english
from tests.frankly_sdk.fakes import payable_survey
from tests.frankly_sdk.texts import BAD, ENGLISH, FOLDER, PARTS, file_of
from tools.languages import SOURCES, modules

COGNATES = {("element", "try_question"), ("element", "invitation")}
"""Of English and French."""


def names(text: str | dict[str, str]) -> set[str]:
    """Return the names in braces in a text or in any of its plural forms."""
    forms = [text] if isinstance(text, str) else list(text.values())
    return {name for form in forms for name in re.findall(r"\{(\w+)\}", form)}


def test_there_are_texts_in_at_least_ten_languages() -> None:
    assert len(EXPLAINED) >= 10
    assert [path.stem for path in sorted(FOLDER.glob("*.json"))] == list(EXPLAINED)


@pytest.mark.parametrize("language", EXPLAINED)
def test_every_text_is_there_with_all_its_values(language: str) -> None:
    texts = file_of(language)
    assert set(texts) == set(ENGLISH)
    for part in PARTS:
        assert set(texts[part]) == set(ENGLISH[part])
        for name, text in ENGLISH[part].items():
            assert names(texts[part][name]) == names(text), (part, name)


@pytest.mark.parametrize("language", EXPLAINED)
def test_only_english_is_not_marked_as_unread(language: str) -> None:
    """No native speaker of the other languages has read their texts yet."""
    assert bool(file_of(language)["explanation"]["unread"]) == (language != "en")


@pytest.mark.parametrize("language", EXPLAINED)
def test_texts_with_plural_forms_have_all_that_the_language_needs(language: str) -> None:
    needed = {plural(language, n) for n in range(1, 1200)}
    for part in PARTS:
        for name, text in file_of(language)[part].items():
            if not isinstance(text, str):
                assert needed <= set(text), (part, name)


def test_unknown_languages_are_explained_in_english() -> None:
    assert [explained_in(tag) for tag in ("de-AT", "DE", "tlh")] == ["de", "de", None]
    assert Texts("tlh", "explanation").language == "en"


def test_a_value_with_braces_is_not_filled_in() -> None:
    texts = Texts("en", "explanation")
    assert texts.say("own_words", text="{text} {n}") == "The survey’s own words: “{text} {n}”"


def test_an_app_can_replace_any_text() -> None:
    document = payable_survey()
    own = {"explanation": {"made_here": "Made here."}, "whole": {"cost": "{nats} nats."}}
    words = str(explain(document, document.report_level, (), texts=own))
    assert "\n\nMade here.\n\n" in words
    assert re.search(r"\n\n[\d.]+ nats\.", words)
    assert "is made here" not in words


@pytest.mark.parametrize(("own", "code", "field"), BAD)
def test_texts_that_cannot_be_shown_are_refused_by_name(own: Any, code: str, field: str) -> None:
    document = payable_survey()
    with pytest.raises(InvalidInput) as caught:
        explain(document, document.report_level, (), texts=own)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_the_browser_has_the_same_texts() -> None:
    """If this test fails, run `python -m tools.languages`."""
    for path, contents in modules().items():
        assert path.read_text("utf-8") == contents, path.name
    words = SOURCES.glob("words[._]*.js")
    assert set(words) == set(modules())


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_left_in_english(language: str) -> None:
    texts = file_of(language)
    left = [
        (part, name)
        for part in PARTS
        for name, text in texts[part].items()
        for form in forms(text)
        if is_english(re.sub(r"\{\w+\}", "0", form), language)
    ]
    assert left == []


def test_every_english_text_is_found_to_be_english() -> None:
    for part in PARTS:
        for name, text in ENGLISH[part].items():
            for form in forms(text):
                said = re.sub(r"\{\w+\}", "0", form)
                if not re.search("[a-z]", said):
                    continue
                missed = [language for language in OTHERS if not is_english(said, language)]
                assert missed == ["fr"] * ((part, name) in COGNATES), (part, name)
