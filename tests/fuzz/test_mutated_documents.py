# SPDX-License-Identifier: Apache-2.0
"""Mutated documents: none is accepted without a new signature, and accepted documents keep every
promise.

tests/frankly_protocol/test_every_kind.py compares the same promises with brute force in Fractions;
in this module the documents pass through all steps of a device's acceptance.
"""

import json
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, FranklyError
from frankly_protocol.mechanisms import BLOCK_KINDS
from frankly_sdk import LinkError
from frankly_sdk._trusted import accept_survey
from frankly_sdk.link import SurveyLink

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.every_kind import DATA, KINDS
from tests.frankly_protocol.samples import NOW, STRANGER, keys_document, sealed
from tests.frankly_protocol.test_every_kind import DOCUMENTS, mutated
from tests.vectors.second_bytes import open_envelope

LINK = SurveyLink("https://collect.example", "ab" * 16, None)
ROLE = keys_document().publisher
KIND = "application/vnd.frankly.survey+json"
HONEST = {name: sealed(document.payload()) for name, document in DOCUMENTS.items()}
PAYLOADS = {document.payload() for document in DOCUMENTS.values()}


def written(body: Any) -> bytes:
    """Return canonical bytes, or similar bytes if the body has no canonical form."""
    try:
        return canonical.dumps(body)
    except DocumentRejected:
        return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def forged(rng: Random) -> bytes:
    """Return a mutated payload with the honest signature or a stranger's, or a changed envelope."""
    name = rng.choice(sorted(HONEST))
    kind = rng.randrange(4)
    if kind == 0:
        return sealed(written(mutated(rng)), STRANGER)
    body = json.loads(HONEST[name])
    if kind == 1:
        payload = bytearray(DOCUMENTS[name].payload())
        for _ in range(rng.randint(1, 3)):
            payload[rng.randrange(len(payload))] ^= 1 << rng.randrange(8)
        body["payload"] = json.loads(sealed(bytes(payload)))["payload"]
        return json.dumps(body).encode()
    if kind == 2:
        body["payload"] = json.loads(sealed(written(mutated(rng))))["payload"]
        return json.dumps(body).encode()
    data = bytearray(HONEST[name])
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def count_of_accepted_forgeries(seed: int, count: int) -> int:
    """Count accepted envelopes whose payload is not honest; any untyped error fails the test."""
    rng, accepted = Random(seed), 0
    for _ in range(count):
        data = forged(rng)
        try:
            accept_survey(data, LINK, ROLE, None, NOW)
        except (DocumentRejected, LinkError):
            continue
        accepted += open_envelope(data, KIND)[0] not in PAYLOADS
    return accepted


def test_without_a_new_signature_no_mutation_is_accepted() -> None:
    assert count_of_accepted_forgeries(1, 300) == 0


@pytest.mark.full_only
def test_without_a_new_signature_none_of_ten_thousand_is_accepted() -> None:
    assert count_of_accepted_forgeries(2, 10_000) == 0


def accepted_places(seed: int, count: int) -> set[tuple[str, str]]:
    """Return the kinds and notions of accepted, newly signed mutations, and check each by definition."""
    rng, accepted = Random(seed), set()
    for _ in range(count):
        payload = written(mutated(rng))
        try:
            document = accept_survey(sealed(payload), LINK, ROLE, None, NOW).document
        except FranklyError:
            continue
        assert document == SurveyDocument.parse(payload)
        if payload in PAYLOADS:
            continue
        for block in document.blocks:
            for promise in block.promises:
                for name, ratio in needed(block.mechanism, promise.claim).items():
                    level = getattr(promise.claim, name)
                    assert level is None or (ratio is not None and ratio <= Fraction(*level)), (
                        payload
                    )
                accepted.add((block.mechanism.kind, promise.claim.notion))
    return accepted


def test_accepted_documents_signed_again_hold_by_the_definitions() -> None:
    assert {kind for kind, _ in accepted_places(3, 250)} == set(BLOCK_KINDS)


@pytest.mark.full_only
def test_ten_thousand_signed_again_cover_all_kinds_and_notions() -> None:
    numbered = {(kind, notion) for kind in KINDS for notion in DATA}
    assert accepted_places(4, 10_000) == numbered | {("agreement", "ldp")}
