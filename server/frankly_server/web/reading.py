# SPDX-License-Identifier: Apache-2.0
"""Parsing of requests: body size, content type, and parameters of path and query."""

import re
from collections.abc import Collection

from flask import request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.request import MARGIN_RANGE
from frankly_server.store.schema import is_digest, is_id

JSON = "application/json"
TEXT = "text/plain"
BYTES = "application/octet-stream"
BATCH_JSON = "application/vnd.frankly.batch+json"
MAX_QUERY_BYTES = 7680
"""With a path, such a query fits into 8,000 bytes, the request line that RFC 9112 recommends to support."""
MAX_QUERY_FIELDS = 32


def content_type(accepted: Collection[str]) -> str:
    """Return the body's media type, one of `accepted`.

    Raises InvalidInput(content_type), also for a charset other than UTF-8 or a compressed body.
    """
    # The common case comes first: parsing a media type costs as much as parsing a small report.
    sent = request.content_type
    if sent in accepted and not request.content_encoding:
        return sent
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype not in accepted or charset != "utf-8" or request.content_encoding:
        raise InvalidInput(
            Problem.CONTENT_TYPE,
            f"send one of: {', '.join(sorted(accepted))} (UTF-8, not compressed)",
        )
    return request.mimetype


def body(max_bytes: int) -> bytes:
    """Return the body without caching it; refuse a body above `max_bytes` with 413."""
    # werkzeug cuts a body without a length at its limit, so the limit is one byte higher.
    request.max_content_length = max_bytes + 1
    data = request.get_data(cache=False)
    if len(data) > max_bytes:
        raise InvalidInput(Problem.BODY_TOO_LARGE, f"the body may have at most {max_bytes} bytes")
    return data


def query(allowed: Collection[str]) -> dict[str, str]:
    """Return the query parameters.

    Raises InvalidInput: bad_request for an oversized query or a repeated parameter, field_unknown
    for a name that is not in `allowed`.
    """
    if not request.query_string:
        return {}
    # Counted in the raw text, because the purpose of the limit is to avoid parsing.
    if (
        len(request.query_string) > MAX_QUERY_BYTES
        or request.query_string.count(b"&") >= MAX_QUERY_FIELDS
    ):
        raise InvalidInput(
            Problem.BAD_REQUEST,
            f"a query has at most {MAX_QUERY_FIELDS} parameters and {MAX_QUERY_BYTES:,} bytes as it is sent, "
            "that is, percent-encoded",
            _longest(allowed),
        )
    parameters: dict[str, str] = {}
    for name, value in request.args.items(multi=True):
        if name not in allowed:
            allowed_names = ", ".join(sorted(allowed)) or "none"
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                f"a query parameter is not known here; known: {allowed_names}",
                "query",
            )
        # Refused, because proxies differ in which of two values they use.
        if name in parameters:
            raise InvalidInput(Problem.BAD_REQUEST, "a query parameter is given twice", name)
        parameters[name] = value
    return parameters


def _longest(allowed: Collection[str]) -> str | None:
    """Return a known parameter that takes more than half of the bytes of a query; None if none does."""
    sizes = dict.fromkeys(allowed, 0)
    for part in request.query_string.split(b"&"):
        name = part.partition(b"=")[0].decode("latin-1")
        if name in sizes:
            sizes[name] += len(part)
    return next((name for name, size in sizes.items() if size > MAX_QUERY_BYTES // 2), None)


def survey_id(text: str) -> str:
    """Return `text` if it is a well-formed survey id; does not query the database.

    Raises InvalidInput(survey_unknown).
    """
    if not is_id(text):
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN, "a survey id is 32 hexadecimal digits; check the link", "survey"
        )
    return text


def digest(text: str | None) -> str | None:
    """Return `text`, a well-formed document digest or None. Raises InvalidInput(field_type)."""
    if text is not None and not is_digest(text):
        raise InvalidInput(
            Problem.FIELD_TYPE, "a digest is written sha256: and 64 hexadecimal digits", "digest"
        )
    return text


def whole(text: str | None, name: str) -> int | None:
    """Return a parameter as an integer of at most 16 digits, without sign; None if left out.

    Raises InvalidInput(field_type).
    """
    # Leading zeros are refused, so that every number has one spelling and every page one address.
    if text is not None and not re.fullmatch(r"0|[1-9][0-9]{0,15}", text):
        raise InvalidInput(Problem.FIELD_TYPE, "write a whole number", name)
    return None if text is None else int(text)


def page_size(text: str | None, most: int) -> int | None:
    """Return the number of things per page, 1 to `most`; None if it is left out. Raises InvalidInput(field_type)."""
    size = whole(text, "limit")
    if size is not None and not 1 <= size <= most:
        raise InvalidInput(Problem.FIELD_TYPE, f"write a number from 1 to {most}", "limit")
    return size


def flag(text: str, name: str) -> bool:
    """Return a query flag, written true or false. Raises InvalidInput(field_type)."""
    if text not in ("true", "false"):
        raise InvalidInput(Problem.FIELD_TYPE, "write true or false", name)
    return text == "true"


def level(text: str, name: str) -> float:
    """Return a confidence level strictly between 0 and 1 (bad input 49).

    Raises InvalidInput(confidence_range).
    """
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,12})?", text) or not 0.0 < float(text) < 1.0:
        raise InvalidInput(
            Problem.CONFIDENCE_RANGE,
            "the level is a share strictly between 0 and 1: for 95% use 0.95",
            name,
        )
    return float(text)


def positive(text: str, name: str) -> float:
    """Return a positive decimal. Raises InvalidInput(field_type)."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,12})?", text) or float(text) == 0:
        raise InvalidInput(Problem.FIELD_TYPE, MARGIN_RANGE, name)
    return float(text)


def denial(text: str, name: str) -> float:
    """Return a share of people who deny, from 0 to below 1. Raises InvalidInput(field_type)."""
    if not re.fullmatch(r"0(\.[0-9]{1,12})?", text):
        raise InvalidInput(
            Problem.FIELD_TYPE, "the share is from 0 to below 1: for 20% use 0.2", name
        )
    return float(text)
