# SPDX-License-Identifier: Apache-2.0
"""Readers of parsed JSON: exact keys, checked types, no unknown fields.

The functions raise DocumentRejected("schema"), naming the field; a `Reader` raises the error that
its `refuse` returns.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Set
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from frankly_protocol.clock import parse_time
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem

T = TypeVar("T")
ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
HEX128 = re.compile(r"[0-9a-f]{32}", re.ASCII)
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_JOINERS = "\u200c\u200d"  # zero-width (non-)joiner: needed inside emoji and some scripts


def reject(detail: str, field: str | None) -> DocumentRejected:
    """Return the error for a field that does not fit the schema (acceptance step 4)."""
    return DocumentRejected("schema", detail, field)


class Reader:
    """Readers of JSON values, shared by all formats.

    refuse : returns the error to raise; called with the problem (field_type, field_unknown or
        field_missing), the detail and the path of the field, or None for the whole value.
    """

    def __init__(self, refuse: Callable[[Problem, str, str | None], Exception]) -> None:
        self._refuse = refuse

    def record(
        self, value: Any, field: str | None, required: Set[str], optional: Set[str] = frozenset()
    ) -> dict[str, Any]:
        """Return an object with all `required` keys and no others except `optional` ones."""
        if not isinstance(value, Mapping):
            raise self._refuse(Problem.FIELD_TYPE, "expected a JSON object", field)
        known = required | optional
        # Sorted, so that equal objects always give the same error.
        for key in sorted((set(value) - known) | (required - set(value))):
            path = f"{field}.{key}" if field else key
            if key in value:
                raise self._refuse(
                    Problem.FIELD_UNKNOWN, f"the fields are {', '.join(sorted(known))}", path
                )
            raise self._refuse(Problem.FIELD_MISSING, "this field is needed", path)
        return dict(value)

    def flag(self, value: Any, field: str) -> bool:
        """Return true or false."""
        # 0 and 1 equal False and True in Python, but they are different JSON values.
        if type(value) is not bool:
            raise self._refuse(Problem.FIELD_TYPE, "expected true or false", field)
        return value

    def whole(self, value: Any, field: str) -> int:
        """Return a whole number; true and 1.0 are refused."""
        if type(value) is not int:  # not isinstance: bool is a subclass of int
            raise self._refuse(Problem.FIELD_TYPE, "expected a whole number", field)
        return value

    def number(self, value: Any, field: str) -> Decimal:
        """Return a finite number exactly; a float is read as its shortest decimal text."""
        # repr is this shortest text; Decimal(0.1) would have 55 digits.
        decimal = Decimal(repr(value)) if type(value) is float else value
        if type(decimal) not in (int, Decimal) or not Decimal(decimal).is_finite():
            raise self._refuse(Problem.FIELD_TYPE, "expected a finite number", field)
        return Decimal(decimal)

    def table(self, value: Any, field: str) -> list[list[Any]]:
        """Return a list of at least one row, all of the same length ≥ 1."""
        lines = value if isinstance(value, list | tuple) else ()
        rows = [list(row) if isinstance(row, list | tuple) else [] for row in lines]
        if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            raise self._refuse(
                Problem.FIELD_TYPE, "expected a list of rows, all of the same length", field
            )
        return rows


DOCUMENT = Reader(lambda _, detail, field: reject(detail, field))
REQUEST = Reader(InvalidInput)


def items(
    value: Any, field: str, low: int, high: int, read: Callable[[Any, str], T]
) -> tuple[T, ...]:
    """Return a list of `low` to `high` entries, each read by `read(entry, field)`."""
    if not isinstance(value, list) or not low <= len(value) <= high:
        raise reject(f"expected a list of {low} to {high} entries", field)
    return tuple(read(entry, f"{field}[{i}]") for i, entry in enumerate(value))


def integer(value: Any, field: str, low: int = 0, high: int = 2**53 - 1) -> int:
    """Return a whole number in [low, high]; booleans are refused."""
    # isinstance would accept booleans, which are integers in Python.
    if type(value) is not int or not low <= value <= high:
        raise reject(f"expected a whole number from {low} to {high}", field)
    return value


def ratio(value: Any, field: str, low: int = 1) -> tuple[int, int]:
    """Return [p, q] with p from `low` and q from 1, both below 2^53.

    Floats are refused, so a level is never rounded.
    """
    if not isinstance(value, list) or len(value) != 2:
        raise reject("expected a ratio of two whole numbers", field)
    return integer(value[0], field + "[0]", low), integer(value[1], field + "[1]", 1)


def text(value: Any, field: str, most: int = 4000) -> str:
    """Return a text of 1 to `most` characters that is safe to show."""
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise reject(f"expected a text of 1 to {most} characters", field)
    unsafe = unsafe_character(value)
    if unsafe:
        raise reject(f"the text contains {unsafe}, which cannot be shown safely", field)
    return value


def unsafe_character(value: str) -> str | None:
    """Return the first control, bidi, zero-width, surrogate or private-use character as U+XXXX.

    Returns None if there is none. Line breaks and tabs are unsafe too: a label that begins a new
    line could look like text of the app. Joiners are safe between two characters that are not ASCII
    (emoji, Persian …).
    """
    # Nearly every text is printable: none of its characters is in a category below.
    if value.isprintable():
        return None
    for i, char in enumerate(value):
        if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            continue
        inside = (
            0 < i < len(value) - 1 and not value[i - 1].isascii() and not value[i + 1].isascii()
        )
        if not (char in _JOINERS and inside):
            return f"U+{ord(char):04X}"
    return None


def words(value: Any, field: str, languages: tuple[str, ...]) -> dict[str, str]:
    """Return a text per language, for exactly the document's languages."""
    return {
        key: text(translation, f"{field}.{key}")
        for key, translation in DOCUMENT.record(value, field, set(languages)).items()
    }


def identifier(value: Any, field: str) -> str:
    """Return a short ASCII id: lower-case letters, digits, `-` and `_`."""
    return _matching(value, field, ID, "an id of a-z, 0-9, - and _")


def digest(value: Any, field: str) -> str:
    """Return a `sha256:…` digest."""
    return _matching(value, field, DIGEST, "sha256: and 64 hex digits")


def hex128(value: Any, field: str) -> str:
    """Return 128 bits, written as 32 lower-case hex digits."""
    return _matching(value, field, HEX128, "32 lower-case hex digits")


def language(value: Any, field: str) -> str:
    """Return a language tag such as `en` or `pt-BR`."""
    return _matching(value, field, LANGUAGE, "a language tag such as en")


def moment(value: Any, field: str) -> datetime:
    """Return an aware UTC time."""
    try:
        time = parse_time(value if isinstance(value, str) else "")
    except ValueError as error:
        raise reject(str(error), field) from None
    if not 2000 <= time.year <= 2999:  # adding a skew or a validity must not overflow datetime
        raise reject("expected a year from 2000 to 2999", field)
    return time


def optional(value: Any, field: str, read: Callable[[Any, str], T]) -> T | None:
    """Return None for null, otherwise the result of `read`."""
    return None if value is None else read(value, field)


def distinct(names: tuple[str, ...], field: str) -> None:
    """Raise DocumentRejected("schema") if two names are equal."""
    if len(set(names)) != len(names):
        raise reject("two entries have the same id", field)


def _matching(value: Any, field: str, pattern: re.Pattern[str], expected: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise reject(f"expected {expected}", field)
    return value
