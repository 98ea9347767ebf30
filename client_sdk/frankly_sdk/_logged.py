# SPDX-License-Identifier: Apache-2.0
"""The log rule (docs/protocol.md §4, step 8): the document is in a witnessed, append-only log.

A device's requests reveal nothing about its stored state: it requests a proof of the document, and
all leaf hashes of the head that the server has just sent. A request for a consistency proof would
name the last head seen, and a server could recognise a device by showing it a unique head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.errors import DocumentRejected, Equivocation, LogError, RollbackDetected
from frankly_protocol.trust import Checkpoint, LogProof, LogRole, SignedCheckpoint, Tree
from frankly_protocol.trust.merkle import HASH_BYTES
from frankly_protocol.trust.proof import MAX_PROOF_BYTES

from frankly_sdk._tables import UNKNOWN_CHAIN
from frankly_sdk.errors import NetworkError
from frankly_sdk.store import LogHead, Store

MAX_ENTRIES = 131_072
"""Largest number of entries of a log that a device checks: 4 MiB of hashes."""

Fetch = Callable[[str, int, str], bytes]
"""(path below the server's origin, maximum bytes, content type) -> body; raises NetworkError."""


@dataclass(frozen=True, slots=True)
class LogRule:
    """Checks documents against the log that the keys name, and stores the newest head of each log.

    chain : name of the chain of the keys that name the log.
    renamed : called with the old name if the log has a new one.
    """

    role: LogRole
    chain: str
    store: Store
    fetch: Fetch
    now: datetime
    renamed: Callable[[str], None]

    def require(self, digest: str, *, prefer_kept: bool) -> None:
        """Raise unless the document is logged; store its proof and the head in one transaction.

        prefer_kept : True to use the stored proof, without a request, while its cosignatures are
        recent; False to use it only if the server sends no usable response.

        Raises LogError, RollbackDetected for a head smaller than one seen before, Equivocation for
        a fork (both heads are kept as evidence), NetworkError.
        """
        stored_proof = self.store.proof(self.chain, digest)
        if prefer_kept and stored_proof is not None and self._still_good(stored_proof, digest):
            return
        try:
            data = self.fetch(f"/v1/log/proof/{digest}", MAX_PROOF_BYTES, "text/plain")
        except NetworkError:
            # If the server is unreachable, a stored proof is accepted while its cosignatures are
            # recent.
            if stored_proof is None or not self._still_good(stored_proof, digest):
                raise
            return
        proof = LogProof.from_bytes(data)
        head = proof.require(digest, self.role, self.now)  # (8.1) (8.2) (8.3)
        note = proof.signed.to_bytes()
        self._require_growth(head, note)  # (8.4)
        old_name = self.store.remember_log(
            self.chain, LogHead(head.origin, head.size, note), digest, data
        )
        if old_name is not None:
            self.renamed(old_name)

    def _still_good(self, stored_proof: bytes, digest: str) -> bool:
        try:
            LogProof.from_bytes(stored_proof).require(digest, self.role, self.now)
        except DocumentRejected:
            return False
        return True

    def _require_growth(self, head: Checkpoint, note: bytes) -> None:
        """(8.4) Raise unless the log at `head` extends the log at the last remembered head."""
        before = self._last_head()
        if before is None:
            return
        last = SignedCheckpoint.from_bytes(before).checkpoint
        if head.size < last.size:
            raise RollbackDetected(
                f"the log shows {head.size} entries, {last.size} have been seen before", "log"
            )
        if head == last:
            return
        # The roots are recomputed from all leaves, because a consistency proof would name the head
        # seen last.
        if head.size > last.size:
            tree = self._tree(head)
            if tree.root(last.size) == last.root:
                return
        self.store.keep_evidence(self.chain, {digest_of(data): data for data in (before, note)})
        raise Equivocation("the log has forked: it shows a different history than before", "log")

    def _last_head(self) -> bytes | None:
        """Return the newest head seen of this log, or None if there is none.

        A head of an unknown chain is used if the chain has none and the log's current key signed
        it.
        """
        name = self.role.log.name
        inherited = self.store.checkpoint(UNKNOWN_CHAIN, name)
        if inherited is not None:
            try:
                SignedCheckpoint.from_bytes(inherited).require_log(self.role.log.note_key)
            except LogError:
                inherited = None
        return self.store.checkpoint(self.chain, name) or inherited

    def _tree(self, head: Checkpoint) -> Tree:
        if head.size > MAX_ENTRIES:
            raise LogError(
                f"a log of more than {MAX_ENTRIES} entries cannot be checked here: update the app",
                "size",
            )
        size = head.size * HASH_BYTES
        data = self.fetch(f"/v1/log/leaves?size={head.size}", size, "application/octet-stream")
        if len(data) != size:
            raise LogError("the number of the log's leaves differs from its head", "leaves")
        tree = Tree([data[i : i + HASH_BYTES] for i in range(0, size, HASH_BYTES)])
        if tree.root() != head.root:
            raise LogError("the log's leaves do not lead to its head", "leaves")
        return tree
