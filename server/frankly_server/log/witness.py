# SPDX-License-Identifier: Apache-2.0
"""Witness of logs: remembers one head per log and co-signs heads that extend it (protocol §9).

A witness needs no permanent connection and no open port: a visit fetches a server's newest head and
posts the signature back. The witness writes a head to disk before it signs it, so that after a
crash it still remembers every signed head. (W1) to (W5) are the steps of protocol §9.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from frankly_protocol.clock import Clock
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import Equivocation, LogError, RollbackDetected
from frankly_protocol.trust import (
    Checkpoint,
    KeysDocument,
    KnownKeys,
    LogRole,
    SignedCheckpoint,
    cosign,
    prove_chain,
    read_chain,
    require_consistency,
)
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES
from frankly_protocol.trust.notes import MAX_NOTE_BYTES, hash_lines

from frankly_server.keys.durable import locked, written_whole
from frankly_server.keys.files import key_file_problem, read_private
from frankly_server.log.site import TEXT, Site

_PROOF_BYTES = 8 * 2**10


@dataclass(frozen=True, slots=True)
class RememberedLog:
    """Stored state of one log: the newest keys document, and the note of the newest head."""

    keys: bytes
    note: bytes

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        fields = {"keys": self.keys, "note": self.note}
        return json.dumps(
            {name: base64.b64encode(data).decode("ascii") for name, data in fields.items()}
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "RememberedLog":
        """Parse the file. Raises ValueError or TypeError if it is not a witness file."""
        body = json.loads(data)
        if not isinstance(body, dict) or set(body) != {"keys", "note"}:
            raise ValueError("not a witness file")
        return cls(*(base64.b64decode(body[name], validate=True) for name in ("keys", "note")))


@dataclass(frozen=True, slots=True)
class Visit:
    """Result of one visit: the name of the log and the size of its newest head.

    size_before : size of the stored head, None at the first visit. named : True if the keys
    document lists this witness; otherwise the signature is not posted.
    """

    origin: str
    size: int
    size_before: int | None
    named: bool


class Witness:
    """A witness with its key and a folder (mode 0700) with one file per log."""

    def __init__(self, name: str, key: SigningKey, folder: Path, clock: Clock) -> None:
        self._name = name
        self._key = key
        self._folder = folder
        self._clock = clock

    def visit(self, site: Site, shipped: bytes | None = None) -> Visit:
        """Fetch the newest head; co-sign it and post the signature if it extends the last one.

        shipped : the keys document to start from at the first visit; if None, the server's first
        keys document is trusted.

        Raises LogError; RollbackDetected for a smaller head; Equivocation for a fork (both heads
        are stored next to the file, as evidence); DocumentRejected (such as KeyChainError) for keys
        that do not follow the known ones; SiteError.
        """
        chain = read_chain(site.get("/v1/keys/chain", MAX_CHAIN_BYTES))
        with self._alone():
            proven = prove_chain(chain, None, self._clock.now())
            role = _log_of(proven.keys)
            origin = role.log.name
            memory = self._seen(origin)
            trusted = shipped if memory is None else memory.keys
            # Otherwise the server could serve a different chain of keys.
            if trusted is not None:
                proven.require_contains(KnownKeys.shipped(trusted))
            signed = SignedCheckpoint.from_bytes(
                site.get("/v1/log/checkpoint", MAX_NOTE_BYTES, TEXT)
            )
            signed.require_log(role.log.note_key)  # (W1)
            before = None if memory is None else SignedCheckpoint.from_bytes(memory.note).checkpoint
            self._require_growth(site, before, memory, signed)
            with written_whole(self._file(origin), replace=True) as file:  # (W4)
                file.write(RememberedLog(proven.newest, signed.to_bytes()).to_bytes())
        # The head is already on disk, so signing and posting need no lock.
        line = cosign(signed.checkpoint, self._name, self._key, self._clock.now())  # (W5)
        named = any(w.name == self._name and w.public == self._key.public for w in role.witnesses)
        if named:
            site.post(
                "/v1/log/cosignatures",
                SignedCheckpoint(signed.checkpoint, (line,)).to_bytes(),
                TEXT,
            )
        return Visit(origin, signed.checkpoint.size, None if before is None else before.size, named)

    def _require_growth(
        self,
        site: Site,
        before: Checkpoint | None,
        memory: RememberedLog | None,
        signed: SignedCheckpoint,
    ) -> None:
        """Check that the head has not shrunk (W2) and extends the old tree (W3)."""
        head = signed.checkpoint
        if before is None or memory is None:
            return
        if head.size < before.size:
            raise RollbackDetected(
                f"the log shows {head.size} entries, but {before.size} have been seen before", "log"
            )
        # No proof is needed from an empty tree, or for equal sizes, where the roots are compared.
        proof = []
        if before.size not in (0, head.size):
            text = site.get(
                f"/v1/log/consistency?old={before.size}&new={head.size}", _PROOF_BYTES, TEXT
            )
            proof = hash_lines(text.decode("ascii", "replace").splitlines())
        try:
            require_consistency(before.size, before.root, head.size, head.root, proof)
        except LogError as error:
            self._keep_evidence(memory.note, signed.to_bytes())
            raise Equivocation(error.detail, "log") from None

    def _keep_evidence(self, *notes: bytes) -> None:
        for note in notes:
            # The name is a hash of the content, so that no evidence is ever overwritten.
            path = self._folder / f"fork-{hashlib.sha256(note).hexdigest()[:16]}.note"
            with written_whole(path, replace=True) as file:
                file.write(note)

    def _seen(self, origin: str) -> RememberedLog | None:
        path = self._file(origin)
        if not path.exists():
            return None
        try:
            return RememberedLog.from_bytes(read_private(path))
        except (ValueError, TypeError):
            raise key_file_problem(
                path,
                "this is not a witness file; restore it, because without it forks go unnoticed",
            ) from None

    def _file(self, origin: str) -> Path:
        # Hashed, because the server chooses the origin, which may contain a slash.
        return self._folder / f"log-{hashlib.sha256(origin.encode()).hexdigest()[:16]}.json"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder, so that two visits do not interleave reading and writing the head."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._folder / ".lock"):
            yield


def _log_of(keys: KeysDocument) -> LogRole:
    if keys.log is None:
        raise LogError("this server's keys name no log", "log")
    return keys.log
