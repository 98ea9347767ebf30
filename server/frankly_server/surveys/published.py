# SPDX-License-Identifier: Apache-2.0
"""What publishing tells: the promise of every block, the level of the whole report, the link, and any hindrance."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from frankly_protocol.audit import ReportLevel, is_endless, ln_up
from frankly_protocol.blocks import Block
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import Role

from frankly_server.design.regret import Regret, regret
from frankly_server.estimate.identifiable import answers_of, in_words
from frankly_server.store import DocumentRow, Transaction
from frankly_server.store.standings import StandingRow
from frankly_server.surveys.devices import is_unstated

_PAUSED: Final = "The survey is paused: whoever answers now has the report kept on the device until you resume it."
_RETIRED: Final = (
    "Only retired publisher keys have signed this version: devices refuse it. Run `frankly keys resign` on the server."
)
_OVER: Final = (
    "This version closed at {}: devices refuse it. Give the draft times that lie ahead, and publish it again."
)
KEYS_UNUSABLE: Final = (
    "The keys of this server cannot be used: devices may refuse it. Its operator can ask `frankly doctor`."
)
_CLOSED: Final = "closed and archived surveys take no reports: make a new survey"
_MET: Final = "the survey has the {} reports at which it closes itself: raise that number, or make a new survey"


@dataclass(frozen=True, slots=True)
class PublishedBlock:
    """What a published block promises; epsilon and ceiling are nats as text, ``inf`` if there is no finite bound.

    epsilon : of the first promise; ``inf`` also where public answers void it, and only the ceiling is stated.
    rules_out : some reports all but rule some answers out; the ceiling is infinite or as good as that.
    estimable, untold : in words, what can be estimated, and which shares no number of reports tells apart.
    regret : what the mechanism costs if all choices are equally common; None if nothing.
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


@dataclass(frozen=True, slots=True)
class Published:
    """A published version; ``status`` is ``published``, or ``unchanged`` if this very definition was already out.

    level : what the whole report tells of each secret, within `budget`, and what answering costs a device. warnings :
    what devices will make of it, in sentences.
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
    """Return what every block of a document promises."""
    level = document.report_level
    by_level = {secret.counted for secret in level.secrets.values()}
    counted = {line.block: "level" if line.block in by_level else line.counted_by for line in level.lines}
    return [
        PublishedBlock(
            id=block.id,
            mechanism=block.mechanism_name,
            notion=block.notion,
            epsilon=ln_up(None if is_unstated(block, document) else block.ratio),
            ceiling=ln_up(block.ceiling),
            counted_by=counted[block.id],
            answers_unchanged=block.mechanism.sends_unchanged,
            rules_out=is_endless(block.ceiling),
            estimable=words.can,
            untold=words.cannot,
            regret=regret_of(block),
        )
        for block, words in ((block, in_words(block.mechanism, answers_of(block))) for block in document.blocks)
    ]


def regret_of(block: Block) -> Regret | None:
    """Return what a block's mechanism costs if all choices are equally common; None if nothing."""
    claims = tuple(claim for promise in block.promises for claim in promise.claims)
    return regret(block.mechanism, claims, block.design_prior)


def read_document(row: DocumentRow) -> SurveyDocument:
    """Return a stored document, read from its signed bytes."""
    return SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)


def is_signed(row: DocumentRow, role: Role) -> bool:
    """Tell whether enough keys of a role have signed a stored document, as every device asks."""
    try:
        Envelope.from_bytes(row.envelope, SURVEY_TYPE).verify(role.keys, role.threshold)
    except DocumentRejected:
        return False
    return True


def require_taking(tx: Transaction, survey: str) -> StandingRow:
    """Return the standing of a survey that takes reports, now or once it is resumed.

    A new version of another would be a link at which every answer is refused. Raises InvalidInput(closed).
    """
    standing = tx.standings.get(survey)
    if standing.state in ("closed", "archived"):
        raise InvalidInput(Problem.CLOSED, _CLOSED, "survey")
    if standing.stop_reports is not None and tx.batches.number(survey) >= standing.stop_reports:
        raise InvalidInput(Problem.CLOSED, _MET.format(standing.stop_reports), "survey")
    return standing


def hindrances(row: DocumentRow, standing: StandingRow, publishers: Role, now: datetime) -> tuple[str, ...]:
    """Return what keeps devices from answering a stored version, or its reports from arriving: a sentence each."""
    document = read_document(row)
    ends = min(document.closes, document.expires)
    told = {
        _PAUSED: standing.state == "paused",
        _RETIRED: not is_signed(row, publishers),
        _OVER.format(format_time(ends)): now > ends,
    }
    return tuple(words for words, true in told.items() if true)
