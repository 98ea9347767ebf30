# SPDX-License-Identifier: Apache-2.0
"""Transparency log of this server: signed heads, proofs, entries and cosignatures of witnesses.

Entries and cosignatures are stored. Heads are computed and signed on request; the same size and key
always give the same signature.
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
from frankly_server.log.noted_head import NotedHead
from frankly_server.store import Database, LogEntryRow, Transaction

ENTRIES_LIMIT = 1000
LEAVES_LIMIT = 131_072
"""Largest number of leaf hashes in one response: 4 MiB."""


@dataclass(frozen=True, slots=True)
class LoggedVersion:
    """Public figures of one version: digest, position in the log, number of released reports.

    position : None if the document is not in the log.
    """

    digest: str
    version: int
    position: int | None
    n: int


class LogService:
    """The log of one server. Safe to share between threads."""

    def __init__(self, database: Database, keys: Keyring, clock: Clock) -> None:
        self._database = database
        self._keys = keys
        self.noted = NotedHead(keys.folder)
        """The last head, noted in the key folder before it is shown."""
        self._clock = clock
        self._guard = threading.Lock()
        self._tree = Tree()

    def check(self) -> int:
        """Check that this log begins with the noted head; return the number of noted entries.

        Nothing is written. A database without tables has an empty log. Raises InvalidInput:
        unsafe_setting if the log is empty, older or another one, key_file if the noted head is
        damaged; StoreUnavailable.
        """
        # Read before the database, because another process may publish and note meanwhile.
        head = self.noted.read()
        if head is None:
            return 0
        self.noted.require_in(head, self._stored())
        return head.size

    def note(self) -> None:
        """Note the newest head, if the log has grown. Raises StoreUnavailable."""
        with self._database.reading("log head") as tx:
            self._grown(tx)

    def accept(self) -> str | None:
        """Note the head of this log whatever was noted; return a sentence if entries are lost.

        Raises StoreUnavailable, and OSError if the key folder cannot be written.
        """
        return self.noted.accept(self._stored())

    def checkpoint(self) -> bytes:
        """Return the newest head, signed by the log, with its current cosignatures.

        Raises InvalidInput: log_unknown if the keys document has no log, key_file if the log's key
        is missing.
        """
        with self._database.reading("log checkpoint") as tx:
            tree = self._grown(tx)
            return self._signed(tx, tree, tree.size).to_bytes()

    def proof(self, digest: str) -> bytes:
        """Return a document's inclusion proof in the largest head with enough recent cosignatures.

        If there is no such head, the proof uses the newest head with its current signatures; the
        device then reports the missing ones. Raises InvalidInput(log_unknown) if the document is
        not logged.
        """
        with self._database.reading("log proof") as tx:
            index = tx.log.position(digest)
            if index is None:
                raise InvalidInput(
                    Problem.LOG_UNKNOWN, "no document with this digest is in the log", "digest"
                )
            tree = self._grown(tx)
            # Devices may refuse the newest head if witnesses have not signed it yet.
            signed = self._watched(tx, tree, index) or self._signed(tx, tree, tree.size)
        return LogProof(
            index, tuple(tree.inclusion(index, signed.checkpoint.size)), signed
        ).to_bytes()

    def consistency(self, old: int, new: int) -> bytes:
        """Return the consistency proof between trees of two sizes: one line of base64 per hash.

        Raises InvalidInput(log_unknown) unless 0 ≤ old ≤ new ≤ size of the log.
        """
        with self._database.reading("log consistency") as tx:
            tree = self._grown(tx)
        if not 0 <= old <= new <= tree.size:
            raise InvalidInput(
                Problem.LOG_UNKNOWN,
                f"the log has {tree.size} entries; old ≤ new ≤ {tree.size} is required",
                "old",
            )
        return "".join(f"{to_base64(hash_)}\n" for hash_ in tree.consistency(old, new)).encode()

    def leaves(self, size: int) -> bytes:
        """Return the first `size` leaf hashes of 32 bytes, to check the head against older heads.

        Devices use these instead of a consistency proof, because the sizes in a request for a proof
        would reveal which heads they remember. Raises InvalidInput(log_unknown) if `size` exceeds
        the size of the log or LEAVES_LIMIT.
        """
        with self._database.reading("log leaves") as tx:
            tree = self._grown(tx)
        if not 0 <= size <= min(tree.size, LEAVES_LIMIT):
            raise InvalidInput(Problem.LOG_UNKNOWN, f"the log has {tree.size} entries", "size")
        return b"".join(tree.leaves(size))

    def entries(self, start: int) -> tuple[int, Sequence[LogEntryRow]]:
        """Return the size of the log, and at most 1,000 entries from `start` on."""
        with self._database.reading("log entries") as tx:
            return tx.log.size(), tx.log.entries(start, ENTRIES_LIMIT)

    def add_cosignature(self, note: bytes) -> int:
        """Store witnesses' signatures of a head of this log; return their number.

        note : a checkpoint with signature lines. Raises InvalidInput(cosignature_invalid) if the
        head does not belong to this log, if no line is by a witness in the keys document, if a
        signature is invalid, or if its time is ahead of the clock.
        """
        role = self._role()
        try:
            head = SignedCheckpoint.from_bytes(note)
        except DocumentRejected as error:
            raise InvalidInput(Problem.COSIGNATURE_INVALID, error.detail, error.field) from None
        with self._database.reading("log head") as tx:
            tree = self._grown(tx)
        size = head.checkpoint.size
        # The head is compared with the tree, so that no cosignature of a fork is stored.
        if size > tree.size or head.checkpoint != Checkpoint(role.log.name, size, tree.root(size)):
            raise InvalidInput(
                Problem.COSIGNATURE_INVALID, "this is not a head of this log", "checkpoint"
            )
        lines = self._lines(role, head)
        if not lines:
            raise InvalidInput(
                Problem.COSIGNATURE_INVALID,
                "no signature is by a witness that the keys document names",
                "signature",
            )
        with self._database.transaction("cosign log") as tx:
            for key_id, line in lines.items():
                tx.log.cosign(size, key_id, line)
        return len(lines)

    def audit(self, survey_id: str) -> list[LoggedVersion]:
        """Return every published version of a survey with its number of released reports.

        Raises InvalidInput(survey_unknown).
        """
        with self._database.reading("survey audit") as tx:
            rows = tx.documents.versions(survey_id)
            counts = [
                LoggedVersion(
                    row.digest, row.version, tx.log.position(row.digest), _reports(tx, row.digest)
                )
                for row in rows
            ]
        if not counts:
            raise InvalidInput(
                Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link"
            )
        return counts

    def _lines(self, role: LogRole, head: SignedCheckpoint) -> dict[str, str]:
        # A time far in the future would allow a server to show an old head for longer.
        latest = self._clock.now() + CLOCK_SKEW
        lines = {}
        for witness in role.witnesses:
            key = witness.note_key
            try:
                seen_at = head.seen_at(key)
            except DocumentRejected as error:
                raise InvalidInput(Problem.COSIGNATURE_INVALID, error.detail, error.field) from None
            if seen_at is not None and seen_at > latest:
                raise InvalidInput(
                    Problem.COSIGNATURE_INVALID, "its time is ahead of this server's clock", "time"
                )
            if seen_at is not None:
                # A note may have several lines by the same witness. value[:8] is the time
                # (big-endian), so `max` selects the newest.
                newest = max(
                    (s for s in head.signatures if (s.name, s.hint) == (key.name, key.hint)),
                    key=lambda s: s.value[:8],
                )
                lines[witness.public.key_id] = newest.line()
        return lines

    def _watched(self, tx: Transaction, tree: Tree, index: int) -> SignedCheckpoint | None:
        for size in tx.log.cosigned_sizes():
            # The head must contain the document.
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
        witness_lines = [lines[w.public.key_id] for w in role.witnesses if w.public.key_id in lines]
        return SignedCheckpoint(
            head, (sign_checkpoint(head, key), *map(NoteSignature.from_line, witness_lines))
        )

    def _role(self) -> LogRole:
        role = self._keys.trusted().log
        if role is None:
            raise InvalidInput(Problem.LOG_UNKNOWN, "this server's keys name no log")
        return role

    def _stored(self) -> Tree:
        if not self._database.has_tables():
            return Tree()
        with self._database.reading("log check") as tx:
            return self._read(tx)

    def _grown(self, tx: Transaction) -> Tree:
        """Return the tree of all entries, after its head is noted."""
        tree = self._read(tx)
        # Before anything of it is shown, so that no device knows more than the noted head.
        self.noted.note(tree)
        return tree

    def _read(self, tx: Transaction) -> Tree:
        """Return the tree of all entries in the database, which are never deleted."""
        with self._guard:
            # Inside the lock, because the query begins at the last entry of the tree that it extends.
            known = self._tree.leaves(self._tree.size)
            leaves = [*map(document_leaf, tx.log.digests(max(0, len(known) - 1)))]
            if known and known[-1:] != leaves[:1]:
                # A restore has replaced the database of this running server.
                known, leaves = [], [*map(document_leaf, tx.log.digests(0))]
            if leaves[len(known[-1:]) :] or len(known) < self._tree.size:
                grown = Tree(known[:-1])
                for leaf in leaves:
                    grown.append(leaf)
                self._tree = (
                    grown  # a new object, because other threads may still read the old tree
                )
            return self._tree


def _reports(tx: Transaction, digest: str) -> int:
    """Return the number of released reports of a document."""
    return sum(batch.n for batch in tx.batches.of_document(digest))


def entry_json(entry: LogEntryRow) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "position": entry.position,
        "digest": entry.document,
        "survey": entry.survey,
        "version": entry.version,
    }
