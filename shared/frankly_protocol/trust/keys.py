# SPDX-License-Identifier: Apache-2.0
"""`frankly.keys/2`: the offline root's list of publisher, log and witness keys.

See spec 3.2 and docs/protocol.md §3. A new version is accepted only if its number is the next one
and both the old and the new root signed it; the chain of all versions is in `chain.py`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from frankly_protocol import canonical, schema
from frankly_protocol.clock import format_time
from frankly_protocol.documents import CLOCK_SKEW
from frankly_protocol.envelope import KEYS_TYPE, Envelope, PublicKey
from frankly_protocol.errors import ClockError, DocumentRejected, KeyChainError, UnsupportedDocument
from frankly_protocol.trust.notes import LOG, WITNESS, NoteKey, is_name

TYPE = "frankly.keys/2"
MAX_VALIDITY: Final = timedelta(days=400)
"""Longest time from issued to expires, and so the longest time for which a server can withhold newer
keys from a device unnoticed."""


@dataclass(frozen=True, slots=True)
class Role:
    """Keys that may sign for one purpose, and the number of distinct keys that must."""

    keys: tuple[PublicKey, ...]
    threshold: int

    def __post_init__(self) -> None:
        # Signatures count per distinct key: a higher threshold could never be met.
        if not 1 <= self.threshold <= len({key.key_id for key in self.keys}) == len(self.keys):
            raise schema.reject(
                "the threshold must be between 1 and the number of distinct keys", "threshold"
            )

    def has_signed(self, envelope: bytes, payload_type: str) -> bool:
        """Return True if enough keys of the role signed the envelope with these bytes."""
        try:
            Envelope.from_bytes(envelope, payload_type).verify(self.keys, self.threshold)
        except DocumentRejected:
            return False
        return True

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Role":
        """Read a role; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"keys", "threshold"})
        keys = schema.items(data["keys"], field + ".keys", 1, 32, _key)
        return cls(keys, schema.integer(data["threshold"], field + ".threshold", 1, 32))

    def to_json(self) -> dict[str, Any]:
        """Return the role in its JSON form."""
        keys = [{"scheme": "ed25519", "public": key.raw.hex()} for key in self.keys]
        return {"keys": keys, "threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A log's key under its origin, or a witness's key under its name.

    kind : LOG or WITNESS.
    """

    name: str
    public: PublicKey
    kind: int

    @property
    def note_key(self) -> NoteKey:
        """The key in the form that verifies notes."""
        return NoteKey(self.name, self.public, self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return the key in its JSON form."""
        return {"name": self.name, "scheme": "ed25519", "public": self.public.raw.hex()}


@dataclass(frozen=True, slots=True)
class LogRole:
    """The transparency log, its witnesses, and the number of them that must sign a checkpoint.

    Without witnesses the threshold is 0: such a log can be audited, but no device relies on it.
    """

    log: NamedKey
    witnesses: tuple[NamedKey, ...]
    threshold: int

    def __post_init__(self) -> None:
        keys = {self.log.public.key_id, *(witness.public.key_id for witness in self.witnesses)}
        names = {self.log.name, *(witness.name for witness in self.witnesses)}
        # One key under two names would count as two witnesses.
        if len(keys) != len(names) or len(keys) != 1 + len(self.witnesses):
            raise schema.reject(
                "the log and each witness need a key and a name of their own", "log.witnesses"
            )
        if not (1 if self.witnesses else 0) <= self.threshold <= len(self.witnesses):
            raise schema.reject(
                "the threshold must be between 1 and the number of witnesses", "log.threshold"
            )

    @classmethod
    def from_json(cls, value: Any, field: str) -> "LogRole":
        """Read the role; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(
            value, field, {"name", "scheme", "public", "witnesses", "threshold"}
        )
        log = {name: data[name] for name in ("name", "scheme", "public")}
        return cls(
            _named(log, field, LOG),
            schema.items(
                data["witnesses"], field + ".witnesses", 0, 32, lambda v, f: _named(v, f, WITNESS)
            ),
            schema.integer(data["threshold"], field + ".threshold", 0, 32),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the role in its JSON form."""
        witnesses = [witness.to_json() for witness in self.witnesses]
        return {**self.log.to_json(), "witnesses": witnesses, "threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class KeysDocument:
    """One version of the keys.

    root : signs the next version. publisher : signs survey documents. log : the transparency log
    with its witnesses, or None if there is none. Log and witness keys must have no other role.
    """

    version: int
    issued: datetime
    expires: datetime
    root: Role
    publisher: Role
    log: LogRole | None = None

    def __post_init__(self) -> None:
        if self.expires <= self.issued:
            raise schema.reject("keys must expire after they are issued", "expires")
        if self.expires - self.issued > MAX_VALIDITY:
            raise schema.reject(f"keys are valid for at most {MAX_VALIDITY.days} days", "expires")
        # Separate keys: a stolen log or witness key must not be able to sign surveys or keys.
        if self.log is not None:
            named = {key.public.key_id for key in (self.log.log, *self.log.witnesses)}
            if named & {key.key_id for key in (*self.root.keys, *self.publisher.keys)}:
                raise schema.reject(
                    "a key of the log or of a witness must have no other role", "log"
                )

    @classmethod
    def parse(cls, payload: bytes) -> "KeysDocument":
        """Read exact payload bytes; raises DocumentRejected, naming the field."""
        data = canonical.loads(payload)
        if not isinstance(data, dict) or data.get("type") != TYPE:
            raise UnsupportedDocument(f"expected a document of type {TYPE}: update the app", "type")
        schema.DOCUMENT.record(
            data, None, {"type", "version", "issued", "expires", "root", "publisher", "log"}
        )
        return cls(
            schema.integer(data["version"], "version", 1),
            schema.moment(data["issued"], "issued"),
            schema.moment(data["expires"], "expires"),
            Role.from_json(data["root"], "root"),
            Role.from_json(data["publisher"], "publisher"),
            schema.optional(data["log"], "log", LogRole.from_json),
        )

    def payload(self) -> bytes:
        """Return the canonical bytes to sign."""
        return canonical.dumps(
            {
                "type": TYPE,
                "version": self.version,
                "issued": format_time(self.issued),
                "expires": format_time(self.expires),
                "root": self.root.to_json(),
                "publisher": self.publisher.to_json(),
                "log": None if self.log is None else self.log.to_json(),
            }
        )

    def require_window(self, now: datetime) -> None:
        """Raise ClockError unless the keys are valid at `now`, give or take 10 minutes."""
        if not self.issued - CLOCK_SKEW <= now <= self.expires + CLOCK_SKEW:
            raise ClockError(
                f"the keys are valid from {format_time(self.issued)} to {format_time(self.expires)}, "
                f"this device's clock says {format_time(now)}",
                "expires",
            )


@dataclass(frozen=True, slots=True)
class SignedKeys:
    """One version of the keys, and the envelope that its own root signed."""

    envelope: Envelope
    keys: KeysDocument

    @classmethod
    def read(cls, data: bytes) -> "SignedKeys":
        """Read a version from the bytes of its envelope.

        (K1) size, envelope, schema; (K2) signed by the threshold of its own root. Raises
        DocumentRejected.
        """
        envelope = Envelope.from_bytes(data, KEYS_TYPE)
        keys = KeysDocument.parse(envelope.payload)  # (K1)
        envelope.verify(keys.root.keys, keys.root.threshold)  # (K2)
        return cls(envelope, keys)

    def require_follows(self, previous: KeysDocument) -> None:
        """Raise KeyChainError unless this is the next version after `previous`.

        (K3) its version is one more; (K4) signed by the threshold of the previous root.
        """
        if self.keys.version != previous.version + 1:  # (K3)
            raise KeyChainError(
                f"version {self.keys.version} does not follow version {previous.version}", "version"
            )
        if self.keys.root == previous.root:
            return  # (K2) has already verified it
        try:
            self.envelope.verify(previous.root.keys, previous.root.threshold)  # (K4)
        except DocumentRejected:
            raise KeyChainError(
                "the root keys known so far did not sign the new ones", "signatures"
            ) from None


def accept_keys(data: bytes, now: datetime) -> KeysDocument:
    """Return the keys in `data` if their own root signed them and `now` is in their window.

    Raises ClockError, or DocumentRejected for anything malformed or badly signed.
    """
    document = SignedKeys.read(data).keys
    document.require_window(now)
    return document


def _named(value: Any, field: str, kind: int) -> NamedKey:
    data = schema.DOCUMENT.record(value, field, {"name", "scheme", "public"})
    if not isinstance(data["name"], str) or not is_name(data["name"]):
        raise schema.reject(
            "a name must have no spaces or plus signs, and at most 255 characters", field + ".name"
        )
    return NamedKey(
        data["name"], _key({"scheme": data["scheme"], "public": data["public"]}, field), kind
    )


def _key(value: Any, field: str) -> PublicKey:
    data = schema.DOCUMENT.record(value, field, {"scheme", "public"})
    if data["scheme"] != "ed25519":
        raise UnsupportedDocument("only ed25519 keys are known: update the app", field + ".scheme")
    public = data["public"]
    # bytes.fromhex also accepts spaces and capitals; only one spelling of a key is allowed.
    if not isinstance(public, str) or len(public) != 64 or public.strip("0123456789abcdef"):
        raise schema.reject("expected 64 lower-case hex digits", field + ".public")
    key = PublicKey(bytes.fromhex(public))
    if not key.is_sound:
        raise schema.reject(
            "anyone could sign with this key, or it is not in canonical form: create another key",
            field + ".public",
        )
    return key
