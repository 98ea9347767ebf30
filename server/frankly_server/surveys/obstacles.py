# SPDX-License-Identifier: Apache-2.0
"""Reasons why devices refuse a published version, or why its survey accepts no reports."""

from datetime import datetime
from typing import Final

from frankly_protocol.clock import format_time
from frankly_protocol.documents import CLOCK_SKEW, SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import Role

from frankly_server.store import DocumentRow, Transaction
from frankly_server.store.survey_states import SurveyStateRow

_PAUSED: Final = (
    "The survey is paused: devices keep the reports of people who answer now until you resume it."
)
_RETIRED: Final = (
    "Only retired publisher keys have signed this version: devices refuse it. Run `frankly "
    "keys resign` on the server."
)
_AHEAD: Final = (
    "This version is dated {}, after this server's clock: devices refuse it until then. Set the "
    "clock; if it is right, publish again, which makes a new version."
)
_ENDED: Final = (
    "This version closed at {}: devices refuse it. Give the draft times in the future, and "
    "publish it again."
)
KEYS_UNUSABLE: Final = (
    "The keys of this server cannot be used: devices may refuse the survey. The server's operator "
    "can run `frankly doctor`."
)
_CLOSED: Final = "closed and archived surveys accept no reports: create a new survey"
_TARGET_MET: Final = (
    "the survey has reached the {} reports at which it closes: raise this number, or create a new "
    "survey"
)


def is_ahead(document: SurveyDocument, now: datetime) -> bool:
    """Return True if a document is dated in the future, because the clock was ahead."""
    return document.issued > now + CLOCK_SKEW


def require_changeable(tx: Transaction, survey_id: str) -> None:
    """Raise InvalidInput(immutable) if the survey is archived."""
    if tx.survey_states.get(survey_id).state == "archived":
        raise InvalidInput(
            Problem.IMMUTABLE, "an archived survey cannot be changed: duplicate it", "survey"
        )


def require_accepting(tx: Transaction, survey: str) -> SurveyStateRow:
    """Return the state of a survey that accepts reports, now or after being resumed.

    Raises InvalidInput(closed) for other surveys, whose new versions would refuse every report.
    """
    state_row = tx.survey_states.get(survey)
    if state_row.state in ("closed", "archived"):
        raise InvalidInput(Problem.CLOSED, _CLOSED, "survey")
    # Only released reports count. If pending reports counted, the moment of closing would reveal
    # that someone has just answered.
    if state_row.stop_reports is not None and tx.batches.number(survey) >= state_row.stop_reports:
        raise InvalidInput(Problem.CLOSED, _TARGET_MET.format(state_row.stop_reports), "survey")
    return state_row


def obstacles(
    row: DocumentRow,
    document: SurveyDocument,
    state_row: SurveyStateRow,
    publishers: Role,
    now: datetime,
) -> tuple[str, ...]:
    """Return a sentence for each reason why devices refuse a stored version.

    document : the document in the row's envelope.
    """
    # Devices refuse a version after the earlier of these times.
    ends = min(document.closes, document.expires)
    messages = {
        _PAUSED: state_row.state == "paused",
        # Verified again, because keys may have been retired after the document was stored.
        _RETIRED: not publishers.has_signed(row.envelope, SURVEY_TYPE),
        _ENDED.format(format_time(ends)): now > ends,
        _AHEAD.format(format_time(document.issued)): is_ahead(document, now),
    }
    return tuple(message for message, applies in messages.items() if applies)
