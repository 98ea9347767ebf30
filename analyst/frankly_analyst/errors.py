# SPDX-License-Identifier: Apache-2.0
"""Errors of the analyst's client.

AnalystError
 ├─ Unreachable      no response, or a response that is not a Frankly server's: a retry may help
 ├─ Refused          the server refused the request; `.code`, `.status` and `.field` give the reason
 └─ InvalidRequest   a request that this client refuses without sending it
"""


class AnalystError(Exception):
    """Base class of this package's errors.

    ``code`` is a stable slug; ``detail`` describes the problem and how to fix it; ``field`` names
    the invalid input.
    """

    def __init__(self, detail: str, *, code: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}" if self.field else self.detail


class Unreachable(AnalystError):
    """No usable response from a Frankly server, or an address that must not get the key."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="network")


class Refused(AnalystError):
    """The server answered with a problem; ``status`` is the HTTP status."""

    def __init__(self, detail: str, *, code: str, status: int, field: str | None = None) -> None:
        super().__init__(detail, code=code, field=field)
        self.status = status


class InvalidRequest(AnalystError):
    """A request that this client refuses without sending it.

    ``code`` is one of the server's codes: survey_unknown, field_type, strata_invalid, targets_invalid,
    counts_invalid or unsupported.
    """
