# SPDX-License-Identifier: Apache-2.0
"""What the key folder holds and what devices will make of it, key by key."""

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
    """One key: its role, id and name; state is `in force`, `next` (in a waiting proposal) or `retired`.

    here : its private part is in this folder; None for witnesses, whose keys are never ours.
    """

    role: str
    key_id: str
    name: str | None
    state: str
    here: bool | None


@dataclass(frozen=True, slots=True)
class Status:
    """The version in force, how long it lasts, its thresholds, every key, and remarks on what should be done."""

    version: int
    issued: datetime
    expires: datetime
    thresholds: dict[str, int]
    keys: tuple[KeyLine, ...]
    pending: int | None
    remarks: tuple[str, ...]


def status(keyring: Keyring, clock: Clock) -> Status:
    """Return the state of a key folder; raises InvalidInput(key_file) if the document itself cannot be read."""
    document = keyring.trusted_or_expired()
    proposal = _pending(keyring.folder / PENDING, document.version)
    private = {name: _private(keyring, name) for name in (ROOT, PUBLISHER, LOG_KEY)}
    here = {key_id for ids in private.values() for key_id in ids}
    lines = _lines(document, "in force", here)
    known = {line.key_id for line in lines}
    if proposal is not None:
        lines += [line for line in _lines(proposal, "next", here) if line.key_id not in known]
        known |= {line.key_id for line in lines}
    for name, role in ((ROOT, "root"), (PUBLISHER, "publisher"), (LOG_KEY, "log")):
        lines += [KeyLine(role, key_id, None, "retired", True) for key_id in private[name] if key_id not in known]
    thresholds = {"root": document.root.threshold, "publisher": document.publisher.threshold,
                  "witness": document.log.threshold if document.log else 0}  # fmt: skip
    remarks = _remarks(document, lines, clock.now(), waits=proposal is not None)
    full = nearly_full(keyring.chain_used())
    remarks += () if full is None else (full,)
    pending = None if proposal is None else proposal.version
    return Status(document.version, document.issued, document.expires, thresholds, tuple(lines), pending, remarks)


def _lines(document: KeysDocument, state: str, here: set[str]) -> list[KeyLine]:
    def line(role: str, key: PublicKey, name: str | None = None) -> KeyLine:
        return KeyLine(role, key.key_id, name, state, None if role == "witness" else key.key_id in here)

    lines = [line("root", key) for key in document.root.keys]
    lines += [line("publisher", key) for key in document.publisher.keys]
    if document.log is not None:
        lines.append(line("log", document.log.log.public, document.log.log.name))
        lines += [line("witness", witness.public, witness.name) for witness in document.log.witnesses]
    return lines


def _private(keyring: Keyring, name: str) -> list[str]:
    """Return the ids of the readable private keys of a role; encrypted ones cannot be named without a passphrase."""
    found = []
    for path in keyring.key_files(name):
        try:
            found.append(read_key(path).public.key_id)
        except InvalidInput:
            continue
    return found


def _pending(path: Path, version: int) -> KeysDocument | None:
    if not path.is_file():
        return None
    try:
        proposal = KeysDocument.parse(Envelope.from_bytes(read_private(path), KEYS_TYPE).payload)
    except DocumentRejected:
        return None
    return proposal if proposal.version == version + 1 else None


def _remarks(document: KeysDocument, lines: list[KeyLine], now: datetime, *, waits: bool) -> tuple[str, ...]:
    found = []
    days = (document.expires - now).days
    if days < 0:
        found.append("these keys have expired: devices refuse everything until a new version is in force")
    elif days < SOON_DAYS:
        found.append(f"these keys expire in {days} days: run `frankly keys rotate` before they do")
    if any(line.role == "root" and line.here for line in lines):
        found.append("a root key is in this folder: move it offline, it is needed only to make a new version")
    if waits:
        found.append("a new version waits for root signatures: run `frankly keys sign` where the root keys are")
    if document.log is None or not document.log.witnesses:
        found.append("no witness watches the log: links without a pin are refused by devices")
    return tuple(found)
