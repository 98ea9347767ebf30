# SPDX-License-Identifier: Apache-2.0
"""The report: all that ever leaves a device (DESIGN §5). No time, no version string, no locale, no address."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

MAX_REPORT_BYTES = 16 * 2**10
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_HEX128 = re.compile(r"[0-9a-f]{32}", re.ASCII)
_KEYS = {"v", "doc", "id", "y", "strata", "token"}


@dataclass(frozen=True, slots=True)
class Report:
    """One respondent's symbols for one document.

    doc : the document's digest. id : 128 random bits as hex, drawn once with the symbols. symbols : one per block, in
    the document's order. strata : public answers by question id. Symbols and ids stay out of reprs.
    """

    doc: str
    id: str = field(repr=False)
    symbols: tuple[int, ...] = field(repr=False)
    strata: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_bytes(self, length: int) -> bytes:
        """Return the report as JSON, padded with spaces to `length` bytes so that its size says nothing.

        A `length` of 0 pads nothing. ValueError if the report is longer: it is not one of the document's.
        """
        body = {
            "v": 1,
            "doc": self.doc,
            "id": self.id,
            "y": list(self.symbols),
            "strata": dict(sorted(self.strata.items())),
            "token": None,
        }
        data = json.dumps(body, separators=(",", ":")).encode("ascii")
        if length and len(data) > length:
            raise ValueError("the report is longer than any of this document's reports")
        return data.ljust(length)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Report":
        """Read an untrusted report; whether it fits a document is the intake's affair.

        Raises InvalidInput: body_too_large, json_invalid, field_unknown, field_missing, field_type, y_type,
        token_invalid. The message never repeats a value.
        """
        return cls.from_json(parse_json(data, max_bytes=MAX_REPORT_BYTES, max_depth=3))

    @classmethod
    def from_json(cls, body: Any) -> "Report":
        """Read a report that strict JSON parsing has already opened; errors as `from_bytes`."""
        if not isinstance(body, dict):
            raise InvalidInput(Problem.JSON_INVALID, "a report is a JSON object")
        for key in sorted(set(body) ^ _KEYS):
            known = key in _KEYS
            # An unknown key is the sender's own text: say which fields exist instead of repeating it.
            raise InvalidInput(
                Problem.FIELD_MISSING if known else Problem.FIELD_UNKNOWN,
                "this field is missing" if known else f"a report has exactly the fields {', '.join(sorted(_KEYS))}",
                key if known else None,
            )
        if type(body["v"]) is not int or body["v"] != 1:
            raise InvalidInput(Problem.FIELD_TYPE, "this server reads reports of version 1", "v")
        for name, pattern in (("doc", _DIGEST), ("id", _HEX128)):
            if not isinstance(body[name], str) or not pattern.fullmatch(body[name]):
                raise InvalidInput(Problem.FIELD_TYPE, _EXPECTED[name], name)
        if body["token"] is not None:
            raise InvalidInput(Problem.TOKEN_INVALID, "this survey takes no token: send null", "token")
        return cls(body["doc"], body["id"], _symbols(body["y"]), _strata(body["strata"]))


_EXPECTED = {"doc": "expected sha256: and 64 hex digits", "id": "expected 32 lower-case hex digits"}


def _symbols(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(y) is int and y >= 0 for y in value):
        raise InvalidInput(Problem.Y_TYPE, "expected a list of whole numbers, one per block", "y")
    return tuple(value)


def _strata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise InvalidInput(Problem.FIELD_TYPE, "expected an object of texts", "strata")
    return value
