# SPDX-License-Identifier: Apache-2.0
"""Walking from the keys known to the newest ones, version by version (the rules of TUF; docs/protocol.md §3)."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from frankly_protocol.canonical import MAX_BYTES, digest, parse_json
from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation, InvalidInput, KeyChainError
from frankly_protocol.trust.keys import KeysDocument, require_step

MAX_STEPS = 256
MAX_CHAIN_BYTES = MAX_BYTES


def walk(newest: bytes, known: bytes | None, chain: Callable[[], Sequence[bytes]], now: datetime) -> KeysDocument:
    """Return the newest keys, if an unbroken chain leads to them from the known ones and they may be used at `now`.

    newest : the envelope served as newest. known : the one accepted last, None on first use. chain : gives the
    envelopes of all versions, in any order; asked only if versions lie in between.

    (K1) to (K4) hold for every step; (K5) there are at most 256 steps; (K6) only the last one must not have expired: an
    expired version in between is a step and nothing else. Raises as `accept_keys`.
    """
    target = require_step(None, newest)
    for step in _between(target.version, known, chain):
        require_step(known, step)
        known = step
    document = require_step(known, newest)
    document.require_window(now)  # (K6)
    return document


@dataclass(frozen=True, slots=True)
class Proven:
    """The newest keys of a whole chain, their envelope, and the chain's name: the digest of its first payload."""

    keys: KeysDocument
    newest: bytes
    first_root: str


def prove_chain(chain: Sequence[bytes], known: bytes | None, now: datetime) -> Proven:
    """Return the newest keys of a chain from version 1 on, with the name of the chain.

    chain : the envelopes of all versions, oldest first. known : the one accepted last or shipped, which must be among
    them; None on first use. The name cannot be claimed: (K1) to (K4) hold for every step from version 1 on, so whoever
    has no root key of a chain can only repeat it. (K5) and (K6) hold as in `walk`.

    Raises as `accept_keys`.
    """
    previous: bytes | None = None
    for data in chain:
        document = require_step(previous, data)
        if previous is None and document.version != 1:
            raise KeyChainError("a whole chain of keys begins with version 1", "chain")
        previous = data
    if previous is None:
        raise KeyChainError("a chain of keys has at least one version", "chain")
    newest = walk(previous, known, lambda: chain, now)
    payloads = [_payload(data) for data in chain]
    if known is not None and _payload(known) not in payloads:
        raise Equivocation(f"the chain has another version {_version(known)} of the keys than the one known", "chain")
    return Proven(newest, previous, digest(payloads[0]))


def write_chain(envelopes: Sequence[bytes]) -> bytes:
    """Return the body that serves a chain: the exact envelopes, oldest first."""
    return json.dumps({"chain": [base64.b64encode(data).decode("ascii") for data in envelopes]}).encode("ascii")


def read_chain(data: bytes) -> list[bytes]:
    """Read what `write_chain` wrote; raises DocumentRejected("envelope") or KeyChainError for more than 257 entries."""
    try:
        body = parse_json(data, max_bytes=MAX_CHAIN_BYTES, max_depth=3)
        if not isinstance(body, dict) or set(body) != {"chain"} or not isinstance(body["chain"], list):
            raise DocumentRejected("envelope", "a chain of keys is an object with exactly the field chain")
        if len(body["chain"]) > MAX_STEPS + 1:
            raise KeyChainError(f"a chain has at most {MAX_STEPS} steps: update the app", "chain")
        return [base64.b64decode(entry, validate=True) for entry in body["chain"]]
    except (InvalidInput, TypeError, ValueError, binascii.Error):
        raise DocumentRejected("envelope", "a chain of keys lists envelopes in base64", "chain") from None


def _between(version: int, known: bytes | None, chain: Callable[[], Sequence[bytes]]) -> list[bytes]:
    """Return the envelopes of the versions strictly between the known and the newest one."""
    if known is None:
        return []
    first = _version(known) + 1
    if version - first >= MAX_STEPS:  # (K5)
        raise KeyChainError(f"more than {MAX_STEPS} rotations have been missed: update the app", "version")
    if version <= first:
        return []
    by_version = {_version(data): data for data in chain()}
    missing = [number for number in range(first, version) if number not in by_version]
    if missing:
        raise KeyChainError(f"version {missing[0]} of the keys is missing from the chain", "chain")
    return [by_version[number] for number in range(first, version)]


def _version(data: bytes) -> int:
    return KeysDocument.parse(_payload(data)).version


def _payload(data: bytes) -> bytes:
    return Envelope.from_bytes(data, KEYS_TYPE).payload
