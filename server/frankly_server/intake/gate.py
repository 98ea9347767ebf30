# SPDX-License-Identifier: Apache-2.0
"""What the admin has said of a survey since its document was signed: paused, closed, or closed at so many reports."""

from dataclasses import replace
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import Transaction

PAUSE_S: Final = 3600


class Paused(InvalidInput):
    """The survey takes no reports for now; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self) -> None:
        super().__init__(Problem.TOO_EARLY, "the survey is paused; send the same report later")
        self.retry_after_s = PAUSE_S


def refusal(tx: Transaction, survey: str) -> InvalidInput | None:
    """Return why new reports of a survey are refused, or None; a stop rule that is met closes the survey.

    Asked inside the transaction that would keep them. Reports that are kept together pass the gate together, so that a
    rule of n reports can end with a few more.
    """
    standing = tx.standings.get(survey)
    if standing.state == "paused":
        return Paused()
    if standing.state == "open":
        if standing.stop_reports is None or tx.reports.number(survey) < standing.stop_reports:
            return None
        tx.standings.put(survey, replace(standing, state="closed"))
    return InvalidInput(Problem.CLOSED, "the survey has been closed; do not send again")
