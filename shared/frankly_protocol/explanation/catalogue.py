# SPDX-License-Identifier: Apache-2.0
"""Texts of explanations by language, from the files in texts/; the browser SDK has the same texts.

A text contains placeholders in braces, such as {ratio}. If the wording depends on the number {n},
the file contains an object with one text per plural category of the language (CLDR: one, few, …).
"""

import json
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.languages import explained_in
from frankly_protocol.problems import Problem

Catalogue = Mapping[str, Mapping[str, str | Mapping[str, str]]]
"""Texts of a language by part and name."""
_PARTS = ("label", "explanation", "promises", "whole", "budget")
_NAME = re.compile(r"\{(\w+)\}")


def plural(language: str, n: int) -> str:
    """Return the plural category of a whole number in a language of EXPLAINED (CLDR)."""
    if language in ("ja", "zh"):
        return "other"
    if language in ("fr", "pt"):
        return "one" if n < 2 else "other"
    if language == "ar":
        return _arabic(n)
    if language in ("pl", "uk"):
        is_few = n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14)
        is_one = n == 1 if language == "pl" else n % 10 == 1 and n % 100 != 11
        return "one" if is_one else "few" if is_few else "many"
    return "one" if n == 1 else "other"


def _arabic(n: int) -> str:
    if n < 3:
        return ("zero", "one", "two")[n]
    return "few" if 3 <= n % 100 <= 10 else "many" if n % 100 >= 11 else "other"


def require_texts(own: object) -> None:
    """Check an app's own texts.

    Raises InvalidInput: field_unknown for a part or name that en.json does not have, field_type for
    a value that is not a text, or for a placeholder that the English text does not have.
    """
    _require_mapping(own, "texts")
    for part, entries in own.items():  # type: ignore[attr-defined]
        if part not in _PARTS:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN, f"expected one of {', '.join(_PARTS)}", f"texts.{part}"
            )
        _require_mapping(entries, f"texts.{part}")
        for name, text in entries.items():
            _require_text(text, _file("en")[part].get(name), f"texts.{part}.{name}")


def _require_mapping(value: object, field: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInput(Problem.FIELD_TYPE, "expected texts by name", field)


def _require_text(text: object, english: str | Mapping[str, str] | None, field: str) -> None:
    if english is None:
        raise InvalidInput(Problem.FIELD_UNKNOWN, "texts/en.json has no text of this name", field)
    forms = text if isinstance(text, Mapping) else {"other": text}
    if "other" not in forms or not all(isinstance(form, str) for form in forms.values()):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "expected a text, or an object with texts for plural forms, one of them `other`",
            field,
        )
    known = _names(english if isinstance(english, str) else english["other"])
    if not known.issuperset(*map(_names, forms.values())):
        listed = ", ".join(sorted(known)) or "none"
        raise InvalidInput(Problem.FIELD_TYPE, f"the names in braces can be: {listed}", field)


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))


class Texts:
    """One part of the texts of a language; texts from an app replace those from the file."""

    def __init__(self, tag: str, part: str, own: Catalogue | None = None) -> None:
        self._tag, self._part, self._own = tag, part, own
        self.language = explained_in(tag) or "en"
        self._file = _file(self.language)

    def part(self, name: str) -> "Texts":
        """Return another part in the same language."""
        return Texts(self._tag, name, self._own)

    def say(self, name: str, **values: object) -> str:
        """Return a text with its values inserted; the number `n` selects the plural form."""
        own: Any = (self._own or {}).get(self._part, {}).get(name)
        text = self._file[self._part][name] if own is None else own
        if not isinstance(text, str):
            number = values["n"]
            assert isinstance(number, int)  # noqa: S101 - a fault of the caller
            category = plural(self.language, number)
            text = text[category] if category in text else text["other"]
        # Substituted in one pass, because a value may contain braces too.
        return _NAME.sub(lambda name: str(values.get(name[1], name[0])), text)

    def figure(self, number: str) -> str:
        """Return a number such as 2.72, 73.1% or inf in the notation of the language."""
        written = number.removesuffix("%").replace(".", self._file["decimal"]).replace("inf", "∞")
        return (
            self.part("explanation").say("percent", number=written)
            if number.endswith("%")
            else written
        )


@cache
def _file(language: str) -> Any:
    # Not importlib.resources: it imports zipfile and tempfile, a tenth of this package's loading time.
    content = pkgutil.get_data(__package__, f"texts/{language}.json")
    assert content is not None  # noqa: S101 - every loader of packages with data reads them
    return json.loads(content)
