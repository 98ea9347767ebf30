# SPDX-License-Identifier: Apache-2.0
"""Envelopes: bytes are verified before parsing, and thresholds count distinct keys."""

import base64
import json
from typing import Any

import pytest
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, SigningKey, pae
from frankly_protocol.errors import DocumentRejected

from tests.frankly_protocol.samples import PUBLISHER, ROOT, STRANGER

PAYLOAD = b'{"a":1}'
GOOD = Envelope.seal(SURVEY_TYPE, PAYLOAD, [PUBLISHER]).to_bytes()


def test_signatures_cover_the_exact_bytes() -> None:
    envelope = Envelope.from_bytes(GOOD, SURVEY_TYPE)
    assert envelope.verify([PUBLISHER.public], 1) == PAYLOAD
    assert pae("t", b"xy") == b"DSSEv1 1 t 2 xy"


def test_a_key_id_is_computed_and_a_seed_never_printed() -> None:
    assert SigningKey.from_raw(PUBLISHER.raw).public.key_id == PUBLISHER.public.key_id
    assert PUBLISHER.raw.hex() not in repr(PUBLISHER)


def altered(**changes: Any) -> bytes:
    body = json.loads(GOOD)
    body.update(changes)
    return json.dumps({k: v for k, v in body.items() if v is not ...}).encode()


SIGNATURE = json.loads(GOOD)["signatures"][0]
BAD_ENVELOPES = [
    (b"not json", "envelope"),
    (b"[]", "envelope"),
    (b"[" * 50_000, "envelope"),
    (altered(extra=1), "envelope"),
    (altered(payload=...), "envelope"),
    (altered(payload="%%%"), "envelope"),
    (altered(payload="é"), "envelope"),
    (altered(payload=7), "envelope"),
    (altered(payloadType="text/plain"), "type"),
    (altered(signatures=[]), "envelope"),
    (altered(signatures=[SIGNATURE] * 33), "envelope"),
    (altered(signatures=[{"keyid": 1, "sig": ""}]), "envelope"),
    (altered(signatures=[SIGNATURE, SIGNATURE]), "signature"),
    (altered(payload=base64.b64encode(b'{"a":2}').decode()), "signature"),
    (
        altered(signatures=[{**SIGNATURE, "sig": base64.b64encode(b"\0" * 64).decode()}]),
        "signature",
    ),
    (altered(signatures=[{**SIGNATURE, "sig": ""}]), "signature"),
    (altered(signatures=[{**SIGNATURE, "keyid": "0" * 64}]), "signature"),
    (b" " * (7 * 2**20), "size"),
]


@pytest.mark.parametrize(("data", "reason"), BAD_ENVELOPES, ids=range(len(BAD_ENVELOPES)))
def test_bad_envelopes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRejected) as caught:
        Envelope.from_bytes(data, SURVEY_TYPE).verify([PUBLISHER.public], 1)
    assert caught.value.reason == reason


THRESHOLDS = [
    ([PUBLISHER], [PUBLISHER], 1, True),
    ([PUBLISHER, ROOT], [PUBLISHER, ROOT], 2, True),
    ([PUBLISHER], [PUBLISHER, ROOT], 2, False),
    ([PUBLISHER], [PUBLISHER, PUBLISHER], 2, False),
    ([STRANGER], [PUBLISHER], 1, False),
    ([PUBLISHER], [], 1, False),
    ([PUBLISHER], [PUBLISHER], 0, False),
]


@pytest.mark.parametrize(("signers", "trusted", "threshold", "accepted"), THRESHOLDS)
def test_thresholds_count_distinct_trusted_keys(
    signers: list[SigningKey], trusted: list[SigningKey], threshold: int, accepted: bool
) -> None:
    envelope = Envelope.seal(SURVEY_TYPE, PAYLOAD, signers)
    if accepted:
        assert envelope.verify([k.public for k in trusted], threshold) == PAYLOAD
    else:
        with pytest.raises(DocumentRejected):
            envelope.verify([k.public for k in trusted], threshold)
