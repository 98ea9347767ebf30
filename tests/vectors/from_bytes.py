# SPDX-License-Identifier: Apache-2.0
"""Vectors of canonical JSON and of envelopes."""

import base64
import json
from collections.abc import Sequence
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, PublicKey, SigningKey, pae
from frankly_protocol.errors import DocumentRejected

Case = dict[str, Any]
KEYS = {
    name: SigningKey.from_raw(bytes([i]) * 32)
    for i, name in enumerate(("one", "two", "three", "stranger"), 1)
}

GOOD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**53 - 1,
    -(2**53) + 1,
    "",
    "plain",
    'quote " backslash \\ slash /',
    "line\nfeed\ttab\rreturn\x08back\x0cform",
    "\x00\x01\x1f\x7f",
    "é€ \u2028 \U0001f600 ﷺ",
    [],
    {},
    [1, [2, [3, []]]],
    {"b": 1, "a": 2, "A": 3, "aa": 4, "_": 5, "0": 6, "": 7},
    {"a": {"b": {"c": {"d": {"e": {"f": {"g": []}}}}}}},
    [[[[[[[[["nine levels"]]]]]]]]],
    {"weights": [[2**48 - 1, 1], [0, 2**48]], "level": [765128314358015, 281474976710656]},
]
BAD: dict[str, bytes] = {
    "empty": b"",
    "space after a colon": b'{"a": 1}',
    "space around": b" 1",
    "newline at the end": b"{}\n",
    "keys out of order": b'{"b":1,"a":2}',
    "capitals sort before small letters": b'{"a":1,"A":2}',
    "a key twice": b'{"a":1,"a":1}',
    "a key that is not ASCII": '{"é":1}'.encode(),
    "an escaped letter": b'"\\u0041"',
    "an escaped slash": b'"\\/"',
    "a long escape for a newline": b'"\\u000a"',
    "a capital in an escape": b'"\\u001F"',
    "an escape where UTF-8 is meant": b'"\\u00e9"',
    "a raw control character": b'"\x01"',
    "a fraction": b"1.5",
    "a whole number as a fraction": b"1.0",
    "an exponent": b"1e3",
    "minus zero": b"-0",
    "a leading zero": b"01",
    "a plus": b"+1",
    "2^53": b"9007199254740992",
    "minus 2^53": b"-9007199254740992",
    "41 digits": b"1" * 41,
    "NaN": b"NaN",
    "Infinity": b"[Infinity]",
    "a lone surrogate": b'"\\ud800"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "not UTF-8": b'"\xff"',
    "a longer form of UTF-8": b'"\xc0\x80"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "ten levels": b"[" * 10 + b"]" * 10,
    "not closed": b'{"a":1',
    "closed twice": b'{"a":1}}',
    "a comma too many": b"[1,]",
    "a word": b"yes",
    "single quotes": b"{'a':1}",
    "two values": b"1 2",
}


def canonical_json() -> Case:
    """Return values with their canonical bytes and digest, and bytes that are not canonical."""
    canonical_texts = [canonical.dumps(value) for value in GOOD]
    bad = []
    for name, data in BAD.items():
        bad.append(
            {"name": name, "base64": base64.b64encode(data).decode(), "code": _refusal(data)}
        )
    listed = [{"text": data.decode(), "digest": canonical.digest(data)} for data in canonical_texts]
    return {
        "good": listed,
        "bad": bad,
        "max_depth": canonical.MAX_DEPTH,
        "max_bytes": canonical.MAX_BYTES,
    }


def _refusal(data: bytes) -> str:
    try:
        canonical.loads(data)
    except DocumentRejected as error:
        return error.code
    raise AssertionError("a bad vector was accepted")


def envelopes() -> Case:
    """Return envelopes with trusted keys and a threshold, and the payload to parse or the error code."""
    payload = b'{"hello":"w\xc3\xb6rld"}'
    envelope = Envelope.seal(SURVEY_TYPE, payload, [KEYS["one"], KEYS["two"]])
    body = json.loads(envelope.to_bytes())
    first, second = body["signatures"]
    cases = [
        _case("both sign", body, ["one", "two"], 2),
        _case("one of two is enough", body, ["one", "two"], 1),
        _case("strangers are passed over", _signed(payload, "one", "stranger"), ["one", "two"], 1),
        _case(
            "a false signature of a trusted key is passed over",
            _with(second, first),
            ["one", "two"],
            1,
        ),
        _case("an empty payload", _signed(b"", "one"), ["one"], 1),
        _case("too few", body, ["one", "three"], 2),
        _case("nobody known", body, ["three"], 1),
        _case("a key listed twice counts once", body, ["one", "one"], 2),
        _case("a threshold of nobody", body, ["one"], 0),
        _case("a key signs twice", {**body, "signatures": [first, first]}, ["one", "two"], 1),
        _case("a key signs under another's name", _with(second, first), ["one", "two"], 2),
        _case("another payload", {**body, "payload": base64.b64encode(b"{}").decode()}, ["one"], 1),
        _case("another type inside the signature", _retyped(payload), ["one"], 1),
        _case("another type", {**body, "payloadType": "application/json"}, ["one"], 1),
        _case("no signature", {**body, "signatures": []}, ["one"], 1),
        _case(
            "33 signatures",
            {**body, "signatures": [{"keyid": str(i), "sig": ""} for i in range(33)]},
            ["one"],
            1,
        ),
        _case("a field too many", {**body, "extra": 1}, ["one"], 1),
        _case("a field too few", {"payload": "", "signatures": []}, ["one"], 1),
        _case(
            "a signature without its key's id",
            {**body, "signatures": [{"sig": first["sig"]}]},
            ["one"],
            1,
        ),
        _case("base64 with a space", {**body, "payload": body["payload"] + " "}, ["one"], 1),
        _case("a payload that is no text", {**body, "payload": 1}, ["one"], 1),
        _case("a list", [body], ["one"], 1),
    ]
    message = pae(SURVEY_TYPE, payload)
    return {
        "payload_type": SURVEY_TYPE,
        "public_keys": {name: key.public.raw.hex() for name, key in KEYS.items()},
        "pae": {"payload_base64": base64.b64encode(payload).decode(), "message_hex": message.hex()},
        "cases": cases,
    }


def _signed(payload: bytes, *names: str) -> Any:
    return json.loads(
        Envelope.seal(SURVEY_TYPE, payload, [KEYS[name] for name in names]).to_bytes()
    )


def _with(second: Case, first: Case) -> Any:
    """Return an envelope whose second signature is by the first key, under the second key's id."""
    forged = {"keyid": second["keyid"], "sig": first["sig"]}
    return {**_signed(b'{"hello":"w\xc3\xb6rld"}', "one"), "signatures": [first, forged]}


def _retyped(payload: bytes) -> Any:
    """Return an envelope with a survey's type whose signature covers another type."""
    foreign = Envelope.seal("application/vnd.other+json", payload, [KEYS["one"]])
    return {**json.loads(foreign.to_bytes()), "payloadType": SURVEY_TYPE}


def _case(name: str, body: Any, trusted: Sequence[str], threshold: int) -> Case:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    keys = [PublicKey(KEYS[key].public.raw) for key in trusted]
    case: Case = {"name": name, "envelope": text, "trusted": list(trusted), "threshold": threshold}
    try:
        payload = Envelope.from_bytes(text.encode(), SURVEY_TYPE).verify(keys, threshold)
    except DocumentRejected as error:
        return {**case, "payload_base64": None, "code": error.code}
    return {**case, "payload_base64": base64.b64encode(payload).decode(), "code": None}
