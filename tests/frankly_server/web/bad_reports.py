# SPDX-License-Identifier: Apache-2.0
"""Reports that are refused: changed fields, other bodies, other media types."""

from typing import Any

from tests.frankly_server.web.site import CANARY

# Name -> (fields to change in a valid report, status, code, field).
BAD_FIELDS: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    "35 a report of another version": ({"v": 2}, 422, "field_type", "v"),
    "36 an unknown extra field": ({CANARY: CANARY}, 422, "field_unknown", None),
    "36 y as text": ({"y": CANARY}, 422, "y_type", "y"),
    "36 a symbol as boolean": ({"y": [True, 0]}, 422, "y_type", "y"),
    "36 a symbol as text": ({"y": ["1", 0]}, 422, "y_type", "y[0]"),
    "36 a negative symbol": ({"y": [-1, 0]}, 422, "y_type", "y"),
    "37 a symbol out of range": ({"y": [0, 3]}, 422, "symbol_unknown", "y[1]"),
    "37 too few symbols": ({"y": [0]}, 422, "symbol_unknown", "y"),
    "37 too many symbols": ({"y": [0, 0, 0]}, 422, "symbol_unknown", "y"),
    "38 another document": ({"doc": "sha256:" + "0" * 64}, 422, "doc_mismatch", "doc"),
    "38 a digest of the wrong form": ({"doc": CANARY}, 422, "field_type", "doc"),
    "an id that is too short": ({"id": "ab"}, 422, "field_type", "id"),
    "an id with a trailing newline": ({"id": "0" * 32 + "\n"}, 422, "field_type", "id"),
    "an id in Arabic digits": ({"id": "٠" * 32}, 422, "field_type", "id"),
    "a stratum with an unknown choice": (
        {"strata": {"region": CANARY}},
        422,
        "strata_invalid",
        "strata.region",
    ),
    "strata missing": ({"strata": {}}, 422, "strata_invalid", "strata"),
    "strata as list": ({"strata": [CANARY]}, 422, "field_type", "strata"),
    "41 a token without a token rule": ({"token": CANARY}, 401, "token_invalid", "token"),
}
# Name -> (bytes, status, code).
BAD_BODIES: dict[str, tuple[bytes, int, str]] = {
    "35 nothing": (b"", 400, "json_invalid"),
    "35 longer than a report may be": (b" " * 70_000, 413, "body_too_large"),
    "35 longer than any body may be": (b" " * 3_000_000, 413, "body_too_large"),
    "35 invalid UTF-8": (b'{"v":1,"doc":"\xff"}', 400, "json_invalid"),
    "35 cut off": (b'{"v":1,"doc":"sha', 400, "json_invalid"),
    "36 duplicate keys": (b'{"v":1,"v":1}', 400, "json_invalid"),
    "36 a number of 5,000 digits": (b'{"v":' + b"1" * 5000 + b"}", 400, "json_invalid"),
    "36 a fraction": (b'{"v":1.0}', 400, "json_invalid"),
    "36 NaN": (b'{"v":NaN}', 422, "number_not_finite"),
    "36 a lone surrogate": (b'{"v":"\\ud800"}', 400, "json_invalid"),
    "36 a NUL in a key": (b'{"v\\u0000":1}', 422, "field_missing"),
    "32 16,000 levels deep": (b"[" * 16_000, 400, "json_invalid"),
    "32 deeper than a report is": (b'{"v":[[[[1]]]]}', 400, "json_invalid"),
    "a list": (b"[]", 400, "json_invalid"),
    "a number": (b"1", 400, "json_invalid"),
    "an HTML page": (b"<html>" + CANARY.encode(), 400, "json_invalid"),
}
CONTENT_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                 "application/json; charset=latin-1", "application/problem+json")  # fmt: skip
