# SPDX-License-Identifier: Apache-2.0
"""Admission rules of documents: the symbols, strata, times and tokens that a report may have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, Final

from frankly_design.kinds.parts import clear_blocks
from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AnyMechanism
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report

from frankly_server.intake.tokens import Spend, TokenCheck
from frankly_server.store import Database, ReportRow, Transaction

PAUSE_S: Final = 3600  # Retry-After of a paused survey; the end of a pause is unknown


class Paused(InvalidInput):
    """The survey is paused; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self) -> None:
        super().__init__(Problem.TOO_EARLY, "the survey is paused; send the same report later")
        self.retry_after_s = PAUSE_S


class TooEarly(InvalidInput):
    """The survey has not opened; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self, opens: datetime, now: datetime) -> None:
        super().__init__(
            Problem.TOO_EARLY,
            f"the survey opens at {format_time(opens)}; send the same report then",
        )
        self.retry_after_s = ceil((opens - now).total_seconds())


@dataclass(frozen=True, slots=True)
class Admission:
    """Admission rules of one document, computed once, because documents never change.

    mechanisms : one per block; each checks its symbol. token_check : the token rule.
    strata : the JSON text to store for an answer, by public question or instructed item (sorted by
        id) and choice or result; with arms, also for the arm.
    clear : the choices of each question that an arm asks in the clear (`clear_blocks`). Their
        positions are stored behind the symbols.
    arms : of a document with arms, the rules of each, by the id of `arms` and then its own.
    """

    survey: str
    document: str
    opens: datetime
    closes: datetime
    mechanisms: tuple[AnyMechanism, ...]
    token_check: TokenCheck
    strata: Mapping[str, Mapping[str, str]]
    clear: Mapping[str, Sequence[str]]
    arms: tuple[str, Mapping[str, "Admission"]] | None = None

    @classmethod
    def of(cls, document: SurveyDocument, digest: str) -> "Admission":
        """Return the rules of one document, or of one view."""
        clear = {block.id: block.questions[0] for block in clear_blocks(document)}
        arms = {name: cls.of(view, digest) for name, view in document.views.items()}
        return cls(
            survey=document.survey,
            document=digest,
            opens=document.opens,
            # Devices refuse an expired document, so reports on it are refused too.
            closes=min(document.closes, document.expires),
            mechanisms=tuple(block.mechanism for block in document.blocks),
            token_check=TokenCheck.of(document.token),
            # Encoded once, so that a report's stratum is a join of these texts. Canonical JSON
            # sorts its keys, so the questions are sorted by id.
            strata={
                name: {
                    value: canonical.dumps({name: value}).decode("ascii")[1:-1] for value in values
                }
                for name, values in sorted(document.open_values.items())
                if name not in clear
            },
            clear={
                name: [choice.id for choice in question.choices] for name, question in clear.items()
            },
            arms=(document.arms.id, arms) if document.arms is not None and arms else None,
        )

    def admit(self, report: Report, now: datetime) -> ReportRow:
        """Return the row that stores a report.

        Raises InvalidInput: too_early, closed, y_type, symbol_unknown or strata_invalid. Messages
        do not repeat values of the report.
        """
        self.require_open(now)
        if self.arms is not None:
            return self._arm(report.strata).admit(report, now)
        if len(report.symbols) != len(self.mechanisms):
            raise InvalidInput(
                Problem.SYMBOL_UNKNOWN,
                f"a report of this survey has {len(self.mechanisms)} symbols, one per block",
                "y",
            )
        for i, (symbol, mechanism) in enumerate(zip(report.symbols, self.mechanisms, strict=True)):
            mechanism.check_symbol(symbol, f"y[{i}]")
        stratum = self._stratum(report.strata)
        clear = tuple(ids.index(report.strata[name]) for name, ids in self.clear.items())
        return ReportRow(self.survey, report.id, self.document, (*report.symbols, *clear), stratum)

    def _arm(self, answers: Mapping[str, str]) -> "Admission":
        assert self.arms is not None  # noqa: S101 - the caller has checked it
        name, arms = self.arms
        arm = arms.get(answers.get(name, ""))
        if arm is None:
            raise InvalidInput(
                Problem.STRATA_INVALID, "the report names no arm of this survey", f"strata.{name}"
            )
        return arm

    def require_open(self, now: datetime) -> None:
        """Raise InvalidInput: too_early before the survey opens, closed after it closes."""
        if now < self.opens:
            raise TooEarly(self.opens, now)
        if now > self.closes:
            raise InvalidInput(
                Problem.CLOSED,
                f"the survey closed at {format_time(self.closes)}; do not send again",
            )

    def _stratum(self, answers: Mapping[str, str]) -> str:
        """Return the stratum as canonical JSON, or "" if the survey has no public questions."""
        known = self.strata.keys() | self.clear.keys()
        if answers.keys() != known:
            names = ", ".join(sorted(known)) or "none"
            raise InvalidInput(
                Problem.STRATA_INVALID, f"this survey's public questions are: {names}", "strata"
            )
        for question, choices in (*self.strata.items(), *self.clear.items()):
            if answers[question] not in choices:
                raise InvalidInput(
                    Problem.STRATA_INVALID,
                    "not one of the question's choices",
                    f"strata.{question}",
                )
        stored = [choices[answers[question]] for question, choices in self.strata.items()]
        return f"{{{','.join(stored)}}}" if stored else ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """An admitted report and the token that it spends; they are stored without a link."""

    row: ReportRow
    spend: Spend | None = None


class Admissions:
    """Admission rules of all documents, each loaded when a report first refers to its document.

    Reports of superseded versions are accepted until these close, because a device that was offline
    may not have a newer one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._by_digest: dict[str, Admission] = {}  # never removed, because documents never change

    def admit(self, survey_id: str, report: Any, now: datetime) -> Admitted | InvalidInput:
        """Return the admitted report, or the reason for its refusal. report : bytes or JSON."""
        try:
            parsed = (
                Report.from_bytes(report) if isinstance(report, bytes) else Report.from_json(report)
            )
            admission = self._by_digest.get(parsed.doc) or self._load(survey_id, parsed.doc)
            if admission is None or admission.survey != survey_id:
                # An unknown survey gets its own error.
                self.require_survey(survey_id)
                raise InvalidInput(
                    Problem.DOC_MISMATCH,
                    "the report names no document of this survey; fetch the survey again",
                    "doc",
                )
            return Admitted(
                admission.admit(parsed, now),
                admission.token_check.spend(survey_id, parsed.token, parsed.strata),
            )
        except InvalidInput as refusal:
            return refusal

    def require_survey(self, survey_id: str) -> None:
        """Raise InvalidInput(survey_unknown) unless the survey is published."""
        if not self.is_published(survey_id):
            raise InvalidInput(
                Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link"
            )

    def is_published(self, survey_id: str) -> bool:
        """Return True if this survey has a published document."""
        # list(): another thread may add a document during the iteration.
        if any(admission.survey == survey_id for admission in list(self._by_digest.values())):
            return True
        with self._database.reading("find survey") as tx:
            return tx.documents.latest(survey_id) is not None

    def _load(self, survey_id: str, digest: str) -> Admission | None:
        with self._database.reading("read document") as tx:
            row = tx.documents.get(digest)
        if row is None or row.survey != survey_id:
            return None
        document = SurveyDocument.from_envelope(row.envelope)
        return self._by_digest.setdefault(digest, Admission.of(document, digest))


def refusal_of(tx: Transaction, survey: str) -> InvalidInput:
    """Return the reason why a report with an unused id was not inserted.

    Reports of a survey that is not open are not inserted. If the survey is open now, it was paused
    a moment ago, or a stored copy has been erased; in both cases the device can send the report
    again.
    """
    if tx.survey_states.get(survey).state in ("closed", "archived"):
        return InvalidInput(Problem.CLOSED, "the survey has been closed; do not send again")
    return Paused()
