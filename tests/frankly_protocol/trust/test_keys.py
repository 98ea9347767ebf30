# SPDX-License-Identifier: Apache-2.0
"""The keys document: who may follow whom."""

from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol.envelope import KEYS_TYPE, Envelope, SigningKey
from frankly_protocol.errors import (
    ClockError,
    DocumentRejected,
    Equivocation,
    FranklyError,
    KeyChainError,
    RollbackDetected,
)
from frankly_protocol.trust import KeysDocument, Role, accept_keys

from tests.frankly_protocol.samples import NOW, PUBLISHER, ROOT, STRANGER, keys_document, sealed_keys

FIRST = sealed_keys(keys_document())


def test_a_keys_document_survives_its_bytes() -> None:
    assert KeysDocument.parse(keys_document().payload()) == keys_document()
    assert accept_keys(FIRST, None, NOW) == keys_document()
    assert accept_keys(FIRST, FIRST, NOW) == keys_document()


def signed(version: int, root: SigningKey, *signers: SigningKey) -> bytes:
    return sealed_keys(keys_document(version, root=root), *signers)


CHAINS: list[tuple[bytes, bytes | None, type[FranklyError] | None]] = [
    (signed(2, ROOT, ROOT), FIRST, None),
    (signed(2, STRANGER, ROOT, STRANGER), FIRST, None),
    (signed(2, STRANGER, STRANGER), FIRST, KeyChainError),
    (signed(2, STRANGER, ROOT), FIRST, DocumentRejected),
    (signed(3, ROOT, ROOT), FIRST, KeyChainError),
    (signed(1, STRANGER, STRANGER), FIRST, KeyChainError),
    (FIRST, signed(2, ROOT, ROOT), RollbackDetected),
    (sealed_keys(keys_document(publisher=STRANGER)), FIRST, Equivocation),
    (signed(1, ROOT, STRANGER), None, DocumentRejected),
    (signed(1, ROOT, PUBLISHER), None, DocumentRejected),
    (b"{}", None, DocumentRejected),
]


@pytest.mark.parametrize(("data", "previous", "error"), CHAINS, ids=range(len(CHAINS)))
def test_only_a_signed_successor_is_accepted(data: bytes, previous: bytes | None, error: Any) -> None:
    if error is None:
        assert accept_keys(data, previous, NOW).version == 2
    else:
        with pytest.raises(error):
            accept_keys(data, previous, NOW)


@pytest.mark.parametrize("days", [-11, 301])
def test_keys_outside_their_window_are_refused_with_both_times(days: int) -> None:
    with pytest.raises(ClockError) as caught:
        accept_keys(FIRST, None, NOW + timedelta(days=days))
    assert "clock says" in caught.value.detail


@pytest.mark.parametrize("year", ["9999", "0001"])
def test_a_date_beyond_all_reason_is_refused_not_overflown(year: str) -> None:
    payload = keys_document().payload().replace(b'"expires":"2027', f'"expires":"{year}'.encode())
    with pytest.raises(DocumentRejected) as caught:
        accept_keys(Envelope.seal(KEYS_TYPE, payload, [ROOT]).to_bytes(), None, NOW)
    assert caught.value.field == "expires"


@pytest.mark.parametrize("threshold", [0, 2])
def test_a_threshold_must_be_reachable(threshold: int) -> None:
    with pytest.raises(DocumentRejected):
        Role((PUBLISHER.public,), threshold)


def test_two_entries_of_one_key_do_not_make_two_signers() -> None:
    with pytest.raises(DocumentRejected):
        Role((PUBLISHER.public, PUBLISHER.public), 2)
