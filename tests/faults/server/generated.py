# SPDX-License-Identifier: Apache-2.0
"""Requests as bytes, generated from a seed: half follow the OpenAPI description, half are malformed."""

import gzip
import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

NUMBERS = [
    *(sign * 2**bits + offset for bits in (31, 32, 53, 63, 64) for sign in (1, -1) for offset in (-1, 0, 1)),
    0, 1, -1, 10**15, 10**16, 10**400,
]  # fmt: skip
TEXTS = [
    "", " ", "a", "0", "-0", "1e400", "NaN", "Infinity", "null", "true", "\x00", "\ud7ff", "é", "\u202e", "٣", "%",
    "%zz",
    "%00", "%ff%fe", "../", "..%2f", "' OR 1=1 --", "{{7*7}}", "a" * 5000,
    "[]", "{}", "1,2", "\r\nX: y", "main", "2026-11-23",
]  # fmt: skip
TYPES = [
    "application/json", "application/vnd.frankly.batch+json", "multipart/form-data",
    "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain",
    "application/json; charset=utf-16", "", "a" * 300, "application/",
]  # fmt: skip
METHODS = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "X" * 40,
    "G\x00T",
    "",
]
TAILS = ["?", "#", "//", "?%", "?a=%zz&a", "\x7f", "?size=" + "9" * 400, "?" + "a&" * 500]
LENGTHS = ["-1", "1e3", "9" * 30, "5, 6", "+3", "", "٣", "1", "0x10"]
CODINGS = ["chunked", "gzip, chunked", "xchunked", "chunked, chunked", "identity", ""]
HEADERS = [
    "Cookie",
    "Host",
    "Origin",
    "Expect",
    "Range",
    "If-None-Match",
    "Authorization",
    "X\x00",
    "Accept",
]
VERSIONS = [b"HTTP/9.9", b"HTTP/1.0", b"", b"HTTP/2", b"ICY"]
ADMIN = [
    "/admin/sign-in", "/admin/surveys", "/admin/surveys/new", "/admin/audit", "/admin/audit?before={n}", "/admin/keys",
    "/admin/surveys/{id}/estimates", "/admin/surveys/{id}/margins?block={t}", "/admin/account", "/admin/{t}",
]  # fmt: skip


class Generator:
    """Generates requests to a server.

    description : the server's OpenAPI document. survey : id of an existing survey. key : an API key
    for that survey. report : the bytes of a report to that survey.
    """

    def __init__(self, description: dict[str, Any], survey: str, key: str, report: bytes) -> None:
        self._schemas = description["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, item in description["paths"].items()
            for method, operation in item.items()
            if method in ("get", "post")
        ]
        self._survey, self._key, self._report = survey, key, report

    def request(self, seed: int) -> bytes:
        """Return the request of this seed."""
        draw = random.Random(seed)
        return self._described(draw) if seed % 2 else self._malformed(draw)

    def _described(self, draw: random.Random) -> bytes:
        """Return a well-formed HTTP request with edge values of the described types."""
        method, path, operation = draw.choice(self._operations)
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                known = self._survey if parameter["name"] == "survey_id" else self._text(draw)
                value = known if draw.random() < 0.7 else self._text(draw)
                path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
        query = [
            f"{parameter['name']}={quote(self._scalar(draw, parameter['schema']), safe='')}"
            for parameter in operation.get("parameters", [])
            if parameter["in"] == "query" and (parameter.get("required") or draw.random() < 0.5)
        ]
        headers = self._key_header(draw)
        body = b""
        content = operation.get("requestBody", {}).get("content", {})
        if content:
            kind = draw.choice(list(content))
            value = self._value(draw, content[kind]["schema"], 0)
            body = self._new_report(draw) if draw.random() < 0.3 else json.dumps(value).encode()
            headers["Content-Type"] = kind
        return _http(method, path + ("?" + "&".join(query) if query else ""), headers, body)

    def _malformed(self, draw: random.Random) -> bytes:
        """Return a request with a fault in its request line, headers, length, chunks or body."""
        method, path, _ = draw.choice(self._operations)
        if draw.random() < 0.3:
            method, path = draw.choice(["GET", "POST"]), draw.choice(ADMIN)
        path = path.replace("{survey_id}", self._survey).replace("{id}", self._survey)
        path = path.replace("{n}", str(draw.choice(NUMBERS))).replace(
            "{t}", quote(self._text(draw))
        )
        headers = self._key_header(draw) | {"Content-Type": draw.choice(TYPES)}
        body = self._body(draw)
        whole = _http(method, path, headers, body)
        chunked = headers | {"Transfer-Encoding": "chunked"}
        coded = headers | {"Transfer-Encoding": draw.choice(CODINGS)}
        header = draw.choice(HEADERS)
        bends: list[Callable[[], bytes]] = [
            lambda: _http(draw.choice(METHODS), path, headers, body),
            lambda: _http(method, path + draw.choice(TAILS), headers, body),
            lambda: _http(method, path, headers | {"Content-Length": draw.choice(LENGTHS)}, body),
            lambda: _http(method, path, coded, body, sized=False),
            lambda: _http(method, path, chunked, self._chunks(draw, body), sized=False),
            lambda: _http(method, path, headers | {"Content-Encoding": "gzip"}, gzip.compress(body)),
            lambda: _http(method, path, headers | {header: self._text(draw)}, body),
            lambda: whole[: draw.randrange(1, 400)],
            lambda: draw.randbytes(draw.randrange(1, 300)) + b"\r\n\r\n",
            lambda: whole.replace(b"\r\n", draw.choice([b"\n", b"\r", b"\r\n "]), draw.randrange(1, 4)),
            lambda: whole.replace(b"HTTP/1.1", draw.choice(VERSIONS), 1),
        ]  # fmt: skip
        return draw.choice(bends)()

    def _new_report(self, draw: random.Random) -> bytes:
        """Return the report with one of a thousand ids, which may be new to the server."""
        report = json.loads(self._report)
        return json.dumps(report | {"id": f"{draw.randrange(1000):032x}"}).encode()

    def _body(self, draw: random.Random) -> bytes:
        report = bytearray(self._report)
        for _ in range(draw.randrange(4)):
            report[draw.randrange(len(report))] = draw.randrange(256)
        return draw.choice([
            bytes(report), bytes(report[: draw.randrange(len(report))]), b"", b"[" * 3000, b"\xff\xfe", b"null", b"[]",
            json.dumps(self._value(draw, {}, 0)).encode(), b'{"a":1,"a":2}', b"NaN", b"1" * 6000, b"--x\r\n\r\n--x--",
        ])  # fmt: skip

    def _chunks(self, draw: random.Random, body: bytes) -> bytes:
        size = draw.choice(
            [
                b"%x" % len(body),
                b"ZZ",
                b"-1",
                b"",
                b"0x5",
                b"%x" % (len(body) + 9),
                b"f" * 30,
                b"5;a=b",
            ]
        )
        return (
            size
            + draw.choice([b"\r\n", b"\n", b""])
            + body
            + draw.choice([b"\r\n0\r\n\r\n", b"\r\n", b"", b"0\r\n"])
        )

    def _key_header(self, draw: random.Random) -> dict[str, str]:
        key = draw.choice([self._key, self._key, "frankly_x", self._key[:-1], ""])
        return {"Authorization": f"Bearer {key}"} if draw.random() < 0.7 else {}

    def _text(self, draw: random.Random) -> str:
        return draw.choice([*TEXTS, *map(str, NUMBERS)])

    def _scalar(self, draw: random.Random, schema: dict[str, Any]) -> str:
        value = self._value(draw, schema, 3)
        return value if isinstance(value, str) else json.dumps(value)

    def _value(self, draw: random.Random, schema: dict[str, Any], depth: int) -> Any:
        """Return a value that matches the schema, or with probability 1/8 a value of any type."""
        if "$ref" in schema:
            return self._value(draw, self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        if draw.random() < 0.125 or depth > 6:
            return draw.choice(
                [None, True, [], {}, draw.choice(TEXTS), draw.choice(NUMBERS), 0.5, -1e300]
            )
        if "anyOf" in schema:
            return self._value(draw, draw.choice(schema["anyOf"]), depth)
        if "enum" in schema or "const" in schema:
            return draw.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type", draw.choice(["object", "array", "string", "integer"]))
        kind = draw.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            fields = schema.get("properties", {"a": {}})
            required = schema.get("required", [])
            taken = [name for name in fields if name in required or draw.random() < 0.3]
            return {name: self._value(draw, fields[name], depth + 1) for name in taken}
        if kind == "array":
            items = schema.get("items", {})
            return [
                self._value(draw, items, depth + 1) for _ in range(draw.choice([0, 1, 1, 2, 3]))
            ]
        if kind in ("integer", "number"):
            edges = [schema.get("minimum", 0), schema.get("maximum", 1), *NUMBERS]
            return draw.choice(edges) if draw.random() < 0.7 else draw.choice([1, 2, 3, 0.25])
        if kind == "boolean":
            return draw.random() < 0.5
        return self._survey if draw.random() < 0.2 else draw.choice(TEXTS)


def _http(
    method: str, path: str, headers: dict[str, str], body: bytes, *, sized: bool = True
) -> bytes:
    length = {"Content-Length": str(len(body))} if sized and body else {}
    lines = {"Host": "frankly.example", "Connection": "close"} | length | headers
    head = "\r\n".join(
        [
            f"{method} {path} HTTP/1.1",
            *(f"{k}: {v}" for k, v in lines.items() if v or k != "Content-Type"),
        ]
    )
    return head.encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body
