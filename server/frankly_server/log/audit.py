# SPDX-License-Identifier: Apache-2.0
"""Audit of a server from outside: keys, log, documents, proofs, counts (protocol §9).

Only the initial keys are trusted. A failed check becomes a finding, and the audit continues.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import Clock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation, FranklyError, InvalidInput
from frankly_protocol.schema import DOCUMENT, hex128, integer, items, optional
from frankly_protocol.schema import digest as read_digest
from frankly_protocol.trust import (
    KeysDocument,
    KnownKeys,
    LogProof,
    SignedCheckpoint,
    Tree,
    accept_keys,
    document_leaf,
    prove_chain,
    read_chain,
    require_consistency,
    require_inclusion,
    require_watched,
)
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES
from frankly_protocol.trust.notes import MAX_NOTE_BYTES, hash_lines
from frankly_protocol.trust.proof import MAX_PROOF_BYTES

from frankly_server.log.site import TEXT, Site

# Limits on the data that a hostile server can make the audit download and store in memory.
_KEYS_BYTES = 256 * 2**10
_LIST_BYTES = 4 * 2**20
_MAX_ENTRIES = 131_072


@dataclass(frozen=True, slots=True)
class Entry:
    """One logged document, as listed by the server."""

    position: int
    digest: str
    survey: str
    version: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed check: its kind, its subject and the reason.

    kind : keys, log, entry, document, signature, privacy, proof, split, chain or counts. about :
    the subject, such as a digest or the id of a survey.
    """

    kind: str
    about: str
    detail: str


@dataclass
class Audit:
    """Result of an audit: entries, findings, and the number of reports of each document.

    watched : True if enough witnesses have signed the head recently. note : the signed head.
    """

    keys_version: int = 0
    origin: str | None = None
    size: int = 0
    watched: bool = False
    note: bytes = b""
    entries: list[Entry] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @contextmanager
    def checking(self, kind: str, about: str) -> Iterator[None]:
        """Convert a FranklyError raised in the `with` block into a finding."""
        try:
            yield
        except FranklyError as error:
            self.findings.append(Finding(kind, about, str(error)))


def audit(
    site: Site, clock: Clock, shipped: bytes | None = None, since: bytes | None = None
) -> Audit:
    """Audit a server and return the result.

    shipped : the keys document to start from; None trusts the server's first version. since : note
    of an earlier head, whose tree must be a prefix of the current tree. Raises SiteError or
    DocumentRejected only if there are no usable keys or no readable head.
    """
    report = Audit()
    # The keys are checked first, because all other checks need keys that are in force.
    keys = accept_keys(site.get("/v1/keys", _KEYS_BYTES), clock.now())
    report.keys_version = keys.version
    trusted = None if shipped is None else KnownKeys.shipped(shipped)
    with report.checking("keys", "chain"):
        proven = prove_chain(
            read_chain(site.get("/v1/keys/chain", MAX_CHAIN_BYTES)), trusted, clock.now()
        )
        # Otherwise a server could serve different keys to devices that use only one of the two
        # routes.
        if proven.keys != keys:
            raise Equivocation("/v1/keys does not serve the last keys of the chain")
    if keys.log is None:
        report.findings.append(
            Finding(
                "log",
                "keys",
                "the keys name no log: nothing proves that everybody gets the same documents",
            )
        )
        return report
    signed = SignedCheckpoint.from_bytes(site.get("/v1/log/checkpoint", MAX_NOTE_BYTES, TEXT))
    report.origin, report.size, report.note = (
        keys.log.log.name,
        signed.checkpoint.size,
        signed.to_bytes(),
    )
    with report.checking("log", "checkpoint"):
        signed.require_log(keys.log.log.note_key)
    # Not a finding: the log may have no witnesses, or their next visit may be due later.
    with suppress(DocumentRejected):
        require_watched(signed, keys.log, clock.now())
        report.watched = True
    with report.checking("log", "since"):
        _check_growth(site, since, signed)
    with report.checking("log", "entries"):
        report.entries = _entries(site, report.size)
        _check_root(report, signed)
    documents = {
        entry.digest: document
        for entry in report.entries
        if (document := _document(site, report, entry, keys))
    }
    for entry in report.entries:
        with report.checking("proof", entry.digest):
            _check_proof(site, entry, keys)
    _check_surveys(site, report, documents)
    return report


def _entries(site: Site, size: int) -> list[Entry]:
    entries: list[Entry] = []
    # The server states the size; the second bound ends the loop even if the size is false.
    while len(entries) < min(size, _MAX_ENTRIES):
        listing = site.get(f"/v1/log/entries?start={len(entries)}", _LIST_BYTES)
        body = DOCUMENT.record(_parsed(listing), None, {"size", "entries"})
        entries += items(body["entries"], "entries", 1, 1000, _entry)
    # The log may have grown since its head was signed; the head does not cover later entries.
    return entries[:size]


def _entry(value: Any, where: str) -> Entry:
    data = DOCUMENT.record(value, where, {"position", "digest", "survey", "version"})
    return Entry(
        integer(data["position"], where + ".position"),
        read_digest(data["digest"], where + ".digest"),
        hex128(data["survey"], where + ".survey"),
        integer(data["version"], where + ".version", 1),
    )


def _check_root(report: Audit, signed: SignedCheckpoint) -> None:
    for i, entry in enumerate(report.entries):
        if entry.position != i:
            report.findings.append(
                Finding(
                    "entry",
                    entry.digest,
                    f"it is at position {i}, but the server lists it at {entry.position}",
                )
            )
    tree = Tree([document_leaf(entry.digest) for entry in report.entries])
    if tree.root() != signed.checkpoint.root:
        report.findings.append(
            Finding("log", "root", "the listed entries do not have the root that was signed")
        )


def _check_growth(site: Site, since: bytes | None, signed: SignedCheckpoint) -> None:
    if since is None:
        return
    old, new = SignedCheckpoint.from_bytes(since).checkpoint, signed.checkpoint
    text = b""
    # No proof is needed from an empty tree, or for equal sizes, where the roots are compared.
    if 0 < old.size < new.size:
        text = site.get(f"/v1/log/consistency?old={old.size}&new={new.size}", MAX_PROOF_BYTES, TEXT)
    proof = hash_lines(text.decode("ascii", "replace").splitlines())
    require_consistency(old.size, old.root, new.size, new.root, proof)


def _document(site: Site, report: Audit, entry: Entry, keys: KeysDocument) -> SurveyDocument | None:
    """Fetch a logged document; check its digest, signatures and privacy.

    Returns None if it cannot be read or has another digest.
    """
    document = None
    with report.checking("document", entry.digest):
        envelope = Envelope.from_bytes(
            site.get(
                f"/v1/surveys/{entry.survey}/document?digest={entry.digest}", MAX_ENVELOPE_BYTES
            ),
            SURVEY_TYPE,
        )
        if digest_of(envelope.payload) != entry.digest:
            raise DocumentRejected("pin", "the server's document is not the logged one", "digest")
        document = SurveyDocument.parse(envelope.payload)
        if (document.survey, document.version) != (entry.survey, entry.version):
            raise DocumentRejected(
                "schema", "its survey or version is not the one that the log lists", "survey"
            )
        # Separate checks, because both can fail. The document is returned in either case.
        with report.checking("signature", entry.digest):
            envelope.verify(keys.publisher.keys, keys.publisher.threshold)
        with report.checking("privacy", entry.digest):
            document.require_private()
    return document


def _check_proof(site: Site, entry: Entry, keys: KeysDocument) -> None:
    proof = LogProof.from_bytes(site.get(f"/v1/log/proof/{entry.digest}", MAX_PROOF_BYTES, TEXT))
    if keys.log is not None:
        proof.signed.require_log(keys.log.log.note_key)
    head = proof.signed.checkpoint
    require_inclusion(document_leaf(entry.digest), proof.index, head.size, proof.path, head.root)


def _check_surveys(site: Site, report: Audit, documents: dict[str, SurveyDocument]) -> None:
    by_survey: dict[str, list[Entry]] = defaultdict(list)
    for entry in report.entries:
        by_survey[entry.survey].append(entry)
    for survey, entries in by_survey.items():
        _check_versions(report, survey, entries, documents)
        with report.checking("counts", survey):
            _check_counts(site, report, survey, {entry.digest for entry in entries})
        with report.checking("document", survey):
            newest = Envelope.from_bytes(
                site.get(f"/v1/surveys/{survey}/document", MAX_ENVELOPE_BYTES), SURVEY_TYPE
            )
            if digest_of(newest.payload) not in {entry.digest for entry in entries}:
                report.findings.append(
                    Finding(
                        "document",
                        survey,
                        f"the newest document, {digest_of(newest.payload)}, is not in the log",
                    )
                )


def _check_versions(
    report: Audit, survey: str, entries: list[Entry], documents: dict[str, SurveyDocument]
) -> None:
    """Check that every version is in the log, as one document that refers to its predecessor."""
    versions: dict[int, list[str]] = defaultdict(list)
    for entry in entries:
        versions[entry.version].append(entry.digest)
    for version, digests in sorted(versions.items()):
        if len(digests) > 1:
            report.findings.append(
                Finding(
                    "split",
                    survey,
                    f"version {version} has {len(digests)} documents: {', '.join(digests)}",
                )
            )
        if version > 1 and version - 1 not in versions:
            report.findings.append(
                Finding("chain", survey, f"version {version - 1} is not in the log")
            )
        for digest in digests:
            document = documents.get(digest)
            # Any document of the previous version is accepted; several of them are already a
            # finding.
            if (
                document is not None
                and version > 1
                and document.prev not in versions.get(version - 1, [])
            ):
                report.findings.append(
                    Finding("chain", survey, f"{digest} does not follow a logged version")
                )


def _check_counts(site: Site, report: Audit, survey: str, logged: set[str]) -> None:
    body = DOCUMENT.record(
        _parsed(site.get(f"/v1/surveys/{survey}/audit", _LIST_BYTES)), None, {"survey", "documents"}
    )
    counts = dict(items(body["documents"], "documents", 0, 10_000, _count))
    report.counts |= counts
    # The mechanism of a document that is not in the log was never public.
    for digest in sorted(set(counts) - logged):
        report.findings.append(
            Finding(
                "counts", survey, f"{digest} has {counts[digest]} reports and is not in the log"
            )
        )
    for digest in sorted(logged - set(counts)):
        report.findings.append(
            Finding("counts", survey, f"{digest} is in the log, but its reports are not counted")
        )


def _count(value: Any, where: str) -> tuple[str, int]:
    data = DOCUMENT.record(value, where, {"digest", "version", "position", "n"})
    optional(data["position"], where + ".position", integer)
    return read_digest(data["digest"], where + ".digest"), integer(data["n"], where + ".n")


def _parsed(data: bytes) -> Any:
    try:
        return parse_json(data, max_bytes=_LIST_BYTES, max_depth=5)
    except InvalidInput as error:
        raise DocumentRejected("schema", error.detail, error.field) from None
