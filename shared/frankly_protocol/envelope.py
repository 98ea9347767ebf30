# SPDX-License-Identifier: Apache-2.0
"""DSSE envelopes with Ed25519: verify the exact bytes, then parse them (spec 3.1)."""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frankly_protocol.canonical import MAX_BYTES, parse_json
from frankly_protocol.errors import DocumentRejected, InvalidInput

SURVEY_TYPE = "application/vnd.frankly.survey+json"
KEYS_TYPE = "application/vnd.frankly.keys+json"
MAX_SIGNATURES = 32
# Base64 makes a payload a third longer; 16 KiB are for the signatures and field names.
MAX_ENVELOPE_BYTES = MAX_BYTES // 3 * 4 + 16 * 2**10
# The prime of Ed25519's field, and the y coordinates of its 8 points of small order. x is 0 only
# for y = 1 and y = -1, so refusing these also refuses the non-canonical encodings of x = 0 that
# have the sign bit set.
_FIELD = 2**255 - 19
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL_ORDER_Y = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A raw Ed25519 public key; raises DocumentRejected("signature") unless it has 32 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise DocumentRejected("signature", "an Ed25519 public key has 32 bytes")

    @property
    def key_id(self) -> str:
        """Hex SHA-256 of the scheme and the raw key; always computed, never taken from a message."""
        return hashlib.sha256(b"ed25519\x00" + self.raw).hexdigest()

    @property
    def is_sound(self) -> bool:
        """False for a point of small order or a non-canonical encoding (RFC 8032, 5.1.3).

        Signatures for a point of small order can be forged, and libraries differ in which of these
        keys they accept.
        """
        y = int.from_bytes(self.raw, "little") % 2**255  # the highest bit is the sign of x
        return y < _FIELD and y not in _SMALL_ORDER_Y

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return True if this key made `signature` over `message`.

        Callers count valid signatures against a threshold and raise if there are too few.
        """
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey:
    """An Ed25519 private key; its repr never shows the bytes."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @classmethod
    def generate(cls) -> "SigningKey":
        """Return a new key, drawn from the operating system's random source."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_raw(cls, raw: bytes) -> "SigningKey":
        """Return the key with this 32-byte seed; raises ValueError for another length."""
        return cls(Ed25519PrivateKey.from_private_bytes(raw))

    @property
    def raw(self) -> bytes:
        """The 32-byte seed, for writing a key file."""
        return self._private.private_bytes_raw()

    @property
    def public(self) -> PublicKey:
        """The matching public key."""
        return PublicKey(self._private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of `message`."""
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.public.key_id[:12]}…)"


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an envelope; `key_id` is only a hint about which key to try."""

    key_id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """Payload bytes and the signatures over them."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    @classmethod
    def seal(cls, payload_type: str, payload: bytes, signers: Sequence[SigningKey]) -> "Envelope":
        """Return `payload` signed by each of `signers`."""
        message = pae(payload_type, payload)
        return cls(
            payload_type,
            payload,
            tuple(Signature(key.public.key_id, key.sign(message)) for key in signers),
        )

    def to_bytes(self) -> bytes:
        """Return the envelope as DSSE JSON."""
        body = {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "payloadType": self.payload_type,
            "signatures": [
                {"keyid": s.key_id, "sig": base64.b64encode(s.value).decode("ascii")}
                for s in self.signatures
            ],
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes, payload_type: str) -> "Envelope":
        """Read an envelope of the expected type (acceptance steps 1 and 2).

        Raises DocumentRejected with reason size, envelope or type, or with reason signature if two
        signatures name the same key.
        """
        if len(data) > MAX_ENVELOPE_BYTES:
            raise DocumentRejected(
                "size", f"the envelope is larger than {MAX_ENVELOPE_BYTES} bytes"
            )
        try:
            body = parse_json(data, max_bytes=MAX_ENVELOPE_BYTES, max_depth=4)
        except InvalidInput as error:
            raise DocumentRejected("envelope", error.detail) from None
        if not isinstance(body, dict) or set(body) != {"payload", "payloadType", "signatures"}:
            raise DocumentRejected(
                "envelope", "an envelope has exactly payload, payloadType and signatures"
            )
        # The type is signed with the payload, so a keys document cannot pass for a survey document.
        if body["payloadType"] != payload_type:
            raise DocumentRejected("type", f"expected {payload_type}", "payloadType")
        payload = _base64(body["payload"], "payload")
        # The envelope's limit leaves room for signatures, which a larger payload must not use.
        if len(payload) > MAX_BYTES:
            raise DocumentRejected(
                "size", f"the payload is larger than {MAX_BYTES} bytes", "payload"
            )
        return cls(payload_type, payload, _signatures(body["signatures"]))

    def signers(self, keys: Iterable[PublicKey]) -> set[str]:
        """Return the ids of the keys whose signatures in this envelope are valid."""
        message = pae(self.payload_type, self.payload)
        # Ids are computed from the trusted keys; an id in the envelope only selects one of them.
        by_id = {key.key_id: key for key in keys}
        # A set of key ids: several signatures of one key count once.
        return {
            s.key_id
            for s in self.signatures
            if s.key_id in by_id and by_id[s.key_id].verifies(s.value, message)
        }

    def verify(self, keys: Iterable[PublicKey], threshold: int) -> bytes:
        """Return the payload if at least `threshold` *distinct* keys signed it (acceptance step 3).

        Raises DocumentRejected("signature") otherwise, or if the threshold is below 1.
        """
        if threshold < 1:
            raise DocumentRejected("signature", "the threshold must be at least 1", "threshold")
        valid = len(self.signers(keys))
        if valid < threshold:
            raise DocumentRejected(
                "signature",
                f"{valid} of the {threshold} trusted signatures needed are valid",
                "signatures",
            )
        return self.payload


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding, the bytes that are signed."""
    # The lengths make the encoding injective: no other type and payload give the same bytes.
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _signatures(items: object) -> tuple[Signature, ...]:
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_SIGNATURES:
        raise DocumentRejected(
            "envelope", f"an envelope has 1 to {MAX_SIGNATURES} signatures", "signatures"
        )
    signatures = []
    for i, item in enumerate(items):
        field = f"signatures[{i}]"
        if (
            not isinstance(item, dict)
            or set(item) != {"keyid", "sig"}
            or not isinstance(item["keyid"], str)
        ):
            raise DocumentRejected("envelope", "a signature has exactly keyid and sig", field)
        signatures.append(Signature(item["keyid"], _base64(item["sig"], field + ".sig")))
    if len({s.key_id for s in signatures}) != len(signatures):
        raise DocumentRejected("signature", "a key may sign only once", "signatures")
    return tuple(signatures)


def _base64(text: object, field: str) -> bytes:
    if not isinstance(text, str):
        raise DocumentRejected("envelope", "expected base64 text", field)
    try:
        # Without validate, characters outside base64 are skipped: one payload, many spellings.
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise DocumentRejected("envelope", "expected base64 text", field) from None
