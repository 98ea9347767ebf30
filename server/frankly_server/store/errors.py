# SPDX-License-Identifier: Apache-2.0
"""Errors of the store. They never quote a driver's message, because that may quote a row."""

from typing import Final

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem

READ_ONLY: Final = "25006"
"""SQLSTATE of PostgreSQL for a read-only transaction, as on a standby."""
_FULL: Final = "its disk is full: make room"
_LOCKED_FILE: Final = "it is read-only: check the permissions of its file and folder, and whether the disk is writable"
_STANDBY: Final = (
    "it is read-only: is FRANKLY_DATABASE_URL that of the primary, with "
    "default_transaction_read_only off?"
)
_FAULTY_DISK: Final = "its disk cannot be written: is it full? see the system log"
_RESTARTING: Final = "PostgreSQL is starting, ending or recovering from a crash: see its log"
_NOT_WRITABLE: Final = frozenset({_FULL, _LOCKED_FILE, _STANDBY, _FAULTY_DISK})
_HINTS_BY_SQLSTATE: Final = {
    "53100": _FULL,
    READ_ONLY: _STANDBY,
    # ended by an operator, by the crash of another session, or not ready for connections
    **dict.fromkeys(("57P01", "57P02", "57P03"), _RESTARTING),
}
_HINTS: Final = {
    "unable to open database file": "its file cannot be opened; is its folder missing or read-only?",
    "readonly database": _LOCKED_FILE,
    "disk is full": _FULL,
    "disk I/O error": _FAULTY_DISK,
    "the database system is": _RESTARTING,
    "server closed the connection": _RESTARTING,
    "Connection refused": "no server responds at its address: is PostgreSQL running?",
    "could not translate host name": "its host name is unknown",
    "authentication failed": "it rejected the user or the password",
    "does not exist": "it has no such user or database",
    "timeout expired": "no server responds at its address in time",
}
"""Part of a driver's message -> hint for the operator."""


class StoreUnavailable(FranklyError):
    """The database is down, locked, full or out of connections (HTTP 503); retrying may help.

    hint : for the operator, the reason why the database cannot be used; empty if unknown. The
        hint is never sent to clients.
    is_not_writable : True if the database can be read, but is read-only or its disk is full.
    """

    problem = Problem.UNAVAILABLE

    def __init__(self, transaction: str, cause: BaseException | None = None) -> None:
        super().__init__(
            f"the database could not finish '{transaction}'; nothing was acknowledged, try again",
            code=Problem.UNAVAILABLE.code,
        )
        self.transaction = transaction
        # The message is used only if there is no SQLSTATE: an error with SQLSTATE comes from an
        # open session, so its message may quote a row.
        state = getattr(cause, "sqlstate", None) or ""
        message = "" if state else str(cause)
        by_message = next((hint for pattern, hint in _HINTS.items() if pattern in message), "")
        self.hint = _HINTS_BY_SQLSTATE.get(state, by_message)
        self.is_not_writable = self.hint in _NOT_WRITABLE


class UnsafeStore(FranklyError):
    """The database has unsafe settings; the server prints the reason and does not start."""

    problem = Problem.UNSAFE_SETTING

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.UNSAFE_SETTING.code, field="database_url")
