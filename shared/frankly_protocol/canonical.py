# SPDX-License-Identifier: Apache-2.0
"""Strict JSON, and the canonical form of signed payloads (spec 3.1).

Canonical JSON has sorted ASCII keys and no spaces, is UTF-8, and contains only strings, whole
numbers below 2^53 in absolute value, booleans, null, lists and objects. Under these limits the form
is that of RFC 8785. Signed documents therefore never contain floats.
"""

import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem

MAX_BYTES = 4 * 2**20
MAX_DEPTH = 9
# JavaScript reads larger integers inexactly, so the browser SDK could see different values.
MAX_INT = 2**53 - 1
_MAX_DIGITS = 40  # more than any accepted number has, and few enough for a fast int()


class _Bad(ValueError):
    """A parse error whose message may be shown to the sender."""


def dumps(value: Any) -> bytes:
    """Return the canonical bytes of `value`.

    Raises DocumentRejected("canonical") for floats, big integers, non-ASCII keys, lone surrogates
    or excessive depth.
    """
    try:
        # json.dumps alone would accept floats, and recurse to any depth.
        _check(value, MAX_DEPTH)
        return _ENCODER.encode(value).encode("utf-8")
    except TypeError:
        raise DocumentRejected(
            "canonical", "only values that JSON can represent exactly have a canonical form"
        ) from None
    except (_Bad, UnicodeEncodeError) as error:
        raise DocumentRejected("canonical", _message(error)) from None


def loads(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Parse bytes that must already be canonical (acceptance steps 1 and 4).

    Raises DocumentRejected("size") or DocumentRejected("canonical").
    """
    if len(data) > max_bytes:
        raise DocumentRejected("size", f"the payload is larger than {max_bytes} bytes")
    try:
        value = _parse(data, min(max_depth, MAX_DEPTH), decimals=False)
    except (_Bad, InvalidInput) as error:
        raise DocumentRejected("canonical", str(error)) from None
    # Only one spelling is accepted, so that a document has exactly one digest.
    if _ENCODER.encode(value).encode("utf-8") != data:
        raise DocumentRejected("canonical", "the payload is not in canonical form")
    return value


def parse_json(
    data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, decimals: bool = False
) -> Any:
    """Parse untrusted JSON strictly; it need not be in canonical form.

    Duplicate keys, NaN and Infinity, overlong numbers, whole numbers of 2^53 or more, invalid
    UTF-8, lone surrogates, keys that are not ASCII and depth beyond `max_depth` are refused.
    Fractions are refused too unless `decimals` is true; then they are read exactly, as Decimal.

    Raises InvalidInput: body_too_large, json_invalid, or number_not_finite for NaN and Infinity.
    """
    if len(data) > max_bytes:
        raise InvalidInput(Problem.BODY_TOO_LARGE, f"the body may have at most {max_bytes} bytes")
    try:
        return _parse(data, max_depth, decimals=decimals)
    except _Bad as error:
        raise InvalidInput(Problem.JSON_INVALID, str(error)) from None


def digest(payload: bytes) -> str:
    """Return ``sha256:`` and the hex SHA-256 of a payload: the document's identifier."""
    return "sha256:" + hashlib.sha256(payload).hexdigest()


def _parse(data: bytes, max_depth: int, *, decimals: bool) -> Any:
    try:
        value = _DECODERS[decimals].decode(data.decode("utf-8"))
        if b"NaN" in data or b"Infinity" in data:  # walk the tree only when one may occur
            _require_finite(value, named=decimals)
        _check(value, max_depth)
    except _Bad:
        raise
    except UnicodeError:
        raise _Bad("the body is not valid UTF-8") from None
    # The parser recurses before `_check` can count the depth.
    except RecursionError:
        raise _Bad(f"the body is nested deeper than {max_depth} levels") from None
    except json.JSONDecodeError as error:
        # Only the position is given: the body is never quoted.
        raise _Bad(
            f"the body is not valid JSON (line {error.lineno}, column {error.colno})"
        ) from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A dict keeps the last of two equal keys. A parser that keeps the first one would read another
    # value under the same signature.
    record = dict(pairs)
    if len(record) != len(pairs):
        raise _Bad("an object names the same key twice")
    return record


def _integer(text: str) -> int:
    # int() takes time quadratic in the number of digits, so the length is checked first.
    if len(text) > _MAX_DIGITS:
        raise _Bad("a number has too many digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > 2 * _MAX_DIGITS:
        raise _Bad("a number has too many digits")
    try:
        value = Decimal(text)
    except InvalidOperation:  # the exponent is too large even for Decimal
        raise _Bad("a number is too large or too small") from None
    # Exact arithmetic expands the exponent: a few bytes could become a million digits.
    if abs(value.adjusted()) > 400:
        raise _Bad("a number is too large or too small")
    return value


def _no_fraction(_text: str) -> Any:
    raise _Bad("fractions are not accepted here: numbers must be whole")


class _NotFinite(str):
    """Placeholder for NaN or an infinity, until the path of its field is known."""

    __slots__ = ()


def _require_finite(root: Any, *, named: bool) -> None:
    """Raise InvalidInput(number_not_finite) for NaN and Infinity.

    named : True to put the path of the field into the error; False for reports, where the path
        could repeat the sender's text.
    """
    stack = [("", root)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _NotFinite):
            raise InvalidInput(
                Problem.NUMBER_NOT_FINITE,
                f"{value} is not a number: write a finite decimal",
                (path.removeprefix(".") or None) if named else None,
            )
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}", child) for key, child in value.items())
        elif isinstance(value, list):
            stack.extend((f"{path}[{i}]", child) for i, child in enumerate(value))


def _check(root: Any, max_depth: int) -> None:
    """Raise _Bad for excessive depth, bad keys or scalars; walks without recursion, by depth."""
    level, depth = [root], 1
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                _check_keys(value)
                children: Iterable[Any] = value.values()
            elif isinstance(value, list):
                children = value
            else:
                _check_scalar(value)
                continue
            if depth > max_depth:
                raise _Bad(f"the body is nested deeper than {max_depth} levels")
            below += children
            # Each value takes a byte at least; one that contains itself would have no end.
            if len(below) > MAX_BYTES:
                raise _Bad("the body has too many values")
        level, depth = below, depth + 1


def _check_keys(value: dict[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str) or not key.isascii():
            raise _Bad("object keys must be ASCII strings")


def _check_scalar(value: Any) -> None:
    if isinstance(value, str):
        if not value.isascii():
            value.encode("utf-8")  # a lone surrogate parses but cannot be encoded
    # bool is a subclass of int, so it comes before the check for whole numbers.
    elif isinstance(value, bool) or value is None or isinstance(value, Decimal):
        return
    elif not isinstance(value, int):
        raise _Bad("only strings, whole numbers, booleans, null, lists and objects are allowed")
    elif abs(value) > MAX_INT:
        raise _Bad("whole numbers must be below 2^53")


# Built once: json.dumps and json.loads with options would build new ones for every report.
_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_DECODERS: Final = {
    decimals: json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=_integer,
        parse_float=_decimal if decimals else _no_fraction,
        parse_constant=_NotFinite,
    )
    for decimals in (False, True)
}


def _message(error: Exception) -> str:
    return (
        str(error)
        if isinstance(error, _Bad)
        else "a text contains characters that UTF-8 cannot encode"
    )
