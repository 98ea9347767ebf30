# SPDX-License-Identifier: Apache-2.0
"""What the store says when it cannot answer; never a driver's own words, which may quote a row."""

from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem


class StoreUnavailable(FranklyError):
    """The database is down, locked, full or out of connections: 503, and the same bytes may be sent again."""

    problem = Problem.UNAVAILABLE

    def __init__(self, transaction: str) -> None:
        super().__init__(
            f"the database could not finish '{transaction}'; nothing was acknowledged, try again",
            code=Problem.UNAVAILABLE.code,
        )
        self.transaction = transaction


class UnsafeStore(FranklyError):
    """The database may not be used as it is set up: the server refuses to start, with one line that says why."""

    problem = Problem.UNSAFE_SETTING

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code=Problem.UNSAFE_SETTING.code, field="database_url")
