# SPDX-License-Identifier: Apache-2.0
"""`frankly.keys/1`: the offline root's list of publisher keys (DESIGN §4).

A new version counts only if it is the next one and both the old and the new root thresholds signed it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frankly_protocol import canonical, schema
from frankly_protocol.clock import format_time
from frankly_protocol.documents import CLOCK_SKEW
from frankly_protocol.envelope import KEYS_TYPE, Envelope, PublicKey
from frankly_protocol.errors import ClockError, DocumentRejected, KeyChainError, UnsupportedDocument

TYPE = "frankly.keys/1"


@dataclass(frozen=True, slots=True)
class Role:
    """Keys that may sign for one purpose, and how many distinct ones must."""

    keys: tuple[PublicKey, ...]
    threshold: int

    def __post_init__(self) -> None:
        if not 1 <= self.threshold <= len({key.key_id for key in self.keys}) == len(self.keys):
            raise schema.reject("a threshold lies between 1 and the number of distinct keys", "threshold")

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Role":
        """Read a role; DocumentRejected("schema") names the field."""
        data = schema.record(value, field, {"keys", "threshold"})
        keys = schema.items(data["keys"], field + ".keys", 1, 32, _key)
        return cls(keys, schema.integer(data["threshold"], field + ".threshold", 1, 32))

    def to_json(self) -> dict[str, Any]:
        """Return the role as it stands in a document."""
        keys = [{"scheme": "ed25519", "public": key.raw.hex()} for key in self.keys]
        return {"keys": keys, "threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class KeysDocument:
    """One version of the keys: `root` signs the next version, `publisher` signs survey documents."""

    version: int
    issued: datetime
    expires: datetime
    root: Role
    publisher: Role

    @classmethod
    def parse(cls, payload: bytes) -> "KeysDocument":
        """Read exact payload bytes; raises DocumentRejected, naming the field."""
        data = canonical.loads(payload)
        if not isinstance(data, dict) or data.get("type") != TYPE:
            raise UnsupportedDocument(f"expected a document of type {TYPE}: update the app", "type")
        schema.record(data, None, {"type", "version", "issued", "expires", "root", "publisher"})
        return cls(
            schema.integer(data["version"], "version", 1),
            schema.moment(data["issued"], "issued"),
            schema.moment(data["expires"], "expires"),
            Role.from_json(data["root"], "root"),
            Role.from_json(data["publisher"], "publisher"),
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
            }
        )


def accept_keys(data: bytes, previous: bytes | None, now: datetime) -> KeysDocument:
    """Return the keys in the envelope `data` if they may be used at `now`.

    `previous` is the envelope accepted last, None on first use: then the document must at least satisfy its own root.
    The same bytes are always accepted again while they last; anything else must be the next version, signed by both
    roots.

    Raises KeyChainError, ClockError, or DocumentRejected for anything malformed or badly signed.
    """
    envelope = Envelope.from_bytes(data, KEYS_TYPE)
    document = KeysDocument.parse(envelope.payload)
    envelope.verify(document.root.keys, document.root.threshold)
    if previous is not None:
        _require_successor(envelope, document, Envelope.from_bytes(previous, KEYS_TYPE))
    if not document.issued - CLOCK_SKEW <= now <= document.expires + CLOCK_SKEW:
        raise ClockError(
            f"the keys are valid from {format_time(document.issued)} to {format_time(document.expires)}, "
            f"this device's clock says {format_time(now)}",
            "expires",
        )
    return document


def _require_successor(envelope: Envelope, document: KeysDocument, before: Envelope) -> None:
    if envelope.payload == before.payload:
        return
    old = KeysDocument.parse(before.payload)
    if document.version != old.version + 1:
        raise KeyChainError(f"version {document.version} does not follow version {old.version}", "version")
    try:
        envelope.verify(old.root.keys, old.root.threshold)
    except DocumentRejected:
        raise KeyChainError("the root keys known so far did not sign the new ones", "signatures") from None


def _key(value: Any, field: str) -> PublicKey:
    data = schema.record(value, field, {"scheme", "public"})
    if data["scheme"] != "ed25519":
        raise UnsupportedDocument("only ed25519 keys are known: update the app", field + ".scheme")
    public = data["public"]
    if not isinstance(public, str) or len(public) != 64 or public.strip("0123456789abcdef"):
        raise schema.reject("expected 64 lower-case hex digits", field + ".public")
    return PublicKey(bytes.fromhex(public))
