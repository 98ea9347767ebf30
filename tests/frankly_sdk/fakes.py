# SPDX-License-Identifier: Apache-2.0
"""Fake server in the same process, which serves fixed documents, records requests, and fails on demand."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.audit import ceiling
from frankly_protocol.blocks import Block
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.trust import write_chain
from frankly_sdk import Client, NetworkError, Policy
from frankly_sdk.testing import open_client
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import (
    NOW,
    keys_document,
    ldp_block,
    lip_block,
    sealed,
    sealed_keys,
    survey,
)

JSON = "application/json"
BACKSTOP = DenseMechanism(48, ((3 << 46, 1 << 46), (1 << 46, 3 << 46)))


def backstop_block(name: str = "marriage", secret: str = "affair", epsilon: str = "0.5") -> Block:
    """Return the samples' LIP block with a mechanism whose ceiling is 3, so that its cost is finite."""
    return replace(lip_block(name, secret, epsilon), mechanism=BACKSTOP, ceiling=ceiling(BACKSTOP))


def payable_survey() -> SurveyDocument:
    """Return the samples' survey with a backstop, which costs 1 + ln 3 nats and changes the odds of
    “affair” by 2 nats."""
    return survey(ldp_block(), backstop_block())


@dataclass
class FakeServer:
    """A Transport. older_keys : the versions before `keys`, oldest first.

    Reports get the `replies` in order; later reports are accepted. A reply may be an exception to
    raise.
    """

    document: SurveyDocument = field(default_factory=payable_survey)
    keys: bytes = field(default_factory=lambda: sealed_keys(keys_document()))
    older_keys: list[bytes] = field(default_factory=list)
    envelope: bytes = b""
    replies: list[Reply | Exception] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    posted: list[bytes] = field(default_factory=list)
    on_post: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.envelope = self.envelope or sealed(self.document.payload())

    def get(self, url: str, limit: int) -> Reply:
        """Serve keys or the document."""
        self.fetched.append(url)
        keys = {
            "/v1/keys": lambda: self.keys,
            "/v1/keys/chain": lambda: write_chain([*self.older_keys, self.keys]),
        }
        body = next((make() for path, make in keys.items() if url.endswith(path)), self.envelope)
        if len(body) > limit:
            raise NetworkError("too large", "limit")
        return Reply(200, JSON, None, body)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Return or raise the next of `replies`; if none is left, store the report and return 201."""
        self.on_post()
        self.posted.append(body)
        if self.replies:
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply
        return Reply(201, JSON, None, receipt(body))

    def close(self) -> None:
        """Nothing to close."""

    @property
    def first_root(self) -> str:
        """The name of the chain to which the server's keys belong."""
        first = [*self.older_keys, self.keys][0]
        return canonical.digest(Envelope.from_bytes(first, KEYS_TYPE).payload)

    @property
    def link(self) -> str:
        """The pinned link of the document."""
        return f"https://collect.example/s/{self.document.survey}#{self.document.digest.replace(':', '=')}"

    def open(self, store: Path, **changes: Any) -> Client:
        """Open a client on this server, at NOW, without waiting between attempts."""
        options: dict[str, Any] = {
            "policy": Policy(),
            "transport": self,
            "clock": FixedClock(NOW),
        } | changes
        options = {
            "link": self.link,
            "sleep": lambda _s: None,
            "timer": Ticking(),
            "spread_s": 0,
            **options,
        }
        return open_client(store=store, **options)


class Ticking:
    """A timer that advances by one second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def receipt(body: bytes, status: str = "accepted") -> bytes:
    """Return the server's receipt for a report."""
    return json.dumps({"status": status, "id": json.loads(body)["id"]}).encode()


def problem(status: int, code: str, retry_after: str | None = None) -> Reply:
    """Return a problem response."""
    return Reply(
        status,
        "application/problem+json",
        retry_after,
        json.dumps({"code": code, "status": status}).encode(),
    )


ANSWERS = {"affair": "yes", "marriage": "good"}


def times(n: int) -> str:
    """Return n · δ as an exact plain decimal."""
    return f"{n * Decimal(1) / (1 << 20):f}"


BAD_DELTA_CAPS: list[object] = [
    "nan",
    "-0.1",
    "1",
    "1.5",
    "1e-6",
    "",
    " 0",
    "ten",
    None,
    True,
    0.1,
    "2",
    "inf",
    "1e999999999",
]
