# SPDX-License-Identifier: Apache-2.0
"""Languages in which the SDKs explain surveys; the server warns about others at publication."""

EXPLAINED = ("ar", "de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "tr", "uk", "zh")
"""Primary subtags of language tags (BCP 47), in alphabetical order."""


def explained_in(tag: str) -> str | None:
    """Return the language of EXPLAINED for a tag such as de-AT; None if there is none."""
    base = tag.split("-", maxsplit=1)[0].lower()
    return base if base in EXPLAINED else None


def direction_of(tag: str) -> str:
    """Return the direction in which a language of EXPLAINED is written."""
    return "rtl" if explained_in(tag) == "ar" else "ltr"
