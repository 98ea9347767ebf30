# SPDX-License-Identifier: Apache-2.0
"""What this server's log says about itself: signed heads, proofs, entries, and the signatures of its witnesses.

Nothing about the tree is stored but its entries: heads are computed and signed when asked for, always the same bytes
for the same size and key.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frankly_protocol.clock import Clock
from frankly_protocol.documents import CLOCK_SKEW
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import (
    Checkpoint,
    LogProof,
    LogRole,
    SignedCheckpoint,
    Tree,
    document_leaf,
    require_watched,
    sign_checkpoint,
)
from frankly_protocol.trust.notes import NoteSignature, to_base64

from frankly_server.keys import Keyring
from frankly_server.store import Database, LogEntry, Transaction

ENTRIES_LIMIT = 1000
LEAVES_LIMIT = 131_072
"""Leaf hashes in one answer: 4 MiB."""


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """What is published about one version of a survey: its digest and place in the log, and how many reports it has."""

    digest: str
    version: int
    position: int | None
    n: int


class LogService:
    """The log of one server. Safe to share between threads."""

    def __init__(self, database: Database, keys: Keyring, clock: Clock) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self._guard = threading.Lock()
        self._tree = Tree()

    def checkpoint(self) -> bytes:
        """Return the newest head, signed by the log, with what witnesses have said about it so far.

        Raises InvalidInput: log_unknown if the keys document names no log, key_file if the log's key is not here.
        """
        with self._database.reading("log checkpoint") as tx:
            tree = self._grown(tx)
            return self._signed(tx, tree, tree.size).to_bytes()

    def proof(self, digest: str) -> bytes:
        """Return a document's proof of inclusion in the largest head that enough witnesses have seen lately.

        If there is none yet, the newest head is used, with the signatures there are: a device will say what is missing.
        Raises InvalidInput(log_unknown) for a document that is not logged.
        """
        with self._database.reading("log proof") as tx:
            index = tx.log.position(digest)
            if index is None:
                raise InvalidInput(Problem.LOG_UNKNOWN, "no document of this digest is in the log", "digest")
            tree = self._grown(tx)
            signed = self._watched(tx, tree, index) or self._signed(tx, tree, tree.size)
        return LogProof(index, tuple(tree.inclusion(index, signed.checkpoint.size)), signed).to_bytes()

    def consistency(self, old: int, new: int) -> bytes:
        """Return the hashes, one line of base64 each, that show the tree of `old` entries to begin that of `new`.

        Raises InvalidInput(log_unknown) for sizes that the log has not reached or that do not grow.
        """
        with self._database.reading("log consistency") as tx:
            tree = self._grown(tx)
        if not 0 <= old <= new <= tree.size:
            raise InvalidInput(Problem.LOG_UNKNOWN, f"the log has {tree.size} entries; ask for old ≤ new ≤ that", "old")
        return "".join(f"{to_base64(found)}\n" for found in tree.consistency(old, new)).encode()

    def leaves(self, size: int) -> bytes:
        """Return the first `size` leaf hashes, 32 bytes each: enough to check the head against any older one.

        A device that asks so does not tell which heads it remembers. Raises InvalidInput(log_unknown).
        """
        with self._database.reading("log leaves") as tx:
            tree = self._grown(tx)
        if not 0 <= size <= min(tree.size, LEAVES_LIMIT):
            raise InvalidInput(Problem.LOG_UNKNOWN, f"the log has {tree.size} entries", "size")
        return b"".join(tree.leaves(size))

    def entries(self, start: int) -> tuple[int, Sequence[LogEntry]]:
        """Return how many entries the log has, and at most 1,000 of them from `start` on."""
        with self._database.reading("log entries") as tx:
            return tx.log.size(), tx.log.entries(start, ENTRIES_LIMIT)

    def add_cosignature(self, note: bytes) -> int:
        """Keep what witnesses of the keys document have signed about one of our heads; return how many signatures.

        `note` is a checkpoint with their signature lines. Raises InvalidInput(cosignature_invalid) if the head is not
        ours, no line is of a witness we know, or one is false, or its time lies ahead.
        """
        role = self._role()
        try:
            given = SignedCheckpoint.from_bytes(note)
        except DocumentRejected as error:
            raise InvalidInput(Problem.COSIGNATURE_INVALID, error.detail, error.field) from None
        with self._database.reading("log head") as tx:
            tree = self._grown(tx)
        size = given.checkpoint.size
        if size > tree.size or given.checkpoint != Checkpoint(role.log.name, size, tree.root(size)):
            raise InvalidInput(Problem.COSIGNATURE_INVALID, "this is no head of this log", "checkpoint")
        lines = self._lines(role, given)
        if not lines:
            words = "no signature is of a witness that the keys document names"
            raise InvalidInput(Problem.COSIGNATURE_INVALID, words, "signature")
        with self._database.transaction("cosign log") as tx:
            for key_id, line in lines.items():
                tx.log.cosign(size, key_id, line)
        return len(lines)

    def audit(self, survey_id: str) -> list[DocumentCounts]:
        """Return every published version of a survey with its number of reports.

        Raises InvalidInput(survey_unknown).
        """
        with self._database.reading("survey audit") as tx:
            rows = tx.documents.versions(survey_id)
            found = [
                DocumentCounts(row.digest, row.version, tx.log.position(row.digest), _reports(tx, row.digest))
                for row in rows
            ]
        if not found:
            raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link")
        return found

    def _lines(self, role: LogRole, given: SignedCheckpoint) -> dict[str, str]:
        latest = self._clock.now() + CLOCK_SKEW
        lines = {}
        for witness in role.witnesses:
            key = witness.note_key
            try:
                at = given.seen_at(key)
            except DocumentRejected as error:
                raise InvalidInput(Problem.COSIGNATURE_INVALID, error.detail, error.field) from None
            if at is not None and at > latest:
                raise InvalidInput(Problem.COSIGNATURE_INVALID, "its time lies ahead of this server's clock", "time")
            if at is not None:
                newest = max((s for s in given.signatures if _is_of(s, key.name, key.hint)), key=lambda s: s.value[:8])
                lines[witness.public.key_id] = newest.line()
        return lines

    def _watched(self, tx: Transaction, tree: Tree, index: int) -> SignedCheckpoint | None:
        for size in tx.log.cosigned_sizes():
            if not index < size <= tree.size:
                continue
            signed = self._signed(tx, tree, size)
            try:
                require_watched(signed, self._role(), self._clock.now())
            except DocumentRejected:
                continue
            return signed
        return None

    def _signed(self, tx: Transaction, tree: Tree, size: int) -> SignedCheckpoint:
        role, key = self._role(), self._keys.log_key()
        if key is None:
            raise InvalidInput(Problem.LOG_UNKNOWN, "this server's keys name no log")
        head = Checkpoint(role.log.name, size, tree.root(size))
        lines = tx.log.cosignatures(size)
        current = [lines[w.public.key_id] for w in role.witnesses if w.public.key_id in lines]
        return SignedCheckpoint(head, (sign_checkpoint(head, key), *map(NoteSignature.from_line, current)))

    def _role(self) -> LogRole:
        role = self._keys.trusted().log
        if role is None:
            raise InvalidInput(Problem.LOG_UNKNOWN, "this server's keys name no log")
        return role

    def _grown(self, tx: Transaction) -> Tree:
        """Return a tree with every entry of the database; entries are never taken away."""
        with self._guard:
            fresh = tx.log.digests(self._tree.size)
            if fresh:
                grown = Tree(self._tree.leaves(self._tree.size))
                for digest in fresh:
                    grown.append(document_leaf(digest))
                self._tree = grown  # a new one: whoever reads the old one goes on undisturbed
            return self._tree


def _reports(tx: Transaction, digest: str) -> int:
    """Return how many released reports a document has."""
    return sum(batch.n for batch in tx.batches.of_document(digest))


def _is_of(signature: NoteSignature, name: str, hint: bytes) -> bool:
    return signature.name == name and signature.hint == hint


def plain(entry: LogEntry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {"position": entry.position, "digest": entry.document, "survey": entry.survey, "version": entry.version}
