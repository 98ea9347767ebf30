# SPDX-License-Identifier: Apache-2.0
"""Errors of the store. They never quote a driver's message, because that may quote a row."""

from typing import Final

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem

_HINTS: Final = {
    "unable to open database file": "its file cannot be opened: is its folder there, and yours to write?",
    "readonly database": "its file may not be written by you",
    "Connection refused": "nothing answers at its address: is PostgreSQL running?",
    "could not translate host name": "no host has its name",
    "authentication failed": "it refuses the user or the password",
    "does not exist": "it knows no such user or database",
    "timeout expired": "nothing answers at its address in time",
}
"""Part of a driver's message, when a database cannot be opened -> hint for the operator."""


class StoreUnavailable(FranklyError):
    """The database is down, locked, full or out of connections: 503, may be sent again.

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
