# SPDX-License-Identifier: Apache-2.0
"""Second implementation of canonical JSON, envelopes and hash trees (docs/protocol.md §§2, 9).

It shares no code with frankly_protocol, so that the vectors compare two independent programs.
"""

import base64
import hashlib
import json
import re
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DEPTH, BYTES, LIMIT = 9, 4 * 2**20, 2**53
SHORT = {'"': '"', "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LONG = {value: key for key, value in SHORT.items()}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)")


class Refused(Exception):
    """Raised when a check fails; the argument names the step."""


def write(value: Any) -> str:
    """Return the only canonical text of a value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(map(_letter, value)) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return "{" + ",".join(f"{write(key)}:{write(value[key])}" for key in sorted(value)) + "}"


def _letter(char: str) -> str:
    if char in LONG:
        return "\\" + LONG[char]
    return f"\\u{ord(char):04x}" if char < " " else char


def read(data: bytes) -> Any:
    """Return the value whose canonical text this is; raise Refused for any other text."""
    if len(data) > BYTES:
        raise Refused("size")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("utf-8") from None
    value, end = _value(text, 0, 1)
    if end != len(text):
        raise Refused("something follows")
    return value


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    for word, value in (("null", None), ("true", True), ("false", False)):
        if text.startswith(word, at):
            return value, at + len(word)
    char = text[at : at + 1]
    if char == '"':
        return _string(text, at + 1)
    if char in ("[", "{") and char:
        if depth > DEPTH:
            raise Refused("depth")
        return _list(text, at + 1, depth) if char == "[" else _object(text, at + 1, depth)
    number = NUMBER.match(text, at)
    if (
        number is None
        or number.group() == "-0"
        or len(number.group()) > 17
        or abs(int(number.group())) >= LIMIT
    ):
        raise Refused("value")
    return int(number.group()), number.end()


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    if text[at : at + 1] == "]":
        return items, at + 1
    while True:
        value, at = _value(text, at, depth + 1)
        items.append(value)
        if text[at : at + 1] == "]":
            return items, at + 1
        at = _expect(text, at, ",")


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    if text[at : at + 1] == "}":
        return fields, at + 1
    while True:
        key, at = _string(text, _expect(text, at, '"'))
        if not key.isascii() or (fields and key <= list(fields)[-1]):
            raise Refused("key")
        fields[key], at = _value(text, _expect(text, at, ":"), depth + 1)
        if text[at : at + 1] == "}":
            return fields, at + 1
        at = _expect(text, at, ",")


def _expect(text: str, at: int, char: str) -> int:
    if text[at : at + 1] != char:
        raise Refused(f"expected {char}")
    return at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    text_read = ""
    while True:
        char, at = text[at : at + 1], at + 1
        if char == '"':
            return text_read, at
        if not char or char < " ":
            raise Refused("string")
        if char != "\\":
            text_read += char
            continue
        escape = text[at : at + 1]
        if escape in SHORT and escape:
            text_read, at = text_read + SHORT[escape], at + 1
            continue
        raw = text[at : at + 5]
        control = re.fullmatch(r"u00[01][0-9a-f]", raw)
        if control is None or chr(int(raw[1:], 16)) in LONG:
            raise Refused("escape")
        text_read, at = text_read + chr(int(raw[1:], 16)), at + 5


def digest(data: bytes) -> str:
    """Return the digest of a payload."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def signed_message(kind: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding."""
    pieces = [
        b"DSSEv1",
        str(len(kind.encode())).encode(),
        kind.encode(),
        str(len(payload)).encode(),
        payload,
    ]
    return b" ".join(pieces)


def key_id(raw: bytes) -> str:
    """Return the id of an Ed25519 key."""
    return hashlib.sha256(b"ed25519" + b"\x00" + raw).hexdigest()


def open_envelope(data: bytes, kind: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the payload and the signatures by key id; raise Refused("1"), ("2") or ("3") by
    acceptance step."""
    if len(data) > BYTES // 3 * 4 + 16 * 2**10:
        raise Refused("1")
    try:
        body = json.loads(data)
        if set(body) != {"payload", "payloadType", "signatures"} or body["payloadType"] != kind:
            raise Refused("2")
        payload = base64.b64decode(body["payload"], validate=True)
        named = [
            (entry.pop("keyid"), base64.b64decode(entry.pop("sig"), validate=True))
            for entry in body["signatures"]
        ]
        if any(body["signatures"]) or not 1 <= len(named) <= 32:
            raise Refused("2")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Refused("2") from None
    if len(dict(named)) != len(named):
        raise Refused("3")
    return payload, dict(named)


def require_signed(
    payload: bytes, kind: str, signatures: dict[str, bytes], keys: list[bytes], threshold: int
) -> None:
    """Raise Refused("3") unless at least `threshold` distinct keys signed."""
    signed_by = set()
    for raw in keys:
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(
                signatures.get(key_id(raw), b""), signed_message(kind, payload)
            )
            signed_by.add(raw)
        except InvalidSignature:
            continue
    if threshold < 1 or len(signed_by) < threshold:
        raise Refused("3")


def leaf(entry: bytes) -> bytes:
    """Return the leaf hash of RFC 6962 §2.1."""
    return hashlib.sha256(b"\0" + entry).digest()


def root(leaves: list[bytes]) -> bytes:
    """Return MTH(D[n]) over leaf hashes, RFC 6962 §2.1."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    k = _half(len(leaves))
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """Return PATH(m, D[n]), RFC 6962 §2.1.1."""
    n = len(leaves)
    if n == 1:
        return []
    k = _half(n)
    return (
        [*path(m, leaves[:k]), root(leaves[k:])]
        if m < k
        else [*path(m - k, leaves[k:]), root(leaves[:k])]
    )


def growth(m: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    """Return SUBPROOF(m, D[n], b), RFC 6962 §2.1.2; empty for an empty old tree."""
    n = len(leaves)
    if m in (0, n):
        return [] if whole else [root(leaves)]
    k = _half(n)
    if m <= k:
        return [*growth(m, leaves[:k], whole), root(leaves[k:])]
    return [*growth(m - k, leaves[k:], False), root(leaves[:k])]


def _half(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k
