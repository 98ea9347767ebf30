# SPDX-License-Identifier: Apache-2.0
"""English on a page in another language: what a page says, and which of it is English."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from frankly_protocol.languages import EXPLAINED
from playwright.sync_api import Page

from tests.frankly_sdk.texts import ENGLISH, PARTS

OTHERS = tuple(language for language in EXPLAINED if language != "en")
# Words that hardly any English sentence lacks all of.
WORDS = set(
    "a an answer answers are can device from is it nothing of sent survey that the this what which with you your "
    "about all and another at be by chance every has how not one other people questions result send to "
    "any digit digits fits".split()
)
# Those of them that are words of another language as well.
FRIENDS = {
    "de": {"an"},
    "es": {"a"},
    "fr": {"a", "questions"},
    "it": {"a"},
    "nl": {"is", "of"},
    "pl": {"a", "to"},
    "pt": {"a"},
    "tr": {"not"},
}
# Texts of the catalogue that are the same in both languages.
COGNATES = {("fr", "question"), ("fr", "invitation")}
MOST_WORDS_OF_A_NAME = 2


def forms(text: str | dict[str, str]) -> Iterable[str]:
    """Return a text, or all its plural forms."""
    return [text] if isinstance(text, str) else text.values()


def _pieces(text: str) -> Iterator[str]:
    """Yield what stands between values and signs, without case."""
    for piece in re.split(r"\{\w+\}|[^\w\s’'-]+", text.lower()):
        yield " ".join(piece.split())


_OF_CATALOGUE = {
    piece
    for part in PARTS
    for text in ENGLISH[part].values()
    for form in forms(text)
    for piece in _pieces(form)
    if re.search("[a-z]{4}", piece)  # shorter words are words of other languages, too
}
# A piece of several words is also found inside a longer text.
_INSIDE = re.compile(
    "|".join(
        rf"\b{re.escape(piece)}\b"
        for piece in sorted(_OF_CATALOGUE)
        if len(piece.split()) > MOST_WORDS_OF_A_NAME
    )
)


def is_english(text: str, language: str) -> bool:
    """Return True for a text with English in it, on a page in another language."""
    lower = " ".join(text.lower().split())
    if set(re.findall(r"(?<!\w)[^\W\d_]+(?!\w)", lower)) & (WORDS - FRIENDS.get(language, set())):
        return True
    pieces = {piece for piece in _pieces(lower) if (language, piece) not in COGNATES}
    return bool(pieces & _OF_CATALOGUE or _INSIDE.search(lower))


# Everything that a page says to people or to assistive technology, hidden or not. The names of other languages are
# in these languages, and bytes are bytes.
SAID = """(selector) => {
  const names = ["alt", "aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext",
    "label", "placeholder", "title", "data-failed"];
  const root = selector ? document.querySelector(selector) : document, found = selector ? [] : [document.title];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
    if (node.nodeType !== Node.TEXT_NODE && node.nodeType !== Node.ELEMENT_NODE && node !== node.getRootNode()) return;
    if (node.matches?.("script, style, title, pre, code, option[lang]")) return;
    for (const name of names) if (node.getAttribute?.(name)) found.push(node.getAttribute(name));
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const child of node.childNodes) walk(child);
  };
  walk(root);
  return found.map((text) => text.trim()).filter(Boolean);
}"""
# Names of fields in the template of a report, the code of an error, and the mark of a survey's own words.
NO_WORDS = re.compile(r'"[a-z0-9_:.-]*"|^\([a-z_]+\)$|(?<= )\([a-z]{2}\)')


def said(page: Page, selector: str | None = None) -> list[str]:
    """Return all texts of a page or of one element, without what is in no language."""
    found: Any = page.evaluate(SAID, selector)
    return [NO_WORDS.sub("", text) for text in found]


def english_on(page: Page, language: str, selector: str | None = None) -> list[str]:
    """Return the texts of a page in another language, or of one element, that are English."""
    return [text for text in said(page, selector) if is_english(text, language)]
