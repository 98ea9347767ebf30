# SPDX-License-Identifier: Apache-2.0
"""The report, which contains all the data about a respondent that a device sends (spec 6.1).

It contains no time, no app version, no locale and no address.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import DIGEST, HEX128

MAX_REPORT_BYTES = 16 * 2**10
MAX_TOKEN = 1400
SymbolJson = int | str | list[int]
"""The JSON form of a symbol: a number for a table, hex for a set, a list for a product."""
_SET = re.compile(r"[0-9a-f]{1,250}", re.ASCII)
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOKEN}}}", re.ASCII)
_KEYS = {"v", "doc", "id", "y", "strata", "token"}


@dataclass(frozen=True, slots=True)
class Report:
    """One respondent's symbols for one document.

    doc : the document's digest.
    id : 128 random bits as hex, drawn once with the symbols.
    symbols : one per block, in the document's order, in the JSON form of the block's mechanism.
    strata : public answers by question id.
    token : the token that the document's token rule requires, or None if it has no rule.

    The repr shows `doc` only.
    """

    doc: str
    id: str = field(repr=False)
    symbols: tuple[SymbolJson, ...] = field(repr=False)
    strata: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | None = field(default=None, repr=False)

    def to_bytes(self, length: int) -> bytes:
        """Return the report as JSON, padded with spaces to `length` bytes to hide its size.

        With a `length` of 0 there is no padding and no limit. Otherwise raises ValueError if the
        report is longer than `length`.
        """
        body = {
            "v": 1,
            "doc": self.doc,
            "id": self.id,
            "y": list(self.symbols),
            "strata": dict(sorted(self.strata.items())),
            "token": self.token,
        }
        data = json.dumps(body, separators=(",", ":")).encode("ascii")
        # A longer report would be recognisable by its size, so it must never be sent.
        if length and len(data) > length:
            raise ValueError("the report is longer than any of this document's reports")
        return data.ljust(length)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Report":
        """Read an untrusted report and check its form; the intake checks it against its document.

        Raises InvalidInput: body_too_large, json_invalid, number_not_finite, field_unknown,
        field_missing, field_type, y_type, token_invalid. The message never repeats an answer.
        """
        return cls.from_json(parse_json(data, max_bytes=MAX_REPORT_BYTES, max_depth=3))

    @classmethod
    def from_json(cls, body: Any) -> "Report":
        """Read a report from strictly parsed JSON; raises the same errors as `from_bytes`."""
        if not isinstance(body, dict):
            raise InvalidInput(Problem.JSON_INVALID, "a report is a JSON object")
        for key in sorted(set(body) ^ _KEYS):
            is_missing = key in _KEYS
            # An unknown key is the sender's text, so it is not repeated; the valid keys are listed.
            raise InvalidInput(
                Problem.FIELD_MISSING if is_missing else Problem.FIELD_UNKNOWN,
                "this field is missing"
                if is_missing
                else f"a report has exactly the fields {', '.join(sorted(_KEYS))}",
                key if is_missing else None,
            )
        # A plain comparison would accept true, which equals 1 in Python.
        if type(body["v"]) is not int or body["v"] != 1:
            raise InvalidInput(Problem.FIELD_TYPE, "this server reads reports of version 1", "v")
        for name, pattern in (("doc", DIGEST), ("id", HEX128)):
            if not isinstance(body[name], str) or not pattern.fullmatch(body[name]):
                raise InvalidInput(Problem.FIELD_TYPE, _EXPECTED[name], name)
        if body["token"] is not None and not (
            isinstance(body["token"], str) and _TOKEN.fullmatch(body["token"])
        ):
            raise InvalidInput(Problem.TOKEN_INVALID, "a token is base64url text, or null", "token")
        return cls(
            body["doc"], body["id"], _symbols(body["y"]), _strata(body["strata"]), body["token"]
        )


_EXPECTED = {"doc": "expected sha256: and 64 hex digits", "id": "expected 32 lower-case hex digits"}


def _symbols(value: Any) -> tuple[SymbolJson, ...]:
    if not isinstance(value, list) or not all(_is_symbol(y) for y in value):
        raise InvalidInput(
            Problem.Y_TYPE,
            "expected a list of symbols, one per block: whole numbers, hex digits, or lists of whole numbers",
            "y",
        )
    return tuple(value)


def _is_symbol(value: Any) -> bool:
    if isinstance(value, list):
        return all(type(y) is int and y >= 0 for y in value)
    return (type(value) is int and value >= 0) or (
        isinstance(value, str) and bool(_SET.fullmatch(value))
    )


def _strata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise InvalidInput(Problem.FIELD_TYPE, "expected an object of texts", "strata")
    return value
