# SPDX-License-Identifier: Apache-2.0
"""Proof that a document is in a witnessed log (C2SP tlog-proof), verified offline (protocol §9)."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from frankly_protocol.clock import format_time
from frankly_protocol.documents import CLOCK_SKEW
from frankly_protocol.errors import LogError
from frankly_protocol.trust.keys import LogRole
from frankly_protocol.trust.merkle import MAX_PROOF, MAX_SIZE, document_leaf, require_inclusion
from frankly_protocol.trust.notes import (
    MAX_NOTE_BYTES,
    Checkpoint,
    SignedCheckpoint,
    hash_lines,
    to_base64,
)

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF_BYTES = MAX_NOTE_BYTES + 8 * 2**10
CHECKPOINT_AGE = timedelta(days=30)
"""Maximum age of a cosignature: bounds how long an old head of the log can be passed off as new."""
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class LogProof:
    """Inclusion proof: an entry's index, its path to the root, and the signed checkpoint."""

    index: int
    path: tuple[bytes, ...]
    signed: SignedCheckpoint

    @classmethod
    def from_bytes(cls, data: bytes) -> "LogProof":
        """Read a proof; raises LogError.

        Extra data is refused: it is not signed, and nothing here needs it.
        """
        if len(data) > MAX_PROOF_BYTES:
            raise LogError(f"a proof has at most {MAX_PROOF_BYTES} bytes", "proof")
        head, gap, note = data.partition(b"\n\n")
        try:
            lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise LogError("a proof is text", "proof") from None
        place = _INDEX.fullmatch(lines[1]) if len(lines) > 1 else None
        if not gap or lines[0] != HEADER or place is None or len(lines) > 2 + MAX_PROOF:
            raise LogError(f"a proof begins with the lines {HEADER} and index", "proof")
        if int(place.group(1)) > MAX_SIZE:
            raise LogError("no tree is that large", "index")
        return cls(
            int(place.group(1)), tuple(hash_lines(lines[2:])), SignedCheckpoint.from_bytes(note)
        )

    def to_bytes(self) -> bytes:
        """Return the proof as served."""
        lines = [HEADER, f"index {self.index}", *(to_base64(entry) for entry in self.path)]
        return "\n".join(lines).encode() + b"\n\n" + self.signed.to_bytes()

    def require(self, digest: str, role: LogRole, now: datetime) -> Checkpoint:
        """Return the checkpoint if it contains the document `digest` and is sufficiently signed.

        Steps (8.1) to (8.3). Raises LogError.
        """
        require_watched(self.signed, role, now)  # (8.1) (8.2)
        checkpoint = self.signed.checkpoint
        size, root = checkpoint.size, checkpoint.root
        require_inclusion(document_leaf(digest), self.index, size, self.path, root)  # (8.3)
        return checkpoint


def require_watched(signed: SignedCheckpoint, role: LogRole, now: datetime) -> None:
    """Raise LogError unless the log and a threshold of distinct witnesses signed it recently.

    (8.1) The origin is the log's, and the log's key signed. (8.2) At least the threshold of witness
    keys cosigned, at most 30 days ago and at most 10 minutes ahead of `now`.
    """
    if not role.witnesses:
        raise LogError("no witness watches this log, so devices do not rely on it", "witnesses")
    signed.require_log(role.log.note_key)
    times = [signed.seen_at(witness.note_key) for witness in role.witnesses]
    # A time far ahead of this clock would keep an old head fresh for longer than 30 days.
    fresh = [
        at for at in times if at is not None and now - CHECKPOINT_AGE <= at <= now + CLOCK_SKEW
    ]
    if len(fresh) < role.threshold:
        latest = max((at for at in times if at is not None), default=None)
        last = (
            f"; the latest cosignature is of {format_time(latest)}, this clock says {format_time(now)}"
            if latest
            else ""
        )
        count = f"{len(fresh)} of the {role.threshold} witnesses needed"
        raise LogError(f"{count} signed this checkpoint in the last 30 days{last}", "witnesses")
