# SPDX-License-Identifier: Apache-2.0
"""Status of a key folder: the version in force, every key, and remarks for the operator."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from frankly_protocol.clock import Clock
from frankly_protocol.envelope import KEYS_TYPE, Envelope, PublicKey
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.trust import KeysDocument

from frankly_server.keys.files import read_key, read_private
from frankly_server.keys.keyring import LOG_KEY, PUBLISHER, ROOT, Keyring, nearly_full
from frankly_server.keys.rotation import PENDING

SOON_DAYS: Final = 60


@dataclass(frozen=True, slots=True)
class KeyLine:
    """Role, id, name and state of one key.

    state : `in force`, `next` (in a pending proposal) or `retired`. here : True if the private key
    is in this folder and not encrypted; None for witnesses, whose private keys a server never has.
    """

    role: str
    key_id: str
    name: str | None
    state: str
    here: bool | None


@dataclass(frozen=True, slots=True)
class Status:
    """The newest version with its dates, thresholds and keys, and remarks for the operator.

    pending : version of the proposal that still needs signatures, or None.
    """

    version: int
    issued: datetime
    expires: datetime
    thresholds: dict[str, int]
    keys: tuple[KeyLine, ...]
    pending: int | None
    remarks: tuple[str, ...]


def status(keyring: Keyring, clock: Clock) -> Status:
    """Return the status of a key folder.

    Raises InvalidInput(key_file) if the keys document cannot be read.
    """
    document = keyring.trusted_or_expired()
    proposal = _pending(keyring.folder / PENDING, document.version)
    # Private keys are matched by id, not by file name, because operators may rename files.
    private_by_file = {name: _private(keyring, name) for name in (ROOT, PUBLISHER, LOG_KEY)}
    private_ids = {key_id for ids in private_by_file.values() for key_id in ids}
    lines = _lines(document, "in force", private_ids)
    known_ids = {line.key_id for line in lines}
    if proposal is not None:
        lines += [
            line for line in _lines(proposal, "next", private_ids) if line.key_id not in known_ids
        ]
        known_ids |= {line.key_id for line in lines}
    for name, role in ((ROOT, "root"), (PUBLISHER, "publisher"), (LOG_KEY, "log")):
        lines += [
            KeyLine(role, key_id, None, "retired", True)
            for key_id in private_by_file[name]
            if key_id not in known_ids
        ]
    thresholds = {
        "root": document.root.threshold,
        "publisher": document.publisher.threshold,
        "witness": document.log.threshold if document.log else 0,
    }
    remarks = _remarks(document, lines, clock.now(), waits=proposal is not None)
    room_warning = nearly_full(keyring.chain_used())
    remarks += () if room_warning is None else (room_warning,)
    pending = None if proposal is None else proposal.version
    return Status(
        document.version,
        document.issued,
        document.expires,
        thresholds,
        tuple(lines),
        pending,
        remarks,
    )


def _lines(document: KeysDocument, state: str, private_ids: set[str]) -> list[KeyLine]:
    def line(role: str, key: PublicKey, name: str | None = None) -> KeyLine:
        return KeyLine(
            role, key.key_id, name, state, None if role == "witness" else key.key_id in private_ids
        )

    lines = [line("root", key) for key in document.root.keys]
    lines += [line("publisher", key) for key in document.publisher.keys]
    if document.log is not None:
        lines.append(line("log", document.log.log.public, document.log.log.name))
        lines += [
            line("witness", witness.public, witness.name) for witness in document.log.witnesses
        ]
    return lines


def _private(keyring: Keyring, name: str) -> list[str]:
    """Return the ids of a role's private keys, except unreadable ones."""
    key_ids = []
    for path in keyring.key_files(name):
        # The id of an encrypted key is unknown without the passphrase, so the key counts as absent.
        with suppress(InvalidInput):
            key_ids.append(read_key(path).public.key_id)
    return key_ids


def _pending(path: Path, version: int) -> KeysDocument | None:
    if not path.is_file():
        return None
    try:
        # A damaged or outdated proposal is ignored: `frankly keys rotate` replaces it.
        proposal = KeysDocument.parse(Envelope.from_bytes(read_private(path), KEYS_TYPE).payload)
    except DocumentRejected:
        return None
    return proposal if proposal.version == version + 1 else None


def _remarks(
    document: KeysDocument, lines: list[KeyLine], now: datetime, *, waits: bool
) -> tuple[str, ...]:
    remarks = []
    days = (document.expires - now).days
    # Days are rounded down: on its last day a document has 0 days left, but is still valid.
    if days < 0:
        remarks.append(
            "these keys have expired: devices refuse everything until a new version is in force"
        )
    elif days < SOON_DAYS:
        remarks.append(
            f"these keys expire in {days} days: run `frankly keys rotate` before they do"
        )
    # A root key on the server would let an intruder sign new keys.
    if any(line.role == "root" and line.here for line in lines):
        remarks.append(
            "a root key is in this folder: move it offline; it is needed only to make a new version"
        )
    if waits:
        remarks.append(
            "a new version waits for root signatures: run `frankly keys sign` with the root keys"
        )
    if document.log is None or not document.log.witnesses:
        remarks.append("no witness watches the log: devices refuse links without a pin")
    return tuple(remarks)
