# SPDX-License-Identifier: Apache-2.0
"""Errors of the store. They never quote a driver's message, because that may quote a row."""

from typing import Final

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem

_HINTS: Final = {
    "unable to open database file": "its file cannot be opened; is its folder missing or read-only?",
    "readonly database": "you have no permission to write to its file",
    "Connection refused": "no server responds at its address: is PostgreSQL running?",
    "could not translate host name": "its host name is unknown",
    "authentication failed": "it rejected the user or the password",
    "does not exist": "it has no such user or database",
    "timeout expired": "no server responds at its address in time",
}
"""Hints for the operator when a database cannot be opened, by a part of the driver's message."""


class StoreUnavailable(FranklyError):
    """The database is down, locked, full or out of connections (HTTP 503); retrying may help.

    hint : for the operator, the reason why the database cannot be opened; empty if the reason is
    not known. The hint is never sent to clients.
    """

    problem = Problem.UNAVAILABLE

    def __init__(self, transaction: str, cause: BaseException | None = None) -> None:
        super().__init__(
            f"the database could not finish '{transaction}'; nothing was acknowledged, try again",
            code=Problem.UNAVAILABLE.code,
        )
        self.transaction = transaction
        # An error with an SQLSTATE comes from an open session, so its message may quote a row.
        message = str(cause) if getattr(cause, "sqlstate", None) is None else ""
        self.hint = next((hint for pattern, hint in _HINTS.items() if pattern in message), "")


class UnsafeStore(FranklyError):
    """The database is set up in an unsafe way; the server prints the reason and does not start."""

    problem = Problem.UNSAFE_SETTING

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.UNSAFE_SETTING.code, field="database_url")
