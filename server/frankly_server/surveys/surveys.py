# SPDX-License-Identifier: Apache-2.0
"""Surveys service: drafts, and signed documents with immutable payloads."""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from json import loads
from typing import TYPE_CHECKING, Final

from frankly_design.numeric.lazy import LazyModule
from frankly_protocol import canonical
from frankly_protocol.audit import ReportLevel
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys import Keyring
from frankly_server.log import LogService
from frankly_server.settings import Settings
from frankly_server.store import (
    Database,
    DocumentRow,
    Record,
    StoreUnavailable,
    SurveyRow,
    Transaction,
    unrecorded,
)
from frankly_server.store.schema import is_name
from frankly_server.store.survey_states import MAIN, SurveyStateRow
from frankly_server.store.surveys import full_name
from frankly_server.surveys.changes import differences
from frankly_server.surveys.obstacles import (
    KEYS_UNUSABLE,
    is_ahead,
    obstacles,
    require_accepting,
    require_changeable,
)
from frankly_server.surveys.older_versions import larger_minimum
from frankly_server.surveys.page_definition import PageDefinition

if TYPE_CHECKING:
    from frankly_protocol.tokens import TokenRule

    from frankly_server.surveys import definition as definitions
    from frankly_server.surveys import devices, drafting, live, published
    from frankly_server.surveys.definition import SurveyDefinition
else:
    # Lazy, because these modules import the design engine, which many operations do not need.
    definitions = LazyModule("frankly_server.surveys.definition")
    devices = LazyModule("frankly_server.surveys.devices")
    drafting = LazyModule("frankly_server.surveys.drafting")
    live = LazyModule("frankly_server.surveys.live")
    published = LazyModule("frankly_server.surveys.published")


@dataclass(frozen=True, slots=True)
class Change:
    """Result of `apply` or of its dry run.

    status : ``created``, ``updated`` or ``unchanged``. diff : the fields that differ. survey_id :
    None for a survey that a dry run would create. level : an upper bound on the report's level,
    within the survey's budget. warnings : sentences about devices that would refuse
    the survey, and about a larger minimum of an earlier version.
    """

    status: str
    survey_id: str | None
    name: str
    diff: Sequence[str]
    level: ReportLevel
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of the list of surveys.

    state : draft, scheduled, open or closed: open if any version accepts answers now. last : the last
    moment (UTC) of the version that decides this, the newest if possible. least : reports that a
    result of the newest version needs. token : its rule for invitations. newest : the newest version,
    unless the summary is one of a list. Drafts have version 0, no link and no last moment.
    """

    survey_id: str
    name: str
    state: str
    version: int
    link: str | None
    last: datetime | None = None
    least: int = 0
    token: "TokenRule | None" = None
    newest: SurveyDocument | None = field(default=None, compare=False, repr=False)

    @property
    def last_day(self) -> date | None:
        """The last day (UTC) on which somebody can answer: at midnight, the day before."""
        return None if self.last is None else (self.last - timedelta(seconds=1)).date()


@dataclass(frozen=True, slots=True)
class EarlierDraft:
    """A draft that another one replaced at `replaced` (RFC 3339). text : its canonical JSON."""

    number: int
    replaced: str
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What can be said of a survey beside its summary.

    open_versions, is_draft_published, obstacles : see the methods of `Surveys` with these names.
    """

    open_versions: Sequence[SurveyDocument]
    is_draft_published: bool
    obstacles: Sequence[str]


ERASED: Final = "answers erased"
"""Action of the audit trail for `Surveys.erase`."""


@dataclass(frozen=True, slots=True)
class Erased:
    """Result of `erase`: the number of deleted reports."""

    survey_id: str
    name: str
    reports: int


class DraftChanged(InvalidInput):
    """The draft is not the one that the change is based on (immutable)."""


class Surveys:
    """Service that applies definitions, publishes documents and serves envelopes."""

    def __init__(self, settings: Settings, database: Database, keys: Keyring, clock: Clock) -> None:
        self._settings = settings
        self._database = database
        self._keys = keys
        self._clock = clock

    def create(
        self,
        definition: "SurveyDefinition",
        organisation: str,
        recorder: Callable[[str], Record],
        *,
        is_named: bool = False,
    ) -> str:
        """Store a new survey of an organisation and return its id.

        A name that the organisation already uses gets a random suffix, or is refused if `is_named`.
        recorder : function from the survey's name to the writer of the event. Raises InvalidInput:
        taken for a name in use, and those of `expected_form` for an unusable prior.
        """
        devices.warnings_of(
            devices.expected_form(definition)
        )  # refuses a prior that cannot be used
        survey_id = secrets.token_hex(16)
        with self._database.administering("create survey") as tx:
            # A second survey with the same title is a new survey, not a change of the first one.
            if tx.surveys.by_name(full_name(definition.name, organisation)) is not None:
                if is_named:
                    raise InvalidInput(
                        Problem.TAKEN,
                        "a survey has this name already: change its draft, or use another name",
                        "name",
                    )
                name = f"{definition.name[:55]}-{secrets.token_hex(3)}"
                definition = definition.model_copy(update={"name": name})
            name = full_name(definition.name, organisation)
            tx.surveys.add(SurveyRow(survey_id, name, definition.to_json()))
            # A survey without a row in survey_states belongs to the main organisation.
            if organisation != MAIN:
                tx.survey_states.put(survey_id, SurveyStateRow(organisation))
            recorder(definition.name)(tx)
        return survey_id

    def redefine(
        self, survey_id: str, definition: "SurveyDefinition", seen: str, record: Record
    ) -> None:
        """Replace the draft of a survey; the name stays the same.

        seen : digest of the draft on which the new one is based. record : function that writes the
        event if the draft changes. Raises DraftChanged if the digest of the stored draft is not
        `seen`, and InvalidInput: survey_unknown, immutable if the survey is archived, and errors for
        an unusable prior.
        """
        devices.warnings_of(
            devices.expected_form(definition)
        )  # refuses a prior that cannot be used
        new = definition.to_json()
        with self._database.administering("change draft") as tx:
            row = tx.surveys.get(survey_id)
            if row is None:
                raise InvalidInput(Problem.SURVEY_UNKNOWN, "there is no such survey", "survey")
            if definitions.SurveyDefinition.from_json(row.definition).digest != seen:
                raise DraftChanged(
                    Problem.IMMUTABLE,
                    "this draft has changed meanwhile: look at it in another tab before you save "
                    "yours",
                )
            # An unchanged draft is not recorded.
            if row.definition != new:
                self._replace(tx, row, new)
                record(tx)

    def _replace(self, tx: Transaction, row: SurveyRow, new: str) -> None:
        """Replace a survey's draft, and keep the former one. Raises InvalidInput(immutable) if archived."""
        require_changeable(tx, row.id)
        tx.earlier_drafts.add(row.id, row.definition, format_time(self.now()))
        tx.surveys.change(row.id, definition=new)

    def earlier_drafts(self, survey_id: str) -> "Sequence[EarlierDraft]":
        """Return the drafts that others have replaced, the newest first; the oldest are not kept."""
        with self._database.reading("list earlier drafts") as tx:
            rows = tx.earlier_drafts.of(survey_id)
        return [EarlierDraft(row.number, row.replaced, row.definition) for row in rows]

    def apply(
        self,
        definition: "SurveyDefinition",
        *,
        dry_run: bool = False,
        organisation: str = MAIN,
        recorder: Callable[[str, str], Record] = lambda *_: unrecorded,
        progress: "drafting.Progress | None" = None,
    ) -> Change:
        """Make the stored draft of an organisation's survey of this name equal to `definition`.

        Idempotent; published versions do not change. dry_run : check and compare only. recorder :
        maps a change's status and the survey's id to the writer of the event. Raises InvalidInput:
        field_type for a malformed organisation or survey name, and the errors of
        `level_within_budget`: budget_exceeded if publishing would raise it, and those for a prior
        that cannot be used.
        """
        name = full_name(definition.name, organisation)
        if not is_name(name):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "an organisation is 1 to 64 of a-z, 0-9, - and _, beginning with a-z or 0-9",
                "organisation",
            )
        expected = devices.expected_form(definition)
        warnings = devices.warnings_of(expected)
        level = drafting.level_within_budget(definition, progress)
        new = definition.to_json()
        # A dry run takes no write lock.
        with (
            self._database.reading("compare survey")
            if dry_run
            else self._database.administering("apply survey") as tx
        ):
            row = tx.surveys.by_name(name)
            if row is None:
                survey_id = None if dry_run else secrets.token_hex(16)
                if survey_id is not None:
                    tx.surveys.add(SurveyRow(survey_id, name, new))
                    if organisation != MAIN:
                        tx.survey_states.put(survey_id, SurveyStateRow(organisation))
                    recorder("created", survey_id)(tx)
                diff = differences({}, loads(new))
                return Change("created", survey_id, name, diff, level, warnings)
            status = "unchanged" if row.definition == new else "updated"
            if status == "updated" and not dry_run:
                self._replace(tx, row, new)
                recorder(status, row.id)(tx)
        diff = differences(loads(row.definition), loads(new))
        # After the transaction, because parsing the versions can take seconds.
        minimum = larger_minimum(self.versions(row.id), definition.min_reports)
        return Change(status, row.id, row.name, diff, level, (*warnings, *minimum))

    def publish(
        self,
        name_or_id: str,
        progress: "drafting.Progress | None" = None,
        timer: Callable[[], float] = time.monotonic,
        recorder: Callable[[int, str], Record] = lambda *_: unrecorded,
        draft: "drafting.Drafter | None" = None,
    ) -> "published.Published":
        """Design, verify, sign and store the next version, unless the definition is unchanged.

        recorder : function from version and status to the writer of the event. timer : a clock in
        seconds; an exception that it raises stops publishing, which is how a job is cancelled. draft :
        designs the blocks; default: `drafting.draft_blocks`. The
        version is stored only if every step succeeds. Raises InvalidInput: survey_unknown,
        key_file, closed for a survey that accepts no more reports, immutable if another version was
        published at the same time, and the errors of drafting; DocumentRejected if the keys were
        replaced at the same time.
        """
        signers = self._keys.publishers()
        row, latest = self._find(name_or_id)
        with self._database.reading("survey state") as tx:
            require_accepting(tx, row.id)
        definition = definitions.SurveyDefinition.from_json(row.definition)
        # The comparison precedes the search, which takes up to a minute per block. Idempotent, so
        # that a script can publish again without creating a new version.
        stored_document = self._same_version(row, latest, definition)
        if latest is not None and stored_document is not None:
            with self._database.administering("publish survey") as tx:
                recorder(latest.version, "unchanged")(tx)
            return self._published("unchanged", row, latest, stored_document, definition)
        source = self._source(row, definition)
        place = drafting.Place(
            survey=row.id,
            version=1 if latest is None else latest.version + 1,
            prev=None if latest is None else latest.digest,
            issued=self.now(),
            collect_url=self._collect_url(row),
        )
        definition = self.next_version(definition, row.id)
        blocks = (draft or drafting.draft_blocks)(definition, progress, timer)
        document = drafting.draft_document(definition, blocks, place)
        envelope = Envelope.seal(SURVEY_TYPE, document.payload(), signers)
        publishers = self._keys.trusted().publisher
        # The keys may have been rotated during the search, and devices refuse signatures by old
        # keys.
        envelope.verify(publishers.keys, publishers.threshold)
        new_row = DocumentRow(
            document.digest, row.id, document.version, source, envelope.to_bytes()
        )
        with self._database.administering("publish survey") as tx:
            # Checked again, because the state may have changed during the search.
            require_accepting(tx, row.id)
            newest = tx.documents.latest(row.id)
            if (newest.digest if newest else None) != place.prev or not tx.documents.add(new_row):
                raise InvalidInput(
                    Problem.IMMUTABLE,
                    "another version was published meanwhile; publish again",
                    "version",
                )
            # Logged in the same transaction, because devices that check the log refuse documents
            # that are not in it.
            tx.log.append(new_row.digest)
            recorder(new_row.version, "published")(tx)
        # The document is published, even if this read fails: the next start or head notes it.
        with suppress(StoreUnavailable):
            LogService(self._database, self._keys, self._clock).note()
        return self._published("published", row, new_row, document, definition)

    def now(self) -> datetime:
        """Return the time, in whole seconds, for a version published now."""
        return self._clock.now().replace(microsecond=0)

    def envelope(self, survey_id: str, digest: str | None = None) -> bytes:
        """Return the exact bytes of a survey's signed document: the newest, or that with `digest`.

        Raises InvalidInput(survey_unknown).
        """
        with self._database.reading("serve document") as tx:
            row = tx.documents.latest(survey_id) if digest is None else tx.documents.get(digest)
        if row is None or row.survey != survey_id:
            raise InvalidInput(
                Problem.SURVEY_UNKNOWN, "no such document is published here; check the link"
            )
        return row.envelope

    def draft(self, name_or_id: str) -> "SurveyDefinition":
        """Return the stored draft. Raises InvalidInput(survey_unknown)."""
        return definitions.SurveyDefinition.from_json(self._find(name_or_id)[0].definition)

    def page(self, survey_id: str) -> PageDefinition:
        """Return the look of a survey's hosted page, from its draft. Raises InvalidInput(survey_unknown)."""
        stored = self._find(survey_id)[0].definition
        # Without parsing the whole draft, which can take a second.
        value = canonical.loads(stored.encode("utf-8")).get("page") if '"page":' in stored else None
        return PageDefinition.model_validate(value or {})

    def next_version(
        self, definition: "SurveyDefinition", survey_id: str | None
    ) -> "SurveyDefinition":
        """Return a definition as `publish` would read it after the survey's newest version.

        survey_id : None for a survey that does not exist. Raises InvalidInput(survey_unknown).
        """
        if survey_id is None:
            return definition
        row, _ = self._find(survey_id)
        with self._database.reading("list versions") as tx:
            versions = tx.documents.versions(row.id)[::-1]
        # A document can take a second to parse; mostly the newest one, or none, is needed.
        return definition.after(SurveyDocument.from_envelope(one.envelope) for one in versions)

    def versions(self, name_or_id: str, before: int | None = None) -> Sequence[SurveyDocument]:
        """Return every published version, oldest first. Raises InvalidInput(survey_unknown).

        before : only versions with smaller numbers.
        """
        row, _ = self._find(name_or_id)
        with self._database.reading("list versions") as tx:
            return [
                SurveyDocument.from_envelope(version.envelope)
                for version in tx.documents.versions(row.id)
                if before is None or version.version < before
            ]

    def open_versions(self, name_or_id: str) -> Sequence[SurveyDocument]:
        """Return the published versions whose links accept answers now or later, oldest first.

        Each version closes at its own time; closing the survey closes all of them. Raises
        InvalidInput(survey_unknown).
        """
        row, _ = self._find(name_or_id)
        return self._open(row.id, None)

    def _open(self, survey_id: str, newest: SurveyDocument | None) -> Sequence[SurveyDocument]:
        """See `open_versions`. newest : the newest version, if it has been read; None if not."""
        with self._database.reading("list versions") as tx:
            if tx.survey_states.get(survey_id).state in ("closed", "archived"):
                return []
            rows = tx.documents.versions(survey_id)
        # A document can take a second to parse.
        documents = (
            newest
            if newest is not None and newest.version == row.version
            else SurveyDocument.from_envelope(row.envelope)
            for row in rows
        )
        return [one for one in documents if self._clock.now() <= min(one.closes, one.expires)]

    def standing(self, summary: Summary, definition: "SurveyDefinition") -> Standing:
        """Return what can be said of a survey beside its summary, with each document read once.

        definition : its draft. Raises InvalidInput(survey_unknown).
        """
        row, latest = self._find(summary.survey_id)
        if latest is None:
            return Standing((), is_draft_published=False, obstacles=())
        # Another version may have been published since the summary was made.
        newest = summary.newest if summary.version == latest.version else None
        newest = newest or SurveyDocument.from_envelope(latest.envelope)
        is_published = latest.source == self._source(row, definition)
        return Standing(
            self._open(row.id, newest),
            is_published and not is_ahead(newest, self._clock.now()),
            self._obstacles_or_keys(latest, newest),
        )

    def page_of_versions(
        self, survey_id: str, after: int, limit: int
    ) -> tuple[Sequence[SurveyDocument], int | None]:
        """Return published versions, oldest first, and the number to go on after, None at the end.

        after : number of the last version before, 0 for none. limit : at most so many, at least 1.
        """
        with self._database.reading("list versions") as tx:
            rows = tx.documents.versions(survey_id, after, limit + 1)
        documents = [SurveyDocument.from_envelope(row.envelope) for row in rows[:limit]]
        return documents, documents[-1].version if len(rows) > limit else None

    def is_draft_published(self, name_or_id: str) -> bool:
        """Return True if the newest version has the draft's definition, so `publish` makes no other.

        Raises InvalidInput(survey_unknown).
        """
        row, latest = self._find(name_or_id)
        definition = definitions.SurveyDefinition.from_json(row.definition)
        return self._same_version(row, latest, definition) is not None

    def published_draft(self, name_or_id: str) -> "SurveyDefinition | None":
        """Return the draft that the newest version was made from; None if it is not kept any more.

        Raises InvalidInput(survey_unknown).
        """
        row, latest = self._find(name_or_id)
        for text in (row.definition, *(one.text for one in self.earlier_drafts(row.id))):
            definition = definitions.SurveyDefinition.from_json(text)
            if latest is not None and latest.source == self._source(row, definition):
                return definition
        return None

    def summary(self, name_or_id: str) -> Summary:
        """Return a survey's summary (see `list`). Raises InvalidInput(survey_unknown)."""
        row, latest = self._find(name_or_id)
        newest = None if latest is None else SurveyDocument.from_envelope(latest.envelope)
        return replace(self._summary(row, latest, newest), newest=newest)

    def obstacles(self, name_or_id: str) -> Sequence[str]:
        """Return a sentence for each reason why devices refuse the newest version.

        Raises InvalidInput(survey_unknown).
        """
        _, latest = self._find(name_or_id)
        if latest is None:
            return ()
        return self._obstacles_or_keys(latest, SurveyDocument.from_envelope(latest.envelope))

    def _obstacles_or_keys(self, latest: DocumentRow, document: SurveyDocument) -> Sequence[str]:
        try:
            return self._obstacles(latest, document)
        except InvalidInput:
            # No exception, because the page that shows this problem must open.
            return (KEYS_UNUSABLE,)

    def erase(self, name_or_id: str, record: Record = unrecorded) -> Erased:
        """Delete all reports, counts and refusals of a survey; its draft, documents and tokens stay.

        Reports that arrive during the erasure may be stored after it. record : writes the event.
        Raises InvalidInput(survey_unknown).
        """
        row, _ = self._find(name_or_id)
        with self._database.reading("survey state") as tx:
            is_open = tx.survey_states.get(row.id).state == "open"
        if not is_open:
            # Paused and closed surveys receive nothing new. So it is enough to wait for what is on its
            # way, and reports of other surveys wait only meanwhile, not for the whole erasure.
            with self._database.administering("wait for reports") as tx:
                tx.partitions.hold(row.id, block=True)
        with self._database.administering("erase survey") as tx:
            # Releases take their lock before they write reports; the opposite order could deadlock.
            tx.releases.hold(version.digest for version in tx.documents.versions(row.id))
            tx.partitions.hold(row.id, block=is_open)
            # Reports are deleted before counts, in the same order as in releases: the opposite
            # order could deadlock with a release.
            reports = tx.reports.erase(row.id)
            for version in tx.documents.versions(row.id):
                tx.counts.erase(version.digest)
                tx.batches.erase(version.digest)
            tx.days.erase(row.id)
            tx.published_estimates.erase(row.id)
            record(tx)
        # Until this call, the deleted rows remain in the write-ahead log or in the table's pages.
        self._database.forget_deleted()
        return Erased(row.id, row.name, reports)

    def signed_by_others(self) -> Sequence[str]:
        """Return the digests of documents without enough signatures by current publisher keys."""
        role = self._keys.trusted().publisher
        with self._database.reading("list documents") as tx:
            rows = tx.documents.all()
        return [row.digest for row in rows if not role.has_signed(row.envelope, SURVEY_TYPE)]

    def sign_again(self, digests: Sequence[str], record: Record = unrecorded) -> Sequence[str]:
        """Sign documents with the current publisher keys; payloads and digests do not change.

        record : writes the event if there are documents to sign. Raises InvalidInput: key_file,
        survey_unknown, immutable if a stored payload does not match its digest.
        """
        signers = self._keys.publishers()
        with self._database.administering("sign again") as tx:
            for digest in digests:
                row = tx.documents.get(digest)
                if row is None:
                    raise InvalidInput(
                        Problem.SURVEY_UNKNOWN, "no such document is published here", "digest"
                    )
                payload = Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload
                # The database may have been altered, and only published bytes may be signed.
                if canonical.digest(payload) != digest:
                    raise InvalidInput(
                        Problem.IMMUTABLE, "the stored document does not match its digest", "digest"
                    )
                tx.documents.renew(digest, Envelope.seal(SURVEY_TYPE, payload, signers).to_bytes())
            if digests:
                record(tx)
        return digests

    def list(self) -> list[Summary]:
        """Return every survey, sorted by name."""
        with self._database.reading("list surveys") as tx:
            surveys = [(row, tx.documents.latest(row.id)) for row in tx.surveys.all()]
        return [self._summary(row, latest) for row, latest in surveys]

    def _find(self, name_or_id: str) -> tuple[SurveyRow, DocumentRow | None]:
        with self._database.reading("find survey") as tx:
            row = tx.surveys.by_name(name_or_id) or tx.surveys.get(name_or_id)
            if row is None:
                raise InvalidInput(
                    Problem.SURVEY_UNKNOWN,
                    "no survey has this name or id; `frankly survey list` shows them all",
                    "survey",
                )
            return row, tx.documents.latest(row.id)

    def _collect_url(self, row: SurveyRow) -> str:
        return f"{self._settings.public_url}/v1/surveys/{row.id}/reports"

    def _source(self, row: SurveyRow, definition: "SurveyDefinition") -> str:
        # The address is part of the digest: if the server has moved, the definition needs a new
        # document.
        return canonical.digest(
            canonical.dumps(
                {"collect_url": self._collect_url(row), "definition": definition.published_digest}
            )
        )

    def _same_version(
        self, row: SurveyRow, latest: DocumentRow | None, definition: "SurveyDefinition"
    ) -> SurveyDocument | None:
        """Return the newest version if it has this definition and is not dated in the future."""
        if latest is None or latest.source != self._source(row, definition):
            return None
        document = SurveyDocument.from_envelope(latest.envelope)
        return None if is_ahead(document, self._clock.now()) else document

    def _obstacles(self, latest: DocumentRow, document: SurveyDocument) -> Sequence[str]:
        with self._database.reading("survey state") as tx:
            state_row = tx.survey_states.get(latest.survey)
        return obstacles(
            latest, document, state_row, self._keys.trusted().publisher, self._clock.now()
        )

    def link(self, survey_id: str, digest: str) -> str:
        """Return the address at which a version of a survey is answered."""
        # The digest identifies the document. It is in the fragment, which browsers do not send.
        return f"{self._settings.public_url}/s/{survey_id}#{digest.replace(':', '=')}"

    def _published(
        self,
        status: str,
        row: SurveyRow,
        stored: DocumentRow,
        document: SurveyDocument,
        definition: "SurveyDefinition",
    ) -> "published.Published":
        return published.Published(
            status=status,
            survey_id=row.id,
            name=row.name,
            version=stored.version,
            digest=stored.digest,
            link=self.link(row.id, stored.digest),
            level=document.report_level,
            has_strata=bool(document.strata),
            budget=definition.budget,
            blocks=published.promised(document),
            warnings=(
                *devices.warnings_of(document),
                *live.without_result(document, definition.expected_reports),
                *larger_minimum(self.versions(row.id, stored.version), document.min_reports),
                *self._obstacles(stored, document),
            ),
        )

    def _summary(
        self, row: SurveyRow, latest: DocumentRow | None, newest: SurveyDocument | None = None
    ) -> Summary:
        """Return a summary. newest : the newest version, if it has been read."""
        if latest is None:
            return Summary(row.id, row.name, "draft", 0, None)
        now, newest = self._clock.now(), newest or SurveyDocument.from_envelope(latest.envelope)
        deciding = (
            newest if _state(newest, now) == "open" else self._open_before(latest, now) or newest
        )
        return Summary(
            row.id,
            row.name,
            _state(deciding, now),
            latest.version,
            self.link(row.id, latest.digest),
            min(deciding.closes, deciding.expires),
            newest.min_reports,
            newest.token,
        )

    def _open_before(self, latest: DocumentRow, now: datetime) -> SurveyDocument | None:
        """Return the newest earlier version that accepts answers now, None if none does."""
        with self._database.reading("list versions") as tx:
            rows = tx.documents.versions(latest.survey)[-2::-1]
        # Only versions that no release has found over are parsed, which can take a second each.
        documents = (
            SurveyDocument.from_envelope(one.envelope) for one in rows if not one.over_since
        )
        return next((one for one in documents if _state(one, now) == "open"), None)


def _state(document: SurveyDocument, now: datetime) -> str:
    if now < document.opens:
        return "scheduled"
    return "closed" if now > min(document.closes, document.expires) else "open"
