# SPDX-License-Identifier: Apache-2.0
"""Driver of both implementations with the same input: frankly-verify in one process, the SDK in
this process."""

import base64
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from frankly_sdk import FranklyError, Policy
from frankly_sdk.testing import FakeClock, open_client
from frankly_sdk.transport import Reply

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ORIGIN = "https://collect.example"
SURVEY = "ab" * 16
ROOT = Ed25519PrivateKey.from_private_bytes(sha256(b"root").digest())
PUBLISHER = Ed25519PrivateKey.from_private_bytes(sha256(b"publisher").digest())


def canonical(value: object) -> bytes:
    """Return the canonical bytes of a document, without the code under test."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def signed(payload: bytes, kind: str, key: Ed25519PrivateKey) -> bytes:
    """Return the envelope of a payload; `kind` is survey or keys."""
    name = f"application/vnd.frankly.{kind}+json"
    message = f"DSSEv1 {len(name)} {name} {len(payload)} ".encode() + payload
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": name,
        "signatures": [
            {
                "keyid": sha256(b"ed25519\0" + bytes.fromhex(_public(key))).hexdigest(),
                "sig": base64.b64encode(key.sign(message)).decode(),
            }
        ],
    }
    return json.dumps(envelope).encode()


def _role(key: Ed25519PrivateKey) -> dict[str, Any]:
    return {"keys": [{"scheme": "ed25519", "public": _public(key)}], "threshold": 1}


KEYS_DOCUMENT: dict[str, Any] = {
    "type": "frankly.keys/2",
    "version": 1,
    "issued": "2026-05-22T12:00:00Z",
    "expires": "2027-03-28T12:00:00Z",
    "root": _role(ROOT),
    "publisher": _role(PUBLISHER),
    "log": None,
}
KEYS = signed(canonical(KEYS_DOCUMENT), "keys", ROOT)


@dataclass(frozen=True)
class Verdict:
    """The code `ok` of an accepted document, or the code and field of the first refusal."""

    code: str
    field: str | None = None


@dataclass(frozen=True)
class Verifier:
    """The binary."""

    binary: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            [str(self.binary), *arguments], check=False, capture_output=True, text=True
        )

    def batch(self, requests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send requests to one process; return the responses."""
        lines = "\n".join(map(json.dumps, requests))
        done = subprocess.run(
            [str(self.binary), "batch"], input=lines, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def verdicts(self, payloads: list[bytes]) -> list[Verdict]:
        """Return the verifier's verdicts on signed payloads with pinned links."""
        requests = [
            {
                "document": signed(payload, "survey", PUBLISHER).decode(),
                "keys": KEYS.decode(),
                "origin": ORIGIN,
                "pin": f"sha256:{sha256(payload).hexdigest()}",
                "now": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
            }
            for payload in payloads
        ]
        return [_verdict(answer) for answer in self.batch(requests)]

    def keys_verdicts(self, envelopes: list[bytes]) -> list[Verdict]:
        """Return the verifier's verdicts on key chains with one version."""
        now = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
        requests = ({"keys": envelope.decode(), "now": now} for envelope in envelopes)
        return [_verdict(answer) for answer in self.batch(requests)]


def _verdict(answer: dict[str, Any]) -> Verdict:
    if answer["valid"]:
        return Verdict("ok")
    return Verdict(answer["problem"]["code"], answer["problem"]["field"] or None)


@dataclass
class _Server:
    """A server of one envelope, used as the SDK's transport."""

    envelope: bytes
    keys: bytes = KEYS

    def get(self, url: str, limit: int) -> Reply:
        chain = json.dumps({"chain": [base64.b64encode(self.keys).decode()]}).encode()
        body = chain if "/keys" in url else self.envelope
        return Reply(200, "application/json", None, body)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        raise AssertionError(f"a report was sent to {url}")

    def close(self) -> None:
        pass


def python_verdict(payload: bytes, folder: Path, keys: bytes | None = None) -> Verdict:
    """Return the Python SDK's verdict on a signed payload with a pinned link.

    keys : the envelope of the only version of a key chain that is new to the device.
    """
    link = f"{ORIGIN}/s/{SURVEY}#sha256={sha256(payload).hexdigest()}"
    store = folder / "store"
    server = _Server(signed(payload, "survey", PUBLISHER), keys or KEYS)
    policy = Policy(cap="64")
    try:
        open_client(
            link, store, policy, keys=None if keys else KEYS, transport=server, clock=FakeClock(NOW)
        ).close()
    except FranklyError as refusal:
        return Verdict(refusal.code, refusal.field)
    finally:
        for path in folder.iterdir():
            path.unlink()
    return Verdict("ok")
