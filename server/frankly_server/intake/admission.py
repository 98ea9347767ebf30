# SPDX-License-Identifier: Apache-2.0
"""What a document lets in: symbols, strata and times, checked without database, network or clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report

from frankly_server.intake.tokens import TokenDoor
from frankly_server.store import ReportRow


class TooEarly(InvalidInput):
    """The survey has not opened; the same report may be sent after `retry_after_s` seconds."""

    def __init__(self, opens: datetime, now: datetime) -> None:
        super().__init__(Problem.TOO_EARLY, f"the survey opens at {format_time(opens)}; send the same report then")
        self.retry_after_s = ceil((opens - now).total_seconds())


@dataclass(frozen=True, slots=True)
class Admission:
    """The part of an immutable document that intake needs; made once per document and kept.

    mechanisms : of each block, which know their symbols. door : judges tokens. strata : allowed
    choices by public question.
    """

    survey: str
    document: str
    opens: datetime
    closes: datetime
    mechanisms: tuple[Mechanism, ...]
    door: TokenDoor
    strata: Mapping[str, frozenset[str]]

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
            strata={q.id: frozenset(choice.id for choice in q.choices) for q in document.strata},
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
        if set(given) != set(self.strata):
            names = ", ".join(sorted(self.strata)) or "none"
            raise InvalidInput(Problem.STRATA_INVALID, f"this survey's public questions are: {names}", "strata")
        for question, choices in self.strata.items():
            if given[question] not in choices:
                raise InvalidInput(Problem.STRATA_INVALID, "not one of the question's choices", f"strata.{question}")
        return canonical.dumps(dict(given)).decode("ascii") if given else ""
