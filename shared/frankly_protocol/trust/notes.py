# SPDX-License-Identifier: Apache-2.0
"""Signed notes and checkpoints (protocol §9).

Formats of C2SP: signed-note, tlog-checkpoint, tlog-cosignature.

A note is a text, an empty line, and lines `— name base64(4-byte key id ‖ signature)`. A log signs
the text itself (type 1); a witness signs the text with a time at which this was the largest
consistent tree that it had seen (type 4).
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from frankly_protocol.envelope import PublicKey, SigningKey
from frankly_protocol.errors import LogError
from frankly_protocol.trust.merkle import HASH_BYTES, MAX_SIZE

MAX_NOTE_BYTES = 64 * 2**10
MAX_SIGNATURES = 64
LOG, WITNESS = 0x01, 0x04  # signature types of signed-note
_LINE = re.compile(r"— ([^\s\ufeff+]{1,255}) ([A-Za-z0-9+/]+={0,2})")
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_NAME = re.compile(r"[^\s\ufeff+\x00-\x1f\x7f]{1,255}")


@dataclass(frozen=True, slots=True)
class NoteKey:
    """A named Ed25519 key that signs notes; `kind` is LOG or WITNESS."""

    name: str
    public: PublicKey
    kind: int

    @property
    def hint(self) -> bytes:
        """The first 4 bytes of a signature line: they select the key to try but prove nothing."""
        named = self.name.encode() + b"\n" + bytes([self.kind]) + self.public.raw
        return hashlib.sha256(named).digest()[:4]


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line of a note."""

    name: str
    hint: bytes
    value: bytes

    def line(self) -> str:
        """Return the signature line without its newline."""
        return f"— {self.name} {to_base64(self.hint + self.value)}"

    @classmethod
    def from_line(cls, line: str) -> "NoteSignature":
        """Read a line; raises LogError."""
        match = _LINE.fullmatch(line)
        raw = from_base64(match.group(2), "signature") if match else b""
        if match is None or len(raw) < 5:
            raise LogError("a signature line reads: — name base64", "signature")
        return cls(match.group(1), raw[:4], raw[4:])


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's head: its origin (name), its number of entries, and the root of their tree."""

    origin: str
    size: int
    root: bytes

    def text(self) -> bytes:
        """Return the note text: three lines."""
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n".encode()

    @classmethod
    def from_text(cls, text: bytes) -> "Checkpoint":
        """Read exactly three lines; raises LogError.

        Extension lines are refused, because no monitor could audit them.
        """
        # Three lines and the final newline give four parts, the last empty.
        lines = text.decode("utf-8").split("\n")
        if len(lines) != 4 or lines[3] or not is_name(lines[0]):
            raise LogError("a checkpoint has three lines: origin, size, root", "checkpoint")
        if not _SIZE.fullmatch(lines[1]) or int(lines[1]) > MAX_SIZE:
            raise LogError("the size of a tree is a whole number without leading zeroes", "size")
        root = from_base64(lines[2], "root")
        if len(root) != HASH_BYTES:
            raise LogError("the root of a tree has 32 bytes", "root")
        return cls(lines[0], int(lines[1]), root)


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint and its signatures; only `require_log` and `seen_at` verify them."""

    checkpoint: Checkpoint
    signatures: tuple[NoteSignature, ...]

    @classmethod
    def from_bytes(cls, data: bytes) -> "SignedCheckpoint":
        """Read a note; raises LogError if it is malformed."""
        # Checked first, so that a server cannot keep the device busy with a huge note.
        if len(data) > MAX_NOTE_BYTES:
            raise LogError(f"a checkpoint has at most {MAX_NOTE_BYTES} bytes", "checkpoint")
        try:
            note = data.decode("utf-8")
        except UnicodeDecodeError:
            raise LogError("a checkpoint is UTF-8 text", "checkpoint") from None
        text, gap, signed = note.rpartition("\n\n")
        if not gap or not signed.endswith("\n") or any(c < " " and c != "\n" for c in note):
            raise LogError("a checkpoint is a text, an empty line and signatures", "checkpoint")
        lines = signed[:-1].split("\n")
        if len(lines) > MAX_SIGNATURES:
            raise LogError(f"a checkpoint has at most {MAX_SIGNATURES} signatures", "signature")
        signatures = tuple(NoteSignature.from_line(line) for line in lines)
        return cls(Checkpoint.from_text(f"{text}\n".encode()), signatures)

    def to_bytes(self) -> bytes:
        """Return the note."""
        lines = "".join(f"{signature.line()}\n" for signature in self.signatures)
        return self.checkpoint.text() + b"\n" + lines.encode()

    def require_log(self, key: NoteKey) -> None:
        """Raise LogError unless this is the log of `key`, and that key signed it."""
        if self.checkpoint.origin != key.name:
            raise LogError(f"this is not a checkpoint of the log {key.name}", "origin")
        if not self._valid(key):
            raise LogError("the log's key did not sign this checkpoint", "signature")

    def seen_at(self, key: NoteKey) -> datetime | None:
        """Return the latest time of a witness's cosignature of this head, or None if there is none.

        Raises LogError if a signature of this key is invalid.
        """
        times = [int.from_bytes(signature.value[:8], "big") for signature in self._valid(key)]
        return datetime.fromtimestamp(max(times), UTC) if times else None

    def _valid(self, key: NoteKey) -> list[NoteSignature]:
        """Return the signatures that name this key.

        Raises LogError if one of them does not verify, as signed-note requires.
        """
        text = self.checkpoint.text()
        # Lines of unknown keys are skipped: a log may have more witnesses than this device trusts.
        signatures = [s for s in self.signatures if s.name == key.name and s.hint == key.hint]
        for signature in signatures:
            value, message = signature.value, text
            if key.kind == WITNESS:
                value, message = signature.value[8:], _cosigned(_time(signature.value[:8]), text)
            if not key.public.verifies(value, message):
                raise LogError(f"a signature of {key.name} is invalid", "signature")
        return signatures


def sign_checkpoint(checkpoint: Checkpoint, key: SigningKey) -> NoteSignature:
    """Return a log's signature of its own head."""
    named = NoteKey(checkpoint.origin, key.public, LOG)
    return NoteSignature(named.name, named.hint, key.sign(checkpoint.text()))


def cosign(checkpoint: Checkpoint, name: str, key: SigningKey, at: datetime) -> NoteSignature:
    """Return a cosignature of the witness `name`.

    The witness states that, at the time `at`, this is the largest consistent tree of the log that it
    has seen.
    """
    named = NoteKey(name, key.public, WITNESS)
    seconds = int(at.timestamp())
    signature = key.sign(_cosigned(seconds, checkpoint.text()))
    return NoteSignature(name, named.hint, seconds.to_bytes(8, "big") + signature)


def is_name(text: str) -> bool:
    """Return True if a text can name a log or a witness.

    A name has 1 to 255 characters, none of them white space, a plus sign or a control character.
    """
    return _NAME.fullmatch(text) is not None


def to_base64(data: bytes) -> str:
    """Return standard base64 with padding."""
    return base64.b64encode(data).decode("ascii")


def from_base64(text: str, field: str) -> bytes:
    """Read standard base64, in its one canonical spelling only; raises LogError."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        data = None
    # b64decode ignores extra bits of the last digit, so one value would have several spellings.
    if data is None or to_base64(data) != text:
        raise LogError("expected base64 text", field)
    return data


def hash_lines(lines: Sequence[str]) -> list[bytes]:
    """Read base64 hashes of 32 bytes, one per line; raises LogError."""
    hashes = [from_base64(line, "proof") for line in lines]
    if any(len(entry) != HASH_BYTES for entry in hashes):
        raise LogError("a proof has one hash of 32 bytes per line", "proof")
    return hashes


def _cosigned(seconds: int, text: bytes) -> bytes:
    # The time is signed too, so an old cosignature cannot be passed off as a new one.
    return f"cosignature/v1\ntime {seconds}\n".encode() + text


def _time(raw: bytes) -> int:
    seconds = int.from_bytes(raw, "big")
    if len(raw) != 8 or seconds >= 2**35:  # 2^35 is in the year 3058; 8 bytes can exceed datetime
        raise LogError("a witness signs a time of 8 bytes", "signature")
    return seconds
