# SPDX-License-Identifier: Apache-2.0
"""Admission: what documents let in (symbols, strata, times, tokens), and why a survey takes no reports at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from operator import attrgetter
from typing import Any, Final

from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report

from frankly_server.intake.tokens import Spend, TokenDoor
from frankly_server.store import Database, ReportRow, Transaction

PAUSE_S: Final = 3600


class Paused(InvalidInput):
    """The survey takes no reports for now; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self) -> None:
        super().__init__(Problem.TOO_EARLY, "the survey is paused; send the same report later")
        self.retry_after_s = PAUSE_S


class TooEarly(InvalidInput):
    """The survey has not opened; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self, opens: datetime, now: datetime) -> None:
        super().__init__(Problem.TOO_EARLY, f"the survey opens at {format_time(opens)}; send the same report then")
        self.retry_after_s = ceil((opens - now).total_seconds())


@dataclass(frozen=True, slots=True)
class Admission:
    """The part of an immutable document that intake needs; made once per document and kept.

    mechanisms : of each block, which know their symbols. door : judges tokens. strata : allowed
    choices by public question, in the order of their ids, each as it is stored.
    """

    survey: str
    document: str
    opens: datetime
    closes: datetime
    mechanisms: tuple[Mechanism, ...]
    door: TokenDoor
    strata: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, document: SurveyDocument, digest: str) -> "Admission":
        """Return the rules of one document."""
        return cls(
            survey=document.survey,
            document=digest,
            opens=document.opens,
            closes=min(document.closes, document.expires),
            mechanisms=tuple(block.mechanism for block in document.blocks),
            door=TokenDoor.of(document.token),
            strata={
                q.id: {choice.id: canonical.dumps({q.id: choice.id}).decode("ascii")[1:-1] for choice in q.choices}
                for q in sorted(document.strata, key=attrgetter("id"))
            },
        )

    def admit(self, report: Report, now: datetime) -> ReportRow:
        """Return what would be stored of a report.

        Raises InvalidInput: too_early, closed, y_type, symbol_unknown or strata_invalid. No message
        repeats a value.
        """
        self.require_open(now)
        if len(report.symbols) != len(self.mechanisms):
            words = f"this survey takes {len(self.mechanisms)} symbols, one per block"
            raise InvalidInput(Problem.SYMBOL_UNKNOWN, words, "y")
        for i, (symbol, mechanism) in enumerate(zip(report.symbols, self.mechanisms, strict=True)):
            mechanism.check_symbol(symbol, f"y[{i}]")
        return ReportRow(self.survey, report.id, self.document, report.symbols, self._stratum(report.strata))

    def require_open(self, now: datetime) -> None:
        """Raise InvalidInput: too_early or closed."""
        if now < self.opens:
            raise TooEarly(self.opens, now)
        if now > self.closes:
            raise InvalidInput(Problem.CLOSED, f"the survey closed at {format_time(self.closes)}; do not send again")

    def _stratum(self, given: Mapping[str, str]) -> str:
        """Return canonical JSON, or nothing if the survey has no public questions."""
        if given.keys() != self.strata.keys():
            names = ", ".join(self.strata) or "none"
            raise InvalidInput(Problem.STRATA_INVALID, f"this survey's public questions are: {names}", "strata")
        stored = []
        for question, choices in self.strata.items():
            if given[question] not in choices:
                raise InvalidInput(Problem.STRATA_INVALID, "not one of the question's choices", f"strata.{question}")
            stored.append(choices[given[question]])
        return f"{{{','.join(stored)}}}" if stored else ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A report that its document lets in, and the token it brings; only the first is stored."""

    row: ReportRow
    spend: Spend | None = None


class Admissions:
    """The rules of every document that reports have named; superseded versions count, until their own closing time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Admission] = {}  # by digest; documents never change

    def admit(self, survey_id: str, report: Any, now: datetime) -> Admitted | InvalidInput:
        """Return what would be stored of a report (its bytes, or parsed JSON), or why it is refused."""
        try:
            read = Report.from_bytes(report) if isinstance(report, bytes) else Report.from_json(report)
            admission = self._known.get(read.doc) or self._learn(survey_id, read.doc)
            if admission is None or admission.survey != survey_id:
                self.require_survey(survey_id)
                words = "the report names a document that is not this survey's; fetch the survey again"
                raise InvalidInput(Problem.DOC_MISMATCH, words, "doc")
            return Admitted(admission.admit(read, now), admission.door.spend(survey_id, read.token))
        except InvalidInput as refusal:
            return refusal

    def require_survey(self, survey_id: str) -> None:
        """Raise InvalidInput(survey_unknown) unless the survey is published."""
        if not self.is_published(survey_id):
            raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link")

    def is_published(self, survey_id: str) -> bool:
        """Tell whether there is a document of this survey."""
        if any(admission.survey == survey_id for admission in list(self._known.values())):
            return True
        with self._database.reading("find survey") as tx:
            return tx.documents.latest(survey_id) is not None

    def _learn(self, survey_id: str, digest: str) -> Admission | None:
        with self._database.reading("read document") as tx:
            row = tx.documents.get(digest)
        if row is None or row.survey != survey_id:
            return None
        document = SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)
        return self._known.setdefault(digest, Admission.of(document, digest))


def refusal_of(tx: Transaction, survey: str) -> InvalidInput:
    """Return why a report is neither stored nor was before.

    If the survey is open, it was paused or a copy was erased just now: sent later, the report is stored.
    """
    if tx.standings.get(survey).state in ("closed", "archived"):
        return InvalidInput(Problem.CLOSED, "the survey has been closed; do not send again")
    return Paused()
