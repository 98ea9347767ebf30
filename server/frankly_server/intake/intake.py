# SPDX-License-Identifier: Apache-2.0
"""Accepting reports: each kept once, counted in the same transaction, acknowledged after the commit (DESIGN §5)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from frankly_protocol.clock import Clock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report

from frankly_server.intake import regular
from frankly_server.intake.admission import Admission
from frankly_server.intake.refusals import Refusals
from frankly_server.intake.regular import Batch, Known, Memory, Regular
from frankly_server.intake.storing import Admitted, AllAccepted, Outcome, keep, keep_plain
from frankly_server.intake.together import Together
from frankly_server.store import Database, StoreUnavailable


class Intake:
    """Stores reports of published surveys. Safe to share between threads."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._admissions: dict[str, Admission] = {}  # by digest; documents never change
        self._memory = Memory()
        self._refusals = Refusals(database)
        self._singles: Together[Admitted, Outcome | InvalidInput] = Together(self._keep, at_once=database.writers)

    def accept(self, survey_id: str, body: bytes) -> Outcome:
        """Store one report and return after the commit; sending the same bytes again is safe.

        Raises InvalidInput: survey_unknown, doc_mismatch, too_early, closed, symbol_unknown, strata_invalid,
        token_invalid, token_foreign, token_spent, id_conflict (another report with this id was first), or what
        `Report.from_bytes` raises; StoreUnavailable if nothing is certain, in which case the same bytes should be sent
        again.
        """
        try:
            report = regular.single(body)
            admitted = self._parsed(survey_id, body) if report is None else self._recognised(survey_id, report)
            outcome = self._singles.submit(admitted)
            if isinstance(outcome, InvalidInput):
                raise outcome
        except InvalidInput as refusal:
            self._count_refusals(survey_id, [refusal])
            raise
        return outcome

    def accept_batch(self, survey_id: str, reports: Sequence[Any]) -> Sequence[Outcome | InvalidInput]:
        """Store many reports in one transaction; return what became of each, in their order.

        `reports` are bytes, values that strict JSON parsing has already opened, or what `recognised` gave. A refused
        one, returned as its error, never fails its neighbours. Raises InvalidInput(survey_unknown) for all of them, or
        StoreUnavailable.
        """
        self._require_survey(survey_id)
        kept = self._kept_of(survey_id, reports) if isinstance(reports, Batch) else {}
        if isinstance(kept, AllAccepted):
            return kept
        left = [report for i, report in enumerate(reports) if i not in kept] if kept else reports
        rest = iter(self._looked_at(survey_id, left) if left else ())
        return [kept[i] if i in kept else next(rest) for i in range(len(reports))]

    def _kept_of(self, survey_id: str, batch: Batch) -> AllAccepted | dict[int, Outcome]:
        """Keep what is plainly new of a batch, all of whose texts are known; nothing if one is not.

        By number, unless all were new.
        """
        known = [each for each in self._memory.known(batch.texts) if each is not None]
        texts = set(known)
        if len(known) < len(batch) or not all(self._is_open(text.admission, survey_id) for text in texts):
            return {}
        kind_of = {text: text.kind(self._database) for text in texts}
        ids = b",".join(batch.ids).decode().split(",")
        kinds = [kind for text in known if (kind := kind_of[text]) is not None]
        if len(kinds) < len(ids) or len(set(ids)) < len(ids):
            return {}
        new = self._database.keep_new(survey_id, ids, kinds, self._today())
        if len(new) == len(ids):
            return AllAccepted(ids)
        return {i: Outcome("accepted", report_id) for i, report_id in enumerate(ids) if report_id in new}

    def _looked_at(self, survey_id: str, reports: Sequence[Any]) -> list[Outcome | InvalidInput]:
        """Read and keep reports of any form, one by one."""
        rows: list[Admitted] = []
        refused: dict[int, InvalidInput] = {}
        for i, report in enumerate(reports):
            try:
                known = isinstance(report, Regular)
                rows.append(self._recognised(survey_id, report) if known else self._parsed(survey_id, report))
            except InvalidInput as refusal:
                refused[i] = refusal
        with self._database.transaction("accept batch") as tx:
            kept = iter(keep(tx, rows, self._today()))
            outcomes = [refused[i] if i in refused else next(kept) for i in range(len(reports))]
            refusals = [outcome for outcome in outcomes if isinstance(outcome, InvalidInput)]
            tx.days.add(survey_id, self._today(), _by_code(refusals))
        return outcomes

    def _is_open(self, admission: Admission, survey_id: str) -> bool:
        try:
            admission.require_open(self._clock.now())
        except InvalidInput:
            return False
        return admission.survey == survey_id

    def recognised(self, body: bytes) -> Batch | None:
        """Return the reports of a batch's body if it is written as our SDKs write it, for `accept_batch`; else None.

        The body is then `{"reports": […]}` and strict JSON, which None says nothing about.
        """
        return self._memory.batch(body)

    def refusals(self, survey_id: str) -> dict[tuple[str, str], int]:
        """Return (UTC day, problem code) -> how many reports were refused."""
        self._refusals.flush()
        with self._database.reading("refusals") as tx:
            return tx.days.of_survey(survey_id)

    def close(self) -> None:
        """Write the counts of refusals that are still in memory."""
        self._refusals.flush()

    def _keep(self, rows: Sequence[Admitted]) -> list[Outcome | InvalidInput]:
        today = self._today()
        kept = keep_plain(self._database, rows, today)
        left = [i for i in range(len(rows)) if i not in kept]
        if not left:
            return [kept[i] for i in range(len(rows))]
        with self._database.transaction("accept reports") as tx:
            looked_at = dict(zip(left, keep(tx, [rows[i] for i in left], today), strict=True))
        return [kept[i] if i in kept else looked_at[i] for i in range(len(rows))]

    def _parsed(self, survey_id: str, report: Any) -> Admitted:
        """Read and admit a report: bytes, or a value that strict JSON parsing has already opened."""
        return self._admit(
            survey_id, Report.from_bytes(report) if isinstance(report, bytes) else Report.from_json(report)
        )

    def _recognised(self, survey_id: str, report: Regular) -> Admitted:
        """Admit a report whose text may be known; a known one is held against the clock and the survey again."""
        known = self._memory.of(report)
        if known is None or known.admission.survey != survey_id:
            read = report.parsed()
            admitted = self._admit(survey_id, read)
            if admitted.spend is None:
                row = admitted.row
                self._memory.add(report, Known(self._admissions[read.doc], row.symbols, row.strata))
            return admitted
        known.admission.require_open(self._clock.now())
        row = known.row(report.id.decode())
        return Admitted(row, kind=known.kind(self._database))

    def _admit(self, survey_id: str, report: Report) -> Admitted:
        admission = self._admissions.get(report.doc) or self._learn(survey_id, report.doc)
        if admission is None or admission.survey != survey_id:
            self._require_survey(survey_id)
            words = "the report names a document that is not this survey's; fetch the survey again"
            raise InvalidInput(Problem.DOC_MISMATCH, words, "doc")
        return Admitted(admission.admit(report, self._clock.now()), admission.door.spend(survey_id, report.token))

    def _learn(self, survey_id: str, digest: str) -> Admission | None:
        """Read a document's rules once; superseded versions count as well, until their own closing time."""
        with self._database.reading("read document") as tx:
            row = tx.documents.get(digest)
        if row is None or row.survey != survey_id:
            return None
        payload = Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload
        admission = Admission.of(SurveyDocument.parse(payload), digest)
        self._admissions[digest] = admission
        return admission

    def _require_survey(self, survey_id: str) -> None:
        if not self._is_published(survey_id):
            raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link")

    def _is_published(self, survey_id: str) -> bool:
        if any(admission.survey == survey_id for admission in list(self._admissions.values())):
            return True
        with self._database.reading("find survey") as tx:
            return tx.documents.latest(survey_id) is not None

    def _count_refusals(self, survey_id: str, refusals: Iterable[InvalidInput]) -> None:
        """Add to the day's counters of a published survey; a database that is down must not hide the refusal."""
        try:
            published = self._is_published(survey_id)
        except StoreUnavailable:  # logged by the store
            return
        if published:
            self._refusals.add(survey_id, self._today(), refusals)

    def _today(self) -> str:
        return self._clock.now().date().isoformat()


def _by_code(refusals: Iterable[InvalidInput]) -> dict[str, int]:
    return dict(Counter(refusal.code for refusal in refusals))
