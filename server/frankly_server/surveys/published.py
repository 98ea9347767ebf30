# SPDX-License-Identifier: Apache-2.0
"""Published versions: promises of blocks, level of the report, obstacles to answering."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from frankly_protocol.audit import ReportLevel, is_endless, ln_up
from frankly_protocol.blocks import Block
from frankly_protocol.clock import format_time
from frankly_protocol.documents import CLOCK_SKEW, SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem
from frankly_protocol.trust import Role

from frankly_server.design.api.regret import Regret, regret
from frankly_server.estimate.identifiable import answers_of, in_words
from frankly_server.forms import part_blocks
from frankly_server.store import DocumentRow, Transaction
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys.devices import is_unstated
from frankly_server.surveys.form_notes import form_notes

_PAUSED: Final = (
    "The survey is paused: devices keep the reports of people who answer now until you resume it."
)
_RETIRED: Final = (
    "Only retired publisher keys have signed this version: devices refuse it. Run `frankly "
    "keys resign` on the server."
)
_AHEAD: Final = (
    "This version is dated {}, after this server's clock: devices refuse it until then. Set the "
    "clock right; if it is right, publish again, which makes a new version."
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


@dataclass(frozen=True, slots=True)
class PublishedBlock:
    """Promises of a published block; epsilon and ceiling are nats as text, ``inf`` without a bound.

    epsilon : of the first promise; also ``inf`` if public answers void it, so that only the ceiling
    is stated. rules_out : True if some reports practically exclude some answers, because the
    ceiling is infinite or very large (`is_endless`). estimable, untold : descriptions of shares
    that can be estimated, and of those that cannot be distinguished. regret : the loss of the
    mechanism if all choices are equally common; None if there is none. notes : sentences about a
    form: the content of a report, the joint tables that can be estimated, the design's quality.
    """

    id: str
    mechanism: str
    notion: str
    epsilon: str
    ceiling: str
    counted_by: str
    answers_unchanged: bool
    rules_out: bool
    estimable: Sequence[str]
    untold: Sequence[str]
    regret: Regret | None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A published version.

    status : ``published``, or ``unchanged`` if the newest version already has this definition.
    level : what the whole report reveals about each secret, within `budget`, and what answering
    costs a device. warnings : sentences about devices that would refuse the survey.
    """

    status: str
    survey_id: str
    name: str
    version: int
    digest: str
    link: str
    level: ReportLevel
    has_strata: bool
    budget: str
    blocks: Sequence[PublishedBlock]
    warnings: Sequence[str] = ()


def promised(document: SurveyDocument) -> list[PublishedBlock]:
    """Return the promises of every block of a document."""
    level = document.report_level
    # In the sum for one secret a block may count with its promise, and with its ceiling for the
    # others. One such promise is enough for the block to be shown as counted by its level.
    by_level = {secret.counted for secret in level.secrets.values()}
    counted_by = {
        line.block: "level" if line.block in by_level else line.counted_by for line in level.lines
    }
    return [
        PublishedBlock(
            id=block.id,
            mechanism=block.mechanism_name,
            notion=block.notion,
            epsilon=ln_up(None if is_unstated(block, document) else block.ratio),
            ceiling=ln_up(block.ceiling),
            counted_by=counted_by[block.id],
            answers_unchanged=block.mechanism.sends_unchanged,
            rules_out=is_endless(block.ceiling),
            estimable=can,
            untold=cannot,
            regret=regret_of(block),
            notes=form_notes(block),
        )
        for block in document.blocks
        # A loop over one element names a costly result (exact linear algebra) that is used twice.
        for can, cannot in [_estimability(block)]
    ]


def _estimability(block: Block) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the combinations of shares that can be estimated, and the changes that cannot be seen.

    For a form, these are the combinations and changes of its parts.
    """
    parts = part_blocks(block) or (block,)
    each = [in_words(part.numbered_mechanism, answers_of(part)) for part in parts]
    return tuple(s for part in each for s in part.can), tuple(
        s for part in each for s in part.cannot
    )


def regret_of(block: Block) -> Regret | None:
    """Return the loss of a block's mechanism for equally common choices; None if there is none.

    Returns None for a form, whose notes compare it with the best possible design.
    """
    if isinstance(block.mechanism, AgreementMechanism):
        return None
    claims = tuple(claim for promise in block.promises for claim in promise.claims)
    return regret(block.mechanism, claims, block.design_prior)


def is_signed(row: DocumentRow, role: Role) -> bool:
    """Return True if enough keys of a role have signed a stored document."""
    try:
        # Verified again, because keys may have been retired since the document was stored.
        Envelope.from_bytes(row.envelope, SURVEY_TYPE).verify(role.keys, role.threshold)
    except DocumentRejected:
        return False
    return True


def is_ahead(document: SurveyDocument, now: datetime) -> bool:
    """Return True if a document is dated later than now: published while the clock was ahead."""
    return document.issued > now + CLOCK_SKEW


def require_taking(tx: Transaction, survey: str) -> SurveyStateRow:
    """Return the state of a survey that accepts reports, now or after it is resumed.

    Raises InvalidInput(closed) for other surveys: a new version would refuse every report.
    """
    state_row = tx.survey_states.get(survey)
    if state_row.state in ("closed", "archived"):
        raise InvalidInput(Problem.CLOSED, _CLOSED, "survey")
    # Only released reports count: with pending ones, the moment of closing would show who has just
    # answered.
    if state_row.stop_reports is not None and tx.batches.number(survey) >= state_row.stop_reports:
        raise InvalidInput(Problem.CLOSED, _TARGET_MET.format(state_row.stop_reports), "survey")
    return state_row


def hindrances(
    row: DocumentRow,
    document: SurveyDocument,
    state_row: SurveyStateRow,
    publishers: Role,
    now: datetime,
) -> tuple[str, ...]:
    """Return a sentence for each obstacle that keeps devices from answering a stored version.

    document : the document in the row's envelope.
    """
    # Devices refuse a version after the earlier of these times.
    ends = min(document.closes, document.expires)
    messages = {
        _PAUSED: state_row.state == "paused",
        _RETIRED: not is_signed(row, publishers),
        _ENDED.format(format_time(ends)): now > ends,
        _AHEAD.format(format_time(document.issued)): is_ahead(document, now),
    }
    return tuple(message for message, applies in messages.items() if applies)
