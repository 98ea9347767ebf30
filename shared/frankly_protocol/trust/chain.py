# SPDX-License-Identifier: Apache-2.0
"""The chain of keys, proven from version 1 to the newest (TUF rules; docs/protocol.md §3)."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from frankly_protocol.canonical import MAX_BYTES, digest, parse_json
from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_protocol.errors import (
    DocumentRejected,
    Equivocation,
    InvalidInput,
    KeyChainError,
    RollbackDetected,
)
from frankly_protocol.trust.keys import KeysDocument, SignedKeys

MAX_VERSIONS = 1024
MAX_CHAIN_BYTES = MAX_BYTES


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """A keys envelope and its chain.

    chain : digest of the payload of the chain's version 1, or None if unproven.
    """

    envelope: bytes
    chain: str | None

    @classmethod
    def shipped(cls, envelope: bytes) -> "KnownKeys":
        """Return the keys that an app ships with.

        Version 1 determines the name of its chain. For a later version, the name is unknown until
        the server proves a chain that contains this version.
        """
        signed = SignedKeys.read(envelope)
        return cls(envelope, digest(signed.envelope.payload) if signed.keys.version == 1 else None)


@dataclass(frozen=True, slots=True)
class Proven:
    """A whole chain of keys.

    keys : the newest keys. newest : their envelope. payloads : the payloads of all versions.
    first_root : the chain's name, the digest of version 1.
    """

    keys: KeysDocument
    newest: bytes
    payloads: tuple[bytes, ...]
    first_root: str

    def require_contains(self, known: KnownKeys) -> None:
        """(K6) Raise unless the known keys are one of the versions.

        Raises KeyChainError for keys of another chain, RollbackDetected if the chain ends before
        their version, Equivocation if the chain has another document in that version.
        """
        if known.chain not in (None, self.first_root):
            raise KeyChainError(
                "these keys do not descend from those known here: the server has changed or begun a new chain",
                "chain",
            )
        # Payloads are compared, not envelopes: signatures are not part of a version.
        payload = Envelope.from_bytes(known.envelope, KEYS_TYPE).payload
        version = KeysDocument.parse(payload).version
        if version > len(self.payloads):
            raise RollbackDetected(
                f"keys version {self.keys.version} is older than version {version}, seen before"
            )
        if self.payloads[version - 1] != payload:
            raise Equivocation(f"keys version {version} has been seen here with other content")


def prove_chain(chain: Sequence[bytes], known: KnownKeys | None, now: datetime) -> Proven:
    """Return the newest keys of a chain, which must be valid at `now`, with the name of the chain.

    chain : the envelopes of all versions, oldest first.
    known : the keys accepted last, or shipped with the app; None on first use.

    The name cannot be forged: (K1) to (K4) are checked for every version from version 1 on, so a
    server without a chain's root keys can serve the chain but not extend it. (K5) The chain begins with
    version 1 and has at most 1,024 versions; (K6) the known keys are one of them; (K7) the last
    version is valid at `now`. Earlier versions may have expired.

    Raises KeyChainError, RollbackDetected, Equivocation, ClockError, or DocumentRejected for
    anything malformed or badly signed.
    """
    # Each version takes signature checks, so their number is limited first.
    if not 1 <= len(chain) <= MAX_VERSIONS:  # (K5)
        raise KeyChainError(f"a chain of keys has 1 to {MAX_VERSIONS:,} versions", "chain")
    versions = [SignedKeys.read(data) for data in chain]
    if versions[0].keys.version != 1:  # (K5)
        raise KeyChainError("a whole chain of keys begins with version 1", "chain")
    # (K3) (K4) for every step: a skipped version could hide a change of the root.
    for before, after in pairwise(versions):
        after.require_follows(before.keys)
    keys = versions[-1].keys
    payloads = tuple(version.envelope.payload for version in versions)
    proven = Proven(keys, chain[-1], payloads, digest(payloads[0]))
    if known is not None:
        # (K6) Without this check, a server could serve an older chain, in which a withdrawn key is
        # still valid.
        proven.require_contains(known)
    keys.require_window(now)  # (K7)
    return proven


def write_chain(envelopes: Sequence[bytes]) -> bytes:
    """Return the JSON body of a chain: the exact envelopes in base64, oldest first."""
    return json.dumps(
        {"chain": [base64.b64encode(data).decode("ascii") for data in envelopes]}
    ).encode("ascii")


def read_chain(data: bytes) -> list[bytes]:
    """Return the envelopes in a body of `write_chain`; raises DocumentRejected("envelope")."""
    try:
        body = parse_json(data, max_bytes=MAX_CHAIN_BYTES, max_depth=3)
        if (
            not isinstance(body, dict)
            or set(body) != {"chain"}
            or not isinstance(body["chain"], list)
        ):
            raise DocumentRejected(
                "envelope", "a chain of keys is an object with exactly the field chain"
            )
        return [base64.b64decode(entry, validate=True) for entry in body["chain"]]
    except (InvalidInput, TypeError, ValueError, binascii.Error):
        raise DocumentRejected(
            "envelope", "a chain of keys lists envelopes in base64", "chain"
        ) from None
