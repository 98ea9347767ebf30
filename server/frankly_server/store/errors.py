# SPDX-License-Identifier: Apache-2.0
"""What the store says when it cannot answer; never a driver's own words, which may quote a row."""

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
"""What drivers say when a database cannot be opened, before any row is read -> the same in words for the operator."""


class StoreUnavailable(FranklyError):
    """The database is down, locked, full or out of connections: 503, and the same bytes may be sent again.

    hint : why it cannot be opened, for whoever runs the server; empty if that is not known. Never sent to clients.
    """

    problem = Problem.UNAVAILABLE

    def __init__(self, transaction: str, cause: BaseException | None = None) -> None:
        super().__init__(
            f"the database could not finish '{transaction}'; nothing was acknowledged, try again",
            code=Problem.UNAVAILABLE.code,
        )
        self.transaction = transaction
        # Errors with a state come from within a session: their words may quote a row.
        said = str(cause) if getattr(cause, "sqlstate", None) is None else ""
        self.hint = next((hint for words, hint in _HINTS.items() if words in said), "")


class UnsafeStore(FranklyError):
    """The database may not be used as it is set up: the server refuses to start, with one line that says why."""

    problem = Problem.UNSAFE_SETTING

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.UNSAFE_SETTING.code, field="database_url")
