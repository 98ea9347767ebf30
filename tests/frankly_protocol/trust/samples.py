# SPDX-License-Identifier: Apache-2.0
"""A log, its witnesses, and proofs for tests to alter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import (
    Checkpoint,
    LogProof,
    LogRole,
    NamedKey,
    SignedCheckpoint,
    Tree,
    cosign,
    document_leaf,
    sign_checkpoint,
)
from frankly_protocol.trust.notes import LOG, WITNESS
from frankly_protocol.trust.tokens import encode_token

from tests.frankly_protocol.samples import NOW

ORIGIN = "log.example/frankly"
LOG_KEY = SigningKey.from_raw(bytes([7]) * 32)
WITNESS_KEYS = {f"w{i}.example": SigningKey.from_raw(bytes([10 + i]) * 32) for i in range(3)}


def role(threshold: int = 2, log: SigningKey = LOG_KEY, witnesses: int = 3) -> LogRole:
    """Return the log's entry in a keys document."""
    named = [
        NamedKey(name, key.public, WITNESS) for name, key in list(WITNESS_KEYS.items())[:witnesses]
    ]
    return LogRole(NamedKey(ORIGIN, log.public, LOG), tuple(named), threshold)


@dataclass
class FakeLog:
    """A log in memory whose witnesses sign any checkpoint."""

    digests: list[str] = field(default_factory=list)
    origin: str = ORIGIN
    key: SigningKey = LOG_KEY
    signed_at: datetime = NOW

    def tree(self) -> Tree:
        """Return the tree over all logged documents."""
        return Tree([document_leaf(digest) for digest in self.digests])

    def head(
        self, size: int | None = None, witnesses: Sequence[str] = tuple(WITNESS_KEYS)
    ) -> SignedCheckpoint:
        """Return a checkpoint signed by the log and the named witnesses."""
        tree = self.tree()
        size = tree.size if size is None else size
        checkpoint = Checkpoint(self.origin, size, tree.root(size))
        cosigned = [
            cosign(checkpoint, name, WITNESS_KEYS[name], self.signed_at) for name in witnesses
        ]
        return SignedCheckpoint(checkpoint, (sign_checkpoint(checkpoint, self.key), *cosigned))

    def proof(self, digest: str, witnesses: Sequence[str] = tuple(WITNESS_KEYS)) -> LogProof:
        """Return the proof of a logged document for the newest head."""
        tree, index = self.tree(), self.digests.index(digest)
        return LogProof(
            index, tuple(tree.inclusion(index, tree.size)), self.head(witnesses=witnesses)
        )


def spki(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """Return the public key as a survey's document states it."""
    return encode_token(
        key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
