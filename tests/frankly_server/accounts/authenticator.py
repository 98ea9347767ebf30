# SPDX-License-Identifier: Apache-2.0
"""Software authenticator, written from the text of WebAuthn level 2, without the library under test."""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field, replace

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

USER_PRESENT, USER_VERIFIED, ATTESTED = 1, 4, 64


def text(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def data(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "===")


@dataclass(frozen=True)
class Authenticator:
    """A passkey on a device; tests may change its fields."""

    host: str = "surveys.example.org"
    origin: str = "https://surveys.example.org"
    is_framed: bool = False
    flags: int = USER_PRESENT | USER_VERIFIED
    count: int = 0
    credential: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    user: bytes | None = None

    def with_user(self, options: str) -> "Authenticator":
        """Return this passkey with the account from its registration options."""
        return replace(self, user=data(json.loads(options)["user"]["id"]))

    def create(self, options: str) -> str:
        """Return the result of navigator.credentials.create in the format that the page sends."""
        numbers = self.key.public_key().public_numbers()
        cose = cbor2.dumps(
            {
                1: 2,
                3: -7,
                -1: 1,
                -2: numbers.x.to_bytes(32, "big"),
                -3: numbers.y.to_bytes(32, "big"),
            }
        )
        attested = bytes(16) + len(self.credential).to_bytes(2, "big") + self.credential + cose
        attestation = cbor2.dumps(
            {"fmt": "none", "attStmt": {}, "authData": self._data(ATTESTED) + attested}
        )
        return self._answer(
            {
                "clientDataJSON": text(self._client_data("webauthn.create", options)),
                "attestationObject": text(attestation),
            }
        )

    def get(self, options: str) -> str:
        """Return the result of navigator.credentials.get in the format that the page sends."""
        client, head = self._client_data("webauthn.get", options), self._data(0)
        signed = self.key.sign(head + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        answer = {
            "clientDataJSON": text(client),
            "authenticatorData": text(head),
            "signature": text(signed),
        }
        return self._answer(answer | ({"userHandle": text(self.user)} if self.user else {}))

    def _data(self, flags: int) -> bytes:
        head = hashlib.sha256(self.host.encode()).digest() + bytes([self.flags | flags])
        return head + self.count.to_bytes(4, "big")

    def _client_data(self, kind: str, options: str) -> bytes:
        challenge = json.loads(options)["challenge"]
        sent = {"type": kind, "challenge": challenge, "origin": self.origin}
        return json.dumps(sent | {"crossOrigin": self.is_framed}).encode()

    def _answer(self, response: dict[str, str]) -> str:
        name = text(self.credential)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
