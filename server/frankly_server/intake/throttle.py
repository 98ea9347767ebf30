# SPDX-License-Identifier: Apache-2.0
"""Limit of the reports of one source of a survey: a flood from one panel leaves the others alone.

A report counts once its token has been spent, so nobody without tokens of a source can use up its limit
or find out from it that somebody else has answered.
"""

import time
from collections.abc import Callable, Sequence
from math import ceil

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.buckets import Buckets
from frankly_server.intake.tokens import Spend
from frankly_server.store import Transaction


class TooManyOfSource(InvalidInput):
    """One source sends too many reports; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            Problem.TOO_MANY,
            f"too many reports of this source: send the same one in {retry_after_s} s, not earlier",
        )
        self.retry_after_s = retry_after_s


class Throttle:
    """At most `per_s` reports per second of each source, and those of ten seconds at once; thread-safe.

    monotonic : clock, in seconds.
    """

    def __init__(self, per_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._buckets, self._monotonic = Buckets.of_rate(per_s), monotonic

    def refuse(
        self, tx: Transaction, survey: str, spends: Sequence[tuple[str, Spend]]
    ) -> dict[str, InvalidInput]:
        """Return the refusals of reports above the limit, by their ids, and give their tokens back.

        spends : (report id, token) of new reports whose tokens have been spent in this transaction.
        """
        held = [
            (report_id, spend)
            for report_id, spend in spends
            if spend.source and not self._is_free(f"{survey} {spend.source}")
        ]
        if held:
            invites = [spend.hash for _, spend in held if spend.invited]
            tx.tokens.give_back(survey, invites)
            tx.tokens.forget(survey, [spend.hash for _, spend in held if not spend.invited])
        # The longest wait for all: the time left would tell when others of the source have answered.
        wait_s = max(1, ceil(1 / self._buckets.per_s))
        return {report_id: TooManyOfSource(wait_s) for report_id, _ in held}

    def _is_free(self, name: str) -> bool:
        return self._buckets.take(name, self._monotonic()).wait_s <= 0
